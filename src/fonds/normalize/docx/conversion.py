"""From a Word file's cleaned parts to a page of HTML, through mammoth."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import mammoth
from lxml import etree

from fonds.errors import MalformedError
from fonds.normalize.docx.cleaning import shorten, strip_properties
from fonds.normalize.docx.numbering import Label, Numbering
from fonds.normalize.docx.parts import RELATIONSHIPS, Part, W, Word
from fonds.normalize.docx.styles import Styles

MOST_ELEMENTS: Final = 200_000
"""What may be left of a file when all formatting is gone; each takes some kilobytes of memory."""
DEEPEST: Final = 80
"""How deep elements may stand in each other; the converter walks them by recursion."""

_LEVELS: Final = range(9)
_STYLES: Final = "\n".join(
    (
        *(f"p.Head{level} => h{level}:fresh" for level in range(1, 7)),
        *(f"p.Item{level} => p.item{level}:fresh" for level in _LEVELS),
        "p => p:fresh",
        "r.Label => span.label",
    )
)
_SEPARATORS: Final = frozenset({"separator", "continuationSeparator", "continuationNotice"})
_UNKNOWN: Final = re.compile(r"An unrecognised element was ignored: (\S{1,60})")
_SYMBOL: Final = "A w:sym element with an unsupported character was ignored"
_DOCUMENT: Final = "word/document.xml"


def to_page(word: Word) -> tuple[str, tuple[str, ...]]:
    """The body of a page with the document's text, and what is not in it."""
    parts = {"word/footnotes.xml": word.footnotes, "word/endnotes.xml": word.endnotes}
    notes = _note_ids(word)
    dropped = shorten(word.document, notes)
    for part in filter(None, parts.values()):
        # Word allows no note on a note.
        dropped += shorten(part, set())
    styles = Styles(word.styles)
    numbering = Numbering(word.numbering, styles)
    present = {_DOCUMENT: word.document} | {name: part for name, part in parts.items() if part}
    for part in present.values():
        labels = _translate(part.root, styles, numbering)
        strip_properties(part.root)
        for paragraph, label in labels:
            _write(paragraph, label)
    _refuse_large([part.root for part in present.values()])
    page, unread = _converted(_packed(present))
    return page, (*_told(dropped, margins=word.has_margins), *unread)


def _note_ids(word: Word) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for kind, part in (("footnote", word.footnotes), ("endnote", word.endnotes)):
        if part is None:
            continue
        for note in list(part.root.iterchildren("*")):
            name = note.get(f"{W}id")
            if name is None or note.get(f"{W}type") in _SEPARATORS:
                part.root.remove(note)
            else:
                found.add((kind, name))
    return found


def _translate(root: Any, styles: Styles, numbering: Numbering) -> list[tuple[Any, Label]]:
    """Give every paragraph a style of ours; what it tells is the number before each."""
    labels: list[tuple[Any, Label]] = []
    for run in root.iter(f"{W}r"):
        for name in styles.emphasis(run):
            properties = run.find(f"{W}rPr")
            if properties.find(f"{W}{name}") is None:
                etree.SubElement(properties, f"{W}{name}")
    for paragraph in root.iter(f"{W}p"):
        level = styles.heading_level(paragraph)
        is_gone = paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None
        label = None if is_gone else numbering.label(paragraph)
        if next(paragraph.iter(f"{W}t"), None) is None:
            level = label = None
        style = f"Head{level}" if level else f"Item{label.level}" if label else None
        _restyle(paragraph, style)
        if label and label.text:
            labels.append((paragraph, label))
    return labels


def _restyle(paragraph: Any, style: str | None) -> None:
    properties = paragraph.find(f"{W}pPr")
    if properties is None:
        properties = etree.Element(f"{W}pPr")
        paragraph.insert(0, properties)
    for former in properties.findall(f"{W}pStyle"):
        properties.remove(former)
    if style:
        etree.SubElement(properties, f"{W}pStyle").set(f"{W}val", style)


def _write(paragraph: Any, label: Label) -> None:
    run = etree.Element(f"{W}r")
    style = etree.SubElement(etree.SubElement(run, f"{W}rPr"), f"{W}rStyle")
    style.set(f"{W}val", "Label")
    etree.SubElement(run, f"{W}t").text = label.text
    paragraph.find(f"{W}pPr").addnext(run)


def _refuse_large(roots: list[Any]) -> None:
    elements = depth = deepest = 0
    for root in roots:
        for event, _ in etree.iterwalk(root, events=("start", "end")):
            depth += 1 if event == "start" else -1
            elements += event == "start"
            deepest = max(deepest, depth)
    if elements > MOST_ELEMENTS:
        raise MalformedError(
            f"the Word file is too large to be read: {elements} pieces of text and tables, "
            f"{MOST_ELEMENTS} are allowed; save it in several files"
        )
    if deepest > DEEPEST:
        raise MalformedError("the Word file's elements are nested too deeply to be read")


def _packed(parts: dict[str, Part]) -> io.BytesIO:
    """A Word file of nothing but these parts: there is nothing in it that leads elsewhere."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, etree.tostring(part.root, encoding="utf-8"))
            folder, _, base = name.partition("/")
            archive.writestr(f"{folder}/_rels/{base}.rels", _relationships(part.links))
    file.seek(0)
    return file


def _relationships(links: dict[str, str]) -> str:
    written = "".join(
        f'<Relationship Id={quoteattr(name)} Type="{RELATIONSHIPS}/hyperlink"'
        f' Target={quoteattr(target)} TargetMode="External"/>'
        for name, target in links.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{written}</Relationships>'


def _converted(file: io.BytesIO) -> tuple[str, tuple[str, ...]]:
    try:
        result = mammoth.convert_to_html(
            file,
            style_map=_STYLES,
            include_default_style_map=False,
            include_embedded_style_map=False,
            external_file_access=False,
            convert_image=lambda _image: [],
        )
    except Exception as error:  # noqa: BLE001 — on a file against the rules mammoth may raise anything
        raise MalformedError(
            "the Word file is against Word's own rules and cannot be read; "
            f"open it in Word and save it again ({type(error).__name__})"
        ) from None
    return str(result.value), _unread([message.message for message in result.messages])


def _unread(messages: list[str]) -> tuple[str, ...]:
    names = dict.fromkeys(found[1] for text in messages if (found := _UNKNOWN.match(text)))
    symbols = sum(text.startswith(_SYMBOL) for text in messages)
    return (
        *((f"elements that are not read: {', '.join(names)}",) if names else ()),
        *((f"{symbols} kinds of symbols have no character and are left out",) if symbols else ()),
    )


def _told(dropped: Counter[str], *, margins: bool) -> tuple[str, ...]:
    told = [
        f"left out: {count} {name}{'s' if count > 1 and ' of ' not in name else ''}"
        for name, count in sorted(dropped.items())
        if count
    ]
    return (*told, *(("left out: the heads and feet of pages",) if margins else ()))
