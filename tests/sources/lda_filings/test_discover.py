from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.sources.publishing import NOW, archived

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import Discovery, FetchTask, Listing, SourceState, Watermark
from fonds.sources.base import Auditable, ListingResponse, Source
from fonds.sources.lda_filings import source

WEEK = SourceState(now=NOW, backfill=True, since=date(2026, 2, 23), until=date(2026, 3, 1))


def entry(number: int, posted: str) -> dict[str, Any]:
    return {
        "filing_uuid": f"{number:08}-0000-4000-8000-000000000000",
        "dt_posted": f"{posted}T12:00:00-05:00",
        "lobbying_activities": [],
    }


def filed(number: int, day: str) -> list[dict[str, Any]]:
    return [entry(index, day) for index in range(number)]


@dataclass
class Upstream:
    """The list of filings, its `before` a moment; `spoil` may change an answer."""

    entries: list[dict[str, Any]]
    spoil: Callable[[int, dict[str, Any]], Any] | None = None
    asked: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        self.asked.append(url)
        self.paths.append(path)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        number = int(query["page"])
        answer = self._page(query, number)
        spoiled = answer if self.spoil is None else self.spoil(number, answer)
        data = spoiled if isinstance(spoiled, bytes) else json.dumps(spoiled).encode()
        return ListingResponse(data=data, archived=archived(url, data), changed=True)

    def _page(self, query: dict[str, str], number: int) -> dict[str, Any]:
        assert (query["ordering"], query["page_size"]) == ("dt_posted", "25")
        first, before = query["filing_dt_posted_after"], query["filing_dt_posted_before"]
        found = [item for item in self.entries if first <= item["dt_posted"] <= before]
        return {
            "count": len(found),
            "next": "https://elsewhere.example/?page=2",
            "previous": None,
            "results": found[(number - 1) * 25 : number * 25],
        }


def discover_until_error(
    upstream: Upstream, state: SourceState
) -> tuple[list[Discovery], Exception | None]:
    found: list[Discovery] = []

    async def collect() -> None:
        async for item in source.discover(state, upstream):
            found.append(item)  # noqa: PERF401 — what comes before an error counts

    try:
        asyncio.run(collect())
    except SuspiciousYieldError as error:
        return found, error
    return found, None


def discover(upstream: Upstream, state: SourceState) -> list[Discovery]:
    found, error = discover_until_error(upstream, state)
    if error is not None:
        raise error
    return found


def tasks(found: list[Discovery]) -> list[FetchTask]:
    return [item for item in found if isinstance(item, FetchTask)]


def watermarks(found: list[Discovery]) -> list[str]:
    return [item.last_seen_key for item in found if isinstance(item, Watermark)]


def windows(upstream: Upstream) -> list[tuple[str, str]]:
    asked = [parse_qs(urlsplit(url).query) for url in upstream.asked]
    return [
        (query["filing_dt_posted_after"][0], query["filing_dt_posted_before"][0])
        for query in asked
        if query["page"] == ["1"]
    ]


def test_it_is_a_source_without_a_second_way_to_count() -> None:
    assert isinstance(source, Source)
    assert not isinstance(source, Auditable)


def test_a_list_entry_is_all_that_is_needed() -> None:
    item = entry(1, "2026-02-24")
    upstream = Upstream([item])
    [task] = tasks(discover(upstream, WEEK))
    assert (task.key, task.parts) == ("lda:00000001-0000-4000-8000-000000000000", ())
    assert (task.params, task.fingerprint) == ({"entry": item}, ids.json_sha256(item))
    assert task.origin is not None
    assert task.origin.url == upstream.asked[0]
    assert upstream.paths == ["lists/2026/2026-02-23_2026-03-01/1.json"]


def test_the_last_day_is_asked_for_whole() -> None:
    late = entry(1, "2026-03-01")
    upstream = Upstream([late])
    assert len(tasks(discover(upstream, WEEK))) == 1
    assert windows(upstream) == [("2026-02-23", "2026-03-02")]


def test_every_page_is_asked_for_at_the_publishers_own_address() -> None:
    upstream = Upstream(filed(60, "2026-02-24"))
    found = discover(upstream, WEEK)
    assert len(tasks(found)) == 60
    assert len(upstream.asked) == 3
    assert all(url.startswith("https://lda.gov/api/v1/filings/?") for url in upstream.asked)


def test_a_whole_week_is_a_listing_and_moves_the_watermark() -> None:
    found = discover(Upstream(filed(2, "2026-02-24")), WEEK)
    *_, listing, watermark = found
    keys = frozenset(task.key for task in tasks(found))
    assert listing == Listing(since=date(2026, 2, 23), until=date(2026, 3, 1), task_keys=keys)
    assert watermark == Watermark(last_seen_key="2026-03-01")


def test_a_filing_of_midnight_is_found_once_but_listed_twice() -> None:
    midnight = {**entry(1, "2026-02-23"), "dt_posted": "2026-02-23"}
    state = replace(WEEK, since=date(2026, 2, 16))
    found = discover(Upstream([midnight]), state)
    assert len(tasks(found)) == 1
    assert [len(item.task_keys) for item in found if isinstance(item, Listing)] == [1, 1]


def test_the_first_run_takes_a_week() -> None:
    upstream = Upstream(filed(1, "2026-03-04"))
    discover(upstream, SourceState(now=NOW))
    assert windows(upstream) == [("2026-02-25", "2026-03-04"), ("2026-03-04", "2026-03-05")]


def test_a_later_run_reaches_back_over_a_long_weekend() -> None:
    upstream = Upstream(filed(1, "2026-03-02"))
    found = discover(upstream, SourceState(now=NOW, last_seen_key="2026-03-03"))
    assert windows(upstream) == [("2026-02-28", "2026-03-05")]
    assert watermarks(found) == ["2026-03-04"]


def test_days_are_those_of_washington() -> None:
    upstream = Upstream(filed(1, "2026-03-04"))
    night = datetime(2026, 3, 5, 3, 0, tzinfo=UTC)
    discover(upstream, SourceState(now=night, last_seen_key="2026-03-04"))
    assert windows(upstream) == [("2026-03-01", "2026-03-05")]


def test_a_backfill_without_a_beginning_takes_the_current_year() -> None:
    upstream = Upstream(filed(1, "2026-01-02"))
    discover(upstream, SourceState(now=NOW, backfill=True))
    assert windows(upstream)[0] == ("2026-01-01", "2026-01-08")
    assert len(windows(upstream)) == 9


def test_misdated_filings_of_all_years_before_1999_are_one_window() -> None:
    upstream = Upstream([entry(1, "1905-06-24")])
    state = replace(WEEK, since=date(1900, 1, 1), until=date(1999, 1, 3))
    assert len(tasks(discover(upstream, state))) == 1
    assert windows(upstream) == [("1900-01-01", "1999-01-01"), ("1999-01-01", "1999-01-04")]


def test_an_older_backfill_does_not_turn_the_watermark_back() -> None:
    state = replace(WEEK, last_seen_key="2026-03-03")
    assert watermarks(discover(Upstream(filed(1, "2026-02-24")), state)) == ["2026-03-03"]


def test_filings_posted_while_today_is_read_are_taken_along() -> None:
    def before_the_last(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "count": 26} if number == 1 else answer

    upstream = Upstream(filed(27, "2026-02-24"), spoil=before_the_last)
    assert len(tasks(discover(upstream, WEEK))) == 27


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda _, answer: {**answer, "count": 61}, "counts 61 filings and holds 60"),
        (lambda n, answer: answer if n == 1 else {**answer, "count": 40}, "counts 40"),
        (lambda _, answer: {**answer, "results": filed(25, "2026-02-24")}, "repeats lda:"),
        (lambda _, answer: {**answer, "results": filed(25, "2019-02-24")}, "filter gone"),
    ],
)
def test_a_list_that_cannot_be_right_is_suspicious(
    spoil: Callable[[int, dict[str, Any]], Any], what: str
) -> None:
    with pytest.raises(SuspiciousYieldError, match=what):
        discover(Upstream(filed(60, "2026-02-24"), spoil=spoil), WEEK)


def test_a_spoiled_week_leaves_no_watermark_behind() -> None:
    upstream = Upstream(filed(2, "2026-02-24"), spoil=lambda _, answer: {**answer, "count": 3})
    found, error = discover_until_error(upstream, WEEK)
    assert isinstance(error, SuspiciousYieldError)
    assert len(tasks(found)) == len(found) == 2


def test_a_list_without_any_filing_is_suspicious_and_leaves_no_watermark() -> None:
    found, error = discover_until_error(Upstream([]), WEEK)
    assert isinstance(error, SuspiciousYieldError)
    assert watermarks(found) == []


@pytest.mark.parametrize(
    "answer",
    [b"<html>Maintenance</html>", b"[]", b'{"detail": "Invalid page."}', b'{"results": []}'],
)
def test_anything_but_a_list_is_wrong_content(answer: bytes) -> None:
    with pytest.raises(WrongContentError):
        discover(Upstream([], spoil=lambda _number, _answer: answer), WEEK)


def test_an_entry_without_a_uuid_is_malformed() -> None:
    item = {**entry(1, "2026-02-24"), "filing_uuid": None}
    with pytest.raises(MalformedError, match="UUID"):
        discover(Upstream([item]), WEEK)
