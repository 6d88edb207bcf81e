"""Crawling the zoo: what is found, fetched, named, stored, noted, and not asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.crawls import crawl, crawler, downloads, plan_for, seen, told
from tests.zoo import SITES, Verdict, Zoo, ZooSite, judge, serve, total

from fonds.ids import site_file_id
from fonds.library import Library
from fonds.runs.state import RunReport, RunStatus
from fonds.shards.index import open_index
from fonds.shards.lookup import Lookup
from fonds.sites.crawl_state import CrawlState
from fonds.sites.models import PdfState
from fonds.sites.session import CrawlLimits

pytestmark = pytest.mark.smoke

BY_ID = {site.id: site for site in SITES}


class Visit:
    """The zoo, crawled once for all tests of this file."""

    def __init__(self, zoo: Zoo, library: Library, output: Path) -> None:
        self.zoo, self.library, self.output = zoo, library, output
        self.reports = {report.source: report for report in crawl(library, zoo, output)}
        self.requests = list(zoo.requests)
        self.files = seen(library)

    def report(self, site: str) -> RunReport:
        return self.reports[f"site-{site}"]

    def verdict(self, site: ZooSite) -> Verdict:
        found = [(row.url, row.organization, row.period) for row in self.files.get(site.id, [])]
        return judge(site, self.zoo.base(site), found)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    folder = tmp_path_factory.mktemp("zoo")
    with serve(SITES) as zoo, crawler(folder) as library:
        yield Visit(zoo, library, folder / "output")


def zoo_of(*ids: str) -> tuple[ZooSite, ...]:
    return tuple(BY_ID[name] for name in ids)


# What is found ----------------------------------------------------------------------------


def test_nearly_all_listed_pdfs_are_found_and_hardly_any_other(visit: Visit) -> None:
    verdict = total([visit.verdict(site) for site in visit.zoo.sites])
    assert verdict.recall >= 0.95, verdict.missing
    assert verdict.wrong <= 0.02, verdict.wrong_links


def test_organisations_and_periods_are_right_where_pages_state_them(visit: Visit) -> None:
    verdict = total([visit.verdict(site) for site in visit.zoo.sites])
    assert verdict.organizations_right >= 0.9, verdict.mistaken
    assert verdict.periods_right >= 0.9, verdict.mistaken


def test_no_site_is_passed_over(visit: Visit) -> None:
    shares = {site.id: visit.verdict(site).recall for site in visit.zoo.sites}
    assert {name for name, recall in shares.items() if recall < 0.5} == set()


def test_what_robots_txt_forbids_is_told_of_and_never_asked_for(visit: Visit) -> None:
    asked = {(one.site, one.path) for one in visit.requests}
    forbidden = {(site.id, path) for site in visit.zoo.sites for path in site.forbidden}
    assert forbidden
    assert not asked & forbidden
    kinds = {error.error_type for error in told(visit.output).errors}
    assert "RobotsForbiddenError" in kinds
    states = {row.state for row in visit.files["bezirk-robots"]}
    assert states == {PdfState.INDEXED, PdfState.FORBIDDEN}


def test_pdfs_behind_addresses_that_do_not_say_so_are_found(visit: Visit) -> None:
    verdict = visit.verdict(BY_ID["accounts-behind"])
    assert verdict.recall == 1.0, verdict.missing
    assert visit.report("accounts-behind").counts.inserted == 12
    requests = [one.path for one in visit.requests if one.site == "accounts-behind"]
    assert requests.count("/show?doc=61") == 2, "once as a page, up to its headers, once as a PDF"


def test_pdfs_behind_links_that_only_say_view_have_the_party_and_year_of_their_row(
    visit: Visit,
) -> None:
    verdict = visit.verdict(BY_ID["accounts-behind"])
    assert (verdict.organizations_right, verdict.periods_right) == (1.0, 1.0), verdict.mistaken


def test_bytes_in_shift_jis_are_read_as_such_whatever_is_claimed(visit: Visit) -> None:
    verdict = visit.verdict(BY_ID["kusunoki-claims-utf8"])
    assert (verdict.organizations_right, verdict.periods_right) == (1.0, 1.0), verdict.mistaken


def test_a_redirect_into_what_robots_txt_forbids_is_not_followed(visit: Visit) -> None:
    states = {row.url.rpartition("/")[2]: row.state for row in visit.files["amt-umleitung"]}
    assert states.pop("2023.pdf") == PdfState.INDEXED
    assert set(states.values()) == {PdfState.FORBIDDEN}
    assert visit.report("amt-umleitung").status is RunStatus.PARTIAL


def test_a_list_is_read_to_its_last_page(visit: Visit) -> None:
    verdict = visit.verdict(BY_ID["accounts-sixty"])
    assert verdict.recall == 1.0, verdict.missing
    assert visit.report("accounts-sixty").status is RunStatus.SUCCESS


def test_calendars_and_endless_lists_do_not_hold_a_crawl_up(visit: Visit) -> None:
    pages = seen(visit.library, "page")
    for name in ("board-calendar", "declarations-endless", "junta-sessions"):
        assert len(pages[name]) < 20, name


def test_nothing_crashed_on_the_way(visit: Visit) -> None:
    assert visit.zoo.crashes == []


# What is made of it -----------------------------------------------------------------------


def test_listed_files_that_are_no_pdfs_are_failures_and_the_others_are_documents(
    visit: Visit,
) -> None:
    for site in visit.zoo.sites:
        report = visit.report(site.id)
        bad = sum(not truth.downloads for truth in site.listed)
        assert report.counts.error == bad, (site.id, report.error_summary)
        assert report.status is (RunStatus.PARTIAL if bad else RunStatus.SUCCESS), site.id


def test_the_metadata_of_a_crawl_adds_up_with_its_files(visit: Visit) -> None:
    metadata = told(visit.output)
    stored = {file.name: file.stat().st_size for file in (visit.output / "pdfs").iterdir()}
    assert {one.filename: one.file_size_bytes for one in metadata.downloaded_files} == stored
    assert metadata.total_pdfs_downloaded == len(metadata.downloaded_files)
    assert metadata.total_bytes_downloaded == sum(
        one.file_size_bytes for one in metadata.downloaded_files
    )
    assert metadata.websites_crawled == metadata.total_websites == len(SITES)
    assert metadata.crawl_end_time is not None


def test_a_pdf_is_a_document_with_its_citation_and_its_page_as_origin(visit: Visit) -> None:
    (row,) = [row for row in visit.files["register-table"] if row.place == _first(visit)]
    document = visit.library.document(site_file_id("register-table", row.url))
    assert document["source_org"] == BY_ID["register-table"].name
    assert row.organization in document["citation_string"]
    assert row.url in document["citation_string"]
    assert visit.library.raw(document).startswith(b"%PDF-")
    assert visit.library.blobs.head(document["raw_path"]) is not None


def _first(visit: Visit) -> int:
    return min(int(row.place) for row in visit.files["register-table"])


@pytest.mark.long
def test_texts_of_pdfs_are_made_from_the_queue_and_found(visit: Visit) -> None:
    visit.library.normalize_queued()
    hits = visit.library.search("annual return", sources=["site-aotea-flat"])
    assert hits
    assert all(hit.citation.url.startswith(visit.zoo.base("aotea-flat")) for hit in hits)


def test_every_pdf_ends_as_indexed_failed_or_forbidden(visit: Visit) -> None:
    states = {row.state for rows in visit.files.values() for row in rows}
    assert states == {PdfState.INDEXED, PdfState.FAILED, PdfState.FORBIDDEN}


def test_the_hosts_of_a_crawl_are_noted(visit: Visit) -> None:
    index = open_index(visit.library.blobs, "domains")
    assert Lookup(index).find("127.0.0.1") is not None


# Again ------------------------------------------------------------------------------------


def test_a_second_crawl_asks_whether_pdfs_have_changed_and_fetches_none_that_have_not(
    tmp_path: Path,
) -> None:
    sites = zoo_of("register-table", "kitaura-list")
    with serve(sites) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, tmp_path / "output")
        before = told(tmp_path / "output")
        zoo.reset()
        reports = crawl(library, zoo, tmp_path / "output")
        pdfs = {truth.path for site in sites for truth in site.listed}
        statuses = {one.status for one in zoo.requests if one.path in pdfs}
    assert statuses == {304}
    assert {report.counts.inserted + report.counts.updated for report in reports} == {0}
    after = told(tmp_path / "output")
    assert after.crawl_id != before.crawl_id
    assert after.total_pdfs_downloaded == 0
    assert {one.sha256_hash for one in after.downloaded_files} == {
        one.sha256_hash for one in before.downloaded_files
    }


def test_a_strategy_that_worked_is_used_again_without_asking(tmp_path: Path) -> None:
    class Silent:
        name = "silent"

        async def advise(self, *_: object) -> object:
            raise AssertionError("asked again")

    with serve(zoo_of("register-table")) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, tmp_path / "output")
        (report,) = crawl(library, zoo, tmp_path / "output", advisors=(Silent(),))
    assert report.status is RunStatus.SUCCESS
    assert report.counts.skipped == len(BY_ID["register-table"].listed)


def test_a_crawl_into_another_folder_fills_it_from_the_archive(tmp_path: Path) -> None:
    with serve(zoo_of("register-table")) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, tmp_path / "one")
        zoo.reset()
        crawl(library, zoo, tmp_path / "two")
        served = downloads(zoo)
    assert not [name for name in served if name.endswith(".pdf")]
    names = [
        sorted(file.name for file in (tmp_path / x / "pdfs").iterdir()) for x in ("one", "two")
    ]
    assert names[0] == names[1]


def test_equal_files_are_stored_once_if_asked_for_and_all_addresses_are_told(
    tmp_path: Path,
) -> None:
    site = BY_ID["kammarkontoret-twice"]
    copies = sum(truth.copy_of is not None for truth in site.listed)
    with serve([site]) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, tmp_path / "output", dedupe=True)
    stored = list((tmp_path / "output" / "pdfs").iterdir())
    assert copies
    assert len(stored) == len(site.listed) - copies
    assert len(told(tmp_path / "output").downloaded_files) == len(site.listed)


def test_no_more_files_are_fetched_than_asked_for(tmp_path: Path) -> None:
    with serve(zoo_of("register-table", "kitaura-list")) as zoo, crawler(tmp_path) as library:
        limits = CrawlLimits(parallelism=4, max_files=7)
        crawl(library, zoo, tmp_path / "output", limits=limits)
    assert len(list((tmp_path / "output" / "pdfs").iterdir())) == 7


@pytest.mark.parametrize(
    ("limits", "option"),
    [
        ({"max_files": 7}, "PDFs over the limit of 7 (--max-files)"),
        ({"max_pages": 2}, "pages over the limit of 2 (--max-pages)"),
        ({"max_depth": 0}, "pages behind more than 0 links (--max-depth)"),
    ],
)
def test_a_limit_that_left_out_a_part_makes_the_crawl_partial_and_is_named(
    tmp_path: Path, limits: dict[str, int], option: str
) -> None:
    sites = zoo_of("accounts-sixty", "biuro-form")
    with serve(sites) as zoo, crawler(tmp_path) as library:
        reports = crawl(library, zoo, tmp_path / "output", limits=CrawlLimits(**limits))
    partial = [report for report in reports if report.status is RunStatus.PARTIAL]
    errors = [error.error_message for error in told(tmp_path / "output").errors]
    assert any(option in (report.error_summary or "") for report in partial)
    assert any(option in error for error in errors)


def test_a_limit_that_leaves_nothing_out_is_not_named(tmp_path: Path) -> None:
    with serve(zoo_of("accounts-sixty")) as zoo, crawler(tmp_path) as library:
        limits = CrawlLimits(max_files=180, max_pages=70, max_depth=1)
        (report,) = crawl(library, zoo, tmp_path / "output", limits=limits)
    assert report.status is RunStatus.SUCCESS, report.error_summary
    assert len(list((tmp_path / "output" / "pdfs").iterdir())) == 180


def test_a_crawl_that_was_cancelled_is_resumed_without_fetching_anything_twice(
    tmp_path: Path,
) -> None:
    site = BY_ID["disclosure-pages"]
    with serve([site]) as zoo, crawler(tmp_path) as library:
        asyncio.run(_cancelled(library, zoo, tmp_path / "output"))
        first = told(tmp_path / "output")
        assert first.crawl_end_time is None
        (report,) = crawl(library, zoo, tmp_path / "output", resume=True)
        served = downloads(zoo)
    metadata = told(tmp_path / "output")
    assert UUID(metadata.crawl_id) == UUID(first.crawl_id)
    assert metadata.total_pdfs_discovered == len(site.listed)
    assert metadata.total_pdfs_downloaded == len(site.listed)
    assert report.status is RunStatus.SUCCESS
    assert all(served[f"{site.id} {truth.path}"] <= 2 for truth in site.listed)
    twice = [truth for truth in site.listed if served[f"{site.id} {truth.path}"] > 1]
    assert len(twice) <= 4


def test_a_crawl_that_was_stopped_when_all_was_done_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = BY_ID["register-table"]
    with serve([site]) as zoo, crawler(tmp_path) as library:
        with monkeypatch.context() as stopped:
            stopped.setattr(CrawlState, "website", _stop)
            with pytest.raises(OSError, match="stopped"):
                crawl(library, zoo, tmp_path / "output")
        (report,) = crawl(library, zoo, tmp_path / "output", resume=True)
        (again,) = crawl(library, zoo, tmp_path / "other")
    assert report.status is RunStatus.SUCCESS, report.error_summary
    assert told(tmp_path / "output").websites_crawled == 1
    assert again.counts.skipped == len(site.listed)


def _stop(*_told: object) -> None:
    raise OSError("stopped")


async def _cancelled(library: Library, zoo: Zoo, output: Path) -> None:
    plan = plan_for(library, zoo, output, limits=CrawlLimits(parallelism=4))
    crawling = asyncio.ensure_future(library.crawl(plan))
    while not any(one.path.endswith(".pdf") for one in zoo.requests):  # noqa: ASYNC110 — of another thread
        await asyncio.sleep(0.005)
    crawling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await crawling


def test_a_website_is_a_source_that_is_run_by_its_name(tmp_path: Path) -> None:
    with serve(zoo_of("register-table")) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, tmp_path / "output")
        report = library.run("site-register-table")
    assert (report.status, report.counts.inserted) == (RunStatus.SUCCESS, 0)
    assert report.counts.skipped == len(BY_ID["register-table"].listed)


def test_a_website_that_does_not_answer_fails_by_name_and_the_others_go_on(tmp_path: Path) -> None:
    with serve(zoo_of("register-table", "kitaura-list")) as zoo, crawler(tmp_path) as library:
        plan = plan_for(library, zoo, tmp_path / "output")
        dead = plan.websites[0].model_copy(update={"base_url": "http://127.0.0.1:9/"})
        websites = [dead, plan.websites[1]]
        object.__setattr__(plan, "websites", websites)
        failed, fine = asyncio.run(library.crawl(plan))
    assert (failed.status, fine.status) == (RunStatus.FAILED, RunStatus.SUCCESS)
    assert "127.0.0.1:9" in (failed.error_summary or "")
    metadata = told(tmp_path / "output")
    assert (metadata.websites_crawled, metadata.websites_failed) == (1, 1)


# Politeness -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_server_is_never_asked_more_often_than_its_robots_txt_allows(tmp_path: Path) -> None:
    site = BY_ID["bezirk-robots"]
    delay = 0.2
    with serve([site]) as zoo, crawler(tmp_path, rate_factor=1.0) as library:
        crawl(library, zoo, tmp_path / "output", limits=CrawlLimits(parallelism=8))
        times = [one.time for one in zoo.requests]
    # What the robots.txt is asked at comes before anybody knows of it.
    spans = [later - earlier for earlier, later in pairwise(times[1:])]
    assert len(spans) >= len(site.listed) - 1
    assert sum(spans) >= delay * len(spans)
