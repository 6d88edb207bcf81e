"""What pages, API and commands look up together, on every database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import pytest
from sqlalchemy import event, insert, select
from tests.support.libraries.documents import hold, hold_edition, library_holds_unit

from fonds import ids
from fonds.catalog.changes import MAX_CHANGES, ChangeFilter, changes
from fonds.catalog.codes import Node, code, code_position, codes
from fonds.catalog.links import cited_by, cites
from fonds.catalog.versions import VersionName, compare, shapes
from fonds.codes.diff.redline import Op, Redline
from fonds.errors import UnknownDocumentError, UsageError
from fonds.library import Library
from fonds.runs.overview import loaded_sources
from fonds.search.filters import Filters
from fonds.stores.documents import mark_withdrawn
from fonds.stores.tables import document_versions, nodes
from fonds.testing import ManualClock

OWNER: Final = uuid4()
UNIT: Final = "code/2025/root/title-1"


def grow(library: Library, unit: str, *paths: str) -> None:
    """Nodes of a unit, in reading order; a path that ends with `*` is a leaf."""
    edition = unit.split("/")[1]
    library_holds_unit(library, unit, edition, f"{edition}-01-01")
    rows = []
    for position, path in enumerate(["", *paths]):
        node_id = f"{unit}/{path}".rstrip("/*")
        rows.append(
            {
                "id": node_id,
                "source": "code",
                "version": edition,
                "kind": "section" if path.endswith("*") else "chapter",
                "label": f"Label of {node_id.rpartition('/')[2]}",
                "path": node_id.partition("/root/")[2],
                "body_ref": "pack#0+1" if path.endswith("*") else None,
                "unit": unit,
                "position": position,
                "created_at": 0,
                "parent": ids.tree_parent(node_id),
            }
        )
    with library.database.write() as connection:
        connection.execute(insert(nodes), rows)


def last(node: Node | None) -> str | None:
    return node.id.rpartition("/")[2] if node else None


# Trees ------------------------------------------------------------------------------------


def test_place_shows_one_level_in_reading_order(library: Library) -> None:
    grow(library, UNIT, "chapter-2", "chapter-2/section-9*", "chapter-2/section-10*", "chapter-1")
    found = code_position(library.database, UNIT)
    assert [last(one) for one in found.children.items] == ["chapter-2", "chapter-1"]
    assert found.children.total == 2
    below = code_position(library.database, f"{UNIT}/chapter-2")
    assert [last(one) for one in below.children.items] == ["section-9", "section-10"]
    assert [one.is_leaf for one in below.children.items] == [True, True]
    assert [last(one) for one in below.above] == ["title-1"]
    assert (below.previous, below.next) == (None, None)


def test_units_of_an_edition_stand_in_the_order_of_their_numbers(library: Library) -> None:
    for number in (10, 9, 1):
        grow(library, f"code/2025/root/title-{number}", "section-1*")
    found = code_position(library.database, "code/2025")
    assert found.node is None
    assert [last(one) for one in found.children.items] == ["title-1", "title-9", "title-10"]
    assert code_position(library.database, "code/2025/root") == found


def test_children_come_in_pages(library: Library) -> None:
    grow(library, UNIT, *(f"section-{number}*" for number in range(5)))
    first = code_position(library.database, UNIT, limit=3).children
    assert (len(first.items), first.next_offset, first.total) == (3, 3, 5)
    rest = code_position(library.database, UNIT, limit=3, offset=3).children
    assert [last(one) for one in rest.items] == ["section-3", "section-4"]
    assert rest.next_offset is None


def test_leaf_knows_its_neighbours_across_chapters_and_units(library: Library) -> None:
    grow(library, UNIT, "chapter-1", "chapter-1/section-1*", "chapter-2", "chapter-2/section-2*")
    grow(library, "code/2025/root/title-2")
    grow(library, "code/2025/root/title-3", "section-3*")
    one, two = (
        code_position(library.database, f"{UNIT}/{each}")
        for each in ("chapter-1/section-1", "chapter-2/section-2")
    )
    assert (last(one.previous), last(one.next)) == (None, "section-2")
    # The title between them has no section.
    assert (last(two.previous), last(two.next)) == ("section-1", "section-3")
    three = code_position(library.database, "code/2025/root/title-3/section-3")
    assert (last(three.previous), last(three.next)) == ("section-2", None)


@pytest.mark.parametrize("path", ["code", "code/2024", f"{UNIT}/chapter-7", "", "other/2025"])
def test_place_that_is_not_held_is_refused(library: Library, path: str) -> None:
    grow(library, UNIT, "chapter-1")
    with pytest.raises(UnknownDocumentError):
        code_position(library.database, path)


def test_code_tells_its_editions_newest_first(library: Library) -> None:
    grow(library, UNIT, "section-1*")
    grow(library, "code/2026/root/title-1", "section-1*")
    assert [one.version for one in code(library.database, library.sources, "code").editions] == [
        "2026",
        "2025",
    ]
    assert [one.name for one in codes(library.database, library.sources)] == ["code"]
    with pytest.raises(UnknownDocumentError):
        code(library.database, library.sources, "other")


def test_nothing_is_read_from_end_to_end(library: Library) -> None:
    """Every statement of these looks goes through an index, on the database that tells."""
    if not library.database.is_sqlite:
        return
    grow(library, UNIT, "chapter-1", "chapter-1/section-1*")
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_more: Any) -> None:
        asked.append((statement, given))

    event.listen(library.database.engine, "before_cursor_execute", note)
    code_position(library.database, f"{UNIT}/chapter-1")
    changes(library.database, ChangeFilter(newest_first=True, source="code"))
    changes(library.database, ChangeFilter(newest_first=True, under=UNIT))
    changes(library.database, ChangeFilter(since=datetime(2026, 1, 1, tzinfo=UTC)))
    event.remove(library.database.engine, "before_cursor_execute", note)
    selects = [each for each in asked if each[0].startswith("SELECT")]
    assert len(selects) > 8
    with library.database.read() as connection:
        for statement, given in selects:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
            steps = [row[3] for row in plan]
            assert not [step for step in steps if step.startswith("SCAN")], statement
            assert "USE TEMP B-TREE FOR ORDER BY" not in steps, statement


# Changes ----------------------------------------------------------------------------------


def told(library: Library, **wanted: Any) -> list[tuple[str, str]]:
    found = changes(library.database, ChangeFilter(**wanted), limit=MAX_CHANGES)
    assert found.next_cursor is None
    return [(one.what, one.id) for one in found.items]


def test_what_is_added_changed_and_withdrawn_is_told_in_order(
    library: Library, clock: ManualClock
) -> None:
    hold(library, "note:1", "First.")
    clock.move(hours=1)
    middle = clock.now()
    hold(library, "note:2", "Second.", source="other")
    clock.move(hours=1)
    hold(library, "note:1", "First, amended.")
    clock.move(hours=1)
    with library.database.write() as connection:
        mark_withdrawn(connection, ["note:2"], clock.now())
    later = [("added", "note:2"), ("changed", "note:1"), ("withdrawn", "note:2")]
    assert told(library) == [("added", "note:1"), *later]
    assert told(library, since=middle) == later
    assert told(library, newest_first=True) == [*reversed(later), ("added", "note:1")]
    assert told(library, source="other") == [later[0], later[2]]
    assert told(library, under="note:1") == [("added", "note:1"), ("changed", "note:1")]
    assert told(library, since=clock.now().replace(year=2100)) == []


def test_second_run_that_finds_the_same_tells_nothing(library: Library, clock: ManualClock) -> None:
    hold(library, "note:1", "First.")
    clock.move(hours=1)
    hold(library, "note:1", "First.")
    assert told(library) == [("added", "note:1")]


def test_uploads_are_told_to_their_owner_only(library: Library) -> None:
    hold(library, "upload:00000000-0000-0000-0000-000000000001", "Mine.", owner=OWNER)
    assert told(library) == []
    assert told(library, owner=uuid4()) == []
    assert len(told(library, owner=OWNER)) == 1


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_of_changes_add_up(library: Library, clock: ManualClock, newest_first: bool) -> None:  # noqa: FBT001 — a parameter of the test
    for number in range(7):
        hold(library, f"note:{number}", "Text.")
        if number % 3 == 2:
            clock.move(seconds=1)  # several at one moment
    with library.database.write() as connection:
        mark_withdrawn(connection, ["note:6", "note:0"], clock.now())
    wanted = ChangeFilter(newest_first=newest_first)
    whole = changes(library.database, wanted).items
    assert len(whole) == 9
    for size in (1, 2, 4, 9):
        found: list[Any] = []
        cursor = None
        for _ in range(20):
            page = changes(library.database, wanted, limit=size, cursor=cursor)
            assert len(page.items) <= size
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert tuple(found) == whole


def test_section_of_a_new_edition_is_new_changed_or_printed_again(
    library: Library, clock: ManualClock
) -> None:
    hold_edition(library, "2025", "1", "Same words.", published="2025-01-01")
    hold_edition(library, "2025", "2", "Old words.", published="2025-01-01")
    clock.move(days=1)
    since = clock.now()
    same = hold_edition(library, "2026", "1", "Same words.", published="2026-01-01")
    other = hold_edition(library, "2026", "2", "New words.", published="2026-01-01")
    third = hold_edition(library, "2026", "3", "Third.", published="2026-01-01")
    assert told(library, since=since) == [("changed", other), ("added", third)]
    assert told(library, since=since, reprints=True) == [
        ("reprinted", same),
        ("changed", other),
        ("added", third),
    ]


def test_path_without_an_edition_is_followed_through_all_of_them(library: Library) -> None:
    old = hold_edition(library, "2025", "1", "Old.", published="2025-01-01")
    new = hold_edition(library, "2026", "1", "New.", published="2026-01-01")
    hold_edition(library, "2026", "10", "Ten.", published="2026-01-01")
    both = [("added", old), ("changed", new)]
    assert told(library, under="code/title-1/section-1") == both
    assert told(library, under=old) == both[:1]
    assert told(library, under="code/2026/root/title-1/section-1") == both[1:]
    assert len(told(library, under="code")) == 3
    assert told(library, under="code/title-7") == []


def test_edition_that_changes_nothing_is_passed_in_bounded_looks(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fonds.catalog.changes.MAX_ROWS_READ", 4)
    monkeypatch.setattr("fonds.catalog.changes._BATCH_SIZE", 2)
    for edition in ("2025", "2026"):
        for number in range(5):
            words = "Same." if number < 4 else f"Of {edition}."
            hold_edition(library, edition, str(number), words, published=f"{edition}-01-01")
    wanted = ChangeFilter(under="code/2026")
    first = changes(library.database, wanted, limit=1)
    assert first.items == ()
    assert first.next_cursor is not None
    second = changes(library.database, wanted, limit=1, cursor=first.next_cursor)
    assert [(one.what, one.title) for one in second.items] == [
        ("changed", "About code/2026/root/title-1/section-4")
    ]
    assert second.next_cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "2026-01-01T00:00:00Z", "2026~0~x", "9~9~9", "~~"])
def test_cursor_that_is_none_of_ours_is_refused_or_empty(library: Library, cursor: str) -> None:
    if not cursor:
        assert changes(library.database, ChangeFilter(), cursor=cursor).items == ()
        return
    with pytest.raises(UsageError):
        changes(library.database, ChangeFilter(), cursor=cursor)


def test_version_knows_its_source(library: Library) -> None:
    hold(library, "note:1", "First.", source="other")
    with library.database.read() as connection:
        assert connection.scalar(select(document_versions.c.source)) == "other"


# Links ------------------------------------------------------------------------------------


def test_what_a_document_cites_is_grouped_and_told_with_titles(library: Library) -> None:
    hold(library, "note:1", "First.", aliases=("91 FR 1201",), title="The target")
    words = "See 91 FR 1201, 90 FR 55, and again 91 FR 1201.\n\nAnd 91 Fed. Reg. 1201 once more."
    hold(library, "note:2", words)
    library.extract_citations()
    found = cites(library.database, "note:2")
    assert [(one.target, one.count, one.document_id, one.title) for one in found.items] == [
        ("91 FR 1201", 3, "note:1", "The target"),
        ("90 FR 55", 1, None, None),
    ]
    assert (found.items[0].raw, found.items[0].start) == ("91 FR 1201", words.index("91 FR"))
    first = cites(library.database, "note:2", limit=1)
    assert (len(first.items), first.next_offset) == (1, 1)
    assert cites(library.database, "note:2", limit=1, offset=1).items == found.items[1:]


def test_what_cites_a_document_is_told_newest_first(library: Library) -> None:
    hold(library, "note:1", "First.", aliases=("91 FR 1201",))
    hold(library, "note:2", "See 91 FR 1201.", published_at="2026-01-01")
    hold(library, "note:3", "See 91 FR 1201 and 91 FR 1201.", published_at="2026-02-01")
    hold(library, "note:4", "See 91 FR 1201.")
    hold(library, "note:5", "See 91 FR 1201.", owner=OWNER)
    library.extract_citations()
    found = cited_by(library.database, "note:1")
    assert [(one.document_id, one.count) for one in found.items] == [
        ("note:3", 2),
        ("note:2", 1),
        ("note:4", 1),
    ]
    assert len(cited_by(library.database, "note:1", owner=OWNER).items) == 4
    assert cited_by(library.database, "note:1", limit=2).next_offset == 2


def test_what_an_upload_cites_is_told_to_its_owner_only(library: Library) -> None:
    hold(library, "note:5", "See 91 FR 1201.", owner=OWNER)
    library.extract_citations()
    assert cites(library.database, "note:5").items == ()
    assert len(cites(library.database, "note:5", owner=OWNER).items) == 1


# Editions and versions --------------------------------------------------------------------


def test_versions_are_told_newest_first(library: Library, clock: ManualClock) -> None:
    hold(library, "note:1", "First.")
    clock.move(hours=1)
    hold(library, "note:1", "Second.")
    found = shapes(library.database, "note:1")
    assert [one.is_current for one in found.versions] == [True, False]
    assert found.versions[0].first_seen_at == clock.now()
    assert found.editions == ()


def test_section_is_found_in_other_editions_by_name_and_by_place(library: Library) -> None:
    old = hold_edition(library, "2024", "1", "Old.", published="2024-01-01")
    same = hold_edition(library, "2025", "1", "Old.", published="2025-01-01", aliases=())
    hold_edition(library, "2026", "2", "Other.", published="2026-01-01")
    moved = hold_edition(
        library, "2026", "8", "Moved.", published="2026-01-01", aliases=("1 USC 1",)
    )
    found = shapes(library.database, old)
    assert [(one.document.id, one.has_same_words, one.is_asked) for one in found.editions] == [
        (moved, False, False),
        (same, True, False),
        (old, True, True),
    ]


def test_document_of_another_has_no_versions_to_show(library: Library) -> None:
    hold(library, "note:5", "Mine.", owner=OWNER)
    assert shapes(library.database, "note:5", owner=OWNER).document.id == "note:5"
    with pytest.raises(UnknownDocumentError):
        shapes(library.database, "note:5")


def test_two_documents_are_compared_word_by_word(library: Library) -> None:
    hold(library, "note:1", "The fee is ten dollars.")
    hold(library, "note:2", "The fee is twelve dollars.")
    found = compare(library.context, VersionName(id="note:1"), VersionName(id="note:2"))
    assert [(op, words.strip()) for op, words in found.passages if op != "keep"] == [
        ("delete", "ten"),
        ("insert", "twelve"),
    ]
    assert (found.before.version, found.after.version) == (None, None)


def test_earlier_version_is_made_again_and_compared(library: Library, clock: ManualClock) -> None:
    hold(library, "note:1", "The fee is ten dollars.")
    clock.move(hours=1)
    hold(library, "note:1", "The fee is twelve dollars.")
    new, old = shapes(library.database, "note:1").versions
    before = VersionName(id="note:1", version=old.content_sha256[:12])
    found = compare(library.context, before, VersionName(id="note:1", version=new.content_sha256))
    texts = Redline(tuple(Op(*passage) for passage in found.passages))  # type: ignore[arg-type]  # nothing is skipped
    assert texts.before.strip() == "The fee is ten dollars."
    assert texts.after.strip() == "The fee is twelve dollars."
    assert (found.before.version, found.after.version) == (old.content_sha256, None)


@pytest.mark.parametrize("version", ["0" * 64, "1234567"])
def test_version_that_there_is_not_is_refused(library: Library, version: str) -> None:
    hold(library, "note:1", "Text.")
    with pytest.raises(UsageError):
        compare(
            library.context, VersionName(id="note:1", version=version), VersionName(id="note:1")
        )


def test_document_of_another_is_compared_with_nothing(library: Library) -> None:
    hold(library, "note:5", "Mine.", owner=OWNER)
    with pytest.raises(UnknownDocumentError):
        compare(library.context, VersionName(id="note:5"), VersionName(id="note:5"))


# Facets -----------------------------------------------------------------------------------


def fill(library: Library) -> None:
    said: dict[str, Any] = {"source": "federal_register", "source_org": "Fish Office"}
    hold(library, "note:1", "A trout.", kind="rule", published_at="2026-01-01", **said)
    hold(library, "note:2", "A trout.", kind="rule", published_at="2025-05-01", **said)
    hold(library, "note:3", "A trout.", kind="notice", source="dc", published_at="2025-07-01")
    hold(library, "note:4", "A trout.", owner=OWNER, source="uploads", kind="upload")


def counts(facet: Any) -> list[tuple[str, int]]:
    return [(one.value, one.count) for one in facet]


def test_facets_count_what_was_found(library: Library) -> None:
    fill(library)
    facets = library.look("trout", Filters(), limit=1).facets
    assert counts(facets.sources) == [("federal_register", 2), ("dc", 1)]
    assert counts(facets.kinds) == [("rule", 2), ("notice", 1)]
    assert counts(facets.organizations) == [("Fish Office", 2), ("The Office", 1)]
    assert counts(facets.years) == [("2026", 1), ("2025", 2)]
    assert counts(facets.jurisdictions) == [("District of Columbia", 1), ("United States", 2)][::-1]
    assert (facets.counted, facets.is_all) == (3, True)
    assert facets.sources[0].label == "Federal Register"


def test_facets_count_uploads_for_their_owner_only(library: Library) -> None:
    fill(library)
    own = library.look("trout", Filters(owner=OWNER)).facets
    assert own.counted == 4
    assert ("uploads", 1) in counts(own.sources)
    assert library.look("trout", Filters()).facets.counted == 3


def test_search_is_narrowed_by_year_and_jurisdiction(library: Library) -> None:
    fill(library)

    def found(**filters: Any) -> set[str]:
        return {hit.id for hit in library.look("trout", Filters(**filters)).results}

    assert found(years=[2025]) == {"note:2", "note:3"}
    assert found(years=[2025, 2026]) == {"note:1", "note:2", "note:3"}
    assert found(years=[1999]) == set()
    assert found(jurisdictions=["united states"]) == {"note:1", "note:2"}
    assert found(jurisdictions=["District of Columbia"], years=[2026]) == set()
    with pytest.raises(UsageError, match="United States"):
        found(jurisdictions=["Atlantis"])


def test_look_gives_the_results_of_search(library: Library) -> None:
    fill(library)
    assert library.look("trout", Filters(), limit=2).results == library.search("trout", limit=2)
    assert library.look("note:1", Filters()).facets.counted == 1
    assert library.look("", Filters()).results == []


def test_sources_are_told_with_the_days_they_span(library: Library) -> None:
    fill(library)
    found = {one.name: one for one in loaded_sources(library.database, library.sources)}
    assert set(found) == {"federal_register", "dc"}
    assert (found["federal_register"].first, found["federal_register"].last) == (
        "2025-05-01",
        "2026-01-01",
    )
    assert found["dc"].jurisdiction == "District of Columbia"


def test_moment_of_a_change_is_the_one_it_was_seen(library: Library, clock: ManualClock) -> None:
    clock.move(days=3)
    hold(library, "note:1", "First.")
    (one,) = changes(library.database, ChangeFilter()).items
    assert one.at == clock.now()
    assert one.at.tzinfo == UTC
