"""Which part of a page an element stands in: the matter, or what is around it on every page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

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
