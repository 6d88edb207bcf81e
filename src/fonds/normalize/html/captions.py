"""Headings that a page shows by its looks: captions of sections, and paragraphs of heading styles.

Pages of statutes set the number and title of a section in bold, on a line of its own or before its
first sentence. Only pages whose own headings name no section are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

_STYLE: Final = re.compile(r"(?:^|\s)(?:Mso)?Heading ?([1-6])(?:$|\s)")
"""A class of Word's styles, as in the reports of crs.gov."""
_HEADINGS: Final = tuple(f"h{level}" for level in range(1, 7))
_HEADINGS_BEFORE: Final[Any] = etree.XPath(
    "preceding::*[self::h1 or self::h2 or self::h3 or self::h4]"
)
_NUMBER: Final = r"\d+[A-Za-z]?(?:[-:.]\d+[A-Za-z]?)*"
_SIGNED: Final = rf"(?:§+\s*|(?:Sec(?:tion|\.)|Art(?:icle|\.))\s+){_NUMBER}"
_CAPTION: Final = re.compile(
    rf"\s*\[?(?:{_SIGNED}\.?|\d+[A-Z]?(?:[-:.]\d+[A-Za-z]?)+\.?)\]?[\s—–.:-]+"
    r"[“\"(\[]?[A-Z].{2,200}",
    re.DOTALL,
)
_OWN_LINE: Final = re.compile(
    rf"\s*§+\s*{_NUMBER}\.?[\s—–.:-]+[“\"(\[]?(?!Repealed)[A-Z]"
    r"(?:.{2,200}[^\s.,;:]|[^.;]{2,160}\.)\s*",
    re.DOTALL,
)
_SENTENCES: Final = re.compile(r"[a-z]{4}\.\s+\S")
_CAPTION_CLASS: Final = re.compile(r"catch-?line|section-?_?(?:head|title|caption)", re.IGNORECASE)
_SECTION_HEADING: Final = re.compile(rf"\s*\[?(?:{_SIGNED}|{_NUMBER}[-:.]\d)")
_SIGNS: Final = frozenset("§[0123456789")
_WORDS: Final = frozenset({"Sec", "Art"})
"""Before the number of a section, or its first character."""
_BOLD: Final = frozenset({"b", "strong"})
_TEXT_BLOCKS: Final = ("p", "div")
_MAX_DEPTH: Final = 4
_MAX_LENGTH: Final = 240


def mark_headings(root: Any) -> None:
    """Make headings of what the page only shows as such."""
    captions = []
    for block in list(root.iter(*_TEXT_BLOCKS)):
        name = block.get("class")
        if name and "Heading" in name and (style := _STYLE.search(name)):
            if not _has_blocks(block):
                block.tag = f"h{style[1]}"
        elif _may_begin_section(block):
            captions.append(block)
    headings = list(root.iter(*_HEADINGS)) if captions else []
    if not captions or any(map(_names_a_section, headings)):
        return
    level = None if headings else "h1"
    for block in captions:
        if (caption := _caption_of(block)) is not None:
            level = level or f"h{_level_below(block)}"
            _make_heading(block, caption, level)


def _names_a_section(heading: Any) -> bool:
    return _SECTION_HEADING.match(_start(heading)) is not None


def _start(element: Any) -> str:
    """The first characters of a text, enough for a number."""
    text = ""
    for part in element.itertext():
        text += part
        if len(text.strip()) > _MAX_LENGTH:
            break
    return text


def _may_begin_section(block: Any) -> bool:
    for _ in range(_MAX_DEPTH):
        if (text := block.text) and (text := text.lstrip()):
            return text[0] in _SIGNS or text[:3] in _WORDS
        if not len(block):
            return False
        block = block[0]
    return False


def _caption_of(block: Any) -> Any:
    """The element that is a section's caption: the block, or what its first sentence follows."""
    text = _start(block)
    if not _SECTION_HEADING.match(text) or _is_aside(block) or _has_blocks(block):
        return None
    marked = next(filter(_is_marked, _firsts(block)), None)
    if marked is not None and (caption := "".join(marked.itertext())).strip() != text.strip():
        return marked if _CAPTION.fullmatch(caption) else None
    is_caption = len(text.strip()) <= _MAX_LENGTH and _is_whole_caption(block, text)
    return block if is_caption else None


def _is_whole_caption(block: Any, text: str) -> bool:
    is_line = _OWN_LINE.fullmatch(text) is not None and not _SENTENCES.search(text)
    if is_line and _is_followed(block):
        return True
    has_class = _CAPTION_CLASS.search(block.get("class") or "") is not None
    return (has_class or all(map(_is_bold, _own_texts(block)))) and bool(_CAPTION.fullmatch(text))


def _own_texts(block: Any) -> Iterator[Any]:
    """The elements around each text of a block."""
    for element in block.iter():
        if (element.text or "").strip():
            yield element
        if element is not block and (element.tail or "").strip():
            yield element.getparent()


def _is_bold(element: Any) -> bool:
    return any(each.tag in _BOLD for each in (element, *element.iterancestors()))


def _is_followed(block: Any) -> bool:
    """True if the text of the section comes next, and not another line like this one."""
    after = block.getnext()
    return after is not None and not _SECTION_HEADING.match(_start(after))


def _is_aside(block: Any) -> bool:
    around = block.iterancestors("li", "td", "th", "blockquote", "a", *_HEADINGS)
    return next(around, None) is not None


def _has_blocks(block: Any) -> bool:
    return next(block.iter("table", "ul", "ol", "dl", "pre", *_HEADINGS), None) is not None or (
        next(block.iterdescendants(*_TEXT_BLOCKS), None) is not None
    )


def _firsts(block: Any) -> Iterator[Any]:
    """The elements with which a block begins, outermost first."""
    for _ in range(_MAX_DEPTH):
        if (block.text or "").strip() or not len(block):
            return
        block = block[0]
        yield block


def _is_marked(element: Any) -> bool:
    return element.tag in _BOLD or bool(_CAPTION_CLASS.search(element.get("class") or ""))


def _level_below(block: Any) -> int:
    """One below the heading before, at most; 1 on a page without headings."""
    before = _HEADINGS_BEFORE(block)
    return min(int(before[-1].tag[1]) + 1, 6) if before else 1


def _make_heading(block: Any, caption: Any, level: str) -> None:
    if caption is block:
        block.tag = level
        return
    heading = block.makeelement(level)
    tail, caption.tail = caption.tail, None
    outer = caption.getparent()
    outer.text = f"{outer.text or ''}{tail or ''}"
    block.addprevious(heading)
    heading.append(caption)
