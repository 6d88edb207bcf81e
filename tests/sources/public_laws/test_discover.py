from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.publishing import (
    NOW,
    Publisher,
    discover,
    fetched,
    library_of,
    records_of,
    tasks,
)

from fonds.demo.bundle import DATA, bundled_sites
from fonds.errors import RefusedError, SuspiciousYieldError, UsageError, WrongContentError
from fonds.model import SourceState, Watermark
from fonds.runs.state import RunStatus
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.public_laws import source
from fonds.sources.registry import builtin_sources

SITE = "https://www.govinfo.gov/bulkdata"
FOLDERS = f"{SITE}/json/PLAW"
LAWS = "https://api.congress.gov/v3/law"
CURRENT = "https://api.congress.gov/v3/congress/current?format=json"
BACKFILL = SourceState(now=NOW, backfill=True)


def listing(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"files": entries}).encode()


def folder(name: str) -> dict[str, Any]:
    return {"name": name, "folder": True, "link": f"{FOLDERS}/{name}"}


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


def answers(**more: bytes | Exception) -> dict[str, bytes | Exception]:
    standard: dict[str, bytes | Exception] = {
        FOLDERS: listing(*map(folder, ("113", "118", "119", "resources"))),
        f"{FOLDERS}/113": listing(folder("public")),
        f"{FOLDERS}/118": listing(folder("public")),
        f"{FOLDERS}/119": listing(folder("public"), folder("private")),
        f"{FOLDERS}/113/public": listing(file("PLAW-113publ9.xml", "04-Oct-2018 00:00")),
        f"{FOLDERS}/118/public": listing(file("PLAW-118publ250.xml", "15-Jun-2025 04:29")),
        f"{FOLDERS}/119/private": listing(file("PLAW-119pvtl1.xml")),
        f"{FOLDERS}/119/public": listing(
            file("PLAW-119-public.zip"),
            file("PLAW-119publ10.xml", "01-Mar-2026 00:00"),
            file("PLAW-119publ2.xml", "01-Feb-2026 00:00"),
        ),
    }
    return standard | {FOLDERS + path.replace("_", "/"): data for path, data in more.items()}


def keys(publisher: Publisher, state: SourceState) -> list[str]:
    return [task.key for task in tasks(discover(source, publisher, state))]


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


# Discovery --------------------------------------------------------------------------------


@pytest.mark.parametrize("backfill", [False, True])
def test_without_a_range_it_is_this_congress_and_the_one_before(backfill: bool) -> None:  # noqa: FBT001 — a parameter of the test
    publisher = Publisher(answers())
    found = discover(source, publisher, SourceState(now=NOW, backfill=backfill))
    assert [task.key for task in tasks(found)] == [
        "plaw:118-250",
        "plaw:119-2",
        "plaw:119-10",
        "plaw:119-pvt-1",
    ]
    assert found[-1] == Watermark(last_seen_key="2026-03-02T10:00:00+00:00")
    assert f"{FOLDERS}/113" not in publisher.asked
    assert f"{FOLDERS}/118/private" not in publisher.asked


def test_a_law_is_fetched_from_its_folder_while_its_entry_is_the_same() -> None:
    first, *_, private = tasks(discover(source, Publisher(answers()), BACKFILL))
    assert [(task.parts[0].name, task.parts[0].url) for task in (first, private)] == [
        ("law", f"{SITE}/PLAW/118/public/PLAW-118publ250.xml"),
        ("law", f"{SITE}/PLAW/119/private/PLAW-119pvtl1.xml"),
    ]
    assert first.parts[0].path == "118/public/PLAW-118publ250.xml"
    again = tasks(discover(source, Publisher(answers()), BACKFILL))[0]
    assert again.fingerprint == first.fingerprint
    for other in (file("PLAW-118publ250.xml", size=1), file("PLAW-118publ250.xml", "")):
        publisher = Publisher(answers(_118_public=listing(other)))
        assert tasks(discover(source, publisher, BACKFILL))[0].fingerprint != first.fingerprint


def test_congresses_are_taken_exactly() -> None:
    state = SourceState(now=NOW, backfill=True, options={"congresses": ["113"]})
    assert keys(Publisher(answers()), state) == ["plaw:113-9"]
    missing = SourceState(now=NOW, backfill=True, options={"congresses": [112, 113]})
    with pytest.raises(SuspiciousYieldError, match="from 113 to 119"):
        keys(Publisher(answers()), missing)
    wrong = SourceState(now=NOW, backfill=True, options={"congresses": ["last"]})
    with pytest.raises(UsageError, match="119"):
        keys(Publisher(answers()), wrong)


def test_days_choose_congresses_and_files_written_since() -> None:
    until = SourceState(now=NOW, backfill=True, until=date(2014, 1, 1))
    assert keys(Publisher(answers()), until) == ["plaw:113-9"]
    since = SourceState(now=NOW, backfill=True, since=date(2026, 3, 1))
    assert keys(Publisher(answers()), since) == ["plaw:119-10", "plaw:119-pvt-1"]


def test_a_law_signed_in_the_first_days_of_a_congress_may_be_of_the_one_before() -> None:
    state = SourceState(now=NOW, backfill=True, since=date(2025, 1, 4))
    assert "plaw:118-250" in keys(Publisher(answers()), state)


def test_a_congress_that_has_just_begun_may_have_no_laws_yet() -> None:
    early = SourceState(now=datetime(2027, 1, 20, tzinfo=UTC))
    assert keys(Publisher(answers()), early) == ["plaw:119-2", "plaw:119-10", "plaw:119-pvt-1"]
    late = SourceState(now=datetime(2031, 1, 20, tzinfo=UTC))
    with pytest.raises(SuspiciousYieldError, match="no laws of Congress 121"):
        keys(Publisher(answers()), late)


def test_the_watermark_is_never_turned_back() -> None:
    state = SourceState(now=NOW, last_seen_key="2026-12-01T00:00:00+00:00")
    mark = discover(source, Publisher(answers()), state)[-1]
    assert mark == Watermark(last_seen_key="2026-12-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("path", "answer", "error", "cause"),
    [
        ("", listing(folder("resources")), SuspiciousYieldError, "no Congress"),
        ("", b"<html><body>Error</body></html>", WrongContentError, "HTML"),
        ("", b'{"error": 1}', WrongContentError, "not a listing"),
        ("_119", listing(), SuspiciousYieldError, "119 list no law"),
        ("_119_private", listing(file("PLAW-119publ1.xml")), WrongContentError, "119/private"),
        (
            "_119_public",
            listing(file("PLAW-118publ1.xml")),
            WrongContentError,
            "lists PLAW-118publ1.xml",
        ),
        (
            "_119_public",
            listing(file("PLAW-119publ1.xml"), file("PLAW-119publ1.xml")),
            SuspiciousYieldError,
            "twice",
        ),
    ],
)
def test_a_listing_that_cannot_be_right_is_an_error(
    path: str, answer: bytes, error: type[Exception], cause: str
) -> None:
    publisher = Publisher(answers(**{path: answer}))
    with pytest.raises(error, match=cause):
        keys(publisher, BACKFILL)


# The audit --------------------------------------------------------------------------------


def bill(number: int, law: str, kind: str = "Public Law") -> dict[str, Any]:
    return {"type": "HR", "number": str(number), "laws": [{"type": kind, "number": law}]}


def page(*bills: dict[str, Any], count: int | None = None) -> bytes:
    pagination = {"count": len(bills) if count is None else count}
    return json.dumps({"bills": bills, "pagination": pagination}).encode()


def expected(
    replies: dict[str, bytes | Exception], since: date | None = None, until: date | None = None
) -> list[Expected]:
    async def collect() -> list[Expected]:
        ask = Publisher({CURRENT: b'{"congress": {"number": 119}}'} | replies)
        return [item async for item in source.enumerate(ask, since, until)]

    return asyncio.run(collect())


def address(congress: int, offset: int = 0) -> str:
    return f"{LAWS}/{congress}/pub?format=json&limit=250&offset={offset}"


def test_the_audit_counts_the_laws_congress_gov_lists() -> None:
    replies: dict[str, bytes | Exception] = {
        address(119): page(*(bill(n, f"119-{n}") for n in range(250)), count=251),
        address(119, 250): page(bill(250, "119-250"), count=251),
    }
    [found] = expected(replies)
    assert found.scope == "Congress 119"
    assert found.document_ids == {f"plaw:119-{number}" for number in range(251)}


def test_days_choose_the_congresses_that_are_counted() -> None:
    replies: dict[str, bytes | Exception] = {
        address(congress): page(bill(1, f"{congress}-1")) for congress in (113, 114, 118, 119)
    }
    assert [item.scope for item in expected(replies, since=date(2024, 1, 1))] == [
        "Congress 118",
        "Congress 119",
    ]
    assert [item.scope for item in expected(replies, until=date(2016, 1, 1))] == [
        "Congress 113",
        "Congress 114",
    ]


def test_private_laws_are_not_counted() -> None:
    [found] = expected({address(119): page(bill(1, "119-1"), bill(2, "119-1", "Private Law"))})
    assert found.document_ids == {"plaw:119-1"}


def test_a_law_without_a_number_and_a_missing_key_are_errors() -> None:
    with pytest.raises(Exception, match="without a number"):
        expected({address(119): page({"type": "HR", "number": "5", "laws": []})})
    with pytest.raises(RefusedError, match="data_gov_key"):
        expected({address(119): RefusedError("403")})
    with pytest.raises(WrongContentError, match="which Congress sits"):
        expected({CURRENT: b"{}"})


# The bundled laws -------------------------------------------------------------------------


def bundled(url: str) -> bytes:
    path = DATA / url.partition("?")[0].removeprefix("https://")
    return (path / "index.json" if path.is_dir() else path).read_bytes()


def test_the_bundled_laws_are_found_read_and_audited() -> None:
    names = ("", "/118", "/119", "/118/public", "/119/public", "/119/private")
    publisher = Publisher({FOLDERS + name: bundled(FOLDERS + name) for name in names})
    found = tasks(discover(source, publisher, BACKFILL))
    records = [
        record
        for task in found
        for record in records_of(source, fetched(task, law=bundled(task.parts[0].url)))
    ]
    assert [record.key for record in records] == [task.key for task in found]
    bills = {record.key: record.payload["bill_ref"] for record in records}
    assert bills["plaw:119-21"] == "bill:119-hr-2102"
    urls = (CURRENT, address(118), address(119))
    counted = expected({url: bundled(url) for url in urls}, since=date(2024, 1, 1))
    listed = {name for item in counted for name in item.document_ids}
    assert listed == {record.key for record in records if record.table == "public_laws"} - {
        "plaw:119-pvt-1"
    }


def test_the_bundled_laws_are_loaded_and_found_unchanged(tmp_path: Path) -> None:
    assert source.info.depends_on[0] in builtin_sources()  # which also declares all tables
    with library_of(tmp_path, source, bundled_sites()) as library:
        report = library.run()
        assert report.status is RunStatus.SUCCESS
        assert "Young Harvest Workers Safety Act" in library.titles()
        again = library.run()
        assert (again.status, again.counts.inserted, again.counts.fetched) == (
            RunStatus.SUCCESS,
            0,
            0,
        )
