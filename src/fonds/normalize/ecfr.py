"""The Code of Federal Regulations as XML (eCFR's API and bulk files, the annual edition).

Elements that the Federal Register has too are written by its walker. The numbers of footnotes
start again in each division.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from html import unescape
from typing import Any, ClassVar, Final

from lxml import etree

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.ecfr_tables import (
    CONTENTS,
    DIVISIONS,
    ELEMENTS,
    EMPHASIS,
    FLEXIBLE,
    FRAGMENTS,
    INLINE,
    LEAD_IN,
    METADATA,
    SECTION,
    TEXT,
    canonical_tag,
    division_levels,
    heading_source,
    is_picture,
    read_html_table,
    refuse_endless_heads,
    section_label,
    stray_text,
    structure_label,
    tag_before,
)
from fonds.normalize.fr import (
    FrWalker,
    is_reference,
    leading_sign,
    lost_its_spaces,
    signs,
)
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import Grid
from fonds.normalize.walker import (
    MAX_HEADING_LEVEL,
    Handler,
    XmlNormalizer,
    XmlWalker,
    one_line,
)

# Tables have notes of their own, which print the sign and nothing more.
_ASIDE: Final = ("FTNT", "GPOTABLE", "TABLE")


class Footnotes:
    """Gives a reference and its note the same label; numbering starts again in each division."""

    def __init__(self, root: Any) -> None:
        self._within: dict[Any, Counter[str]] = {}
        for note in root.iter("FTNT"):
            division = next(note.iterancestors(*DIVISIONS), root)
            sign = leading_sign(note)
            if sign is not None:
                self._within.setdefault(division, Counter())[signs(sign)[0]] += 1
        self._promoted: frozenset[Any] = self._promote(root) if self._within else frozenset()
        self._scopes: list[Any] = [root]
        self._labels: dict[tuple[Any, str, int], str] = {}
        self._used: Counter[str] = Counter()
        self._referred: Counter[tuple[Any, str]] = Counter()
        self._note_counts: Counter[tuple[Any, str]] = Counter()
        self._references: set[str] = set()
        self._notes: set[str] = set()

    def refers(self, element: Any) -> bool:
        """Whether a raised sign refers to a note, rather than being an exponent."""
        return is_reference(element) or element in self._promoted

    def enter(self, division: Any) -> None:
        """Enter a division; the text to come is part of it."""
        self._scopes.append(division)

    def leave(self) -> None:
        """Leave the innermost division."""
        self._scopes.pop()

    def reference(self, sign: str) -> str:
        """The label for a reference; a lone note in its division takes them all."""
        scope = self._scope(sign)
        self._referred[scope, sign] += 1
        notes = self._within.get(scope, Counter())[sign]
        label = self._label(scope, sign, min(self._referred[scope, sign], max(notes, 1)))
        self._references.add(label)
        return label

    def note(self, sign: str) -> str:
        """The label for a note."""
        scope = self._scopes[-1]
        self._note_counts[scope, sign] += 1
        label = self._label(scope, sign, self._note_counts[scope, sign])
        self._notes.add(label)
        return label

    def unlinked(self) -> list[str]:
        """A warning for each reference without its note, and each note without a reference."""
        return [
            f"footnote {label}: {'no note' if label in self._references else 'no reference'}"
            for label in sorted(self._references ^ self._notes)
        ]

    def _promote(self, root: Any) -> frozenset[Any]:
        """For each note nothing refers to, the first bare sign like it in its division.

        Signs in headings lack the FTREF that marks a reference.
        """
        marked: set[tuple[Any, str]] = set()
        bare: dict[tuple[Any, str], Any] = {}
        settings: dict[Any, tuple[Any, bool]] = {}
        for element in root.iter("SU"):
            parent = element.getparent()
            if parent not in settings:
                settings[parent] = _setting(parent, root)
            division, is_aside = settings[parent]
            keys = [(division, sign) for sign in signs(element)]
            if is_reference(element):
                marked.update(keys)
            elif len(keys) == 1 and not is_aside:
                bare.setdefault(keys[0], element)
        with_notes = {
            (division, sign)
            for division, signs_in_division in self._within.items()
            for sign in signs_in_division
        }
        return frozenset(bare[key] for key in with_notes - marked if key in bare)

    def _scope(self, sign: str) -> Any:
        for scope in reversed(self._scopes):
            if sign in self._within.get(scope, ()):
                return scope
        return self._scopes[-1]

    def _label(self, scope: Any, sign: str, index: int) -> str:
        key = (scope, sign, index)
        if key not in self._labels:
            self._used[sign] += 1
            count = self._used[sign]
            self._labels[key] = sign if count == 1 else f"{sign}-{count}"
        return self._labels[key]


def _setting(parent: Any, root: Any) -> tuple[Any, bool]:
    """The division that contains a sign, and whether the sign is part of a note or table."""
    is_aside = False
    for element in (parent, *parent.iterancestors(*DIVISIONS, *_ASIDE)):
        if element.tag in DIVISIONS:
            return element, is_aside
        is_aside = is_aside or element.tag in _ASIDE
    return root, is_aside


_MAX_NAME_LENGTH: Final = 200
_AROUND_HEADS: Final = frozenset({"TITLEHD", "CFRTITLE"})


class CfrWalker(FrWalker):
    """Writes one file of the CFR; every word of it, in order."""

    # Twice what a volume needs; six calls each stay well within Python's own limit.
    MAX_DEPTH = 80

    def __init__(self, root: Any) -> None:
        super().__init__(root)
        # eCFR keeps its spaces; only the Federal Register's conversion lost them.
        self._out.restore_spaces = root.tag.startswith("CFR") and lost_its_spaces(root)
        self._base = 0
        self._is_inline = self._in_artifact = False
        # An appendix is one level below the division that has it.
        self._levels = division_levels(root)
        self._footnotes = Footnotes(root)

    def _more_warnings(self) -> list[str]:
        return self._footnotes.unlinked()

    def _name(self, element: Any) -> str:
        return canonical_tag(element.tag)

    def _is_running(self, parent: Any) -> bool:
        return (
            self._is_inline
            or canonical_tag(parent.tag) in TEXT
            or bool((parent.text or "").strip())
        )

    def _inline(self, element: Any, handler: Handler) -> None:
        outer, self._is_inline = self._is_inline, True
        super()._inline(element, handler)
        self._is_inline = outer

    def _block(self, element: Any, handler: Handler) -> None:
        outer, self._is_inline = self._is_inline, False
        handler(self, element)
        self._is_inline = outer

    def _node(self, node: Any) -> None:
        if node.tag is etree.Entity:
            self._write_text(unescape(node.text))
        else:
            self._out.seam()

    # Divisions ----------------------------------------------------------------------------

    def _division(self, element: Any) -> None:
        if self._in_contents:
            self.paragraph(element)
            return
        outer = self._base, self._outline
        self._base = self._levels.get(
            DIVISIONS[element.tag], min(self._base + 1, MAX_HEADING_LEVEL)
        )
        self._outline = {}
        self._footnotes.enter(element)
        if element.tag == "DIV8" and element.find("HEAD") is None:
            self._headless_section(element)
        self.paragraph(element)
        self._footnotes.leave()
        self._base, self._outline = outer

    def _headless_section(self, element: Any) -> None:
        if label := section_label("", element.get("N")):
            self._out.begin(level=self._base, section=label)
            self._out.text(label)
            self._out.end()

    def _revision(self, element: Any) -> None:
        # Text that is not in force yet, quoted in a note on its effective date.
        self._extract(element)

    def _graphic(self, element: Any) -> None:
        self._out.begin()
        self._graphic_parts(element)
        self._out.end()

    def _graphic_parts(self, element: Any) -> None:
        """A picture names itself; an equation in MathML is kept beside its letters."""
        outer, is_math = self._in_artifact, canonical_tag(element.tag) == "MATH"
        if is_math and not outer and not any(map(is_picture, element.iter("*"))):
            content = etree.tostring(element, encoding="unicode", with_tail=False)
            self._out.artifact("equation", content)
        self._in_artifact = outer or is_math
        self.flow(element)
        self._in_artifact = outer

    def _metadata(self, element: Any) -> None:
        if element.getparent() is not self._root:
            self.paragraph(element)

    def _head(self, element: Any) -> None:
        """A division's heading, or the caption of something smaller."""
        parent = element.getparent()
        if self._in_contents or parent is None or parent.tag not in DIVISIONS:
            self.strong(element)
            return
        self._titled_division(element, parent)

    def _titled_division(self, element: Any, division: Any) -> None:
        text = one_line(element)
        if DIVISIONS.get(division.tag) == SECTION:
            label = section_label(text, division.get("N"))
        else:
            label = structure_label(text)
        self._out.begin(level=max(self._base, 1), section=label)
        self.flow(element)
        self._out.end()

    def _heading(self, element: Any) -> None:
        parent = element.getparent()
        within = "" if parent is None else canonical_tag(parent.tag)
        if within in LEAD_IN and not self._in_contents:
            self._lead_in(element)
        elif self._in_contents:
            self.strong(element)
        elif heading_source(element) == "HED" and (within in DIVISIONS or within in _AROUND_HEADS):
            self._titled_division(element, next(element.iterancestors(*DIVISIONS), parent))
        else:
            level = self._level_of(heading_source(element))
            self._out.begin(level=level, section=self._outline_label(element, level))
            self.flow(element)
            self._out.end()

    def _level_of(self, source: str) -> int:
        depth = source.removeprefix("HD")
        steps = int(depth) if depth in {"1", "2", "3", "4", "5", "6"} else 1
        return min(self._base + steps, MAX_HEADING_LEVEL)

    def _lead_in(self, element: Any) -> None:
        self._out.begin()
        self._emphasize(element, "**")
        self._out.run_in()

    def _section_number(self, element: Any) -> None:
        # The number stays open for the SUBJECT or RESERVED that follows it.
        parent = element.getparent()
        if parent is not None and parent.tag == "SECTION" and not self._in_contents:
            self._out.begin(level=max(self._base, 1), section=one_line(element) or None)
        else:
            self._out.begin()
        self.flow(element)
        self._out.space()

    def _subject(self, element: Any) -> None:
        parent = element.getparent()
        before = tag_before(element)
        if before == "SECTNO":
            self.flow(element)
            self._out.end()
        elif parent.tag == "SECTION" and before == "":
            self._out.begin(level=max(self._base, 1))
            self.flow(element)
            self._out.end()
        else:
            self.paragraph(element)

    def _reserved(self, element: Any) -> None:
        parent = element.getparent()
        before = tag_before(element)
        if before == "SECTNO":
            self.flow(element)
            self._out.end()
        elif parent.tag in DIVISIONS and before in {"", "EAR"} and not self._in_contents:
            self._titled_division(element, parent)
        else:
            self.paragraph(element)

    # Inline -------------------------------------------------------------------------------

    def _raised(self, element: Any) -> None:
        self._raise(element, canonical_tag(element.tag).lower())

    def _changed(self, element: Any) -> None:
        name = canonical_tag(element.tag).lower()
        if self._emphasized:
            self._raise(element, name)
            return
        self._emphasized = True
        self._out.mark(f"<{name}>", f"</{name}>")
        self.flow(element)
        self._out.unmark()
        self._emphasized = False

    def _picture(self, element: Any) -> None:
        parent = element.getparent()
        is_equation = element.tag == "MID" or canonical_tag(parent.tag) == "MATH"
        kind = "equation" if is_equation else "graphic"
        address = element.get("src") or element.get("SRC") or ""
        content = address or one_line(element)
        self._out.space()
        self._out.artifact(kind, content)
        self._out.text(f"[{kind.capitalize()}")
        self._out.space()
        if address and len(address) <= _MAX_NAME_LENGTH and not address.startswith("data:"):
            self._out.text(address)
        self._out.space()
        self.flow(element)
        self._out.no_space()
        self._out.text("]")

    # Footnotes ----------------------------------------------------------------------------

    def _footnote(self, element: Any) -> None:
        sign = leading_sign(element)
        if sign is None or self._out.in_table:
            self.paragraph(element)
            return
        label = self._footnotes.note(signs(sign)[0])
        self._define(label, element, sign)

    def _sign(self, element: Any) -> None:
        if element is self._note_sign:
            return
        if not self._footnotes.refers(element):
            self._raise(element, "sup")
            return
        for sign in signs(element):
            self._out.markup(f"[^{self._footnotes.reference(sign)}]")

    # Tables -------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        refuse_endless_heads(element)
        super()._tables(element)
        self._stray(element)

    def _draw(self, element: Any, grid: Grid) -> None:
        # A table in a note of a table is already part of that table's artifact.
        source = None if self._in_artifact and element.tag != "GPOTABLE" else element
        self._table(grid, source=source, page=self._page)

    def _html_table(self, element: Any) -> None:
        grid = read_html_table(element)
        for caption in grid.captions:
            self.strong(caption)
        outer = self._in_artifact
        self._draw(element, grid)
        self._in_artifact = True
        for note in grid.notes:
            self._child(note, element)
        self._in_artifact = outer
        self._stray(element)

    def _stray(self, element: Any) -> None:
        if stray := stray_text(element):
            self._out.begin()
            self._out.text(stray)
            self._out.end()

    _EMPHASIS: ClassVar[dict[str, str]] = EMPHASIS
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(ELEMENTS - INLINE, XmlWalker.paragraph),
        **{tag: block for tag, block in FrWalker.BLOCKS.items() if tag not in INLINE},
        **dict.fromkeys(DIVISIONS, _division),
        **dict.fromkeys(METADATA, _metadata),
        **dict.fromkeys(("HD", "HD1", "HD2", "HD3"), _heading),
        "HEAD": _head,
        "HED": _lead_in,
        "HED1": _lead_in,
        "SECTNO": _section_number,
        "SUBJECT": _subject,
        "RESERVED": _reserved,
        **dict.fromkeys(CONTENTS, XmlWalker.contents),
        **dict.fromkeys(("GPH", "MATH"), _graphic),
        "REVTXT": _revision,
        "GPOTABLE": _tables,
        "TABLE": _html_table,
        "FTNT": _footnote,
    }
    INLINES: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(INLINE | FLEXIBLE, XmlWalker.flow),
        **FrWalker.INLINES,
        "BR": XmlWalker.spaced,
        **dict.fromkeys(("I", "EM"), XmlWalker.italic),
        **dict.fromkeys(("B", "STRONG"), XmlWalker.bold),
        **dict.fromkeys(("SUP", "SUB"), _raised),
        **dict.fromkeys(("INS", "DEL"), _changed),
        **dict.fromkeys(("IMG", "GID", "MID"), _picture),
        "SU": _sign,
        "MATH": _graphic_parts,
    }


_ROOTS: Final = frozenset(
    {"ECFR", "DLPSTEXTCLASS", "CFRDOC", "CFRGRANULE", *(f"DIV{level}" for level in range(1, 10))}
)
# <DIV5 is eCFR's, <div class="…"> is a page's.
_FIRST_TAG: Final = re.compile(rb"\s*<([A-Za-z][A-Za-z0-9-]*)")


class EcfrXml(XmlNormalizer):
    """The normalizer `ecfr_xml_v1` of a title, a part, a section, or notes side by side."""

    name = "ecfr_xml_v1"
    version = "1.2.0"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        root, warnings = read_cfr(data)
        return CfrWalker(root).walk(warnings)


def read_cfr(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of CFR XML, and warnings of what was changed to read it.

    Elements cut out of a file, one or several, are put under a root of their own.
    """
    data, warnings = without_nuls(data)
    first = _FIRST_TAG.match(data)
    if first and first[1].decode() in FRAGMENTS:
        data = b"<ECFR>%b</ECFR>" % data
    refuse_unsafe(data)
    root = parse_xml(data)
    if root.tag not in _ROOTS:
        raise WrongContentError(
            f"the root element is <{root.tag[:80]}>, not one of the Code of Federal Regulations"
        )
    return root, warnings
