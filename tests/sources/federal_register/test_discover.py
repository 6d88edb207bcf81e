from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.sources.federal_register.upstream import FILES, NOW, Upstream, entry, numbered

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import Discovery, FetchTask, Listing, SourceState, Watermark
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.federal_register import source

WEEK = SourceState(now=NOW, backfill=True, since=date(2026, 2, 23), until=date(2026, 3, 1))


def discover(upstream: Upstream, state: SourceState) -> list[Discovery]:
    async def collect() -> list[Discovery]:
        return [item async for item in source.discover(state, upstream)]

    return asyncio.run(collect())


def expected(upstream: Upstream, since: date | None, until: date | None) -> list[Expected]:
    async def collect() -> list[Expected]:
        return [item async for item in source.enumerate(upstream, since, until)]

    return asyncio.run(collect())


def tasks(found: list[Discovery]) -> list[FetchTask]:
    return [item for item in found if isinstance(item, FetchTask)]


def listings(found: list[Discovery]) -> list[Listing]:
    return [item for item in found if isinstance(item, Listing)]


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


def test_a_document_is_described_by_the_list_and_fetched_as_text() -> None:
    address = "https://www.federalregister.gov/documents/full_text/xml/2026/02/24/2026-00001.xml"
    item = entry("2026-00001", "2026-02-24", full_text_xml_url=address)
    [task] = tasks(discover(Upstream([item]), WEEK))
    [part] = task.parts
    assert (part.name, part.url, part.path) == (
        "body",
        address,
        "bodies/raw/2026/02/2026-00001.xml",
    )
    assert not part.optional
    assert task.params == {"entry": item}
    assert task.fingerprint == ids.json_sha256(item)
    assert task.origin is not None


def test_a_document_without_text_has_no_parts() -> None:
    [task] = tasks(discover(Upstream([entry("2026-00001", "2026-02-24")]), WEEK))
    assert task.parts == ()


def test_texts_of_a_repeated_number_do_not_share_a_name() -> None:
    days = ("2000-01-14", "2000-01-18")
    items = [entry("00-111", day, full_text_xml_url="https://x.example/a.xml") for day in days]
    state = SourceState(now=NOW, backfill=True, since=date(2000, 1, 14), until=date(2000, 1, 18))
    found = tasks(discover(Upstream(items), state))
    assert [task.key for task in found] == ["fr:00-111@2000-01-14", "fr:00-111@2000-01-18"]
    assert [task.parts[0].path for task in found] == [
        "bodies/raw/2000/01/00-111.2000-01-14.xml",
        "bodies/raw/2000/01/00-111.2000-01-18.xml",
    ]


def test_a_mirror_without_details_is_asked_for_each_document() -> None:
    bare = {"document_number": "2026-00001", "publication_date": "2026-02-24", "title": "T"}
    [task] = tasks(discover(Upstream([bare]), WEEK))
    details, text = task.parts
    assert details.url == "https://www.federalregister.gov/api/v1/documents/2026-00001.json"
    assert details.path == "metadata/2026/02/2026-00001.json"
    assert text.url.endswith("/documents/full_text/xml/2026/02/24/2026-00001.xml")
    assert text.optional


def test_each_window_is_listed_in_full_and_moves_the_watermark() -> None:
    days = [date(2026, 2, 1) + timedelta(days=offset) for offset in range(28)]
    state = SourceState(now=NOW, backfill=True, since=days[0], until=days[-1])
    found = discover(Upstream(numbered(days, 2)), state)
    assert len(tasks(found)) == 56
    assert [(item.since, item.until) for item in listings(found)] == [
        (days[start], days[start + 6]) for start in range(0, 28, 7)
    ]
    assert frozenset().union(*(item.task_keys for item in listings(found))) == {
        task.key for task in tasks(found)
    }
    marks = [item.last_seen_key for item in found if isinstance(item, Watermark)]
    assert marks == [days[end].isoformat() for end in range(6, 28, 7)]


def test_the_first_run_takes_thirty_days_and_a_later_one_the_last_week_again() -> None:
    upstream = Upstream(numbered([date(2026, 3, 2)], 1))
    first = listings(discover(upstream, SourceState(now=NOW)))
    assert (first[0].since, first[-1].until) == (date(2026, 2, 2), date(2026, 3, 4))
    later = SourceState(now=NOW, last_seen_key="2026-03-03")
    assert listings(discover(upstream, later))[0].since == date(2026, 2, 24)


def test_today_is_today_in_new_york() -> None:
    night = datetime(2026, 3, 5, 3, 0, tzinfo=UTC)
    upstream = Upstream(numbered([date(2026, 3, 2)], 1))
    found = discover(upstream, SourceState(now=night, last_seen_key="2026-03-04"))
    assert listings(found)[-1].until == date(2026, 3, 4)


def test_an_empty_week_is_suspicious_and_moves_no_watermark() -> None:
    found: list[Discovery] = []

    async def collect() -> None:
        state = SourceState(now=NOW, last_seen_key="2026-03-03")
        async for item in source.discover(state, Upstream([])):
            found.append(item)  # noqa: PERF401 — what came before the error is the point

    with pytest.raises(SuspiciousYieldError, match="no document was published"):
        asyncio.run(collect())
    assert not any(isinstance(item, Watermark) for item in found)


def test_a_backfill_without_days_begins_in_1994() -> None:
    upstream = Upstream(numbered([date(2026, 3, 2)], 1))
    found = discover(upstream, SourceState(now=NOW, backfill=True))
    assert listings(found)[0].since == date(1994, 1, 1)


def test_a_backfill_does_not_turn_the_watermark_back() -> None:
    found = discover(Upstream([]), replace(WEEK, last_seen_key="2026-03-03"))
    assert found[-1] == Watermark(last_seen_key="2026-03-03")


def test_a_window_at_the_cap_is_split_until_it_fits() -> None:
    days = [date(2026, 2, 23) + timedelta(days=offset) for offset in range(7)]
    found = discover(Upstream(numbered(days, 2600)), WEEK)
    assert len(tasks(found)) == 18_200
    assert [(item.since.day, item.until.day) for item in listings(found)] == [
        (23, 24),
        (25, 26),
        (27, 1),
    ]


def test_a_single_day_at_the_cap_is_suspicious() -> None:
    upstream = Upstream(numbered([date(2026, 2, 24)], 10_001))
    with pytest.raises(SuspiciousYieldError, match="2026-02-24 is cut off"):
        discover(upstream, WEEK)


def test_pages_that_cannot_be_had_split_the_window() -> None:
    def two_pages_at_most(_number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"total_pages": min(answer["total_pages"], 2)}

    days = [date(2026, 2, 23) + timedelta(days=offset) for offset in range(7)]
    found = discover(Upstream(numbered(days, 700), spoil=two_pages_at_most), WEEK)
    assert len(tasks(found)) == 4900


def test_a_mirror_with_smaller_pages_is_read_to_the_end() -> None:
    upstream = Upstream(numbered([date(2026, 2, 24)], 45), per_page=20)
    assert len(tasks(discover(upstream, WEEK))) == 45
    assert [path for path in upstream.paths if path.startswith("lists/")] == [
        f"lists/2026-02-23_2026-03-01/{page}.json" for page in (1, 2, 3)
    ]


def test_no_address_of_the_answer_is_followed() -> None:
    upstream = Upstream(numbered([date(2026, 2, 24)], 45), per_page=20)
    discover(upstream, WEEK)
    assert all(url.startswith("https://www.federalregister.gov/") for url in upstream.asked)


def test_a_repeated_page_is_suspicious_and_named() -> None:
    upstream = Upstream(numbered([date(2026, 2, 24)], 45), per_page=20)
    first: list[dict[str, Any]] = []

    def repeat(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        if number == 1:
            first.append(answer)
        return first[0] if number == 2 else answer

    upstream.spoil = repeat
    with pytest.raises(SuspiciousYieldError, match="page 2"):
        discover(upstream, WEEK)


@pytest.mark.parametrize("count", [2, 4])
def test_a_count_that_lies_is_suspicious(count: int) -> None:
    upstream = Upstream(numbered([date(2026, 2, 24)], 3))
    upstream.spoil = lambda _number, answer: answer | {"count": count}
    with pytest.raises(SuspiciousYieldError, match=f"counts {count} documents and holds 3"):
        discover(upstream, WEEK)


def test_what_was_listed_before_an_error_stays_listed() -> None:
    days = [date(2026, 2, 16), date(2026, 2, 24)]
    upstream = Upstream(numbered(days, 3))
    upstream.spoil = lambda _number, answer: (
        b"<html>Sorry</html>" if "2026-05500000" in str(answer) else answer
    )
    found: list[Discovery] = []

    async def collect() -> None:
        state = replace(WEEK, since=date(2026, 2, 16))
        async for item in source.discover(state, upstream):
            found.append(item)  # noqa: PERF401 — what came before the error is the point

    with pytest.raises(WrongContentError, match="HTML"):
        asyncio.run(collect())
    assert len(tasks(found)) == 3
    assert found[-1] == Watermark(last_seen_key="2026-02-22")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"<!DOCTYPE html><p>Back soon</p>", WrongContentError),
        (b'{"results": []}', WrongContentError),
        (b"[]", WrongContentError),
        (b'{"count": 1, "res', MalformedError),
        (b"", MalformedError),
    ],
)
def test_an_answer_that_is_no_list_is_an_error(answer: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        discover(Upstream([], spoil=lambda _number, _answer: answer), WEEK)


def test_the_audit_reads_the_contents_of_each_issue() -> None:
    upstream = Upstream([], issues={"2026-03-04.json": (FILES / "contents.json").read_bytes()})
    assert expected(upstream, date(2026, 2, 27), date(2026, 3, 8)) == [
        Expected(
            scope="2026-03-04",
            document_ids=frozenset(
                {"fr:2026-08558", "fr:2026-08001", "fr:2026-08002", "fr:2026-08970"}
            ),
        )
    ]
    assert len(upstream.asked) == 6, "weekends have no issue"


def test_the_audit_takes_today_from_the_current_issue() -> None:
    contents = (FILES / "contents.json").read_bytes()
    upstream = Upstream([], issues={"current.json": contents, "2026-03-04.json": contents})
    assert [item.scope for item in expected(upstream, None, None)] == ["2026-03-04"]
    assert upstream.paths[1] == "issues/2026/02/2026-02-02.json"


def test_contents_that_name_nothing_are_an_error() -> None:
    upstream = Upstream([], issues={"2026-03-04.json": b'{"agencies": []}'})
    with pytest.raises(WrongContentError, match="2026-03-04"):
        expected(upstream, date(2026, 3, 4), date(2026, 3, 4))
