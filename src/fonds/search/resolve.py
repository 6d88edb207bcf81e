"""The resolution of citations to a document, its edition, and the cited passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import Row, select

from fonds.results import ChunkLocator, DocumentSummary, Resolution
from fonds.search.lookup import (
    MAX_LENGTH,
    PAGED,
    CitedTarget,
    DocumentLookup,
    age,
    best,
    day_of,
    describe_document,
    locate,
    passage_at,
    read_citation,
)
from fonds.stores.database import Database
from fonds.stores.tables import document_chunk_buffer, documents

# Citations of the library end with a year or a full stop; few typed ones do.
_PASTED: Final = re.compile(r"(?:\.|[0-9]{4}\))\Z")

_Problem = Literal["not_understood", "not_held", "ambiguous"]
_Rows = Sequence[Row[Any]]


def resolve(
    database: Database, citation: str, *, as_of: date | None = None, owner: UUID | None = None
) -> Resolution:
    """The document of an id, a name or a citation, in the newest edition or that of a day.

    `owner` is the user whose uploads are included, besides public documents.
    """
    typed = _cleaned(citation)
    targets = read_citation(typed)
    parsed = _ParsedCitation(citation, targets[0] if targets else None)
    if not typed:
        return parsed.unresolved(
            "not_understood",
            f"the citation is empty, or longer than {MAX_LENGTH:,} characters",
        )
    with database.read() as connection:
        resolver = _Resolver(DocumentLookup(connection, owner), as_of)
        resolution = resolver.by_name(parsed, typed) or resolver.by_citation(parsed, typed, targets)
    return resolution.model_copy(update={"as_of": as_of})


def _cleaned(citation: str) -> str:
    """The citation on one line, without characters that databases refuse; empty if too long."""
    if len(citation) > MAX_LENGTH * 4:
        return ""
    readable = citation.encode("utf-8", "replace").decode().replace("\0", " ")
    typed = " ".join(readable.split()).strip("\"“”'‘’ ")
    return typed if len(typed) <= MAX_LENGTH else ""


@dataclass(frozen=True, slots=True)
class _ParsedCitation:
    """A citation, as far as it was parsed."""

    citation: str
    target: CitedTarget | None = None
    ordinal: int | None = None

    def fields(self) -> dict[str, Any]:
        if self.target is None:
            return {"citation": self.citation}
        kind, target, pinpoint, _ = self.target
        return {"citation": self.citation, "kind": kind, "target": target, "pinpoint": pinpoint}

    def unresolved(self, problem: _Problem, message: str, *, rows: _Rows = ()) -> Resolution:
        candidates = [describe_document(row) for row in {row.id: row for row in rows}.values()]
        return Resolution(
            found=False, problem=problem, message=message, candidates=candidates, **self.fields()
        )

    def ambiguous(self, rows: _Rows) -> Resolution:
        count = len({row.id for row in rows})
        name = self.target.target if self.target else self.citation
        message = f"{name} may be any of {count} documents; name one by its id"
        return self.unresolved("ambiguous", message, rows=rows)


class _Resolver:
    """Resolves one citation."""

    def __init__(self, lookup: DocumentLookup, as_of: date | None) -> None:
        self._lookup = lookup
        self._connection = lookup.connection
        self._as_of = as_of

    def by_name(self, parsed: _ParsedCitation, typed: str) -> Resolution | None:
        """The document or passage with exactly this id, name or citation."""
        rows = self._lookup.by_name(typed)
        if not rows and (passage := self._lookup.passage(typed)):
            row, ordinal = passage
            return self._resolved(replace(parsed, target=None, ordinal=ordinal), row, ())
        if not rows and _PASTED.search(typed):
            rows = self._lookup.by_citation_string(typed)
        return self._of(parsed, rows) if rows else None

    def _of(self, parsed: _ParsedCitation, rows: _Rows) -> Resolution:
        """The right one of documents with the same name; names take precedence over citations."""
        target = parsed.target
        is_whole = target is not None and not target.has_no_congress
        family = self._cited(target) if target is not None and is_whole else []
        if not {row.id for row in rows} & {row.id for row in family}:
            # The citation of a report may name a bill that it is about.
            parsed = replace(parsed, target=None)
            family = self._lookup.related(rows) if rows[0].edition else list(rows)
        return self._chosen(parsed, rows, family)

    def by_citation(
        self, parsed: _ParsedCitation, typed: str, targets: Sequence[CitedTarget]
    ) -> Resolution:
        """The cited document, or the reason why there is none."""
        matches = [(target, rows) for target in targets if (rows := self._cited(target))]
        if not targets:
            return parsed.unresolved(
                "not_understood",
                f"{typed!r} is not an id, another name or a recognised citation; "
                "citations are written like 42 U.S.C. § 1396a, 89 FR 12345, H.R. 1234 or R48481",
            )
        if not matches:
            names = ", ".join(dict.fromkeys(target.target for target in targets))
            return parsed.unresolved("not_held", f"{names} is not in this library")
        (first, rows), *others = matches
        parsed = replace(parsed, target=first)
        # `Pub. L. 117-58, 135 Stat. 429` names one law twice; a list names several things.
        document_ids = {row.id for row in rows}
        if any(document_ids.isdisjoint(row.id for row in more) for _, more in others):
            return parsed.ambiguous([row for _, each in matches for row in self._of_day(each)[0]])
        return self._chosen(parsed, rows, rows)

    def _cited(self, target: CitedTarget) -> list[Row[Any]]:
        return self._lookup.cited(target, self._as_of)

    def _chosen(self, parsed: _ParsedCitation, rows: _Rows, family: _Rows) -> Resolution:
        if parsed.target is not None and parsed.target.has_no_congress:
            return self._newest_bill(parsed, rows)
        editions = sorted(family, key=age, reverse=True) if family[0].edition else []
        if self._as_of is None:
            chosen, is_before = _of_year(rows, parsed.target), False
        else:
            chosen, is_before = self._of_day(family)
        if len(chosen) > 1:
            return parsed.ambiguous(chosen)
        resolution = self._resolved(parsed, chosen[0], editions)
        if not is_before:
            return resolution
        first = day_of(chosen[0].published_at)
        remark = f"{self._as_of} is before {first}, the oldest edition in the library"
        return _remarked(resolution, remark).model_copy(update={"before_oldest": True})

    def _of_day(self, rows: _Rows) -> tuple[_Rows, bool]:
        """The newest ones published by the requested day, or else the oldest."""
        if self._as_of is None:
            return best(rows), False
        day = self._as_of.isoformat()
        if before := [row for row in rows if (row.published_at or "")[:10] <= day]:
            return best(before), False
        oldest = min(map(age, rows))
        return [row for row in rows if age(row) == oldest], True

    def _newest_bill(self, parsed: _ParsedCitation, rows: _Rows) -> Resolution:
        newest = [row for row in rows if row.alias == rows[0].alias]
        if len(newest) > 1:
            return parsed.ambiguous(newest)
        resolution = self._resolved(parsed, rows[0], ())
        others = [describe_document(row) for row in rows[1:]]
        remark = "no Congress was given, and this is the newest one in the library"
        return _remarked(resolution, remark).model_copy(update={"candidates": others})

    def _resolved(self, parsed: _ParsedCitation, row: Row[Any], editions: _Rows) -> Resolution:
        document = describe_document(row)
        resolution = Resolution(
            found=True,
            message=f"{row.id}: {row.title}{_edition_words(document)}",
            document=document,
            editions=[describe_document(edition) for edition in editions],
            **parsed.fields(),
        )
        if parsed.ordinal is not None:
            return self._with_ordinal(resolution, row, parsed.ordinal)
        pinpoint = _pinpoint(parsed.target, row)
        return resolution if pinpoint is None else self._with_span(resolution, row, pinpoint)

    def _with_ordinal(self, resolution: Resolution, row: Row[Any], ordinal: int) -> Resolution:
        chunk = document_chunk_buffer.c
        query = select(chunk.meta).where(chunk.document_id == row.uid, chunk.chunk_ord == ordinal)
        meta = self._connection.scalar(query)
        if meta is None:
            return _remarked(resolution, f"it has no passage {ordinal}")
        span = {"start": meta["start"], "end": meta["end"]}
        located = {"passage": ordinal, "locator": ChunkLocator(**meta["locator"])}
        return resolution.model_copy(update={**span, **located})

    def _with_span(self, resolution: Resolution, row: Row[Any], pinpoint: str) -> Resolution:
        table = documents.c
        query = select(table.body_text, table.body_map).where(table.id == row.id)
        text, body_map = self._connection.execute(query).one()
        cited = locate(text, body_map, pinpoint) if text else None
        if cited is None:
            return _remarked(resolution, f"nothing in its text is marked {pinpoint}")
        update: dict[str, Any] = {"start": cited.start, "end": cited.end}
        if passage := passage_at(self._connection, row.uid, cited.start):
            update |= {"passage": passage[0], "locator": passage[1]}
        if pinpoint[len(cited.reached) :].startswith("("):
            resolution = _remarked(resolution, f"its text marks {cited.reached} and no more")
        return resolution.model_copy(update=update)


def _of_year(rows: _Rows, target: CitedTarget | None) -> _Rows:
    """The best edition of the cited year, if there is one."""
    if target is None or target.year is None:
        return best(rows)
    return best([row for row in rows if f"({target.year})" in row.citation_string] or rows)


def _pinpoint(target: CitedTarget | None, row: Row[Any]) -> str | None:
    if target is None or target.pinpoint is not None:
        return target.pinpoint if target else None
    # A page other than the first one of the document is a pinpoint.
    paged = PAGED.fullmatch(target.target)
    return paged["page"] if paged and "body_map" in row._fields else None


def _remarked(resolution: Resolution, remark: str) -> Resolution:
    both = f"{resolution.remark}; {remark}" if resolution.remark else remark
    return resolution.model_copy(
        update={"message": f"{resolution.message}; {remark}", "remark": both}
    )


def _edition_words(document: DocumentSummary) -> str:
    words = f", edition {document.edition}" if document.edition else ""
    words += f", {document.published_at}" if document.published_at else ""
    words += "" if document.is_newest else ", not the newest edition in the library"
    return words + (", withdrawn by its publisher" if document.gone_at else "")
