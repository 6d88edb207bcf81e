"""The reporting period in a text, an address or a file name.

japanera has all eras, but parses neither 令和6年分 nor r6; five eras are enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final
from urllib.parse import unquote, urlsplit

_NAMES: Final = (
    "january januar janner janvier enero styczen stycznia gennaio janeiro jan",
    "february februar fevrier febrero luty lutego febbraio fevereiro feb",
    "march marz maerz mars marzo marzec marca marco mar",
    "april avril abril kwiecien kwietnia aprile apr",
    "may mai mayo maj maja maggio maio",
    "june juni juin junio czerwiec czerwca giugno junho jun",
    "july juli juillet julio lipiec lipca luglio julho jul",
    "august aout agosto sierpien sierpnia aug",
    "september septembre septiembre setiembre wrzesien wrzesnia settembre setembro sept sep",
    "october oktober octobre octubre pazdziernik pazdziernika ottobre outubro oct okt",
    "november novembre noviembre listopad listopada novembro nov",
    "december dezember decembre diciembre grudzien grudnia dicembre dezembro dec dez",
)
MONTHS: Final = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
"""The number of each month, by its lower-case name without accents, or a short form of it."""


# The first year of each era, and the number of its years.
_ERAS: Final = {
    "明治": (1868, 45), "大正": (1912, 15), "昭和": (1926, 64), "平成": (1989, 31),
    "令和": (2019, 99),
}  # fmt: skip
_LETTERS: Final = {"m": "明治", "t": "大正", "s": "昭和", "h": "平成", "r": "令和"}
_KANJI: Final = {character: number for number, character in enumerate("〇一二三四五六七八九")}
_NUMERAL: Final = r"(?:元|\d{1,2}|[〇一二三四五六七八九十]{1,3})"
_ERA: Final = re.compile(
    rf"(明治|大正|昭和|平成|令和|(?<![a-z0-9])[mtshr](?=\.?\d+\s*年))\.?\s*({_NUMERAL})\s*(年|(?=[./-]\d))"
)
# In addresses and file names: r6, r06nen, h31_teiki. `s3` is a store and `h2` a half or a heading.
_SHORT_ERA: Final = re.compile(
    r"(?<![a-z0-9])(?:(r)(0?[1-9]|1\d)|(h)(0[1-9]|[3-9]|[12]\d|3[01])|(s)(5\d|6[0-4]))(?!\d)"
)

_MONTH_NAME: Final = rf"(?<![a-z])(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_YEAR: Final = r"(?<!\d)(?:19\d\d|20[0-4]\d)(?!\d)"
_DASH: Final = r"\s*(?:-|–|—|~|〜|から|to|bis|a|au|al|do|until|through|thru)\s*"
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|\.)?"

_DATES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        (
            rf"(?P<y>{_YEAR})\s*(?:年|년|[-/._])\s*(?P<m>1[0-2]|0?[1-9])\s*(?:月|월|[-/._])\s*"
            r"(?:3[01]|[12]\d|0?[1-9])(?!\d)\s*(?:日|일)?"
        ),
        rf"(?<!\d)(?:3[01]|[12]\d|0?[1-9])[./-]\s?(?P<m>1[0-2]|0?[1-9])[./-]\s?(?P<y>{_YEAR})",
        rf"(?<!\d){_DAY}\s*(?:de\s+)?(?P<n>{_MONTH_NAME})\s*(?:de\s+)?(?P<y>{_YEAR})",
        rf"(?P<n>{_MONTH_NAME})\s*{_DAY},?\s+(?P<y>{_YEAR})",
        r"(?<!\d)(?P<y>19\d\d|20[0-4]\d)(?P<m>0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)",
    )
)
_MONTH_FORMS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<y>{_YEAR})\s*(?:年度?|년)\s*\(?(?P<m>1[0-2]|0?[1-9])\s*(?:月|월)",
        rf"(?P<n>{_MONTH_NAME})\s*(?:de\s+|del\s+|of\s+|,\s*)?[-_]?(?P<y>{_YEAR})",
        rf"(?P<y>{_YEAR})[\s_-]*(?P<n>{_MONTH_NAME})",
        rf"(?P<y>{_YEAR})[-/_.](?P<m>1[0-2]|0[1-9])(?![\d])",
        rf"(?<![\d./-])(?P<m>1[0-2]|0?[1-9])[./-](?P<y>{_YEAR})",
        r"(?<!\d)(?P<y>19\d\d|20[0-4]\d)(?P<m>0[1-9]|1[0-2])(?!\d)",
    )
)
_YEAR_FORM: Final = re.compile(rf"{_YEAR}\s*年?")
_MARKED_YEAR: Final = re.compile(rf"({_YEAR})\s*年(?:分|度)")
_LONE_MONTH: Final = re.compile(
    rf"(?P<n>{_MONTH_NAME})(?!\s*\d)|(?<!\d)(?P<m>1[0-2]|0?[1-9])\s*(?:月|월)(?!\s*\d)"
)

# A span of months, with both years or only the last.
_SPAN: Final = re.compile(
    rf"(?P<n1>{_MONTH_NAME})\s*(?P<y1>{_YEAR})?{_DASH}(?P<n2>{_MONTH_NAME})\s*(?:de\s+)?(?P<y2>{_YEAR})?"
)
_NUMBERED_SPAN: Final = re.compile(
    rf"(?:(?P<y1>{_YEAR})\s*年\s*)?(?<!\d)(?P<m1>1[0-2]|0?[1-9])\s*月?(?:\s*1\s*日)?{_DASH}"
    rf"(?:同年|(?P<y2>{_YEAR})\s*年)?\s*(?P<m2>1[0-2]|0?[1-9])\s*月(?:\s*(?:3[01]|30|2[89])\s*日|分|期)?(?!\s*\d)"
)
_DIGIT_SPAN: Final = re.compile(
    rf"(?<![\d./])(?P<m1>1[0-2]|0?[1-9])[./](?P<y1>{_YEAR}){_DASH}(?P<m2>1[0-2]|0?[1-9])[./](?P<y2>{_YEAR})"
)

_FISCAL_WORD: Final = (
    r"(?:fy|fiscal(?:\s+year)?|financial\s+year|tax\s+year|haushaltsjahr|geschaftsjahr|exercice"
    r"|ejercicio|wirtschaftsjahr)"
)
_FISCAL: Final = (
    re.compile(rf"{_FISCAL_WORD}\s*[-_:]?\s*(?P<a>{_YEAR})\s*[-–/_]\s*(?P<b>\d\d(?:\d\d)?)(?!\d)"),
    re.compile(rf"(?P<a>{_YEAR})\s*[-–—/_]\s*(?P<b>20\d\d|19\d\d)(?!\d)"),
    re.compile(rf"(?P<a>{_YEAR})\s*(?:[/–—]|-(?!(?:0\d|1[0-2])(?!\d)))\s*(?P<b>\d\d)(?![\d/])"),
)
_FISCAL_SHORT: Final = re.compile(r"(?<![a-z])fy\s*'?(?P<b>[0-4]\d)(?!\d)")

_FIRST: Final = (
    r"first|1st|erstes?|premier|1(?:er|re|ere|°|º|\.o)|primer|primo|pierwszy|第?一|i(?=[\s.])"
)
_ORDINALS: Final = (
    _FIRST,
    r"second|2nd|zweites?|deuxieme|segundo|secondo|2(?:e|eme|nd|°|º|\.o)|drugi|第?二|ii(?=[\s.])",
    r"third|3rd|drittes?|troisieme|tercer|terzo|terceiro|3(?:e|eme|er|°|º|\.o)|trzeci|第?三|iii(?=[\s.])",
    r"fourth|4th|viertes?|quatrieme|cuarto|quarto|4(?:e|eme|°|º|\.o)|czwarty|第?四|iv(?=[\s.])",
)
_QUARTER_WORD: Final = r"(?:quarter|quartal|trimestre|kwartal\w*|四半期|季度|분기|qtr)"
_HALF_WORD: Final = r"(?:half(?:[\s-]year)?|halbjahr\w*|semestre|polrocze\w*|半期)"


def _counted(word: str, letters: str, count: int) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(
            rf"(?<![a-z0-9])(?:{ordinal}|第?\s*{number})[.\s_-]*{word}"
            rf"|(?<![a-z]){word}[\s_.-]*{number}(?!\d)"
            rf"|(?<![a-z0-9])(?:[{letters}]{number}(?!\d)|{number}[{letters}](?![a-z0-9]))"
            rf"|(?<=[12][90]\d\d)[{letters}]{number}(?!\d)"
        )
        for number, ordinal in enumerate(_ORDINALS[:count], 1)
    )


_QUARTERS: Final = _counted(_QUARTER_WORD, "qt", 4)
_HALVES: Final = _counted(_HALF_WORD, "hs", 2)
_JAPANESE_HALVES: Final = (re.compile("上半期|上期|상반기"), re.compile("下半期|下期|하반기"))
# Every part of a year matches this.
_ANY_PART: Final = re.compile(
    rf"[qths][1-4]|[1-4][qths]|{_QUARTER_WORD}|{_HALF_WORD}|[上下]半?期|[상하]반기"
)

_PUBLISHED: Final = r"(?:公表|公開|掲載|更新|発行|作成|提出|受付|受理|告示)"
_PUBLISHED_AFTER: Final = re.compile(rf"\s?(?:に\s*)?{_PUBLISHED}")
_PUBLISHED_WORDS: Final = (
    "published", "posted", "updated", "uploaded", "released", "modified", "received", "filed",
    "submitted", "stand", "veroffentlicht", "aktualisiert", "publie", "mise? a jour",
    "publicad[oa]", "actualizad[oa]", "opublikowano", "aktualizacja",
)  # fmt: skip
_PUBLISHED_BEFORE: Final = re.compile(
    rf"(?:{_PUBLISHED}(?:年月)?(?:日\W{{0,3}}|\s?:\s?)"
    rf"|(?:{'|'.join(_PUBLISHED_WORDS)})\s*(?:on|am|le|el|date|vom)?\W{{0,3}})$"
)
_ENDED: Final = re.compile(
    r"(?:end(?:ed|ing)|as (?:at|of)|close|zum|au|al|na dzien|現在|末日?)\W*$"
)
_THREE_MONTHS: Final = re.compile(
    r"(?:quarter|three months|3 months|四半期)\W+(?:\w+\W+)?end(?:ed|ing)"
)
_ANNUAL: Final = re.compile(
    r"年分|年度|年次|年間|annual|yearly|full[\s-]year|year end|jahres|jahrlich|annuel|anual|roczn"
    r"|연간|년도"
)
_SINGLE_YEAR: Final = re.compile(
    rf"(?<![\d.,$€£¥]){_YEAR}(?![.,]\d)"
    r"(?!\s*(?:kb|mb|gb|bytes?|円|yen|eur|usd|頁|ページ|pages?|件|票)(?![a-z]))"
)
# Telephone numbers, and numbers with hyphens on both sides.
_NUMBER: Final = re.compile(r"(?<![\d-])\+?\d{1,4}-\d{2,4}-\d{3,4}(?![\d-])|\(\d{2,5}\)\s*\d+-\d+")

_MAX_TEXT: Final = 2000
"""Characters; a period is at the beginning of a text."""
_YEAR_MONTHS: Final = 12
_PARTS: Final = {
    (1, 3): "Q1", (4, 6): "Q2", (7, 9): "Q3", (10, 12): "Q4", (1, 6): "H1", (7, 12): "H2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _PeriodText:
    year: int | None = None
    part: str | None = None
    """`Q1`, `H2`, `05`; `annual` if the text says so."""
    is_weak: bool = False
    """A date that may be the one of publication."""


def reporting_period(texts: Iterable[str]) -> str | None:
    """The period in some texts: `2024-Q1`, `2024-H2`, `2024-05`, `2024-annual`.

    Earlier texts have priority.
    """
    parsed = [_read(text) for text in texts]
    sure = next((at for at, text in enumerate(parsed) if text.year and not text.is_weak), None)
    if sure is not None:
        return f"{parsed[sure].year}-{_part(parsed, sure)}"
    weak = next((text for text in parsed if text.year), None)
    return f"{weak.year}-{weak.part or 'annual'}" if weak else None


def _part(parsed: list[_PeriodText], at: int) -> str:
    """The part of the year, from the text with the year or from another."""
    own = parsed[at]
    if own.part and own.part != "annual":
        return own.part
    for each in parsed[:at]:
        if each.part and each.year is None and each.part != "annual":
            return each.part
    if own.part == "annual":
        return "annual"
    for each in parsed[at + 1 :]:
        # A month in a later text is more often that of an upload.
        if each.part and each.part[0] in "QH" and each.year in {None, own.year}:
            return each.part
    return "annual"


@lru_cache(maxsize=512)
def _read(text: str) -> _PeriodText:
    text = _without_numbers(_western(_normal(text[:_MAX_TEXT])))
    # Most texts have no date: they are searched for one once, and not at each step.
    dates = _DATES if any(pattern.search(text) for pattern in _DATES) else ()
    if period := _span(text, dates) or _ended(text, dates):
        return period
    text, days = _without_dates(text, dates)
    part = _part_of_year(text)
    if fiscal := _fiscal(text):
        return _PeriodText(fiscal, part or "annual")
    if part is None and (month := _month(text)):
        return month
    if year := _year(text):
        return _PeriodText(year, part or ("annual" if _ANNUAL.search(text) else None))
    return days[0] if days else _PeriodText(None, part or _lone_month(text))


def _lone_month(text: str) -> str | None:
    match = _LONE_MONTH.search(text)
    return f"{_number_of(match):02}" if match else None


# Steps --------------------------------------------------------------------------------------


def _normal(text: str) -> str:
    """A text in lower case, without accents and full-width digits; an address without its host."""
    if "://" in text[:10]:
        try:
            parts = urlsplit(text)
            text = f"{parts.path} {parts.query}"
        except ValueError:
            pass
    text = unquote(text)
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).lower())
    # Only the accents of Latin letters: in kana, marks make other letters.
    text = re.sub(r"[\u0300-\u036f]", "", text)
    return unicodedata.normalize("NFC", text).translate(_LOOKALIKES)


_LOOKALIKES: Final = str.maketrans({"ł": "l", "‐": "-", "‑": "-", "−": "-", "～": "~"})


def _western(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        year = _era_year(match[1], _number(match[2]))
        return f" {year}{match[3] or ''}" if year else match[0]

    return _ERA.sub(replaced, text)


def _without_numbers(text: str) -> str:
    return _NUMBER.sub(
        lambda match: match[0] if any(date.fullmatch(match[0]) for date in _DATES) else " ", text
    )


def _era_year(name: str, number: int) -> int | None:
    began, last = _ERAS[_LETTERS.get(name, name)]
    return began + number - 1 if 1 <= number <= last else None


def _number(text: str) -> int:
    if text == "元":
        return 1
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return int("".join(str(_KANJI[character]) for character in text))
    if any(len(each) > 1 or each == "十" for each in (tens, ones)):
        return 0
    return 10 * (_KANJI[tens] if tens else 1) + (_KANJI[ones] if ones else 0)


def _number_of(match: re.Match[str], which: str = "") -> int:
    groups = match.groupdict()
    if name := groups.get(f"n{which}"):
        return MONTHS[name.rstrip(".")]
    return int(groups[f"m{which}"])


def _span(text: str, dates: Iterable[re.Pattern[str]]) -> _PeriodText | None:
    for pattern in dates:
        for first, second in pairwise(pattern.finditer(text)):
            if re.fullmatch(_DASH, text[first.end() : second.start()]):
                begin, end = ((int(each["y"]), _number_of(each)) for each in (first, second))
                return _of_span(begin, end)
    for pattern in (_DIGIT_SPAN, _SPAN, _NUMBERED_SPAN):
        if match := pattern.search(text):
            return _span_of_months(match, text)
    return None


def _span_of_months(match: re.Match[str], text: str) -> _PeriodText | None:
    months = _number_of(match, "1"), _number_of(match, "2")
    last = match["y2"] or match["y1"] or next(iter(re.findall(_YEAR, text)), None)
    if last is None:
        return _PeriodText(None, _PARTS.get(months))
    first = int(match["y1"] or last)
    if months[0] > months[1] and first == int(last):
        # From October to March 2024; or from April 2023 to March.
        first, last = (first, first + 1) if match["y1"] else (first - 1, first)
    return _of_span((first, months[0]), (int(last), months[1]))


def _of_span(begin: tuple[int, int], end: tuple[int, int]) -> _PeriodText | None:
    months = (end[0] - begin[0]) * _YEAR_MONTHS + end[1] - begin[1] + 1
    if months < 1:
        return None
    if months == 1:
        return _PeriodText(begin[0], f"{begin[1]:02}")
    if months == _YEAR_MONTHS:
        return _PeriodText(begin[0], "annual")
    part = _PARTS.get((begin[1], end[1])) if begin[0] == end[0] else None
    return _PeriodText(end[0], part)


def _ended(text: str, dates: Iterable[re.Pattern[str]]) -> _PeriodText | None:
    for pattern in dates:
        for match in pattern.finditer(text):
            if not _ENDED.search(text[: match.start()]):
                continue
            if _THREE_MONTHS.search(text[: match.start()]):
                return _PeriodText(int(match["y"]), f"Q{(_number_of(match) + 2) // 3}")
            return _PeriodText(int(match["y"]), _part_of_year(text[: match.start()]) or "annual")
    return None


def _without_dates(text: str, dates: Iterable[re.Pattern[str]]) -> tuple[str, list[_PeriodText]]:
    """A text without its dates, and those that are not of publication."""
    days: list[_PeriodText] = []
    for pattern in dates:
        while match := pattern.search(text):
            before, after = text[: match.start()], text[match.end() :]
            if not _is_published(before, after):
                days.append(_PeriodText(int(match["y"]), f"{_number_of(match):02}", is_weak=True))
            text = f"{before} {after}"
    for pattern in (_MONTH_FORMS[0], _YEAR_FORM):
        for match in list(pattern.finditer(text)):
            if _is_published(text[: match.start()], text[match.end() :]):
                text = text.replace(match[0], " " * len(match[0]), 1)
    return text, days


def _is_published(before: str, after: str) -> bool:
    return bool(_PUBLISHED_AFTER.match(after) or _PUBLISHED_BEFORE.search(before))


def _part_of_year(text: str) -> str | None:
    if not _ANY_PART.search(text):
        return None
    for letter, patterns in (("Q", _QUARTERS), ("H", _HALVES), ("H", _JAPANESE_HALVES)):
        match = [
            (hit.start(), f"{letter}{number}")
            for number, pattern in enumerate(patterns, 1)
            if (hit := pattern.search(text))
        ]
        if match:
            return min(match)[1]
    return None


def _fiscal(text: str) -> int | None:
    for pattern in _FISCAL:
        for match in pattern.finditer(text):
            first, second = int(match["a"]), int(match["b"])
            if second in {first + 1, (first + 1) % 100}:
                return first
    if short := _FISCAL_SHORT.search(text):
        return 2000 + int(short["b"])
    return None


def _month(text: str) -> _PeriodText | None:
    for pattern in _MONTH_FORMS:
        if match := pattern.search(text):
            return _PeriodText(int(match["y"]), f"{_number_of(match):02}")
    return None


def _year(text: str) -> int | None:
    years = [int(match[0]) for match in _SINGLE_YEAR.finditer(text)]
    if marked := _MARKED_YEAR.search(text):
        return int(marked[1])
    if years:
        return years[0]
    if short := _SHORT_ERA.search(text):
        letter, number = (each for each in short.groups() if each)
        return _era_year(letter, int(number))
    return None
