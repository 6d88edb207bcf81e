"""The texts above and around a link: headings, terms, captions, the item of its list."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final

from fonds.sites.pages.page import WebPage, single_line

_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}
_HEADS: Final = {"details": "summary", "fieldset": "legend", "table": "caption"}
_LONG_ITEM: Final = 600
_LONG_HEADING: Final = 100


class HeadingsAbove:
    """The headings above each of some elements, nearest first."""

    def __init__(self, page: WebPage, elements: Iterable[Any]) -> None:
        remaining = set(elements)
        self._above: dict[Any, tuple[str, ...]] = {}
        self._boxes: dict[Any, tuple[str, ...]] = {}
        self._rows: dict[Any, str] = {}
        if not remaining:
            return
        stack: dict[int, str] = {}
        for element in page.elements:
            level = _LEVELS.get(element.tag)
            if level is not None:
                stack = {above: text for above, text in stack.items() if above < level}
                stack[level] = single_line(element.text_content())
            if element in remaining:
                self._above[element] = tuple(stack[each] for each in sorted(stack, reverse=True))

    def headings(self, element: Any) -> list[str]:
        """The headings above an element and of the boxes and lists around it, nearest first."""
        return [*self._boxes_of(element), *self._above.get(element, ())]

    def near(self, element: Any) -> list[str]:
        """As `headings`, without the first heading of the page, which is above everything."""
        above = self._above.get(element, ())
        return [*self._boxes_of(element), *(above[:-1] if len(above) > 1 else ())]

    def _boxes_of(self, element: Any) -> tuple[str, ...]:
        """Terms, summaries, captions and the texts of outer list items, from the inside out."""
        chain = []
        ancestor = element.getparent()
        while ancestor is not None and ancestor not in self._boxes:
            chain.append(ancestor)
            ancestor = ancestor.getparent()
        texts: tuple[str, ...] = () if ancestor is None else self._boxes[ancestor]
        for box in reversed(chain):
            texts = (*filter(None, [self._head_of(box)]), *texts)
            self._boxes[box] = texts
        return texts

    def _head_of(self, box: Any) -> str:
        tag = box.tag
        if tag in _HEADS:
            head = box.find(_HEADS[tag])
            return "" if head is None else single_line(head.text_content())
        if tag in {"dd", "tr"}:
            if box not in self._rows:
                self._rows |= _headed(box.getparent())
            return self._rows.get(box, "")
        return _heading_of_list(box) if tag in {"ul", "ol"} else ""


def _headed(parent: Any) -> dict[Any, str]:
    """The heading of each definition or row: the last term, or row of one cell, before it."""
    heads: dict[Any, str] = {}
    current = ""
    for child in parent.iterchildren("dt", "dd", "tr") if parent is not None else ():
        if child.tag == "dt" or (child.tag == "tr" and _is_head_row(child)):
            current = single_line(child.text_content())
        heads[child] = current
    return heads


def _is_head_row(row: Any) -> bool:
    cells = list(row.iterchildren("td", "th"))
    return len(cells) == 1 and next(row.iter("a"), None) is None


def _heading_of_list(inner: Any) -> str:
    parent = inner.getparent()
    if parent is None or parent.tag != "li":
        before = inner.getprevious()
        if before is None or before.tag in {"ul", "ol", "table", "script"}:
            return ""
        return own_text(before)
    text = parent.text or ""
    for child in parent.iterchildren():
        if child is inner:
            break
        text += f" {child.text_content()} {child.tail or ''}"
    return single_line(text)


def own_text(element: Any) -> str:
    """The text of an element, if it is short enough for a heading."""
    text = single_line(element.text_content())
    return text if len(text) <= _LONG_HEADING else ""


def item_of(element: Any, links: AbstractSet[Any]) -> Any:
    """The largest element around a link that contains no other of some links."""
    item = element
    for ancestor in element.iterancestors():
        if ancestor.tag in {"body", "html", "table", "tbody", "ul", "ol", "dl", "main"}:
            break
        if any(
            each in links and each is not element
            for each in ancestor.iter("a", "tr", "button", "td", "li", "div")
        ):
            break
        # Around the only link of a page, that would be the whole page.
        if len(ancestor.text_content()) > _LONG_ITEM:
            break
        item = ancestor
    return item


def item_text(element: Any, item: Any) -> str:
    """The text of a link's item, or around the link if it has no item."""
    if item is element:
        parent = element.getparent()
        before = element.getprevious()
        text = (before.tail if before is not None else parent.text) if parent is not None else ""
        return single_line(f"{text or ''} {element.tail or ''}")
    return single_line(" ".join(item.itertext()))[:_LONG_ITEM]


def column_of(element: Any) -> int:
    """The number of the column that contains an element; 1 outside of tables."""
    cell = next(element.iterancestors("td", "th"), None)
    if element.tag in {"td", "th"}:
        cell = element
    if cell is None:
        return 1
    return 1 + sum(_span(each) for each in cell.itersiblings("td", "th", preceding=True))


def _span(cell: Any) -> int:
    span = cell.get("colspan") or "1"
    return min(int(span), 50) if span.isdigit() and int(span) else 1
