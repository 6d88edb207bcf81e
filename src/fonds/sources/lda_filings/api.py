"""Filings, registrants, clients and lobbyists as the API describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.sources.families import fields
from fonds.sources.families.fields import describe, section, sections
from fonds.sources.lda_filings import tables
from fonds.sources.lda_filings.filing import Filing, Row, amount, clean, filing_uuid, person

Entry = Mapping[str, Any]

ENTITIES_BY_ACTIVITY_SINCE: Final = "2021-02-14"
"""Filings posted before have one list for all activities, which the API repeats under each."""


def read_filing(entry: Entry) -> Filing:
    """The filing of a list's entry, or of the answer by UUID."""
    registrant = read_registrant(section(entry, "registrant"))
    client = _client(section(entry, "client"), registrant)
    activities = sections(entry, "lobbying_activities")
    return Filing(
        row={
            "filing_uuid": filing_uuid(_text(entry, "filing_uuid")),
            "filing_year": fields.whole(entry, "filing_year"),
            **_texts(entry, tables.FILING_TEXTS),
            "income": _amount(entry, "income"),
            "expenses": _amount(entry, "expenses"),
            "registrant_different_address": _flag(entry, "registrant_different_address"),
            **_named("registrant", registrant),
            **_named("client", client),
        },
        registrant=registrant,
        client=client,
        lobbyists=tuple(_people(entry, registrant)),
        below={
            "lda_activities": [_texts(item, tables.ACTIVITY_TEXTS) for item in activities],
            "lda_activity_lobbyists": list(_activity_lobbyists(activities)),
            "lda_activity_entities": list(_activity_entities(entry, activities)),
            "lda_foreign_entities": list(map(_foreign, sections(entry, "foreign_entities"))),
            "lda_affiliated_organizations": [
                _texts(item, tables.AFFILIATED_TEXTS)
                for item in sections(entry, "affiliated_organizations")
            ],
            "lda_convictions": list(map(_conviction, sections(entry, "conviction_disclosures"))),
        },
    )


def read_registrant(entry: Entry) -> Row | None:
    """A registrant; None for one without a number."""
    if (key := _text(entry, "id")) is None:
        return None
    number = fields.whole(entry, "house_registrant_id")
    return {
        "id": key,
        "house_registrant_id": number,
        **_texts(entry, tables.REGISTRANT_TEXTS),
    }


def read_client(entry: Entry) -> Row | None:
    """A client of the API's own list, which names its registrant."""
    return _client(entry, read_registrant(section(entry, "registrant")))


def read_lobbyist(entry: Entry) -> Row | None:
    """A lobbyist of the API's own list, which names the registrant."""
    return _lobbyist(entry, read_registrant(section(entry, "registrant")))


def _client(entry: Entry, registrant: Row | None) -> Row | None:
    if (key := _text(entry, "id")) is None:
        return None
    return {
        "id": key,
        "client_id": fields.whole(entry, "client_id"),
        "registrant_ref": registrant and registrant["id"],
        **_texts(entry, tables.CLIENT_TEXTS),
        "client_government_entity": _flag(entry, "client_government_entity"),
        "client_self_select": _flag(entry, "client_self_select"),
    }


def _lobbyist(entry: Entry, registrant: Row | None) -> Row | None:
    if (key := _text(entry, "id")) is None:
        return None
    return {
        "id": key,
        "registrant_ref": registrant and registrant["id"],
        **_texts(entry, tables.LOBBYIST_TEXTS),
    }


def _people(entry: Entry, registrant: Row | None) -> Iterator[Row]:
    named = [
        section(item, "lobbyist")
        for activity in sections(entry, "lobbying_activities")
        for item in sections(activity, "lobbyists")
    ]
    named += [section(item, "lobbyist") for item in sections(entry, "conviction_disclosures")]
    found = (_lobbyist(one, registrant) for one in named)
    yield from {row["id"]: row for row in found if row}.values()


def _activity_lobbyists(activities: Iterable[Entry]) -> Iterator[Row]:
    for place, activity in enumerate(activities, 1):
        for item in sections(activity, "lobbyists"):
            yield {
                "activity": place,
                **_person(item),
                "covered_position": _text(item, "covered_position"),
                "new": _flag(item, "new"),
            }


def _activity_entities(entry: Entry, activities: list[Entry]) -> Iterator[Row]:
    listed = [list(map(_entity, sections(item, "government_entities"))) for item in activities]
    posted = _text(entry, "dt_posted") or ""
    repeated = len(listed) > 1 and all(one == listed[0] for one in listed)
    if repeated and posted < ENTITIES_BY_ACTIVITY_SINCE:
        yield from ({"activity": None, **row} for row in listed[0])
        return
    for place, rows in enumerate(listed, 1):
        yield from ({"activity": place, **row} for row in rows)


def _entity(item: Entry) -> Row:
    return {"entity_id": fields.whole(item, "id"), "name": _text(item, "name")}


def _foreign(item: Entry) -> Row:
    return {
        **_texts(item, tables.FOREIGN_TEXTS),
        "contribution": _amount(item, "contribution"),
        "ownership_percentage": _amount(item, "ownership_percentage"),
    }


def _conviction(item: Entry) -> Row:
    return {**_person(item), **_texts(item, ("date", "description"))}


def _person(item: Entry) -> Row:
    parts = section(item, "lobbyist")
    named = ("first_name", "middle_name", "last_name", "suffix_display")
    return {
        "lobbyist_ref": _text(parts, "id"),
        "name": person(*(_text(parts, part) for part in named)),
    }


def _named(role: str, party: Row | None) -> Row:
    held = party or {}
    return {f"{role}_ref": held.get("id"), f"{role}_name": held.get("name")}


def _texts(entry: Entry, names: Iterable[str]) -> Row:
    return {name: _text(entry, name) for name in names}


def _text(entry: Entry, name: str) -> str | None:
    return clean(fields.text(entry, name))


def _amount(entry: Entry, name: str) -> Decimal | None:
    return amount(fields.text(entry, name), name)


def _flag(entry: Entry, name: str) -> bool | None:
    value = entry.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise MalformedError(f"`{name}` should be true, false or null and is {describe(value)}")
