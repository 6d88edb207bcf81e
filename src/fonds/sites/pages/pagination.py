"""The pages on which a list continues, and other pages of a site that may contain lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from fonds.sites.pages.listing import PdfList, classes, has_class
from fonds.sites.pages.page import Link, WebPage, single_line
from fonds.sites.pages.urls import is_other_file, is_trap, same_site
from fonds.sites.pages.wording import (
    has_year,
    is_generic,
    is_organization_like,
    is_unwanted,
    normalized,
    organization_name,
)

_NEXT: Final = re.compile(
    r"(?:next|older)(?:\s+(?:page|results?|reports?|entries|posts|\d+.*))?\W*|(?:次|つぎ)(?:へ|の?ページ(?:へ)?|の\d+件)?\W*"
    r"|[›»>→▶≫]+|weiter\W*|nächste(?:\s+seite)?\W*|suivante?s?\W*|page\s+suivante\W*|siguientes?\W*|próxim[oa]\W*"
    r"|successiv[oa]\W*|avanti\W*|volgende\W*|neste\W*|nästa\W*|seuraava\W*|następn[ay]\W*|další\W*|다음\W*"
    r"|(?:load|show|view|see)\s+more\W*|more(?:\s+(?:results?|reports?))?\W*|もっと(?:見|み)る\W*|続きを?(?:見る|読む)\W*"
    r"|vis\s+flere\W*|mehr\s+(?:laden|anzeigen)\W*|voir\s+plus\W*|ver\s+más\W*|cargar\s+más\W*|더\s*보기\W*",
    re.IGNORECASE,
)
_BACK: Final = re.compile(
    r"prev|newer|前|back|zurück|précéd|anterior|vorige|föregå|edellinen|이전|home|first|top",
    re.IGNORECASE,
)
_NEXT_CLASS: Final = re.compile(
    r"(?:^|[-_])(?:next|load-?more|more|show-?more|infinite)(?:$|[-_])", re.IGNORECASE
)
_PAGE_KEY: Final = re.compile(
    r"page(?:_?(?:no|num|index|id))?|paged|p|pg|offset|start|from|side|seite|sida|pagina|strana"
    r"|cpage|skip",
    re.IGNORECASE,
)
_NUMBERS: Final = re.compile(r"\d+")
_CACHE_SIZE: Final = 512
_MAX_FURTHER: Final = 3000
_MAX_GAP: Final = 2
_MAX_DESCRIPTION: Final = 160
_MAX_DIGITS: Final = 3
"""Of the number of a page; a year has four."""
_LIST_WORDS: Final = re.compile(
    r"reports?|returns?|statements?|accounts?|filings?|disclos|finan|archive|past|previous years"
    r"|publi|donat|expend|campaign"
    r"|bericht|rechenschaft|rapport|compte|informe|cuentas|rendicont|sprawozda|zprávy"
    r"|収支|報告|公表|政治資金|過去|年分|회계",
    re.IGNORECASE,
)
_UNRELATED: Final = re.compile(
    r"contact|お問い?合|login|log in|sign in|subscribe|rss|twitter|facebook|youtube"
    r"|\bjobs?\b|careers|search|検索|print|印刷"
    r"|mailto|share|english|français|deutsch|language|sort|ordenar|sortieren",
    re.IGNORECASE,
)


def pagination(listing: PdfList) -> str | None:
    """A selector of the links to the next pages of a list; None if there are none."""
    links = listing.page.links()
    for link in links:
        if link.element is not None and "next" in (link.element.get("rel") or "").lower().split():
            return f'{link.element.tag}[rel~="next"]'
    for link in links:
        if _is_next_link(link) and not is_trap(link.url):
            return _selector(link)
    numbered = _numbered(listing.page, links)
    if numbered:
        return _numbered_selector(numbered)
    for link in links:
        if link.kind == "form" and _is_page_form(link):
            return _form_selector(link.element)
    return None


def list_pages(listing: PdfList) -> list[str]:
    """The addresses of further pages of a list, in any form of markup."""
    links = listing.page.links()
    next_links = [link for link in links if _is_next_link(link) or _has_rel(link)]
    next_links += _numbered(listing.page, links)
    next_links += [link for link in links if link.kind == "form" and _is_page_form(link)]
    urls = dict.fromkeys(link.url for link in next_links)
    return [url for url in urls if url != listing.page.url and not is_trap(url)]


def further(listing: PdfList, *, exclude: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Pages of the same site that may contain more lists, best first, and their link texts."""
    page = listing.page
    excluded = {page.url, *exclude}
    ranked: list[tuple[float, int, str, str]] = []
    pdfs = {link.url for link in listing.pdfs}
    for position, link in enumerate(page.links()):
        if link.url in excluded or link.url in pdfs or not same_site(link.url, page.url):
            continue
        if is_other_file(link.url) or is_trap(link.url):
            continue
        promise = _promise(link, listing)
        if promise > 0:
            excluded.add(link.url)
            ranked.append((-promise, position, link.url, _description(link)))
    ranked.sort()
    return [(url, text) for _, _, url, text in ranked[:_MAX_FURTHER]]


def _description(link: Link) -> str:
    """The text of a link; of one that says nothing, such as "View", the other cells of its row."""
    text = normalized(link.text)
    row = None if link.element is None else next(link.element.iterancestors("tr"), None)
    if row is None or has_year(text) or (organization_name(text) and not is_generic(text)):
        return link.text
    cells = [single_line(cell.text_content()) for cell in row.iterchildren("td", "th")]
    words = ", ".join(cell for cell in cells if cell and normalized(cell) != text)
    return words if words and len(words) <= _MAX_DESCRIPTION else link.text


def _promise(link: Link, listing: PdfList) -> float:
    if link.kind in {"frame", "meta"}:
        return 0.0 if is_other_file(link.url) else 5.0
    text = normalized(link.text)
    is_dated = has_year(text)
    if _is_unrelated(link, text) and not is_dated:
        return 0.0
    below = _is_below(link.url, listing.page.url)
    is_list = bool(_LIST_WORDS.search(text))
    value = 1.0 + 2.0 * is_dated + is_list + 0.5 * is_organization_like(text) + 0.7 * below
    if link.kind != "form" and not listing.is_content(link):
        # Of a menu, only links with years or reports. If a page lists nothing itself, its table of
        # contents may have the form of a menu.
        return value - 2.0 if is_dated or is_list else 0.1 * (below and not listing.links)
    if link.kind == "script" and link.element is None:
        return value - 0.9
    return value - 0.3 * is_generic(text)


def _is_unrelated(link: Link, text: str) -> bool:
    if is_unwanted(text) or _has_unrelated_word(text):
        return True
    return link.kind != "form" and urlsplit(link.url).path in {"", "/"}


@lru_cache(maxsize=_CACHE_SIZE)
def _has_unrelated_word(text: str) -> bool:
    return bool(_UNRELATED.search(text))


def _is_below(url: str, page: str) -> bool:
    own_path = urlsplit(page).path
    folder = own_path.rpartition("/")[0] + "/"
    path = urlsplit(url).path
    is_in_folder = len(folder) > 1 and path.startswith(folder)
    return is_in_folder or path.startswith(own_path.rstrip("/") + "/")


def _has_rel(link: Link) -> bool:
    return link.element is not None and "next" in (link.element.get("rel") or "").lower().split()


def _is_next_link(link: Link) -> bool:
    if link.element is None or link.kind in {"form", "frame"}:
        return False
    if link.element.tag == "tr":
        return False
    text = normalized(link.text)
    if _has_back_word(text):
        return False
    names = [*classes(link.element), *_parent_classes(link.element)]
    if any(_NEXT_CLASS.search(name) for name in names):
        return _changes_number(link) or link.kind == "data" or _is_next_word(text)
    label = link.element.get("aria-label") or link.element.get("title") or ""
    return _is_next_word(text) or _is_next_word(normalized(label))


@lru_cache(maxsize=_CACHE_SIZE)
def _has_back_word(text: str) -> bool:
    return bool(_BACK.search(text))


@lru_cache(maxsize=_CACHE_SIZE)
def _is_next_word(text: str) -> bool:
    return bool(_NEXT.fullmatch(text))


def _parent_classes(element: Any) -> list[str]:
    parent = element.getparent()
    return (
        classes(parent)
        if parent is not None and parent.tag in {"li", "span", "div", "p"} and len(parent) == 1
        else []
    )


def _changes_number(link: Link) -> bool:
    return bool(_NUMBERS.search(urlsplit(link.url).query or urlsplit(link.url).path))


def _numbered(page: WebPage, links: Sequence[Link]) -> list[Link]:
    """Links of a pager: numbers, next to each other, to addresses that differ by a number only."""
    pagers: dict[tuple[Any, str], list[Link]] = {}
    for link in links:
        text = normalized(link.text).strip("[]() ")
        if (
            link.element is None
            or link.kind not in {"anchor", "script", "data"}
            or not text.isdigit()
        ):
            continue
        if len(text) > _MAX_DIGITS or is_trap(link.url):
            continue
        parent = link.element.getparent()
        if parent is not None and parent.tag in {"li", "span", "td"}:
            parent = parent.getparent()
        pagers.setdefault((parent, _NUMBERS.sub("#", link.url)), []).append(link)
    groups = [
        group for (_, shape), group in pagers.items() if "#" in shape and _counts_pages(group, page)
    ]
    return max(groups, key=len, default=[])


def _counts_pages(links: Sequence[Link], page: WebPage) -> bool:
    """Whether the numbers count pages: by their address, or because they are consecutive."""
    parts = urlsplit(links[0].url)
    if any(_PAGE_KEY.fullmatch(pair.partition("=")[0]) for pair in parts.query.split("&")):
        return True
    if re.search(r"/(?:page|p|seite|pagina)/?\d+", parts.path):
        return True
    numbers = sorted({int(normalized(link.text).strip("[]() ")) for link in links})
    # The number of the page itself is missing.
    gaps = [after - before for before, after in pairwise(numbers)]
    own_folder = _NUMBERS.sub("#", urlsplit(page.url).path).rstrip("/").rpartition("/")[0]
    is_near = _NUMBERS.sub("#", parts.path).startswith(own_folder)
    return is_near and len(gaps) > 1 and max(gaps) <= _MAX_GAP and numbers[0] <= _MAX_GAP


def _is_page_form(link: Link) -> bool:
    names = [select.get("name") or "" for select in link.element.iter("select")]
    return any(_PAGE_KEY.fullmatch(name) for name in names)


def _selector(link: Link) -> str:
    element = link.element
    names = [name for name in classes(element) if _NEXT_CLASS.search(name)]
    if names:
        return f"{element.tag}.{names[0]}"
    above = [name for name in _parent_classes(element) if _NEXT_CLASS.search(name)]
    if above:
        return f"{element.getparent().tag}.{above[0]} > {element.tag}"
    text = " ".join(element.text_content().split())
    if text and '"' not in text:
        return f'//{element.tag}[normalize-space()="{text}"]'
    label = (element.get("aria-label") or element.get("title") or "").replace('"', "")
    return f'{element.tag}[aria-label="{label}"], {element.tag}[title="{label}"]'


def _numbered_selector(links: Sequence[Link]) -> str:
    element = links[0].element
    for ancestor in element.iterancestors():
        names = classes(ancestor)
        if ancestor.tag in {"body", "html"}:
            break
        if ancestor.get("id") and not re.search(r"\d", ancestor.get("id")):
            return f"//*[@id='{ancestor.get('id')}']//a[number(.)=number(.)]"
        if names and ancestor.tag in {"div", "ul", "ol", "nav", "p", "td", "section"}:
            return f"//{ancestor.tag}[{has_class(names[0])}]//a[number(.)=number(.)]"
    return "//a[number(.)=number(.) and string-length(normalize-space())<4]"


def _form_selector(form: Any) -> str:
    name = next(
        select.get("name")
        for select in form.iter("select")
        if _PAGE_KEY.fullmatch(select.get("name") or "")
    )
    return f'form:has(select[name="{name}"])' if form.tag == "form" else f'select[name="{name}"]'
