"""Verifies a bundle: hashes, counts, order, types, and that each row belongs to a document."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from fonds import ids
from fonds.errors import BundleError
from fonds.exchange.bundle.contents import (
    DOCUMENTS,
    EDITIONS,
    NODES,
    OF_DOCUMENTS,
    ORIGINS,
    PASSAGES,
    RESOURCES,
    BundleFile,
    Record,
    Resource,
    read_line,
    read_package,
    read_part,
)
from fonds.exchange.bundle.create import Watch, watched
from fonds.stores.blobs import Blobs

MAX_PROBLEMS: Final = 100
"""Problems that are reported; all are counted."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PROVENANCE: Final = ("citation_string", "source_url", "source_org")


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleProblem:
    """A problem of a bundle."""

    where: str
    """A file and a line of it, or an id."""
    what: str


@dataclass(kw_only=True, slots=True)
class BundleReport:
    """The result of verifying a bundle."""

    root: str | None = None
    content: str | None = None
    records: Mapping[str, int] = field(default_factory=dict)
    problems: list[BundleProblem] = field(default_factory=list)
    count: int = 0
    """The number of all problems, reported or not."""

    def add(self, where: str, what: str) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(BundleProblem(where=where, what=what))


def verify(blobs: Blobs, where: str, *, watch: Watch | None = None) -> BundleReport:
    """Read a whole bundle, and report its problems."""
    report = BundleReport()
    try:
        package = read_package(blobs, where)
    except BundleError as error:
        report.add(where, str(error))
        return report
    report.root, report.content = package.root, package.content
    report.records = {each.name: package.records(each) for each in RESOURCES}

    def rows(resource: Resource) -> Iterator[Record]:
        table = _BundleTable(blobs, resource, report)
        return watched(table.rows(package.parts[resource]), resource, watch)

    _check_documents({each: rows(each) for each in (DOCUMENTS, *OF_DOCUMENTS)}, report)
    for resource in (EDITIONS, NODES):
        for _ in rows(resource):
            pass
    return report


class _BundleTable:
    """Reads a table of a bundle, and adds problems to a report."""

    def __init__(self, blobs: Blobs, resource: Resource, report: BundleReport) -> None:
        self._blobs = blobs
        self._resource = resource
        self._report = report
        self._last: tuple[object, ...] | None = None

    def rows(self, parts: Sequence[BundleFile]) -> Iterator[Record]:
        """All readable rows."""
        for part in parts:
            try:
                data = read_part(self._blobs, self._resource, part)
            except BundleError as error:
                self._report.add(self._resource.name, str(error))
                continue
            lines = data.splitlines(keepends=True)
            path = part.path(self._resource)
            if len(lines) != part.records:
                self._report.add(path, f"has {len(lines):,} rows instead of {part.records:,}")
            for number, line in enumerate(lines, 1):
                yield from self._row(f"{path}:{number}", line)

    def _row(self, where: str, line: bytes) -> Iterator[Record]:
        try:
            record = read_line(self._resource, line)
        except BundleError as error:
            self._report.add(where, str(error))
            return
        key = self._resource.key_of(record)
        if self._last is not None and key <= self._last:
            self._report.add(where, f"{key!r} does not come after {self._last!r}")
            return
        self._last = key
        yield record


def _check_documents(rows: Mapping[Resource, Iterator[Record]], report: BundleReport) -> None:
    streams = [_owned(resource, table_rows) for resource, table_rows in rows.items()]
    for owner, group in groupby(heapq.merge(*streams, key=_owner), key=_owner):
        counts: Counter[Resource] = Counter()
        for _, resource, record in group:
            counts[resource] += 1
            for fault in _faults(resource, record):
                report.add(f"{resource.name} {owner}", fault)
        if not counts[DOCUMENTS]:
            report.add(owner, "has rows, but there is no such document")
            continue
        if not counts[ORIGINS]:
            report.add(owner, "has no provenance: the hash of its bytes is missing")
        if not counts[PASSAGES]:
            report.add(owner, "has no passages")


_Owned = tuple[str, Resource, Record]


def _owned(resource: Resource, rows: Iterator[Record]) -> Iterator[_Owned]:
    for record in rows:
        yield record[resource.owner], resource, record


def _owner(owned: _Owned) -> str:
    return owned[0]


def _faults(resource: Resource, record: Record) -> Iterator[str]:
    if resource is DOCUMENTS:
        for name in _PROVENANCE:
            if not record[name]:
                yield f"its {name} is empty"
        text = record["body_text"]
        if record["body_text_sha256"] != (None if text is None else ids.text_sha256(text)):
            yield "its text does not match its hash"
    elif resource is PASSAGES and ids.chunk_sha(record["text"]) != record["sha256"]:
        yield f"passage {record['ord']} does not match its hash"
    elif resource is ORIGINS and not _SHA256.fullmatch(record["raw_sha256"]):
        yield "it has no provenance: the hash of its bytes is invalid"
