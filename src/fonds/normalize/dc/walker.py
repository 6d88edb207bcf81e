"""From the elements of the D.C. Council's XML to Markdown, one handler for each kind.

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

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, Final

from lxml import etree

from fonds.model import NormalizedBody
from fonds.normalize.dc.lines import LineWalker, local, words_of
from fonds.normalize.xhtml_table import Grid, local_name, read_table

_DEEPEST_HEADING: Final = 6
_WIDEST: Final = 100


class Walker(LineWalker):
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
        self._BLOCKS.get(local(root), LineWalker.flow)(self, root)
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
        grid = read_table(element)
        for caption in grid.captions:
            self._strong(caption)
        if grid.rows:
            self._draw(element, grid)
        for text in _loose_texts(element):
            self._begin()
            self._run(text)
            self._end()

    def _draw(self, element: Any, grid: Grid) -> None:
        rows = [_bounded(row) for row in grid.rows]
        columns = max(1, *map(len, rows))
        headed = grid.headed or all(map(_is_head, grid.rows[0]))
        # An indented line is no row.
        self._begin(indent=0)
        if grid.spans:
            self._out.artifact(
                "table", etree.tostring(element, encoding="unicode", with_tail=False)
            )
        self._out.in_table = self._in_line = True
        self._out.row(rows[0] if headed else [], columns, self.flow)
        self._out.line()
        self._out.markup("|" + " --- |" * columns)
        for row in rows[headed:]:
            self._out.line()
            self._out.row(row, columns, self.flow)
        self._out.in_table = self._in_line = False
        self._end()

    _RUNNING: ClassVar[frozenset[str]] = frozenset(
        {"text", "aftertext", "annotation", "heading", "num", "reason", "p", "li", "td", "th"}
    )
    _BLOCKS: ClassVar[dict[str, Callable[[Walker, Any], None]]] = {
        **dict.fromkeys(("annotations", "passages", "ul", "ol"), LineWalker.flow),
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


def _is_head(cell: Any) -> bool:
    return cell is None or local(cell) == "th"


def _bounded(row: list[Any]) -> list[tuple[Any, ...]]:
    """A row's cells; no blank is kept in a row that is wider than any real table."""
    cells = row if len(row) <= _WIDEST else [cell for cell in row if cell is not None]
    return [() if cell is None else (cell,) for cell in cells]


def _loose_texts(table: Any) -> list[str]:
    """What stands beside the cells, where no row can hold it."""
    frames = [table, *table.iterchildren("{*}thead", "{*}tbody", "{*}tfoot")]
    rows = [row for frame in frames for row in frame.iterchildren("{*}tr")]
    texts = [
        text
        for frame in (*frames, *rows)
        for text in (frame.text, *(child.tail for child in frame))
        if text
    ]
    return [text for text in texts if not text.isspace()]
