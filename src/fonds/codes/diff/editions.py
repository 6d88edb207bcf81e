"""Two editions of a code compared, unit by unit.

Of a unit only paths and hashes are held. Texts are read where these differ, a few at a time, and of
each no more than a sketch is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, Select, and_, func, or_, select

from fonds import ids
from fonds.codes.diff.renumbering import (
    ALIKE,
    TEXTS,
    Match,
    Recognition,
    match_sections,
    plain,
    shingles,
    similarity,
    without_stamps,
)
from fonds.codes.diff.words import essence
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
    """A section whose words differ; it stands where it stood."""

    old: EditionSection
    new: EditionSection
    similarity: float
    """Share of three-word runs in common, below the heading; from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedSection:
    """A section that stands under another number or another parent."""

    old: EditionSection
    new: EditionSection
    recognised_by: Recognition
    """Its text without heading is equal; or it kept its number; or it is like no other."""
    similarity: float
    """Share of three-word runs in common; 1.0 is equal but for heading and white space."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitComparison:
    """What became of one unit. Each leaf of either edition is counted in one place only."""

    unit: str
    """The path below the root: `title-42`."""
    old_state: str | None
    new_state: str | None
    """`complete`, `partial` or `planned`; None: that edition of the unit was never loaded, if it
    exists. What is missing for either reason is counted as removed or added all the same."""
    added: tuple[EditionSection, ...]
    removed: tuple[EditionSection, ...]
    moved: tuple[MovedSection, ...]
    changed: tuple[Changed, ...]
    unchanged: int
    unread: tuple[str, ...]
    """Paths that cannot be compared, because a text has not been loaded or normalized yet."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two editions side by side; units are compared as they are asked for."""

    database: Database
    source: str
    old: str
    new: str
    units: tuple[str, ...]

    def __iter__(self) -> Iterator[UnitComparison]:
        old, new = (
            _EditionNodes(self.database, self.source, each) for each in (self.old, self.new)
        )
        return (_compared(old, new, unit) for unit in self.units)

    def texts(self, pairs: Iterable[Changed | MovedSection]) -> Iterator[tuple[str, str]]:
        """The text before and after of each pair, in order, a few at a time."""
        for batch in batched(pairs, TEXTS // 2):
            wanted = [each.id for pair in batch for each in (pair.old, pair.new)]
            texts = _texts(self.database, wanted)
            yield from ((texts[pair.old.id], texts[pair.new.id]) for pair in batch)


def compare_editions(
    database: Database, source: str, old: str, new: str, *, unit: str | None = None
) -> Comparison:
    """Compare all units of two editions, or what stands below one path (`title-42/chapter-7`)."""
    editions = [_EditionNodes(database, source, version) for version in (old, new)]
    held = {name.partition("/")[0] for edition in editions for name in edition.units}
    path = (unit or "").strip("/")
    if path and path.partition("/")[0] not in held:
        raise UsageError(f"neither {old} nor {new} of {source} holds {path.partition('/')[0]}")
    units = (path,) if path else tuple(sorted(held, key=_natural))
    return Comparison(database, source, old, new, units)


def _natural(name: str) -> list[str | int]:
    """So that `title-9` stands before `title-10`."""
    parts = _DIGITS.split(name)
    return [int(part) if number % 2 else part for number, part in enumerate(parts)]


# Reading ----------------------------------------------------------------------------------


class _EditionNodes:
    """What is held of one edition, by path below its root."""

    def __init__(self, database: Database, source: str, version: str) -> None:
        self._database = database
        self._root = ids.tree_root(source, version)
        self.units = self._read_units(source, version)
        """The state of each."""

    def leaves(self, unit: str) -> Iterator[tuple[str, str | None]]:
        """Path and hash of every leaf of a unit, or of a part of it, in reading order.

        A unit too large to be walked was taken in by its parts, which are units of their own.
        """
        top = unit.partition("/")[0]
        for name in sorted((n for n in self.units if f"{n}/".startswith(f"{top}/")), key=_natural):
            statement = _leaves_of(self.id(name))
            if unit != top:
                start = func.substr(nodes.c.path, 1, len(unit) + 1)
                statement = statement.where(or_(nodes.c.path == unit, start == f"{unit}/"))
            position = -1
            while page := self._page(statement, position):
                yield from ((row.path, row.body_text_sha256) for row in page)
                position = page[-1].position

    def state(self, top: str) -> str | None:
        """Of a unit, or of all the parts it was taken in by."""
        parts = {state for name, state in self.units.items() if name.startswith(f"{top}/")}
        in_parts = "complete" if parts == {"complete"} else "partial"
        return self.units.get(top) or (in_parts if parts else None)

    def id(self, path: str) -> str:
        return f"{self._root}/{path}"

    def texts(self, paths: Sequence[str]) -> dict[str, str]:
        found = _texts(self._database, [self.id(path) for path in paths])
        return {path: found[self.id(path)] for path in paths}

    def sections(self, paths: Iterable[str]) -> dict[str, EditionSection]:
        """By path, in the order given."""
        wanted = {self.id(path): path for path in paths}
        columns = nodes.c.id, nodes.c.label, nodes.c.status, documents.c.citation_string
        statement = select(*columns).join(documents, documents.c.id == nodes.c.id)
        with self._database.read() as connection:
            rows = select_in(connection, statement, nodes.c.id, list(wanted))
            found = {row.id: _section(row) for row in rows}
        return {path: found[node_id] for node_id, path in wanted.items()}

    def _read_units(self, source: str, version: str) -> dict[str, str]:
        columns = code_units.c.version, code_units.c.unit, code_units.c.state
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(code_units.c.source == source)).all()
        units = {row.unit: row.state for row in rows if row.version == version}
        if not units:
            held = ", ".join(sorted({row.version for row in rows}, key=_natural)) or "none"
            raise UsageError(
                f"the library holds no edition {version} of {source}; it holds: {held}"
            )
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


def _texts(database: Database, wanted: Sequence[str]) -> dict[str, str]:
    statement = select(documents.c.id, documents.c.body_text).where(documents.c.owner.is_(None))
    with database.read() as connection:
        rows = select_in(connection, statement, documents.c.id, wanted)
        return {row.id: row.body_text for row in rows}


# Comparing --------------------------------------------------------------------------------


@dataclass(slots=True)
class _UnitDifference:
    """What differs between two editions of a unit: paths, in reading order."""

    old: dict[str, None] = field(default_factory=dict)
    new: dict[str, None] = field(default_factory=dict)
    unchanged: int = 0
    unread: list[str] = field(default_factory=list)

    def settle_unchanged(self, path: str) -> None:
        del self.old[path], self.new[path]
        self.unchanged += 1

    @property
    def repeated(self) -> set[str]:
        """Numbers that stand more than once, so that a path says little about who is who."""
        return {plain(path) for path in (*self.old, *self.new) if path != plain(path)}


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
    share, how = match.similarity, match.recognised_by
    return MovedSection(old=old, new=new, recognised_by=how, similarity=share)


def _differing(old: _EditionNodes, new: _EditionNodes, unit: str) -> _UnitDifference:
    found = _UnitDifference()
    before, after = dict(old.leaves(unit)), dict(new.leaves(unit))
    for path in before | after:
        hashes = [side[path] for side in (before, after) if path in side]
        if None in hashes:
            found.unread.append(path)
    for path in found.unread:
        before.pop(path, None)
        after.pop(path, None)
    same = {path for path, sha in before.items() if after.get(path) == sha}
    found.unchanged = len(same)
    found.old = {path: None for path in before if path not in same}
    found.new = {path: None for path in after if path not in same}
    return found


def _matches(old: _EditionNodes, new: _EditionNodes, differing: _UnitDifference) -> list[Match]:
    """Who is who: left where it stood, found elsewhere, or else rewritten in its place."""
    in_place = list(_in_place(old, new, differing))
    repeated = differing.repeated
    found = [
        match
        for match in in_place
        if match.similarity >= ALIKE and plain(match.old) not in repeated
    ]
    settled = {match.old for match in found}
    open_old = [path for path in differing.old if path not in settled]
    open_new = [path for path in differing.new if path not in settled]
    found += match_sections(open_old, open_new, old.texts, new.texts)
    olds, news = {match.old for match in found}, {match.new for match in found}
    found += [match for match in in_place if match.old not in olds and match.new not in news]
    order = {path: number for number, path in enumerate(differing.new)}
    return sorted(found, key=lambda match: order[match.new])


def _in_place(
    old: _EditionNodes, new: _EditionNodes, differing: _UnitDifference
) -> Iterator[Match]:
    """Sections that stand where they stood, less those in which no word has changed."""
    for batch in batched([path for path in differing.old if path in differing.new], TEXTS // 2):
        before, after = old.texts(batch), new.texts(batch)
        for path in batch:
            one, other = without_stamps(before[path]), without_stamps(after[path])
            if essence(one) == essence(other):
                differing.settle_unchanged(path)
            else:
                share = similarity(shingles(one), shingles(other))
                yield Match(old=path, new=path, recognised_by="number", similarity=share)
