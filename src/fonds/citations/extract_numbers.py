"""Citations by number: laws, pages of reporters and registers, bills, reports, orders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fonds.citations import forms
from fonds.citations.forms import CitationMatch, Kind, match_at
from fonds.citations.patterns import (
    BEARING_OR_ADDRESS,
    CONGRESS,
    CONGRESS_BEFORE,
    LAW_NUMBER,
    NOT_A_SECTION,
    NOT_BEFORE_A_BILL,
    NOT_BEFORE_A_VOLUME,
    OFFICE,
    OLD_LAW,
    ORDER_NUMBER,
    PAGE,
    PINCITE,
    RECORD_PAGE,
    REPORT_NUMBER,
    REPORTER_FORMS,
    SEPARATOR,
)

LAST_CONGRESS: Final = 150
_FIRST_BARE_CONGRESS: Final = 80
"""A number before a bill is only taken for its Congress from here on."""
_LAST_VOLUME: Final = 1500
"""Of any reporter; `2021 U.S. 50` is something else."""
_LAST_FR_VOLUME: Final = 150
_LAST_RECORD_VOLUME: Final = 250
_LAST_ORDER: Final = 20_000
_MIN_BARE_ORDER_LENGTH: Final = 4
_MAX_ITEMS: Final = 100
_MAX_ACT_LENGTH: Final = 3000
"""Pages that a pinpoint may lie behind the first."""
_YEARS: Final = range(1990, 2051)
_LOOKED_BACK: Final = 24
_ENDS_OF_A_CONGRESS: Final = frozenset("0123456789.,s")


def read_page(text: str, match: re.Match[str], kind: Kind) -> Iterator[CitationMatch]:
    """The page after `135 Stat.`, `89 Fed. Reg.` or `410 U.S.`."""
    if match["comma"] and kind != "fr":
        # `On May 5, U.S. 101 was closed.`
        return
    page = PAGE.match(text, match.end())
    if page is None or (page["suffix"] and kind != "stat"):
        return
    if kind == "case" and (page["at"] or _is_counted(text, match.start())):
        return
    target = _page_target(match, page, kind)
    if target is None:
        return
    first = int(page["page"].replace(",", ""))
    pincite = PINCITE.match(text, page.end()) if text.startswith(",", page.end()) else None
    pinned = pincite is not None and _is_behind(first, int(pincite["first"].replace(",", "")))
    last = pincite if pincite is not None and pinned else page
    pinpoint = pincite["pinpoint"] if pincite is not None and pinned else None
    yield match_at(text, match.start(), last.end(), kind=kind, target=target, pinpoint=pinpoint)


def read_record(text: str, match: re.Match[str]) -> Iterator[CitationMatch]:
    """The page after `171 Cong. Rec.`."""
    page = RECORD_PAGE.match(text, match.end())
    if page is None or match["comma"] or not 1 <= int(match["volume"]) <= _LAST_RECORD_VOLUME:
        return
    target = forms.record_form(match["volume"], page["page"])
    yield match_at(text, match.start(), page.end(), kind="cong_rec", target=target)


def _is_counted(text: str, start: int) -> bool:
    """Whether the volume is the number of something: `Route 1 U.S. 9`."""
    return NOT_BEFORE_A_VOLUME.search(text, max(0, start - _LOOKED_BACK), start) is not None


def _is_behind(first: int, pinned: int) -> bool:
    return first <= pinned <= first + _MAX_ACT_LENGTH


def _page_target(match: re.Match[str], page: re.Match[str], kind: Kind) -> str | None:
    volume = int(match["volume"])
    if volume > _LAST_VOLUME:
        return None
    if kind == "stat":
        letter = "A" if match[0].startswith(f"{match['volume']}A") else ""
        return forms.stat_form(f"{volume}{letter}", page["page"] + (page["suffix"] or ""))
    if kind == "fr":
        return forms.fr_form(volume, page["page"]) if 1 <= volume <= _LAST_FR_VOLUME else None
    if "," in page["page"]:
        return None
    printed = match["case"]
    reporter = next(form for pattern, form in REPORTER_FORMS if pattern.match(printed + " 1."))
    # `95 F. 3 days` is warm.
    if reporter == "F" and NOT_A_SECTION.match(page.string, page.end()):
        return None
    return forms.case_form(volume, reporter, page["page"])


def read_laws(text: str, start: int, position: int) -> Iterator[CitationMatch]:
    """The numbers after `Pub. L.`."""
    begins = position
    for begin, number in _numbers(text, start, position, LAW_NUMBER):
        if not 1 <= int(number["congress"]) <= LAST_CONGRESS:
            return
        target = forms.public_law_form(number["congress"], number["number"])
        yield match_at(text, begin, number.end(), kind="public_law", target=target)
        position = number.end()
    if position == begins and (old := OLD_LAW.match(text, position)):
        target = forms.public_law_form(old["congress"], old["number"])
        yield match_at(text, start, old.end(), kind="public_law", target=target)


def read_orders(text: str, match: re.Match[str]) -> Iterator[CitationMatch]:
    """The numbers after `Executive Order`."""
    for begin, number in _numbers(text, match.start(), match.end(), ORDER_NUMBER):
        digits = number["number"].replace(",", "")
        listed = begin != match.start()
        bare = (listed or match["order_name"] is None) and len(digits) < _MIN_BARE_ORDER_LENGTH
        if bare or not 1 <= int(digits) <= _LAST_ORDER:
            return
        target = forms.order_form(number["number"])
        yield match_at(text, begin, number.end(), kind="eo", target=target)


def _numbers(
    text: str, start: int, position: int, pattern: re.Pattern[str]
) -> Iterator[tuple[int, re.Match[str]]]:
    number = pattern.match(text, position)
    for _ in range(_MAX_ITEMS):
        if number is None:
            return
        yield start, number
        joined = SEPARATOR.match(text, number.end())
        number = pattern.match(text, joined.end()) if joined and not joined["sign"] else None
        if number is None or NOT_A_SECTION.match(text, number.end()):
            return
        start = number.start()


def read_report(text: str, match: re.Match[str]) -> Iterator[CitationMatch]:
    """The number after `H.R. Rep. No.`."""
    number = REPORT_NUMBER.match(text, match.end())
    if number is None:
        return
    congress = int(number["congress"] or number["old_congress"])
    if not 1 <= congress <= LAST_CONGRESS:
        return
    series = match["report_chamber"][0] + (" Exec" if match["executive"] else "")
    target = forms.report_form(series, congress, number["number"] or number["old_number"])
    yield match_at(
        text, match.start(), number.end(), kind="report", target=target, pinpoint=number["pinpoint"]
    )


def read_product(text: str, match: re.Match[str], kind: Kind) -> Iterator[CitationMatch]:
    """A number that says all by itself: `R48481`, `GAO-25-107521`."""
    number = forms.normalized_number(match[0].replace("GAO ", "GAO-"))
    yield match_at(text, match.start(), match.end(), kind=kind, target=number)


def read_bill(text: str, match: re.Match[str], congress: int | None) -> Iterator[CitationMatch]:
    """A bill, with the Congress printed beside it or else the one in the argument."""
    start, end = match.start(), match.end()
    before = None
    if text[max(0, start - 2) : start - 1] in _ENDS_OF_A_CONGRESS:
        before = CONGRESS_BEFORE.search(text, max(0, start - _LOOKED_BACK), start)
    if before and _is_congress(before):
        start = before.start()
    after = CONGRESS.match(text, end)
    stated = _stated(before if start != match.start() else None, after)
    if start == match.start() and not _is_plausible(text, match, stated):
        return
    if after and stated is not None and start == match.start():
        end = after.end()
    target = forms.bill_form(_bill_kind(match), match["bill_number"], stated or congress)
    yield match_at(text, start, end, kind="bill", target=target)


def _is_congress(before: re.Match[str]) -> bool:
    first = 1 if before["said"] else _FIRST_BARE_CONGRESS
    return first <= int(before["congress"]) <= LAST_CONGRESS


def _stated(before: re.Match[str] | None, after: re.Match[str] | None) -> int | None:
    if before is not None:
        return int(before["congress"])
    number = int(after["enclosed"] or after["open"]) if after else 0
    return number if 1 <= number <= LAST_CONGRESS else None


def _is_plausible(text: str, match: re.Match[str], stated: int | None) -> bool:
    if match["long_bill"] or (match["senate"] == "S"):
        # Most states have House bills, and many things are called S.
        return stated is not None
    if match["house"] and "." not in match["house"] and stated is None:
        number = int(match["bill_number"])
        return number not in _YEARS and OFFICE.match(text, match.end()) is None
    if match["senate"] is None:
        return True
    before = text[max(0, match.start() - _LOOKED_BACK) : match.start()]
    if NOT_BEFORE_A_BILL.search(before):
        return False
    return BEARING_OR_ADDRESS.match(text, match.end()) is None


def _bill_kind(match: re.Match[str]) -> str:
    if match["house"] or match["senate"]:
        return "HR" if match["house"] else "S"
    chamber = match["chamber"] or match["long_chamber"][0]
    if match["long_bill"]:
        return "HR" if chamber == "H" else "S"
    joined = (match["joined"] or match["long_joined"] or "").upper()
    return f"{chamber}{'J' if joined[:1] == 'J' else 'CON' if joined else ''}RES"
