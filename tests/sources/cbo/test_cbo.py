from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
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

from fonds.errors import NotFoundError, ParseError, SuspiciousYieldError, WrongContentError
from fonds.model import SourceState, Watermark
from fonds.sources.base import Source
from fonds.sources.cbo import FEED, cite_cbo, list_address, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
LIST = (FILES / "119congress-cost-estimates.xml").read_bytes()
RSS = (FILES / "publications.xml").read_bytes()
EMPTY = b'<?xml version="1.0"?>\n<response></response>'
CHALLENGE = b"<html><head><title>cbo.gov</title></head><body><script></script></body></html>"
RUN = SourceState(now=NOW)
BACKFILL = SourceState(now=NOW, backfill=True)


def publisher(**lists: bytes) -> Publisher:
    answers: dict[str, bytes | Exception] = {FEED: RSS, list_address(119): LIST}
    answers |= {list_address(int(name.strip("_"))): data for name, data in lists.items()}
    return Publisher(answers)


def keys(state: SourceState = RUN, upstream: Publisher | None = None) -> list[str]:
    return [task.key for task in tasks(discover(source, upstream or publisher(), state))]


def test_it_is_a_source() -> None:
    assert isinstance(source, Source)


@pytest.mark.parametrize("name", ["119congress-cost-estimates.xml", "publications.xml"])
def test_records_are_as_reviewed(name: str) -> None:
    raw = loose((FILES / name).read_bytes(), name)
    assert_golden(json_lines(source.parse(raw)), GOLDEN / f"{name}.jsonl")


def test_the_list_comes_first_and_the_feed_adds_what_it_lacks() -> None:
    assert keys() == [
        "cbo:61240",
        "cbo:61234",
        "cbo:61236",
        "cbo:61237",
        "cbo:61250",
        "cbo:61251",
    ]


def test_a_task_gives_the_same_record_as_the_loose_list() -> None:
    upstream = publisher()
    found = tasks(discover(source, upstream, RUN))
    one = next(task for task in found if task.key == "cbo:61236")
    assert one.parts == ()
    [record] = records_of(source, fetched(one))
    assert record.payload["description"] == "As passed by the Senate & sent to the House"
    assert record.document is not None
    assert record.document.raw.url == list_address(119)


def test_the_title_wins_over_a_wrong_bill_number_and_both_are_kept() -> None:
    row = next(
        record.payload
        for record in records_of(source, loose(LIST, "119congress"))
        if record.key == "cbo:61236"
    )
    assert row["bill_ref"] == "bill:119-s-880"
    assert row["title_bill"] == "S. 880"
    assert row["bill_number"] == "H.R. 880"


def test_a_silent_title_leaves_the_bill_number_its_word() -> None:
    record = records_of(source, loose(LIST, "119congress"))[3]
    assert record.payload["bill_ref"] == "bill:119-hjres-41"
    assert record.document is not None
    cited = "Cong. Budget Off., Cost Estimate: H.R.J. Res. 41, Joint Resolution on Tides."
    assert record.document.citation_string == cited


def test_a_list_without_a_name_takes_the_congress_of_the_date() -> None:
    records = records_of(source, loose(LIST, "file"))
    assert [record.payload["congress"] for record in records] == [119, 119, 119, None]
    assert records[3].payload["bill_ref"] is None


def test_order_within_the_list_does_not_change_what_is_found() -> None:
    items = LIST.split(b"<item ")
    turned = b"<item ".join(
        [items[0], *reversed([item.replace(b"</response>", b"") for item in items[1:]])]
    )
    first = {task.key: task.fingerprint for task in tasks(discover(source, publisher(), RUN))}
    again = publisher(_119=turned.strip() + b"</response>")
    second = {task.key: task.fingerprint for task in tasks(discover(source, again, RUN))}
    assert first == second


def test_a_publication_described_twice_is_one() -> None:
    twice = LIST.replace(b"</response>", LIST[LIST.index(b'<item key="1"') :])
    assert keys(upstream=publisher(_119=twice)) == keys()


def test_in_its_first_weeks_a_congress_still_gets_estimates_of_the_one_before() -> None:
    january = replace(RUN, now=datetime(2027, 1, 20, tzinfo=UTC))
    upstream = publisher()
    found, _ = discover_until_error(source, upstream, january)
    assert upstream.asked[:2] == [list_address(119), list_address(120)]
    assert "cbo:61234" in [task.key for task in tasks(found)]


@pytest.mark.parametrize(
    ("state", "congresses"),
    [
        (BACKFILL, [118, 119]),
        (replace(BACKFILL, options={"congresses": [117]}), [117]),
        (replace(BACKFILL, since=date(2024, 12, 1)), [118, 119]),
        (replace(BACKFILL, since=date(2025, 1, 10), until=date(2025, 12, 1)), [118, 119]),
        (replace(BACKFILL, until=date(2008, 1, 1)), [105, 106, 107, 108, 109, 110]),
    ],
)
def test_a_backfill_reads_the_lists_of_its_congresses(
    state: SourceState, congresses: list[int]
) -> None:
    upstream = publisher(_118=LIST, _117=LIST, _110=LIST)
    discover(source, upstream, state)
    assert upstream.asked == [*map(list_address, congresses), FEED]


def test_a_backfill_keeps_to_its_days() -> None:
    march = replace(BACKFILL, since=date(2025, 3, 1), until=date(2025, 3, 20))
    # What has no date cannot be left out for its date.
    assert keys(march, publisher(_118=LIST.replace(b"6123", b"5123"))) == [
        "cbo:51234",
        "cbo:51237",
        "cbo:61234",
        "cbo:61237",
    ]


def test_a_missing_list_that_was_asked_for_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        keys(replace(BACKFILL, options={"congresses": [116]}))


@pytest.mark.parametrize(
    ("data", "error"), [(EMPTY, SuspiciousYieldError), (CHALLENGE, WrongContentError)]
)
def test_an_empty_or_walled_list_stops_the_run(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        keys(upstream=publisher(_119=data))


def test_a_feed_that_no_longer_reaches_back_is_reported_after_its_entries() -> None:
    late = replace(RUN, last_seen_key="2025-12-01T00:00:00+00:00")
    found, error = discover_until_error(source, publisher(), late)
    assert len(tasks(found)) == 6
    assert isinstance(found[-1], Watermark)
    assert isinstance(error, SuspiciousYieldError)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"%PDF-1.7", "a PDF"),
        (CHALLENGE, "HTML page"),
        (b"<response><item key='0'><Title>T</Title></item></response>", "no link"),
        (b"<rss><channel><item><title>T</title></item></channel></rss>", "no publication"),
    ],
)
def test_a_loose_file_that_is_no_list_says_what_it_is(data: bytes, cause: str) -> None:
    with pytest.raises(ParseError, match=cause):
        records_of(source, loose(data))


def test_of_loose_files_together_the_list_has_the_last_word() -> None:
    raw = together(**{"publications.xml": RSS, "119congress-cost-estimates.xml": LIST})
    records = {record.key: record for record in records_of(source, raw)}
    assert len(records) == 6
    assert records["cbo:61236"].payload["bill_number"] == "H.R. 880"


def test_every_row_fits_its_table() -> None:
    assert_rows_fit(source, records_of(source, loose(LIST, "119congress")))


@pytest.mark.parametrize(
    ("title", "published", "estimate", "bill", "cited"),
    [
        ("Outlook", date(2025, 3, 9), False, None, "Outlook (Mar. 2025)."),
        ("Outlook.", None, False, "H.R. 1", "Outlook."),
        ("H.R. 1, A", date(2025, 5, 9), True, None, "Cost Estimate: H.R. 1, A (May 2025)."),
        ("A", date(2025, 9, 9), True, "H.R. 1", "Cost Estimate: H.R. 1, A (Sept. 2025)."),
    ],
)
def test_citations_name_the_estimate_and_its_bill(
    title: str, published: date | None, *, estimate: bool, bill: str | None, cited: str
) -> None:
    found = cite_cbo(title=title, published=published, estimate=estimate, bill=bill)
    assert found == f"Cong. Budget Off., {cited}"
