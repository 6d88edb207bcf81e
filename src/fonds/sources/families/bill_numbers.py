"""Bills as titles and listings name them, and the Congress a day belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from fonds import ids
from fonds.citations.bills import ABBREVIATIONS

_RESOLUTIONS: Final = {"": "res", "c": "conres", "j": "jres"}
# `H.R. 21`, `H R 22`, `S. 4429`, `H.J. Res. 38`, `H. Con. Res. 108`; but not `U.S. 5`.
_WRITTEN: Final = re.compile(
    r"(?<![\w.])(?:"
    r"(?P<chamber>[HS])\.?\s?(?:R\.\s?)?(?:(?P<form>C)on\.?\s?|(?P<joint>J)\.?\s?)?Res\.?"
    r"|(?P<bill>H\.?\s?R\.?|S\.?)"
    r")\s?(?P<number>[0-9]{1,5})(?![\w-])"
)
_CODE: Final = re.compile(r"(hr|s|hjres|sjres|hconres|sconres|hres|sres)\.?\s?([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class BillNumber:
    """A bill or resolution of some Congress."""

    kind: str
    """`hr`, `s`, `hjres`, …"""
    number: int

    @property
    def code(self) -> str:
        """`hjres41`."""
        return f"{self.kind}{self.number}"

    @property
    def written(self) -> str:
        """As citations write it: `H.R. 2101`."""
        return f"{ABBREVIATIONS[self.kind]} {self.number}"

    def document_id(self, congress: int) -> str:
        """The bill's document."""
        return ids.bill_id(congress, self.kind, self.number)


def find_bill_numbers(text: str) -> list[BillNumber]:
    """The bills a text names, each once, in its order."""
    return list(dict.fromkeys(_found(text)))


def leading_bill_number(text: str) -> BillNumber | None:
    """The bill a text begins with, or None where it begins otherwise."""
    match = _WRITTEN.match(text)
    return _read(match) if match else None


def read_bill_code(code: str) -> BillNumber | None:
    """The bill behind a code such as `hjres41`, or None where it is none."""
    match = _CODE.fullmatch(code.strip().lower())
    return BillNumber(match[1], int(match[2])) if match else None


def congress_of(day: date) -> int:
    """The Congress that sat on a day; it begins on January 3."""
    year = day.year - ((day.month, day.day) < (1, 3))
    return (year - 1787) // 2


def first_day_of(congress: int) -> date:
    """The January 3 a Congress begins on."""
    return date(2 * congress + 1787, 1, 3)


def _found(text: str) -> Iterator[BillNumber]:
    return map(_read, _WRITTEN.finditer(text))


def _read(match: re.Match[str]) -> BillNumber:
    number = int(match["number"])
    if match["bill"]:
        return BillNumber("s" if match["bill"].startswith("S") else "hr", number)
    form = (match["form"] or match["joint"] or "").lower()
    return BillNumber(match["chamber"].lower() + _RESOLUTIONS[form], number)
