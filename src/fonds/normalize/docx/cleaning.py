"""A Word document's tree without what is not its text, in the words that the converter knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from lxml import etree

from fonds.normalize.docx.parts import LONGEST_LINK, Part, R, W
from fonds.normalize.docx.styles import is_on, number, value

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
_KEPT: Final = {
    f"{W}rPr": frozenset(f"{W}{name}" for name in ("b", "i", "strike", "vertAlign")),
    f"{W}pPr": frozenset({f"{W}pStyle", f"{W}rPr"}),
    f"{W}tcPr": frozenset({f"{W}gridSpan", f"{W}vMerge"}),
    f"{W}trPr": frozenset({f"{W}tblHeader"}),
}
# The most columns that Word allows.
_WIDEST: Final = 63


def shorten(part: Part, notes: set[tuple[str, str]]) -> Counter[str]:
    """Take from a part all that is no text; what a reader may miss is counted by its name.

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
    _mend(part, notes)
    etree.strip_elements(root, *_SILENT, with_tail=False)
    return dropped


def strip_properties(root: Any) -> None:
    """Take away all properties that change nothing in the text; a heading's is its style."""
    for tag, kept in _KEPT.items():
        for properties in list(root.iter(tag)):
            is_mark = properties.getparent().tag == f"{W}pPr"
            for one in list(properties):
                deleted = is_mark and one.tag == f"{W}del"
                if not deleted and (is_mark or one.tag not in kept or _is_off(one)):
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
    found = list(drawing.iter(f"{W}txbxContent"))
    inner = {one for box in found for one in box.iterdescendants(f"{W}txbxContent")}
    return [box for box in found if box not in inner]


def _as_text(formula: Any, dropped: Counter[str]) -> None:
    text = "".join(one.text or "" for one in formula.iter(f"{_MATH}t"))
    dropped["layout of a formula"] += 1
    run = etree.Element(f"{W}r")
    written = etree.SubElement(run, f"{W}t")
    written.text = text
    _replace(formula, (run,))


def _rename(root: Any) -> None:
    for ruby in list(root.iter(f"{W}ruby")):
        _replace(ruby, tuple(one for run in ruby.iterfind(f"{W}rubyBase/{W}r") for one in run))
    for one in root.iter(f"{W}cr"):
        one.tag = f"{W}br"
    for one in root.iter(f"{W}ptab"):
        one.tag = f"{W}tab"
    etree.strip_tags(root, *_WRAPPING, f"{_MATH}oMathPara")


def _mend(part: Part, notes: set[tuple[str, str]]) -> None:
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
            if length > LONGEST_LINK:
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
