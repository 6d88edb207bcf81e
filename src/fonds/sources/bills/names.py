"""The names of bills: types, packages, pages, and the stages at which a text is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from fonds import ids
from fonds.citations.bills import ABBREVIATIONS, ordinal

HOUSE: Final = "U.S. House of Representatives"
SENATE: Final = "U.S. Senate"
CONGRESS: Final = "U.S. Congress"
PAGES: Final = "https://www.congress.gov/bill"

TYPES: Final = ("hr", "s", "hjres", "sjres", "hconres", "sconres", "hres", "sres")

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
        return ids.bill_id(self.congress, self.kind, self.number)

    @property
    def printed(self) -> str:
        """`H.J. Res. 41`, as it stands on the bill."""
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
        found = _STATUS_FILE.search(name)
        return cls._named(*found.groups()) if found else None

    @classmethod
    def of_parts(cls, congress: int | None, kind: str | None, number: int | None) -> Self | None:
        """The bill of those parts, or None where one is missing or no type of bill."""
        if congress is None or kind is None or number is None:
            return None
        return cls._named(str(congress), kind, str(number))

    @classmethod
    def _named(cls, congress: str, kind: str, number: str) -> Self | None:
        if kind.lower() not in TYPES:
            return None
        return cls(congress=int(congress), kind=kind.lower(), number=int(number))


def package_parts(name: str) -> tuple[BillName, str] | None:
    """The bill and the version code a package name begins with: `BILLS-119hr1ih.xml`."""
    found = _PACKAGE.match(name)
    if found is None:
        return None
    bill = BillName.of_parts(int(found[1]), found[2], int(found[3]))
    return (bill, found[4].lower()) if bill else None


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
    return ids.committee_id(system_code.upper().removesuffix("00"))
