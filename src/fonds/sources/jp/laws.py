"""What a law is called: its id at e-Gov, its number, its title, and the day of a revision.

An id has fifteen characters. `405AC0000000088` is of the fourth era (Heisei), its fifth year, an
act, number 88; `321CONSTITUTION` stands by itself. Acts (AC), cabinet orders (CO), imperial orders
(IO) and decrees of the Grand Council (DF, 太政官布告) end with ten digits, the number behind
zeros. It is so for acts on a bill of the Cabinet; on a bill of the lower house the first of the ten
digits is 1, on one of the upper house the second, which the file of a law does not say. Ordinances
and rules (`347M50002000034`) have a code of their ministry in the middle, which it does not say
either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import PurePosixPath
from typing import Final

LAW_ID: Final = re.compile(r"[1-5]\d\d(?:CONSTITUTION|[A-Z][0-9A-Z]{11})(?![0-9A-Za-z])")
_DAY: Final = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_ERAS: Final = {"Meiji": 1, "Taisho": 2, "Showa": 3, "Heisei": 4, "Reiwa": 5}
_KINDS: Final = {"Act": "AC", "CabinetOrder": "CO", "ImperialOrder": "IO"}
_DECREE: Final = "太政官布告"
_LABEL: Final = re.compile(r"(?:(.+)（)?((?:明治|大正|昭和|平成|令和)[^（）]+)(?(1)）)")


def id_in(path: str) -> str:
    """The law's id that a file or an address of e-Gov is named by; empty for other names."""
    found = LAW_ID.match(PurePosixPath(path).name)
    return found[0] if found else ""


def day_in(path: str) -> str | None:
    """The day since when a revision is in force, as the file's name tells it; ISO 8601."""
    for year, _, month, day in _DAY.findall(PurePosixPath(path).name):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return None


def derived_id(attributes: Mapping[str, str], law_number: str) -> str:
    """The id that follows from the attributes of `Law`, were its bill the Cabinet's; or empty."""
    era, kind = _ERAS.get(attributes.get("Era", "")), attributes.get("LawType", "")
    year, number = (attributes.get(name, "").strip() for name in ("Year", "Num"))
    if not (era and year.isdecimal()):
        return ""
    if kind == "Constitution":
        return f"{era}{int(year):02}CONSTITUTION"
    code = "DF" if _DECREE in law_number else _KINDS.get(kind)
    return f"{era}{int(year):02}{code}{int(number):010}" if code and number.isdecimal() else ""


def law_label(title: str, law_number: str) -> str:
    """`行政手続法（平成五年法律第八十八号）`, as laws name each other."""
    return f"{title}（{law_number}）" if title and law_number else title or law_number


def split_label(label: str) -> tuple[str, str]:
    """Title and number out of such a label; a law without a title is called by its number."""
    found = _LABEL.fullmatch(label)
    return (found[1] or found[2], found[2]) if found else (label, "")
