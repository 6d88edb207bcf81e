"""Crawls that follow others of the same website: resumed after failures, or a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.crawls import crawl, crawler, plan_for, seen, told
from tests.zoo import SITES, Answer, Ask, Zoo, ZooSite, serve

from fonds.cli.progress import exit_code
from fonds.errors import UsageError
from fonds.library import Library
from fonds.runs.state import RunReport, RunStatus
from fonds.sites.models import DownloadedPDF, PdfState
from fonds.sites.session import CrawlLimits
from fonds.sites.website import read_websites
from fonds.stores.tables import documents

pytestmark = pytest.mark.smoke

BY_ID = {site.id: site for site in SITES}
DOWN = Answer(status=500, body=b"down")


class Office:
    """A website of the zoo, some of whose addresses have answers that a test gives them."""

    def __init__(self, site: ZooSite, folder: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.folder = folder
        self.site = replace(site, gate=self._gate)
        self.zoo: Zoo
        self.library: Library

    def _gate(self, ask: Ask) -> Answer | None:
        return self.answers.get(ask.target)

    def crawl(self, **options: Any) -> RunReport:
        self.zoo.reset()
        (report,) = crawl(self.library, self.zoo, self.folder / "output", **options)
        return report

    def nothing_to_resume(self) -> bool:
        return crawl(self.library, self.zoo, self.folder / "output", resume=True) == []

    def paths(self) -> list[str]:
        return [one.path for one in self.zoo.requests]

    def withdrawn(self) -> set[str]:
        table = documents.c
        query = select(table.source_url).where(table.gone_at.is_not(None))
        base = self.zoo.base(self.site)
        with self.library.database.read() as connection:
            return {url.removeprefix(base) for url in connection.scalars(query)}

    def states(self) -> dict[str, str]:
        base = self.zoo.base(self.site)
        rows = seen(self.library).get(self.site.id, [])
        return {row.url.removeprefix(base): row.state for row in rows}


@contextmanager
def office(folder: Path, site: str) -> Iterator[Office]:
    opened = Office(BY_ID[site], folder)
    with serve([opened.site]) as opened.zoo, crawler(folder) as opened.library:
        yield opened


# Resumed ----------------------------------------------------------------------------------


def test_failed_pdfs_are_fetched_when_a_crawl_is_resumed_until_none_is_left(
    tmp_path: Path,
) -> None:
    with office(tmp_path, "register-table") as registry:
        paths = [truth.path for truth in registry.site.listed]
        registry.answers = dict.fromkeys(paths[:3], DOWN)
        assert registry.crawl().status is RunStatus.PARTIAL
        del registry.answers[paths[0]]
        again = registry.crawl(resume=True)
        requested = {path for path in registry.paths() if path in paths}
        metadata = told(tmp_path / "output")
        assert exit_code([again]) == 3
        assert requested == set(paths[:3])
        assert metadata.websites_crawled == 1
        assert (metadata.total_pdfs_downloaded, metadata.total_pdfs_failed) == (len(paths) - 2, 2)
        registry.answers.clear()
        assert registry.crawl(resume=True).status is RunStatus.SUCCESS
        assert registry.nothing_to_resume()
        assert set(registry.states().values()) == {PdfState.INDEXED}
    metadata = told(tmp_path / "output")
    assert (metadata.total_pdfs_downloaded, metadata.total_pdfs_failed) == (len(paths), 0)
    assert metadata.total_pdfs_discovered == len(paths)


def test_pages_that_failed_are_visited_when_a_crawl_is_resumed(tmp_path: Path) -> None:
    with office(tmp_path, "disclosure-pages") as accounts:
        accounts.answers = {"/reports/page/3/": DOWN}
        first = accounts.crawl()
        failed_again = accounts.crawl(resume=True)
        accounts.answers.clear()
        last = accounts.crawl(resume=True)
        assert len(accounts.states()) == len(accounts.site.listed)
        assert accounts.nothing_to_resume()
    assert (first.status, failed_again.status) == (RunStatus.PARTIAL, RunStatus.PARTIAL)
    assert "/reports/page/3/" in (failed_again.error_summary or "")
    assert last.status is RunStatus.SUCCESS


def test_a_first_page_that_fails_again_is_named_as_the_cause(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.answers = {registry.site.start: Answer(status=404)}
        assert registry.crawl().status is RunStatus.FAILED
        again = registry.crawl(resume=True)
        registry.answers.clear()
        last = registry.crawl(resume=True)
    assert again.status is RunStatus.FAILED
    assert "404" in (again.error_summary or "")
    assert (last.status, last.counts.inserted) == (RunStatus.SUCCESS, len(registry.site.listed))


@pytest.mark.parametrize("limits", [{"max_files": 7}, {"max_pages": 2}, {"max_depth": 0}])
def test_a_crawl_that_reached_a_limit_is_resumed_with_a_higher_one(
    tmp_path: Path, limits: dict[str, int]
) -> None:
    name = "biuro-form" if "max_depth" in limits else "disclosure-pages"
    with office(tmp_path, name) as accounts:
        first = accounts.crawl(limits=CrawlLimits(**limits))
        again = accounts.crawl(resume=True, limits=CrawlLimits(**limits))
        last = accounts.crawl(resume=True, limits=CrawlLimits())
        assert {truth.path for truth in accounts.site.listed} <= set(accounts.states())
    assert first.status is again.status is RunStatus.PARTIAL
    assert last.status is RunStatus.SUCCESS, last.error_summary
    discovered = told(tmp_path / "output").total_pdfs_discovered
    assert discovered == len(accounts.site.listed)


def test_resuming_reads_no_sitemap_that_the_crawl_did_not_need(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.answers = {registry.site.listed[0].path: DOWN}
        registry.crawl()
        registry.crawl(resume=True)
        assert "/sitemap.xml" not in registry.paths()


def test_unchanged_pdfs_of_one_website_are_not_taken_for_new_ones_of_another(
    tmp_path: Path,
) -> None:
    register, list_of_offices = BY_ID["register-table"], Office(BY_ID["kitaura-list"], tmp_path)
    output = tmp_path / "output"
    with serve([register, list_of_offices.site]) as zoo, crawler(tmp_path) as library:
        crawl(library, zoo, output)
        list_of_offices.answers = {list_of_offices.site.start: DOWN}
        crawl(library, zoo, output)
        assert told(output).total_pdfs_discovered == len(register.listed)
        list_of_offices.answers.clear()
        crawl(library, zoo, output, resume=True)
    listed = len(register.listed) + len(list_of_offices.site.listed)
    assert told(output).total_pdfs_discovered == listed


# A new crawl ------------------------------------------------------------------------------


def test_pdfs_that_a_website_no_longer_lists_are_withdrawn_until_they_are_listed_again(
    tmp_path: Path,
) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.crawl()
        page = registry.site.answer(Ask(target=registry.site.start))
        left_out = registry.site.listed[0].path
        assert page.body.count(left_out.encode()) == 1
        shorter = page.body.replace(left_out.encode(), b"/elsewhere.html")
        registry.answers = {registry.site.start: replace(page, body=shorter)}
        crawled = registry.crawl()
        assert registry.withdrawn() == {left_out}
        registry.answers.clear()
        listed_again = registry.crawl()
        assert registry.withdrawn() == set()
    assert (crawled.status, crawled.counts.gone) == (RunStatus.SUCCESS, 1)
    assert listed_again.counts.updated == 1


@pytest.mark.parametrize("how", ["page", "limit", "shrunk"])
def test_nothing_is_withdrawn_if_a_website_may_not_have_been_read_to_its_end(
    tmp_path: Path, how: str
) -> None:
    with office(tmp_path, "disclosure-pages") as registry:
        registry.crawl()
        empty = Answer(body=b"<title>Reports</title><h1>Reports</h1><p>None.</p>")
        registry.answers = {
            "page": {"/reports/page/4/": DOWN},
            "limit": {},
            "shrunk": {f"/reports/page/{number}/": empty for number in range(2, 5)},
        }[how]
        limits = CrawlLimits(max_pages=2 if how == "limit" else 100)
        report = registry.crawl(limits=limits)
        assert registry.withdrawn() == set()
    assert report.status is RunStatus.PARTIAL


def test_pdfs_of_pages_that_robots_txt_forbids_since_are_not_withdrawn(tmp_path: Path) -> None:
    with office(tmp_path, "disclosure-pages") as registry:
        registry.crawl()
        rules = b"User-agent: *\nDisallow: /reports/page/4/\n"
        registry.answers = {"/robots.txt": Answer(body=rules, media="text/plain")}
        registry.crawl()
        assert registry.withdrawn() == set()


def test_a_pdf_that_failed_and_is_forbidden_since_is_not_requested_again(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        path = registry.site.listed[0].path
        registry.answers = {path: DOWN}
        registry.crawl()
        rules = f"User-agent: *\nDisallow: {path}\n".encode()
        registry.answers = {"/robots.txt": Answer(body=rules, media="text/plain")}
        for resume in (True, False):
            report = registry.crawl(resume=resume)
            assert path not in registry.paths()
            assert registry.states()[path] == PdfState.FORBIDDEN
            assert "robots.txt" in (report.error_summary or "")


def test_entries_have_the_status_and_headers_of_the_answers(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        registry.crawl()
        first = told(tmp_path / "output").downloaded_files
        crawl(registry.library, registry.zoo, tmp_path / "other")
        second = told(tmp_path / "other").downloaded_files
    assert {
        (one.http_status_code, other.http_status_code) for one, other in pairs(first, second)
    } == {(200, 304)}
    names = ("Content-Type", "ETag", "Last-Modified")
    for one, other in pairs(first, second):
        assert other.http_headers == {name: one.http_headers[name] for name in names}


def pairs(
    first: list[DownloadedPDF], second: list[DownloadedPDF]
) -> list[tuple[DownloadedPDF, DownloadedPDF]]:
    others = {each.original_url: each for each in second}
    return [(each, others[each.original_url]) for each in first]


def test_a_website_that_is_disabled_has_no_schedule_and_is_not_run(tmp_path: Path) -> None:
    with office(tmp_path, "register-table") as registry:
        plan = plan_for(registry.library, registry.zoo, tmp_path / "output")
        changes = {"enabled": False, "crawl_frequency": "daily"}
        disabled = plan.websites[0].model_copy(update=changes)
        crawled = registry.library.crawl(replace(plan, websites=[disabled]))
        assert asyncio.run(crawled) == []
        (website,) = read_websites(registry.library.database)
        assert website.info.schedule is None
        with pytest.raises(UsageError, match="is disabled in its configuration"):
            registry.library.run(website.info.name)
