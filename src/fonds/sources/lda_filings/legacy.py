"""Filings of the Senate's quarterly files, 1999 on: attributes of `PublicFilings/Filing`.

They number registrants but not lobbyists; a client's number is unique for its registrant only. Who
lobbied and who was contacted is said of the filing, not of an activity, and the amount is income
or expenses. `<SELECT ONE>` and `UNDETERMINED` are what a form showed where nothing was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.sources.families import xml_files
from fonds.sources.lda_filings.filing import Filing, Row, amount, clean, filing_uuid

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
    for element in xml_files.read(data, *ROOTS).findall("Filing"):
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
    share = "ForeignEntityOwnershipPercentage"
    return {
        "name": _attribute(element, "ForeignEntityName"),
        "country_display": _chosen(element, "ForeignEntityCountry"),
        "ppb_country_display": _chosen(element, "ForeignEntityPPBcountry"),
        "contribution": amount(element.get("ForeignEntityContribution"), "Contribution"),
        "ownership_percentage": amount(element.get(share), share),
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
    found = _attribute(element, name)
    return None if found in _UNCHOSEN else found


def _number(element: Any, name: str) -> int | None:
    value = (element.get(name) or "").strip()
    if not value:
        return None
    if not (value.isascii() and value.isdecimal()):
        raise MalformedError(f"{name} should be a whole number and is {value[:60]!r}")
    return int(value)
