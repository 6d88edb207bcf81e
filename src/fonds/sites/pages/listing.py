"""The list of PDFs of a page: its links in groups, without those that do not belong to it.

`Regions` tells the content of a page from menus, margins, header and footer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fonds.sites.pages.outline import HeadingsAbove, item_of, item_text
from fonds.sites.pages.page import Link, WebPage
from fonds.sites.pages.urls import file_name, is_other_file, looks_like_pdf, mentions_pdf
from fonds.sites.pages.wording import has_year, is_generic, is_unwanted, without_dates

_TAGS: Final = frozenset({"nav", "header", "footer", "aside"})
_ROLES: Final = frozenset(
    {"navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"}
)
_CONTENT_TAGS: Final = frozenset({"main", "article"})
_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "nav navi navigation gnav gnavi gnb lnb snb globalnav menu megamenu mega submenu "
        "menubar topnav sidenav footer fnav pie pied header masthead entete fusszeile sidebar "
        "side aside sidenavi subnav breadcrumb breadcrumbs crumbs topicpath pankuzu brotkrumen "
        "hierarchie cookie cookies social sns toolbar copyright widget skiplink adobe extra "
        "seitenleiste marginalspalte ",
    )
)
_WORD_BOUNDARY: Final = re.compile(r"[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])")
# `page-header` and `accordion-header` are headings within the content.
_INNER_PART: Final = re.compile(
    r"(?:page|section|card|accordion|panel|list|table|entry|article|content|item|post|group)[-_]*"
    r"(?:header|head|foot|footer|banner)|(?:has|with|no|page|layout|is)[-_]+\w*",
    re.IGNORECASE,
)
# Either smaller than a region, or the whole page.
_NOT_REGIONS: Final = frozenset(
    {"body", "html", "main", "article", "a", "li", "td", "tr", "tbody", "h1", "h2", "h3", "h4"}
)
_SHORT_PAGE: Final = 400


class Regions:
    """Tells which elements of a page are in its content."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._is_content: dict[Any, bool] = {}
        self._size = max(1, len(root.text_content()))

    def is_content(self, element: Any) -> bool:
        """Whether an element is not in a menu, a margin, the header or the footer of the page."""
        visited = []
        ancestor = element
        is_content = True
        while ancestor is not None:
            if ancestor in self._is_content:
                is_content = self._is_content[ancestor]
                break
            visited.append(ancestor)
            if self._is_around(ancestor):
                is_content = False
                break
            ancestor = ancestor.getparent()
        self._is_content |= dict.fromkeys(visited, is_content)
        return is_content

    def _is_around(self, element: Any) -> bool:
        tag = element.tag
        if tag in _NOT_REGIONS:
            return False
        role = (element.get("role") or "").lower()
        if not (tag in _TAGS or role in _ROLES or _is_region_by_name(element)):
            return False
        # A region that was never closed, or a page that is all "header", contains the content.
        if next(element.iterdescendants("main", "h1"), None) is not None:
            return (
                tag in {"header", "nav"}
                and next(element.iterdescendants("main", "table"), None) is None
                and self._is_small(element)
            )
        if tag == "header" and any(
            parent.tag in _CONTENT_TAGS for parent in element.iterancestors()
        ):
            return False
        return tag in _TAGS or self._is_small(element)

    def _is_small(self, element: Any) -> bool:
        return len(element.text_content()) * 2 < self._size or self._size < _SHORT_PAGE


def _is_region_by_name(element: Any) -> bool:
    return any(
        _is_region_name(names) for names in (element.get("id"), element.get("class")) if names
    )


@lru_cache(maxsize=512)
def _is_region_name(names: str) -> bool:
    return any(
        not _WORDS.isdisjoint(word.lower() for word in _WORD_BOUNDARY.split(name))
        for name in names.split()
        if not _INNER_PART.fullmatch(name)
    )


Signature = tuple[str, ...]

_STATE_CLASS: Final = re.compile(
    r"^(?:odd|even|first|last|row-?\d*|col-?\d*|item-?\d+|active|current|selected|collapsed|open)$",
    re.IGNORECASE,
)
_NUMBERED_CLASS: Final = re.compile(r"\d$|\d\d")
_HAS_SIZE: Final = re.compile(r"\d\s*(?:[KM]i?B|[KM]o)\b", re.IGNORECASE)
_MAX_ITEM_TEXT: Final = 160
_MIN_PERIODIC: Final = 0.5
_MAX_STRAY_LINKS: Final = 2
_SAMPLE: Final = 30
"""Links of a group that are checked for periods."""
_CLICKABLE: Final = frozenset({"anchor", "script", "data", "form"})


@dataclass(frozen=True, slots=True)
class Group:
    """Links with the same path of tags and classes."""

    signature: Signature
    links: tuple[Link, ...]
    periodic: float
    """The fraction with a period in the link or near it."""

    @property
    def weight(self) -> float:
        """The weight of a group among others: its links, and the periods near them."""
        return len(self.links) * (0.3 + self.periodic)


class PdfList:
    """The PDF links of one page, in groups."""

    def __init__(self, page: WebPage) -> None:
        self.page = page
        self.regions = Regions(page.tree)
        self.pdfs = [link for link in page.links() if is_pdf_link(link)]
        """Every link that looks like a PDF, in any part of the page."""
        self.others = frozenset(
            link.element for link in distinct(self.pdfs) if link.element is not None
        )
        """The elements of its PDFs, one for each."""
        self._items: dict[Any, str] = {}
        self._paths: dict[Any, Signature] = {}
        self.outline = HeadingsAbove(
            page, [link.element for link in self.pdfs if link.element is not None]
        )
        self.groups = self._choose_groups()
        """The groups that make up the list, by descending weight."""
        chosen = {id(link) for group in self.groups for link in group.links}
        self.links = [link for link in self.pdfs if id(link) in chosen]
        """The links of the list, in the order of the page."""

    def item_text(self, link: Link) -> str:
        """The other text in the row, item or card of a link."""
        if link.element is None:
            return " ".join(link.fields.values())
        if link.element not in self._items:
            item = item_of(link.element, self.others)
            self._items[link.element] = item_text(link.element, item)
        return self._items[link.element]

    def has_period(self, link: Link) -> bool:
        """Whether a link, its item, its file name or a near heading has a period."""
        if has_year(link.text) or has_year(file_name(link.url)):
            return True
        if has_year(without_dates(self.item_text(link))):
            return True
        return link.element is not None and any(map(has_year, self.outline.near(link.element)))

    def _choose_groups(self) -> list[Group]:
        content = [link for link in self.pdfs if self.is_content(link)]
        groups = self._grouped([link for link in content if not self._is_unwanted(link)])
        if not groups:
            # A page may be all margin, or its reports may be named forms.
            rest = content or [link for link in self.pdfs if not self._is_unwanted(link)]
            groups = [group for group in self._grouped(rest) if len(group.links) > _MAX_STRAY_LINKS]
            return (
                groups[:1] if content or not groups or groups[0].periodic >= _MIN_PERIODIC else []
            )
        main = groups[0]
        folders = {_folder(link.url) for link in main.links}
        return [main, *(group for group in groups[1:] if _belongs(group, main, folders))]

    def is_content(self, link: Link) -> bool:
        """Whether a link is in the content of the page."""
        return link.element is None or self.regions.is_content(link.element)

    def _is_unwanted(self, link: Link) -> bool:
        if is_unwanted(link.text) or is_unwanted(
            file_name(link.url).replace("-", " ").replace("_", " ")
        ):
            return True
        if link.element is None:
            return False
        near = self.outline.near(link.element)[:1]
        return any(is_unwanted(heading) for heading in near)

    def _periodic(self, links: Sequence[Link]) -> float:
        sample = links[:: len(links) // _SAMPLE + 1]
        return sum(map(self.has_period, sample)) / len(sample)

    def _grouped(self, links: Sequence[Link]) -> list[Group]:
        by_signature: dict[Signature, list[Link]] = {}
        for link in links:
            by_signature.setdefault(self._signature(link), []).append(link)
        groups = [
            Group(signature, tuple(group), self._periodic(group))
            for signature, group in by_signature.items()
        ]
        return sorted(groups, key=lambda group: -group.weight)

    def _signature(self, link: Link) -> Signature:
        """As the function `signature`; many links have the same parent."""
        if link.element is None:
            return signature(link)
        parent = link.element.getparent()
        if parent not in self._paths:
            self._paths[parent] = signature(link)[:-1]
        return (*self._paths[parent], step(link.element))


def is_pdf_link(link: Link) -> bool:
    """Whether a link looks like a PDF: by address, text, attributes, or the text next to it."""
    if link.kind == "frame":
        return link.url.lower().partition("?")[0].endswith(".pdf")
    if looks_like_pdf(link.url, link.text):
        return True
    if link.element is None or link.kind not in _CLICKABLE or is_other_file(link.url):
        return False
    if link.url.lower().endswith((".html", ".htm", "/")):
        return False
    return _is_marked(link.element) or (link.kind != "form" and _is_announced(link.element))


def _is_marked(element: Any) -> bool:
    if "pdf" in (element.get("type") or "").lower() or element.get("download") is not None:
        return True
    return any("pdf" in name.lower() for name in (element.get("class") or "").split())


def distinct(links: Iterable[Link]) -> list[Link]:
    """One link for each address: of an icon, a title and a button, the most informative one."""
    best: dict[str, Link] = {}
    for link in links:
        previous = best.get(link.url)
        if previous is None or _information(link) > _information(previous):
            best[link.url] = link
    return list(best.values())


def _information(link: Link) -> int:
    return 0 if not link.text else 1 if is_generic(link.text) or mentions_pdf(link.text) else 2


def _is_announced(element: Any) -> bool:
    """Whether a link is alone in an item that mentions a PDF or the size of a file."""
    parent = element.getparent()
    if parent is None or parent.tag not in {"li", "td", "p", "dd", "span", "div", "h3", "h4"}:
        return False
    text = parent.text_content()
    if len(text) > _MAX_ITEM_TEXT or sum(1 for _ in parent.iter("a")) > 1:
        return False
    return mentions_pdf(text) or bool(_HAS_SIZE.search(text))


def signature(link: Link) -> Signature:
    """The path of tags and classes to a link, without positions."""
    if link.element is None:
        return ("script",)
    return tuple(
        step(element) for element in reversed([link.element, *link.element.iterancestors()])
    )


def step(element: Any) -> str:
    """A tag with its descriptive classes."""
    return ".".join([element.tag, *classes(element)])


def classes(element: Any) -> list[str]:
    """The classes of an element except those for its position, state or number."""
    names = element.get("class")
    return list(_descriptive(names)) if names else []


@lru_cache(maxsize=512)
def _descriptive(names: str) -> tuple[str, ...]:
    return tuple(
        sorted(
            {
                name
                for name in names.split()
                if not _STATE_CLASS.match(name) and not _NUMBERED_CLASS.search(name)
            }
        )
    )


def has_class(name: str) -> str:
    """The XPath condition that an element has a class."""
    return f"contains(concat(' ',normalize-space(@class),' '),' {name} ')"


def _belongs(group: Group, main: Group, folders: set[str]) -> bool:
    if group.periodic >= _MIN_PERIODIC:
        return True
    if main.periodic >= _MIN_PERIODIC:
        # In a list with periods, a group without any does not belong to it.
        return False
    return len(group.links) > _MAX_STRAY_LINKS or any(
        _folder(link.url) in folders for link in group.links
    )


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0]


def common_step(links: Sequence[Link]) -> str | None:
    """A part of the address that all links have in common."""
    if all(".pdf" in link.url.lower() for link in links):
        return ".pdf"
    parts = Counter(
        part for link in links for part in set(re.split(r"[/?&=]", link.url.partition("//")[2])[1:])
    )
    shared = [part for part, count in parts.items() if count == len(links) and part.isalpha()]
    return max(shared, key=len, default=None)
