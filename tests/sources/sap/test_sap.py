from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import (
    NOW,
    Publisher,
    assert_rows_fit,
    discover,
    discover_until_error,
    fetched,
    loose,
    records_of,
    tasks,
    together,
)

from fonds.errors import (
    MalformedError,
    NotFoundError,
    ParseError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.model import FetchTask, Listing, SourceState, Watermark
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.sap import ARCHIVE, LIST, cite_sap, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
NEW = (FILES / "47-Trump.yaml").read_bytes()
OLD = (FILES / "43-Bush.yaml").read_bytes()
PAGE = (FILES / "whitehouse.html").read_bytes()
RUN = SourceState(now=NOW)
BACKFILL = SourceState(now=NOW, backfill=True)
PRESIDENTS = (
    "40-Reagan",
    "41-Bush",
    "42-Clinton",
    "43-Bush",
    "44-Obama",
    "45-Trump",
    "46-Biden",
    "47-Trump",
)


def file_address(president: str) -> str:
    return f"{ARCHIVE}/{president}.yaml"


def publisher(**more: bytes) -> Publisher:
    answers: dict[str, bytes | Exception] = {file_address(name): OLD for name in PRESIDENTS}
    answers |= {file_address("47-Trump"): NEW, LIST: PAGE}
    return Publisher(answers | {LIST if name == "list" else name: more[name] for name in more})


def found(state: SourceState = RUN) -> list[FetchTask]:
    return tasks(discover(source, publisher(), state))


def listings(state: SourceState) -> list[Listing]:
    return [item for item in discover(source, publisher(), state) if isinstance(item, Listing)]


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


@pytest.mark.parametrize("name", ["47-Trump.yaml", "43-Bush.yaml", "whitehouse.html"])
def test_records_are_as_reviewed(name: str) -> None:
    raw = loose((FILES / name).read_bytes(), name)
    assert_golden(json_lines(source.parse(raw)), GOLDEN / f"{name}.jsonl")


def test_each_statement_and_bill_is_a_document() -> None:
    records = records_of(source, loose(NEW))
    assert [record.payload["bill_ref"] for record in records] == [
        "bill:119-hr-2101",
        "bill:119-hr-2101",
        "bill:119-hjres-41",
        "bill:119-sjres-7",
        None,
    ]
    assert len({record.key for record in records}) == 5


def test_the_pdf_of_a_statement_is_the_body_of_each_of_its_bills() -> None:
    task = next(one for one in found() if "saps-2-1-25" in str(one.params))
    [part] = task.parts
    assert part.url == f"{ARCHIVE}/statements/47-Trump/119/2025-02-01_hjres41,sjres7.pdf"
    records = records_of(source, fetched(task, body=b"%PDF-1.4"))
    bodies = [record.document.body for record in records if record.document]
    assert [body and (body.format, body.normalized) for body in bodies] == [("pdf", None)] * 2


def test_a_statement_without_its_pdf_is_a_document_without_a_body() -> None:
    task = found()[1]
    assert all(part.optional for part in task.parts)
    [record] = records_of(source, fetched(task))
    assert record.document is not None
    assert record.document.body is None
    assert record.document.raw.url.startswith(ARCHIVE)


def test_a_page_in_place_of_a_pdf_is_named() -> None:
    with pytest.raises(WrongContentError, match="not a PDF"):
        records_of(source, fetched(found()[1], body=b"<html>Not found</html>"))


def test_statements_before_2009_have_nothing_to_fetch() -> None:
    [task] = [one for one in found() if "Tide Mill" in str(one.params)]
    assert task.parts == ()


def test_the_white_house_adds_only_what_the_archive_lacks() -> None:
    added = [task for task in found() if task.origin and task.origin.url == LIST]
    assert [task.params["statement"]["bills"] for task in added] == [["s880"], ["hres5", "hres6"]]
    assert [task.parts[0].url for task in added] == [
        "https://www.whitehouse.gov/wp-content/uploads/2026/02/SAP-S880.pdf",
        "https://www.whitehouse.gov/wp-content/uploads/2026/02/SAP-HRes5.pdf",
    ]


def test_the_archive_takes_a_statement_over_under_the_same_key() -> None:
    listed = next(task for task in found() if task.params["statement"]["bills"] == ["s880"])
    entry = (
        "- bills: [s880]\n  document_title: S. 880\n  congress: 119\n  date_issued: '2026-02-27'\n"
        "  file: statements/47-Trump/119/2026-02-27_s880.pdf\n"
        "  fetched_from_url: https://www.whitehouse.gov/wp-content/uploads/2026/02/SAP-S880.pdf\n"
    )
    later = publisher(**{file_address("47-Trump"): entry.encode() + NEW})
    again = tasks(discover(source, later, RUN))
    [same] = [task for task in again if task.key == listed.key]
    assert same.fingerprint != listed.fingerprint
    assert "archive" in same.parts[0].url


def test_a_pdf_on_another_host_is_not_asked_for() -> None:
    moved = PAGE.replace(b"https://www.whitehouse.gov/", b"https://elsewhere.example/")
    [task] = [
        one
        for one in tasks(discover(source, publisher(list=moved), RUN))
        if "s880" in one.params["statement"]["bills"]
    ]
    assert task.parts == ()


def test_a_usual_run_asks_for_the_two_newest_files_and_the_list() -> None:
    upstream = publisher()
    everything = discover(source, upstream, RUN)
    assert upstream.asked == [file_address("46-Biden"), file_address("47-Trump"), LIST]
    assert everything[-1] == Watermark(last_seen_key="2026-02-27")


@pytest.mark.parametrize(
    ("state", "presidents"),
    [
        (BACKFILL, ("46-Biden", "47-Trump")),
        (replace(BACKFILL, options={"congresses": [110]}), ("43-Bush",)),
        (replace(BACKFILL, options={"congresses": [115]}), ("44-Obama", "45-Trump")),
        (replace(BACKFILL, since=date(2017, 1, 21)), ("45-Trump", "46-Biden", "47-Trump")),
        (replace(BACKFILL, until=date(1990, 1, 1)), ("40-Reagan", "41-Bush")),
        (replace(BACKFILL, since=date(1981, 1, 1)), PRESIDENTS),
    ],
)
def test_a_backfill_asks_for_the_files_of_its_days(
    state: SourceState, presidents: tuple[str, ...]
) -> None:
    upstream = publisher()
    discover(source, upstream, state)
    assert upstream.asked == [*map(file_address, presidents), LIST]


def test_a_backfill_keeps_to_its_congresses_and_days() -> None:
    assert found(replace(BACKFILL, options={"congresses": [118]})) == []
    february = replace(BACKFILL, since=date(2026, 2, 1), until=date(2026, 2, 10))
    bills = [task.params["statement"]["bills"] for task in found(february)]
    assert bills == [["hr2101"], ["hr2101"], ["hres5", "hres6"]]


def test_a_file_is_all_there_is_between_its_first_and_last_day() -> None:
    old, new = listings(RUN)
    assert (new.since, new.until) == (date(2025, 1, 24), date(2026, 2, 10))
    assert old.since == old.until == date(2007, 1, 17)
    assert {task.key for task in found()} == new.task_keys


def test_a_part_of_a_file_is_no_full_list() -> None:
    assert listings(BACKFILL) == []
    clipped = listings(replace(BACKFILL, since=date(2026, 1, 1)))
    assert [(one.since, one.until) for one in clipped] == [(date(2026, 2, 10), date(2026, 2, 10))]


def test_without_the_white_houses_list_nothing_is_withdrawn() -> None:
    answers = {**publisher().answers, LIST: NotFoundError(LIST)}
    listed, error = discover_until_error(source, Publisher(answers), RUN)
    assert isinstance(error, NotFoundError)
    assert len(tasks(listed)) == len(listed) == 5


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"[]", SuspiciousYieldError),
        (b"<!DOCTYPE html><html>404</html>", WrongContentError),
        (b"404: Not Found", ParseError),
    ],
)
def test_a_broken_file_stops_the_run(answer: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        discover(source, publisher(**{file_address("47-Trump"): answer}), RUN)


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"%PDF-1.4", WrongContentError, "PDF of a statement"),
        (b'[{"model": "bills.statement", "pk": 1}]', WrongContentError, "keys model, pk"),
        (b"<html><body>Nothing</body></html>", WrongContentError, "lists no Statement"),
        (b"- document_title: T\n  date_issued: soon\n", MalformedError, "statement 1.*soon"),
        (b"- document_title: T\n", MalformedError, "date_issued"),
    ],
)
def test_a_loose_file_that_is_no_list_says_what_it_is(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        records_of(source, loose(data))


def test_a_loose_pdf_joins_its_statement() -> None:
    raw = together(**{"2026-02-10_hr2101.pdf": b"%PDF-1.4", "47-Trump.yaml": NEW})
    bodies = [record.document.body for record in records_of(source, raw) if record.document]
    assert [body is not None for body in bodies] == [True, False, False, False, False]


def test_the_audit_counts_what_the_white_house_lists() -> None:
    async def collect() -> list[Expected]:
        return [one async for one in source.enumerate(publisher(), None, None)]

    [expected] = asyncio.run(collect())
    records = records_of(source, loose(PAGE))
    assert expected.document_ids == {record.key for record in records}
    assert len(expected.document_ids) == 4
    # One of them is in the archive too, under the same id.
    archived = {record.key for record in records_of(source, loose(NEW))}
    assert len(expected.document_ids & archived) == 1


def test_every_row_fits_its_table() -> None:
    assert_rows_fit(source, records_of(source, loose(NEW)))


def test_citations_name_the_bill_or_else_the_title() -> None:
    day = date(2025, 1, 22)
    cited = cite_sap(bill="H.R. 1234", title="T", issued=day)
    assert cited == "Statement of Administration Policy on H.R. 1234 (Jan. 22, 2025)."
    cited = cite_sap(bill=None, title="On Rescission.", issued=None)
    assert cited == "Statement of Administration Policy, On Rescission."
    itself = "Statement of Administration Policy on Ponds"
    assert cite_sap(bill=None, title=itself, issued=day) == f"{itself} (Jan. 22, 2025)."
