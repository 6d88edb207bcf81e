"""The District of Columbia's laws and code as the Council publishes them (XML of its own).

What stands within a line of the D.C. Council's XML: text, bits of HTML, figures.

From the elements of the D.C. Council's XML to Markdown, one handler for each kind.

What the publisher's files do:
- A paragraph (`para`) of any depth has a number and then a heading, texts or paragraphs. One that
  begins with another shares its line, as in print: `(a)(1) …`. Depth is shown by em spaces.
- A number marked `undesignated` is not in the law: editors gave it to have an address for the
  paragraph. It is not printed, and not written.
- `reason` says why a section has no text any more; it follows the heading in brackets, unless the
  heading says so itself.
- Notes are `annotation`, or `text` with a type, and in no order: each run of one type gets its
  heading. A note that was not finished holds an empty `TODO`.
- Texts hold bits of HTML, and names are not always spelt alike (`cite`, `Cite`, `code-cite`).
- A figure is a JPEG beside the section's file: its name stays in the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import (
    Grid,
    local_name,
    read_xhtml,
    texts_between_cells,
    write_table,
)

_DEEPEST: Final = 100
_EM_SPACE: Final = "\u2003"


def local(element: Any) -> str:
    """An element's name as it is looked up: without namespace, in lower case."""
    return local_name(element).lower()


def words_of(element: Any) -> str:
    """The text of an element on one line; empty if there is no such element."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


class DcLineWalker(ABC):
    """Writes running text and the elements in it; blocks are left to a subclass."""

    def __init__(self) -> None:
        self._out = MarkdownWriter()
        self._depth = 0
        self._indent = 0
        self._quotations = 0
        self._is_open = False
        self._labelled = False
        """The open block holds a number only, and goes on with whatever text comes next."""
        self._in_line = False
        """Blocks are forced into the line: in a heading, a cell or emphasis."""
        self._emphasized = False

    @abstractmethod
    def _block(self, child: Any, parent: Any) -> None:
        """Write an element that does not stand within a line, or is unknown."""

    def _begin(self, *, indent: int | None = None) -> None:
        """Start a paragraph, unless a number waits for its text."""
        if self._labelled:
            return
        em_spaces = self._indent if indent is None else indent
        self._out.outdent("> " * self._quotations + _EM_SPACE * em_spaces)
        self._out.begin()
        self._is_open = True

    def _end(self) -> None:
        if not self._labelled:
            self._out.end()
            self._is_open = False

    def _close(self) -> None:
        self._labelled = False
        self._end()

    def _speak(self) -> None:
        """Be where text can be written: behind a number, in the open block or in one begun."""
        if self._labelled:
            self._labelled = False
            self._out.space()
        elif not self._is_open:
            self._begin()

    def _run(self, text: str | None) -> None:
        if not text:
            return
        if text.isspace():
            self._out.space()
            return
        self._speak()
        self._out.text(text)

    def flow(self, element: Any, skip: tuple[Any, ...] = ()) -> None:
        """Text and children in order; a block child interrupts the paragraph around it."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise MalformedError(f"elements are nested more than {_DEEPEST} deep")
        self._run(element.text)
        for child in element:
            if child not in skip and isinstance(child.tag, str):
                inline = self._INLINES.get(local(child))
                inline(self, child) if inline else self._block(child, element)
            self._run(child.tail)
        self._depth -= 1

    def _one_line(self, element: Any) -> None:
        former, self._in_line = self._in_line, True
        self.flow(element)
        self._in_line = former

    # Inline -------------------------------------------------------------------------------

    def _italic(self, element: Any) -> None:
        self._emphasize(element, "*")

    def _bold(self, element: Any) -> None:
        self._emphasize(element, "**")

    def _span(self, element: Any) -> None:
        if "italic" in element.get("style", ""):
            self._italic(element)
        else:
            self.flow(element)

    def _emphasize(self, element: Any, marker: str) -> None:
        words = words_of(element)
        if words:
            self._speak()
        if self._emphasized or not self._out.takes_emphasis(words, _after(element)):
            self._one_line(element)
            return
        self._emphasized = True
        self._out.mark(marker, marker)
        self._one_line(element)
        self._out.unmark()
        self._emphasized = False

    def _raised(self, element: Any) -> None:
        if not words_of(element):
            return
        self._speak()
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
        said = ": ".join(filter(None, (source, " ".join(element.get("alt", "").split()))))
        self._speak()
        self._out.space()
        self._out.artifact("graphic", source)
        self._out.text(f"[Graphic {said or 'without a name'}]")
        self._out.space()
        self.flow(element)

    _INLINES: ClassVar[dict[str, Callable[[DcLineWalker, Any], None]]] = {
        **dict.fromkeys(("cite", "code-cite", "a", "u", "todo"), flow),
        **dict.fromkeys(("i", "em"), _italic),
        **dict.fromkeys(("b", "strong"), _bold),
        **dict.fromkeys(("sup", "sub"), _raised),
        "span": _span,
        "br": _line_break,
        "img": _image,
    }


def _after(element: Any) -> str:
    """The character behind the last word of an element; empty if nothing follows."""
    inside = "".join(element.itertext())
    return (inside[len(inside.rstrip()) :] + (element.tail or ""))[:1]


_DEEPEST_HEADING: Final = 6


class DcWalker(DcLineWalker):
    """Writes one section, or whatever it is given; every word of it, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._nesting = 0
        self._indent_below = 0
        self._glues = False
        """The next number stands right behind the one before it: `(a)(1)`."""
        self._in_contents = False
        self._note = ""
        self._unknown: Counter[str] = Counter()

    def walk(self, root: Any, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        self._BLOCKS.get(local(root), DcLineWalker.flow)(self, root)
        self._close()
        unknown = [
            f"unknown element <{name[:80]}> ({count}×); its text is kept"
            for name, count in sorted(self._unknown.items())
        ]
        return self._out.finish((*warnings, *unknown))

    # Blocks -------------------------------------------------------------------------------

    def _block(self, child: Any, parent: Any) -> None:
        name = local(child)
        if name not in self._BLOCKS:
            self._unknown[local_name(child)] += 1
        if self._in_line:
            self._out.space()
            self.flow(child)
            self._out.space()
        elif name in self._BLOCKS:
            self._BLOCKS[name](self, child)
        elif local(parent) in self._RUNNING or local(parent) in self._INLINES:
            self.flow(child)
        else:
            self._passage(child)

    def _passage(self, element: Any) -> None:
        self._begin()
        self.flow(element)
        self._end()

    def _strong(self, element: Any) -> None:
        self._begin()
        self._emphasize(element, "**")
        self._end()

    def _item(self, element: Any) -> None:
        self._begin()
        self._speak()
        self._out.markup("- ")
        self.flow(element)
        self._end()

    def _quotation(self, element: Any) -> None:
        self._close()
        former = self._indent, self._indent_below
        self._indent = self._indent_below = 0
        self._quotations += 1
        self.flow(element)
        self._close()
        self._quotations -= 1
        self._indent, self._indent_below = former

    def _contents(self, element: Any) -> None:
        former, self._in_contents = self._in_contents, True
        self._passage(element)
        self._in_contents = former

    def _skip(self, element: Any) -> None:
        """Leave out what is not the document's text."""

    # Structure ----------------------------------------------------------------------------

    def _section(self, element: Any) -> None:
        head = {name: element.find(f"{{*}}{name}") for name in ("prefix", "num", "reason")}
        number = words_of(head["num"]).removeprefix("§").strip(" .")
        label = f"{words_of(head['prefix']) or '§'} {number}" if number else ""
        self._titled(element, label, tuple(head.values()), words_of(head["reason"]))

    def _container(self, element: Any) -> None:
        parts = element.find("{*}prefix"), element.find("{*}num")
        label = " ".join(filter(None, map(words_of, parts))).rstrip(" .")
        self._titled(element, label, parts)

    def _titled(self, element: Any, label: str, said: tuple[Any, ...], reason: str = "") -> None:
        heading = element.find("{*}heading")
        self._close()
        note, self._note = self._note, ""
        self._title(label, heading, reason)
        self._nesting += 1
        self.flow(element, (heading, *said))
        self._close()
        self._nesting -= 1
        self._note = note

    def _title(self, label: str, heading: Any, reason: str) -> None:
        title = words_of(heading)
        self._start_heading(1 + self._nesting, label)
        self._run(label)
        if label and title:
            self._run(" " if title[0] in "—–" else ". ")
        if title:
            self._one_line(heading)
        if reason and f"[{reason}".lower() not in title.lower():
            self._run(f" [{reason}]")
        self._end()

    def _start_heading(self, level: int, label: str | None) -> None:
        # Neither a table of contents nor a quotation divides the text that it stands in.
        is_title = not (self._in_contents or self._quotations)
        self._begin(indent=0)
        if is_title:
            self._out.begin(level=min(level, _DEEPEST_HEADING), section=label or None)

    def _para(self, element: Any) -> None:
        parts = [element.find(f"{{*}}{name}") for name in ("prefix", "num", "heading")]
        prefix, number, heading = parts
        is_designated = number is not None and number.get("undesignated") != "true"
        former = self._indent, self._indent_below
        self._indent = self._indent_below
        shown = (words_of(prefix), words_of(number) if is_designated else "")
        self._label(" ".join(filter(None, shown)))
        if words_of(heading):
            self._emphasize(heading, "**")
            self._labelled, self._glues = prefix is None, False
            self._end()
        self._indent_below = self._indent + is_designated
        self.flow(element, tuple(parts))
        self._close()
        self._indent, self._indent_below = former

    def _label(self, label: str) -> None:
        if not label:
            return
        if self._labelled and self._glues and label.startswith("("):
            self._labelled = False
            self._out.no_space()
        self._run(label)
        self._labelled, self._glues = True, label.endswith(")")

    # Notes --------------------------------------------------------------------------------

    def _text(self, element: Any) -> None:
        if local(element.getparent()) == "annotations":
            self._annotation(element)
        else:
            self._passage(element)

    def _annotation(self, element: Any) -> None:
        if not words_of(element) and element.find(".//{*}img") is None:
            return
        kind = " ".join(element.get("type", "").split()) or "Annotations"
        if local(element.getparent()) == "para":
            self._begin()
            self._run(f"{kind}: ")
        elif kind != self._note:
            self._note = kind
            self._start_heading(max(1 + self._nesting, 2), None)
            self._run(kind)
            self._end()
        self.flow(element)
        self._end()

    # Tables -------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        self._close()
        grid = read_xhtml(element)
        for caption in grid.captions:
            self._strong(caption)
        if grid.head or grid.rows:
            self._draw(element, grid)
        for text in _loose_texts(element):
            self._begin()
            self._run(text)
            self._end()

    def _draw(self, element: Any, grid: Grid) -> None:
        if not grid.head and all(
            local(head) == "th" for cell in grid.rows[0].cells for head in cell
        ):
            grid.head = grid.rows.pop(0).cells
        # An indented line is no row.
        self._begin(indent=0)
        self._in_line = True
        write_table(self._out, grid, self.flow, source=element)
        self._in_line = False
        self._end()

    _RUNNING: ClassVar[frozenset[str]] = frozenset(
        {"text", "aftertext", "annotation", "heading", "num", "reason", "p", "li", "td", "th"}
    )
    _BLOCKS: ClassVar[dict[str, Callable[[DcWalker, Any], None]]] = {
        **dict.fromkeys(("annotations", "passages", "ul", "ol"), DcLineWalker.flow),
        **dict.fromkeys(("thead", "tbody", "tfoot", "tr", "td", "th", "caption"), _passage),
        **dict.fromkeys(("num", "prefix", "reason", "aftertext", "p", "div", "center"), _passage),
        **dict.fromkeys(("heading", "subheading"), _strong),
        **dict.fromkeys(("include", "blockquote"), _quotation),
        **dict.fromkeys(("meta", "page"), _skip),
        "toc": _contents,
        "section": _section,
        **dict.fromkeys(("container", "document"), _container),
        "para": _para,
        "text": _text,
        "annotation": _annotation,
        "li": _item,
        "table": _table,
    }


def _loose_texts(table: Any) -> list[str]:
    """What stands beside the cells, where no row can hold it."""
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


@dataclass(frozen=True, slots=True)
class DcXml:
    """The normalizer `dc_xml_v1`."""

    name: str = "dc_xml_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """A section, or passages cut out of an index; the hint is not needed.

        A section's first heading is its number and title: `§ 47-1801.04. Definitions.`
        """
        del source_hint
        root, warnings = read_dc(data)
        body = DcWalker().walk(root, warnings)
        if not body.markdown:
            raise WrongContentError(f"<{local(root)}> holds no text")
        return body


def read_dc(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The root of the Council's XML, and what had to be mended to read it."""
    data, warnings = without_nuls(data)
    refuse_unsafe(data)
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith(b"<?xml"):
        root = parse_xml(data, remove_pis=True)
        if local(root) not in _DOCUMENTS:
            raise _stranger(root)
        return root, warnings
    root = parse_xml(_OPENING + data + _CLOSING, remove_pis=True)
    if not any(local(child) in _DOCUMENTS | _PASSAGES for child in root):
        raise _stranger(root[0] if len(root) else root)
    return root, warnings


def _stranger(element: Any) -> WrongContentError:
    return WrongContentError(
        f"the root element is <{local(element)[:80]}>, which is no section of the D.C. Code"
    )
