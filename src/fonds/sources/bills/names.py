"""The names of bills (types, packages, pages), and the stages at which their texts are printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from fonds.sources.formats.congress import ABBREVIATIONS, bill_id, committee_id, ordinal

HOUSE: Final = "U.S. House of Representatives"
SENATE: Final = "U.S. Senate"
CONGRESS: Final = "U.S. Congress"
PAGES: Final = "https://www.congress.gov/bill"

TYPES: Final = tuple(ABBREVIATIONS)

_PAGE_NAMES: Final = {
    "hr": "house-bill",
    "s": "senate-bill",
    "hjres": "house-joint-resolution",
    "sjres": "senate-joint-resolution",
    "hconres": "house-concurrent-resolution",
    "sconres": "senate-concurrent-resolution",
    "hres": "house-resolution",
    "sres": "senate-resolution",
}
# As congress.gov prints them, where the Bluebook differs.
_PRINTED: Final = {"hjres": "H.J. Res.", "hconres": "H. Con. Res.", "hres": "H. Res."}

_STATUS_FILE: Final = re.compile(r"BILLSTATUS-([0-9]{2,3})([a-z]+)([0-9]{1,6})\.xml", re.IGNORECASE)
_PACKAGE: Final = re.compile(
    r"(?:BILLS-)?([0-9]{2,3})(hr|s|[hs]jres|[hs]conres|[hs]res)([0-9]{1,6})([a-z]+[0-9]?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BillName:
    """Which bill: its Congress, type and number."""

    congress: int
    kind: str
    """Lower case: `hr`."""
    number: int

    @property
    def id(self) -> str:
        """`bill:119-hr-1`."""
        return bill_id(self.congress, self.kind, self.number)

    @property
    def printed(self) -> str:
        """`H.J. Res. 41`, as printed on the bill."""
        return f"{_PRINTED.get(self.kind, ABBREVIATIONS[self.kind])} {self.number}"

    @property
    def package(self) -> str:
        """`119hr1`, the middle of every file name."""
        return f"{self.congress}{self.kind}{self.number}"

    @property
    def page(self) -> str:
        """Its page at congress.gov."""
        counted = ordinal(self.congress)
        return f"{PAGES}/{counted}-congress/{_PAGE_NAMES[self.kind]}/{self.number}"

    @property
    def chamber(self) -> str:
        """The house it was introduced in, as a publisher."""
        return HOUSE if self.kind.startswith("h") else SENATE

    def aliases(self) -> Iterator[str]:
        """Every other name people and files give it."""
        counted = ordinal(self.congress)
        cited = f"{ABBREVIATIONS[self.kind]} {self.number}"
        for form in dict.fromkeys((self.printed, cited)):
            yield f"{form} ({counted})"
            yield f"{self.congress} {form}"
            yield f"{form}, {counted} Cong."
        yield f"{self.kind}{self.number}-{self.congress}"
        yield f"BILLSTATUS-{self.package}"
        yield self.page

    @classmethod
    def of_status_file(cls, name: str) -> Self | None:
        """The bill a status file is about, by the last part of its address."""
        match = _STATUS_FILE.search(name)
        return cls._if_bill(*match.groups()) if match else None

    @classmethod
    def of_parts(cls, congress: int | None, kind: str | None, number: int | None) -> Self | None:
        """The bill of those parts, or None where one is missing or no type of bill."""
        if congress is None or kind is None or number is None:
            return None
        return cls._if_bill(str(congress), kind, str(number))

    @classmethod
    def _if_bill(cls, congress: str, kind: str, number: str) -> Self | None:
        if kind.lower() not in TYPES:
            return None
        return cls(congress=int(congress), kind=kind.lower(), number=int(number))


def package_parts(name: str) -> tuple[BillName, str] | None:
    """The bill and the version code a package name begins with: `BILLS-119hr1ih.xml`."""
    match = _PACKAGE.match(name)
    if match is None:
        return None
    bill = BillName.of_parts(int(match[1]), match[2], int(match[3]))
    return (bill, match[4].lower()) if bill else None


def kind_of(text: str) -> str | None:
    """`hconres` for `H. CON. RES. 5`, `HCONRES` and `House Concurrent Resolution`."""
    letters = re.sub(r"[^a-z]", "", text.lower())
    for long, short in (
        ("house", "h"),
        ("senate", "s"),
        ("concurrent", "con"),
        ("joint", "j"),
        ("simple", ""),
        ("resolution", "res"),
        ("hbill", "hr"),
        ("sbill", "s"),
    ):
        letters = letters.replace(long, short)
    return letters if letters in TYPES else None


def committee_ref(system_code: str) -> str:
    """`hsag00` is `committee:HSAG`, and `hsag14` its subcommittee `committee:HSAG14`."""
    return committee_id(system_code.upper().removesuffix("00"))


# Code → the name BILLSTATUS, USLM and the House's DTD agree on, and the phrase of a citation.
_STAGES: Final = {
    "as": ("Amendment Ordered to be Printed Senate", "as ordered printed with amendment in Senate"),
    "ash": ("Additional Sponsors House", "as printed with additional sponsors in House"),
    "ath": ("Agreed to House", "as agreed to by House"),
    "ats": ("Agreed to Senate", "as agreed to by Senate"),
    "cdh": ("Committee Discharged House", "as discharged from committee in House"),
    "cds": ("Committee Discharged Senate", "as discharged from committee in Senate"),
    "cph": ("Considered and Passed House", "as considered and passed by House"),
    "cps": ("Considered and Passed Senate", "as considered and passed by Senate"),
    "eah": ("Engrossed Amendment House", "as amended by House"),
    "eas": ("Engrossed Amendment Senate", "as amended by Senate"),
    "eh": ("Engrossed in House", "as passed by House"),
    "enr": ("Enrolled Bill", "as enrolled"),
    "es": ("Engrossed in Senate", "as passed by Senate"),
    "fah": ("Failed Amendment House", "with amendment failed in House"),
    "fph": ("Failed Passage House", "as failed of passage in House"),
    "fps": ("Failed Passage Senate", "as failed of passage in Senate"),
    "hdh": ("Held at Desk House", "as held at desk in House"),
    "hds": ("Held at Desk Senate", "as held at desk in Senate"),
    "ih": ("Introduced in House", "as introduced in House"),
    "iph": ("Indefinitely Postponed House", "as indefinitely postponed in House"),
    "ips": ("Indefinitely Postponed Senate", "as indefinitely postponed in Senate"),
    "is": ("Introduced in Senate", "as introduced in Senate"),
    "lth": ("Laid on Table House", "as laid on table in House"),
    "lts": ("Laid on Table Senate", "as laid on table in Senate"),
    "nat": ("Natural", "as printed"),
    "oph": ("Ordered to be Printed House", "as ordered printed in House"),
    "ops": ("Ordered to be Printed Senate", "as ordered printed in Senate"),
    "pap": ("Printed as Passed", "as printed as passed"),
    "pav": ("Previous Action Vitiated", "as printed after action was vitiated"),
    "pch": ("Placed on Calendar House", "as placed on calendar in House"),
    "pcs": ("Placed on Calendar Senate", "as placed on calendar in Senate"),
    "pp": ("Public Print", "as publicly printed"),
    "pwah": (
        "Ordered to be Printed with House Amendment",
        "as ordered printed with House amendment",
    ),
    "rah": ("Referred with Amendments House", "as referred with amendments in House"),
    "ras": ("Referred with Amendments Senate", "as referred with amendments in Senate"),
    "rch": ("Reference Change House", "as re-referred in House"),
    "rcs": ("Reference Change Senate", "as re-referred in Senate"),
    "rdh": ("Received in House", "as received in House"),
    "rds": ("Received in Senate", "as received in Senate"),
    "re": ("Reprint of an Amendment", "as reprinted with amendment"),
    "reah": ("Re-engrossed Amendment House", "as amended by House, re-engrossed"),
    "renr": ("Re-enrolled Bill", "as re-enrolled"),
    "res": ("Re-engrossed Amendment Senate", "as amended by Senate, re-engrossed"),
    "rfh": ("Referred in House", "as referred in House"),
    "rfs": ("Referred in Senate", "as referred in Senate"),
    "rh": ("Reported in House", "as reported in House"),
    "rih": ("Referral Instructions House", "as referred with instructions in House"),
    "ris": ("Referral Instructions Senate", "as referred with instructions in Senate"),
    "rs": ("Reported in Senate", "as reported in Senate"),
    "rth": ("Referred to Committee House", "as referred to committee in House"),
    "rts": ("Referred to Committee Senate", "as referred to committee in Senate"),
    "sas": ("Additional Sponsors Senate", "as printed with additional sponsors in Senate"),
    "sc": ("Sponsor Change House", "as printed with change of sponsor"),
}
_BY_NAME: Final = {
    **{re.sub(r"[^a-z]+", " ", name.lower()): code for code, (name, _) in _STAGES.items()},
    "enrolled": "enr",
    "reported to house": "rh",
    "reported to senate": "rs",
    "received in the house": "rdh",
    "received in the senate": "rds",
    "referred to house": "rfh",
    "referred to senate": "rfs",
    "engrossed amendment as agreed to by house": "eah",
    "engrossed amendment as agreed to by senate": "eas",
    "agreed to in house": "ath",
    "agreed to in senate": "ats",
}
_SUFFIX: Final = re.compile(r"[0-9~]+$")


def code_of(stage: str | None) -> str | None:
    """The code of a stage by its name, in whatever punctuation, or by its code."""
    if stage is None:
        return None
    name = re.sub(r"[^a-z]+", " ", stage.lower()).strip()
    return name if name in _STAGES else _BY_NAME.get(name)


def fallback_code(stage: str | None) -> str:
    """A version code for a stage without a known name: `committee-print`."""
    return re.sub(r"[^a-z0-9]+", "-", (stage or "").lower()).strip("-") or "text"


def stage_name(code: str) -> str | None:
    """`Introduced in House` for `ih`, and for a second printing `ih2` too."""
    stage = _STAGES.get(_SUFFIX.sub("", code))
    return stage[0] if stage else None


def stage_phrase(code: str, name: str | None) -> str:
    """The stage as a citation names it: `as introduced in House`."""
    stage = _STAGES.get(_SUFFIX.sub("", code))
    if stage:
        return stage[1]
    return f"version {name or code}"


def stage_chamber(code: str) -> str:
    """The house that printed it, as a publisher; both have a part in what is enrolled."""
    base = _SUFFIX.sub("", code)
    if base.endswith("enr") or base not in _STAGES:
        return CONGRESS
    name = _STAGES[base][0]
    return HOUSE if "House" in name else SENATE if "Senate" in name else CONGRESS
