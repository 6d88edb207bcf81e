"""Filings as the API and the Senate's quarterly files describe them, read into the same rows.

The quarterly files, since 1999, have attributes of `PublicFilings/Filing`. They number registrants
but not lobbyists; a client's number is unique for its registrant only. Lobbyists and contacted
agencies are those of the filing, not of an activity, and the amount is income or expenses.
`<SELECT ONE>` and `UNDETERMINED` are what a form showed where nothing was chosen.

Texts are repaired: escapes are undone, and provable mojibake. Much was pasted as UTF-8, read as
Windows-1252 and escaped as HTML on its way into the forms: `&#226;€‹` is a zero-width space. A run
of characters whose Windows-1252 bytes are one character in UTF-8 is converted back. Of runs of two
only those that begin with Â or Ã are: É® may be at the end of a brand's name.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.sources.formats import fields, xml
from fonds.sources.formats.fields import describe, section, sections
from fonds.sources.lda_filings import tables

# Without its semicolon an entity may be the beginning of a word: R&parity.
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ROUNDS: Final = 3
"""Some texts went through the forms more than once."""


def _as_windows_1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)  # five bytes have no character; browsers take them for controls


_BYTES: Final = {_as_windows_1252(byte): byte for byte in range(0x80, 0x100)}


def _class(first: int, last: int) -> str:
    return "[" + re.escape("".join(c for c, b in _BYTES.items() if first <= b <= last)) + "]"


_NEXT: Final = _class(0x80, 0xBF)
_MANGLED: Final = re.compile(
    f"{_class(0xC2, 0xC3)}{_NEXT}|{_class(0xE0, 0xEF)}{_NEXT}{{2}}|{_class(0xF0, 0xF4)}{_NEXT}{{3}}"
)


def repair(text: str) -> str:
    """The text without escapes and, where that is certain, with the characters it had."""
    for _ in range(_ROUNDS):
        better = _MANGLED.sub(_restored, _ENTITY.sub(_unescaped, text))
        if better == text:
            break
        text = better
    return text.replace("\0", "")


def _unescaped(match: re.Match[str]) -> str:
    return html.unescape(match[0])


def _restored(match: re.Match[str]) -> str:
    try:
        return bytes(_BYTES[character] for character in match[0]).decode()
    except UnicodeDecodeError:
        return match[0]


Row = dict[str, Any]

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_AMOUNT: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,8})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filing:
    """One filing and everything it names."""

    row: Row
    """Of lda_filings, without its id."""
    registrant: Row | None = None
    client: Row | None = None
    lobbyists: tuple[Row, ...] = ()
    """Of lda_lobbyists, each once."""
    below: Mapping[str, list[Row]] = field(default_factory=dict)
    """Table → rows, without owner and position."""


def clean(value: str | None) -> str | None:
    """A text repaired; None where it is blank."""
    return (repair(value).strip() or None) if value else None


def filing_uuid(value: str | None) -> str:
    """A filing's key in small letters; the old files have it in capitals."""
    uuid = (value or "").strip().lower()
    if not _UUID.fullmatch(uuid):
        raise MalformedError(f"a filing's UUID is expected instead of {value!r}")
    return uuid


def amount(value: str | None, name: str) -> Decimal | None:
    """A sum as the API writes it, `40000.00`."""
    if value is None:
        return None
    if not _AMOUNT.fullmatch(value):
        raise MalformedError(f"`{name}` should be an amount and is {value[:60]!r}")
    return Decimal(value)


def person(*names: str | None) -> str | None:
    """`JANE Q ROE JR` of its parts."""
    return " ".join(filter(None, names)) or None


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
            **_party("registrant", registrant),
            **_party("client", client),
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
    listed = [
        section(item, "lobbyist")
        for activity in sections(entry, "lobbying_activities")
        for item in sections(activity, "lobbyists")
    ]
    listed += [section(item, "lobbyist") for item in sections(entry, "conviction_disclosures")]
    people = (_lobbyist(lobbyist, registrant) for lobbyist in listed)
    yield from {row["id"]: row for row in people if row}.values()


def _activity_lobbyists(activities: Iterable[Entry]) -> Iterator[Row]:
    for ordinal, activity in enumerate(activities, 1):
        for item in sections(activity, "lobbyists"):
            yield {
                "activity": ordinal,
                **_person(item),
                "covered_position": _text(item, "covered_position"),
                "new": _flag(item, "new"),
            }


def _activity_entities(entry: Entry, activities: list[Entry]) -> Iterator[Row]:
    listed = [list(map(_entity, sections(item, "government_entities"))) for item in activities]
    posted = _text(entry, "dt_posted") or ""
    repeated = len(listed) > 1 and all(entities == listed[0] for entities in listed)
    if repeated and posted < ENTITIES_BY_ACTIVITY_SINCE:
        yield from ({"activity": None, **row} for row in listed[0])
        return
    for ordinal, rows in enumerate(listed, 1):
        yield from ({"activity": ordinal, **row} for row in rows)


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
    name_fields = ("first_name", "middle_name", "last_name", "suffix_display")
    return {
        "lobbyist_ref": _text(parts, "id"),
        "name": person(*(_text(parts, part) for part in name_fields)),
    }


def _party(role: str, party: Row | None) -> Row:
    party = party or {}
    return {f"{role}_ref": party.get("id"), f"{role}_name": party.get("name")}


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


# The samples of one collection have a root of their own.
ROOTS: Final = ("PublicFilings", "PublicFiling")

_UNCHOSEN: Final = frozenset({"<SELECT ONE>", "UNDETERMINED"})
_PERIODS: Final = {
    "1st Quarter": "first_quarter",
    "2nd Quarter": "second_quarter",
    "3rd Quarter": "third_quarter",
    "4th Quarter": "fourth_quarter",
    "Mid-Year": "mid_year",
    "Year-End": "year_end",
}
_REGISTRATIONS: Final = {"REGISTRATION": "RR", "REGISTRATIONAMENDMENT": "RA"}
_PREFIXES: Final = {
    "FIRSTQUARTER": ("1", "Q1"),
    "SECONDQUARTER": ("2", "Q2"),
    "THIRDQUARTER": ("3", "Q3"),
    "FOURTHQUARTER": ("4", "Q4"),
    "MIDYEAR": ("M", "MM"),
    "YEAREND": ("Y", "YY"),
}
_SUFFIXES: Final = {"TERMINATION": "T", "AMENDMENT": "A", "TERMINATIONAMENDMENT": "@"}


def read_filings(data: bytes) -> Iterator[Filing]:
    """The filings of a file, in its order."""
    for element in xml.read(data, *ROOTS).findall("Filing"):
        yield _filing(element)


def filing_type(words: str | None) -> str | None:
    """`MA` for `MID-YEAR AMENDMENT`: the API's code for it; None where it has none."""
    name = (words or "").upper().replace(" ", "").replace("-", "")
    idle = name.endswith("(NOACTIVITY)")
    name = name.removesuffix("(NOACTIVITY)")
    code = _REGISTRATIONS.get(name)
    for prefix, (short, report) in _PREFIXES.items():
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            suffix = _SUFFIXES.get(rest)
            code = short + suffix if suffix else report if rest in {"", "REPORT"} else None
    return f"{code}Y" if code and idle else code


def _filing(element: Any) -> Filing:
    registrant = _registrant(element.find("Registrant"))
    client = _legacy_client(element.find("Client"), registrant)
    words = _attribute(element, "Type")
    period = _chosen(element, "Period")
    return Filing(
        row={
            "filing_uuid": filing_uuid(element.get("ID")),
            "filing_year": _number(element, "Year"),
            "filing_type": filing_type(words),
            "filing_type_display": words,
            "filing_period": _PERIODS.get((period or "").partition(" (")[0]),
            "filing_period_display": period,
            "dt_posted": _attribute(element, "Received"),
            "amount": amount(element.get("Amount"), "Amount"),
            "registrant_ref": registrant and registrant["id"],
            "registrant_name": registrant and registrant["name"],
            # A client without its registrant has no key, but a name.
            "client_ref": client and client["id"],
            "client_name": client and client["name"],
            "affiliated_orgs_url": _attribute(element, "AffiliatedOrgsURL"),
        },
        registrant=registrant,
        client=client if client and client["id"] else None,
        below={
            "lda_activities": list(map(_issue, element.iterfind("Issues/Issue"))),
            "lda_activity_lobbyists": list(
                map(_legacy_lobbyist, element.iterfind("Lobbyists/Lobbyist"))
            ),
            "lda_activity_entities": [
                {"name": _attribute(item, "GovEntityName")}
                for item in element.iterfind("GovernmentEntities/GovernmentEntity")
            ],
            "lda_foreign_entities": list(
                map(_legacy_foreign, element.iterfind("ForeignEntities/Entity"))
            ),
            "lda_affiliated_organizations": list(
                _affiliated(element.iterfind("AffiliatedOrgs/Org"))
            ),
        },
    )


def _registrant(element: Any) -> Row | None:
    key = None if element is None else _attribute(element, "RegistrantID")
    if key is None:
        return None
    return {
        "id": key,
        "name": _attribute(element, "RegistrantName"),
        "description": _attribute(element, "GeneralDescription"),
        "address_1": _attribute(element, "Address"),
        "country_display": _chosen(element, "RegistrantCountry"),
        "ppb_country_display": _chosen(element, "RegistrantPPBCountry"),
    }


def _legacy_client(element: Any, registrant: Row | None) -> Row | None:
    if element is None:
        return None
    number = _number(element, "ClientID")
    local = element.get("IsStateOrLocalGov")
    return {
        "id": f"{registrant['id']}-{number}" if registrant and number is not None else None,
        "client_id": number,
        "registrant_ref": registrant and registrant["id"],
        "name": _attribute(element, "ClientName"),
        "general_description": _attribute(element, "GeneralDescription"),
        "client_government_entity": None if local is None else local.lower() in {"1", "true"},
        "contact_name": _attribute(element, "ContactFullname"),
        "status": _number(element, "ClientStatus"),
        "state_display": _chosen(element, "ClientState"),
        "country_display": _chosen(element, "ClientCountry"),
        "ppb_state_display": _chosen(element, "ClientPPBState"),
        "ppb_country_display": _chosen(element, "ClientPPBCountry"),
    }


def _issue(element: Any) -> Row:
    return {
        "general_issue_code_display": _attribute(element, "Code"),
        "description": _attribute(element, "SpecificIssue"),
    }


def _legacy_lobbyist(element: Any) -> Row:
    return {
        "name": _attribute(element, "LobbyistName"),
        "covered_position": _attribute(element, "OfficialPosition"),
        "status": _number(element, "LobbyistStatus"),
        # The publisher's spelling.
        "indicator": _number(element, "LobbyisteIndicator"),
    }


def _legacy_foreign(element: Any) -> Row:
    field = "ForeignEntityOwnershipPercentage"
    return {
        "name": _attribute(element, "ForeignEntityName"),
        "country_display": _chosen(element, "ForeignEntityCountry"),
        "ppb_country_display": _chosen(element, "ForeignEntityPPBcountry"),
        "contribution": amount(element.get("ForeignEntityContribution"), "Contribution"),
        "ownership_percentage": amount(element.get(field), field),
        "status": _number(element, "ForeignEntityStatus"),
    }


def _affiliated(elements: Iterable[Any]) -> Iterator[Row]:
    for element in elements:
        yield {
            "name": _attribute(element, "AffiliatedOrgName"),
            "country_display": _chosen(element, "AffiliatedOrgCountry"),
            "ppb_country_display": _chosen(element, "AffiliatedOrgPPBCcountry"),
        }


def _attribute(element: Any, name: str) -> str | None:
    return clean(element.get(name))


def _chosen(element: Any, name: str) -> str | None:
    value = _attribute(element, name)
    return None if value in _UNCHOSEN else value


def _number(element: Any, name: str) -> int | None:
    value = (element.get(name) or "").strip()
    if not value:
        return None
    if not (value.isascii() and value.isdecimal()):
        raise MalformedError(f"{name} should be a whole number and is {value[:60]!r}")
    return int(value)
