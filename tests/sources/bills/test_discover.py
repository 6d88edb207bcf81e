from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.sources.publishing import Publisher, archived, discover, tasks

from fonds.demo.bundle import DATA
from fonds.errors import NotFoundError, SuspiciousYieldError, UsageError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, Raw, RawPart, SourceState, Watermark
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.bills import source

SITE = "https://www.govinfo.gov"
FOLDERS = f"{SITE}/bulkdata/json/BILLSTATUS"
FEED = f"{SITE}/rss/billstatus-bulkdata.xml"
SITEMAPS = f"{SITE}/sitemap/bulkdata/BILLSTATUS/sitemapindex.xml"
NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


def listing(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"files": entries}).encode()


def folder(name: str) -> dict[str, Any]:
    return {"name": name, "folder": True, "link": f"{FOLDERS}/{name}", "size": 0}


def file(name: str, when: str = "02-Mar-2026 10:00", size: int = 4000) -> dict[str, Any]:
    return {
        "name": name,
        "justFileName": name,
        "folder": False,
        "size": size,
        "formattedLastModifiedTime": when,
        # Never followed: addresses are built from names.
        "link": f"https://mirror.example/{name}",
    }


def feed(*entries: tuple[str, str]) -> bytes:
    items = "".join(
        f"<item><title>{name}</title><link>{SITE}/bulkdata/BILLSTATUS/x/{name}</link>"
        f"<pubDate>{when}</pubDate></item>"
        for name, when in entries
    )
    return f'<rss version="2.0"><channel><title>t</title>{items}</channel></rss>'.encode()


RECENT = feed(("BILLSTATUS-119hr2.xml", "Mon, 02 Mar 2026 10:00:30 GMT"))


def answers(**more: bytes | Exception) -> dict[str, bytes | Exception]:
    standard: dict[str, bytes | Exception] = {
        FEED: RECENT,
        FOLDERS: listing(folder("118"), folder("119"), folder("117"), folder("resources")),
        f"{FOLDERS}/118": listing(folder("s")),
        f"{FOLDERS}/119": listing(folder("s"), folder("hr"), file("readme.txt")),
        f"{FOLDERS}/117": listing(folder("hr")),
        f"{FOLDERS}/118/s": listing(file("BILLSTATUS-118s9.xml", "02-Jan-2025 00:00")),
        f"{FOLDERS}/117/hr": listing(file("BILLSTATUS-117hr9.xml", "02-Jan-2023 00:00")),
        f"{FOLDERS}/119/s": listing(file("BILLSTATUS-119s7.xml", "10-Feb-2026 09:30")),
        f"{FOLDERS}/119/hr": listing(
            file("BILLSTATUS-119-hr.zip"),
            file("BILLSTATUS-119hr10.xml", "01-Jan-2026 00:00"),
            file("BILLSTATUS-119hr2.xml"),
        ),
    }
    return standard | {FOLDERS + path.replace("_", "/"): data for path, data in more.items()}


def keys(publisher: Publisher, state: SourceState) -> list[str]:
    return [task.key for task in tasks(discover(source, publisher, state))]


def mark(publisher: Publisher, state: SourceState) -> str | None:
    found = discover(source, publisher, state)
    marks = [item.last_seen_key for item in found if isinstance(item, Watermark)]
    assert marks == [] or found[-1] == Watermark(last_seen_key=marks[0])
    return marks[0] if marks else None


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


# Backfill ---------------------------------------------------------------------------------


def test_a_backfill_without_a_range_takes_this_congress_and_the_one_before() -> None:
    state = SourceState(now=NOW, backfill=True)
    publisher = Publisher(answers())
    assert keys(publisher, state) == [
        "bill:118-s-9",
        "bill:119-hr-2",
        "bill:119-hr-10",
        "bill:119-s-7",
    ]
    assert FEED not in publisher.asked
    assert f"{FOLDERS}/117/hr" not in publisher.asked


def test_a_bill_is_fetched_from_the_bulk_folder_while_its_entry_is_the_same() -> None:
    state = SourceState(now=NOW, backfill=True, options={"congresses": ["119"]})
    [first, *_] = tasks(discover(source, Publisher(answers()), state))
    [part] = first.parts
    assert part.url == f"{SITE}/bulkdata/BILLSTATUS/119/hr/BILLSTATUS-119hr2.xml"
    assert (part.name, part.path) == ("status", "status/119/hr/BILLSTATUS-119hr2.xml")
    again = tasks(discover(source, Publisher(answers()), state))[0]
    assert again.fingerprint == first.fingerprint
    for changed in (file("BILLSTATUS-119hr2.xml", size=4001), file("BILLSTATUS-119hr2.xml", "")):
        publisher = Publisher(answers(_119_hr=listing(changed)))
        assert tasks(discover(source, publisher, state))[0].fingerprint != first.fingerprint


def test_congresses_are_taken_exactly() -> None:
    state = SourceState(now=NOW, backfill=True, options={"congresses": [117]})
    assert keys(Publisher(answers()), state) == ["bill:117-hr-9"]
    assert mark(Publisher(answers()), state) is None
    missing = SourceState(now=NOW, backfill=True, options={"congresses": [107]})
    with pytest.raises(SuspiciousYieldError, match="from 117 to 119"):
        keys(Publisher(answers()), missing)
    wrong = SourceState(now=NOW, backfill=True, options={"congresses": ["last"]})
    with pytest.raises(UsageError, match="119"):
        keys(Publisher(answers()), wrong)


def test_days_choose_congresses_and_files_written_since() -> None:
    state = SourceState(now=NOW, backfill=True, since=date(2022, 1, 1), until=date(2023, 1, 2))
    assert keys(Publisher(answers()), state) == ["bill:117-hr-9"]
    state = SourceState(now=NOW, backfill=True, since=date(2026, 2, 1))
    assert keys(Publisher(answers()), state) == ["bill:119-hr-2", "bill:119-s-7"]


def test_a_backfill_of_this_congress_moves_the_watermark() -> None:
    state = SourceState(now=NOW, backfill=True)
    assert mark(Publisher(answers()), state) == "2026-03-02T10:00:00+00:00"


# Increments -------------------------------------------------------------------------------


def test_the_first_run_takes_thirty_days_of_changes() -> None:
    state = SourceState(now=NOW)
    assert keys(Publisher(answers()), state) == ["bill:119-hr-2", "bill:119-s-7"]
    assert mark(Publisher(answers()), state) == "2026-03-02T10:00:00+00:00"


def test_a_feed_that_reaches_back_names_the_folders_to_ask() -> None:
    state = SourceState(now=NOW, last_seen_key="2026-03-02T10:30:00+00:00")
    publisher = Publisher(answers())
    assert keys(publisher, state) == ["bill:119-hr-2"]
    assert publisher.asked == [FEED, f"{FOLDERS}/119/hr"]


def test_a_feed_that_does_not_reach_back_makes_all_folders_asked() -> None:
    state = SourceState(now=NOW, last_seen_key="2026-02-10T12:00:00+00:00")
    publisher = Publisher(answers())
    assert keys(publisher, state) == ["bill:119-hr-2", "bill:119-s-7"]
    assert f"{FOLDERS}/118/s" in publisher.asked
    assert f"{FOLDERS}/117/hr" not in publisher.asked


def test_a_former_congress_does_not_turn_the_watermark_back() -> None:
    former = feed(("BILLSTATUS-118s9.xml", "Mon, 02 Mar 2026 09:00:00 GMT"))
    state = SourceState(now=NOW, last_seen_key="2026-03-02T10:00:00+00:00")
    assert mark(Publisher({**answers(), FEED: former}), state) == "2026-03-02T10:00:00+00:00"


def test_a_new_congress_begins_on_the_third_of_january() -> None:
    for day, asked in ((2, "118"), (3, "119")):
        state = SourceState(now=datetime(2025, 1, day, 18, tzinfo=UTC), backfill=True)
        publisher = Publisher(answers())
        keys(publisher, state)
        congresses = {url.split("/")[6] for url in publisher.asked if url.count("/") > 5}
        assert max(congresses) == asked


def test_a_file_without_a_time_may_always_have_changed() -> None:
    untimed = file("BILLSTATUS-119hr2.xml", "soon")
    publisher = Publisher(answers(_119_hr=listing(untimed)))
    state = SourceState(now=NOW, last_seen_key="2026-03-02T10:30:00+00:00")
    assert keys(publisher, state) == ["bill:119-hr-2"]


@pytest.mark.parametrize(
    ("spoiled", "error", "cause"),
    [
        ({"_119_hr": listing()}, SuspiciousYieldError, "no bill"),
        ({"_119_hr": listing(file("BILLSTATUS-119-hr.zip"))}, SuspiciousYieldError, "no bill"),
        (
            {"_119_hr": listing(file("BILLSTATUS-119hr2.xml"), file("BILLSTATUS-119hr2.xml"))},
            SuspiciousYieldError,
            "twice",
        ),
        ({"_119_hr": listing(file("BILLSTATUS-119s2.xml"))}, WrongContentError, "119/hr lists"),
        ({"_119_hr": b"<!DOCTYPE html><html>"}, WrongContentError, "HTML"),
        ({"_119_hr": b'{"message": "busy"}'}, WrongContentError, "not a listing"),
        ({"_119": listing(folder("x"))}, SuspiciousYieldError, "no type"),
        ({"": listing(folder("resources"))}, SuspiciousYieldError, "no Congress"),
        ({"_119_hr": NotFoundError("gone")}, NotFoundError, "gone"),
    ],
)
def test_a_list_that_cannot_be_true_is_an_error(
    spoiled: dict[str, bytes | Exception], error: type[Exception], cause: str
) -> None:
    state = SourceState(now=NOW, backfill=True, options={"congresses": [119]})
    with pytest.raises(error, match=cause):
        discover(source, Publisher(answers(**spoiled)), state)


@pytest.mark.parametrize(
    ("data", "error"),
    [(feed(), SuspiciousYieldError), (b"<!DOCTYPE html><html></html>", WrongContentError)],
)
def test_a_feed_without_files_is_an_error(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        keys(Publisher({**answers(), FEED: data}), SourceState(now=NOW))


# The audit --------------------------------------------------------------------------------


def expected(publisher: Publisher, since: date | None, until: date | None) -> list[Expected]:
    async def collect() -> list[Expected]:
        return [item async for item in source.enumerate(publisher, since, until)]

    return asyncio.run(collect())


def sitemap(root: str, item: str, *addresses: str) -> bytes:
    inside = "".join(f"<{item}><loc>{address}</loc></{item}>" for address in addresses)
    return f'<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inside}</{root}>'.encode()


def maps() -> dict[str, bytes | Exception]:
    names = [f"{SITE}/sitemap/bulkdata/BILLSTATUS/{name}/sitemap.xml" for name in ("118s", "119hr")]
    foreign = "https://mirror.example/BILLSTATUS/119s/sitemap.xml"
    bulk = f"{SITE}/bulkdata/BILLSTATUS"
    return {
        SITEMAPS: sitemap("sitemapindex", "sitemap", *names, foreign),
        names[0]: sitemap("urlset", "url", f"{bulk}/118/s/BILLSTATUS-118s9.xml"),
        names[1]: sitemap(
            "urlset",
            "url",
            f"{bulk}/119/hr/BILLSTATUS-119hr2.xml",
            f"{bulk}/119/hr/BILLSTATUS-119hr10.xml",
        ),
    }


def test_the_audit_counts_by_sitemaps() -> None:
    assert expected(Publisher(maps()), None, None) == [
        Expected(
            scope="Congress 119, hr", document_ids=frozenset({"bill:119-hr-2", "bill:119-hr-10"})
        )
    ]
    both = expected(Publisher(maps()), date(2023, 5, 1), None)
    assert [one.scope for one in both] == ["Congress 118, s", "Congress 119, hr"]
    past = expected(Publisher(maps()), None, date(2024, 1, 1))
    assert [one.scope for one in past] == ["Congress 118, s"]


def test_an_audit_without_names_is_an_error() -> None:
    nothing = {SITEMAPS: sitemap("sitemapindex", "sitemap")}
    with pytest.raises(SuspiciousYieldError, match="no folder"):
        expected(Publisher(nothing), None, None)
    address = f"{SITE}/sitemap/bulkdata/BILLSTATUS/119hr/sitemap.xml"
    with pytest.raises(WrongContentError, match="no bill"):
        expected(Publisher({**maps(), address: sitemap("urlset", "url")}), None, None)


# The demo ---------------------------------------------------------------------------------


def bundled(url: str) -> bytes:
    path = DATA / url.removeprefix("https://")
    return (path / "index.json" if path.is_dir() else path).read_bytes()


class Bundled(dict[str, bytes]):
    def get(self, url: str, default: Any = None) -> Any:
        try:
            return bundled(url)
        except FileNotFoundError:
            return default


def parsed(task: FetchTask) -> list[ParsedRecord]:
    parts = [
        RawPart(name=part.name, archived=archived(part.url, data), data=data)
        for part in task.parts
        if (data := bundled(part.url))
    ]
    found = list(source.parse(Raw(task=task, parts=tuple(parts))))
    further = [record for item in found if isinstance(item, FetchTask) for record in parsed(item)]
    return [item for item in found if isinstance(item, ParsedRecord)] + further


@pytest.mark.parametrize("backfill", [True, False])
def test_the_bundled_upstream_holds_bills_and_their_texts(*, backfill: bool) -> None:
    state = SourceState(now=datetime(2026, 3, 1, tzinfo=UTC), backfill=backfill)
    listed = tasks(discover(source, Publisher(Bundled()), state))
    records = [record for task in listed for record in parsed(task)]
    assert sorted(record.key for record in records) == [
        "bill:119-hjres-41",
        "bill:119-hjres-41/ih",
        "bill:119-hr-2101",
        "bill:119-hr-2101/ih",
        "bill:119-hr-2101/rh",
        "bill:119-hr-2102",
        "bill:119-hr-2102/enr",
        "bill:119-hr-2102/ih",
        "bill:119-s-880",
        "bill:119-s-880/es",
        "bill:119-s-880/is",
    ]
    assert all(record.document and record.document.citation_string for record in records)


def test_the_bundled_sitemaps_agree_with_the_listings() -> None:
    named = {
        bill for one in expected(Publisher(Bundled()), None, None) for bill in one.document_ids
    }
    state = SourceState(now=datetime(2026, 3, 1, tzinfo=UTC), backfill=True)
    assert named == set(keys(Publisher(Bundled()), state))
