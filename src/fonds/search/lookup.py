"""Lookup of documents by name and citation, and of the text that a pinpoint refers to.

Reading citations, and locating subsections, sections of an act and pages, are pure functions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Select, select

from fonds import ids
from fonds.chunk.boundaries import blocks
from fonds.chunk.enumeration import read_enumeration
from fonds.chunk.headings import HeadingOutline, Sections, read_outline
from fonds.citations.extract import extract
from fonds.citations.extract_numbers import LAST_CONGRESS
from fonds.citations.forms import CitationMatch, Kind, congress_of
from fonds.results import ChunkLocator, DocumentSummary
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import PARAMETERS, select_in
from fonds.stores.tables import code_units, document_aliases, document_chunk_buffer, documents

MAX_LENGTH: Final = 1_000
"""The limit of a citation in characters; a longer text is not a citation."""
MAX_CITATIONS: Final = 20
"""The limit of citations in one list."""

_SOME_CONGRESS: Final = 119
_NAME_BEGINS: Final = re.compile(r"(?<![\w-])[a-z]")
_YEAR: Final = re.compile(r"[ ]?\((?:[^()]{0,30}[ ])?(?P<year>(?:17|18|19|20)\d\d)\)")
_WITHIN: Final = re.compile(
    r",?\s?(?:§§?|[Ss]ec(?:tion|s?\.)?)\s?(?P<section>\d[\w.-]{0,12}?)(?P<labels>(?:\([0-9A-Za-z]{1,5}\))*)"
    r"(?=[\s,;.)]|\Z)"
)


class CitedTarget(NamedTuple):
    """The target of a citation."""

    kind: Kind
    target: str
    """The normalized citation, an alias of documents; without the Congress if that is unknown."""
    pinpoint: str | None = None
    year: str | None = None
    """The year in parentheses after it: of the edition, if it cites a code."""

    @property
    def has_no_congress(self) -> bool:
        """Whether it is a bill without its Congress."""
        return self.kind == "bill" and not self.target[0].isdigit()


def read_citation(typed: str) -> list[CitedTarget]:
    """The citations in a typed text, in order."""
    if not typed or len(typed) > MAX_LENGTH:
        return []
    for text in _spellings(typed):
        if matches := extract(text)[:MAX_CITATIONS]:
            return [_target(text, match) for match in matches]
    return _bill(typed)


def is_citation(typed: str) -> bool:
    """Whether a text is a citation and nothing else."""
    for text in _spellings(typed):
        if matches := extract(text):
            first, last = matches[0], matches[-1]
            year = _YEAR.match(text, last.end)
            rest = text[: first.start] + text[year.end() if year else last.end :]
            return not any(map(str.isalnum, rest))
    return bool(_bill(typed))


def _spellings(typed: str) -> Iterator[str]:
    """The text as typed, with capital initials, and in capitals; `12-704e` is not changed."""
    yield typed
    yield _NAME_BEGINS.sub(lambda letter: letter[0].upper(), typed)
    yield typed.upper()


def _bill(typed: str) -> list[CitedTarget]:
    """`S 567` or `HR 2024` as a bill, if nothing else was typed; in a text it could be a year."""
    for text in _spellings(typed):
        match extract(f"{text}, {_SOME_CONGRESS}th Cong."):
            case [CitationMatch(start=0, kind="bill", target=target)]:
                return [CitedTarget("bill", target.partition(" ")[2])]
    return []


def _target(text: str, match: CitationMatch) -> CitedTarget:
    pinpoint = match.pinpoint
    if pinpoint is None and match.kind in {"public_law", "bill"}:
        within = _WITHIN.match(text, match.end)
        pinpoint = f"§ {within['section']}{within['labels']}" if within else None
    year = _YEAR.match(text, match.end)
    return CitedTarget(match.kind, match.target, pinpoint, year["year"] if year else None)


_LABEL: Final = re.compile(r"\([0-9A-Za-z]{1,7}\)")
_LABELS: Final = re.compile(r"(?:§ (?P<section>[\w.-]+))?(?P<labels>(?:\([0-9A-Za-z]{1,7}\))*)")
_PAGE: Final = re.compile(r"[0-9][0-9,]*")
_LAST_NUMBER: Final = re.compile(r"([0-9]+)\D*\Z")
_NUMBER: Final = re.compile(r"[0-9][\w.-]*")
_UNMARKED: Final = str.maketrans("", "", "*_")


class PassageSpan(NamedTuple):
    """A part of a text."""

    start: int
    end: int
    reached: str
    """The pinpoint, as far as the text has it: `(a)(10)` of `(a)(10)(A)`."""


def locate(text: str, body_map: Mapping[str, Any], pinpoint: str) -> PassageSpan | None:
    """The part of a text that a pinpoint refers to, or the nearest one around it, or None."""
    unmarked = pinpoint.translate(_UNMARKED)
    if unmarked[:1].isdigit():
        page = _PAGE.match(unmarked)
        assert page is not None
        return page_span(text, body_map, page[0].replace(",", ""))
    parts = _LABELS.match(unmarked)
    assert parts is not None
    labels = _LABEL.findall(parts["labels"])
    if not parts["section"]:
        return _labelled(text, 0, len(text), labels)
    section = _section(text, body_map, parts["section"])
    if section is None or not labels:
        return section
    below = _labelled(text, section.start, section.end, labels)
    return below._replace(reached=f"{section.reached}{below.reached}") if below else section


def page_span(text: str, body_map: Mapping[str, Any], page: str) -> PassageSpan | None:
    """The text of a page as printed or labelled; `140 STAT. 13` is page 13."""
    marks = body_map.get("pages", ())
    for index, (offset, label, *_) in enumerate(marks):
        number = _LAST_NUMBER.search(label or "")
        if number is not None and number[1] == page:
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return PassageSpan(offset, end, page)
    return None


def _section(text: str, body_map: Mapping[str, Any], section: str) -> PassageSpan | None:
    """A section by the number in its label: `SEC. 2` for `2`."""
    marks = body_map.get("sections", ())
    for index, (offset, label) in enumerate(marks):
        number = _NUMBER.search(label)
        if number is not None and number[0].rstrip(".") == section.rstrip("."):
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return PassageSpan(offset, end, f"§ {section}")
    return None


def _labelled(text: str, low: int, high: int, labels: Sequence[str]) -> PassageSpan | None:
    """The paragraphs below all the labels, or else below the most of them that match."""
    target = tuple(labels)
    paragraphs = list(_paragraphs(text, low, high)) if target else []
    for depth in range(len(target), 0, -1):
        below = (path[:depth] == target[:depth] for _, _, path in paragraphs)
        first = next((index for index, is_below in enumerate(below) if is_below), None)
        if first is None:
            continue
        last = first
        while last + 1 < len(paragraphs) and paragraphs[last + 1][2][:depth] == target[:depth]:
            last += 1
        return PassageSpan(paragraphs[first][0], paragraphs[last][1], "".join(target[:depth]))
    return None


def _paragraphs(text: str, low: int, high: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """The paragraphs of a part of a text, with the labels above them."""
    outline = read_outline(text)
    for section in Sections(text, outline, {}):
        if section.end > low and section.start < high:
            yield from _enumerated(outline, max(section.start, low), min(section.end, high))


def _enumerated(
    outline: HeadingOutline, start: int, end: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    parts = list(blocks(outline, start, end))
    enumeration = read_enumeration(outline.lines, parts)
    for block in parts:
        for begin, stop in enumeration.parts(block):
            yield begin, stop, enumeration.path(begin)


MAX_DOCUMENTS: Final = 50
"""The limit of documents with one name."""
_PASSAGE: Final = re.compile(r"(?P<name>.+)#(?P<ordinal>[0-9]{1,9})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PAGED: Final = re.compile(r"(?P<series>[0-9]+A? (?:FR|Stat)) (?P<page>[0-9]+)")
"""Targets that are pages of a printed series."""


def document_rows(owner: UUID | None, *more: Any) -> Select[Any]:
    """The visible documents, with their editions."""
    table = documents.c
    columns = (
        table.id,
        table.uid,
        table.source,
        table.kind,
        table.title,
        table.citation_string,
        table.source_url,
        table.published_at,
        table.gone_at,
        code_units.c.version.label("edition"),
        code_units.c.is_newest,
    )
    query = select(*columns, *more).outerjoin(code_units, code_units.c.id == table.unit)
    return query.where(visible_to(owner))


def describe_document(row: Row[Any]) -> DocumentSummary:
    """The description of a document, from a row of `document_rows`."""
    return DocumentSummary(
        id=row.id,
        source=row.source,
        kind=row.kind,
        title=row.title,
        citation_string=row.citation_string,
        url=row.source_url,
        edition=row.edition,
        is_newest=row.is_newest is not False,
        published_at=day_of(row.published_at),
        gone_at=row.gone_at,
    )


def day_of(published_at: str | None) -> date | None:
    """The day of a publication time as publishers state it."""
    return date.fromisoformat(published_at[:10]) if published_at else None


def passage_at(connection: Connection, uid: UUID, offset: int) -> tuple[int, ChunkLocator] | None:
    """The passage of a document at an offset of its text."""
    chunk = document_chunk_buffer.c
    query = select(chunk.chunk_ord, chunk.meta).where(chunk.document_id == uid)
    rows = connection.execute(query.order_by(chunk.chunk_ord)).all()
    if not rows:
        return None
    # Passages may overlap; the last one that begins before the offset has most of what follows.
    index = max(0, bisect_right([row.meta["start"] for row in rows], offset) - 1)
    if offset >= rows[index].meta["end"] and index + 1 < len(rows):
        index += 1  # a heading belongs to the next passage
    return rows[index].chunk_ord, ChunkLocator(**rows[index].meta["locator"])


def age(row: Row[Any]) -> tuple[Any, ...]:
    """The order of editions; documents without an edition are equally old."""
    return (row.published_at or "", ids.edition_order(row.edition)) if row.edition else ()


def best(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The newest edition; withdrawn documents only if there are no others."""
    current = [row for row in rows if row.gone_at is None] or rows
    newest = max(map(age, current), default=())
    return [row for row in current if age(row) == newest]


@dataclass(frozen=True, slots=True)
class DocumentLookup:
    """Lookup of documents by name, in one transaction."""

    connection: Connection
    owner: UUID | None = None
    """The user whose uploads are included, besides public documents."""

    def by_name(self, name: str) -> list[Row[Any]]:
        """Documents by id, else by another name."""
        return self._rows(documents.c.id == name) or self._rows(_has_alias(name))

    def by_citation_string(self, citation: str) -> list[Row[Any]]:
        """Documents by the citation that the library itself makes."""
        variants = (citation, citation.rstrip("."), f"{citation}.")
        return self._rows(documents.c.citation_string.in_(variants))

    def passage(self, name: str) -> tuple[Row[Any], int] | None:
        """A document and the number of its passage, by `ID#n` or by the passage's UUID."""
        if _UUID.fullmatch(name):
            chunk = document_chunk_buffer.c
            query = select(chunk.document_id, chunk.chunk_ord).where(chunk.chunk_id == UUID(name))
            row = self.connection.execute(query).one_or_none()
            rows = self._rows(documents.c.uid == row.document_id) if row else []
            return (rows[0], row.chunk_ord) if row and rows else None
        if (parts := _PASSAGE.fullmatch(name)) is None:
            return None
        rows = best(self.by_name(parts["name"]))
        return (rows[0], int(parts["ordinal"])) if len(rows) == 1 else None

    def cited(self, reading: CitedTarget, as_of: date | None = None) -> list[Row[Any]]:
        """All documents that a citation may refer to."""
        if reading.has_no_congress:
            return self._of_newest_congress(reading.target, as_of)
        return self._rows(_has_alias(reading.target)) or self._on_page(reading.target)

    def related(self, rows: Sequence[Row[Any]]) -> list[Row[Any]]:
        """These, and all editions of the same source with a name of one of them."""
        aliases = document_aliases.c
        document_ids = [row.id for row in rows]
        names = {
            row.alias
            for row in select_in(
                self.connection, select(aliases.alias), aliases.document_id, document_ids
            )
        }
        query = self._with_alias().where(code_units.c.version.is_not(None))
        sources = {row.source for row in rows}
        sharing = select_in(self.connection, query, aliases.alias, sorted(names))
        related = {row.id: row for row in sharing if row.source in sources}
        return list({**related, **{row.id: row for row in rows}}.values())

    def _rows(self, condition: ColumnElement[bool]) -> list[Row[Any]]:
        query = document_rows(self.owner).where(condition).order_by(documents.c.id)
        return list(self.connection.execute(query.limit(MAX_DOCUMENTS)))

    def _with_alias(self, *more: Any) -> Select[Any]:
        query = document_rows(self.owner, document_aliases.c.alias, *more)
        return query.join(document_aliases, document_aliases.c.document_id == documents.c.id)

    def _of_newest_congress(self, target: str, as_of: date | None) -> list[Row[Any]]:
        """Bills of that number, the newest Congress first; with a day, only up to its Congress."""
        last = congress_of(as_of.isoformat()) if as_of else None
        names = [f"{congress} {target}" for congress in range(last or LAST_CONGRESS, 0, -1)]
        order = {name: number for number, name in enumerate(names)}
        rows = select_in(self.connection, self._with_alias(), document_aliases.c.alias, names)
        return sorted(rows, key=lambda row: (order[row.alias], row.id))

    def _on_page(self, target: str) -> list[Row[Any]]:
        """Documents that contain a page but begin before it; their alias is their first page."""
        paged = PAGED.fullmatch(target)
        if paged is None:
            return []
        page = int(paged["page"])
        names = [f"{paged['series']} {page - back}" for back in range(1, min(page, PARAMETERS))]
        query = self._with_alias(documents.c.body_map)
        near = select_in(self.connection, query, document_aliases.c.alias, names)
        having = (row for row in near if row.body_map and page_span("", row.body_map, str(page)))
        return sorted({row.id: row for row in having}.values(), key=lambda row: str(row.id))


def _has_alias(name: str) -> ColumnElement[bool]:
    aliases = document_aliases.c
    return documents.c.id.in_(select(aliases.document_id).where(aliases.alias == name))
