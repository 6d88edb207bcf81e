"""Members of Congress since 1789, presidents and vice presidents, from congress-legislators.

Quirks of the publisher:
- One file holds who serves, another who served; a member who leaves moves between them, and the
  move may come late. `in_office` says in which of the two a person is.
- Every member has a bioguide id. Presidents who never sat in Congress have none, and those who
  did appear in two files; the GovTrack id is the one every person of `executive` has, so that is
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
from itertools import chain, groupby
from typing import Any, Final

from sqlalchemy import Table

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
from fonds.sources.formats import fields, yaml
from fonds.sources.formats.congress import legislator_id
from fonds.sources.formats.fields import required, section, sections, text
from fonds.sources.legislators.tables import (
    OFFICE_TEXTS,
    SOCIAL_NETWORKS,
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

# How members of Congress, presidents and vice presidents are named, described and cited.
#
# The files name people but are not themselves something a brief would cite; what a reader can
# check is the person's entry in the Biographical Directory, so that is what is cited. Someone
# without an entry (a president who never sat in Congress) is cited by the number of the GovTrack
# page that `page_for` gives.

_CitedRow = Mapping[str, Any]

DIRECTORY: Final = "Biographical Directory of the United States Congress"
GOVTRACK: Final = "GovTrack.us"

_PREFIXES: Final = {
    "sen": "Sen.",
    "rep": "Rep.",
    "prez": "President",
    "viceprez": "Vice President",
}
_PARTY_LETTERS: Final = {"Democrat": "D", "Republican": "R", "Independent": "I"}
# These send a delegate, not a representative; the last two are territories that are no more.
_DELEGATES: Final = frozenset({"AS", "DC", "GU", "MP", "VI", "DK", "OL"})
_RESIDENT_COMMISSIONERS: Final = frozenset({"PR", "PI"})

_STATES: Final = """
AK Alaska, AL Alabama, AR Arkansas, AZ Arizona, CA California, CO Colorado, CT Connecticut,
DE Delaware, FL Florida, GA Georgia, HI Hawaii, IA Iowa, ID Idaho, IL Illinois, IN Indiana,
KS Kansas, KY Kentucky, LA Louisiana, MA Massachusetts, MD Maryland, ME Maine, MI Michigan,
MN Minnesota, MO Missouri, MS Mississippi, MT Montana, NC North Carolina, ND North Dakota,
NE Nebraska, NH New Hampshire, NJ New Jersey, NM New Mexico, NV Nevada, NY New York, OH Ohio,
OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island, SC South Carolina, SD South Dakota,
TN Tennessee, TX Texas, UT Utah, VA Virginia, VT Vermont, WA Washington, WI Wisconsin,
WV West Virginia, WY Wyoming, AS American Samoa, DC the District of Columbia, GU Guam,
MP the Northern Mariana Islands, PR Puerto Rico, VI the Virgin Islands, DK Dakota Territory,
OL the Territory of Orleans, PI the Philippines
"""
_STATE_NAMES: Final = {
    code: name for code, _, name in (entry.strip().partition(" ") for entry in _STATES.split(","))
}


def citation_for(row: _CitedRow) -> str:
    """The person of a row of `legislators` or `executives`, ready to cite.

    `Sen. Ada Palmer (D-WA), Biographical Directory U.S. Cong., P000901.` and, without an entry
    in the directory, `President Cyrus Holt, GovTrack.us, No. 498001.`
    """
    if row.get("bioguide"):
        return f"{title_for(row)}, Biographical Directory U.S. Cong., {row['bioguide']}."
    return f"{title_for(row)}, {GOVTRACK}, No. {row['govtrack']}."


def title_for(row: _CitedRow) -> str:
    """`Sen. Ada Palmer (D-WA)`: the last office held, the name, the party and the state.

    A party without a customary letter is written out: `Rep. Enos Ward (Whig-OH)`.
    """
    name = f"{_prefix(row)} {full_name(row)}".strip()
    if row.get("type") in {"prez", "viceprez"}:
        return name
    party = _PARTY_LETTERS.get(row.get("party") or "", row.get("party"))
    seat = "-".join(part for part in (party, row.get("state")) if part)
    return f"{name} ({seat})" if seat else name


def full_name(row: _CitedRow) -> str:
    """The name as the chamber writes it, or else put together from its parts."""
    if row.get("official_full"):
        return str(row["official_full"])
    parts = (row.get(part) for part in ("first", "middle", "last", "suffix"))
    return " ".join(part for part in parts if part)


def page_for(row: _CitedRow) -> str:
    """The page a person would open."""
    if row.get("bioguide"):
        return f"https://bioguide.congress.gov/search/bio/{row['bioguide']}"
    return f"https://www.govtrack.us/congress/members/{row['govtrack']}"


def publisher_for(row: _CitedRow) -> str:
    """The publisher of that page."""
    return DIRECTORY if row.get("bioguide") else GOVTRACK


def summary_for(
    row: _CitedRow,
    *,
    terms: Iterable[_CitedRow],
    roles: Iterable[_CitedRow] = (),
    affiliations: Iterable[_CitedRow] = (),
    other_names: Iterable[_CitedRow] = (),
) -> str:
    """Whole sentences that a search for a state, a party, an office or a year finds."""
    born = f", born {row['birthday']}" if row.get("birthday") else ""
    called = f", called {row['nickname']}" if row.get("nickname") else ""
    sentences = [
        f"{full_name(row)}{called}{born}",
        *_service(terms),
        *_summary_parts(row),
        *_leadership(roles),
        *_party_changes(affiliations),
        *(
            f"Also known as {full_name({**row, 'official_full': None, **_first_names(name)})}"
            for name in other_names
        ),
    ]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)


def state_name(state: str) -> str:
    """`Washington` for `WA`; an unknown code is its own name."""
    return _STATE_NAMES.get(state, state)


def office_name(term_type: str, state: str | None) -> str:
    """`U.S. Senator`, `Delegate`, `Resident Commissioner`, `President of the United States`."""
    if term_type == "rep" and state in _DELEGATES:
        return "Delegate"
    if term_type == "rep" and state in _RESIDENT_COMMISSIONERS:
        return "Resident Commissioner"
    return {
        "sen": "U.S. Senator",
        "rep": "U.S. Representative",
        "prez": "President of the United States",
        "viceprez": "Vice President of the United States",
    }.get(term_type, term_type)


def _prefix(row: _CitedRow) -> str:
    if row.get("type") == "rep" and row.get("state") in _DELEGATES:
        return "Del."
    if row.get("type") == "rep" and row.get("state") in _RESIDENT_COMMISSIONERS:
        return "Res. Comm'r"
    return _PREFIXES.get(row.get("type") or "", "")


def _service(terms: Iterable[_CitedRow]) -> Iterator[str]:
    for seat, group in groupby(terms, key=_seat):
        yield _dated(seat, group)


def _seat(term: _CitedRow) -> str:
    state, district = term.get("state"), term.get("district")
    seat = office_name(term["type"], state)
    if state:
        seat += f" from {state_name(state)}"
    if district is not None and district >= 0:
        seat += f", district {district}" if district else " at large"
    caucus = f", caucus {term['caucus']}" if term.get("caucus") else ""
    return f"{seat} ({term['party']}{caucus})" if term.get("party") else seat


def _dated(what: str, spans: Iterable[_CitedRow]) -> str:
    # Terms that follow each other are one stretch; a seat won back later begins another.
    stretches: list[list[str]] = []
    for span in spans:
        first, last = (span.get("start") or "")[:4], (span.get("end_date") or "")[:4]
        if stretches and stretches[-1][1] >= first:
            stretches[-1][1] = last
        elif first:
            stretches.append([first, last])
    years = [a if a == b else f"{a}–{b}" for a, b in stretches]
    return ", ".join([what, *years])


def _summary_parts(row: _CitedRow) -> Iterator[str]:
    if row.get("in_office") is True:
        yield f"In office; the term ends {row['end_date']}" if row.get("end_date") else "In office"
    elif row.get("in_office") is False:
        yield "Former member of Congress"


def _leadership(roles: Iterable[_CitedRow]) -> Iterator[str]:
    for title, group in groupby(roles, key=lambda role: role["title"]):
        yield _dated(title, group)


def _party_changes(affiliations: Iterable[_CitedRow]) -> Iterator[str]:
    changes = [
        f"{item['party']} from {item['start']}" for item in affiliations if item.get("party")
    ]
    if changes:
        yield f"Changed party or caucus during a term: {', '.join(changes)}"


def _first_names(name: _CitedRow) -> dict[str, Any]:
    return {part: value for part, value in name.items() if value is not None}


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
        key = "/".join(str(row[c.name]) for c in table.primary_key if c.name in row)
        yield _record(table, f"{parent}#{name}/{key}", {f"{kind}_id": parent, **row})


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
    key = legislator_id(bioguide)
    terms = _numbered(map(_term, sections(entry, "terms")))
    affiliations = list(_affiliations(entry))
    names = _numbered(map(_other_name, sections(entry, "other_names")))
    roles = _numbered(map(_role, sections(entry, "leadership_roles")))
    family = _numbered(_row(relative, "name", "relation") for relative in sections(entry, "family"))
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
        summary=summary_for(
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
        affiliations = sections(term, "party_affiliations")
        for row in _numbered(
            {**_span(affiliation), **_row(affiliation, "party", "caucus")}
            for affiliation in affiliations
        ):
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
        "legislator_ref": legislator_id(bioguide) if bioguide else None,
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
        summary=summary_for(row, terms=terms),
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
        title=title_for(row),
        source_url=page_for(row),
        source_org=publisher_for(row),
        citation_string=citation_for(row),
        raw=part.archived,
        **more,
    )


def _social_media(entry: Mapping[str, Any], _part: RawPart) -> Iterator[ParsedRecord]:
    reference = legislator_id(required(section(entry, "id"), "bioguide"))
    row = _row(section(entry, "social"), *SOCIAL_NETWORKS)
    payload = {"legislator_ref": reference, **row}
    yield _record(legislator_social_media, f"{reference}#social_media", payload)


def _offices(entry: Mapping[str, Any], _part: RawPart) -> Iterator[ParsedRecord]:
    reference = legislator_id(required(section(entry, "id"), "bioguide"))
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
    return yaml.items(part.data)


def _csv_entries(data: bytes) -> Iterator[_Row]:
    for line in _csv_rows(data):
        identifiers = {scheme: line.get(f"{scheme}_id") for scheme in _CSV_IDS}
        identity = {**identifiers, "fec": (line.get("fec_ids") or "").split(",")}
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
        summary="members of Congress since 1789, presidents and vice presidents",
        organisation="unitedstates/congress-legislators",
        addresses=(_SITE,),
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
        csl_type="webpage",
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
            listing = await ask(f"{_SITE}/{name}.csv", path=f"{name}.csv")
            codes = (line.get("bioguide_id") for line in _csv_rows(listing.data))
            document_ids = frozenset(legislator_id(code) for code in codes if code)
            yield Expected(scope=name, document_ids=document_ids)
        listing = await ask(f"{_SITE}/executive.json", path="executive.json")
        people = (section(entry, "id") for entry in yaml.items(listing.data))
        document_ids = frozenset(f"executive:{required(person, 'govtrack')}" for person in people)
        yield Expected(scope="executive", document_ids=document_ids)


source: Final = Legislators()
