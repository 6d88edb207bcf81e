"""What a citation leads to: the document, its edition, and the passage it points at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import Row, select

from fonds.results import ChunkLocator, HeldDocument, Resolution
from fonds.search.lookup import (
    LONGEST,
    PAGED,
    CitedTarget,
    Holdings,
    age,
    best,
    day_of,
    held_document,
    locate,
    passage_at,
    read_citation,
)
from fonds.stores.database import Database
from fonds.stores.tables import document_chunk_buffer, documents

# Our citations end with a year or a full stop; few that are typed do.
_PASTED: Final = re.compile(r"(?:\.|[0-9]{4}\))\Z")

_Problem = Literal["not_understood", "not_held", "ambiguous"]
_Rows = Sequence[Row[Any]]


def resolve(
    database: Database, citation: str, *, as_of: date | None = None, owner: UUID | None = None
) -> Resolution:
    """What an id, a name or a citation leads to; of several editions the newest, or that of a day.

    `owner` is the user whose uploads may be seen beside what is public.
    """
    typed = _cleaned(citation)
    readings = read_citation(typed)
    asked = _ParsedCitation(citation, readings[0] if readings else None)
    if not typed:
        return asked.nothing(
            "not_understood",
            f"nothing was typed, or more than the {LONGEST:,} characters a citation may have",
        )
    with database.read() as connection:
        desk = _Resolver(Holdings(connection, owner), as_of)
        answer = desk.by_name(asked, typed) or desk.by_citation(asked, typed, readings)
    return answer.model_copy(update={"as_of": as_of})


def _cleaned(citation: str) -> str:
    """On one line and without what no database takes; nothing where it is too long."""
    if len(citation) > LONGEST * 4:
        return ""
    readable = citation.encode("utf-8", "replace").decode().replace("\0", " ")
    typed = " ".join(readable.split()).strip("\"“”'‘’ ")
    return typed if len(typed) <= LONGEST else ""


@dataclass(frozen=True, slots=True)
class _ParsedCitation:
    """What is looked for, as far as it was understood."""

    citation: str
    reading: CitedTarget | None = None
    ordinal: int | None = None

    def told(self) -> dict[str, Any]:
        if self.reading is None:
            return {"citation": self.citation}
        kind, target, pinpoint, _ = self.reading
        return {"citation": self.citation, "kind": kind, "target": target, "pinpoint": pinpoint}

    def nothing(self, problem: _Problem, message: str, *, rows: _Rows = ()) -> Resolution:
        candidates = [held_document(row) for row in {row.id: row for row in rows}.values()]
        return Resolution(
            found=False, problem=problem, message=message, candidates=candidates, **self.told()
        )

    def ambiguous(self, rows: _Rows) -> Resolution:
        count = len({row.id for row in rows})
        name = self.reading.target if self.reading else self.citation
        message = f"{name} may be any of {count} documents; name one by its id"
        return self.nothing("ambiguous", message, rows=rows)


class _Resolver:
    """Answers one question."""

    def __init__(self, holdings: Holdings, as_of: date | None) -> None:
        self._holdings = holdings
        self._connection = holdings.connection
        self._as_of = as_of

    def by_name(self, asked: _ParsedCitation, typed: str) -> Resolution | None:
        """What has exactly this id, name or citation, or is a passage of such a document."""
        named = self._holdings.named(typed)
        if not named and (passage := self._holdings.passage(typed)):
            row, ordinal = passage
            return self._answered(replace(asked, reading=None, ordinal=ordinal), row, ())
        if not named and _PASTED.search(typed):
            named = self._holdings.pasted(typed)
        return self._of(asked, named) if named else None

    def _of(self, asked: _ParsedCitation, named: _Rows) -> Resolution:
        """The one of these that is meant; what they are called decides over how that reads."""
        reading = asked.reading
        is_whole = reading is not None and not reading.has_no_congress
        family = self._cited(reading) if reading is not None and is_whole else []
        if not {row.id for row in named} & {row.id for row in family}:
            # The citation of a report may name a bill that it is about.
            asked = replace(asked, reading=None)
            family = self._holdings.related(named) if named[0].edition else list(named)
        return self._chosen(asked, named, family)

    def by_citation(
        self, asked: _ParsedCitation, typed: str, readings: Sequence[CitedTarget]
    ) -> Resolution:
        """What is cited, or the reason why there is nothing."""
        held = [(reading, rows) for reading in readings if (rows := self._cited(reading))]
        if not readings:
            return asked.nothing(
                "not_understood",
                f"{typed!r} is no id, no other name and no citation that is recognised; "
                "these are written like 42 U.S.C. § 1396a, 89 FR 12345, H.R. 1234 or R48481",
            )
        if not held:
            names = ", ".join(dict.fromkeys(reading.target for reading in readings))
            return asked.nothing("not_held", f"{names}: understood, but not held in this library")
        (first, rows), *others = held
        asked = replace(asked, reading=first)
        # `Pub. L. 117-58, 135 Stat. 429` names one law twice; a list names several things.
        shown = {row.id for row in rows}
        if any(shown.isdisjoint(row.id for row in more) for _, more in others):
            return asked.ambiguous([row for _, each in held for row in self._of_day(each)[0]])
        return self._chosen(asked, rows, rows)

    def _cited(self, reading: CitedTarget) -> list[Row[Any]]:
        return self._holdings.cited(reading, self._as_of)

    def _chosen(self, asked: _ParsedCitation, rows: _Rows, family: _Rows) -> Resolution:
        if asked.reading is not None and asked.reading.has_no_congress:
            return self._newest_bill(asked, rows)
        editions = sorted(family, key=age, reverse=True) if family[0].edition else []
        if self._as_of is None:
            chosen, is_before = _of_year(rows, asked.reading), False
        else:
            chosen, is_before = self._of_day(family)
        if len(chosen) > 1:
            return asked.ambiguous(chosen)
        answer = self._answered(asked, chosen[0], editions)
        if not is_before:
            return answer
        first = day_of(chosen[0].published_at)
        remark = f"{self._as_of} is before {first}, the oldest that is held"
        return _remarked(answer, remark).model_copy(update={"before_oldest": True})

    def _of_day(self, rows: _Rows) -> tuple[_Rows, bool]:
        """The newest that were published by the day asked for, or else the oldest."""
        if self._as_of is None:
            return best(rows), False
        day = self._as_of.isoformat()
        if before := [row for row in rows if (row.published_at or "")[:10] <= day]:
            return best(before), False
        oldest = min(map(age, rows))
        return [row for row in rows if age(row) == oldest], True

    def _newest_bill(self, asked: _ParsedCitation, rows: _Rows) -> Resolution:
        newest = [row for row in rows if row.alias == rows[0].alias]
        if len(newest) > 1:
            return asked.ambiguous(newest)
        answer = self._answered(asked, rows[0], ())
        others = [held_document(row) for row in rows[1:]]
        remark = "no Congress was named, and this is the newest that is held"
        return _remarked(answer, remark).model_copy(update={"candidates": others})

    def _answered(self, asked: _ParsedCitation, row: Row[Any], editions: _Rows) -> Resolution:
        document = held_document(row)
        answer = Resolution(
            found=True,
            message=f"{row.id}: {row.title}{_edition_words(document)}",
            document=document,
            editions=[held_document(one) for one in editions],
            **asked.told(),
        )
        if asked.ordinal is not None:
            return self._with_ordinal(answer, row, asked.ordinal)
        pinpoint = _pinpoint(asked.reading, row)
        return answer if pinpoint is None else self._with_place(answer, row, pinpoint)

    def _with_ordinal(self, answer: Resolution, row: Row[Any], ordinal: int) -> Resolution:
        chunk = document_chunk_buffer.c
        query = select(chunk.meta).where(chunk.document_id == row.uid, chunk.chunk_ord == ordinal)
        meta = self._connection.scalar(query)
        if meta is None:
            return _remarked(answer, f"it has no passage {ordinal}")
        span = {"start": meta["start"], "end": meta["end"]}
        located = {"passage": ordinal, "locator": ChunkLocator(**meta["locator"])}
        return answer.model_copy(update={**span, **located})

    def _with_place(self, answer: Resolution, row: Row[Any], pinpoint: str) -> Resolution:
        table = documents.c
        query = select(table.body_text, table.body_map).where(table.id == row.id)
        text, body_map = self._connection.execute(query).one()
        place = locate(text, body_map, pinpoint) if text else None
        if place is None:
            return _remarked(answer, f"nothing in its text is marked {pinpoint}")
        update: dict[str, Any] = {"start": place.start, "end": place.end}
        if passage := passage_at(self._connection, row.uid, place.start):
            update |= {"passage": passage[0], "locator": passage[1]}
        if pinpoint[len(place.reached) :].startswith("("):
            answer = _remarked(answer, f"its text marks {place.reached} and no more")
        return answer.model_copy(update=update)


def _of_year(rows: _Rows, reading: CitedTarget | None) -> _Rows:
    """The best of the editions that are cited with the year that was typed, if there are any."""
    if reading is None or reading.year is None:
        return best(rows)
    return best([row for row in rows if f"({reading.year})" in row.citation_string] or rows)


def _pinpoint(reading: CitedTarget | None, row: Row[Any]) -> str | None:
    if reading is None or reading.pinpoint is not None:
        return reading.pinpoint if reading else None
    # A page that the document does not begin with is a place within it.
    paged = PAGED.fullmatch(reading.target)
    return paged["page"] if paged and "body_map" in row._fields else None


def _remarked(answer: Resolution, remark: str) -> Resolution:
    both = f"{answer.remark}; {remark}" if answer.remark else remark
    return answer.model_copy(update={"message": f"{answer.message}; {remark}", "remark": both})


def _edition_words(document: HeldDocument) -> str:
    words = f", edition {document.edition}" if document.edition else ""
    words += f", {document.published_at}" if document.published_at else ""
    words += "" if document.is_newest else ", not the newest edition held"
    return words + (", withdrawn by its publisher" if document.gone_at else "")
