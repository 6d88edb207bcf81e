"""The boilerplate of a page: menus, breadcrumbs, links to the next page, site heads and feet.

One page does not tell what all pages of a website share, so boilerplate is recognised by a
role or a name that says so, and by links in place of sentences. What only looks like it is kept: a
table of contents of the page itself, a list of sections, a foot with notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

Boilerplate = dict[Any, str]
"""The elements that are boilerplate, and what each is."""

_MARKED: Final[Any] = etree.XPath(
    "//*[@class or @id or @role or self::nav or self::header or self::footer or self::main"
    " or self::article]"
)
_NAMES_OF_MENUS: Final = re.compile(r"nav|menu|bread|skip|social|footer", re.IGNORECASE)
"""In a class or an id: what may be boilerplate. Few elements have such a name."""

_ROLES: Final = {
    "navigation": "navigation",
    "menu": "navigation",
    "menubar": "navigation",
    "search": "search form",
    "banner": "page header",
    "contentinfo": "page footer",
}
_TAGS: Final = {"nav": "navigation", "header": "page header", "footer": "page footer"}
_NAMES: Final = (
    (re.compile(r"bread-?_?crumb", re.IGNORECASE), "breadcrumbs"),
    (re.compile(r"(?:^|[\s_-])skip(?:$|[\s_-]|to|link|nav)", re.IGNORECASE), "skip link"),
    (re.compile(r"nav|menu|social", re.IGNORECASE), "navigation"),
    (re.compile(r"(?:^|[\s_-])footer(?:$|[\s_-])", re.IGNORECASE), "page footer"),
)
_NEXT_PAGE: Final = re.compile(
    r"[«‹<←\s]*(?:previous|prev|next)(?: (?:page|section|part|chapter|title|article|document))?"
    r"[»›>→\s]*",
    re.IGNORECASE,
)
"""A link to the page before or after."""
_STEP: Final = re.compile(
    r"[↑^\s]*(?:back|home|up|top|print|(?:back |return )?to top"
    r"|skip (?:to|navigation)\b.{0,30})\s*",
    re.IGNORECASE,
)
_CONTENT: Final = frozenset({"main", "article"})
_STEP_BLOCKS: Final = frozenset({"p", "div", "table", "center", "ul", "ol"})
_MAX_STEP_WORDS: Final = 12
_MAX_BREADCRUMB_WORDS: Final = 80
_MAX_FOOT_WORDS: Final = 400
_MIN_LINKED: Final = 0.8
_MIN_WORDS: Final = 20


def find_boilerplate(root: Any) -> Boilerplate:
    """The boilerplate of a page that has something else to say."""
    if next(root.iter("a", "form", *_TAGS), None) is None:
        return {}
    candidates = [element for element in _MARKED(root) if _is_candidate(element)]
    mains = [each for each in candidates if each.tag in _CONTENT or each.get("role") == "main"]
    main = mains[0] if len(mains) == 1 else None
    boilerplate: Boilerplate = {}
    for element in candidates:
        if not _is_within(element, boilerplate) and (reason := _reason_to_omit(element, main)):
            boilerplate[element] = reason
    for element in _steps(root):
        if not _is_within(element, boilerplate):
            boilerplate[element] = "links to other pages"
    if not boilerplate or _leaves_text(root, boilerplate):
        return boilerplate
    return {element: reason for element, reason in boilerplate.items() if element.tag == "nav"}


def _is_candidate(element: Any) -> bool:
    if element.tag in _TAGS or element.tag in _CONTENT or element.get("role"):
        return True
    return _NAMES_OF_MENUS.search(f"{element.get('class')} {element.get('id')}") is not None


def _reason_to_omit(element: Any, main: Any) -> str | None:
    reason = _reason(element)
    if reason is None or _contains_content(element, main):
        return None
    return reason if _is_boilerplate(element, reason, main) else None


def _reason(element: Any) -> str | None:
    if reason := _TAGS.get(element.tag) or _ROLES.get(element.get("role") or ""):
        return reason
    if element.tag in {"body", "html", "main", "article"} or element.get("role") == "main":
        return None
    names = f"{element.get('id') or ''} {element.get('class') or ''}"
    return next((reason for pattern, reason in _NAMES if pattern.search(names)), None)


def _contains_content(element: Any, main: Any) -> bool:
    """True if the content of the page is in an element."""
    if main is not None and (element is main or element in main.iterancestors()):
        return True
    return next(element.iter("main", "article"), None) is not None


def _is_boilerplate(element: Any, reason: str, main: Any) -> bool:
    if element.tag == "nav":
        return True
    in_main = main is not None and main in element.iterancestors()
    if reason in {"page header", "page footer"}:
        in_content = in_main or next(element.iterancestors(*_CONTENT, "section"), None) is not None
        return not in_content and (
            _has_title(main) if reason == "page header" else _is_foot(element)
        )
    words, linked, links, is_own = _measured(element)
    if not words or is_own:
        return False
    if reason in {"skip link", "search form"}:
        return words <= _MAX_STEP_WORDS
    if reason == "breadcrumbs":
        return links > 0 and words <= _MAX_BREADCRUMB_WORDS
    linkage = 0.5 if element.get("role") == "navigation" else _MIN_LINKED
    return links > 1 and linked >= words * linkage and not in_main


def _has_title(main: Any) -> bool:
    """True if a page marks its content, and has a heading there."""
    return main is not None and next(main.iter("h1", "h2"), None) is not None


def _is_foot(element: Any) -> bool:
    """The foot of a page has no notes, and few words."""
    if element.tag != "footer" and element.get("role") != "contentinfo":
        words, linked, _, is_own = _measured(element)
        return not is_own and linked >= words * _MIN_LINKED
    words = _words(element)
    names = (target.get("id") or target.get("name") or "" for target in element.iter("a"))
    has_notes = any(name[-1:].isdigit() for name in names)
    return words <= _MAX_FOOT_WORDS and not has_notes


def _measured(element: Any) -> tuple[int, int, int, bool]:
    """Words, words in links, links, and true if more links are to this page than to others."""
    words = _words(element)
    linked = links = own = 0
    for link in element.iter("a"):
        href = link.get("href")
        if href is None:
            continue
        links += 1
        own += href.startswith("#") and len(href) > 1
        linked += _words(link)
    return words, linked, links, own * 2 > links


def _steps(root: Any) -> Iterator[Any]:
    """The blocks that have only links to the page before, the next one, or the top."""
    visited: set[Any] = set()
    for link in root.iter("a"):
        text = _one_line(link)
        if (
            not text
            or not link.get("href")
            or not (_NEXT_PAGE.fullmatch(text) or _STEP.fullmatch(text))
        ):
            continue
        block, outer = None, link.getparent()
        while outer is not None and outer.tag not in {"body", "html", *_CONTENT}:
            if outer in visited or not _has_only_steps(outer):
                visited.add(outer)
                break
            if outer.tag in _STEP_BLOCKS:
                block = outer
            outer = outer.getparent()
        if block is not None:
            visited.add(block)
            yield block


def _has_only_steps(block: Any) -> bool:
    words, linked, _, _ = _measured(block)
    if words > _MAX_STEP_WORDS or words - linked > _separators(block):
        return False
    texts = [_one_line(link) for link in block.iter("a")]
    return any(map(_NEXT_PAGE.fullmatch, texts)) or all(map(_STEP.fullmatch, texts))


def _words(element: Any) -> int:
    return len(" ".join(element.itertext()).split())


def _one_line(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _separators(element: Any) -> int:
    """How many of the words of a block are only signs: `|`, `::`."""
    return sum(
        not any(map(str.isalnum, word)) for text in element.itertext() for word in text.split()
    )


def _is_within(element: Any, boilerplate: Boilerplate) -> bool:
    if element in boilerplate:
        return True
    return bool(boilerplate) and any(outer in boilerplate for outer in element.iterancestors())


def _leaves_text(root: Any, boilerplate: Boilerplate) -> bool:
    """True if a page has text besides its boilerplate: an index is nothing but links."""
    words = _words(root)
    out = sum(map(_words, boilerplate))
    return words - out >= _MIN_WORDS
