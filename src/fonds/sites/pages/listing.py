"""Which of a page's links are its list of PDFs.

Which part of a page an element stands in: the matter, or what is around it on every page.
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
from fonds.sites.pages.urls import file_name, is_other_file, looks_like_pdf, says_pdf
from fonds.sites.pages.wording import is_generic, is_unwanted, tells_year, without_dates

_TAGS: Final = frozenset({"nav", "header", "footer", "aside"})
_ROLES: Final = frozenset(
    {"navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"}
)
_MATTER: Final = frozenset({"main", "article"})
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
_CUT: Final = re.compile(r"[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])")
# `page-header` and `accordion-header` head a part of the matter.
_INNER: Final = re.compile(
    r"(?:page|section|card|accordion|panel|list|table|entry|article|content|item|post|group)[-_]*"
    r"(?:header|head|foot|footer|banner)|(?:has|with|no|page|layout|is)[-_]+\w*",
    re.IGNORECASE,
)
# Too small to be a part of a page, or all of it.
_NEVER: Final = frozenset(
    {"body", "html", "main", "article", "a", "li", "td", "tr", "tbody", "h1", "h2", "h3", "h4"}
)
_SHORT_PAGE: Final = 400


class Regions:
    """Says of the elements of one page whether they stand in its matter."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[Any, bool] = {}
        self._size = max(1, len(root.text_content()))

    def is_matter(self, element: Any) -> bool:
        """Whether an element stands neither in menus, margins, head nor foot of the page."""
        climbed = []
        here = element
        answer = True
        while here is not None:
            if here in self._known:
                answer = self._known[here]
                break
            climbed.append(here)
            if self._is_around(here):
                answer = False
                break
            here = here.getparent()
        for each in climbed:
            self._known[each] = answer
        return answer

    def _is_around(self, element: Any) -> bool:
        tag = element.tag
        if tag in _NEVER:
            return False
        role = (element.get("role") or "").lower()
        if not (tag in _TAGS or role in _ROLES or _is_named_so(element)):
            return False
        # One that was never closed, or a page that is all "header", holds the matter itself.
        if next(element.iterdescendants("main", "h1"), None) is not None:
            return (
                tag in {"header", "nav"}
                and next(element.iterdescendants("main", "table"), None) is None
                and self._is_small(element)
            )
        if tag == "header" and any(parent.tag in _MATTER for parent in element.iterancestors()):
            return False
        return tag in _TAGS or self._is_small(element)

    def _is_small(self, element: Any) -> bool:
        return len(element.text_content()) * 2 < self._size or self._size < _SHORT_PAGE


def _is_named_so(element: Any) -> bool:
    return any(_tell(names) for names in (element.get("id"), element.get("class")) if names)


@lru_cache(maxsize=512)
def _tell(names: str) -> bool:
    return any(
        not _WORDS.isdisjoint(word.lower() for word in _CUT.split(name))
        for name in names.split()
        if not _INNER.fullmatch(name)
    )


Signature = tuple[str, ...]

_PLACE: Final = re.compile(
    r"^(?:odd|even|first|last|row-?\d*|col-?\d*|item-?\d+|active|current|selected|collapsed|open)$",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"\d$|\d\d")
_HAS_SIZE: Final = re.compile(r"\d\s*(?:[KM]i?B|[KM]o)\b", re.IGNORECASE)
_NEAR_TEXT: Final = 160
_PERIODIC: Final = 0.5
_FEW: Final = 2
_SAMPLE: Final = 30
"""Links of a group that are looked at closely."""
_CLICKABLE: Final = frozenset({"anchor", "script", "data", "form"})


@dataclass(frozen=True, slots=True)
class Group:
    """Links that stand in the same kind of place."""

    signature: Signature
    links: tuple[Link, ...]
    periodic: float
    """The share that tells of a period nearby."""

    @property
    def weight(self) -> float:
        """How much speaks for it: its links, and the periods they tell of."""
        return len(self.links) * (0.3 + self.periodic)


class PdfList:
    """The PDF links of one page, told apart."""

    def __init__(self, page: WebPage) -> None:
        self.page = page
        self.regions = Regions(page.tree)
        self.pdfs = [link for link in page.links() if is_pdf_link(link)]
        """Every link that looks like a PDF, wherever it stands."""
        self.others = frozenset(
            link.element for link in distinct(self.pdfs) if link.element is not None
        )
        """Where its PDFs stand, each once."""
        self._items: dict[Any, str] = {}
        self._paths: dict[Any, Signature] = {}
        self.outline = HeadingsAbove(
            page, [link.element for link in self.pdfs if link.element is not None]
        )
        self.groups = self._chosen()
        """The groups that make up the list, the weightiest first."""
        chosen = {id(link) for group in self.groups for link in group.links}
        self.links = [link for link in self.pdfs if id(link) in chosen]
        """The links of the list, in the order of the page."""

    def item_text(self, link: Link) -> str:
        """What stands beside a link in its row, item or card."""
        if link.element is None:
            return " ".join(link.fields.values())
        if link.element not in self._items:
            item = item_of(link.element, self.others)
            self._items[link.element] = item_text(link.element, item)
        return self._items[link.element]

    def tells_period(self, link: Link) -> bool:
        """Whether a period is told of by a link, its item, its file or a near heading."""
        if tells_year(link.text) or tells_year(file_name(link.url)):
            return True
        if tells_year(without_dates(self.item_text(link))):
            return True
        return link.element is not None and any(map(tells_year, self.outline.near(link.element)))

    def _chosen(self) -> list[Group]:
        matter = [link for link in self.pdfs if self.is_matter(link)]
        groups = self._grouped([link for link in matter if not self._is_unwanted(link)])
        if not groups:
            # A page may be all margin, or its reports may be called forms.
            rest = matter or [link for link in self.pdfs if not self._is_unwanted(link)]
            groups = [group for group in self._grouped(rest) if len(group.links) > _FEW]
            return groups[:1] if matter or not groups or groups[0].periodic >= _PERIODIC else []
        main = groups[0]
        folders = {_folder(link.url) for link in main.links}
        return [main, *(group for group in groups[1:] if _belongs(group, main, folders))]

    def is_matter(self, link: Link) -> bool:
        """Whether a link stands in the page's matter."""
        return link.element is None or self.regions.is_matter(link.element)

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
        return sum(map(self.tells_period, sample)) / len(sample)

    def _grouped(self, links: Sequence[Link]) -> list[Group]:
        held: dict[Signature, list[Link]] = {}
        for link in links:
            held.setdefault(self._signature(link), []).append(link)
        groups = [Group(key, tuple(each), self._periodic(each)) for key, each in held.items()]
        return sorted(groups, key=lambda group: -group.weight)

    def _signature(self, link: Link) -> Signature:
        """That of the function below; links stand in the same few places."""
        if link.element is None:
            return signature(link)
        above = link.element.getparent()
        if above not in self._paths:
            self._paths[above] = signature(link)[:-1]
        return (*self._paths[above], step(link.element))


def is_pdf_link(link: Link) -> bool:
    """Whether a link promises a PDF: by address, text, attributes, or what stands beside it."""
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
    """One link for each address: of an icon, a title and a button, the one that says most."""
    best: dict[str, Link] = {}
    for link in links:
        known = best.get(link.url)
        if known is None or _says(link) > _says(known):
            best[link.url] = link
    return list(best.values())


def _says(link: Link) -> int:
    return 0 if not link.text else 1 if is_generic(link.text) or says_pdf(link.text) else 2


def _is_announced(element: Any) -> bool:
    """A link alone in its item, which speaks of a PDF or a file's size beside it."""
    parent = element.getparent()
    if parent is None or parent.tag not in {"li", "td", "p", "dd", "span", "div", "h3", "h4"}:
        return False
    text = parent.text_content()
    if len(text) > _NEAR_TEXT or sum(1 for _ in parent.iter("a")) > 1:
        return False
    return says_pdf(text) or bool(_HAS_SIZE.search(text))


def signature(link: Link) -> Signature:
    """The path of tags and classes to a link, without the places in it."""
    if link.element is None:
        return ("script",)
    return tuple(step(each) for each in reversed([link.element, *link.element.iterancestors()]))


def step(element: Any) -> str:
    """A tag with those of its classes that say what it is."""
    return ".".join([element.tag, *classes(element)])


def classes(element: Any) -> list[str]:
    """The classes of an element that do not tell its place, state or number."""
    told = element.get("class")
    return list(_telling(told)) if told else []


@lru_cache(maxsize=512)
def _telling(names: str) -> tuple[str, ...]:
    told = {name for name in names.split() if not _PLACE.match(name) and not _NUMBERED.search(name)}
    return tuple(sorted(told))


def has_class(name: str) -> str:
    """The condition, in XPath, that an element has a class."""
    return f"contains(concat(' ',normalize-space(@class),' '),' {name} ')"


def _belongs(group: Group, main: Group, folders: set[str]) -> bool:
    if group.periodic >= _PERIODIC:
        return True
    if main.periodic >= _PERIODIC:
        # Where the list tells of periods, what tells of none is something else.
        return False
    return len(group.links) > _FEW or any(_folder(link.url) in folders for link in group.links)


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0]


def common_step(links: Sequence[Link]) -> str | None:
    """A part of the address that all of some links share and that tells them from pages."""
    if all(".pdf" in link.url.lower() for link in links):
        return ".pdf"
    parts = Counter(
        part for link in links for part in set(re.split(r"[/?&=]", link.url.partition("//")[2])[1:])
    )
    shared = [part for part, count in parts.items() if count == len(links) and part.isalpha()]
    return max(shared, key=len, default=None)
