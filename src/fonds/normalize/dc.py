"""The District of Columbia's laws and code in the Council's own XML as Markdown.

Peculiarities of the files:
- A paragraph (`para`) of any depth has a number and then a heading, texts or paragraphs. One that
  begins with another shares its line, as in print: `(a)(1) …`. Depth is shown by em spaces.
- A number marked `undesignated` is not in the law: editors gave it to have an address for the
  paragraph. It is not printed, and not written.
- `reason` says why a section has no text any more; it follows the heading in brackets, unless the
  heading says so itself.
- Notes are `annotation`, or `text` with a type, and in no order: each run of one type gets its
  heading. A note that was not finished holds an empty `TODO`.
- Texts hold bits of HTML, and names are not always spelt alike (`cite`, `Cite`, `code-cite`).
- A heading may be only in an attribute: `<heading codify:value="Definitions."/>`.
- A figure is a JPEG beside the section's file: its name stays in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import GridRow, local_name, read_xhtml, texts_between_cells
from fonds.normalize.walker import (
    MAX_HEADING_LEVEL,
    Handler,
    XmlNormalizer,
    XmlWalker,
    one_line,
)

_EM_SPACE: Final = "\u2003"
_RUNNING: Final = frozenset(
    {"text", "aftertext", "annotation", "heading", "num", "reason", "p", "li", "td", "th"}
)


def local(element: Any) -> str:
    """An element's name as it is looked up: without namespace, in lower case."""
    return local_name(element).lower()


class DcWalker(XmlWalker):
    """Writes one section, or whatever it is given; every word of it, in order."""

    def __init__(self) -> None:
        super().__init__(MarkdownWriter())
        self._indent = self._indent_below = 0
        self._quotations = 0
        self._nesting = 0
        self._is_open = False
        self._labelled = False
        """The open block has only a number, and continues with the next text."""
        self._glues = False
        """The next number directly follows the one before it: `(a)(1)`."""
        self._note = ""

    def walk(self, root: Any, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        handler: Handler = self.BLOCKS.get(local(root), XmlWalker.flow)
        handler(self, root)
        self._close()
        return self.finish(warnings)

    def _name(self, element: Any) -> str:
        return local(element)

    def _add_unknown(self, element: Any) -> None:
        self._unknown[local_name(element)[:80]] += 1

    def _is_running(self, parent: Any) -> bool:
        return local(parent) in _RUNNING or local(parent) in self.INLINES

    def _begin(self, *, level: int = 0, section: str | None = None) -> None:
        """Start a paragraph, unless a number waits for its text."""
        if self._labelled:
            return
        self._out.outdent("> " * self._quotations + _EM_SPACE * self._indent)
        self._out.begin(level=level, section=section)
        self._is_open = True

    def _end(self) -> None:
        if not self._labelled:
            self._out.end()
            self._is_open = False

    def _close(self) -> None:
        self._labelled = False
        self._end()

    def _open(self) -> None:
        """Be where text can be written: behind a number, in the open block or in one begun."""
        if self._labelled:
            self._labelled = False
            self._out.space()
        elif not self._is_open:
            self._begin()

    def _words(self, text: str) -> None:
        self._open()
        self._out.text(text)

    def _one_line(self, element: Any) -> None:
        previous, self._in_line = self._in_line, True
        self.flow(element)
        self._in_line = previous

    # Blocks -------------------------------------------------------------------------------

    def _item(self, element: Any) -> None:
        self._begin()
        self._open()
        self._out.markup("- ")
        self.flow(element)
        self._end()

    def _quotation(self, element: Any) -> None:
        self._close()
        outer = self._indent, self._indent_below
        self._indent = self._indent_below = 0
        self._quotations += 1
        self.flow(element)
        self._close()
        self._quotations -= 1
        self._indent, self._indent_below = outer

    # Structure ----------------------------------------------------------------------------

    def _section(self, element: Any) -> None:
        head = {name: element.find(f"{{*}}{name}") for name in ("prefix", "num", "reason")}
        number = one_line(head["num"]).removeprefix("§").strip(" .")
        label = f"{one_line(head['prefix']) or '§'} {number}" if number else ""
        self._titled(element, label, tuple(head.values()), one_line(head["reason"]))

    def _container(self, element: Any) -> None:
        parts = element.find("{*}prefix"), element.find("{*}num")
        label = " ".join(filter(None, map(one_line, parts))).rstrip(" .")
        self._titled(element, label, parts)

    def _titled(self, element: Any, label: str, parts: tuple[Any, ...], reason: str = "") -> None:
        heading = element.find("{*}heading")
        self._close()
        note, self._note = self._note, ""
        self._title(label, heading, reason)
        self._nesting += 1
        self.flow(element, (heading, *parts))
        self._close()
        self._nesting -= 1
        self._note = note

    def _title(self, label: str, heading: Any, reason: str) -> None:
        title = one_line(heading)
        self._start_heading(1 + self._nesting, label)
        self._write_text(label)
        if label and title:
            self._write_text(" " if title[0] in "—–" else ". ")
        if title:
            self._one_line(heading)
        if reason and f"[{reason}".lower() not in title.lower():
            self._write_text(f" [{reason}]")
        self._end()

    def _unindented(self, *, level: int = 0, section: str | None = None) -> None:
        indent, self._indent = self._indent, 0
        self._begin(level=level, section=section)
        self._indent = indent

    def _start_heading(self, level: int, label: str | None) -> None:
        # Neither a table of contents nor a quotation divides the text around it.
        if self._in_contents or self._quotations:
            self._unindented()
        else:
            self._unindented(level=min(level, MAX_HEADING_LEVEL), section=label or None)

    def _para(self, element: Any) -> None:
        parts = [element.find(f"{{*}}{name}") for name in ("prefix", "num", "heading")]
        prefix, number, heading = parts
        is_designated = number is not None and number.get("undesignated") != "true"
        outer = self._indent, self._indent_below
        self._indent = self._indent_below
        label_parts = (one_line(prefix), one_line(number) if is_designated else "")
        self._label(" ".join(filter(None, label_parts)))
        if one_line(heading):
            self._emphasize(heading, "**")
            self._labelled, self._glues = prefix is None, False
            self._end()
        self._indent_below = self._indent + is_designated
        self.flow(element, tuple(parts))
        self._close()
        self._indent, self._indent_below = outer

    def _label(self, label: str) -> None:
        if not label:
            return
        if self._labelled and self._glues and label.startswith("("):
            self._labelled = False
            self._out.no_space()
        self._write_text(label)
        self._labelled, self._glues = True, label.endswith(")")

    # Notes --------------------------------------------------------------------------------

    def _text(self, element: Any) -> None:
        if local(element.getparent()) == "annotations":
            self._annotation(element)
        else:
            self.paragraph(element)

    def _annotation(self, element: Any) -> None:
        if not one_line(element) and element.find(".//{*}img") is None:
            return
        kind = " ".join(element.get("type", "").split()) or "Annotations"
        if local(element.getparent()) == "para":
            self._begin()
            self._write_text(f"{kind}: ")
        elif kind != self._note:
            self._note = kind
            self._start_heading(max(1 + self._nesting, 2), None)
            self._write_text(kind)
            self._end()
        self.flow(element)
        self._end()

    # Tables -------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        self._close()
        grid = read_xhtml(element)
        for caption in grid.captions:
            self.strong(caption)
        if not grid.head and grid.rows and _is_head(grid.rows[0]):
            grid.head = grid.rows.pop(0).cells
        # An indented line would not be read as a row.
        indent, self._indent = self._indent, 0
        self._table(grid, source=element)
        self._close()
        self._indent = indent
        for text in _loose_texts(element):
            self._begin()
            self._write_text(text)
            self._end()

    # Inline ---------------------------------------------------------------------------------

    def _span(self, element: Any) -> None:
        if "italic" in element.get("style", ""):
            self.italic(element)
        else:
            self.flow(element)

    def _emphasize(self, element: Any, marker: str) -> None:
        if one_line(element):
            self._open()
        previous, self._in_line = self._in_line, True
        super()._emphasize(element, marker)
        self._in_line = previous

    def _text_after(self, element: Any) -> str:
        inside = "".join(element.itertext())
        return inside[len(inside.rstrip()) :] + (element.tail or "")

    def _raised(self, element: Any) -> None:
        if not one_line(element):
            return
        self._open()
        self._out.markup(f"<{local(element)}>")
        self._out.no_space()
        self._one_line(element)
        self._out.markup(f"</{local(element)}>")

    def _line_break(self, element: Any) -> None:
        if self._in_line or self._labelled:
            self._out.space()
        else:
            self._end()
        self.flow(element)

    def _image(self, element: Any) -> None:
        source = element.get("src", "").removeprefix("./")
        parts = ": ".join(filter(None, (source, " ".join(element.get("alt", "").split()))))
        self._open()
        self._out.space()
        self._out.artifact("graphic", source)
        self._out.text(f"[Graphic {parts or 'without a name'}]")
        self._out.space()
        self.flow(element)

    INLINES: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(("cite", "code-cite", "a", "u", "todo"), XmlWalker.flow),
        **dict.fromkeys(("i", "em"), XmlWalker.italic),
        **dict.fromkeys(("b", "strong"), XmlWalker.bold),
        **dict.fromkeys(("sup", "sub"), _raised),
        "span": _span,
        "br": _line_break,
        "img": _image,
    }
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(("annotations", "passages", "ul", "ol"), XmlWalker.flow),
        **dict.fromkeys(
            ("thead", "tbody", "tfoot", "tr", "td", "th", "caption"), XmlWalker.paragraph
        ),
        **dict.fromkeys(
            ("num", "prefix", "reason", "aftertext", "p", "div", "center"), XmlWalker.paragraph
        ),
        **dict.fromkeys(("heading", "subheading"), XmlWalker.strong),
        **dict.fromkeys(("include", "blockquote"), _quotation),
        **dict.fromkeys(("meta", "page"), XmlWalker.skip),
        "toc": XmlWalker.contents,
        "section": _section,
        **dict.fromkeys(("container", "document"), _container),
        "para": _para,
        "text": _text,
        "annotation": _annotation,
        "li": _item,
        "table": _tables,
    }


def _is_head(row: GridRow) -> bool:
    return all(local(cell) == "th" for cells in row.cells for cell in cells)


def _loose_texts(table: Any) -> list[str]:
    """Text outside the cells, for which no row has room."""
    frames = [table, *table.iterchildren("{*}thead", "{*}tbody", "{*}tfoot")]
    rows = [row for frame in frames for row in frame.iterchildren("{*}tr")]
    return texts_between_cells([*frames, *rows])


_DOCUMENTS: Final = frozenset({"section", "container", "document"})
_PASSAGES: Final = frozenset(
    {"text", "para", "aftertext", "annotations", "annotation", "heading", "prefix", "num"}
)

# What is cut out of an index has neither the declarations of the file around it nor one root.
_OPENING: Final = (
    b'<passages xmlns="https://code.dccouncil.us/schemas/dc-library"'
    b' xmlns:codified="https://code.dccouncil.us/schemas/codified"'
    b' xmlns:codify="https://code.dccouncil.us/schemas/codify"'
    b' xmlns:xi="http://www.w3.org/2001/XInclude">'
)
_CLOSING: Final = b"</passages>"
_CODIFIED: Final = "{https://code.dccouncil.us/schemas/codify}value"


class DcXml(XmlNormalizer):
    """The normalizer `dc_xml_v1`: a section, or passages cut out of an index.

    A section's first heading is its number and title: `§ 47-1801.04. Definitions.`
    """

    name = "dc_xml_v1"
    version = "1.0.1"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        root, warnings = read_dc(data)
        return DcWalker().walk(root, warnings)


def read_dc(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of the Council's XML, and warnings of what was changed to read it."""
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith(b"<?xml"):
        root = parse_xml(data, remove_pis=True)
        if local(root) not in _DOCUMENTS:
            raise _stranger(root)
        _codify(root)
        return root, warnings
    root = parse_xml(_OPENING + data + _CLOSING, remove_pis=True)
    _codify(root)
    if not any(local(child) in _DOCUMENTS | _PASSAGES for child in root):
        raise _stranger(root[0] if len(root) else root)
    return root, warnings


def _codify(root: Any) -> None:
    """Write the heading or number that the Code gives where the law has none."""
    for element in root.iter("{*}heading", "{*}num"):
        value = element.get(_CODIFIED)
        if value and not one_line(element):
            element.text = value


def _stranger(element: Any) -> WrongContentError:
    return WrongContentError(
        f"the root element is <{local(element)[:80]}>, not a section of the D.C. Code"
    )
