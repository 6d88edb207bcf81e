"""Whether words stand in a document as they are quoted: now, in another edition, or before."""

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
    EarlierVersion,
    HeldDocument,
    QuoteCheck,
    Resolution,
)
from fonds.runs.normalization import NORMALIZER_BY_FORMAT, normalize_archived
from fonds.search.lookup import passage_at
from fonds.search.quote_match import Folded, TextSpan, find_quote, fold, nearest, readings_of
from fonds.search.resolve import resolve
from fonds.stores.tables import document_versions, documents

MOST_EDITIONS: Final = 50
MOST_VERSIONS: Final = 20
"""Looked at, nearest first; a publisher who changes a text more often than that is no source."""


def check_quote(
    context: Context,
    citation: str,
    quote: str,
    *,
    as_of: date | None = None,
    owner: UUID | None = None,
) -> QuoteCheck:
    """Look for quoted words in what a citation leads to, and if they are not there, where else.

    White space, markup, the shapes of dashes and quotation marks, soft hyphens and ligatures make
    no difference; `…` stands for words left out, brackets for words altered; letter case counts.
    """
    if not readings_of(quote):
        raise UsageError("the quotation has no words; give the text that is to be looked for")
    answer = resolve(context.database, citation, as_of=as_of, owner=owner)
    meant = [answer.document] if answer.document else answer.candidates
    if not meant:
        raise UnknownDocumentError(answer.message)
    check = _Check(context, answer, quote)
    for document in meant:
        if (exact := check.exact(document)) is not None:
            return exact
    if not answer.found:
        # Of a name that several documents share, only the one that has the words is meant.
        raise UnknownDocumentError(f"{answer.message}: none of them has these words")
    return check.in_other_editions() or check.in_earlier_versions() or check.missing()


@dataclass(frozen=True, slots=True)
class _QuotedText:
    row: Row[Any]
    text: str
    folded: Folded


class _Check:
    def __init__(self, context: Context, answer: Resolution, quote: str) -> None:
        self._context = context
        self._answer = answer
        self._quote = quote
        self._texts: dict[str, _QuotedText] = {}

    def exact(self, document: HeldDocument) -> QuoteCheck | None:
        """The words in the document itself; first where the citation points."""
        answer = self._answer
        span = None
        if answer.start is not None and answer.end is not None:
            span = self._find(document, TextSpan(answer.start, answer.end))
        at_pinpoint = span is not None if answer.start is not None else None
        span = span or self._find(document)
        if span is None:
            return None
        message = f"these words stand in {document.id}"
        if at_pinpoint is False:
            message += f", but not at {answer.pinpoint or f'passage {answer.passage}'}"
        return self._check(
            "exact",
            message,
            document=document,
            found_in=document,
            at_pinpoint=at_pinpoint,
            **self._place(document, span),
        )

    # Changed ----------------------------------------------------------------------------------

    def in_other_editions(self) -> QuoteCheck | None:
        """The words in an older edition, else in a newer one; the nearest that has them."""
        answer = self._answer
        ids = [edition.id for edition in answer.editions]
        assert answer.document is not None
        if answer.document.id not in ids:
            return None
        at = ids.index(answer.document.id)
        older = answer.editions[at + 1 :][:MOST_EDITIONS]
        newer = answer.editions[:at][::-1][:MOST_EDITIONS]
        return self._older(answer.document, older) or self._newer(newer)

    def _older(self, asked: HeldDocument, older: Sequence[HeldDocument]) -> QuoteCheck | None:
        after = asked
        for edition in older:
            if edition.edition == asked.edition:
                continue
            if (span := self._find(edition)) is not None:
                message = (
                    f"these words stood in edition {edition.edition} ({edition.published_at}) "
                    f"and are not in {after.edition} ({after.published_at})"
                )
                return self._changed(message, edition, after, span)
            after = edition
        return None

    def _newer(self, newer: Sequence[HeldDocument]) -> QuoteCheck | None:
        for edition in newer:
            if (span := self._find(edition)) is not None:
                message = (
                    f"these words are not in the edition asked for; they came with "
                    f"{edition.edition} ({edition.published_at})"
                )
                return self._changed(message, edition, edition, span)
        return None

    def _changed(
        self, message: str, edition: HeldDocument, change: HeldDocument, span: TextSpan
    ) -> QuoteCheck:
        return self._check(
            "changed",
            message,
            found_in=edition,
            changed_in=change.edition,
            changed_at=change.published_at,
            **self._place(edition, span),
        )

    def in_earlier_versions(self) -> QuoteCheck | None:
        """The words in what the document said before, made again from the archive."""
        for version, text in self._versions():
            folded = fold(text)
            if (span := find_quote(folded, self._quote)) is not None:
                day = version.replaced_at.date()
                message = f"these words stood in it until other content was seen on {day}"
                return self._check(
                    "changed",
                    message,
                    found_in=self._answer.document,
                    version=version,
                    changed_at=day,
                    text=text[span.start : span.end],
                    start=span.start,
                    end=span.end,
                )
        return None

    def _versions(self) -> Iterator[tuple[EarlierVersion, str]]:
        assert self._answer.document is not None
        document = self._load(self._answer.document).row
        table = document_versions
        query = select(table).where(table.c.document_id == document.id)
        with self._context.database.read() as connection:
            rows = connection.execute(query.order_by(table.c.first_seen_at.desc())).all()
        seen = {document.body_raw_path, None}
        # What came back after a change was seen first before it, and last after it.
        later = document.updated_at
        for row in rows[:MOST_VERSIONS]:
            if row.body_archive_key not in seen and (text := self._earlier(document, row)):
                version = EarlierVersion(
                    archive_key=row.body_archive_key,
                    first_seen_at=row.first_seen_at,
                    replaced_at=later,
                )
                yield version, text
            seen.add(row.body_archive_key)
            later = row.first_seen_at

    def _earlier(self, document: Row[Any], version: Row[Any]) -> str | None:
        made_by = (document.body_normalizer_version or "").partition("@")[0]
        normalizer = made_by or NORMALIZER_BY_FORMAT.get(document.body_raw_format or "", "")
        key = version.body_archive_key
        plain: dict[str, Any] = {"sections": [], "pages": []}
        try:
            return normalize_archived(self._context, document.id, normalizer, key, plain).markdown
        except FondsError:
            return None

    # Not found --------------------------------------------------------------------------------

    def missing(self) -> QuoteCheck:
        """Nothing has these words; what comes nearest in the document."""
        document = self._answer.document
        assert document is not None
        loaded = self._load(document)
        near = nearest(loaded.text, loaded.folded, self._quote)
        message = f"these words are not in {document.id}"
        if near is None:
            return self._check("not_found", f"{message}, and nothing like them")
        place = self._place(document, near.span)
        closest = Closest(similarity=near.similarity, redline=near.redline, **place)
        return self._check("not_found", f"{message}; the nearest differ as shown", closest=closest)

    # Texts ------------------------------------------------------------------------------------

    def _check(self, verdict: Any, message: str, **found: Any) -> QuoteCheck:
        answer = self._answer
        return QuoteCheck(
            verdict=verdict,
            message=message,
            citation=answer.citation,
            target=answer.target,
            pinpoint=answer.pinpoint,
            as_of=answer.as_of,
            before_oldest=answer.before_oldest,
            **{"document": answer.document, **found},
        )

    def _load(self, document: HeldDocument) -> _QuotedText:
        if document.id not in self._texts:
            with self._context.database.read() as connection:
                query = select(documents).where(documents.c.id == document.id)
                row = connection.execute(query).one()
            # Of a document without a body, the one passage is its title and summary.
            text = row.body_text or whole_document_chunk(row.title, row.summary).text
            self._texts[document.id] = _QuotedText(row, text, fold(text))
        return self._texts[document.id]

    def _find(self, document: HeldDocument, within: TextSpan | None = None) -> TextSpan | None:
        return find_quote(self._load(document).folded, self._quote, within)

    def _place(self, document: HeldDocument, span: TextSpan) -> dict[str, Any]:
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
