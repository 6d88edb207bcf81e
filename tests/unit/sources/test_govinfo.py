"""What all collections of govinfo share: sitemaps, MODS, texts, and the audit."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.sources.packages import (
    NOW,
    SITE,
    DemoFolder,
    Upstream,
    archived,
    audited,
    discover,
    loaded,
    loose_bytes,
    sitemap,
    sitemap_address,
    tasks,
)

from fonds import ids
from fonds.errors import (
    MalformedError,
    RefusedError,
    SuspiciousYieldError,
    UsageError,
    WrongContentError,
)
from fonds.model import RawPart, SourceState, Watermark
from fonds.sources.base import Auditable, ListingResponse, Source
from fonds.sources.committee_reports import source as reports
from fonds.sources.congressional_record import source as record
from fonds.sources.formats import gpo_files, mods
from fonds.sources.hearings import source as hearings

FILES = Path(__file__).parents[2] / "sources"
ERROR_PAGE = (FILES / "hearings/files/error.html").read_bytes()
HOUSE = (FILES / "hearings/files/CHRG-118hhrg50001.mods.xml").read_bytes()
API = "https://api.govinfo.gov"

ONE = ("CHRG-119hhrg1", "2026-01-02T00:00:00.000Z")
OTHER = ("CHRG-118shrg2", "2026-02-02T00:00:00.000Z")
OLD = ("CHRG-110jhrg3p1", "2026-02-20T00:00:00.000Z")


def years(upstream: Upstream) -> list[int]:
    return [int(url.split("_")[1]) for url in upstream.asked]


def hearing_maps(*named: int) -> dict[str, bytes]:
    return {sitemap_address("CHRG", year): sitemap(ONE, OTHER, OLD) for year in named}


@pytest.mark.parametrize("source", [hearings, reports, record])
def test_each_is_a_source_that_can_be_audited(source: Source) -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)
    assert source.info.options == ("congresses",)


# Which years ------------------------------------------------------------------------------


def test_an_incremental_run_asks_this_year_and_the_last() -> None:
    upstream = Upstream(hearing_maps(2026, 2025))
    found = tasks(discover(hearings, upstream, SourceState(now=NOW)))
    assert years(upstream) == [2026, 2025]
    assert {task.key for task in found} == {ONE[0], OTHER[0], OLD[0]}


def test_a_backfill_without_a_range_takes_this_congress_and_the_last() -> None:
    upstream = Upstream(hearing_maps(2026, 2025, 2024, 2023))
    found = tasks(discover(hearings, upstream, SourceState(now=NOW, backfill=True)))
    assert years(upstream) == [2026, 2025, 2024, 2023]
    assert {task.key for task in found} == {ONE[0], OTHER[0]}


def test_a_congress_is_looked_for_in_the_years_after_it_as_well() -> None:
    upstream = Upstream(hearing_maps(2010))
    state = SourceState(now=NOW, backfill=True, options={"congresses": ["110"]})
    found = tasks(discover(hearings, upstream, state))
    assert years(upstream) == [2010, 2009, 2008, 2007]
    assert [task.key for task in found] == [OLD[0]]


def test_days_of_a_backfill_count_by_year() -> None:
    upstream = Upstream(hearing_maps(2008, 2007))
    state = SourceState(now=NOW, backfill=True, since=date(2007, 6, 1), until=date(2008, 2, 1))
    assert len(tasks(discover(hearings, upstream, state))) == 6
    assert years(upstream) == [2008, 2007]


def test_issues_of_the_record_are_taken_by_the_day() -> None:
    days = [(f"CREC-2025-0{month}-03", f"2025-0{month}-04T00:00:00Z") for month in (1, 2, 3, 4)]
    upstream = Upstream({sitemap_address("CREC", 2025): sitemap(*days)})
    state = SourceState(now=NOW, backfill=True, since=date(2025, 2, 3), until=date(2025, 3, 3))
    found = tasks(discover(record, upstream, state))
    assert [task.key for task in found] == ["CREC-2025-03-03", "CREC-2025-02-03"]


def test_a_congress_of_the_record_begins_on_january_3() -> None:
    listed = [
        ("CREC-2025-01-02", "2025-01-03T00:00:00Z"),
        ("CREC-2025-01-03", "2025-01-04T00:00:00Z"),
    ]
    upstream = Upstream({sitemap_address("CREC", 2025): sitemap(*listed)})
    for congress, key in ((118, "CREC-2025-01-02"), (119, "CREC-2025-01-03")):
        state = SourceState(now=NOW, backfill=True, options={"congresses": [congress]})
        assert [task.key for task in tasks(discover(record, upstream, state))] == [key]


def test_the_congress_changes_on_january_3_and_not_with_the_year() -> None:
    upstream = Upstream({sitemap_address("CHRG", 2026): sitemap(ONE)})
    eve = datetime(2027, 1, 2, 12, tzinfo=UTC)
    discover(hearings, upstream, SourceState(now=eve, backfill=True))
    assert years(upstream) == [2027, 2026, 2025, 2024, 2023]


def test_a_congress_must_be_a_number() -> None:
    state = SourceState(now=NOW, backfill=True, options={"congresses": ["last"]})
    with pytest.raises(UsageError, match="'last' is not the number of a Congress"):
        discover(hearings, Upstream({}), state)


# Tasks ------------------------------------------------------------------------------------


def test_a_package_is_its_mods_and_the_text_of_its_name() -> None:
    upstream = Upstream({sitemap_address("CHRG", 2026): sitemap(ONE)})
    [task] = tasks(discover(hearings, upstream, SourceState(now=NOW)))
    described, text = task.parts
    assert (described.name, described.url, described.path, described.optional) == (
        "mods",
        f"{SITE}/metadata/pkg/CHRG-119hhrg1/mods.xml",
        "CHRG-119hhrg1/mods.xml",
        False,
    )
    assert (text.name, text.url, text.path, text.optional) == (
        "html",
        f"{SITE}/content/pkg/CHRG-119hhrg1/html/CHRG-119hhrg1.htm",
        "CHRG-119hhrg1/html/CHRG-119hhrg1.htm",
        True,
    )
    assert task.origin is not None
    assert task.fingerprint == ids.json_sha256(
        {
            "loc": f"{SITE}/app/details/CHRG-119hhrg1",
            "lastmod": ONE[1],
            "changefreq": "monthly",
        }
    )


def test_an_issue_of_the_record_has_no_text_of_its_own() -> None:
    listed = sitemap(("CREC-2026-02-03", "2026-02-04T00:00:00Z"))
    upstream = Upstream({sitemap_address("CREC", 2026): listed})
    [task] = tasks(discover(record, upstream, SourceState(now=NOW)))
    assert [part.name for part in task.parts] == ["mods"]


def test_another_lastmod_is_another_input_and_another_fingerprint() -> None:
    found = []
    for moment in ("2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z"):
        listed = sitemap((ONE[0], moment))
        upstream = Upstream({sitemap_address("CHRG", 2026): listed})
        found += tasks(discover(hearings, upstream, SourceState(now=NOW)))
    assert found[0].fingerprint != found[1].fingerprint
    assert found[0].params != found[1].params


def test_what_changed_last_comes_first_and_moves_the_watermark() -> None:
    upstream = Upstream(hearing_maps(2026))
    found = discover(hearings, upstream, SourceState(now=NOW))
    assert [task.key for task in tasks(found)] == [OLD[0], OTHER[0], ONE[0]]
    assert found[-1] == Watermark(last_seen_key=OLD[1])
    later = SourceState(now=NOW, last_seen_key="2026-03-01T00:00:00.000Z")
    assert discover(hearings, upstream, later)[-1] == Watermark(
        last_seen_key=later.last_seen_key or ""
    )


def test_packages_of_neighbours_and_repeated_ones_are_left_out() -> None:
    listed = sitemap(
        ONE, ONE, ("GPO-J6-REPORT", "2026"), ("ERP-2009", "2026"), ("CHRG-../x", "2026")
    )
    upstream = Upstream({sitemap_address("CHRG", 2026): listed})
    found = tasks(discover(hearings, upstream, SourceState(now=NOW)))
    assert [task.key for task in found] == [ONE[0]]


def test_a_year_without_a_sitemap_is_passed_over() -> None:
    missing = {
        sitemap_address("CHRG", 2026): ERROR_PAGE,
        sitemap_address("CHRG", 2025): sitemap(ONE),
    }
    found = tasks(discover(hearings, Upstream(missing), SourceState(now=NOW)))
    assert [task.key for task in found] == [ONE[0]]


def test_no_sitemap_at_all_is_suspicious() -> None:
    with pytest.raises(SuspiciousYieldError, match="no sitemap of CHRG"):
        discover(hearings, Upstream({}), SourceState(now=NOW))


def test_a_sitemap_without_our_packages_is_suspicious() -> None:
    upstream = Upstream({sitemap_address("CHRG", 2026): sitemap(("CRPT-119hrpt1", "2026"))})
    with pytest.raises(SuspiciousYieldError, match="2026 names no package"):
        discover(hearings, upstream, SourceState(now=NOW))


@pytest.mark.parametrize(
    "data", [b"<html><body>Please prove that you are human</body></html>", b"<rss></rss>"]
)
def test_something_else_than_a_sitemap_is_wrong_content(data: bytes) -> None:
    upstream = Upstream({sitemap_address("CHRG", 2026): data})
    with pytest.raises(WrongContentError):
        discover(hearings, upstream, SourceState(now=NOW))


# The audit --------------------------------------------------------------------------------


def published(since: str, until: str, mark: str, code: str = "CHRG") -> str:
    return f"{API}/published/{since}/{until}?offsetMark={mark}&pageSize=1000&collection={code}"


def page(count: int, mark: str | None, *packages: tuple[str, str]) -> bytes:
    link = f"https://elsewhere.example/?offsetMark={mark}&pageSize=1000" if mark else None
    listed = [{"packageId": package, "dateIssued": day} for package, day in packages]
    return json.dumps({"count": count, "nextPage": link, "packages": listed}).encode()


def test_the_audit_pages_by_marks_and_asks_no_other_host() -> None:
    first, last = "2025-01-01", "2025-01-31"
    upstream = Upstream(
        {
            published(first, last, "%2A"): page(
                4, "AoE", ("CHRG-119hhrg1", "2025-01-07"), ("ERP-2009", "2025-01-07")
            ),
            published(first, last, "AoE"): page(
                4, None, ("CHRG-119shrg2", "2025-01-07"), ("CHRG-119shrg3", "2025-01-06")
            ),
        }
    )
    found = audited(hearings, upstream, since=date(2025, 1, 1), until=date(2025, 1, 31))
    assert [(one.scope, sorted(one.document_ids)) for one in found] == [
        ("2025-01-06", ["chrg:CHRG-119shrg3"]),
        ("2025-01-07", ["chrg:CHRG-119hhrg1", "chrg:CHRG-119shrg2"]),
    ]


def test_an_audit_without_days_takes_the_last_thirty() -> None:
    upstream = Upstream(
        {
            f"{API}/collections": b"{}",
            published("2026-02-02", "2026-03-04", "%2A", "CRPT"): page(
                1, None, ("CRPT-119hrpt1", "2026-03-01")
            ),
        }
    )
    [found] = audited(reports, upstream)
    assert found.document_ids == {"crpt:CRPT-119hrpt1"}


def test_a_list_that_repeats_itself_is_suspicious() -> None:
    address = published("2025-01-01", "2025-01-31", "%2A")
    again = published("2025-01-01", "2025-01-31", "AoE")
    same = page(9, "AoE", ("CHRG-119hhrg1", "2025-01-07"))
    upstream = Upstream({address: same, again: same})
    with pytest.raises(SuspiciousYieldError, match="counts 9 entries and lists 2"):
        audited(hearings, upstream, since=date(2025, 1, 1), until=date(2025, 1, 31))


def test_a_page_in_place_of_the_list_is_wrong_content() -> None:
    upstream = Upstream({published("2025-01-01", "2025-01-31", "%2A"): b"<html></html>"})
    with pytest.raises(WrongContentError, match="did not answer with a list"):
        audited(hearings, upstream, since=date(2025, 1, 1), until=date(2025, 1, 31))


def test_without_a_key_the_refusal_of_the_api_is_passed_on() -> None:
    class Keyless(Upstream):
        async def __call__(self, url: str, *, path: str) -> ListingResponse:
            del path
            raise RefusedError(f"{url} answered 403 instead of the file")

    with pytest.raises(RefusedError, match="403"):
        audited(hearings, Keyless({}), since=date(2025, 1, 1), until=date(2025, 1, 31))


# MODS -------------------------------------------------------------------------------------


def test_an_item_survives_the_parameters_of_a_task() -> None:
    [item] = mods.read(HOUSE).items
    stored = json.loads(json.dumps(item.model_dump(mode="json")))
    assert mods.ModsItem.model_validate(stored) == item


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"<mets xmlns='http://www.loc.gov/METS/'/>", "METS"),
        (b"<premis xmlns='info:lc/xmlns/premis-v2'/>", "PREMIS"),
        (b"<urlset/>", "a sitemap"),
        (b"<other/>", "<other>"),
    ],
)
def test_another_file_of_the_package_says_what_it_is(data: bytes, what: str) -> None:
    with pytest.raises(WrongContentError, match=what):
        mods.read(data)


@pytest.mark.parametrize("name", ["../../etc/passwd", "CHRG-1/../../x", "nothing at all"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    data = HOUSE.replace(
        b"CHRG-118hhrg50001</recordIdentifier>", f"{name}</recordIdentifier>".encode()
    )
    with pytest.raises(MalformedError, match="not the name of a package"):
        mods.read(data)


def test_addresses_are_our_own_whatever_host_a_file_names() -> None:
    data = (FILES / "congressional_record/files/CREC-2005-01-04.mods.xml").read_bytes()
    item = mods.read(data).items[0]
    folder = f"{SITE}/content/pkg/CREC-2005-01-04"
    assert item.renditions == {
        "html": f"{folder}/html/CREC-2005-01-04-pt1-PgD1.htm",
        "pdf": f"{folder}/pdf/CREC-2005-01-04-pt1-PgD1.pdf",
    }
    assert item.page == f"{SITE}/app/details/CREC-2005-01-04/CREC-2005-01-04-pt1-PgD1"


# Bodies -----------------------------------------------------------------------------------


def part(data: bytes) -> RawPart:
    return RawPart(name="html", archived=archived("x.htm", data), data=data)


STUB = (
    b"<html><body><pre>\nA HEARING\n\n [TEXT NOT AVAILABLE\n REFER TO PDF]  \n</pre></body></html>"
)


def test_a_cover_is_no_body() -> None:
    assert gpo_files.text_body(part(STUB)) is None


def test_a_long_text_with_a_gap_is_a_body() -> None:
    text = STUB.replace(b"A HEARING", b"    Mr. Stone spoke at length.\n" * 300)
    body = gpo_files.text_body(part(text))
    assert body is not None
    assert body.normalized is not None
    assert "spoke at length" in body.normalized.markdown


def test_the_page_for_a_missing_file_is_no_body() -> None:
    assert gpo_files.is_error_page(ERROR_PAGE)
    assert gpo_files.text_body(part(ERROR_PAGE)) is None


def test_a_text_about_errors_is_not_taken_for_that_page() -> None:
    text = b"<html><title>House Report 1 - ERROR ACT</title><body><pre>\nText.\n</pre></html>"
    assert gpo_files.text_body(part(text)) is not None


def test_any_other_page_is_wrong_content() -> None:
    with pytest.raises(WrongContentError, match="not a page with typeset text"):
        gpo_files.text_body(part(b"<html><body>Welcome</body></html>"))


def test_a_pdf_must_be_one() -> None:
    with pytest.raises(WrongContentError, match="not a PDF"):
        gpo_files.pdf_body(part(ERROR_PAGE))
    assert gpo_files.pdf_body(part(b"%PDF-1.4\n")).normalized is None


# Loose files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"%PDF-1.4", "CHRG-119hhrg1.pdf", "its mods.xml is missing"),
        (STUB, "page.htm", "does not say which granule"),
        (ERROR_PAGE, "CHRG-119hhrg1.htm", "the page for a missing file"),
        (b"<html><body>Browse</body></html>", "browse.html", "a listing"),
        (HOUSE.replace(b">CHRG</coll", b">CPRT</coll"), "mods.xml", "a package of CPRT"),
    ],
)
def test_a_loose_file_without_records_says_what_it_is(data: bytes, name: str, what: str) -> None:
    with pytest.raises(WrongContentError, match=what):
        list(hearings.parse(loose_bytes(data, name)))


# The bundled upstream ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "documents", "pdfs"),
    [
        (hearings, 3, 1),
        (reports, 4, 0),
        (record, 8, 0),
    ],
)
def test_the_bundled_packages_are_documents_with_bodies(
    source: Source, documents: int, pdfs: int
) -> None:
    state = SourceState(now=NOW, backfill=True)
    records = loaded(source, tasks(discover(source, DemoFolder(), state)))
    found = [one.document for one in records if one.document]
    assert len({document.id for document in found}) == len(found) == documents
    assert all(document.citation_string.endswith(").") for document in found)
    bodies = [document.body for document in found if document.body]
    assert len(bodies) == documents
    assert sum(body.format == "pdf" for body in bodies) == pdfs
