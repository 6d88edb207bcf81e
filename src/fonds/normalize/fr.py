"""The Federal Register's XML (RULE, PRORULE, NOTICE, PRESDOCU) as Markdown.

Footnotes are as GPO sets them: `SU` and `FTREF` at the call, `FTNT` with `SU` for the note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fonds.errors import WrongContentError
from fonds.ids import federal_register_number
from fonds.model import NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import Grid, read_gpo
from fonds.normalize.walker import (
    MAX_HEADING_LEVEL,
    Handler,
    XmlNormalizer,
    XmlWalker,
    one_line,
)

_NO_SIGN: Final = re.compile(r"[\s,\[\]\\|^]+")


def leading_sign(footnote: Any) -> Any:
    """The `SU` a footnote begins with, or None."""
    first = next(footnote.iterchildren("*"), None)
    if first is None or (footnote.text or "").strip():
        return None
    if first.tag != "SU":
        if (first.text or "").strip():
            return None
        first = next(first.iterchildren("*"), None)
    return first if first is not None and first.tag == "SU" and signs(first) else None


def signs(element: Any) -> list[str]:
    """The printed signs: usually one number, sometimes `12 13` or `*`."""
    return _NO_SIGN.sub(" ", "".join(element.itertext())).split()


def is_reference(element: Any) -> bool:
    """Whether FTREF follows, which distinguishes a footnote's number from an exponent."""
    following = element.getnext()
    if following is None and (parent := element.getparent()) is not None and parent.tag == "E":
        following = parent.getnext()
    referring = following is not None and following.tag == "FTREF"
    return referring and not (element.tail or "").strip() and bool(signs(element))


INLINE: Final = frozenset({"E", "SU", "FTREF", "FR", "PRTPAGE", "LI", "AC"})
TEXT: Final = frozenset(
    {"P", "FP", "HD", "AMDPAR", "ENT", "CHED", "TTITLE", "TDESC", "TNOTE", "SUBJECT", "SECTNO"}
)
# A heading in these introduces one sentence, not a section.
LEAD_IN: Final = frozenset({"AUTH", "SOURCE", "NOTE", "EFFDNOT", "EDNOTE", "EXAMPLE", "CROSSREF"})
BASE_LEVEL: Final = {"CHAPTER": 3, "PART": 3, "SUBPART": 4, "APPENDIX": 4, "SECTION": 5}
ELEMENTS: Final = (
    INLINE
    | TEXT
    | LEAD_IN
    | BASE_LEVEL.keys()
    | frozenset(
        """
        ACT ADD AGCY AGENCY AGY AIDS BILCOD BOXHD CAT CFR CITA CNTNTS CONTENTS DATE DATED DATES
        DEPDOC DETERM DOC DOCENT EAR EFFDATE EXECORD EXECORDR EXTRACT FILED FRDOC FRDOCBP FTNT
        FURINF GID GPH GPOTABLE LSTSUB MATH MEMO MID NAME NO PARTNO PGS PLACE PNOTICE PREAMB PREAMHD
        PRES PRESDOC PRIACT PRMEMO PRNOTICE PROC PROCLA PRORDER PSIG PTITLE PTS REGTEXT RESERVED
        RIN ROW SECHD SEE SEQUENCE SIG SJ SJDENT SJDOC STARS SUBAGY SUBJGRP SUM SUPLINF TITLE
        TITLE3 UNITNAME VOL RULE PRORULE NOTICE PRESDOCU CORRECT FEDREG NEWPART RULES PRORULES
        NOTICES PRESDOCS CORRECTS
        """.split()  # noqa: SIM905 — ninety quoted names on ninety lines read worse
    )
)

EMPHASIS: Final = {"02": "**", "03": "*", "04": "**"}
RAISED: Final = {
    **dict.fromkeys(("51", "53", "0731", "8051"), "sup"),
    **dict.fromkeys(("52", "54", "0732", "0735", "8052", "8145"), "sub"),
}
ACCENTS: Final = {
    "1": "\u0301",
    "2": "\u0300",
    "3": "\u0302",
    "4": "\u0308",
    "6": "\u0303",
    "7": "\u030a",
    "8": "\u0305",
    "9": "\u0327",
    "b": "\u0307",
}
"""Marks on the letter before `AC`, by its code: é è ê ë ñ å, a bar, ç, a dot.

GPO's guide to e-CFR XML lists the digits; it prints 8 as a tilde, but its own example, and every
use in print, is the bar of a mean. 0 and 5 set a stroke and a box, which are not accents.
"""


def lost_its_spaces(root: Any) -> bool:
    """Whether the file is of the kind whose white space around inline elements was stripped.

    Until about 2015 federalregister.gov served `in the<E T="04">Federal Register</E>notice`.
    """
    present = lost = 0
    for element in root.iter("E", "PRTPAGE", "FTREF"):
        tail = element.tail
        if not tail or element.get("T") in RAISED:
            continue
        if tail[0] == " ":
            present += 1
        elif tail[0].isalnum():
            if element.tag == "PRTPAGE" and text_before(element)[-1:].isspace():
                present += 1
            else:
                lost += 1
    return lost > present


def text_before(element: Any) -> str:
    """The text node right before an element, among its siblings or in its parent."""
    previous = element.getprevious()
    if previous is not None:
        return previous.tail or ""
    parent = element.getparent()
    return "" if parent is None else parent.text or ""


_LEADERS: Final = re.compile(r"\.{4,}|(?:\. ){4,}\.?")
_ENUMERATOR: Final = re.compile(
    r"(?:([IVXLC]+|[A-Z]|\d{1,2}|[a-z])\.|\(([A-Za-z]{1,4}|\d{1,2})\))\s"
)
_STRUCTURE: Final = re.compile(r"(?:sub)?(?:part|chapter|appendix)\s[^—]{1,60}", re.IGNORECASE)


class FrWalker(XmlWalker):
    """Writes one element and all below it; every word of it, in order."""

    MAX_DEPTH = 120

    def __init__(self, root: Any) -> None:
        super().__init__(MarkdownWriter(restore_spaces=lost_its_spaces(root)))
        self._root = root
        self._base = 2
        self._titled = False
        self._note_sign: Any = None
        self._outline: dict[int, str | None] = {}
        self._references: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        self._child(self._root, self._root)
        return self.finish(warnings)

    def _more_warnings(self) -> list[str]:
        return [
            f"footnote {sign}: {self._references[sign]} references, {self._notes[sign]} notes"
            for sign in sorted(self._references.keys() | self._notes.keys())
            if self._references[sign] != self._notes[sign]
        ]

    def _is_running(self, parent: Any) -> bool:
        return parent.tag in TEXT or parent.tag in INLINE or bool((parent.text or "").strip())

    def _node(self, node: Any) -> None:
        del node
        self._out.seam()

    def _inline(self, element: Any, handler: Handler) -> None:
        self._out.seam()
        handler(self, element)
        # A word goes on behind its accent.
        if element.tag != "AC":
            self._out.seam()

    def _words(self, text: str) -> None:
        self._out.text(_LEADERS.sub(" ", text) if self._in_line else text)

    # Blocks -------------------------------------------------------------------------------

    def _structure(self, element: Any) -> None:
        outer, self._base = self._base, BASE_LEVEL[element.tag]
        self.paragraph(element)
        self._base = outer

    def _extract(self, element: Any) -> None:
        outer = self._out.indent("> ")
        self.paragraph(element)
        self._out.outdent(outer)

    def _stars(self, element: Any) -> None:
        # Printed as five asterisks; bare ones would be a horizontal rule.
        self._out.begin()
        self._out.markup(r"\* \* \* \* \*")
        self._out.end()
        self.flow(element)

    def _graphic(self, element: Any) -> None:
        kind, name = ("equation", "Equation") if element.tag == "MATH" else ("graphic", "Graphic")
        for child in element.iterchildren("*"):
            if child.tag not in {"GID", "MID"}:
                self._child(child, element)
                continue
            content = one_line(child)
            self._out.begin()
            self._out.artifact(kind, content)
            self._out.markup(f"[{name} ")
            self._out.text(content)
            self._out.markup("]")
            self._out.end()

    # Headings -----------------------------------------------------------------------------

    def _heading(self, element: Any) -> None:
        parent = element.getparent()
        within = "" if parent is None else parent.tag
        if self._in_contents or within in LEAD_IN:
            self._out.begin()
            self._emphasize(element, "**")
            if within in LEAD_IN:
                self._out.run_in()
            else:
                self._out.end()
            return
        level = self._heading_level(element.get("SOURCE", ""), within)
        self._out.begin(level=level, section=self._outline_label(element, level))
        self.flow(element)
        self._out.end()

    def _heading_level(self, source: str, within: str) -> int:
        depth = source.removeprefix("HD")
        if depth.isdecimal():
            return min(self._base + int(depth), MAX_HEADING_LEVEL)
        if within in BASE_LEVEL:
            return BASE_LEVEL[within]
        if within in {"LSTSUB", "EXTRACT", "REGTEXT", "FURINF"} and self._titled:
            return 2 if within == "FURINF" else 3
        if not self._titled and self._root.tag == "PRESDOCU":
            self._titled = True
            return 1
        return 2

    def _outline_label(self, element: Any, level: int) -> str | None:
        text = one_line(element)
        if structure := _STRUCTURE.match(text):
            label: str | None = structure[0].strip()
        else:
            match = _ENUMERATOR.match(text + " ")
            label = (match[1] or match[2]) if match else None
        self._outline = {at: name for at, name in self._outline.items() if at < level}
        self._outline[level] = label
        if label is None or structure:
            return label
        above = [self._outline[at] for at in sorted(self._outline) if at > self._base]
        return ".".join(name for name in above if name) if all(above) else label

    def _section_number(self, element: Any) -> None:
        # The number stays open for the SUBJECT that follows it.
        parent = element.getparent()
        if parent is not None and parent.tag == "SECTION":
            number = one_line(element)
            self._out.begin(level=BASE_LEVEL["SECTION"], section=number)
        else:
            self._out.begin()
        self.flow(element)
        self._out.space()

    def _subject(self, element: Any) -> None:
        previous = element.getprevious()
        parent = element.getparent()
        if previous is not None and previous.tag == "SECTNO":
            self.flow(element)
            self._out.end()
        elif parent is not None and parent.tag == "PREAMB":
            self._titled = True
            self._out.begin(level=1)
            self.flow(element)
            self._out.end()
        else:
            self.paragraph(element)

    # Footnotes ----------------------------------------------------------------------------

    def _footnote(self, element: Any) -> None:
        sign = leading_sign(element)
        if sign is None:
            self.paragraph(element)
            return
        label = _label(signs(sign)[0], self._notes)
        self._define(label, element, sign)

    def _define(self, label: str, note: Any, sign: Any) -> None:
        outer = self._out.indent("    ", first=f"[^{label}]: ")
        outer_sign, self._note_sign = self._note_sign, sign
        self.paragraph(note)
        self._note_sign = outer_sign
        self._out.outdent(outer)

    # Inline -------------------------------------------------------------------------------

    def _page(self, element: Any) -> None:
        # In a footnote that runs over a page the mark has no number.
        if page := element.get("P"):
            self._out.page(page)

    def _typography(self, element: Any) -> None:
        code = element.get("T", "")
        if raised := RAISED.get(code):
            self._sign(element) if raised == "sup" else self._raise(element, raised)
        elif marker := self._EMPHASIS.get(code):
            self._emphasize(element, marker)
        else:
            self.flow(element)

    def _text_after(self, element: Any) -> str:
        # The space that was lost there is restored.
        return "" if self._out.restore_spaces else element.tail or ""

    def _raise(self, element: Any, name: str) -> None:
        if "\n" in text_before(element):
            self._out.no_space()
        self._out.markup(f"<{name}>")
        self._out.no_space()
        self.flow(element)
        self._out.markup(f"</{name}>")

    def _sign(self, element: Any) -> None:
        if element is self._note_sign:
            return
        if not is_reference(element):
            self._raise(element, "sup")
            return
        for sign in signs(element):
            self._out.markup(f"[^{_label(sign, self._references)}]")

    def _fraction(self, element: Any) -> None:
        # 7<FR>1/2</FR> is seven and a half.
        self._out.space()
        self.flow(element)
        if (element.tail or "")[:1].isalnum():
            self._out.space()

    def _accent(self, element: Any) -> None:
        if mark := ACCENTS.get(element.get("T", "")):
            self._out.accent(mark)
        self.flow(element)

    # Tables -------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        grid = read_gpo(element)
        for caption in grid.captions:
            if caption.tag == "TTITLE":
                self.strong(caption)
            else:
                self._child(caption, element)
        self._draw(element, grid)
        for note in grid.notes:
            self._child(note, element)

    def _draw(self, element: Any, grid: Grid) -> None:
        del element
        self._table(grid, page=self._page)

    _EMPHASIS: ClassVar[dict[str, str]] = EMPHASIS
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(ELEMENTS - INLINE, XmlWalker.paragraph),
        "AGENCY": XmlWalker.strong,
        "SUBAGY": XmlWalker.strong,
        "HD": _heading,
        "SECTNO": _section_number,
        "SUBJECT": _subject,
        "EXTRACT": _extract,
        "STARS": _stars,
        "GPH": _graphic,
        "MATH": _graphic,
        "GPOTABLE": _tables,
        "FTNT": _footnote,
        "CONTENTS": XmlWalker.contents,
        **dict.fromkeys(BASE_LEVEL, _structure),
    }
    INLINES: ClassVar[Mapping[str, Handler]] = {
        "E": _typography,
        "SU": _sign,
        "FTREF": XmlWalker.flow,
        "FR": _fraction,
        "PRTPAGE": _page,
        "LI": XmlWalker.spaced,
        "AC": _accent,
    }


def _label(sign: str, counts: Counter[str]) -> str:
    # Numbering starts again in appendices; the second note 1 becomes 1-2.
    counts[sign] += 1
    return sign if counts[sign] == 1 else f"{sign}-{counts[sign]}"


DOCUMENTS: Final = ("RULE", "PRORULE", "NOTICE", "PRESDOCU", "CORRECT")
"""The elements that are one document each."""

_ROOTS: Final = frozenset(
    {*DOCUMENTS, "FEDREG", "NEWPART", "RULES", "PRORULES", "NOTICES", "PRESDOCS", "CORRECTS"}
)


class FrXml(XmlNormalizer):
    """The normalizer `fr_xml_v1` of a document, or of the one in an issue that the hint names.

    The hint is a document's id or number; files of a single document ignore it.
    """

    name = "fr_xml_v1"
    version = "1.1.0"

    def _convert(self, data: bytes, hint: str | None) -> NormalizedBody:
        root, warnings = read_xml(data)
        if root.tag == "FEDREG" and hint:
            root = _numbered(root, hint)
        return element_to_markdown(root, warnings)


def element_to_markdown(element: Any, warnings: tuple[str, ...] = ()) -> NormalizedBody:
    """One document, already parsed, as Markdown."""
    return FrWalker(element).walk(warnings)


def read_xml(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of Federal Register XML, and warnings of what was changed to read it."""
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    root = parse_xml(data)
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{root.tag}>, not a Federal Register document"
        )
    return root, warnings


def document_number(document: Any) -> str | None:
    """The number a document's FRDOC states, as the API writes it."""
    for line in document.iter("FRDOC"):
        match = re.search(r"FR\s+Doc\.?\s*([\w\u2010-\u2014-]+)", " ".join(line.itertext()))
        if match:
            return federal_register_number(match[1].replace("\u2014", "-"))
    return None


def _numbered(issue: Any, hint: str) -> Any:
    number = hint.removeprefix("fr:").partition("@")[0]
    for document in issue.iter(*DOCUMENTS):
        if document_number(document) == number:
            return document
    raise WrongContentError(f"the issue contains no document numbered {number}")
