"""Verification: a document's text and passages derived again from the archive, and compared.

The raw bytes, the normalizer's Markdown and the chunker's passages are compared in steps, so that
the step that differs is named. Nothing is written or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from fonds.context import Context
from fonds.errors import EngineError, FondsError, UnknownDocumentError, UsageError
from fonds.normalize.registry import normalizer_names
from fonds.results import Verification, VerificationStep
from fonds.runs.derivation import (
    ArchivedFile,
    DerivationInput,
    StepName,
    StoredDocument,
    StoredPassage,
    derive_again,
    step_of,
)
from fonds.runs.normalization import source_address
from fonds.sources.base import Source
from fonds.stores.blobs import read_reference
from fonds.stores.citations import resolve
from fonds.stores.documents import visible_to
from fonds.stores.tables import document_chunk_buffer, documents

T = TypeVar("T")

FindSource = Callable[[str], Source]

_PASSAGE: Final = re.compile(r"(?P<name>.+)#(?P<ordinal>[0-9]{1,9})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MIB: Final = 1 << 20


def verify(
    context: Context,
    name: str,
    *,
    owner: UUID | None = None,
    find_source: FindSource | None = None,
    max_bytes: int | None = None,
) -> Verification:
    """Derive a document, or one passage of it, again from the archive, and compare each step.

    `name` is an id or alias; of a passage `ID#n` or its UUID. `owner` is the user whose uploads are
    visible next to public documents. A reader process derives it; UsageError if its file and text
    have more than `max_bytes`.
    """
    with context.database.read() as connection:
        row, ordinal = _find(connection, name.replace("\0", "\ufffd"), owner)
        passages = _passages(connection, row.uid, ordinal)
    if ordinal is not None and not passages:
        raise UnknownDocumentError(f"{row.id} has no passage {ordinal}")
    proof = _Proof(
        context, row, passages, ordinal, find_source or context.sources.parser, max_bytes
    )
    steps = list(proof.steps())
    wrong = [step for step in steps if step.outcome == "differs"]
    wrong += [step for step in steps if step.outcome == "unproven"]
    return Verification(
        verdict=wrong[0].outcome if wrong else "match",
        reason=f"{wrong[0].name}: {wrong[0].says}" if wrong else None,
        id=row.id,
        passage=ordinal,
        chunk_id=passages[0].chunk_id if ordinal is not None else None,
        title=row.title,
        citation_string=row.citation_string,
        source_url=row.source_url,
        fetched_from=source_address(context, row.id, row.body_raw_path or row.raw_path),
        retrieved_at=row.retrieved_at,
        raw_path=row.raw_path,
        raw_sha256=row.raw_sha256,
        body_raw_path=row.body_raw_path,
        body_raw_sha256=row.body_raw_sha256,
        normalizer=row.body_normalizer_version,
        chunker=row.recipe.partition(" ")[2],
        steps=steps,
    )


def sample(context: Context, source: str, count: int) -> list[str]:
    """The ids of random public documents of a source."""
    # A document's UUID is a hash: those that follow a random one are random documents.
    after = UUID(int=context.seams.rng.getrandbits(128))
    table = documents.c
    query = select(table.id).where(table.source == source, visible_to(None)).limit(count)
    with context.database.read() as connection:
        drawn = list(connection.scalars(query.where(table.uid >= after).order_by(table.uid)))
        rest = query.where(table.uid < after).order_by(table.uid)
        return [*drawn, *connection.scalars(rest.limit(count - len(drawn)))]


# Finding the document ---------------------------------------------------------------------


def _find(connection: Connection, name: str, owner: UUID | None) -> tuple[Row[Any], int | None]:
    table, chunk = documents.c, document_chunk_buffer.c
    visible = select(documents).where(visible_to(owner))
    if _UUID.fullmatch(name):
        query = select(chunk.document_id, chunk.chunk_ord).where(chunk.chunk_id == UUID(name))
        if passage := connection.execute(query).one_or_none():
            row = connection.execute(visible.where(table.uid == passage.document_id)).one_or_none()
            if row is not None:
                return row, int(passage.chunk_ord)
    parts = _PASSAGE.fullmatch(name)
    ordinal = int(parts["ordinal"]) if parts else None
    for alias, number in ((name, None), (parts["name"] if parts else name, ordinal)):
        document_id = resolve(connection, {alias}).get(alias, alias)
        for key in (alias, document_id):
            row = connection.execute(visible.where(table.id == key)).one_or_none()
            if row is not None:
                return row, number
    raise UnknownDocumentError(
        f"the library has no document or passage {name!r}; `fonds resolve` finds it by its citation"
    )


def _passages(connection: Connection, uid: UUID, ordinal: int | None) -> Sequence[Row[Any]]:
    chunk = document_chunk_buffer
    query = select(chunk).where(chunk.c.document_id == uid).order_by(chunk.c.chunk_ord)
    if ordinal is not None:
        query = query.where(chunk.c.chunk_ord == ordinal)
    return connection.execute(query).all()


@dataclass(frozen=True, slots=True)
class _Proof:
    context: Context
    row: Row[Any]
    passages: Sequence[Row[Any]]
    """The stored passages that are compared."""
    ordinal: int | None
    find_source: FindSource
    max_bytes: int | None

    def steps(self) -> Iterator[VerificationStep]:
        """The steps in their order, up to the first that differs."""
        row = self.row
        if not row.raw_path:
            yield step_of("raw", "unproven", f"its bytes are not here: it is from {_bundle(row)}")
            return
        self._require_small()
        raw = self._raw()
        yield raw
        if row.body_raw_path not in {None, row.raw_path}:
            raw = self._second_file()
            yield raw
        if raw.outcome == "match":
            yield from self._derived()

    def _derived(self) -> Sequence[VerificationStep]:
        row = self.row
        if row.body_raw_path is not None and row.body_text is None:
            why = "its text is still to be derived: `fonds normalize --drain`"
            return [step_of("text", "unproven", why)]
        name = (row.body_normalizer_version or "").partition("@")[0]
        is_normalized = row.body_text is not None and name in normalizer_names()
        try:
            parser = None if is_normalized else self.find_source(row.source)
        except FondsError as error:
            why = f"{row.source} cannot read the file by itself: {error}"
            return [step_of("record", "unproven", why)]
        work = self._work(parser)
        try:
            steps = self.context.readers.read_now(derive_again, work, key=work.key)
            return _steps_adapter().validate_python(steps)
        except EngineError as error:
            kind: StepName = "text" if parser is None else "record"
            return [step_of(kind, "unproven", f"its file cannot be read: {error}")]

    # Bytes ------------------------------------------------------------------------------------

    def _raw(self) -> VerificationStep:
        key, expected = self.row.raw_path, self.row.raw_sha256
        if "#" in key:
            return self._compare_hash("raw", key, expected)
        digest = sha256()
        try:
            for chunk in self.context.blobs.stream(key):
                digest.update(chunk)
        except FondsError as error:
            return step_of("raw", "differs", f"{key} cannot be read: {error}")
        return _compared("raw", key, expected, digest.hexdigest())

    def _second_file(self) -> VerificationStep:
        return self._compare_hash("body", self.row.body_raw_path, self.row.body_raw_sha256)

    def _compare_hash(self, name: StepName, key: str, expected: str) -> VerificationStep:
        try:
            data = read_reference(self.context.blobs, key)
        except FondsError as error:
            return step_of(name, "differs", f"{key} cannot be read: {error}")
        return _compared(name, key, expected, sha256(data).hexdigest())

    def _work(self, parser: Source | None) -> DerivationInput:
        row, context = self.row, self.context
        keys = [row.body_raw_path] if parser is None else [row.raw_path, row.body_raw_path]
        files = [
            ArchivedFile(
                key=key,
                data=read_reference(context.blobs, key),
                address=source_address(context, row.id, key),
            )
            for key in dict.fromkeys(filter(None, keys))
        ]
        return DerivationInput(
            document=_columns(StoredDocument, row),
            passages=[_columns(StoredPassage, passage) for passage in self.passages],
            ordinal=self.ordinal,
            files=files,
            parser=parser,
            max_tokens=context.chunker.max_tokens,
            overlap_tokens=context.chunker.overlap_tokens,
        )

    def _require_small(self) -> None:
        if self.max_bytes is None:
            return
        keys = {self.row.raw_path, self.row.body_raw_path} - {None}
        files = [self.context.blobs.head(key) for key in keys if "#" not in key]
        size = sum(file.size for file in files if file) + len(self.row.body_text or "")
        if size > self.max_bytes:
            limit = f"{self.max_bytes / MIB:.0f} MiB"
            raise UsageError(
                f"{self.row.id} has more than {limit}, the limit of a server: run `fonds verify`"
            )


def _bundle(row: Row[Any]) -> str:
    root, _, key = (row.bundle or "").partition(" ")
    return f"bundle {root}, key {key or 'none'}"


@cache
def _steps_adapter() -> TypeAdapter[list[VerificationStep]]:
    return TypeAdapter(list[VerificationStep])


def _columns(kind: type[T], row: Row[Any]) -> T:
    """A record of the columns that it has fields for."""
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]  # all are dataclasses
    return kind(**{name: getattr(row, name) for name in names})


def _compared(name: StepName, key: str, expected: str, actual: str) -> VerificationStep:
    if actual == expected:
        return step_of(name, "match", f"{key} has the sha256 {expected}")
    return step_of(name, "differs", f"{key} has the sha256 {actual}, not {expected}")
