"""Walking a parsed HTML page, element by element, without recursion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, Final
from urllib.parse import urljoin

from lxml import etree

from fonds.model import LeftOut, NormalizedBody
from fonds.normalize.html.notes import notes_of
from fonds.normalize.html.writer import CellGrid, HtmlWriter, ListNumbering, grid_of, own_label
from fonds.normalize.markdown import escape

BLOCKS: Final = frozenset(
    {
        "address",
        "article",
        "aside",
        "body",
        "caption",
        "center",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "html",
        "legend",
        "main",
        "menu",
        "nav",
        "noframes",
        "noscript",
        "optgroup",
        "p",
        "search",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)
"""Elements that a browser puts on lines of their own."""

INLINES: Final = frozenset(
    {
        "abbr",
        "acronym",
        "applet",
        "area",
        "audio",
        "base",
        "basefont",
        "bdi",
        "bdo",
        "bgsound",
        "big",
        "blink",
        "button",
        "canvas",
        "circle",
        "cite",
        "clippath",
        "col",
        "colgroup",
        "command",
        "data",
        "datalist",
        "defs",
        "desc",
        "dfn",
        "ellipse",
        "embed",
        "filter",
        "font",
        "foreignobject",
        "frame",
        "frameset",
        "g",
        "iframe",
        "image",
        "input",
        "isindex",
        "keygen",
        "label",
        "line",
        "lineargradient",
        "map",
        "mark",
        "marquee",
        "mask",
        "math",
        "meter",
        "mfrac",
        "mi",
        "mn",
        "mo",
        "mrow",
        "msub",
        "msup",
        "nobr",
        "object",
        "output",
        "param",
        "path",
        "picture",
        "polygon",
        "polyline",
        "progress",
        "rb",
        "rect",
        "rp",
        "rtc",
        "ruby",
        "select",
        "slot",
        "small",
        "source",
        "span",
        "stop",
        "svg",
        "symbol",
        "text",
        "textarea",
        "time",
        "title",
        "track",
        "tspan",
        "u",
        "use",
        "var",
        "video",
        "wbr",
    }
)
"""Elements whose text simply runs on."""


_ABSOLUTE: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_WRITABLE: Final = re.compile(r"(?:https?://|mailto:)[^\s<>()\\]+", re.IGNORECASE)
# White space and brackets would end a link in Markdown; in an address both may be written so.
_ENCODED: Final = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})
_MAX_ADDRESS_LENGTH: Final = 2_000


def page_address(root: Any, hint: str | None) -> str | None:
    """The address that relative links start from: as the page states it, else as it was fetched."""
    address = _absolute(hint) or next(filter(None, map(_canonical, root.iter("link"))), None)
    for base in root.iter("base"):
        if href := (base.get("href") or "").strip():
            return _absolute(_joined(address or "", href)) or address
    return address


def link_target(href: str | None, page: str | None) -> str | None:
    """The address as Markdown can contain it; None for a link within the page or without target."""
    href = (href or "").strip()
    # Links within the page stay text. With the page's address they would fill a table of contents
    # with addresses, which are read, searched and counted, to headings of the same text.
    if not href or len(href) > _MAX_ADDRESS_LENGTH or href.startswith("#"):
        return None
    target = (_joined(page, href) if page else href).translate(_ENCODED)
    return target if len(target) <= _MAX_ADDRESS_LENGTH and _WRITABLE.fullmatch(target) else None


def _canonical(link: Any) -> str | None:
    if "canonical" not in (link.get("rel") or "").lower().split():
        return None
    return _absolute((link.get("href") or "").strip())


def _absolute(address: str | None) -> str | None:
    if not address or len(address) > _MAX_ADDRESS_LENGTH or not _ABSOLUTE.match(address):
        return None
    return address


def _joined(page: str, href: str) -> str:
    try:
        return urljoin(page, href)
    except ValueError:
        # Brackets in a host that are not around an IPv6 address.
        return ""


Closer = Callable[[], None]

_SEPARATED: Final = frozenset({"button", "option", "rt"})
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_EMPHASIS: Final = {"b": "**", "strong": "**", "i": "*", "em": "*"}
_TAGS: Final = {
    "ins": ("<ins>", "</ins>"),
    "del": ("<del>", "</del>"),
    "s": ("<del>", "</del>"),
    "strike": ("<del>", "</del>"),
    "sub": ("<sub>", "</sub>"),
    "sup": ("<sup>", "</sup>"),
    "q": ("“", "”"),
}
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})
_SECTION: Final = re.compile(
    r"[\[“]?("
    r"§+\s*\d[\w.:-]*\w"
    r"|(?:sec(?:tion|s)?\.?|title|subtitle|chapter|subchapter|part|subpart|article|rule)"
    r"\s+(?:\d[\w.:-]*\w|\d|[IVXLC]+\b|[A-Z]{1,2}\b)"
    r"|\d+[A-Za-z]?(?:[-:]\d+[\w.]*\w?)+"
    r"|\d+(?:\.\d+)+"
    r"|[IVXL]+(?=\.)|[A-Z](?=\.\s)|\d+(?=\.\s)"
    r")",
    re.IGNORECASE,
)


def section_label(heading: str) -> str | None:
    """The publisher's own label at the beginning of a heading."""
    match = _SECTION.match(heading)
    return match[1].rstrip(".:-") if match else None


class HtmlWalker:
    """One walk over one page."""

    def __init__(
        self,
        root: Any,
        address: str | None = None,
        boilerplate: Mapping[Any, str] = MappingProxyType({}),
    ) -> None:
        self._root, self._address = root, address
        self._boilerplate = boilerplate
        """Elements to leave out, and why."""
        self._left_out: list[LeftOut] = []
        self._out = HtmlWriter()
        self._notes = notes_of(root)
        self._has_notes = bool(self._notes.references)
        self._lists: list[ListNumbering | None] = []
        self._grids: list[CellGrid | None] = []
        self._rows = 0
        self._emphasized: set[str] = set()
        self._unknown: dict[str, None] = {}
        self._events: Any = None

    def walk(self, warnings: tuple[str, ...] = ()) -> NormalizedBody:
        """The page as Markdown."""
        out, closers = self._out, list[Closer | None]()
        self._events = etree.iterwalk(self._root, events=("start", "end"))
        for event, element in self._events:
            if event == "start":
                closers.append(self._open(element))
                if closers[-1] is not _skipped and (text := element.text):
                    out.text(text)
            else:
                if (closer := closers.pop()) is not None:
                    closer()
                if tail := element.tail:
                    out.text(tail)
        unknown = ", ".join(f"<{name}>" for name in self._unknown)
        more = (f"unknown elements, their text kept: {unknown}",) if unknown else ()
        body = out.finish((*warnings, *more))
        return replace(body, left_out=tuple(self._left_out)) if self._left_out else body

    def _open(self, element: Any) -> Closer | None:
        tag = element.tag
        if self._boilerplate and element in self._boilerplate:
            return self._leave_out(element)
        if self._has_notes and (closer := self._note(element)) is not None:
            return closer
        handler = self._HANDLERS.get(tag)
        if handler is not None:
            return handler(self, element)
        if tag in BLOCKS:
            self._out.block()
            return self._out.block
        if tag not in INLINES:
            self._unknown.setdefault(str(tag)[:40])
        return None

    def _note(self, element: Any) -> Closer | None:
        notes = self._notes
        if element in notes.references:
            self._out.put_markup(f"[^{notes.references[element]}]")
            return self._skip()
        if element in notes.dropped:
            return self._skip()
        return self._definition(element) if element in notes.definitions else None

    def _leave_out(self, element: Any) -> Closer:
        if element.tag != "nav" and element.tag in BLOCKS:
            self._out.block()
        if text := " ".join(" ".join(element.itertext()).split()):
            reason, offset = self._boilerplate[element], self._out.length
            self._left_out.append(LeftOut(text=text, reason=reason, offset=offset))
        return self._skip()

    def _skip(self) -> Closer:
        self._events.skip_subtree()
        return _skipped

    # Blocks -------------------------------------------------------------------------------

    def _heading(self, element: Any) -> Closer:
        label = None if self._out.heading else _label(element)
        self._out.open_heading(_HEADINGS[element.tag], label)
        return self._out.close_heading

    def _definition(self, element: Any) -> Closer:
        outer = self._out.open_indent("    ", f"[^{self._notes.definitions[element]}]: ")
        return lambda: self._out.close_indent(outer)

    def _quote(self, _element: Any) -> Closer:
        outer = self._out.open_indent("> ")
        return lambda: self._out.close_indent(outer)

    def _described(self, _element: Any) -> Closer:
        outer = self._out.open_indent("", ": ")
        return lambda: self._out.close_indent(outer)

    def _list(self, element: Any) -> Closer:
        self._out.block()
        self._lists.append(ListNumbering(element) if element.tag == "ol" else None)

        def close() -> None:
            self._lists.pop()
            self._out.block()

        return close

    def _item(self, element: Any) -> Closer:
        numbering = self._lists[-1] if self._lists else None
        label, counted = numbering.label(element) if numbering else ("", False)
        if label and own_label(element, label):
            label = ""
        if counted and label:
            outer = self._out.open_indent(" " * (len(label) + 1), f"{label} ")
        else:
            # A number behind a bullet would be read as a list of its own.
            escaped_label = re.sub(r"(?<=\d)\.$", r"\.", label)
            outer = self._out.open_indent("  ", f"- {escaped_label} " if label else "- ")
        if label and outer is None:
            self._out.text(f"{label} ")
        return lambda: self._out.close_indent(outer)

    def _rule(self, _element: Any) -> None:
        self._out.block()
        if not self._out.in_cell:
            self._out.put_markup("---")
            self._out.block()

    def _break(self, _element: Any) -> None:
        self._out.br()

    def _verbatim(self, element: Any) -> Closer:
        for line_break in element.iter("br"):
            line_break.text = "\n"
        lines = "".join(element.itertext()).expandtabs().splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        first = next((index for index, line in enumerate(lines) if line.strip()), 0)
        del lines[:first]
        if self._out.in_cell or self._out.heading:
            self._out.text(" ".join(lines))
        elif lines:
            self._out.fenced(lines)
        return self._skip()

    # Inline -------------------------------------------------------------------------------

    def _emphasis(self, element: Any) -> Closer | None:
        marker = _EMPHASIS[element.tag]
        if marker in self._emphasized or self._out.heading or not self._can_emphasize(element):
            return None
        self._emphasized.add(marker)
        self._out.mark(marker, marker)

        def close() -> None:
            self._emphasized.discard(marker)
            self._out.unmark()

        return close

    def _can_emphasize(self, element: Any) -> bool:
        """Markdown reads a marker only where words and punctuation around it allow it."""
        first, last = _first(element), _last(element)
        before = self._out.before(first)
        if not first or before == "*" or (before.isalnum() and not first.isalnum()):
            return False
        after = (element.tail or "")[:1] or _first_glued(element.getnext())
        return last.isalnum() or not after.isalnum()

    def _tagged(self, element: Any) -> Closer | None:
        opening, closing = _TAGS[element.tag]
        if opening in self._emphasized:
            return None
        self._emphasized.add(opening)
        self._out.mark(opening, closing)

        def close() -> None:
            self._emphasized.discard(opening)
            self._out.unmark()

        return close

    def _code(self, element: Any) -> Closer | None:
        text = element.text or ""
        if len(element) or "\n" in text.strip() or "`" in text or escape(text) != text:
            return None
        self._out.mark("`", "`")
        return self._out.unmark

    def _link(self, element: Any) -> Closer | None:
        address = link_target(element.get("href"), self._address)
        if address is None or self._out.in_link:
            return None
        text = "".join(element.itertext())
        # A link whose text is its address needs no second copy of it.
        if "[" in text or "]" in text or _same(text, address):
            return None
        self._out.in_link = True
        self._out.mark("[", f"]({address})")

        def close() -> None:
            self._out.in_link = False
            self._out.unmark()

        return close

    def _image(self, element: Any) -> None:
        alt = (element.get("alt") or "").replace("[", "(").replace("]", ")")
        if not alt.strip():
            return
        address = link_target(element.get("src"), self._address) or ""
        self._out.mark("![", f"]({address})")
        self._out.text(alt)
        self._out.unmark()

    def _separated(self, _element: Any) -> Closer:
        self._out.text(" ")
        return lambda: self._out.text(" ")

    # Tables -------------------------------------------------------------------------------

    def _table(self, element: Any) -> Closer:
        self._out.block()
        is_layout = element in self._notes.tables or self._out.in_cell
        self._grids.append(None if is_layout else grid_of(element))
        self._rows = 0

        def close() -> None:
            self._grids.pop()
            self._out.block()

        return close

    def _row_group(self, _element: Any) -> Closer | None:
        if self._grids and self._grids[-1] is not None:
            return None
        self._out.block()
        return self._out.block

    def _row(self, element: Any) -> Closer:
        grid = self._grids[-1] if self._grids else None
        if grid is None or element not in grid.at_end:
            self._out.block()
            return self._out.block
        if self._rows:
            self._out.line()
        else:
            self._out.block()
            if grid.spans:
                table = next(element.iterancestors("table"))
                content = etree.tostring(table, encoding="unicode", method="html", with_tail=False)
                self._out.artifact("table", content)
        self._rows += 1
        self._out.put_markup("|")
        return lambda: self._end_row(grid, element)

    def _end_row(self, grid: CellGrid, row: Any) -> None:
        if missing := grid.at_end[row]:
            self._out.markup("  |" * missing)
        if self._rows == 1:
            self._out.line()
            self._out.markup("|" + " --- |" * grid.columns)

    def _cell(self, element: Any) -> Closer:
        grid = self._grids[-1] if self._grids else None
        if grid is None or element not in grid.before:
            self._out.block()
            return self._out.block
        if taken := grid.before[element]:
            self._out.markup("  |" * taken)
        self._out.open_cell()

        def close() -> None:
            self._out.close_cell()
            if spanned := grid.after[element]:
                self._out.markup("  |" * spanned)

        return close

    _HANDLERS: ClassVar[dict[str, Callable[[HtmlWalker, Any], Closer | None]]] = {
        **dict.fromkeys(_HEADINGS, _heading),
        **dict.fromkeys(_EMPHASIS, _emphasis),
        **dict.fromkeys(_TAGS, _tagged),
        **dict.fromkeys(_CODE, _code),
        **dict.fromkeys(_SEPARATED, _separated),
        **dict.fromkeys(("ul", "ol", "menu", "dir"), _list),
        **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), _verbatim),
        **dict.fromkeys(("td", "th"), _cell),
        **dict.fromkeys(("thead", "tbody", "tfoot"), _row_group),
        "a": _link,
        "blockquote": _quote,
        "br": _break,
        "dd": _described,
        "hr": _rule,
        "img": _image,
        "li": _item,
        "table": _table,
        "tr": _row,
    }


def _skipped() -> None:
    """Close an element whose content is already written."""


def _label(heading: Any) -> str | None:
    return section_label(" ".join("".join(islice(heading.itertext(), 20)).split())[:200])


def _first(element: Any) -> str:
    for text in element.itertext():
        if stripped := text.lstrip():
            return str(stripped[0])
    return ""


def _last(element: Any) -> str:
    while element is not None:
        if not len(element):
            return (element.text or "").rstrip()[-1:]
        element = element[-1]
        if tail := (element.tail or "").rstrip():
            return str(tail[-1])
    return ""


def _first_glued(element: Any) -> str:
    if element is None or element.tag in BLOCKS or element.tag == "br":
        return ""
    return (element.text or "")[:1]


def _same(text: str, address: str) -> bool:
    text = text.strip().rstrip("/")
    return address.rstrip("/").removeprefix("mailto:").endswith(text) and "." in text
