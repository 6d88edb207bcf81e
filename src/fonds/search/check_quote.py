"""Checking quotations against a document, its other editions and its earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, select

from fonds.chunk.chunker import whole_document_chunk
from fonds.context import Context
from fonds.errors import FondsError, UnknownDocumentError, UsageError
from fonds.results import (
    ChunkLocator,
    Closest,
    DocumentSummary,
    EarlierVersion,
    QuoteCheck,
    Resolution,
)
from fonds.runs.normalization import NORMALIZER_BY_FORMAT, normalize_archived
from fonds.search.lookup import passage_at
from fonds.search.quote_match import (
    ComparableText,
    TextSpan,
    find_quote,
    nearest,
    normalize,
    readings_of,
)
from fonds.search.resolve import resolve
from fonds.stores.tables import document_versions, documents

MAX_EDITIONS: Final = 50
MAX_VERSIONS: Final = 20
"""The limit of earlier versions that are searched, the latest first."""


def check_quote(
    context: Context,
    citation: str,
    quote: str,
    *,
    as_of: date | None = None,
    owner: UUID | None = None,
) -> QuoteCheck:
    """Search for quoted words in the cited document, then in its other editions and versions.

    White space, markup, the shapes of dashes and quotation marks, soft hyphens and ligatures make
    no difference; `…` means words left out, brackets words altered; letter case counts.
    """
    if not readings_of(quote):
        raise UsageError("the quotation has no words; give the quoted text")
    resolution = resolve(context.database, citation, as_of=as_of, owner=owner)
    cited = [resolution.document] if resolution.document else resolution.candidates
    if not cited:
        raise UnknownDocumentError(resolution.message)
    check = _Check(context, resolution, quote)
    for document in cited:
        if (exact := check.exact(document)) is not None:
            return exact
    if not resolution.found:
        # If several documents share the name, the one with the words is the cited one.
        raise UnknownDocumentError(f"{resolution.message}: none of them has these words")
    return check.in_other_editions() or check.in_earlier_versions() or check.missing()


@dataclass(frozen=True, slots=True)
class _QuotedText:
    row: Row[Any]
    text: str
    comparable: ComparableText


class _Check:
    def __init__(self, context: Context, resolution: Resolution, quote: str) -> None:
        self._context = context
        self._resolution = resolution
        self._quote = quote
        self._texts: dict[str, _QuotedText] = {}

    def exact(self, document: DocumentSummary) -> QuoteCheck | None:
        """Search the document itself, first at the pinpoint of the citation."""
        resolution = self._resolution
        span = None
        if resolution.start is not None and resolution.end is not None:
            span = self._find(document, TextSpan(resolution.start, resolution.end))
        at_pinpoint = span is not None if resolution.start is not None else None
        span = span or self._find(document)
        if span is None:
            return None
        message = f"these words are in {document.id}"
        if at_pinpoint is False:
            message += f", but not at {resolution.pinpoint or f'passage {resolution.passage}'}"
        return self._check(
            "exact",
            message,
            document=document,
            found_in=document,
            at_pinpoint=at_pinpoint,
            **self._location(document, span),
        )

    # Changed ----------------------------------------------------------------------------------

    def in_other_editions(self) -> QuoteCheck | None:
        """Search older editions, else newer ones; the nearest with the words is returned."""
        resolution = self._resolution
        ids = [edition.id for edition in resolution.editions]
        assert resolution.document is not None
        if resolution.document.id not in ids:
            return None
        at = ids.index(resolution.document.id)
        older = resolution.editions[at + 1 :][:MAX_EDITIONS]
        newer = resolution.editions[:at][::-1][:MAX_EDITIONS]
        return self._older(resolution.document, older) or self._newer(newer)

    def _older(self, cited: DocumentSummary, older: Sequence[DocumentSummary]) -> QuoteCheck | None:
        after = cited
        for edition in older:
            if edition.edition == cited.edition:
                continue
            if (span := self._find(edition)) is not None:
                message = (
                    f"these words were in edition {edition.edition} ({edition.published_at}) "
                    f"and are not in {after.edition} ({after.published_at})"
                )
                return self._changed(message, edition, after, span)
            after = edition
        return None

    def _newer(self, newer: Sequence[DocumentSummary]) -> QuoteCheck | None:
        for edition in newer:
            if (span := self._find(edition)) is not None:
                message = (
                    f"these words are not in the cited edition; they were added in "
                    f"{edition.edition} ({edition.published_at})"
                )
                return self._changed(message, edition, edition, span)
        return None

    def _changed(
        self, message: str, edition: DocumentSummary, change: DocumentSummary, span: TextSpan
    ) -> QuoteCheck:
        return self._check(
            "changed",
            message,
            found_in=edition,
            changed_in=change.edition,
            changed_at=change.published_at,
            **self._location(edition, span),
        )

    def in_earlier_versions(self) -> QuoteCheck | None:
        """Search earlier versions of the document, whose texts are made from the archive."""
        for version, text in self._versions():
            if (span := find_quote(normalize(text), self._quote)) is not None:
                day = version.replaced_at.date()
                message = f"these words were in it until a change that was seen on {day}"
                return self._check(
                    "changed",
                    message,
                    found_in=self._resolution.document,
                    version=version,
                    changed_at=day,
                    text=text[span.start : span.end],
                    start=span.start,
                    end=span.end,
                )
        return None

    def _versions(self) -> Iterator[tuple[EarlierVersion, str]]:
        assert self._resolution.document is not None
        document = self._load(self._resolution.document).row
        table = document_versions
        query = select(table).where(table.c.document_id == document.id)
        with self._context.database.read() as connection:
            rows = connection.execute(query.order_by(table.c.first_seen_at.desc())).all()
        checked = {document.body_raw_path, None}
        # Content that was restored after a change was first seen before it, and last after it.
        later = document.updated_at
        for row in rows[:MAX_VERSIONS]:
            if row.body_archive_key not in checked and (text := self._earlier(document, row)):
                version = EarlierVersion(
                    archive_key=row.body_archive_key,
                    first_seen_at=row.first_seen_at,
                    replaced_at=later,
                )
                yield version, text
            checked.add(row.body_archive_key)
            later = row.first_seen_at

    def _earlier(self, document: Row[Any], version: Row[Any]) -> str | None:
        made_by = (document.body_normalizer_version or "").partition("@")[0]
        normalizer = made_by or NORMALIZER_BY_FORMAT.get(document.body_raw_format or "", "")
        key = version.body_archive_key
        no_offsets: dict[str, Any] = {"sections": [], "pages": []}
        try:
            return normalize_archived(
                self._context, document.id, normalizer, key, no_offsets
            ).markdown
        except FondsError:
            return None

    # Not found --------------------------------------------------------------------------------

    def missing(self) -> QuoteCheck:
        """The result if the words are nowhere, with the most similar part of the document."""
        document = self._resolution.document
        assert document is not None
        loaded = self._load(document)
        similar = nearest(loaded.text, loaded.comparable, self._quote)
        message = f"these words are not in {document.id}"
        if similar is None:
            return self._check("not_found", f"{message}, and nothing similar")
        location = self._location(document, similar.span)
        closest = Closest(similarity=similar.similarity, redline=similar.redline, **location)
        return self._check(
            "not_found", f"{message}; the most similar ones differ as shown", closest=closest
        )

    # Texts ------------------------------------------------------------------------------------

    def _check(self, verdict: Any, message: str, **values: Any) -> QuoteCheck:
        resolution = self._resolution
        return QuoteCheck(
            verdict=verdict,
            message=message,
            citation=resolution.citation,
            target=resolution.target,
            pinpoint=resolution.pinpoint,
            as_of=resolution.as_of,
            before_oldest=resolution.before_oldest,
            **{"document": resolution.document, **values},
        )

    def _load(self, document: DocumentSummary) -> _QuotedText:
        if document.id not in self._texts:
            with self._context.database.read() as connection:
                query = select(documents).where(documents.c.id == document.id)
                row = connection.execute(query).one()
            # A document without a body has its title and summary as its only passage.
            text = row.body_text or whole_document_chunk(row.title, row.summary).text
            self._texts[document.id] = _QuotedText(row, text, normalize(text))
        return self._texts[document.id]

    def _find(self, document: DocumentSummary, within: TextSpan | None = None) -> TextSpan | None:
        return find_quote(self._load(document).comparable, self._quote, within)

    def _location(self, document: DocumentSummary, span: TextSpan) -> dict[str, Any]:
        loaded = self._load(document)
        with self._context.database.read() as connection:
            passage = passage_at(connection, loaded.row.uid, span.start)
        ordinal: int | None = passage[0] if passage else None
        locator: ChunkLocator | None = passage[1] if passage else None
        return {
            "text": loaded.text[span.start : span.end],
            "start": span.start,
            "end": span.end,
            "passage": ordinal,
            "locator": locator,
        }
