"""Quotations checked against what is held, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.support import servers
from tests.support.libraries.documents import hold, hold_edition, labelled

from fonds.errors import UnknownDocumentError, UsageError
from fonds.library import Library, open_library
from fonds.results import QuoteCheck
from fonds.seams import Seams
from fonds.search.check_quote import check_quote
from fonds.testing import ManualClock

OLD = "# § 103. Requests\n\n(a) The keeper shall answer within thirty days.\n\n(b) No fee is due.\n"
NEW = OLD.replace("thirty", "ten")
CITE = "1 U.S.C. § 103"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    if not address:
        servers.sqlite_database(tmp_path / "fonds.db")
    with open_library(tmp_path, seams=Seams(clock=clock), database=address) as library:
        yield library


def check(library: Library, cite: str, quote: str, as_of: str = "", **more: Any) -> QuoteCheck:
    day = date.fromisoformat(as_of) if as_of else None
    return check_quote(library.context, cite, quote, as_of=day, **more)


def hold_editions(library: Library) -> dict[str, str]:
    """Four editions; the wording changed with the third."""
    texts = {"1": OLD, "2": OLD, "3": NEW, "4": NEW}
    return {
        edition: hold_edition(
            library,
            edition,
            "103",
            wording,
            published=f"202{edition}-01-01",
            normalized=labelled(wording),
        )
        for edition, wording in texts.items()
    }


def test_exact_words_are_found_with_their_place(library: Library) -> None:
    ids = hold_editions(library)
    found = check(library, CITE, "answer within  *ten* days.")
    assert found.verdict == "exact"
    assert found.document.id == ids["4"]
    assert found.found_in == found.document
    assert found.text == "answer within ten days"
    assert found.start is not None
    assert NEW[found.start : found.end] == found.text
    assert found.passage == 0
    assert found.locator is not None
    assert found.locator.heading_path == ["§ 103. Requests"]
    assert (found.at_pinpoint, found.closest, found.changed_in) == (None, None, None)


def test_pinpoint_says_whether_the_words_stand_there(library: Library) -> None:
    hold_editions(library)
    assert check(library, f"{CITE}(a)", "within ten days").at_pinpoint is True
    elsewhere = check(library, f"{CITE}(b)", "within ten days")
    assert (elsewhere.verdict, elsewhere.at_pinpoint) == ("exact", False)
    assert "but not at (b)" in elsewhere.message


def test_words_of_an_older_edition_have_changed_since(library: Library) -> None:
    ids = hold_editions(library)
    changed = check(library, CITE, "within thirty days")
    assert changed.verdict == "changed"
    assert changed.document.id == ids["4"]
    assert changed.found_in is not None
    assert changed.found_in.id == ids["2"]
    assert (changed.changed_in, changed.changed_at) == ("3", date(2023, 1, 1))
    assert changed.text == "within thirty days"
    assert changed.passage == 0


def test_of_a_day_the_edition_of_that_day_is_asked(library: Library) -> None:
    ids = hold_editions(library)
    then = check(library, CITE, "within thirty days", "2022-06-01")
    assert (then.verdict, then.document.id) == ("exact", ids["2"])
    not_yet = check(library, CITE, "within ten days", "2021-06-01")
    assert (not_yet.verdict, not_yet.document.id) == ("changed", ids["1"])
    assert not_yet.found_in is not None
    assert not_yet.found_in.id == ids["3"]
    assert (not_yet.changed_in, not_yet.changed_at) == ("3", date(2023, 1, 1))
    before = check(library, CITE, "within thirty days", "1999-01-01")
    assert (before.verdict, before.before_oldest) == ("exact", True)


def test_words_of_an_earlier_version_are_made_again_from_the_archive(
    library: Library, clock: ManualClock
) -> None:
    first = clock.now()
    hold(library, "held:1", "The harbour opens at six.")
    clock.move(days=3)
    hold(library, "held:1", "The harbour opens at seven.")
    clock.move(days=2)
    hold(library, "held:1", "The harbour opens at eight.")
    assert check(library, "held:1", "opens at eight").verdict == "exact"
    changed = check(library, "held:1", "opens at six")
    assert changed.verdict == "changed"
    assert changed.version is not None
    assert changed.version.archive_key == "corpus/held/held:1"
    assert changed.version.first_seen_at == first
    assert changed.changed_at == date(2026, 3, 13)
    assert (changed.text, changed.passage) == ("opens at six", None)
    later = check(library, "held:1", "opens at seven")
    assert later.changed_at == date(2026, 3, 15)


def test_earlier_version_that_is_lost_is_not_found(library: Library) -> None:
    hold(library, "held:1", "The harbour opens at six.")
    hold(library, "held:1", "The harbour opens at eight.")
    library.blobs.delete("corpus/held/held:1")
    missing = check(library, "held:1", "The harbour opens at six.")
    assert missing.verdict == "not_found"
    assert missing.closest is not None


def test_words_that_are_nowhere_come_with_the_nearest(library: Library) -> None:
    ids = hold_editions(library)
    missing = check(library, CITE, "The keeper shall reply within ten days")
    assert (missing.verdict, missing.found_in, missing.start) == ("not_found", None, None)
    assert missing.closest is not None
    assert missing.document.id == ids["4"]
    assert NEW[missing.closest.start : missing.closest.end] == missing.closest.text
    changes = [(change.op, change.text) for change in missing.closest.redline]
    assert changes == [
        ("keep", "The keeper shall"),
        ("delete", "reply"),
        ("insert", "answer"),
        ("keep", "within ten days"),
    ]
    assert missing.closest.passage == 0
    assert check(library, CITE, "wholly other words altogether").closest is None


def test_quotation_may_span_passages(library: Library) -> None:
    paragraphs = [f"Paragraph {number} speaks of harbours. " * 20 for number in range(40)]
    body = "\n\n".join(paragraphs)
    hold(library, "held:1", body, normalized=labelled(body))
    with library.database.read() as connection:
        counted = connection.scalar(text("SELECT count(*) FROM document_chunk_buffer"))
    assert counted is not None
    assert counted > 5
    quote = body[100 : len(body) - 100].partition(" ")[2].rpartition(" ")[0]
    found = check(library, "held:1", quote)
    assert (found.verdict, found.passage) == ("exact", 0)
    last = check(library, "held:1", "Paragraph 39 speaks of harbours. Paragraph 39")
    assert last.passage == counted - 1


def test_document_without_a_text_is_its_title_and_summary(library: Library) -> None:
    hold(library, "held:1", title="A Vote on Harbours", summary="Passed by 5 to 4.")
    found = check(library, "held:1", "passed by 5".capitalize())
    assert (found.verdict, found.text, found.passage) == ("exact", "Passed by 5", 0)


def test_of_a_shared_name_the_document_that_has_the_words_is_meant(library: Library) -> None:
    hold(library, "held:1", "Of harbours.", aliases=("89 FR 12345",))
    hold(library, "held:2", "Of lighthouses.", aliases=("89 FR 12345",))
    assert check(library, "89 FR 12345", "lighthouses").document.id == "held:2"
    with pytest.raises(UnknownDocumentError, match="none of them has these words"):
        check(library, "89 FR 12345", "canals")


def test_citation_that_leads_nowhere_and_quotation_of_nothing_are_refused(
    library: Library,
) -> None:
    hold(library, "held:1", "Of harbours.")
    with pytest.raises(UnknownDocumentError, match="42 USC 1396a is not in this library"):
        check(library, "42 USC 1396a", "harbours")
    with pytest.raises(UnknownDocumentError, match="a recognised citation"):
        check(library, "a saying", "harbours")
    for nothing in ("", "…", "[sic]", " * * * "):
        with pytest.raises(UsageError, match="no words"):
            check(library, "held:1", nothing)


def test_hostile_words_are_looked_for_as_they_are(library: Library) -> None:
    hold(library, "held:1", "Of (a+)+$ harbours; DROP TABLE x;--")
    assert check(library, "held:1", "(a+)+$ harbours; DROP TABLE").verdict == "exact"
    for hostile in ("\0", "\ud800", "%' OR 1=1", "a" * 100_000, "(" * 10_000):
        assert check(library, "held:1", f"{hostile} words").verdict == "not_found"
