from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import (
    NOW,
    Publisher,
    assert_rows_fit,
    discover,
    fetched,
    loose,
    records_of,
    tasks,
)

from fonds.errors import MalformedError, ParseError, SuspiciousYieldError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, SourceState
from fonds.normalize.registry import get_normalizer
from fonds.sources.base import Source
from fonds.sources.member_statements import MEMBERS, cite_statement, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
LIST = (FILES / "legislators-current.yaml").read_bytes()
HOUSE = (FILES / "house.xml").read_bytes()
SENATE = (FILES / "senate.xml").read_bytes()
PAGE = (FILES / "page.html").read_bytes()
GONE = b"<!DOCTYPE html><html><body>Page not found</body></html>"


def feeds(members: bytes = LIST) -> dict[str, FetchTask]:
    publisher = Publisher({MEMBERS: members})
    found = tasks(discover(source, publisher, SourceState(now=NOW)))
    return {task.key: task for task in found}


def asked_by(bioguide: str, feed: bytes) -> list[FetchTask]:
    parsed = source.parse(fetched(feeds()[f"feed/{bioguide}"], feed=feed))
    return [item for item in parsed if isinstance(item, FetchTask)]


def feed_row(bioguide: str, **parts: bytes) -> ParsedRecord:
    parsed = source.parse(fetched(feeds()[f"feed/{bioguide}"], **parts))
    [row] = [item for item in parsed if isinstance(item, ParsedRecord)]
    return row


def harbor_act() -> FetchTask:
    return asked_by("P901004", HOUSE)[-1]


def test_it_is_a_source() -> None:
    assert isinstance(source, Source)


def test_the_row_of_a_feed_is_as_reviewed() -> None:
    assert_golden(json_lines([feed_row("P901004", feed=HOUSE)]), GOLDEN / "house.xml.jsonl")


def test_a_statement_with_its_page_is_as_reviewed() -> None:
    raw = fetched(harbor_act(), page=PAGE)
    # Which version of the normalizer there is, is not this test's business.
    found = json_lines(source.parse(raw)).replace(
        get_normalizer("html_article_v1").label, "html_article_v1"
    )
    assert_golden(found, GOLDEN / "statement.jsonl")


def test_a_loose_feed_is_as_reviewed() -> None:
    assert_golden(json_lines(source.parse(loose(SENATE))), GOLDEN / "senate.xml.jsonl")


def test_members_feeds_are_those_of_their_last_term_or_the_houses_custom() -> None:
    assert {key: task.parts[0].url for key, task in feeds().items()} == {
        "feed/P901004": "https://pettibone.house.gov/index.php?format=feed&type=rss",
        "feed/H901001": "https://www.harrowgate.senate.gov/rss/feeds/?type=press",
        "feed/L901007": "https://larrabal.house.gov/rss.xml",
    }


def test_only_a_guessed_feed_may_be_missing() -> None:
    assert [task.parts[0].optional for task in feeds().values()] == [False, False, True]
    for parts in ({}, {"feed": GONE}):
        row = feed_row("L901007", **parts)
        assert row.payload["title"] is None
        assert row.payload["items"] is None
        assert row.payload["member"] == "Res. Comm'r Inocencia Larrabal"


def test_a_page_in_place_of_a_known_feed_is_that_feeds_failure() -> None:
    with pytest.raises(WrongContentError, match="HTML page"):
        feed_row("P901004", feed=GONE)


def test_a_feed_gives_its_own_row_and_a_task_for_each_entry() -> None:
    assert feed_row("P901004", feed=HOUSE).payload["items"] == 3
    [news, act] = asked_by("P901004", HOUSE)
    assert news.params["item"]["title"] == "In the News: Harbors Silt Up"
    assert act.parts[0].url == "http://pettibone.house.gov/media/press-releases/harbor-act"
    assert act.parts[0].optional
    assert act.parts[0].refusable


def test_pages_of_other_sites_are_not_fetched() -> None:
    [news, _] = asked_by("P901004", HOUSE)
    assert news.parts == ()
    [record] = records_of(source, fetched(news))
    assert record.document is not None
    assert record.document.source_url == "https://herald.example/harbors"
    assert record.document.body is None


def test_a_statement_keeps_its_id_when_the_feed_changes_its_scheme() -> None:
    secure = asked_by("P901004", HOUSE.replace(b"http://pettibone", b"https://pettibone"))
    assert secure[-1].key == harbor_act().key


def test_two_members_may_publish_one_page() -> None:
    [other] = [
        task for task in asked_by("H901001", HOUSE) if "harbor-act" in task.params["item"]["link"]
    ]
    assert other.key != harbor_act().key


def test_a_changed_entry_has_another_fingerprint() -> None:
    changed = asked_by("P901004", HOUSE.replace(b"Introduce Harbor", b"Reintroduce Harbor"))
    assert changed[-1].key == harbor_act().key
    assert changed[-1].fingerprint != harbor_act().fingerprint
    assert changed[0].fingerprint == asked_by("P901004", HOUSE)[0].fingerprint


def test_summer_time_called_est_is_taken_by_the_wall() -> None:
    [record] = records_of(source, loose(SENATE))
    assert record.document is not None
    assert record.document.published_at == "2026-07-02"


@pytest.mark.parametrize(
    ("page", "format_"),
    [
        (b"%PDF-1.7", "pdf"),
        (b"<html><body><script>draw()</script></body></html>", None),
        (PAGE, "html"),
    ],
)
def test_a_page_may_be_a_pdf_or_hold_no_text(page: bytes, format_: str | None) -> None:
    [record] = records_of(source, fetched(harbor_act(), page=page))
    assert record.document is not None
    body = record.document.body
    assert (body.format if body else None) == format_


def test_a_feed_without_any_address_is_no_feed() -> None:
    with pytest.raises(MalformedError, match="none of the 1 entries"):
        feed_row("P901004", feed=b"<rss><channel><item><title>T</title></item></channel></rss>")


def test_an_empty_feed_is_a_feed() -> None:
    row = feed_row("P901004", feed=b"<rss><channel><title>T</title></channel></rss>")
    assert row.payload["items"] == 0


@pytest.mark.parametrize(
    ("members", "error"),
    [
        (b"- id: {bioguide: X}\n  terms: []\n", SuspiciousYieldError),
        (GONE, WrongContentError),
        (LIST.replace(b"bioguide: P901004", b"thomas: 1"), MalformedError),
    ],
)
def test_a_list_of_members_that_is_none_stops_the_run(
    members: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        feeds(members)


@pytest.mark.parametrize(
    ("data", "cause"), [(PAGE, "an HTML page; whose statement"), (b"03.11.2019\tFor", "not XML")]
)
def test_a_loose_file_that_is_no_feed_says_what_it_is(data: bytes, cause: str) -> None:
    with pytest.raises(ParseError, match=cause):
        records_of(source, loose(data))


def test_every_row_fits_its_table() -> None:
    statements = records_of(source, fetched(harbor_act(), page=PAGE))
    assert_rows_fit(source, [feed_row("P901004", feed=HOUSE), *statements])


def test_citations_do_without_a_day() -> None:
    cited = cite_statement(member="Rep. X", title="Harbors First.", published=None)
    assert cited == "Press Release, Rep. X, Harbors First."
