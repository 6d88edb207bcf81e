"""Comparison of two editions of a code, unit by unit.

Only the paths and hashes of a unit are in memory. Texts are read where hashes differ, a few at a
time, and only a sketch of each stays in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, Select, and_, func, or_, select

from fonds import ids
from fonds.codes.diff.renumbering import (
    MIN_SIMILARITY,
    TEXT_BATCH_SIZE,
    Match,
    Recognition,
    match_sections,
    shingles,
    similarity,
    without_currency_lines,
    without_repeat,
)
from fonds.codes.diff.words import normalized_words
from fonds.errors import UsageError
from fonds.stores.database import Database
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import code_units, documents, nodes

_ROWS: Final = 1000
"""Leaves read at a time."""
_DIGITS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class EditionSection:
    """A leaf of one edition."""

    id: str
    label: str
    status: str | None
    """`repealed`, `reserved`, …; None is in force."""
    citation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    """A section whose words differ and whose path is the same."""

    old: EditionSection
    new: EditionSection
    similarity: float
    """Fraction of three-word runs in common, without the heading, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedSection:
    """A section with another number or another parent."""

    old: EditionSection
    new: EditionSection
    recognised_by: Recognition
    """Equal text without the heading, the same number, or the highest similarity."""
    similarity: float
    """Fraction of three-word runs in common; at 1.0 only heading and white space differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitComparison:
    """The differences within one unit. Each leaf of either edition is counted once."""

    unit: str
    """The path below the root: `title-42`."""
    old_state: str | None
    new_state: str | None
    """`complete`, `partial` or `planned`; None if that edition of the unit was never loaded or does
    not exist. Its sections count as removed or added in either case."""
    added: tuple[EditionSection, ...]
    removed: tuple[EditionSection, ...]
    moved: tuple[MovedSection, ...]
    changed: tuple[Changed, ...]
    unchanged: int
    unread: tuple[str, ...]
    """Paths that cannot be compared because a text is not loaded or normalized yet."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two editions; each unit is compared when the iteration reaches it."""

    database: Database
    source: str
    old: str
    new: str
    units: tuple[str, ...]

    def __iter__(self) -> Iterator[UnitComparison]:
        old, new = (
            _EditionNodes(self.database, self.source, version) for version in (self.old, self.new)
        )
        return (_compared(old, new, unit) for unit in self.units)

    def texts(self, pairs: Iterable[Changed | MovedSection]) -> Iterator[tuple[str, str]]:
        """The old and new text of each pair, in order, read a few at a time."""
        for batch in batched(pairs, TEXT_BATCH_SIZE // 2):
            section_ids = [section.id for pair in batch for section in (pair.old, pair.new)]
            texts = _texts(self.database, section_ids)
            yield from ((texts[pair.old.id], texts[pair.new.id]) for pair in batch)


def compare_editions(
    database: Database, source: str, old: str, new: str, *, unit: str | None = None
) -> Comparison:
    """Compare two editions, in all units or below one path (`title-42/chapter-7`)."""
    editions = [_EditionNodes(database, source, version) for version in (old, new)]
    unit_names = {name.partition("/")[0] for edition in editions for name in edition.units}
    path = (unit or "").strip("/")
    if path and path.partition("/")[0] not in unit_names:
        raise UsageError(f"neither {old} nor {new} of {source} contains {path.partition('/')[0]}")
    units = (path,) if path else tuple(sorted(unit_names, key=_natural))
    return Comparison(database, source, old, new, units)


def _natural(name: str) -> list[str | int]:
    """A key that sorts `title-9` before `title-10`."""
    parts = _DIGITS.split(name)
    return [int(part) if number % 2 else part for number, part in enumerate(parts)]


# Reading ----------------------------------------------------------------------------------


def _below(units: Iterable[str], top: str) -> list[str]:
    return sorted((name for name in units if f"{name}/".startswith(f"{top}/")), key=_natural)


class _EditionNodes:
    """The nodes of one edition, by path below its root."""

    def __init__(self, database: Database, source: str, version: str) -> None:
        self._database = database
        self._root = ids.tree_root(source, version)
        self.units = self._read_units(source, version)
        """The state of each unit, by name."""

    def leaves(self, unit: str) -> Iterator[tuple[str, str | None]]:
        """Path and hash of every leaf of a unit, or of a part of it, in reading order.

        A unit too large to be walked is loaded in parts, which are units of their own.
        """
        top = unit.partition("/")[0]
        for name in _below(self.units, top):
            statement = _leaves_of(self.id(name))
            if unit != top:
                start = func.substr(nodes.c.path, 1, len(unit) + 1)
                statement = statement.where(or_(nodes.c.path == unit, start == f"{unit}/"))
            position = -1
            while page := self._page(statement, position):
                yield from ((row.path, row.body_text_sha256) for row in page)
                position = page[-1].position

    def state(self, top: str) -> str | None:
        """The state of a unit, or of all the parts that it was loaded in."""
        part_states = {state for name, state in self.units.items() if name.startswith(f"{top}/")}
        combined = "complete" if part_states == {"complete"} else "partial"
        return self.units.get(top) or (combined if part_states else None)

    def id(self, path: str) -> str:
        return f"{self._root}/{path}"

    def texts(self, paths: Sequence[str]) -> dict[str, str]:
        texts = _texts(self._database, [self.id(path) for path in paths])
        return {path: texts[self.id(path)] for path in paths}

    def sections(self, paths: Iterable[str]) -> dict[str, EditionSection]:
        """The sections by path, in the order of `paths`."""
        paths_by_id = {self.id(path): path for path in paths}
        columns = nodes.c.id, nodes.c.label, nodes.c.status, documents.c.citation_string
        statement = select(*columns).join(documents, documents.c.id == nodes.c.id)
        with self._database.read() as connection:
            rows = select_in(connection, statement, nodes.c.id, list(paths_by_id))
            sections = {row.id: _section(row) for row in rows}
        return {path: sections[node_id] for node_id, path in paths_by_id.items()}

    def _read_units(self, source: str, version: str) -> dict[str, str]:
        columns = code_units.c.version, code_units.c.unit, code_units.c.state
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(code_units.c.source == source)).all()
        units = {row.unit: row.state for row in rows if row.version == version}
        if not units:
            stored = ", ".join(sorted({row.version for row in rows}, key=_natural)) or "none"
            raise UsageError(f"the library has no edition {version} of {source}; it has: {stored}")
        return units

    def _page(self, statement: Select[Any], after: int) -> Sequence[Row[Any]]:
        page = statement.where(nodes.c.position > after).order_by(nodes.c.position).limit(_ROWS)
        with self._database.read() as connection:
            return connection.execute(page).all()


def _section(row: Row[Any]) -> EditionSection:
    citation = row.citation_string
    return EditionSection(id=row.id, label=row.label, status=row.status, citation=citation)


def _leaves_of(unit_id: str) -> Select[Any]:
    text = and_(documents.c.id == nodes.c.id, documents.c.owner.is_(None))
    return (
        select(nodes.c.path, nodes.c.position, documents.c.body_text_sha256)
        .select_from(nodes.outerjoin(documents, text))
        .where(nodes.c.unit == unit_id)
        .where(or_(nodes.c.body_ref.is_not(None), documents.c.id.is_not(None)))
    )


def _texts(database: Database, document_ids: Sequence[str]) -> dict[str, str]:
    statement = select(documents.c.id, documents.c.body_text).where(documents.c.owner.is_(None))
    with database.read() as connection:
        rows = select_in(connection, statement, documents.c.id, document_ids)
        return {row.id: row.body_text for row in rows}


# Comparing --------------------------------------------------------------------------------


@dataclass(slots=True)
class _UnitDifference:
    """Paths that differ between two editions of a unit, in reading order."""

    old: dict[str, None] = field(default_factory=dict)
    new: dict[str, None] = field(default_factory=dict)
    unchanged: int = 0
    unread: list[str] = field(default_factory=list)

    def mark_unchanged(self, path: str) -> None:
        del self.old[path], self.new[path]
        self.unchanged += 1

    @property
    def repeated(self) -> set[str]:
        """Numbers that occur more than once, so that equal paths may be different sections."""
        return {
            without_repeat(path) for path in (*self.old, *self.new) if path != without_repeat(path)
        }


def _compared(old: _EditionNodes, new: _EditionNodes, unit: str) -> UnitComparison:
    differing = _differing(old, new, unit)
    matches = _matches(old, new, differing)
    before, after = old.sections(differing.old), new.sections(differing.new)
    pairs = [(before.pop(match.old), after.pop(match.new), match) for match in matches]
    name = unit.partition("/")[0]
    return UnitComparison(
        unit=unit,
        old_state=old.state(name),
        new_state=new.state(name),
        added=tuple(after.values()),
        removed=tuple(before.values()),
        moved=tuple(_moved(*pair) for pair in pairs if pair[2].old != pair[2].new),
        changed=tuple(_changed(*pair) for pair in pairs if pair[2].old == pair[2].new),
        unchanged=differing.unchanged,
        unread=tuple(differing.unread),
    )


def _changed(old: EditionSection, new: EditionSection, match: Match) -> Changed:
    return Changed(old=old, new=new, similarity=match.similarity)


def _moved(old: EditionSection, new: EditionSection, match: Match) -> MovedSection:
    return MovedSection(
        old=old, new=new, recognised_by=match.recognised_by, similarity=match.similarity
    )


def _differing(old: _EditionNodes, new: _EditionNodes, unit: str) -> _UnitDifference:
    differing = _UnitDifference()
    before, after = dict(old.leaves(unit)), dict(new.leaves(unit))
    for path in before | after:
        hashes = [side[path] for side in (before, after) if path in side]
        if None in hashes:
            differing.unread.append(path)
    for path in differing.unread:
        before.pop(path, None)
        after.pop(path, None)
    same = {path for path, sha in before.items() if after.get(path) == sha}
    differing.unchanged = len(same)
    differing.old = {path: None for path in before if path not in same}
    differing.new = {path: None for path in after if path not in same}
    return differing


def _matches(old: _EditionNodes, new: _EditionNodes, differing: _UnitDifference) -> list[Match]:
    """Pairs of sections: similar at the same path, matched elsewhere, or rewritten in place."""
    same_path = list(_same_path_matches(old, new, differing))
    repeated = differing.repeated
    matches = [
        match
        for match in same_path
        if match.similarity >= MIN_SIMILARITY and without_repeat(match.old) not in repeated
    ]
    matched = {match.old for match in matches}
    open_old = [path for path in differing.old if path not in matched]
    open_new = [path for path in differing.new if path not in matched]
    matches += match_sections(open_old, open_new, old.texts, new.texts)
    olds, news = {match.old for match in matches}, {match.new for match in matches}
    matches += [match for match in same_path if match.old not in olds and match.new not in news]
    order = {path: number for number, path in enumerate(differing.new)}
    return sorted(matches, key=lambda match: order[match.new])


def _same_path_matches(
    old: _EditionNodes, new: _EditionNodes, differing: _UnitDifference
) -> Iterator[Match]:
    """Sections whose path is the same, without those in which no word has changed."""
    for batch in batched(
        [path for path in differing.old if path in differing.new], TEXT_BATCH_SIZE // 2
    ):
        before, after = old.texts(batch), new.texts(batch)
        for path in batch:
            old_text = without_currency_lines(before[path])
            new_text = without_currency_lines(after[path])
            if normalized_words(old_text) == normalized_words(new_text):
                differing.mark_unchanged(path)
            else:
                ratio = similarity(shingles(old_text), shingles(new_text))
                yield Match(old=path, new=path, recognised_by="number", similarity=ratio)
