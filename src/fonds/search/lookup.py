"""Documents that are held, by the names they go by; and the passage at a place of their text.

A citation as somebody types it, read as what it names; pure.

The place in a text that a pinpoint leads to: subsections, a section of an act, a page; pure.
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
from fonds.results import ChunkLocator, HeldDocument
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import PARAMETERS, select_in
from fonds.stores.tables import code_units, document_aliases, document_chunk_buffer, documents

LONGEST: Final = 1_000
"""Characters of the longest citation; whatever is longer is a text."""
MOST: Final = 20
"""Citations of one list that are followed."""

_SOME_CONGRESS: Final = 119
_NAME_BEGINS: Final = re.compile(r"(?<![\w-])[a-z]")
_YEAR: Final = re.compile(r"[ ]?\((?:[^()]{0,30}[ ])?(?P<year>(?:17|18|19|20)\d\d)\)")
_WITHIN: Final = re.compile(
    r",?\s?(?:§§?|[Ss]ec(?:tion|s?\.)?)\s?(?P<section>\d[\w.-]{0,12}?)(?P<labels>(?:\([0-9A-Za-z]{1,5}\))*)"
    r"(?=[\s,;.)]|\Z)"
)


class CitedTarget(NamedTuple):
    """What a citation names."""

    kind: Kind
    target: str
    """The form by which documents are known; a bill of an unknown Congress comes without it."""
    pinpoint: str | None = None
    year: str | None = None
    """In parentheses behind it: of the edition, where it cites a code."""

    @property
    def has_no_congress(self) -> bool:
        """Whether it is a bill that any Congress may have had."""
        return self.kind == "bill" and not self.target[0].isdigit()


def read_citation(typed: str) -> list[CitedTarget]:
    """The citations in what somebody typed, in order; none is an empty list."""
    if not typed or len(typed) > LONGEST:
        return []
    for spelled in _spellings(typed):
        if found := extract(spelled)[:MOST]:
            return [_reading(spelled, one) for one in found]
    return _bill(typed)


def names_one_thing(typed: str) -> bool:
    """Whether a text is a citation and nothing beside it."""
    for spelled in _spellings(typed):
        if found := extract(spelled):
            first, last = found[0], found[-1]
            year = _YEAR.match(spelled, last.end)
            beside = spelled[: first.start] + spelled[year.end() if year else last.end :]
            return not any(map(str.isalnum, beside))
    return bool(_bill(typed))


def _spellings(typed: str) -> Iterator[str]:
    """As typed; with capitals where names begin; in capitals. `12-704e` stays what it is."""
    yield typed
    yield _NAME_BEGINS.sub(lambda letter: letter[0].upper(), typed)
    yield typed.upper()


def _bill(typed: str) -> list[CitedTarget]:
    """`S 567` and `HR 2024` are bills if nothing else was typed; a text could mean a year."""
    for spelled in _spellings(typed):
        match extract(f"{spelled}, {_SOME_CONGRESS}th Cong."):
            case [CitationMatch(start=0, kind="bill", target=target)]:
                return [CitedTarget("bill", target.partition(" ")[2])]
    return []


def _reading(text: str, found: CitationMatch) -> CitedTarget:
    pinpoint = found.pinpoint
    if pinpoint is None and found.kind in {"public_law", "bill"}:
        within = _WITHIN.match(text, found.end)
        pinpoint = f"§ {within['section']}{within['labels']}" if within else None
    year = _YEAR.match(text, found.end)
    return CitedTarget(found.kind, found.target, pinpoint, year["year"] if year else None)


_LABEL: Final = re.compile(r"\([0-9A-Za-z]{1,7}\)")
_LABELS: Final = re.compile(r"(?:§ (?P<section>[\w.-]+))?(?P<labels>(?:\([0-9A-Za-z]{1,7}\))*)")
_PAGE: Final = re.compile(r"[0-9][0-9,]*")
_LAST_NUMBER: Final = re.compile(r"([0-9]+)\D*\Z")
_NUMBER: Final = re.compile(r"[0-9][\w.-]*")
_UNMARKED: Final = str.maketrans("", "", "*_")


class PassageSpan(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int
    reached: str
    """The pinpoint, as far as the text marks it: `(a)(10)` of `(a)(10)(A)`."""


def locate(text: str, body_map: Mapping[str, Any], pinpoint: str) -> PassageSpan | None:
    """Where a pinpoint leads, or the nearest place around it; None where nothing marks it."""
    plain = pinpoint.translate(_UNMARKED)
    if plain[:1].isdigit():
        page = _PAGE.match(plain)
        assert page is not None
        return page_place(text, body_map, page[0].replace(",", ""))
    named = _LABELS.match(plain)
    assert named is not None
    labels = _LABEL.findall(named["labels"])
    if not named["section"]:
        return _labelled(text, 0, len(text), labels)
    section = _section(text, body_map, named["section"])
    if section is None or not labels:
        return section
    below = _labelled(text, section.start, section.end, labels)
    return below._replace(reached=f"{section.reached}{below.reached}") if below else section


def page_place(text: str, body_map: Mapping[str, Any], page: str) -> PassageSpan | None:
    """The text of a page of the print edition; `140 STAT. 13` is page 13."""
    marks = body_map.get("pages", ())
    for index, (offset, label) in enumerate(marks):
        number = _LAST_NUMBER.search(label)
        if number is not None and number[1] == page:
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return PassageSpan(offset, end, page)
    return None


def _section(text: str, body_map: Mapping[str, Any], wanted: str) -> PassageSpan | None:
    """A section by the number in its label: `SEC. 2` for `2`."""
    marks = body_map.get("sections", ())
    for index, (offset, label) in enumerate(marks):
        number = _NUMBER.search(label)
        if number is not None and number[0].rstrip(".") == wanted.rstrip("."):
            end = marks[index + 1][0] if index + 1 < len(marks) else len(text)
            return PassageSpan(offset, end, f"§ {wanted}")
    return None


def _labelled(text: str, low: int, high: int, labels: Sequence[str]) -> PassageSpan | None:
    """The first paragraphs below all the labels, or else below as many of them as there are."""
    wanted = tuple(labels)
    paragraphs = list(_paragraphs(text, low, high)) if wanted else []
    for depth in range(len(wanted), 0, -1):
        below = (path[:depth] == wanted[:depth] for _, _, path in paragraphs)
        first = next((place for place, is_below in enumerate(below) if is_below), None)
        if first is None:
            continue
        last = first
        while last + 1 < len(paragraphs) and paragraphs[last + 1][2][:depth] == wanted[:depth]:
            last += 1
        return PassageSpan(paragraphs[first][0], paragraphs[last][1], "".join(wanted[:depth]))
    return None


def _paragraphs(text: str, low: int, high: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Every paragraph of a stretch with the labels it stands under."""
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


MOST_NAMED: Final = 50
"""Documents of one name that are told of."""
_PASSAGE: Final = re.compile(r"(?P<name>.+)#(?P<ordinal>[0-9]{1,9})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PAGED: Final = re.compile(r"(?P<series>[0-9]+A? (?:FR|Stat)) (?P<page>[0-9]+)")
"""Targets that are pages of a printed series."""


def document_rows(owner: UUID | None, *more: Any) -> Select[Any]:
    """Documents that may be seen, with the edition they are of."""
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


def held_document(row: Row[Any]) -> HeldDocument:
    """A row of `document_rows` as it is told."""
    return HeldDocument(
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
    """The day of a moment as publishers state it."""
    return date.fromisoformat(published_at[:10]) if published_at else None


def passage_at(connection: Connection, uid: UUID, offset: int) -> tuple[int, ChunkLocator] | None:
    """The passage of a document that holds a place of its text."""
    chunk = document_chunk_buffer.c
    query = select(chunk.chunk_ord, chunk.meta).where(chunk.document_id == uid)
    rows = connection.execute(query.order_by(chunk.chunk_ord)).all()
    if not rows:
        return None
    # Passages may overlap; the last that begins before the place has most of what follows it.
    index = max(0, bisect_right([row.meta["start"] for row in rows], offset) - 1)
    if offset >= rows[index].meta["end"] and index + 1 < len(rows):
        index += 1  # a heading stands in no passage but above the next one
    return rows[index].chunk_ord, ChunkLocator(**rows[index].meta["locator"])


def age(row: Row[Any]) -> tuple[Any, ...]:
    """What editions are compared by; documents that come in none are equally old."""
    return (row.published_at or "", ids.edition_order(row.edition)) if row.edition else ()


def best(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The newest edition, and what was withdrawn only where there is nothing else."""
    current = [row for row in rows if row.gone_at is None] or rows
    newest = max(map(age, current), default=())
    return [row for row in current if age(row) == newest]


@dataclass(frozen=True, slots=True)
class Holdings:
    """Finds documents by name within one view of the database."""

    connection: Connection
    owner: UUID | None = None
    """The user whose uploads may be seen beside what is public."""

    def named(self, name: str) -> list[Row[Any]]:
        """By id, else by another name."""
        return self._rows(documents.c.id == name) or self._rows(_has_alias(name))

    def pasted(self, citation: str) -> list[Row[Any]]:
        """By the citation that the library itself gives."""
        spelled = (citation, citation.rstrip("."), f"{citation}.")
        return self._rows(documents.c.citation_string.in_(spelled))

    def passage(self, name: str) -> tuple[Row[Any], int] | None:
        """A document and the number of its passage, by `ID#n` or by the passage's UUID."""
        if _UUID.fullmatch(name):
            chunk = document_chunk_buffer.c
            query = select(chunk.document_id, chunk.chunk_ord).where(chunk.chunk_id == UUID(name))
            found = self.connection.execute(query).one_or_none()
            rows = self._rows(documents.c.uid == found.document_id) if found else []
            return (rows[0], found.chunk_ord) if found and rows else None
        if (parts := _PASSAGE.fullmatch(name)) is None:
            return None
        rows = best(self.named(parts["name"]))
        return (rows[0], int(parts["ordinal"])) if len(rows) == 1 else None

    def cited(self, reading: CitedTarget, as_of: date | None = None) -> list[Row[Any]]:
        """Everything that a citation may mean."""
        if reading.has_no_congress:
            return self._of_newest_congress(reading.target, as_of)
        return self._rows(_has_alias(reading.target)) or self._on_page(reading.target)

    def related(self, rows: Sequence[Row[Any]]) -> list[Row[Any]]:
        """These and all editions of the same source that share a name with one of them."""
        aliases = document_aliases.c
        shown = [row.id for row in rows]
        names = {
            row.alias
            for row in select_in(self.connection, select(aliases.alias), aliases.document_id, shown)
        }
        query = self._with_alias().where(code_units.c.version.is_not(None))
        sources = {row.source for row in rows}
        sharing = select_in(self.connection, query, aliases.alias, sorted(names))
        found = {row.id: row for row in sharing if row.source in sources}
        return list({**found, **{row.id: row for row in rows}}.values())

    def _rows(self, condition: ColumnElement[bool]) -> list[Row[Any]]:
        query = document_rows(self.owner).where(condition).order_by(documents.c.id)
        return list(self.connection.execute(query.limit(MOST_NAMED)))

    def _with_alias(self, *more: Any) -> Select[Any]:
        query = document_rows(self.owner, document_aliases.c.alias, *more)
        return query.join(document_aliases, document_aliases.c.document_id == documents.c.id)

    def _of_newest_congress(self, target: str, as_of: date | None) -> list[Row[Any]]:
        """Bills of that number, newest Congress first; of a day, not those of a later one."""
        last = congress_of(as_of.isoformat()) if as_of else None
        names = [f"{congress} {target}" for congress in range(last or LAST_CONGRESS, 0, -1)]
        place = {name: number for number, name in enumerate(names)}
        rows = select_in(self.connection, self._with_alias(), document_aliases.c.alias, names)
        return sorted(rows, key=lambda row: (place[row.alias], row.id))

    def _on_page(self, target: str) -> list[Row[Any]]:
        """Documents that begin before a page and have it; what names them is their first one."""
        paged = PAGED.fullmatch(target)
        if paged is None:
            return []
        page = int(paged["page"])
        names = [f"{paged['series']} {page - back}" for back in range(1, min(page, PARAMETERS))]
        query = self._with_alias(documents.c.body_map)
        near = select_in(self.connection, query, document_aliases.c.alias, names)
        having = (row for row in near if row.body_map and page_place("", row.body_map, str(page)))
        return sorted({row.id: row for row in having}.values(), key=lambda row: str(row.id))


def _has_alias(name: str) -> ColumnElement[bool]:
    aliases = document_aliases.c
    return documents.c.id.in_(select(aliases.document_id).where(aliases.alias == name))
