"""Verification: a document's text and passages derived again from the archive, and compared.

The raw bytes, the normalizer's Markdown and the chunker's passages are compared in steps, so that
the step that differs is named. Nothing is written or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import Connection, Row, select

from fonds import ids
from fonds.chunk.chunker import CHUNKER_NAME, CHUNKER_VERSION, Chunker
from fonds.context import Context
from fonds.errors import FondsError, UnknownDocumentError
from fonds.model import (
    Archived,
    Chunk,
    Document,
    FetchTask,
    NormalizedBody,
    ParsedRecord,
    Raw,
    RawPart,
)
from fonds.normalize.registry import get_normalizer, normalizer_names
from fonds.results import Verification, VerificationStep
from fonds.runs.normalization import (
    normalize_archived,
    passages_of_text,
    prepare_write,
    source_address,
)
from fonds.sources.base import Source
from fonds.stores.blobs import read_reference
from fonds.stores.citations import resolve
from fonds.stores.documents import visible_to
from fonds.stores.passages import chunk_meta
from fonds.stores.tables import document_chunk_buffer, documents

FindSource = Callable[[str], Source]

_Outcome = Literal["match", "differs", "unproven"]
_Name = Literal["raw", "body", "record", "text", "passages"]
_PASSAGE: Final = re.compile(r"(?P<name>.+)#(?P<ordinal>[0-9]{1,9})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CHUNKER: Final = re.compile(r"(?P<label>\S+):(?P<most>\d+)/(?P<overlap>\d+)\Z")
_MAX_EXCERPT: Final = 60
"""Characters of a difference."""


def verify(
    context: Context,
    name: str,
    *,
    owner: UUID | None = None,
    find_source: FindSource | None = None,
) -> Verification:
    """Derive a document, or one passage of it, again from the archive, and compare each step.

    `name` is an id or alias; of a passage `ID#n` or its UUID. `owner` is the user whose uploads are
    visible next to public documents.
    """
    with context.database.read() as connection:
        row, ordinal = _find(connection, name.replace("\0", "\ufffd"), owner)
        derivation = _Derivation(
            context,
            row,
            find_source or context.sources.parser,
            _passages(connection, row.uid, ordinal),
        )
    if ordinal is not None and not derivation.passages:
        raise UnknownDocumentError(f"{row.id} has no passage {ordinal}")
    steps = list(derivation.steps(ordinal))
    wrong = [step for step in steps if step.outcome == "differs"]
    wrong += [step for step in steps if step.outcome == "unproven"]
    return Verification(
        verdict=wrong[0].outcome if wrong else "match",
        reason=f"{wrong[0].name}: {wrong[0].says}" if wrong else None,
        id=row.id,
        passage=ordinal,
        chunk_id=derivation.passages[0].chunk_id if ordinal is not None else None,
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
class _Derived:
    """The title, summary and text that the archived bytes yield."""

    title: str
    summary: str | None
    text: NormalizedBody | None


@dataclass(frozen=True, slots=True)
class _Derivation:
    context: Context
    row: Row[Any]
    find_source: FindSource
    passages: Sequence[Row[Any]]
    """The stored passages that are compared."""

    def steps(self, ordinal: int | None) -> Iterator[VerificationStep]:
        """The steps in their order, up to the first that differs."""
        raw = self._raw()
        yield raw
        if self.row.body_raw_path not in {None, self.row.raw_path}:
            raw = self._second_file()
            yield raw
        if raw.outcome != "match":
            return
        step, derived = self._text() if self.row.body_text is not None else self._record()
        yield step
        if derived is not None:
            yield self._cut(derived, ordinal)

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
            return _step("raw", "differs", f"{key} cannot be read: {error}")
        return _compared("raw", key, expected, digest.hexdigest())

    def _second_file(self) -> VerificationStep:
        return self._compare_hash("body", self.row.body_raw_path, self.row.body_raw_sha256)

    def _compare_hash(self, name: _Name, key: str, expected: str) -> VerificationStep:
        try:
            data = read_reference(self.context.blobs, key)
        except FondsError as error:
            return _step(name, "differs", f"{key} cannot be read: {error}")
        return _compared(name, key, expected, sha256(data).hexdigest())

    # Text -------------------------------------------------------------------------------------

    def _text(self) -> tuple[VerificationStep, _Derived | None]:
        row = self.row
        name = row.body_normalizer_version.partition("@")[0]
        if name not in normalizer_names():
            return self._record()
        try:
            text = normalize_archived(self.context, row.id, name, row.body_raw_path, row.body_map)
        except FondsError as error:
            return _step("text", "differs", f"{name} cannot read the bytes: {error}"), None
        message = f"{row.body_normalizer_version} gives the same {len(row.body_text):,} characters"
        if (current := get_normalizer(name).label) != row.body_normalizer_version:
            message = f"{current} gives the same text as {row.body_normalizer_version} did"
        if text.markdown != row.body_text:
            return _step("text", "differs", self._text_differs(text, current)), _Derived(
                row.title, row.summary, text
            )
        if ids.text_sha256(row.body_text) != row.body_text_sha256:
            return _step("text", "differs", "the hash that is recorded is not the text's"), None
        return _step("text", "match", message), _Derived(row.title, row.summary, text)

    def _text_differs(self, text: NormalizedBody, current: str) -> str:
        row = self.row
        difference = _difference(row.body_text, text.markdown)
        if ids.text_sha256(row.body_text) != row.body_text_sha256:
            return f"the stored text was changed after it was derived: {difference}"
        if current != row.body_normalizer_version:
            return (
                f"{row.body_normalizer_version} derived it and this program has {current}, "
                f"which may be the reason; `fonds renormalize` updates it: {difference}"
            )
        return difference

    # Record -----------------------------------------------------------------------------------

    def _record(self) -> tuple[VerificationStep, _Derived | None]:
        """Parse the raw files again with their source, for texts that no normalizer makes."""
        row = self.row
        if row.body_raw_path is not None and row.body_text is None:
            why = "its text is still to be derived: `fonds normalize --drain`"
            return _step("text", "unproven", why), None
        try:
            record = self._parsed()
        except Exception as error:  # noqa: BLE001 — files that belong together may break a parser
            why = f"{row.source} cannot read the file by itself: {error}"
            return _step("record", "unproven", why), None
        if record is None or record.document is None:
            why = f"{row.raw_path} alone does not describe it; it was joined from several files"
            return _step("record", "unproven", why), None
        return self._compare(record, record.document)

    def _parsed(self) -> ParsedRecord | None:
        row = self.row
        source = self.find_source(row.source)
        task = FetchTask(source=row.source, key=row.task_key or row.id, parts=())
        for item in source.parse(Raw(task=task, parts=tuple(self._parts()))):
            if isinstance(item, ParsedRecord) and item.document and item.document.id == row.id:
                return item
        return None

    def _parts(self) -> Iterator[RawPart]:
        row = self.row
        for key in dict.fromkeys(filter(None, (row.raw_path, row.body_raw_path))):
            data = read_reference(self.context.blobs, key)
            archived = Archived(
                url=source_address(self.context, row.id, key) or key,
                key=key,
                sha256=sha256(data).hexdigest(),
                size=len(data),
                retrieved_at=row.retrieved_at,
            )
            yield RawPart(name="", archived=archived, data=data)

    def _compare(
        self, record: ParsedRecord, document: Document
    ) -> tuple[VerificationStep, _Derived | None]:
        row = self.row
        text = document.body.normalized if document.body else None
        stored = {"title": row.title, "summary": row.summary, "text": row.body_text}
        again = {
            "title": document.title,
            "summary": document.summary,
            "text": text.markdown if text else None,
        }
        derived = _Derived(document.title, document.summary, text)
        for name, value in stored.items():
            if value != again[name]:
                difference = f"another {name}: {_difference(value or '', again[name] or '')}"
                return self._differs(record, difference)
        return _step(
            "record", "match", f"{row.source} reads the same record from the file"
        ), derived

    def _differs(
        self, record: ParsedRecord, difference: str
    ) -> tuple[VerificationStep, _Derived | None]:
        chunker = self._chunker() or self.context.chunker
        content = prepare_write(record, self.row.task_key or "", chunker).content_sha256
        if content == self.row.content_sha256:
            return _step("record", "differs", f"the stored record was changed: {difference}"), None
        why = "the file alone gives it, and it was joined from several or is read otherwise by now"
        return _step("record", "unproven", f"{difference}; {why}"), None

    # Passages ---------------------------------------------------------------------------------

    def _chunker(self) -> Chunker | None:
        """A chunker with the recorded sizes, whatever the settings are today."""
        sizes = _CHUNKER.search(self.row.recipe)
        if sizes is None:
            return None
        return Chunker(max_tokens=int(sizes["most"]), overlap_tokens=int(sizes["overlap"]))

    def _cut(self, derived: _Derived, ordinal: int | None) -> VerificationStep:
        chunker = self._chunker() or self.context.chunker
        passages = passages_of_text(
            self.row.id, derived.title, derived.summary, derived.text, chunker
        )
        again = passages.chunks if ordinal is None else passages.chunks[ordinal : ordinal + 1]
        difference = self._cut_differs(again)
        if difference is None:
            what = f"passage {ordinal}" if ordinal is not None else f"all {len(again):,} passages"
            return _step("passages", "match", f"the chunker gives {what} again")
        label = f"{CHUNKER_NAME}@{CHUNKER_VERSION}"
        recorded = {f"{row.chunker_name}@{row.chunker_version}" for row in self.passages}
        if recorded - {label}:
            labels = ", ".join(sorted(recorded))
            difference = f"{labels} cut it and this program has {label}: {difference}"
        return _step("passages", "differs", difference)

    def _cut_differs(self, again: Sequence[Chunk]) -> str | None:
        for row, chunk in zip(self.passages, again, strict=False):
            if (difference := _passage_differs(row, chunk)) is not None:
                return f"passage {row.chunk_ord} {difference}"
        if len(self.passages) != len(again):
            return f"{len(self.passages):,} passages are stored, and the text gives {len(again):,}"
        return None


def _passage_differs(row: Row[Any], chunk: Chunk) -> str | None:
    if row.text != chunk.text:
        return f"has other words: {_difference(row.text, chunk.text)}"
    if row.chunk_sha != ids.chunk_sha(row.text):
        return "is recorded with a hash that is not its own"
    meta = chunk_meta(chunk)
    for name in ("start", "end", "locator"):
        if row.meta.get(name) != meta[name]:
            return f"is recorded with the {name} {row.meta.get(name)}, not {meta[name]}"
    if row.chunk_ord != chunk.ordinal:
        return f"should be passage {chunk.ordinal}"
    return None


def _step(name: _Name, outcome: _Outcome, text: str) -> VerificationStep:
    return VerificationStep(name=name, outcome=outcome, says=text)


def _compared(name: _Name, key: str, expected: str, actual: str) -> VerificationStep:
    if actual == expected:
        return _step(name, "match", f"{key} has the sha256 {expected}")
    return _step(name, "differs", f"{key} has the sha256 {actual}, not {expected}")


def _difference(stored: str, again: str) -> str:
    """The position where two texts begin to differ, with a few words of each."""
    pairs = enumerate(zip(stored, again, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(stored), len(again)))
    return f"at character {at:,}: stored {_words(stored, at)}, derived {_words(again, at)}"


def _words(text: str, at: int) -> str:
    begin = max(0, text.rfind(" ", 0, at) + 1 if at - text.rfind(" ", 0, at) < _MAX_EXCERPT else at)
    excerpt = " ".join(text[begin : begin + _MAX_EXCERPT].split())
    return f"“{excerpt}”" if excerpt else "nothing"
