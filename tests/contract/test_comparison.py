"""Two editions of a code compared, on every database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import event, insert, update

from fonds import ids
from fonds.codes.diff import editions as comparison
from fonds.codes.diff.editions import EditionSection, UnitComparison, compare_editions
from fonds.errors import UsageError
from fonds.stores.database import Database
from fonds.stores.tables import code_units, documents, nodes

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def law(subject: str, days: int = 30) -> str:
    lines = (
        f"({letter}) Every {subject} keeper{letter} pays within {days} {subject} days what the "
        f"{letter}{subject} board asks of {subject}."
        for letter in "abcdef"
    )
    return f"# § 1. On the {subject}\n\n" + "\n\n".join(lines) + "\n"


def publish(database: Database, version: str, sections: Mapping[str, str | None]) -> None:
    """Load an edition: paths with their texts, None for one that could not be read."""
    root = ids.tree_root("usc", version)
    with database.write() as connection:
        for unit in dict.fromkeys(path.partition("/")[0] for path in sections):
            connection.execute(insert(code_units).values(_unit(root, version, unit)))
        for position, (path, text) in enumerate(sections.items()):
            connection.execute(insert(nodes).values(_node(root, version, path, position)))
            if text is not None:
                connection.execute(insert(documents).values(_document(root, path, text)))


def _unit(root: str, version: str, unit: str) -> dict[str, Any]:
    return {
        "id": f"{root}/{unit}",
        "source": "usc",
        "version": version,
        "unit": unit,
        "label": unit,
        "plan_key": "plan",
        "input_sha256": "0" * 64,
        "nodes": 1,
        "shards": 1,
        "bytes": 1,
        "state": "complete",
        "is_newest": True,
        "planned_at": NOW,
    }


def _node(root: str, version: str, path: str, position: int) -> dict[str, Any]:
    return {
        "id": f"{root}/{path}",
        "source": "usc",
        "version": version,
        "kind": "section",
        "label": f"Label of {path}",
        "path": path,
        "body_ref": "pack#0+1",
        "unit": f"{root}/{path.partition('/')[0]}",
        "position": position,
        "created_at": 0,
        "parent": ids.tree_parent(f"{root}/{path}"),
    }


def _document(root: str, path: str, text: str) -> dict[str, Any]:
    document_id = f"{root}/{path}"
    return {
        "id": document_id,
        "uid": ids.document_uid(document_id),
        "source": "usc",
        "kind": "section",
        "title": path,
        "source_url": "https://uscode.house.gov/",
        "source_org": "Office of the Law Revision Counsel",
        "retrieved_at": NOW,
        "raw_path": "pack",
        "raw_sha256": "0" * 64,
        "citation_string": f"Citation of {path}",
        "body_text": text,
        "body_text_sha256": sha256(text.encode()).hexdigest(),
        "content_sha256": "0" * 64,
        "recipe": "test",
        "updated_at": NOW,
    }


def compared(database: Database, unit: str | None = None) -> UnitComparison:
    (result,) = compare_editions(database, "usc", "2024", "2025", unit=unit)
    return result


def names(result: UnitComparison) -> dict[str, Any]:
    """The lists as last segments of ids."""

    def last(section: EditionSection) -> str:
        return section.id.rpartition("/")[2]

    return {
        "added": [last(section) for section in result.added],
        "removed": [last(section) for section in result.removed],
        "moved": [(last(pair.old), last(pair.new)) for pair in result.moved],
        "changed": [last(pair.new) for pair in result.changed],
        "unchanged": result.unchanged,
    }


def test_each_section_is_counted_in_its_place(database: Database) -> None:
    publish(
        database,
        "2024",
        {
            "title-1/section-1": law("harbor"),
            "title-1/section-2": law("museum"),
            "title-1/section-9": law("orchard"),
            "title-1/section-10": law("railway"),
        },
    )
    publish(
        database,
        "2025",
        {
            "title-1/section-1": law("harbor"),
            "title-1/section-2": law("museum", days=60),
            "title-1/section-8": law("ferry"),
            "title-1/section-11": law("railway"),
        },
    )
    result = compared(database)
    assert names(result) == {
        "added": ["section-8"],
        "removed": ["section-9"],
        "moved": [("section-10", "section-11")],
        "changed": ["section-2"],
        "unchanged": 1,
    }
    assert (result.old_state, result.new_state) == ("complete", "complete")


def test_sections_carry_label_and_citation(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    publish(database, "2025", {"title-1/section-2": law("museum")})
    (added,) = compared(database).added
    assert added.id == "usc/2025/root/title-1/section-2"
    assert added.label == "Label of title-1/section-2"
    assert added.citation == "Citation of title-1/section-2"


def test_texts_of_changed_and_moved_sections_come_in_pairs(database: Database) -> None:
    subjects = [f"subject{number}" for number in range(11)]
    before = {f"title-1/section-{n}": law(subject) for n, subject in enumerate(subjects)}
    after = {f"title-1/section-{n}": law(subject, 60) for n, subject in enumerate(subjects)}
    publish(database, "2024", before)
    publish(database, "2025", after)
    editions = compare_editions(database, "usc", "2024", "2025")
    (result,) = editions
    texts = list(editions.texts(result.changed))
    assert texts == list(zip(before.values(), after.values(), strict=True))


def test_section_that_took_a_number_over_is_not_called_a_change(database: Database) -> None:
    moved_away = "# § 1. Renumbered\n\nThis one was renumbered as another of this title by an act."
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    publish(database, "2025", {"title-1/section-1": moved_away, "title-1/section-7": law("harbor")})
    result = names(compared(database))
    assert result["moved"] == [("section-1", "section-7")]
    assert result["added"] == ["section-1"]
    assert result["changed"] == []


def test_section_rewritten_in_its_place_is_a_change(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    publish(database, "2025", {"title-1/section-1": law("museum")})
    result = compared(database)
    assert names(result)["changed"] == ["section-1"]
    assert result.changed[0].similarity < 0.55


def test_repeated_numbers_pair_by_their_texts(database: Database) -> None:
    first, second = law("harbor"), law("harbor", days=60)
    publish(database, "2024", {"title-1/section-5": first, "title-1/section-5~2": second})
    publish(database, "2025", {"title-1/section-5": second})
    result = names(compared(database))
    assert result["moved"] == [("section-5~2", "section-5")]
    assert result["removed"] == ["section-5"]


def test_white_space_and_stamps_are_no_change(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor") + "\nCurrent through 2024.\n"})
    wider = law("harbor").replace(" days ", "\ndays ").replace("# ", "### ")
    publish(database, "2025", {"title-1/section-1": wider + "\nCurrent through 2025.\n"})
    result = names(compared(database))
    assert (result["changed"], result["unchanged"]) == ([], 1)


def test_section_without_a_text_is_not_called_removed(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor"), "title-1/section-2": None})
    publish(database, "2025", {"title-1/section-1": None})
    result = compared(database)
    assert sorted(result.unread) == ["title-1/section-1", "title-1/section-2"]
    assert (result.added, result.removed, result.unchanged) == ((), (), 0)


def test_somebodys_upload_is_never_read(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    publish(database, "2025", {"title-1/section-1": law("museum")})
    with database.write() as connection:
        connection.execute(update(documents).values(owner=ids.document_uid("somebody")))
    assert compared(database).unread == ("title-1/section-1",)


def test_units_come_in_natural_order_with_their_states(database: Database) -> None:
    publish(database, "2024", {f"title-{n}/section-1": law("harbor") for n in (10, 9)})
    publish(database, "2025", {f"title-{n}/section-1": law("harbor") for n in (9, 101)})
    results = list(compare_editions(database, "usc", "2024", "2025"))
    assert [(result.unit, result.old_state, result.new_state) for result in results] == [
        ("title-9", "complete", "complete"),
        ("title-10", "complete", None),
        ("title-101", None, "complete"),
    ]


def test_part_of_a_unit_is_compared_without_its_namesakes(database: Database) -> None:
    before = {
        "title-1/chapter-1/section-1": law("harbor"),
        "title-1/chapter-1-A/section-2": law("museum"),
        "title-1/chapter-10/section-3": law("ferry"),
        "title-1/CHAPTER-1/section-4": law("orchard"),
    }
    publish(database, "2024", before)
    publish(database, "2025", {"title-1/chapter-1/section-1": law("harbor", days=60)})
    result = names(compared(database, "title-1/chapter-1"))
    assert (result["changed"], result["removed"]) == (["section-1"], [])
    section = names(compared(database, "title-1/chapter-1/section-1"))
    assert section["changed"] == ["section-1"]


def test_long_units_are_read_in_pages(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_ROWS", 3)
    publish(database, "2024", {f"title-1/section-{n}": law(f"s{n}") for n in range(10)})
    publish(database, "2025", {f"title-1/section-{n}": law(f"s{n}") for n in range(1, 11)})
    result = names(compared(database))
    assert (result["removed"], result["added"], result["unchanged"]) == (
        ["section-0"],
        ["section-10"],
        9,
    )


def test_equal_sections_are_never_read(database: Database) -> None:
    texts = {f"title-1/section-{n}": law(f"s{n}") for n in range(6)}
    publish(database, "2024", texts)
    publish(database, "2025", texts)
    statements: list[str] = []
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda _c, _u, statement, *_rest: statements.append(statement),
    )
    assert compared(database).unchanged == 6
    assert not any(re.search(r"body_text(?!_)", statement) for statement in statements)


def test_unknown_edition_is_refused_with_those_that_are_held(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    with pytest.raises(UsageError, match=r"no edition 1999 of usc; it has: 2024"):
        compare_editions(database, "usc", "1999", "2024")


def test_unknown_unit_is_refused(database: Database) -> None:
    publish(database, "2024", {"title-1/section-1": law("harbor")})
    publish(database, "2025", {"title-1/section-1": law("harbor")})
    with pytest.raises(UsageError, match=r"contains title-7$"):
        compare_editions(database, "usc", "2024", "2025", unit="title-7/chapter-1")
