from __future__ import annotations

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

from fonds.errors import MalformedError, ParseError, SuspiciousYieldError, WrongContentError
from fonds.model import FetchTask, SourceState, Watermark
from fonds.normalize.registry import get_normalizer
from fonds.sources.base import Source
from fonds.sources.gao import FEED, cite_gao, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
RSS = (FILES / "reports.xml").read_bytes()
PAGE = (FILES / "product.html").read_bytes()
TEXT = (FILES / "text.html").read_bytes()
PDF = b"%PDF-1.7\n"
RUN = SourceState(now=NOW)


def found(state: SourceState = RUN, feed: bytes = RSS) -> list[FetchTask]:
    return tasks(discover(source, Publisher({FEED: feed}), state))


def harbor_task() -> FetchTask:
    return next(task for task in found() if task.key == "gao:GAO-26-107521")


def test_it_is_a_source() -> None:
    assert isinstance(source, Source)


def test_records_of_a_feed_are_as_reviewed() -> None:
    assert_golden(json_lines(source.parse(loose(RSS))), GOLDEN / "reports.xml.jsonl")


def test_a_record_of_all_files_is_as_reviewed() -> None:
    raw = fetched(harbor_task(), page=PAGE, text=TEXT, pdf=PDF)
    # Which version of the normalizer there is, is not this test's business.
    found = json_lines(source.parse(raw)).replace(
        get_normalizer("html_article_v1").label, "html_article_v1"
    )
    assert_golden(found, GOLDEN / "product.jsonl")


def test_products_come_oldest_first() -> None:
    keys = ["gao:GAO-26-900SP", "gao:GAO-26-108233T", "gao:GAO-26-107521"]
    assert [task.key for task in found()] == keys


def test_full_texts_are_asked_for_in_capitals_and_pdfs_in_small_letters() -> None:
    assert [part.url for part in harbor_task().parts] == [
        "https://www.gao.gov/products/gao-26-107521",
        "https://files.gao.gov/reports/GAO-26-107521/index.html",
        "https://files.gao.gov/assets/gao-26-107521.pdf",
    ]


def test_refusals_leave_the_record_of_the_feed() -> None:
    assert all(part.optional and part.refusable for part in harbor_task().parts)
    [record] = records_of(source, fetched(harbor_task()))
    assert record.key == "gao:GAO-26-107521"
    assert record.document is not None
    assert record.document.raw.url == FEED
    assert record.document.body is None


def test_a_changed_entry_has_another_fingerprint() -> None:
    changed = found(feed=RSS.replace(b"Of 12 plans", b"Of 13 plans"))
    differing = [
        new.key
        for old, new in zip(found(), changed, strict=True)
        if old.fingerprint != new.fingerprint
    ]
    assert differing == ["gao:GAO-26-107521"]


def test_the_pdf_is_the_body_where_there_is_no_html() -> None:
    [record] = records_of(source, fetched(harbor_task(), pdf=PDF))
    assert record.document is not None
    assert record.document.body is not None
    assert record.document.body.format == "pdf"
    assert record.document.body.normalized is None


@pytest.mark.parametrize(
    ("parts", "cause"),
    [
        ({"pdf": b"<html>Denied</html>"}, "not a PDF"),
        ({"page": b"<html><body>Access Denied</body></html>"}, "not the page of a GAO product"),
        ({"page": PAGE.replace(b"gao-26-107521", b"gao-26-1")}, "describes GAO-26-1"),
    ],
)
def test_other_content_in_place_of_a_file_is_named(parts: dict[str, bytes], cause: str) -> None:
    with pytest.raises(WrongContentError, match=cause):
        records_of(source, fetched(harbor_task(), **parts))


def test_a_product_page_alone_is_a_record() -> None:
    [record] = records_of(source, loose(PAGE))
    assert record.document is not None
    assert record.document.title == "Harbor Dredging: T&E Plans Need Clear Schedules"
    assert record.document.published_at == "2026-03-03"
    assert [child.table for child in record.children].count("gao_recommendations") == 2


def test_loose_files_of_one_product_are_one_record() -> None:
    raw = together(**{"reports.xml": RSS, "product.html": PAGE, "gao-26-107521.pdf": PDF})
    records = {record.key: record for record in records_of(source, raw)}
    assert len(records) == 3
    harbor = records["gao:GAO-26-107521"]
    assert harbor.payload["guid"] == "/products/gao-26-107521"
    assert harbor.payload["publicly_released"] == "2026-03-03"
    assert harbor.document is not None
    assert harbor.document.body is not None
    assert harbor.document.body.format == "pdf"


def test_the_watermark_is_the_newest_entry_and_a_gap_is_reported() -> None:
    [mark] = [
        item
        for item in discover(source, Publisher({FEED: RSS}), RUN)
        if isinstance(item, Watermark)
    ]
    assert mark.last_seen_key == "2026-03-03T12:16:14+00:00"
    within = replace(RUN, last_seen_key="2026-02-28T00:00:00+00:00")
    assert len(found(within)) == 3
    before = replace(RUN, last_seen_key="2026-02-01T00:00:00+00:00")
    listed, error = discover_until_error(source, Publisher({FEED: RSS}), before)
    assert len(tasks(listed)) == 3
    assert isinstance(error, SuspiciousYieldError)
    assert "missed" in str(error)


def test_a_backfill_keeps_to_its_days_and_leaves_the_watermark() -> None:
    days = SourceState(now=NOW, backfill=True, since=date(2026, 2, 26), until=date(2026, 3, 2))
    listed = discover(source, Publisher({FEED: RSS}), days)
    assert not [item for item in listed if isinstance(item, Watermark)]
    # An entry without a date cannot be left out for its date.
    assert [task.key for task in tasks(listed)] == ["gao:GAO-26-900SP", "gao:GAO-26-108233T"]


@pytest.mark.parametrize(
    ("feed", "error"),
    [
        (b"<html><body>Access Denied</body></html>", WrongContentError),
        (b"<rss><channel><title>T</title></channel></rss>", SuspiciousYieldError),
        (RSS.replace(b"/products/", b"/blog/"), WrongContentError),
        (b"", MalformedError),
    ],
)
def test_a_feed_that_is_none_stops_the_run(feed: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        found(feed=feed)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (PDF, "a PDF whose metadata name no product of GAO"),
        (TEXT, "not the page of a GAO product"),
        (b"{}", "not XML"),
    ],
)
def test_a_loose_file_that_is_no_record_says_what_it_is(data: bytes, cause: str) -> None:
    with pytest.raises(ParseError, match=cause):
        records_of(source, loose(data))


def test_every_row_fits_its_table() -> None:
    raw = fetched(harbor_task(), page=PAGE, text=TEXT)
    assert_rows_fit(source, records_of(source, raw))


def test_citations_name_the_month_and_do_without_a_date() -> None:
    cited = cite_gao(product="GAO-25-107521", title="Title", published=date(2025, 4, 9))
    assert cited == "U.S. Gov't Accountability Off., GAO-25-107521, Title (Apr. 2025)."
    undated = cite_gao(product="B-331564", title="Matter of Ponds.", published=None)
    assert undated == "U.S. Gov't Accountability Off., B-331564, Matter of Ponds."
