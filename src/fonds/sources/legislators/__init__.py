"""Members of Congress since 1789, presidents and vice presidents, from congress-legislators.

Quirks of the publisher:
- One file holds who serves, another who served; a member who leaves moves between them, and the
  move may come late. `in_office` says in which of the two a person stands.
- Every member has a bioguide id. Presidents who never sat in Congress have none, and those who
  did stand in two files; the GovTrack id is the one every person of `executive` has, so that is
  what `executive:<govtrack>` is made of.
- A change of party during a term shows only in `party_affiliations`.
- Social media and district offices are lists of their own, edited at another pace: they name
  people the other files do not know yet, or no longer.
- `end` is a reserved word of SQL, and `end-type` needs quoting; the columns are `end_date` and
  `end_type`. All other columns have the publisher's names.
- No file carries a date, so no document has a `published_at`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import date
from itertools import chain
from typing import Any, Final

from sqlalchemy import Table

from fonds import ids
from fonds.citations import legislators as citing
from fonds.errors import MalformedError, WrongContentError
from fonds.model import (
    Discovery,
    Document,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.families import fields, yaml_files
from fonds.sources.families.fields import required, section, sections, text
from fonds.sources.legislators.tables import (
    ACCOUNTS,
    OFFICE_TEXTS,
    TERM_TEXTS,
    executive_ids,
    executive_terms,
    executives,
    legislator_family,
    legislator_ids,
    legislator_leadership_roles,
    legislator_offices,
    legislator_other_names,
    legislator_party_affiliations,
    legislator_social_media,
    legislator_terms,
    legislators,
)

_SITE: Final = "https://unitedstates.github.io/congress-legislators"
# In load order: the file that a returning member left comes before the one he came back to,
# and people before what is known about them.
_FILES: Final = (
    "legislators-historical",
    "legislators-current",
    "executive",
    "legislators-social-media",
    "legislators-district-offices",
)
_ALIASED: Final = ("bioguide", "bioguide_previous", "lis", "thomas", "govtrack")
_CHAMBERS: Final = {"sen": "senate", "rep": "house"}

_Row = dict[str, Any]

# Records ----------------------------------------------------------------------------------


def _record(table: Table, key: str, payload: _Row, **more: Any) -> ParsedRecord:
    return ParsedRecord(source="legislators", table=table.name, key=key, payload=payload, **more)


def _row(entry: Mapping[str, Any], *fields: str) -> _Row:
    return {field: text(entry, field) for field in fields}


def _span(entry: Mapping[str, Any]) -> _Row:
    return {"start": text(entry, "start"), "end_date": text(entry, "end")}


def _numbered(rows: Iterable[_Row]) -> list[_Row]:
    return [{"ord": number, **row} for number, row in enumerate(rows, 1)]


def _children(table: Table, parent: str, rows: Iterable[_Row]) -> Iterator[ParsedRecord]:
    kind, _, name = table.name.partition("_")
    for row in rows:
        place = "/".join(str(row[c.name]) for c in table.primary_key if c.name in row)
        yield _record(table, f"{parent}#{name}/{place}", {f"{kind}_id": parent, **row})


def _id_rows(entry: Mapping[str, Any]) -> Iterator[_Row]:
    schemes = section(entry, "id")
    for scheme in schemes:
        for row in _numbered({"value": value} for value in fields.texts(schemes, scheme)):
            yield {"scheme": scheme, **row}


def _person(entry: Mapping[str, Any]) -> _Row:
    name, bio = section(entry, "name"), section(entry, "bio")
    names = _row(name, "first", "middle", "last", "suffix", "nickname", "official_full")
    return {**names, "last": required(name, "last"), **_row(bio, "birthday", "gender")}


def _latest(terms: list[_Row], *fields: str) -> _Row:
    last = max(reversed(terms), key=lambda term: term["start"] or "", default=_Row())
    return {field: last.get(field) for field in (*fields, "start", "end_date")}


def _legislator(entry: Mapping[str, Any], part: RawPart) -> Iterator[ParsedRecord]:
    bioguide = required(section(entry, "id"), "bioguide")
    key = ids.legislator_id(bioguide)
    terms = _numbered(map(_term, sections(entry, "terms")))
    affiliations = list(_affiliations(entry))
    names = _numbered(map(_other_name, sections(entry, "other_names")))
    roles = _numbered(map(_role, sections(entry, "leadership_roles")))
    family = _numbered(_row(one, "name", "relation") for one in sections(entry, "family"))
    latest = _latest(terms, "type", "state", "district", "party", "caucus")
    row = {
        "id": key,
        "bioguide": bioguide,
        **_person(entry),
        "in_office": _IN_OFFICE.get(_file_name(part)),
        "chamber": _CHAMBERS.get(latest["type"] or ""),
        **latest,
    }
    id_rows = list(_id_rows(entry))
    document = _document(
        row,
        kind="legislator",
        part=part,
        summary=citing.summary_for(
            row, terms=terms, roles=roles, affiliations=affiliations, other_names=names
        ),
        aliases=_aliases(id_rows, _ALIASED),
    )
    children = chain(
        _children(legislator_ids, key, id_rows),
        _children(legislator_terms, key, terms),
        _children(legislator_party_affiliations, key, affiliations),
        _children(legislator_other_names, key, names),
        _children(legislator_leadership_roles, key, roles),
        _children(legislator_family, key, family),
    )
    yield _record(legislators, key, row, children=tuple(children), document=document)


def _term(entry: Mapping[str, Any]) -> _Row:
    return {
        "type": required(entry, "type"),
        **_span(entry),
        "end_type": text(entry, "end-type"),
        "district": fields.whole(entry, "district"),
        "class": fields.whole(entry, "class"),
        **_row(entry, *TERM_TEXTS),
    }


def _affiliations(entry: Mapping[str, Any]) -> Iterator[_Row]:
    for term_ord, term in enumerate(sections(entry, "terms"), 1):
        held = sections(term, "party_affiliations")
        for row in _numbered({**_span(one), **_row(one, "party", "caucus")} for one in held):
            yield {"term_ord": term_ord, **row}


def _other_name(entry: Mapping[str, Any]) -> _Row:
    return {**_row(entry, "first", "middle", "last", "suffix", "nickname"), **_span(entry)}


def _role(entry: Mapping[str, Any]) -> _Row:
    return {"title": required(entry, "title"), **_row(entry, "chamber"), **_span(entry)}


def _executive(entry: Mapping[str, Any], part: RawPart) -> Iterator[ParsedRecord]:
    govtrack = required(section(entry, "id"), "govtrack")
    bioguide = text(section(entry, "id"), "bioguide")
    key = f"executive:{govtrack}"
    terms = _numbered(
        {"type": required(term, "type"), **_row(term, "party", "how"), **_span(term)}
        for term in sections(entry, "terms")
    )
    row = {
        "id": key,
        "govtrack": govtrack,
        "bioguide": bioguide,
        "legislator_ref": ids.legislator_id(bioguide) if bioguide else None,
        **_person(entry),
        **_latest(terms, "type", "party"),
    }
    id_rows = list(_id_rows(entry))
    # The other ids of a president who sat in Congress are those of the legislator.
    aliased = ("icpsr_prez",) if bioguide else ("icpsr_prez", "govtrack")
    document = _document(
        row,
        kind="executive",
        part=part,
        summary=citing.summary_for(row, terms=terms),
        aliases=_aliases(id_rows, aliased),
    )
    children = chain(_children(executive_ids, key, id_rows), _children(executive_terms, key, terms))
    yield _record(executives, key, row, children=tuple(children), document=document)


def _aliases(id_rows: list[_Row], schemes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        f"{row['scheme'].removesuffix('_previous')} {row['value']}"
        for row in id_rows
        if row["scheme"] in schemes
    )


def _document(row: _Row, *, part: RawPart, **more: Any) -> Document:
    return Document(
        id=row["id"],
        source="legislators",
        title=citing.title_for(row),
        source_url=citing.page_for(row),
        source_org=citing.publisher_for(row),
        citation_string=citing.citation_for(row),
        raw=part.archived,
        **more,
    )


def _social_media(entry: Mapping[str, Any], _part: RawPart) -> Iterator[ParsedRecord]:
    reference = ids.legislator_id(required(section(entry, "id"), "bioguide"))
    accounts = _row(section(entry, "social"), *ACCOUNTS)
    payload = {"legislator_ref": reference, **accounts}
    yield _record(legislator_social_media, f"{reference}#social_media", payload)


def _offices(entry: Mapping[str, Any], _part: RawPart) -> Iterator[ParsedRecord]:
    reference = ids.legislator_id(required(section(entry, "id"), "bioguide"))
    for office in sections(entry, "offices"):
        office_id = required(office, "id")
        payload = {
            "id": office_id,
            "legislator_ref": reference,
            **_row(office, *OFFICE_TEXTS),
            "latitude": fields.decimal(office, "latitude"),
            "longitude": fields.decimal(office, "longitude"),
        }
        yield _record(legislator_offices, f"office:{office_id}", payload)


# Files ------------------------------------------------------------------------------------

_Reader = Callable[[Mapping[str, Any], RawPart], Iterator[ParsedRecord]]

_IN_OFFICE: Final = {"legislators-current": True, "legislators-historical": False}
_READERS: Final[dict[str, _Reader]] = {
    "legislators-historical": _legislator,
    "legislators-current": _legislator,
    "executive": _executive,
    "legislators-social-media": _social_media,
    "legislators-district-offices": _offices,
}
_CSV_IDS: Final = (
    "bioguide",
    "thomas",
    "opensecrets",
    "lis",
    "cspan",
    "govtrack",
    "votesmart",
    "ballotpedia",
    "washington_post",
    "icpsr",
    "wikipedia",
)


def _file_name(part: RawPart) -> str:
    # A loose file has no name of its own, but it often keeps the publisher's.
    return part.name or next((name for name in _FILES if name in part.archived.key), "")


def _records(part: RawPart) -> Iterator[ParsedRecord]:
    entries = _entries(part)
    first = next(entries, None)
    if first is None:
        raise WrongContentError("the list is empty; it should name people")
    reader = _reader(first)
    if part.name and reader is not _READERS.get(part.name):
        raise WrongContentError(f"{part.name} holds something else: {_contents(first)}")
    for number, entry in enumerate(chain([first], entries), 1):
        try:
            yield from reader(fields.mapping(entry), part)
        except MalformedError as error:
            raise MalformedError(f"entry {number} of the list: {error}") from error


def _reader(first: Any) -> _Reader:
    entry = fields.mapping(first)
    if "social" in entry:
        return _social_media
    if "offices" in entry:
        return _offices
    types = {text(term, "type") for term in sections(entry, "terms")}
    if types & {"sen", "rep"}:
        return _legislator
    if types & {"prez", "viceprez"}:
        return _executive
    raise WrongContentError(
        f"expected people with `terms`, `social` or `offices`, found {_contents(first)}"
    )


def _contents(first: Any) -> str:
    return f"a list whose first entry is {fields.describe(first)}"


def _entries(part: RawPart) -> Iterator[Any]:
    if part.data.removeprefix(b"\xef\xbb\xbf").startswith(b"last_name,"):
        return _csv_entries(part.data)
    return yaml_files.items(part.data)


def _csv_entries(data: bytes) -> Iterator[_Row]:
    for line in _csv_rows(data):
        named = {scheme: line.get(f"{scheme}_id") for scheme in _CSV_IDS}
        identity = {**named, "fec": (line.get("fec_ids") or "").split(",")}
        names = {part: line.get(f"{part}_name") for part in ("first", "middle", "last")}
        yield {
            "id": identity,
            "name": {**names, **line, "official_full": line.get("full_name")},
            "bio": line,
            "terms": [{**line, "class": line.get("senate_class")}],
        }


def _csv_rows(data: bytes) -> Iterator[dict[str, Any]]:
    try:
        lines = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        if "bioguide_id" not in (lines.fieldnames or ()):
            raise WrongContentError("expected a table of people with a column bioguide_id")
        yield from lines
    except (csv.Error, UnicodeDecodeError) as error:
        raise MalformedError(f"broken CSV: {error}") from error


class Legislators:
    """The five files about people of unitedstates/congress-legislators."""

    info = SourceInfo(
        name="legislators",
        title="Members of Congress",
        organisation="unitedstates/congress-legislators",
        jurisdiction="United States",
        version="1.0.0",
        schedule="30 5 * * *",
        rate=Rate(per_second=1, burst=2),
        tables=(
            legislators,
            legislator_ids,
            legislator_terms,
            legislator_party_affiliations,
            legislator_other_names,
            legislator_leadership_roles,
            legislator_family,
            legislator_social_media,
            legislator_offices,
            executives,
            executive_ids,
            executive_terms,
        ),
        at_least=500,
        published_at="none: the files carry no date",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """One task for each file, asked for conditionally in every run."""
        del state, ask  # The list of files is fixed.
        for name in _FILES:
            part = Part(name=name, url=f"{_SITE}/{name}.yaml", path=f"{name}.yaml")
            yield FetchTask(source=self.info.name, key=name, parts=(part,))

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """People, their accounts and their offices; loose files may be YAML, JSON or CSV."""
        return fields.distinct(chain.from_iterable(map(_records, raw.parts)))

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """Count people by the publisher's CSV and JSON, which are made apart from the YAML."""
        del since, until  # People are not published by the day.
        for name in ("legislators-historical", "legislators-current"):
            answer = await ask(f"{_SITE}/{name}.csv", path=f"{name}.csv")
            codes = (line.get("bioguide_id") for line in _csv_rows(answer.data))
            held = frozenset(ids.legislator_id(code) for code in codes if code)
            yield Expected(scope=name, document_ids=held)
        answer = await ask(f"{_SITE}/executive.json", path="executive.json")
        people = (section(entry, "id") for entry in yaml_files.items(answer.data))
        held = frozenset(f"executive:{required(person, 'govtrack')}" for person in people)
        yield Expected(scope="executive", document_ids=held)


source: Final = Legislators()
