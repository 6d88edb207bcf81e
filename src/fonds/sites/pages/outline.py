"""What stands above and around a link: headings, terms, captions, the item of a list it is in."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final

from fonds.sites.pages.page import WebPage, folded

_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}
_HEADS: Final = {"details": "summary", "fieldset": "legend", "table": "caption"}
_LONG_ITEM: Final = 600
_LONG_HEADING: Final = 100


class HeadingsAbove:
    """The headings above each of some elements, nearest first."""

    def __init__(self, page: WebPage, elements: Iterable[Any]) -> None:
        wanted = set(elements)
        self._above: dict[Any, tuple[str, ...]] = {}
        self._boxes: dict[Any, tuple[str, ...]] = {}
        self._rows: dict[Any, str] = {}
        if not wanted:
            return
        stack: dict[int, str] = {}
        for element in page.elements:
            level = _LEVELS.get(element.tag)
            if level is not None:
                stack = {each: told for each, told in stack.items() if each < level}
                stack[level] = folded(element.text_content())
            if element in wanted:
                self._above[element] = tuple(stack[each] for each in sorted(stack, reverse=True))

    def headings(self, element: Any) -> list[str]:
        """Headings, and what heads the boxes and lists an element stands in; nearest first."""
        return [*self._boxes_of(element), *self._above.get(element, ())]

    def near(self, element: Any) -> list[str]:
        """The same without the page's own first heading, which stands above everything."""
        above = self._above.get(element, ())
        return [*self._boxes_of(element), *(above[:-1] if len(above) > 1 else ())]

    def _boxes_of(self, element: Any) -> tuple[str, ...]:
        """Terms, summaries, captions and the texts of outer list items, from the inside out."""
        chain = []
        here = element.getparent()
        while here is not None and here not in self._boxes:
            chain.append(here)
            here = here.getparent()
        told: tuple[str, ...] = () if here is None else self._boxes[here]
        for each in reversed(chain):
            told = (*filter(None, [self._head_of(each)]), *told)
            self._boxes[each] = told
        return told

    def _head_of(self, box: Any) -> str:
        tag = box.tag
        if tag in _HEADS:
            head = box.find(_HEADS[tag])
            return "" if head is None else folded(head.text_content())
        if tag in {"dd", "tr"}:
            if box not in self._rows:
                self._rows |= _headed(box.getparent())
            return self._rows.get(box, "")
        return _heading_of_list(box) if tag in {"ul", "ol"} else ""


def _headed(parent: Any) -> dict[Any, str]:
    """What heads each definition or row: the last term, or the last row of one cell, before it."""
    heads: dict[Any, str] = {}
    current = ""
    for child in parent.iterchildren("dt", "dd", "tr") if parent is not None else ():
        if child.tag == "dt" or (child.tag == "tr" and _is_head_row(child)):
            current = folded(child.text_content())
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
    return folded(text)


def own_text(element: Any) -> str:
    """The text of a short element; of a long one none, for it is no heading."""
    text = folded(element.text_content())
    return text if len(text) <= _LONG_HEADING else ""


def item_of(element: Any, links: AbstractSet[Any]) -> Any:
    """The largest element around a link that holds no other of some links."""
    item = element
    for here in element.iterancestors():
        if here.tag in {"body", "html", "table", "tbody", "ul", "ol", "dl", "main"}:
            break
        if any(
            each in links and each is not element
            for each in here.iter("a", "tr", "button", "td", "li", "div")
        ):
            break
        # Around the only link of a page there is all of the page.
        if len(here.text_content()) > _LONG_ITEM:
            break
        item = here
    return item


def item_text(element: Any, item: Any) -> str:
    """What stands beside a link in its item."""
    if item is element:
        parent = element.getparent()
        before = element.getprevious()
        told = (before.tail if before is not None else parent.text) if parent is not None else ""
        return folded(f"{told or ''} {element.tail or ''}")
    return folded(" ".join(piece for piece in item.itertext()))[:_LONG_ITEM]


def column_of(element: Any) -> int:
    """The number of the cell that an element stands in, by columns; 1 elsewhere."""
    cell = next(element.iterancestors("td", "th"), None)
    if element.tag in {"td", "th"}:
        cell = element
    if cell is None:
        return 1
    return 1 + sum(_span(each) for each in cell.itersiblings("td", "th", preceding=True))


def _span(cell: Any) -> int:
    told = cell.get("colspan") or "1"
    return min(int(told), 50) if told.isdigit() and int(told) else 1
