"""How provisions of Japanese laws are cited: `民法第七百九条`, and with digits `民法709条`."""

from __future__ import annotations

import re
from typing import Final

_DIGITS: Final = "〇一二三四五六七八九"
_UNITS: Final = {"千": 1000, "百": 100, "十": 10}
_MYRIAD: Final = 10_000
_NUMERAL: Final = re.compile(f"[{_DIGITS}十百千万]+")
_COUNT: Final = f"[{_DIGITS}十百千万0-9０-９]+"
_COUNTED: Final = re.compile(rf"第({_COUNT})[条條編编章節节款目号表]?((?:[のノ之]{_COUNT})*)")
_BRANCH: Final = re.compile(r"[のノ之]([^のノ之]+)")
_NAMED: Final = re.compile(r"[^（\s]+")


# Numerals ---------------------------------------------------------------------------------


def kanji_numeral(number: int) -> str:
    """A number below a hundred million in words: 709 is 七百九, and 10000 is 一万."""
    if not 0 <= number < _MYRIAD * _MYRIAD:
        raise ValueError(f"{number} is not written in kanji here")
    above, below = divmod(number, _MYRIAD)
    words = f"{_below_a_myriad(above)}万" if above else ""
    return words + _below_a_myriad(below) or "〇"


def _below_a_myriad(number: int) -> str:
    words = ""
    for unit, value in _UNITS.items():
        count, number = divmod(number, value)
        words += (_DIGITS[count] if count > 1 else "") + (unit if count else "")
    return words + (_DIGITS[number] if number else "")


def arabic_numeral(words: str) -> int:
    """The number that kanji say, in words (七百九) or digit by digit (七〇九)."""
    if not _NUMERAL.fullmatch(words):
        raise ValueError(f"{words!r} is no number in kanji")
    if all(word in _DIGITS for word in words):
        return int("".join(str(_DIGITS.index(word)) for word in words))
    total = below = digits = 0
    for word in words:
        if word in _DIGITS:
            digits = digits * 10 + _DIGITS.index(word)
        elif word == "万":
            total, below, digits = total + ((below + digits) or 1) * _MYRIAD, 0, 0
        else:
            below, digits = below + (digits or 1) * _UNITS[word], 0
    return total + below + digits


def with_digits(title: str) -> str:
    """`第三十六条の二` as `第36条の2`: every number in kanji becomes one in digits."""
    return _NUMERAL.sub(lambda found: str(arabic_numeral(found[0])), title)


def printed_number(label: str) -> str:
    """The number in a label: `36-2` in `第三十六条の二`, `1` in `別表第一`; empty without one."""
    found = _COUNTED.search(_name(label))
    if not found:
        return ""
    return "-".join(_as_digits(number) for number in (found[1], *_BRANCH.findall(found[2])))


def _as_digits(number: str) -> str:
    return str(int(with_digits(number)))


# Citations --------------------------------------------------------------------------------


def cite_jp(*, law: str, provision: str = "", supplement: str = "", amended_by: str = "") -> str:
    """`民法第七百九条`, `民法附則第一条`, `民法附則（平成一一年法律第一五一号）第一条`.

    A provision may carry its caption, as in `第一条（目的等）`; it is left out. Every amending law
    has a supplement of its own, told from the others by that law's number.
    """
    return f"{law}{_place(supplement, amended_by)}{_name(provision)}"


def other_forms(
    *,
    law: str,
    provision: str,
    supplement: str = "",
    amended_by: str = "",
    law_number: str = "",
    law_id: str = "",
) -> tuple[str, ...]:
    """The same provision with digits, with and without 第, and by the law's number and id.

    `民法第709条`, `民法709条`, `明治二十九年法律第八十九号第七百九条`, `明治29年法律第89号第709条`,
    `129AC0000000089第709条`.
    """
    place, printed = _place(supplement, amended_by), _name(provision)
    digits = with_digits(printed)
    forms = [f"{law}{place}{digits}", f"{law}{place}{digits.replace('第', '')}"]
    if law_number:
        forms += [f"{law_number}{place}{printed}", f"{with_digits(law_number)}{place}{digits}"]
    if law_id:
        forms.append(f"{law_id}{place}{digits}")
    return tuple(dict.fromkeys(form for form in forms if form != f"{law}{place}{printed}"))


def _place(supplement: str, amended_by: str) -> str:
    amending = f"（{amended_by}）" if supplement and amended_by else ""
    return f"{_name(supplement)}{amending}"


def _name(label: str) -> str:
    """A label without the caption behind it."""
    found = _NAMED.match(label)
    return found[0] if found else ""
