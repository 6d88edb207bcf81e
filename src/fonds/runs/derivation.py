"""Derive a document again from archived bytes, and compare it with the stored one.

The normalizer's Markdown and the chunker's passages are compared in steps, so that the step that
differs is named. A reader process does this; nothing is written, fetched or looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Literal

from fonds import ids
from fonds.chunk.chunker import CHUNKER_NAME, CHUNKER_VERSION, Chunker
from fonds.engine.readers import ReadingKey
from fonds.errors import FondsError
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
from fonds.normalize.registry import NormalizerInput, get_normalizer, make_text
from fonds.results import VerificationStep
from fonds.runs.normalization import passages_of_text, prepare_write, with_metadata
from fonds.sources.base import Source
from fonds.stores.passages import chunk_meta

Verdict = Literal["match", "differs", "unproven"]
StepName = Literal["raw", "body", "record", "text", "passages"]

_CHUNKER: Final = re.compile(r"(?P<label>\S+):(?P<most>\d+)/(?P<overlap>\d+)\Z")
_MAX_EXCERPT: Final = 60
"""Characters of a difference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDocument:
    """The columns of a document that are compared, or that decide what its bytes yield."""

    id: str
    source: str
    title: str
    summary: str | None
    task_key: str | None
    content_sha256: str
    recipe: str
    retrieved_at: datetime
    body_text: str | None
    body_text_sha256: str | None
    body_normalizer_version: str | None
    body_map: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPassage:
    """The columns of a passage that are compared."""

    chunk_ord: int
    text: str
    chunk_sha: str
    chunker_name: str
    chunker_version: str
    meta: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedFile:
    """The bytes of an archived file, and where they came from."""

    key: str
    data: bytes
    address: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DerivationInput:
    """A stored document with the bytes from which it is derived again."""

    document: StoredDocument
    passages: Sequence[StoredPassage]
    """The stored passages that are compared."""
    ordinal: int | None
    """The passage, if only one is compared."""
    files: Sequence[ArchivedFile]
    """That of the text last."""
    parser: Source | None
    """The source, for texts that no normalizer makes."""
    max_tokens: int
    overlap_tokens: int

    @property
    def key(self) -> ReadingKey | None:
        """The key of the result; None for the parser of a source, which has no version."""
        if self.parser is not None:
            return None
        document, file = self.document, self.files[-1]
        text = replace(document, body_text=ids.text_sha256(document.body_text or ""))
        sizes = f"{self.ordinal} {self.max_tokens} {self.overlap_tokens} {file.address}"
        label = get_normalizer(_normalizer_of(document)).label
        chunker = f"{CHUNKER_NAME}@{CHUNKER_VERSION}"
        recipe = ("derive", label, chunker, sizes, repr(text), *map(repr, self.passages))
        return ReadingKey.of(file.data, *recipe)


def derive_again(work: DerivationInput) -> list[dict[str, Any]]:
    """The steps up to the first that differs."""
    return [step.model_dump() for step in _Derivation(work).steps()]


def step_of(name: StepName, outcome: Verdict, text: str) -> VerificationStep:
    """One step of a verification."""
    return VerificationStep(name=name, outcome=outcome, says=text)


def _normalizer_of(document: StoredDocument) -> str:
    return (document.body_normalizer_version or "").partition("@")[0]


@dataclass(frozen=True, slots=True)
class _Derived:
    """The title, summary and text that the archived bytes yield."""

    title: str
    summary: str | None
    text: NormalizedBody | None


class _Derivation:
    def __init__(self, work: DerivationInput) -> None:
        self._work = work
        self._row = work.document

    def steps(self) -> Iterator[VerificationStep]:
        step, derived = self._text() if self._work.parser is None else self._record()
        yield step
        if derived is not None:
            yield self._cut(derived)

    # Text -------------------------------------------------------------------------------------

    def _text(self) -> tuple[VerificationStep, _Derived | None]:
        row, file = self._row, self._work.files[-1]
        name = _normalizer_of(row)
        assert row.body_text is not None
        try:
            text = make_text(NormalizerInput(normalizer=name, data=file.data, address=file.address))
        except FondsError as error:
            return step_of("text", "differs", f"{name} cannot read the bytes: {error}"), None
        text = with_metadata(text, row.body_map or {"pages": []})
        message = f"{row.body_normalizer_version} gives the same {len(row.body_text):,} characters"
        if (current := get_normalizer(name).label) != row.body_normalizer_version:
            message = f"{current} gives the same text as {row.body_normalizer_version} did"
        if text.markdown != row.body_text:
            return step_of("text", "differs", self._text_differs(text, current)), _Derived(
                row.title, row.summary, text
            )
        if ids.text_sha256(row.body_text) != row.body_text_sha256:
            return step_of("text", "differs", "the hash that is recorded is not the text's"), None
        return step_of("text", "match", message), _Derived(row.title, row.summary, text)

    def _text_differs(self, text: NormalizedBody, current: str) -> str:
        row, stored = self._row, self._row.body_text or ""
        difference = _difference(stored, text.markdown)
        if ids.text_sha256(stored) != row.body_text_sha256:
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
        row = self._row
        try:
            record = self._parsed()
        except Exception as error:  # noqa: BLE001 — files that belong together may break a parser
            why = f"{row.source} cannot read the file by itself: {error}"
            return step_of("record", "unproven", why), None
        if record is None or record.document is None:
            key = self._work.files[0].key
            why = f"{key} alone does not describe it; it was joined from several files"
            return step_of("record", "unproven", why), None
        return self._compare(record, record.document)

    def _parsed(self) -> ParsedRecord | None:
        row = self._row
        assert self._work.parser is not None
        task = FetchTask(source=row.source, key=row.task_key or row.id, parts=())
        for item in self._work.parser.parse(Raw(task=task, parts=tuple(self._parts()))):
            if isinstance(item, ParsedRecord) and item.document and item.document.id == row.id:
                return item
        return None

    def _parts(self) -> Iterator[RawPart]:
        for file in self._work.files:
            archived = Archived(
                url=file.address or file.key,
                key=file.key,
                sha256=sha256(file.data).hexdigest(),
                size=len(file.data),
                retrieved_at=self._row.retrieved_at,
            )
            yield RawPart(name="", archived=archived, data=file.data)

    def _compare(
        self, record: ParsedRecord, document: Document
    ) -> tuple[VerificationStep, _Derived | None]:
        row = self._row
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
        return step_of(
            "record", "match", f"{row.source} reads the same record from the file"
        ), derived

    def _differs(
        self, record: ParsedRecord, difference: str
    ) -> tuple[VerificationStep, _Derived | None]:
        chunker = self._chunker()
        content = prepare_write(record, self._row.task_key or "", chunker).content_sha256
        if content == self._row.content_sha256:
            return step_of(
                "record", "differs", f"the stored record was changed: {difference}"
            ), None
        why = "the file alone gives it, and it was joined from several or is read otherwise by now"
        return step_of("record", "unproven", f"{difference}; {why}"), None

    # Passages ---------------------------------------------------------------------------------

    def _chunker(self) -> Chunker:
        """A chunker with the recorded sizes, whatever the settings are today."""
        sizes = _CHUNKER.search(self._row.recipe)
        if sizes is None:
            work = self._work
            return Chunker(max_tokens=work.max_tokens, overlap_tokens=work.overlap_tokens)
        return Chunker(max_tokens=int(sizes["most"]), overlap_tokens=int(sizes["overlap"]))

    def _cut(self, derived: _Derived) -> VerificationStep:
        ordinal = self._work.ordinal
        chunker = self._chunker()
        passages = passages_of_text(
            self._row.id, derived.title, derived.summary, derived.text, chunker
        )
        again = passages.chunks if ordinal is None else passages.chunks[ordinal : ordinal + 1]
        difference = self._cut_differs(again)
        if difference is None:
            what = f"passage {ordinal}" if ordinal is not None else f"all {len(again):,} passages"
            return step_of("passages", "match", f"the chunker gives {what} again")
        label = f"{CHUNKER_NAME}@{CHUNKER_VERSION}"
        recorded = {f"{row.chunker_name}@{row.chunker_version}" for row in self._work.passages}
        if recorded - {label}:
            labels = ", ".join(sorted(recorded))
            difference = f"{labels} cut it and this program has {label}: {difference}"
        return step_of("passages", "differs", difference)

    def _cut_differs(self, again: Sequence[Chunk]) -> str | None:
        stored = self._work.passages
        for row, chunk in zip(stored, again, strict=False):
            if (difference := _passage_differs(row, chunk)) is not None:
                return f"passage {row.chunk_ord} {difference}"
        if len(stored) != len(again):
            return f"{len(stored):,} passages are stored, and the text gives {len(again):,}"
        return None


def _passage_differs(row: StoredPassage, chunk: Chunk) -> str | None:
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


def _difference(stored: str, again: str) -> str:
    """The position where two texts begin to differ, with a few words of each."""
    pairs = enumerate(zip(stored, again, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(stored), len(again)))
    return f"at character {at:,}: stored {_words(stored, at)}, derived {_words(again, at)}"


def _words(text: str, at: int) -> str:
    begin = max(0, text.rfind(" ", 0, at) + 1 if at - text.rfind(" ", 0, at) < _MAX_EXCERPT else at)
    excerpt = " ".join(text[begin : begin + _MAX_EXCERPT].split())
    return f"“{excerpt}”" if excerpt else "nothing"
