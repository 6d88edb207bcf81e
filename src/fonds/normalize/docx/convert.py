"""From a Word file's cleaned parts to a page of HTML, through mammoth.

A Word document's tree without what is not its text, in the words that the converter knows.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import mammoth
from lxml import etree

from fonds.errors import MalformedError
from fonds.normalize.docx.package import MAX_LINK_LENGTH, RELATIONSHIPS, PackagePart, R, W, Word
from fonds.normalize.docx.styles import (
    ParagraphLabel,
    ParagraphNumbering,
    Styles,
    is_on,
    number,
    value,
)

_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MATH: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_PICTURE: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}blip"
_OLD_PICTURE: Final = "{urn:schemas-microsoft-com:vml}imagedata"

_PROPERTIES: Final = frozenset(f"{W}{name}" for name in ("rPr", "trPr", "pPr", "tcPr"))
# The converter knows none of these, and would leave out the text inside.
_WRAPPING: Final = tuple(f"{W}{name}" for name in ("fldSimple", "dir", "bdo"))
_SILENT: Final = tuple(
    f"{W}{name}"
    for name in (
        *("sectPr", "proofErr", "lastRenderedPageBreak", "bookmarkStart", "bookmarkEnd"),
        *("commentRangeStart", "commentRangeEnd", "permStart", "permEnd", "softHyphen"),
        *("tblPr", "tblGrid", "tblPrEx", "smartTagPr", "customXmlPr", "fldData", "rPrChange"),
        *("pPrChange", "annotationRef"),
    )
)
_RETAINED: Final = {
    f"{W}rPr": frozenset(f"{W}{name}" for name in ("b", "i", "strike", "vertAlign")),
    f"{W}pPr": frozenset({f"{W}pStyle", f"{W}rPr"}),
    f"{W}tcPr": frozenset({f"{W}gridSpan", f"{W}vMerge"}),
    f"{W}trPr": frozenset({f"{W}tblHeader"}),
}
# The most columns that Word allows.
_WIDEST: Final = 63


def shorten(part: PackagePart, notes: set[tuple[str, str]]) -> Counter[str]:
    """Remove from a part all that is not text; what a reader may miss is counted by name.

    `notes` are those there are, as kind and id; each is taken from the set when it is referred
    to, and references to others are removed.
    """
    root, dropped = part.root, Counter[str]()
    _choose_alternatives(root)
    _drop_revisions(root, dropped)
    _drop_pictures(root, dropped)
    for run in list(root.iter(f"{W}r")):
        if is_on(run.find(f"{W}rPr"), "vanish"):
            dropped["hidden piece of text"] += next(run.iter(f"{W}t"), None) is not None
            _drop(run)
    _each(root, f"{W}commentReference", lambda one: _counted(one, "comment", dropped))
    _each(root, f"{_MATH}oMath", lambda one: _as_text(one, dropped))
    _rename(root)
    _repair(part, notes)
    etree.strip_elements(root, *_SILENT, with_tail=False)
    return dropped


def strip_properties(root: Any) -> None:
    """Take away all properties that change nothing in the text; a heading's is its style."""
    for tag, retained in _RETAINED.items():
        for properties in list(root.iter(tag)):
            is_mark = properties.getparent().tag == f"{W}pPr"
            for one in list(properties):
                deleted = is_mark and one.tag == f"{W}del"
                if not deleted and (is_mark or one.tag not in retained or _is_off(one)):
                    properties.remove(one)
            if not len(properties):
                _drop(properties)
    for element in root.iter():
        for name in [name for name in element.attrib if name.startswith(f"{W}rsid")]:
            del element.attrib[name]


def _is_off(element: Any) -> bool:
    name = etree.QName(element).localname
    return name in {"b", "i", "strike"} and not is_on(element.getparent(), name)


def _choose_alternatives(root: Any) -> None:
    """Of two forms of one thing the older one, which is the one that needs no extension."""
    for choice in list(root.iter(f"{_MC}AlternateContent")):
        fallback = choice.find(f"{_MC}Fallback")
        chosen = fallback if fallback is not None else choice.find(f"{_MC}Choice")
        _replace(choice, () if chosen is None else tuple(chosen))


def _drop_revisions(root: Any, dropped: Counter[str]) -> None:
    for row in list(root.iter(f"{W}tr")):
        if row.find(f"{W}trPr/{W}del") is not None:
            _counted(row, "tracked deletion", dropped)
    for one in list(root.iter(f"{W}del", f"{W}moveFrom")):
        if one.getparent().tag in _PROPERTIES:
            continue
        if one.tag == f"{W}del":
            dropped["tracked deletion"] += 1
        _drop(one)


def _drop_pictures(root: Any, dropped: Counter[str]) -> None:
    for drawing in list(root.iter(f"{W}drawing")):
        boxes = _boxes(drawing)
        dropped["picture"] += sum(1 for _ in drawing.iter(_PICTURE)) or not boxes
        if not boxes:
            _drop(drawing)
            continue
        for one in list(drawing):
            drawing.remove(one)
        # Of a new drawing the converter takes the picture only, of an old one the text as well.
        drawing.tag = f"{W}pict"
        drawing.extend(boxes)
    _each(root, _OLD_PICTURE, lambda one: _counted(one, "picture", dropped))


def _boxes(drawing: Any) -> list[Any]:
    """The boxes of text in a drawing, without those inside of others."""
    boxes = list(drawing.iter(f"{W}txbxContent"))
    inner = {one for box in boxes for one in box.iterdescendants(f"{W}txbxContent")}
    return [box for box in boxes if box not in inner]


def _as_text(formula: Any, dropped: Counter[str]) -> None:
    text = "".join(one.text or "" for one in formula.iter(f"{_MATH}t"))
    dropped["layout of a formula"] += 1
    run = etree.Element(f"{W}r")
    text_element = etree.SubElement(run, f"{W}t")
    text_element.text = text
    _replace(formula, (run,))


def _rename(root: Any) -> None:
    for ruby in list(root.iter(f"{W}ruby")):
        _replace(ruby, tuple(one for run in ruby.iterfind(f"{W}rubyBase/{W}r") for one in run))
    for one in root.iter(f"{W}cr"):
        one.tag = f"{W}br"
    for one in root.iter(f"{W}ptab"):
        one.tag = f"{W}tab"
    etree.strip_tags(root, *_WRAPPING, f"{_MATH}oMathPara")


def _repair(part: PackagePart, notes: set[tuple[str, str]]) -> None:
    """Remove what the converter would stumble over: references to nothing, and odd numbers."""
    for link in part.root.iter(f"{W}hyperlink"):
        if link.get(f"{R}id") is not None and link.get(f"{R}id") not in part.links:
            del link.attrib[f"{R}id"]
    for kind in ("footnote", "endnote"):
        for one in list(part.root.iter(f"{W}{kind}Reference")):
            note = (kind, one.get(f"{W}id", ""))
            # The converter writes a note as often as it is referred to.
            if note in notes:
                notes.remove(note)
            else:
                _drop(one)
    _shorten_fields(part.root)
    for span in list(part.root.iter(f"{W}gridSpan")):
        columns = number(value(span.getparent(), "gridSpan")) or 1
        span.set(f"{W}val", str(max(1, min(columns, _WIDEST))))
    for symbol in list(part.root.iter(f"{W}sym")):
        try:
            int(symbol.get(f"{W}char", ""), 16)
        except ValueError:
            _drop(symbol)


def _shorten_fields(root: Any) -> None:
    """Remove what is too long for an instruction: its address is written with every word."""
    length = 0
    for one in list(root.iter(f"{W}fldChar", f"{W}instrText")):
        if one.tag == f"{W}instrText":
            length += len(one.text or "")
            if length > MAX_LINK_LENGTH:
                _drop(one)
        elif one.get(f"{W}fldCharType") == "begin":
            length = 0


def _each(root: Any, tag: str, change: Callable[[Any], None]) -> None:
    for element in list(root.iter(tag)):
        change(element)


def _counted(element: Any, name: str, dropped: Counter[str]) -> None:
    dropped[name] += 1
    _drop(element)


def _drop(element: Any) -> None:
    if (parent := element.getparent()) is not None:
        parent.remove(element)


def _replace(element: Any, others: tuple[Any, ...]) -> None:
    if element.getparent() is not None:
        for other in others:
            element.addprevious(other)
        _drop(element)


MAX_ELEMENTS: Final = 200_000
"""Limit of elements after formatting is removed; each takes some kilobytes of memory."""
MAX_DEPTH: Final = 80
"""Limit of nested elements, which the converter walks by recursion."""

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
    numbering = ParagraphNumbering(word.numbering, styles)
    present = {_DOCUMENT: word.document} | {name: part for name, part in parts.items() if part}
    for part in present.values():
        labels = _translate(part.root, styles, numbering)
        strip_properties(part.root)
        for paragraph, label in labels:
            _write(paragraph, label)
    _refuse_large([part.root for part in present.values()])
    page, unread = _converted(_packed(present))
    return page, (*_warnings(dropped, margins=word.has_margins), *unread)


def _note_ids(word: Word) -> set[tuple[str, str]]:
    note_ids: set[tuple[str, str]] = set()
    for kind, part in (("footnote", word.footnotes), ("endnote", word.endnotes)):
        if part is None:
            continue
        for note in list(part.root.iterchildren("*")):
            name = note.get(f"{W}id")
            if name is None or note.get(f"{W}type") in _SEPARATORS:
                part.root.remove(note)
            else:
                note_ids.add((kind, name))
    return note_ids


def _translate(
    root: Any, styles: Styles, numbering: ParagraphNumbering
) -> list[tuple[Any, ParagraphLabel]]:
    """Give every paragraph a style of ours; what it tells is the number before each."""
    labels: list[tuple[Any, ParagraphLabel]] = []
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
    for old_style in properties.findall(f"{W}pStyle"):
        properties.remove(old_style)
    if style:
        etree.SubElement(properties, f"{W}pStyle").set(f"{W}val", style)


def _write(paragraph: Any, label: ParagraphLabel) -> None:
    run = etree.Element(f"{W}r")
    style = etree.SubElement(etree.SubElement(run, f"{W}rPr"), f"{W}rStyle")
    style.set(f"{W}val", "Label")
    etree.SubElement(run, f"{W}t").text = label.text
    paragraph.find(f"{W}pPr").addnext(run)


def _refuse_large(roots: list[Any]) -> None:
    elements = depth = max_depth = 0
    for root in roots:
        for event, _ in etree.iterwalk(root, events=("start", "end")):
            depth += 1 if event == "start" else -1
            elements += event == "start"
            max_depth = max(max_depth, depth)
    if elements > MAX_ELEMENTS:
        raise MalformedError(
            f"the Word file is too large to be read: {elements} pieces of text and tables, "
            f"{MAX_ELEMENTS} are allowed; save it in several files"
        )
    if max_depth > MAX_DEPTH:
        raise MalformedError("the Word file's elements are nested too deeply to be read")


def _packed(parts: dict[str, PackagePart]) -> io.BytesIO:
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
    rows = "".join(
        f'<Relationship Id={quoteattr(name)} Type="{RELATIONSHIPS}/hyperlink"'
        f' Target={quoteattr(target)} TargetMode="External"/>'
        for name, target in links.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{rows}</Relationships>'


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
    names = dict.fromkeys(match[1] for text in messages if (match := _UNKNOWN.match(text)))
    symbols = sum(text.startswith(_SYMBOL) for text in messages)
    return (
        *((f"elements that are not read: {', '.join(names)}",) if names else ()),
        *((f"{symbols} kinds of symbols have no character and are left out",) if symbols else ()),
    )


def _warnings(dropped: Counter[str], *, margins: bool) -> tuple[str, ...]:
    warnings = [
        f"left out: {count} {name}{'s' if count > 1 and ' of ' not in name else ''}"
        for name, count in sorted(dropped.items())
        if count
    ]
    return (*warnings, *(("left out: the heads and feet of pages",) if margins else ()))
