"""What citations lead to, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import update
from tests.support import servers
from tests.support.libraries.documents import hold, hold_edition, labelled

from fonds import ids
from fonds.chunk.chunker import CHUNKER_NAME, CHUNKER_VERSION
from fonds.library import Library, open_library
from fonds.results import Resolution
from fonds.seams import Seams
from fonds.search.resolve import resolve
from fonds.stores.tables import documents
from fonds.testing import ManualClock

SECTION = """# § 103. Requests

(a) **Time.—** The keeper shall answer within ten days.

(b) **Form.—** A request may be made:

(1) in writing; or

(2) by word of mouth.
"""
NOTICE = "The first page.\n\nThe second page.\n\nThe third page.\n"


@pytest.fixture(params=["sqlite", "postgres"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    if not address:
        servers.sqlite_database(tmp_path / "fonds.db")
    seams = Seams(clock=ManualClock())
    with open_library(tmp_path, seams=seams, database=address) as library:
        yield library


def ask(library: Library, citation: str, as_of: str = "", owner: UUID | None = None) -> Resolution:
    day = date.fromisoformat(as_of) if as_of else None
    return resolve(library.database, citation, as_of=day, owner=owner)


def led_to(answer: Resolution) -> str | None:
    assert answer.found == (answer.document is not None) == (answer.problem is None)
    return answer.document.id if answer.document else None


def hold_three_editions(library: Library) -> list[str]:
    return [
        hold_edition(library, "118-9", "103", SECTION, published="2024-03-01"),
        hold_edition(library, "118-250", "103", SECTION, published="2025-01-10"),
        hold_edition(library, "119-36", "103", SECTION, published="2026-02-20"),
    ]


def test_whatever_is_typed_leads_to_the_document(library: Library) -> None:
    names = {
        "usc": ("42 USC 1396a", ["42 U.S.C. § 1396a", "42 usc 1396a", "42 U.S.C. 1396a (2018)"]),
        "fr": ("89 FR 12345", ["89 Fed. Reg. 12,345", "89 FR 12345"]),
        "crs": ("R48481", ["R48481", "r48481", "CRS Report R48481"]),
        "cgs": ("Conn. Gen. Stat. § 12-704e", ["conn. gen. stat. 12-704e"]),
        "law": ("Public Law 119-21", ["Pub. L. 119-21", "pl 119–21", "PL 119-21"]),
        "report": ("H.R. Rep. No. 119-100", ["“H. Rept. 119-100”"]),
        "other": ("a name of its own", ["a name of its own", " other "]),
    }
    for document_id, (alias, _) in names.items():
        hold(library, document_id, "Words.", aliases=(alias,))
    for document_id, (_, typed) in names.items():
        for each in (*typed, document_id, f"Held, {document_id}."):
            assert led_to(ask(library, each)) == document_id


def test_answer_tells_how_it_was_read_and_what_it_found(library: Library) -> None:
    hold(
        library, "held:1", "Words.", aliases=("42 USC 1396a",), published_at="2026-01-12T09:00:00Z"
    )
    answer = ask(library, "42 U.S.C. § 1396a(a)(10)")
    assert (answer.kind, answer.target, answer.pinpoint) == ("usc", "42 USC 1396a", "(a)(10)")
    assert answer.document is not None
    assert answer.document.title == "About held:1"
    assert answer.document.url == "https://held.example/held:1"
    assert answer.document.published_at == date(2026, 1, 12)
    assert (answer.passage, answer.editions) == (None, [])
    assert answer.remark == "nothing in its text is marked (a)(10)"


def test_what_is_not_held_and_what_is_not_understood_are_told_apart(library: Library) -> None:
    hold(library, "held:1", "Words.", aliases=("42 USC 1396a",))
    not_held = {"42 U.S.C. § 9999": "42 USC 9999", "H.R. 77": "HR 77", "89 FR 400": "89 FR 400"}
    for typed, target in not_held.items():
        answer = ask(library, typed)
        assert (answer.problem, answer.target, led_to(answer)) == ("not_held", target, None)
        assert target in answer.message
    hostile = ("", "\0\ud800'; DROP TABLE documents; --", "x" * 100_000, "%", "#1", "…")
    for typed in ("an old saying", *hostile):
        answer = ask(library, typed)
        assert (answer.problem, answer.target, led_to(answer)) == ("not_understood", None, None)
        assert answer.message


# Editions ---------------------------------------------------------------------------------


def test_newest_edition_is_taken_and_all_are_told(library: Library) -> None:
    oldest, older, newest = hold_three_editions(library)
    answer = ask(library, "1 USC 103")
    assert led_to(answer) == newest
    assert [edition.id for edition in answer.editions] == [newest, older, oldest]
    assert [edition.is_newest for edition in answer.editions] == [True, False, False]


def test_of_a_day_the_newest_published_by_then_is_taken(library: Library) -> None:
    hold_three_editions(library)
    days = {"2026-02-20": "119-36", "2026-02-19": "118-250", "2024-03-01": "118-9"}
    for day, edition in days.items():
        answer = ask(library, "1 U.S.C. § 103(z)", day)
        assert answer.document is not None
        assert (answer.document.edition, answer.before_oldest) == (edition, False)
        assert answer.as_of == date.fromisoformat(day)


def test_day_before_the_oldest_edition_gives_that_and_says_so(library: Library) -> None:
    oldest, _, _ = hold_three_editions(library)
    answer = ask(library, "1 U.S.C. § 103", "2024-02-29")
    assert led_to(answer) == oldest
    assert answer.before_oldest
    assert answer.remark == "2024-02-29 is before 2024-03-01, the oldest edition in the library"


def test_edition_can_be_named_by_its_year_and_by_its_id(library: Library) -> None:
    _, older, newest = hold_three_editions(library)
    for typed in ("1 U.S.C. § 103 (2025).", "1 USC 103 (2025)", older):
        answer = ask(library, typed)
        assert led_to(answer) == older
        assert len(answer.editions) == 3
        assert led_to(ask(library, typed, "2026-06-01")) == newest


def test_section_that_only_an_older_edition_has_is_said_to_be_of_it(library: Library) -> None:
    old = hold_edition(library, "118-250", "105", SECTION, published="2025-01-10")
    hold_edition(library, "119-36", "103", SECTION, published="2026-02-20")
    answer = ask(library, "1 USC 105")
    assert led_to(answer) == old
    assert answer.document is not None
    assert not answer.document.is_newest
    assert "not the newest edition in the library" in answer.message


def test_withdrawn_document_counts_only_where_there_is_no_other(library: Library) -> None:
    hold(library, "held:1", "Words.", aliases=("42 USC 1396a",))
    hold(library, "held:2", "Words.", aliases=("42 USC 1396a",))
    now = library.seams.clock.now()
    with library.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == "held:1").values(gone_at=now))
    assert led_to(ask(library, "42 USC 1396a")) == "held:2"
    gone = ask(library, "held:1").document
    assert gone is not None
    assert gone.gone_at == now


# Several that fit -------------------------------------------------------------------------


def test_name_that_several_documents_share_gives_them_all(library: Library) -> None:
    for number in (1, 2):
        hold(library, f"held:{number}", "Words.", aliases=("89 FR 12345",))
    answer = ask(library, "89 FR 12345")
    assert answer.problem == "ambiguous"
    assert [one.id for one in answer.candidates] == ["held:1", "held:2"]


def test_list_of_sections_is_ambiguous_and_two_names_of_one_law_are_not(library: Library) -> None:
    for name in ("552", "553"):
        hold_edition(library, "118-250", name, SECTION, published="2025-01-10")
        hold_edition(library, "119-36", name, SECTION, published="2026-02-20")
    answer = ask(library, "1 U.S.C. §§ 552, 553")
    assert [one.id.rpartition("/")[2] for one in answer.candidates] == [
        "section-552",
        "section-553",
    ]
    hold(library, "held:1", "Words.", aliases=("Pub. L. 117-58", "135 Stat. 429"))
    assert led_to(ask(library, "Pub. L. 117-58, 135 Stat. 429")) == "held:1"


def test_bill_without_a_congress_is_the_newest_one(library: Library) -> None:
    for congress in (99, 118, 119):
        hold(library, f"bill:{congress}", "Words.", aliases=(f"{congress} HR 2024",))
    for typed in ("H.R. 2024", "hr 2024", "HR 2024"):
        answer = ask(library, typed)
        assert led_to(answer) == "bill:119"
        assert [one.id for one in answer.candidates] == ["bill:118", "bill:99"]
        assert answer.remark is not None
        assert "newest" in answer.remark
    assert led_to(ask(library, "H.R. 2024, 118th Cong.")) == "bill:118"
    assert led_to(ask(library, "H.R. 2024", as_of="2023-05-05")) == "bill:118"


# Places -----------------------------------------------------------------------------------


def test_pinpoint_leads_to_its_paragraph_and_passage(library: Library) -> None:
    hold(library, "held:1", SECTION, aliases=("1 USC 103",), normalized=labelled(SECTION))
    places = {
        "(a)": ("(a) **Time", None),
        "(b)(2)": ("(2) by word", None),
        "(b)(2)(A)": ("(2) by word", "its text marks (b)(2) and no more"),
        "(a)-(b)": ("(a) **Time", None),
    }
    for pinpoint, (begins, remark) in places.items():
        answer = ask(library, f"1 U.S.C. § 103{pinpoint}")
        assert (led_to(answer), answer.passage, answer.remark) == ("held:1", 0, remark)
        assert answer.start is not None
        assert SECTION[answer.start :].startswith(begins)
        assert answer.locator is not None
        assert answer.locator.heading_path == ["§ 103. Requests"]
    nowhere = ask(library, "1 U.S.C. § 103(z)")
    assert (nowhere.start, nowhere.passage) == (None, None)
    assert nowhere.remark == "nothing in its text is marked (z)"


def test_page_within_a_document_leads_to_it(library: Library) -> None:
    second, third = NOTICE.index("The second"), NOTICE.index("The third")
    text = labelled(NOTICE, pages=((0, "1201"), (second, "1202"), (third, "1203")))
    hold(library, "held:1", NOTICE, aliases=("91 FR 1201",), normalized=text)
    hold(library, "held:2", NOTICE, aliases=("91 FR 1204",))
    inside = ask(library, "91 FR 1202")
    assert (led_to(inside), inside.start, inside.passage) == ("held:1", second, 0)
    pinned = ask(library, "91 Fed. Reg. 1201, 1203")
    assert (led_to(pinned), pinned.start, pinned.end) == ("held:1", third, len(NOTICE))
    assert ask(library, "91 FR 1205").problem == "not_held"


def test_passage_is_named_by_its_number_and_by_its_uuid(library: Library) -> None:
    hold(library, "held:1", SECTION)
    answer = ask(library, "held:1#0")
    assert (led_to(answer), answer.passage, answer.start) == ("held:1", 0, 0)
    chunk = ids.chunk_id(ids.document_uid("held:1"), CHUNKER_NAME, CHUNKER_VERSION, 0)
    assert ask(library, str(chunk)).passage == 0
    assert ask(library, "held:1#7").remark == "it has no passage 7"
    assert ask(library, str(uuid4())).problem == "not_understood"


def test_uploads_are_seen_by_their_owner_alone(library: Library) -> None:
    user, name = uuid4(), ids.upload_id(uuid4())
    hold(library, name, "Words.", aliases=("42 USC 1396a",), owner=user)
    for typed in (name, "42 USC 1396a", f"Held, {name}.", f"{name}#0"):
        assert led_to(ask(library, typed)) is None
        assert led_to(ask(library, typed, owner=uuid4())) is None
        assert led_to(ask(library, typed, owner=user)) == name
