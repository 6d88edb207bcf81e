"""Verifies a bundle: hashes, counts, order, types, and that each row belongs to a document."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final

from fonds import ids
from fonds.errors import BundleError
from fonds.exchange.bundle.contents import (
    DESCRIPTOR,
    DOCUMENTS,
    EDITIONS,
    INPUTS,
    NODES,
    OF_DOCUMENTS,
    ORIGINS,
    PASSAGES,
    RESOURCES,
    BundleFile,
    BundlePackage,
    Record,
    Resource,
    read_line,
    read_package,
    read_part,
)
from fonds.exchange.bundle.create import Watch, watched
from fonds.exchange.bundle.groups import DocumentRows, bundle_documents, bundle_table
from fonds.exchange.bundle.raw import RAW, RawPackage, read_container, read_raw_package
from fonds.exchange.bundle.statement import STATEMENT, Statement, read_statement
from fonds.stores.blobs import Blobs
from fonds.stores.documents import body_map as stored_map
from fonds.stores.documents import stored_text

MAX_PROBLEMS: Final = 100
"""Problems that are reported; all are counted."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
UPLOADS: Final = "upload"
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
    raw: str | None = None
    """The hash over the publishers' bytes, if it has them."""
    made_at: str | None = None
    key: str | None = None
    """The key that signed it."""

    def add(self, where: str, what: str) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(BundleProblem(where=where, what=what))


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedBundle:
    """A bundle with the report on it; what could not be read is None."""

    report: BundleReport
    package: BundlePackage | None = None
    raw: RawPackage | None = None
    statement: Statement | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedBundle:
    """A bundle that was checked by itself: all that it consists of belongs together."""

    blobs: Blobs
    address: str
    package: BundlePackage
    raw: RawPackage | None
    statement: Statement | None

    @property
    def label(self) -> str:
        """Root and key, as every document of it carries them."""
        key = self.statement.key if self.statement else None
        return f"{self.package.root} {key}" if key else self.package.root

    @property
    def made_at(self) -> datetime | None:
        """When it was made, if it says so."""
        return self.statement.made if self.statement else None

    def documents(self) -> Iterator[tuple[str, DocumentRows]]:
        """All documents, each with its rows."""
        return bundle_documents(self.blobs, self.package)

    def table(self, resource: Resource) -> Iterator[Record]:
        """The rows of a table."""
        return bundle_table(self.blobs, self.package, resource)


def verify(blobs: Blobs, where: str, *, watch: Watch | None = None) -> BundleReport:
    """Read a whole bundle, and report its problems."""
    return read_verified(blobs, where, watch=watch).report


def read_verified(
    blobs: Blobs, where: str, *, with_containers: bool = True, watch: Watch | None = None
) -> VerifiedBundle:
    """As `verify`, with the descriptors of the bundle; its containers may be checked later."""
    report = BundleReport()
    try:
        package = read_package(blobs, where)
        raw, statement = read_raw_package(blobs), read_statement(blobs)
    except BundleError as error:
        report.add(where, str(error))
        return VerifiedBundle(report=report)
    report.root, report.content = package.root, package.content
    report.raw = raw.sha256 if raw else None
    report.records = {each.name: package.records(each) for each in RESOURCES}
    _check_statement(package, raw, statement, report)

    def rows(resource: Resource, parts: Sequence[BundleFile]) -> Iterator[Record]:
        table = _BundleTable(blobs, resource, report)
        return watched(table.rows(parts), resource, watch)

    _check_documents(
        {each: rows(each, package.parts[each]) for each in (DOCUMENTS, *OF_DOCUMENTS)}, report
    )
    for resource in (EDITIONS, NODES):
        for _ in rows(resource, package.parts[resource]):
            pass
    if raw is not None:
        for _ in rows(INPUTS, raw.inputs):
            pass
        if with_containers:
            _check_containers(blobs, raw, report, watch)
    return VerifiedBundle(report=report, package=package, raw=raw, statement=statement)


def require_valid(
    blobs: Blobs, address: str, *, key: str | None, with_containers: bool, watch: Watch | None
) -> CheckedBundle:
    """Check a bundle by itself; BundleError with the first problem.

    Containers that are still to be fetched are checked when they are unpacked.
    """
    verified = read_verified(blobs, address, with_containers=with_containers, watch=watch)
    report, package, statement = verified.report, verified.package, verified.statement
    if package is not None:
        # A `create` that was interrupted leaves some behind, of which `verify` says nothing.
        _check_names(blobs, package, verified.raw, report)
    if report.problems:
        first = report.problems[0]
        more = f", and {report.count - 1:,} more problems" if report.count > 1 else ""
        raise BundleError(
            f"the bundle is refused, and nothing was changed: {first.where}: {first.what}{more}; "
            "`fonds bundle verify` lists all"
        )
    assert package is not None
    signed_by = statement.key if statement else None
    if key is not None and signed_by != key:
        signer = f"by {signed_by}" if signed_by else "by no key"
        raise BundleError(
            f"the bundle is refused, and nothing was changed: it should be signed by {key}, and is "
            f"signed {signer}"
        )
    return CheckedBundle(
        blobs=blobs, address=address, package=package, raw=verified.raw, statement=statement
    )


def _check_statement(
    package: BundlePackage,
    raw: RawPackage | None,
    statement: Statement | None,
    report: BundleReport,
) -> None:
    if statement is None:
        if raw is not None:
            report.add(STATEMENT, f"is missing, and a bundle with {RAW} has one")
        return
    report.made_at, report.key = statement.made_at, statement.key
    if statement.root != package.root:
        report.add(STATEMENT, f"is about another bundle, with the root {statement.root}")
    if statement.raw != report.raw:
        report.add(STATEMENT, f"is about other bytes of publishers: {statement.raw or 'none'}")


def _check_names(
    blobs: Blobs, package: BundlePackage, raw: RawPackage | None, report: BundleReport
) -> None:
    """Report files that no descriptor names."""
    names = {DESCRIPTOR, STATEMENT}
    names |= {part.path(each) for each, parts in package.parts.items() for part in parts}
    if raw is not None:
        names |= {RAW, *(part.path(INPUTS) for part in raw.inputs)}
        names |= {container.path for container in raw.containers}
    for info in blobs.list():
        if info.key not in names:
            report.add(info.key, "does not belong to the bundle: remove it")


def _check_containers(
    blobs: Blobs, raw: RawPackage, report: BundleReport, watch: Watch | None
) -> None:
    checked = 0
    for container in raw.containers:
        try:
            checked += sum(1 for _ in read_container(blobs, container))
        except BundleError as error:
            report.add(container.path, str(error))
        if watch is not None:
            watch("files of publishers", checked)


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
        text: str | None = None
        for _, resource, record in group:
            counts[resource] += 1
            if resource is DOCUMENTS:
                text = record["body_text"]
            for fault in (*_faults(resource, record), *_misplaced(resource, record, text)):
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
        text = record["body_text"]
        for name in _PROVENANCE:
            if not record[name]:
                yield f"its {name} is empty"
        text = record["body_text"]
        if not _is_text_map(record["body_map"], text):
            yield "the map of its text is malformed"
        if record["source"] == UPLOADS or record["id"].startswith(f"{UPLOADS}:"):
            yield "it is an upload, which is in no bundle"
        if record["body_text_sha256"] != (None if text is None else ids.text_sha256(text)):
            yield "its text does not match its hash"
    elif resource is PASSAGES and ids.chunk_sha(record["text"]) != record["sha256"]:
        yield f"passage {record['ord']} does not match its hash"
    elif resource is ORIGINS and not _SHA256.fullmatch(record["raw_sha256"]):
        yield "it has no provenance: the hash of its bytes is invalid"


def _misplaced(resource: Resource, record: Record, text: str | None) -> Iterator[str]:
    """Faults of a passage: its id is computed, and its text is an exact slice."""
    if resource is not PASSAGES:
        return
    name, _, version = record["chunker"].rpartition("@")
    uid = ids.document_uid(record["document"])
    if record["id"] != str(ids.chunk_id(uid, name, version, record["ord"])):
        yield f"passage {record['ord']} does not have the id that follows from its document"
    if not _is_locator(record["locator"]):
        yield f"passage {record['ord']} has a malformed locator"
    start, end = record["start"], record["end"]
    # Without words in its text, a document has one passage made of its title and summary.
    if text is not None and text.strip() and text[start:end] != record["text"]:
        yield f"passage {record['ord']} is not what the text has at its place"


def _is_locator(locator: Mapping[str, object]) -> bool:
    """True if all its values are texts, numbers or lists of texts, and it has its headings."""
    return isinstance(locator.get("heading_path"), list) and all(
        type(value) in {str, int} or _is_texts(value) for value in locator.values()
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text_map(body_map: Mapping[str, object] | None, text: str | None) -> bool:
    """True if a text has a map that it can be cut by, and a document without one has none."""
    if body_map is None or text is None:
        return text is None
    try:
        stored = stored_text(text, body_map)
        is_whole = stored_map(stored) == body_map
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    offsets = [each.offset for each in stored.headings] + [each.offset for each in stored.pages]
    labels = [each.section for each in stored.headings] + [each.page for each in stored.pages]
    texts = [*stored.above, *filter(None, labels)]
    return is_whole and _is_texts(texts) and all(type(each) is int for each in offsets)
