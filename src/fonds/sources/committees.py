"""Committees of Congress since 1973 and who sits on them, from congress-legislators.

Quirks of the publisher:
- The historical list holds committees that still exist, under names they had, and it alone knows
  in which Congresses and under which names; the current list alone knows addresses and
  jurisdictions. 43 committees were in both in 2026. So both files are one task, read together:
  what the current list says counts, and the names and Congresses of the other are added. Loaded
  one by one, whichever changed last would erase what the other said.
- The number of a subcommittee is only unique below its committee: `HSAG` and `15` make `HSAG15`.
- Congresses are integer keys in YAML and text in the JSON publication of the same list.
- Membership names committees by that code, and people by bioguide; it is edited apart from both.
- Lists of committees from the congress.gov API (`hsag00`, `hsag15`) are understood as loose
  files; they say nothing of Congresses or addresses, and name a subcommittee twice.
- No file carries a date, so no document has a `published_at`.
- Most committees that ended have no page of their own: their `source_url` is that of the committee
  above them if it has one, else congress.gov's page of all committees.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import Any, Final

from sqlalchemy import Boolean, Column, Integer, Table, Text

from fonds.errors import DuplicateKeyError, MalformedError, WrongContentError
from fonds.model import (
    Archived,
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
from fonds.sources.formats import congress as citing
from fonds.sources.formats import fields, yaml
from fonds.sources.formats.congress import committee_id, legislator_id
from fonds.sources.formats.fields import required, section, sections, text
from fonds.stores.columns import document_key, owned_by, reference, task_key, texts
from fonds.stores.tables import metadata

# Tables of the committees source; columns are named as the publisher names its fields.

COMMITTEE_TEXTS: Final = {
    "house_committee_id": "Two letters of the Clerk of the House.",
    "senate_committee_id": "Four letters of the Senate.",
    "url": "Website.",
    "minority_url": "Website of the minority.",
    "address": "Office.",
    "phone": "Office.",
    "rss_url": "Feed.",
    "minority_rss_url": "Feed of the minority.",
    "jurisdiction": "What it has to decide on, in its own words.",
    "jurisdiction_source": "The source of those words.",
    "wikipedia": "Name of the article.",
    "youtube_id": "Official channel.",
}

committees: Final = Table(
    "committees",
    metadata,
    document_key("committee:<code>"),
    Column("thomas_id", Text, nullable=False, comment="Four letters; two digits below another."),
    Column("type", Text, nullable=False, comment="house, senate or joint."),
    Column("name", Text, nullable=False, comment="Without `Subcommittee on` in most cases."),
    *reference("parent", "committees", "committee:<code> of the committee above."),
    Column("is_current", Boolean, comment="Is in the current list; NULL where nothing says."),
    *texts(**COMMITTEE_TEXTS),
)

committee_names: Final = Table(
    "committee_names",
    metadata,
    owned_by("committees", "committee_id"),
    Column("congress", Integer, primary_key=True, comment="In which it was called so."),
    Column("name", Text, nullable=False, comment="As THOMAS had it; not always the official one."),
)

committee_congresses: Final = Table(
    "committee_congresses",
    metadata,
    owned_by("committees", "committee_id"),
    Column("congress", Integer, primary_key=True, comment="In which bills were referred to it."),
)

committee_members: Final = Table(
    "committee_members",
    metadata,
    *reference("committee", "committees", "committee:<code>", primary_key=True),
    Column("bioguide", Text, primary_key=True, comment="Of the Biographical Directory."),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("ord", Integer, nullable=False, comment="Place in the publisher's list."),
    *texts(name="As listed, for reading only.", party="majority or minority."),
    Column("rank", Integer, comment="Within the party's side."),
    *texts(
        title="Chairman, Ranking Member, Ex Officio …",
        chamber="senate or house, on joint committees.",
        start_date="First day, ISO 8601, where known.",
        source="Where the assignment was announced, where known.",
    ),
    task_key(),
)


_SITE: Final = "https://unitedstates.github.io/congress-legislators"
_HISTORICAL: Final = "committees-historical"
_CURRENT: Final = "committees-current"
_MEMBERSHIP: Final = "committee-membership-current"
_ALL_COMMITTEES: Final = "https://www.congress.gov/committees"

_CODE: Final = re.compile(r"[A-Z]{4}[0-9A-Z]{0,2}")
_CHAMBERS: Final = {"H": "house", "S": "senate", "J": "joint"}

_Row = dict[str, Any]

# Committees -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Committee:
    code: str
    thomas_id: str
    type: str
    name: str
    archived: Archived
    is_current: bool | None
    parent: str | None = None
    parent_name: str | None = None
    details: _Row = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    congresses: tuple[int, ...] = ()


def _listed(part: RawPart, kind: str, entries: Iterable[Any]) -> dict[str, _Committee]:
    # The historical list names living committees too; it says of none that it is gone.
    origin = {"archived": part.archived, "is_current": True if kind == _CURRENT else None}
    by_code: dict[str, _Committee] = {}
    for number, entry in enumerate(entries, 1):
        try:
            for committee in _with_subcommittees(fields.mapping(entry), origin):
                if committee.code in by_code:
                    raise DuplicateKeyError(f"{committee.code} appears twice in one list")
                by_code[committee.code] = committee
        except MalformedError as error:
            raise MalformedError(f"entry {number} of the list: {error}") from error
    return by_code


def _with_subcommittees(entry: Mapping[str, Any], origin: _Row) -> Iterator[_Committee]:
    code, chamber = required(entry, "thomas_id"), required(entry, "type")
    yield _committee(entry, code=code, type=chamber, **origin)
    for below in sections(entry, "subcommittees"):
        full_code = code + required(below, "thomas_id")
        yield _committee(below, code=full_code, type=chamber, parent=code, **origin)


def _committee(entry: Mapping[str, Any], **more: Any) -> _Committee:
    names = section(entry, "names")
    return _Committee(
        thomas_id=required(entry, "thomas_id"),
        name=required(entry, "name"),
        details={name: text(entry, name) for name in COMMITTEE_TEXTS},
        names={_congress(key): required(names, key) for key in names},
        congresses=tuple(map(_congress, fields.texts(entry, "congresses"))),
        **more,
    )


def _congress(value: Any) -> int:
    number = fields.whole({"congress": value}, "congress")
    if number is None:
        raise MalformedError("a Congress has no number")
    return number


def _merged(old: dict[str, _Committee], new: dict[str, _Committee]) -> dict[str, _Committee]:
    if not old or not new:
        return {**old, **new}
    withdrawn = {code: replace(committee, is_current=False) for code, committee in old.items()}
    current = {code: _with_history(new[code], old.get(code)) for code in new}
    return {**withdrawn, **current}


def _with_history(new: _Committee, old: _Committee | None) -> _Committee:
    if old is None:
        return new
    details = {name: value for name, value in new.details.items() if value is not None}
    return replace(
        new,
        details={**old.details, **details},
        names={**old.names, **new.names},
        congresses=(*old.congresses, *new.congresses),
    )


def _above_first(listed: dict[str, _Committee]) -> list[_Committee]:
    return sorted(listed.values(), key=lambda committee: committee.parent is not None)


def _committee_record(committee: _Committee, listed: dict[str, _Committee]) -> ParsedRecord:
    key = committee_id(committee.code)
    row = {
        "id": key,
        "thomas_id": committee.thomas_id,
        "type": committee.type,
        "name": committee.name,
        "parent_ref": committee_id(committee.parent) if committee.parent else None,
        "is_current": committee.is_current,
        **dict.fromkeys(COMMITTEE_TEXTS),
        **committee.details,
    }
    return ParsedRecord(
        source="committees",
        table=committees.name,
        key=key,
        payload=row,
        children=tuple(_history(key, committee)),
        document=_document(key, committee, listed.get(committee.parent or "")),
    )


def _history(key: str, committee: _Committee) -> Iterator[ParsedRecord]:
    for congress, name in committee.names.items():
        yield ParsedRecord(
            source="committees",
            table=committee_names.name,
            key=f"{key}#names/{congress}",
            payload={"committee_id": key, "congress": congress, "name": name},
        )
    for congress in dict.fromkeys(committee.congresses):
        yield ParsedRecord(
            source="committees",
            table=committee_congresses.name,
            key=f"{key}#congresses/{congress}",
            payload={"committee_id": key, "congress": congress},
        )


def _document(key: str, committee: _Committee, above: _Committee | None) -> Document:
    parent_name = above.name if above else committee.parent_name or committee.parent
    over = () if committee.is_current else committee.congresses
    return Document(
        id=key,
        source="committees",
        kind="subcommittee" if committee.parent else "committee",
        title=citing.title_for(committee.name, parent_name),
        summary=citing.summary_for(
            name=committee.name,
            chamber=committee.type,
            parent=parent_name,
            is_current=committee.is_current,
            jurisdiction=committee.details.get("jurisdiction"),
            congresses=committee.congresses,
            names=committee.names.values(),
        ),
        source_url=_page(committee) or (_page(above) if above else None) or _ALL_COMMITTEES,
        source_org=citing.publisher_for(committee.type),
        citation_string=citing.citation_for(
            code=committee.code, name=committee.name, parent=parent_name, congresses=over
        ),
        raw=committee.archived,
        aliases=tuple(_aliases(committee)),
    )


def _page(committee: _Committee) -> str | None:
    page: str | None = committee.details.get("url")
    return page


def _aliases(committee: _Committee) -> Iterator[str]:
    yield f"thomas {committee.code}"
    yield f"congress.gov {_system_code(committee.code)}"


def _system_code(code: str) -> str:
    return (code if code[4:] else f"{code}00").lower()


# Members ----------------------------------------------------------------------------------


def _members(code: str, listed: list[Mapping[str, Any]]) -> Iterator[ParsedRecord]:
    reference = committee_id(code)
    for ordinal, member in enumerate(listed, 1):
        bioguide = required(member, "bioguide")
        texts = ("name", "party", "title", "chamber", "start_date", "source")
        yield ParsedRecord(
            source="committees",
            table=committee_members.name,
            key=f"{reference}#member/{bioguide}",
            payload={
                "committee_ref": reference,
                "bioguide": bioguide,
                "legislator_ref": legislator_id(bioguide),
                "ord": ordinal,
                "rank": fields.whole(member, "rank"),
                **{name: text(member, name) for name in texts},
            },
        )


def _membership(loaded: Mapping[str, Any]) -> Iterator[ParsedRecord]:
    for code in loaded:
        if not _CODE.fullmatch(code):
            raise MalformedError(f"{code[:40]!r} is not the code of a committee")
        try:
            yield from _members(code, sections(loaded, code))
        except MalformedError as error:
            raise MalformedError(f"members of {code}: {error}") from error


# congress.gov -----------------------------------------------------------------------------


def _from_api(part: RawPart, loaded: Mapping[str, Any]) -> dict[str, _Committee]:
    single = section(loaded, "committee")
    listed = [single] if single else sections(loaded, "committees")
    by_code: dict[str, _Committee] = {}
    nested: dict[str, _Committee] = {}
    for entry in listed:
        committee = _api_committee(entry, part.archived, section(entry, "parent"))
        if by_code.setdefault(committee.code, committee) != committee:
            raise DuplicateKeyError(f"{committee.code} appears twice in one list, and differs")
        for below in sections(entry, "subcommittees"):
            inner = _api_committee(below, part.archived, entry)
            nested[inner.code] = inner
    return {**nested, **by_code}


def _api_committee(
    entry: Mapping[str, Any], archived: Archived, above: Mapping[str, Any]
) -> _Committee:
    code = _code(required(entry, "systemCode"))
    current = text(entry, "isCurrent")
    return _Committee(
        code=code,
        thomas_id=code[4:] or code,
        type=_CHAMBERS.get(code[0], "joint"),
        name=text(entry, "name") or _last_name(entry),
        archived=archived,
        is_current=None if current is None else current == "true",
        parent=_code(required(above, "systemCode")) if above else None,
        parent_name=text(above, "name"),
    )


def _last_name(entry: Mapping[str, Any]) -> str:
    history = sections(entry, "history")
    if not history:
        raise MalformedError(f"{required(entry, 'systemCode')} has no name")
    latest = max(history, key=lambda item: text(item, "startDate") or "")
    return required(latest, "libraryOfCongressName")


def _code(system_code: str) -> str:
    return system_code.upper().removesuffix("00")


# Files ------------------------------------------------------------------------------------


def _parsed(raw: Raw) -> Iterator[ParsedRecord]:
    old: dict[str, _Committee] = {}
    new: dict[str, _Committee] = {}
    for part in raw.parts:
        loaded = yaml.load(part.data)
        kind = _kind(loaded, part.name)
        if kind == _MEMBERSHIP:
            yield from _membership(loaded)
        elif kind == _HISTORICAL:
            old = _listed(part, kind, loaded)
        else:
            new = _listed(part, kind, loaded) if kind == _CURRENT else _from_api(part, loaded)
    merged = _merged(old, new)
    yield from (_committee_record(committee, merged) for committee in _above_first(merged))


def _kind(loaded: Any, name: str) -> str:
    kinds = _sniffed(loaded)
    if not name or name == kinds or {name, kinds} == {_HISTORICAL, _CURRENT}:
        return name or kinds
    raise WrongContentError(f"{name} holds something else: {kinds}")


def _sniffed(loaded: Any) -> str:
    if isinstance(loaded, list) and loaded:
        first = fields.mapping(loaded[0])
        if "thomas_id" in first:
            return _HISTORICAL if "congresses" in first else _CURRENT
        raise WrongContentError(f"expected committees, found {fields.describe(first)}")
    if isinstance(loaded, Mapping) and _CODE.fullmatch(next(iter(loaded), "")):
        return _MEMBERSHIP
    if isinstance(loaded, Mapping) and (loaded.get("committees") or loaded.get("committee")):
        return "a list of committees from the congress.gov API"
    raise WrongContentError(
        f"expected a list of committees or their members by code, found {fields.describe(loaded)}"
    )


class Committees:
    """The three files about committees of unitedstates/congress-legislators."""

    info = SourceInfo(
        name="committees",
        title="Committees of Congress",
        summary="committees of Congress since 1973 and who sits on them",
        organisation="unitedstates/congress-legislators",
        addresses=(_SITE,),
        jurisdiction="United States",
        version="1.0.0",
        schedule="40 5 * * *",
        rate=Rate(per_second=1, burst=2),
        tables=(committees, committee_names, committee_congresses, committee_members),
        depends_on=("legislators",),
        at_least=200,
        published_at="none: the files carry no date",
        csl_type="webpage",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """Both lists of committees as one task, then who sits on them."""
        del state, ask  # The list of files is fixed.
        yield self._task("committees", _HISTORICAL, _CURRENT)
        yield self._task(_MEMBERSHIP, _MEMBERSHIP)

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """Committees above their subcommittees, or members; loose files may be JSON."""
        return fields.distinct(_parsed(raw))

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """Count committees by the JSON that the publisher makes of the same lists."""
        del since, until  # Committees are not published by the day.
        for name in (_HISTORICAL, _CURRENT):
            listing = await ask(f"{_SITE}/{name}.json", path=f"{name}.json")
            codes = chain.from_iterable(map(_codes, yaml.items(listing.data)))
            yield Expected(scope=name, document_ids=frozenset(map(committee_id, codes)))

    def _task(self, key: str, *files: str) -> FetchTask:
        parts = tuple(
            Part(name=name, url=f"{_SITE}/{name}.yaml", path=f"{name}.yaml") for name in files
        )
        return FetchTask(source=self.info.name, key=key, parts=parts)


def _codes(entry: Any) -> Iterator[str]:
    code = required(fields.mapping(entry), "thomas_id")
    yield code
    for below in sections(entry, "subcommittees"):
        yield code + required(below, "thomas_id")


source: Final = Committees()
