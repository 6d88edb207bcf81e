"""The differences between two bundles, or between a library and a bundle."""

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
"""A row of both sides; one of them may be missing."""


@dataclass(frozen=True, slots=True)
class RowRun:
    """Consecutive rows: those of a file, or of one that a bundle would have."""

    part: BundleFile
    read: Callable[[], bytes]


RowSource = Callable[[Resource], Iterator[RowRun]]
"""The rows of each table of a bundle or library, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A document, edition or node that was added, removed or changed."""

    table: str
    """documents, editions or nodes"""
    id: str
    change: Change
    fields: tuple[str, ...] = ()
    """If it changed: its fields, and the tables with other rows of this document."""


def bundle_rows(blobs: Blobs, package: BundlePackage) -> RowSource:
    """The rows of a bundle."""

    def runs(resource: Resource) -> Iterator[RowRun]:
        for part in package.parts[resource]:
            yield RowRun(part, partial(read_part, blobs, resource, part))

    return runs


def library_rows(view: Snapshot, sources: tuple[str, ...] | None) -> RowSource:
    """The rows that a bundle of this library would have."""

    def runs(resource: Resource) -> Iterator[RowRun]:
        for filled in cut(resource, records(view, resource, sources)):
            yield RowRun(filled.part, filled.read)

    return runs


def differences(one: RowSource, other: RowSource) -> Iterator[Difference]:
    """All differences, documents first, each once; equal files are not read."""
    pairs = {each: _pairs(each, one(each), other(each)) for each in (DOCUMENTS, *OF_DOCUMENTS)}
    streams = [_differing(resource, changes) for resource, changes in pairs.items()]
    by_document = groupby(heapq.merge(*streams, key=_id), key=_id)
    for _, changes in by_document:
        yield _merged(list(changes))
    for resource in (EDITIONS, NODES):
        yield from _differing(resource, _pairs(resource, one(resource), other(resource)))


def _id(difference: Difference) -> str:
    return difference.id


def _differing(resource: Resource, pairs: Iterator[Pair]) -> Iterator[Difference]:
    last = None
    for left, right in pairs:
        owner = (left or right or {})[resource.owner]
        if resource not in OF_DOCUMENTS:
            yield _difference(resource, owner, left, right)
        elif owner != last:  # one difference for all rows of a document
            last = owner
            fields = (resource.name,)
            yield Difference(table=DOCUMENTS.name, id=owner, change="changed", fields=fields)


def _difference(
    resource: Resource, owner: str, left: Record | None, right: Record | None
) -> Difference:
    if left is None or right is None:
        change: Change = "added" if left is None else "removed"
        return Difference(table=resource.name, id=owner, change=change)
    fields = tuple(name for name in left if left[name] != right[name])
    return Difference(table=resource.name, id=owner, change="changed", fields=fields)


def _merged(changes: list[Difference]) -> Difference:
    for each in changes:
        if each.change != "changed":
            return each
    fields = tuple(name for each in changes for name in each.fields)
    return Difference(table=changes[0].table, id=changes[0].id, change="changed", fields=fields)


def _pairs(resource: Resource, one: Iterator[RowRun], other: Iterator[RowRun]) -> Iterator[Pair]:
    left, right = _Cursor(resource, one), _Cursor(resource, other)
    while True:
        if left.pass_equal(right):
            continue
        first, second = left.key(), right.key()
        if first is None and second is None:
            return
        if second is None or (first is not None and first < second):
            yield left.take(), None
        elif first is None or second < first:
            yield None, right.take()
        else:
            own, others = left.take(), right.take()
            if own != others:
                yield own, others


class _Cursor:
    """A position in the rows of one side."""

    def __init__(self, resource: Resource, runs: Iterator[RowRun]) -> None:
        self._resource = resource
        self._runs = runs
        self._run: RowRun | None = next(runs, None)
        self._lines: list[bytes] | None = None
        self._position = 0
        self._record: Record | None = None

    def pass_equal(self, other: _Cursor) -> bool:
        """Skip a file or a row that is equal on the other side; False if there is none."""
        own, others = self.run_hash(), other.run_hash()
        if own is not None and own == others:
            self.next_run()
            other.next_run()
            return True
        if self.line() is None or self.line() != other.line():
            return False
        self.pass_one()
        other.pass_one()
        return True

    def key(self) -> tuple[object, ...] | None:
        """The key of the next row; None at the end."""
        line = self.line()
        if line is None:
            return None
        if self._record is None:
            self._record = read_line(self._resource, line)
        return self._resource.key_of(self._record)

    def take(self) -> Record:
        """The next row, after which the cursor is moved."""
        assert self._record is not None, "its key was read"
        record = self._record
        self.pass_one()
        return record

    def pass_one(self) -> None:
        """Skip the next row."""
        assert self._lines is not None
        self._record = None
        self._position += 1
        if self._position == len(self._lines):
            self.next_run()

    def run_hash(self) -> str | None:
        """The hash of the current file, if none of its rows was passed."""
        return self._run.part.sha256 if self._run is not None and self._position == 0 else None

    def line(self) -> bytes | None:
        """The line of the next row."""
        if self._run is None:
            return None
        if self._lines is None:
            self._lines = self._run.read().splitlines(keepends=True)
        return self._lines[self._position]

    def next_run(self) -> None:
        """Skip the rest of the current file."""
        self._run = next(self._runs, None)
        self._lines, self._record, self._position = None, None, 0
