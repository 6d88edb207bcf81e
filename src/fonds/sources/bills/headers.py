"""What a bill's text says of itself, in the House's DTD and in USLM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from fonds.sources.bills.names import BillName, kind_of, package_parts
from fonds.sources.bills.stages import code_of
from fonds.sources.families import xml_files

_UNITS: Final = (
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)
_TENS: Final = {"twenty": 20, "thirty": 30, "thirtieth": 30}
_COUNTED: Final = re.compile(r"([0-9]{2,3})(?:st|nd|rd|th|d)\b", re.IGNORECASE)
_WORDS: Final = re.compile(r"one hundred (?:and )?([a-z]+)[ -]?([a-z]*)", re.IGNORECASE)
_HUNDRED: Final = 100
_TITLE: Final = re.compile(r"([0-9]{2,3})?\s*([A-Z]+)\s*([0-9]+)\s*([A-Z]+[0-9]?)?\s*:\s*(.*)")
_NUMBERED: Final = re.compile(r"([A-Za-z. ]+?)\s*([0-9]+)")
_ISO: Final = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})")
_SPELLED: Final = re.compile(r"([A-Z][a-z]+) ([0-9]{1,2})(?: \([^()]*\))?, ([0-9]{4})")
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_STAGES: Final = ("bill-stage", "resolution-stage", "amend-stage")


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """All of it may be missing: enrolled bills name no date, and some samples no stage."""

    bill: BillName | None = None
    code: str | None = None
    title: str | None = None
    date: str | None = None
    official_title: str | None = None


def read_header(root: Any) -> Header:
    """What the root element, its metadata and its first lines say."""
    bill, code = _cited(root) or (_bill(root), None)
    return Header(
        bill=bill,
        code=code or code_of(_stage(root)) or _titled(root, 4),
        title=_titled(root, 5),
        date=_date(root),
        official_title=_first(root, "official-title", "officialTitle"),
    )


def _cited(root: Any) -> tuple[BillName, str] | None:
    """USLM gives the name of the package among the ways to cite it."""
    for element in root.iter("{*}citableAs"):
        text = xml_files.whole_text(element) or ""
        found = package_parts(text)
        if found and f"{found[0].package}{found[1]}" == text.lower():
            return found
    return None


def _bill(root: Any) -> BillName | None:
    numbered = _NUMBERED.search(_first(root, "legis-num") or "")
    kind = kind_of(numbered[1]) if numbered else kind_of(_first(root, "type") or "")
    number = numbered[2] if numbered else _first(root, "docNumber")
    if number is None or not number.isdecimal():
        return None
    return BillName.of_parts(_congress(root), kind, int(number))


def _congress(root: Any) -> int | None:
    text = _first(root, "congress") or ""
    if text.isdecimal():
        return int(text)
    if counted := _COUNTED.search(text):
        return int(counted[1])
    words = _WORDS.search(text)
    return _spelled_out(words[1].lower(), words[2].lower()) if words else None


def _spelled_out(word: str, unit: str) -> int | None:
    """`one hundred nineteenth`, `one hundred twenty-first`."""
    if word in _UNITS:
        return _HUNDRED + _UNITS.index(word)
    if word in _TENS:
        return _HUNDRED + _TENS[word] + (_UNITS.index(unit) if unit in _UNITS else 0)
    return None


def _stage(root: Any) -> str | None:
    stated = next((root.get(name) for name in _STAGES if root.get(name)), None)
    return stated or _first(root, "docStage")


def _titled(root: Any, group: int) -> str | None:
    """`116 HR 1500 IH: Consumers First Act`; the House leaves out the Congress, some the stage."""
    found = _TITLE.fullmatch(_first(root, "title") or "")
    if found is None or not found[group]:
        return None
    return code_of(found[group]) if group == _TITLE_CODE else found[group].strip() or None


_TITLE_CODE: Final = 4


def _date(root: Any) -> str | None:
    """The last day its first lines name: a reported bill also names the day it was introduced."""
    stated = _iso(_first(root, "{http://purl.org/dc/elements/1.1/}date") or "")
    return stated or max(filter(None, map(_day, _dated(root))), default=None)


def _dated(root: Any) -> Iterator[Any]:
    for opening in root.iter(
        "{*}form", "{*}preface", "{*}amendPreface", "{*}engrossed-amendment-form"
    ):
        yield from opening.iter("{*}action-date", "{*}date")


def _day(element: Any) -> str | None:
    return _iso(element.get("date") or "") or _iso(xml_files.whole_text(element) or "")


def _iso(text: str) -> str | None:
    try:
        if found := _ISO.match(text):
            return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
        spelled = _SPELLED.search(text)
        if spelled and spelled[1] in _MONTHS:
            month = _MONTHS.index(spelled[1]) + 1
            return date(int(spelled[3]), month, int(spelled[2])).isoformat()
    except ValueError:
        pass  # a day that no month has
    return None


def _first(root: Any, *names: str) -> str | None:
    for name in names:
        for element in root.iter(name if name.startswith("{") else f"{{*}}{name}"):
            if text := xml_files.whole_text(element):
                return text
    return None
