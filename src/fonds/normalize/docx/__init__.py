"""Word files (.docx) as Markdown: headings, lists with their numbers, tables, notes.

mammoth makes an HTML page of the file, in which lists are assembled before it is normalized.
"""

from __future__ import annotations

import io
import re
from typing import Any, Final

from fonds.errors import MalformedError, NoTextError
from fonds.model import BaseNormalizer, NormalizedBody
from fonds.normalize.docx.convert import to_page
from fonds.normalize.docx.package import open_word, read_word
from fonds.normalize.html import read_html
from fonds.normalize.html.walker import HtmlWalker

_ITEM: Final = re.compile(r"item(\d)")
_COUNTED: Final = re.compile(r"(\d{1,6})\.")
_BACK: Final = re.compile(r'\s*<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_BOX: Final = re.compile(r'<input [^>]*?type="checkbox"[^>]*>')


def tidied(page: str) -> str:
    """HTML without links back from notes, and with check boxes as characters."""
    return _BOX.sub(lambda box: "☒" if "checked=" in box[0] else "☐", _BACK.sub("", page))


def build_lists(root: Any) -> None:
    """Turn paragraphs that are items into lists; other numbers than 1, 2, 3 stay text."""
    runs: list[list[Any]] = []
    for paragraph in root.iter("p"):
        if _level(paragraph) is None:
            continue
        if runs and paragraph.getprevious() is runs[-1][-1]:
            runs[-1].append(paragraph)
        else:
            runs.append([paragraph])
    for run in runs:
        _nest(run)
    for label in list(root.iter("span")):
        if label.get("class") == "label":
            label.tail = f" {(label.tail or '').lstrip()}"


def _level(paragraph: Any) -> int | None:
    match = _ITEM.fullmatch(paragraph.get("class") or "")
    return int(match[1]) if match else None


def _nest(items: list[Any]) -> None:
    anchor = items[0].makeelement("span")
    items[0].addprevious(anchor)
    open_lists: list[tuple[int, Any]] = []
    for item in items:
        level = _level(item) or 0
        kind = _make_item(item)
        while open_lists and open_lists[-1][0] >= level and not _continues(open_lists, level, kind):
            open_lists.pop()
        if not _continues(open_lists, level, kind):
            made = item.makeelement(kind)
            if open_lists:
                open_lists[-1][1][-1].append(made)
            else:
                anchor.addprevious(made)
            open_lists.append((level, made))
        open_lists[-1][1].append(item)
    anchor.getparent().remove(anchor)


def _continues(open_lists: list[tuple[int, Any]], level: int, kind: str) -> bool:
    return bool(open_lists) and (open_lists[-1][0], open_lists[-1][1].tag) == (level, kind)


def _make_item(item: Any) -> str:
    """Turn a paragraph into an item; returns the tag of its list."""
    item.tag = "li"
    del item.attrib["class"]
    label = item[0] if len(item) and item[0].get("class") == "label" else None
    counted = None if label is None else _COUNTED.fullmatch((label.text or "").strip())
    if label is None or counted is None:
        return "ul"
    item.set("value", counted[1])
    item.text = (item.text or "") + (label.tail or "")
    item.remove(label)
    return "ol"


class Docx(BaseNormalizer):
    """The normalizer `docx_v1`: the text as it reads with all tracked changes accepted."""

    name = "docx_v1"
    version = "1.0.0"
    # Word's format is XML in a ZIP archive.
    accepts_format = "xml"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The document's text and notes; nothing outside the bytes is opened, no hint needed."""
        del source_hint
        if not data:
            raise MalformedError("the file is empty")
        page, left_out = to_page(read_word(open_word(io.BytesIO(data))))
        root, _, warnings = read_html(f'<meta charset="utf-8"><div>{tidied(page)}</div>'.encode())
        build_lists(root)
        text = HtmlWalker(root).walk((*left_out, *warnings))
        if not any(character.isalnum() for character in text.markdown):
            why = "; ".join(left_out) or "it is blank"
            raise NoTextError(f"the Word file contains no text: {why}")
        return text
