"""Addresses: their canonical form, and the content to expect before they are requested."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from w3lib.url import canonicalize_url, safe_url_string

_MAX_LENGTH: Final = 4096
_CACHE_SIZE: Final = 512
"""Menus link from every page to the same addresses."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# Most addresses are canonical already; splitting and joining them
# would be half of the work on a page.
_CANONICAL: Final = re.compile(
    r"https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?!(?:80|443)/)\d{2,5})?"
    r"(?:/(?!\.{0,2}/|\.{1,2}$)[A-Za-z0-9._~-]*)+(?:\?page=\d+)?"
)
_TRACKING: Final = re.compile(
    r"utm_\w*|gclid|gclsrc|dclid|fbclid|msclkid|yclid|twclid|ttclid|gbraid|wbraid|igshid|li_fat_id"
    r"|mc_[ce]id|_ga|_gl|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|s_cid",
    re.IGNORECASE,
)
_SESSION: Final = re.compile(
    r"phpsessid|jsessionid|aspsessionid\w*|asp\.net_sessionid|sess(?:ion)?_?id|sess|cfid|cftoken"
    r"|zenid|oscsid|viewstate",
    re.IGNORECASE,
)
# `sid` and `s` are sections and pages as often as sessions; only a session's value is random.
_SHORT_SESSION: Final = re.compile(r"s(?:id)?", re.IGNORECASE)
_RANDOM: Final = re.compile(r"(?=[^\d]*\d)(?=\d*[a-z])[0-9a-z]{16,}", re.IGNORECASE)
_SESSION_IN_PATH: Final = re.compile(
    r";(?:jsessionid|phpsessid|sid|cfid)=[^/;?]*|/\(S\([0-9a-z]{16,}\)\)", re.IGNORECASE
)

_PDF_NAME: Final = re.compile(r"\.pdf(?:$|[;/.&?])", re.IGNORECASE)
_OTHER_FILE: Final = re.compile(
    r"\.(?:docx?|xlsx?|pptx?|od[tsp]|rtf|txt|csv|tsv|json|xml|rss|atom|zip|lzh|7z|rar|gz|tar|exe|dmg"
    r"|jpe?g|png|gif|svg|webp|ico|bmp|tiff?|mp[34]|m4[av]|mov|avi|wmv|wav|css|js|mjs|map|woff2?"
    r"|ttf|eot|ics|vcf|epub|swf|jtd)$",
    re.IGNORECASE,
)
_PAGE_FILE: Final = re.compile(r"\.(?:s?html?|xhtml)$", re.IGNORECASE)
_DELIVERY: Final = re.compile(
    r"(?:^|[/_.-])(?:downloads?|bitstreams?|attachments?|get-?(?:file|pdf|doc(?:ument)?)"
    r"|(?:view|show|open|read|print|stream)-?(?:file|pdf)|file-?download|download-?file|dl|pdf"
    r"|file-?handler|document-?handler|retrieve)(?=$|[/_.-])",
    re.IGNORECASE,
)
_DELIVERED: Final = re.compile(
    r"attachment(?:_?id)?|download|dl|file(?:_?id|name)?|pdf|doc(?:ument)?_?id|asset_?id|bitstream",
    re.IGNORECASE,
)
_FORMAT: Final = re.compile(r"(?:format|type|ext|output|as)", re.IGNORECASE)
_PDF_WORD: Final = re.compile(r"(?<![a-z])pdf(?![a-z])", re.IGNORECASE)
_ABOUT_PDF: Final = re.compile(
    r"reader|viewer|adobe|acrobat|plug-?in|リーダー|閲覧ソフト|ソフトウェア", re.IGNORECASE
)

_MAX_CRAWLED_LENGTH: Final = 1024
_MAX_SEGMENTS: Final = 20
_MAX_REPEATS: Final = 3
_CALENDAR: Final = re.compile(
    r"(?<![a-z])(?:calendars?|kalender|calendrier|calendario|agenda|schedules?|events?|tribe\w*"
    r"|event-?list)(?![a-z])",
    re.IGNORECASE,
)
_DATED_PATH: Final = re.compile(r"/(\d{4})[/-]?(0?[1-9]|1[0-2])(?=$|[/-])")
_DATED_VALUE: Final = re.compile(r"(\d{4})[-/]?\d{1,2}(?:[-/]?\d{1,2})?")
_DATE_KEY: Final = re.compile(
    r"(?:tribe-?bar-?|cal_?|c_?)?(?:month|day|week|date|mon|ym|yyyymm)", re.IGNORECASE
)
_YEAR_KEY: Final = re.compile(r"(?:cal_?)?(?:year|yr|y)", re.IGNORECASE)
_OLDEST: Final = 1868


@lru_cache(maxsize=_CACHE_SIZE)
def canonical(url: str, *, encoding: str = "utf-8") -> str | None:
    """The canonical address, without fragment, tracking and session; None if it is not on the web.

    `encoding` is that of the page that contains it: browsers encode the query in it.
    """
    url = url.strip()
    if len(url) <= _MAX_LENGTH and _CANONICAL.fullmatch(url):
        return url
    if not url or len(url) > _MAX_LENGTH or not url[:8].lower().startswith(("http://", "https://")):
        return None
    try:
        safe = safe_url_string(url, encoding=encoding, path_encoding="utf-8")
        parts = urlsplit(canonicalize_url(safe))
        if not parts.hostname or parts.hostname.strip(".") == "":
            return None
        return urlunsplit(_cleaned(parts))
    except (ValueError, UnicodeError):
        return None


@lru_cache(maxsize=_CACHE_SIZE)
def looks_like_pdf(url: str, text: str = "") -> bool:
    """Whether an address, or the text of its link, looks like that of a PDF."""
    parts = _split(url)
    if parts is None:
        return False
    path = unquote(parts.path)
    pairs = _pairs(parts)
    if _PDF_NAME.search(path) or any(_is_pdf_value(name, value) for name, value in pairs):
        return True
    if _OTHER_FILE.search(path) or _PAGE_FILE.search(path) or path in {"", "/"}:
        return False
    if mentions_pdf(text):
        return True
    return _is_delivery(path, pairs)


def mentions_pdf(text: str) -> bool:
    """Whether a text mentions a PDF, and not a program that displays them."""
    return bool(_PDF_WORD.search(text)) and not _ABOUT_PDF.search(text)


def is_other_file(url: str) -> bool:
    """Whether an address is of a picture, a table or an archive: not a page and not a PDF."""
    parts = _split(url)
    return parts is None or bool(_OTHER_FILE.search(unquote(parts.path)))


def is_trap(url: str, *, this_year: int | None = None) -> bool:
    """Whether an address belongs to an endless space: a calendar, a path that repeats."""
    return _is_endless(url, this_year or datetime.now(UTC).year)


@lru_cache(maxsize=_CACHE_SIZE)
def _is_endless(url: str, this_year: int) -> bool:
    parts = _split(url)
    if parts is None or len(url) > _MAX_CRAWLED_LENGTH:
        return True
    segments = [segment for segment in parts.path.split("/") if segment]
    return _repeats(segments) or _is_calendar(parts, this_year)


def file_name(url: str) -> str:
    """The last segment of an address's path, or the file that its query names; unquoted."""
    parts = _split(url)
    if parts is None:
        return ""
    name = next((value for _, value in _pairs(parts) if _PDF_NAME.search(value)), "")
    return (name or unquote(parts.path).rstrip("/")).rpartition("/")[2]


def same_site(url: str, other: str) -> bool:
    """Whether two addresses are on one host, `www.` or not."""
    first, second = _split(url), _split(other)
    if first is None or second is None:
        return False
    return first.netloc.removeprefix("www.") == second.netloc.removeprefix("www.")


@lru_cache(maxsize=_CACHE_SIZE)
def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _pairs(parts: SplitResult) -> list[tuple[str, str]]:
    return parse_qsl(parts.query) if parts.query else []


def _cleaned(parts: SplitResult) -> SplitResult:
    host = parts.netloc.rpartition("@")[2]
    if parts.port == _DEFAULT_PORTS.get(parts.scheme):
        host = host.removesuffix(f":{parts.port}")
    pairs = [pair for pair in parts.query.split("&") if pair and not _is_noise(pair)]
    path = _SESSION_IN_PATH.sub("", parts.path) or "/"
    return parts._replace(netloc=host, path=path, query="&".join(pairs), fragment="")


def _is_noise(pair: str) -> bool:
    name, _, value = pair.partition("=")
    name = unquote(name)
    if _TRACKING.fullmatch(name) or _SESSION.fullmatch(name):
        return True
    return bool(_SHORT_SESSION.fullmatch(name) and _RANDOM.fullmatch(value))


def _is_pdf_value(name: str, value: str) -> bool:
    if value.lower().endswith(".pdf"):
        return True
    return value.lower() == "pdf" and bool(_FORMAT.fullmatch(name))


def _is_delivery(path: str, pairs: list[tuple[str, str]]) -> bool:
    delivery = _DELIVERY.search(path)
    # `/downloads/` alone is a page about downloads; a delivered file has a name or number after it.
    if delivery and (path[delivery.end() :].strip("/") or re.search(r"\d", path) or pairs):
        return True
    return any(_DELIVERED.fullmatch(name) and value for name, value in pairs)


def _repeats(segments: list[str]) -> bool:
    if len(segments) > _MAX_SEGMENTS:
        return True
    words = [segment for segment in segments if not segment.isdigit()]
    if any(words.count(word) >= _MAX_REPEATS for word in set(words)):
        return True
    pairs = list(pairwise(segments))
    return any(pairs.count(pair) > 1 for pair in pairs)


def _is_calendar(parts: SplitResult, this_year: int) -> bool:
    path = unquote(parts.path)
    pairs = _pairs(parts)
    text = f"{path}?{unquote(parts.query)}"
    dated = _DATED_PATH.search(path)
    keyed = [value for name, value in pairs if _DATE_KEY.fullmatch(name)]
    if _CALENDAR.search(text) and (dated or keyed or re.search(r"\d{4}-\d{1,2}", text)):
        return True
    if any(_DATED_VALUE.fullmatch(value) for value in keyed):
        return True
    years = [value for name, value in pairs if _YEAR_KEY.fullmatch(name) and keyed]
    years += [dated[1]] if dated else []
    return any(year.isdigit() and not _OLDEST <= int(year) <= this_year + 1 for year in years)
