"""What two bundles, or a library and a bundle, do not have in common."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Literal

from fonds.exchange.bundle.contents import (
    DOCUMENTS,
    EDITIONS,
    NODES,
    OF_DOCUMENTS,
    BundleFile,
    BundlePackage,
    Record,
    Resource,
    cut,
    read_line,
    read_part,
)
from fonds.exchange.bundle.create import records
from fonds.exchange.snapshot import Snapshot
from fonds.stores.blobs import Blobs

Change = Literal["added", "removed", "changed"]
Pair = tuple[Record | None, Record | None]
"""A row as it is here and there; one of them may be missing."""


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows in a row: a file, or what would be one."""

    part: BundleFile
    read: Callable[[], bytes]


Side = Callable[[Resource], Iterator[RowRun]]
"""Gives the rows of each table, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Something that is in the second but not in the first, or the other way, or not the same."""

    table: str
    """documents, editions or nodes"""
    id: str
    change: Change
    fields: tuple[str, ...] = ()
    """Of one that changed: fields, and tables whose rows of this document are not the same."""


def of_bundle(blobs: Blobs, package: BundlePackage) -> Side:
    """The rows of a bundle."""

    def runs(resource: Resource) -> Iterator[RowRun]:
        for part in package.parts[resource]:
            yield RowRun(part, partial(read_part, blobs, resource, part))

    return runs


def of_library(held: Snapshot, sources: tuple[str, ...] | None) -> Side:
    """The rows that a bundle of this library would have."""

    def runs(resource: Resource) -> Iterator[RowRun]:
        for filled in cut(resource, records(held, resource, sources)):
            yield RowRun(filled.part, filled.read)

    return runs


def differences(one: Side, other: Side) -> Iterator[Difference]:
    """All there is, documents first, each once; equal files are not even read."""
    pairs = {each: _pairs(each, one(each), other(each)) for each in (DOCUMENTS, *OF_DOCUMENTS)}
    streams = [_differing(resource, found) for resource, found in pairs.items()]
    by_document = groupby(heapq.merge(*streams, key=_id), key=_id)
    for _, found in by_document:
        yield _together(list(found))
    for resource in (EDITIONS, NODES):
        yield from _differing(resource, _pairs(resource, one(resource), other(resource)))


def _id(difference: Difference) -> str:
    return difference.id


def _differing(resource: Resource, pairs: Iterator[Pair]) -> Iterator[Difference]:
    last = None
    for here, there in pairs:
        owner = (here or there or {})[resource.owner]
        if resource not in OF_DOCUMENTS:
            yield _difference(resource, owner, here, there)
        elif owner != last:  # one is enough to know of them all
            last = owner
            fields = (resource.name,)
            yield Difference(table=DOCUMENTS.name, id=owner, change="changed", fields=fields)


def _difference(
    resource: Resource, owner: str, here: Record | None, there: Record | None
) -> Difference:
    if here is None or there is None:
        change: Change = "added" if here is None else "removed"
        return Difference(table=resource.name, id=owner, change=change)
    fields = tuple(name for name in here if here[name] != there[name])
    return Difference(table=resource.name, id=owner, change="changed", fields=fields)


def _together(found: list[Difference]) -> Difference:
    for each in found:
        if each.change != "changed":
            return each
    fields = tuple(name for each in found for name in each.fields)
    return Difference(table=found[0].table, id=found[0].id, change="changed", fields=fields)


def _pairs(resource: Resource, one: Iterator[RowRun], other: Iterator[RowRun]) -> Iterator[Pair]:
    here, there = _Cursor(resource, one), _Cursor(resource, other)
    while True:
        if here.pass_equal(there):
            continue
        first, second = here.key(), there.key()
        if first is None and second is None:
            return
        if second is None or (first is not None and first < second):
            yield here.take(), None
        elif first is None or second < first:
            yield None, there.take()
        else:
            mine, theirs = here.take(), there.take()
            if mine != theirs:
                yield mine, theirs


class _Cursor:
    """A place in the rows of one side."""

    def __init__(self, resource: Resource, runs: Iterator[RowRun]) -> None:
        self._resource = resource
        self._runs = runs
        self._run: RowRun | None = next(runs, None)
        self._lines: list[bytes] | None = None
        self._place = 0
        self._record: Record | None = None

    def pass_equal(self, other: _Cursor) -> bool:
        """Go past what begins here and is the same there: a file, or a row."""
        mine, theirs = self.begun(), other.begun()
        if mine is not None and mine == theirs:
            self.next_run()
            other.next_run()
            return True
        if self.line() is None or self.line() != other.line():
            return False
        self.pass_one()
        other.pass_one()
        return True

    def key(self) -> tuple[object, ...] | None:
        """Of the row that comes next; None at the end."""
        line = self.line()
        if line is None:
            return None
        if self._record is None:
            self._record = read_line(self._resource, line)
        return self._resource.key_of(self._record)

    def take(self) -> Record:
        """The row that comes next, which is then behind."""
        assert self._record is not None, "its key was asked for"
        record = self._record
        self.pass_one()
        return record

    def pass_one(self) -> None:
        """Leave the row that comes next behind."""
        assert self._lines is not None
        self._record = None
        self._place += 1
        if self._place == len(self._lines):
            self.next_run()

    def begun(self) -> str | None:
        """The hash of the file of which nothing is behind yet."""
        return self._run.part.sha256 if self._run is not None and self._place == 0 else None

    def line(self) -> bytes | None:
        """The row that comes next, as it is written."""
        if self._run is None:
            return None
        if self._lines is None:
            self._lines = self._run.read().splitlines(keepends=True)
        return self._lines[self._place]

    def next_run(self) -> None:
        """Leave the rest of a file behind."""
        self._run = next(self._runs, None)
        self._lines, self._record, self._place = None, None, 0
