"""The text of documents as safe HTML, cached in files.

Documents may be hostile, so there are two lines of defence: the Markdown parser escapes all markup
of the document except a few inline tags that normalizers write, and the sanitizer removes
everything that is not in a short list of tags and attributes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from zlib import crc32

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, func, select

from fonds.context import Context
from fonds.errors import ItemFailedError
from fonds.stores.permissions import make_private_folder
from fonds.stores.tables import document_chunk_buffer, documents

VERSION: Final = "1"
"""The version of the HTML; a new one invalidates cached pages."""

SCHEMES: Final = frozenset({"http", "https", "mailto"})
MAX_NESTING: Final = 20
"""Depth of nested lists and quotes: in hostile texts each level costs more than the last."""
MAX_CONTENTS_LEVEL: Final = 4
"""Levels of headings in the table of contents."""

# Left-to-right and right-to-left overrides, embeddings and isolates: in running text they let one
# document reorder the text around it. Scripts written from right to left need none of them.
BIDI: Final = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))

_SPACES: Final = {"softbreak": " ", "hardbreak": " ", "html_inline": ""}
_INLINE_TAG: Final = re.compile(r"</?(?:ins|del|sub|sup|u|br)\s*/?>", re.IGNORECASE)
_TAGS: Final = frozenset(
    {
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "pre", "hr", "ol", "ul", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *("a", "br", "code", "del", "em", "ins", "s", "span", "strong", "sub", "sup", "u"),
    }
)
_ATTRIBUTES: Final = {
    "a": {"href", "title"},
    "ol": {"start"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
    "span": {"id"},
}
_CLASSES: Final = {
    "span": {"at", "image"},
    **{cell: {"left", "right", "center"} for cell in ("td", "th")},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentsEntry:
    """An entry in the table of contents."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A text as HTML, with its table of contents."""

    html: str
    headings: Sequence[ContentsEntry]


def render(text: str, passages: Mapping[int, int] | None = None, *, prefix: str = "s") -> Rendered:
    """Render a text as HTML; `passages` has the offset of each passage by its number.

    The anchor of a passage is `p<number>`; those of headings start with `prefix`.
    """
    visible = text.translate(BIDI) if not text.isascii() else text
    # Offsets refer to the text before characters are removed.
    lines = _lines_of(text, passages or {})
    tokens = _PARSER.parse(visible)
    headings = [*_add_anchors(tokens, prefix)]
    _mark_passages(tokens, lines)
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Rendered(html=_clean(html).replace("<p></p>\n", ""), headings=headings)


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderInput:
    """A part of a text, with the offsets of its passages by their numbers."""

    text: str
    passages: Mapping[int, int]
    prefix: str


def render_part(work: RenderInput) -> dict[str, Any]:
    """Render a part in a reader process: a text can be made to take minutes."""
    return asdict(render(work.text, work.passages, prefix=work.prefix))


def rendered_of_json(value: Any) -> Rendered:
    """The part that `render_part` returned; its types and all its markup are checked."""
    try:
        rendered = _rendered_adapter().validate_python(value)
    except ValidationError as error:
        raise ItemFailedError("the reader process returned something other than HTML") from error
    if not is_clean(rendered.html):
        raise ItemFailedError("the reader process returned markup that no page may contain")
    return rendered


@cache
def _rendered_adapter() -> TypeAdapter[Rendered]:
    return TypeAdapter(Rendered)


_NAMES: Final = "|".join(sorted(_TAGS))
_CLEAN_MARKUP: Final = re.compile(
    rf"</(?:{_NAMES})>"
    rf"|<(?:{_NAMES})(?: (?:id|title|class|rel|start)=\"[^\"]*\""
    r"| href=\"(?:https?|mailto):[^\"]*\")*>",
    re.IGNORECASE,
)


def is_clean(html: str) -> bool:
    """Check in linear time that HTML has only such markup as the sanitizer writes."""
    return "<" not in _CLEAN_MARKUP.sub("", html)


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        allowed_classes={tag: set(names) for tag, names in _CLASSES.items()},
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )


def _lines_of(text: str, passages: Mapping[int, int]) -> dict[int, int]:
    """The line in which each passage starts."""
    if not passages:
        return {}
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return {number: bisect_right(starts, offset) - 1 for number, offset in passages.items()}


def _add_anchors(tokens: Sequence[Token], prefix: str) -> Iterator[ContentsEntry]:
    number = 0
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        number += 1
        anchor = f"{prefix}{number}"
        token.attrSet("id", anchor)
        level = int(token.tag[1])
        if level <= MAX_CONTENTS_LEVEL:
            yield ContentsEntry(level=level, text=_words(inline), anchor=anchor)


def _words(inline: Token) -> str:
    """The text of a heading, without markup."""
    parts = [_SPACES.get(child.type, child.content) for child in inline.children or ()]
    return " ".join("".join(parts).split())


def _mark_passages(tokens: Sequence[Token], lines: Mapping[int, int]) -> None:
    """Insert the anchor of each passage into the block in which it starts."""
    blocks = [token for token in tokens if token.type == "inline" and token.map]
    if not blocks:
        return
    first_lines = [token.map[0] for token in blocks if token.map]
    for number, line in sorted(lines.items(), reverse=True):
        block = blocks[max(0, bisect_right(first_lines, line) - 1)]
        anchor = Token("passage", "span", 0, content=f"p{number}")
        block.children = [anchor, *(block.children or ())]


class _Renderer(RendererHTML):
    """Escapes the markup of the document, except for a few inline tags."""

    def html_inline(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        return _allowed_markup(tokens[index].content)

    def passage(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        return f'<span class="at" id="{tokens[index].content}"></span>'

    def image(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        """The description of a picture; it is not loaded, since its host would track readers."""
        text = " ".join(tokens[index].content.split()) or "picture"
        return f'<span class="image">{escape(text)}</span>'

    def link_open(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, _env: EnvType
    ) -> str:
        if not _is_absolute(str(tokens[index].attrs.get("href", ""))):
            tokens[index].attrs.pop("href", None)
        return self.renderToken(tokens, index, options, {})

    def td_open(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, _env: EnvType
    ) -> str:
        return self._cell(tokens, index, options)

    def th_open(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, _env: EnvType
    ) -> str:
        return self._cell(tokens, index, options)

    def _cell(self, tokens: Sequence[Token], index: int, options: OptionsDict) -> str:
        """Align by class: the content security policy forbids style attributes."""
        style = str(tokens[index].attrs.pop("style", ""))
        if style:
            tokens[index].attrSet("class", style.rpartition(":")[2])
        return self.renderToken(tokens, index, options, {})


def _allowed_markup(markup: str) -> str:
    if _INLINE_TAG.fullmatch(markup):
        return markup.lower()
    return "" if markup.startswith("<!--") else escape(markup)


def _is_absolute(address: str) -> bool:
    """Whether an address is absolute; a relative one refers to the publisher's site."""
    try:
        return urlsplit(address).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _parser() -> MarkdownIt:
    options: dict[str, Any] = {
        "html": True,
        "linkify": False,
        "typographer": False,
        "maxNesting": MAX_NESTING,
    }
    parser = MarkdownIt("js-default", options, renderer_cls=_Renderer)
    # A block of HTML would keep the Markdown behind its first tag from being read.
    parser.disable("html_block")
    return parser


_PARSER: Final = _parser()


FOLDER: Final = Path("cache", "pages")
"""The cache below the library's home; it may be deleted at any time."""
PART_LENGTH: Final = 1_000_000
"""Characters per page, about; longer texts are split into parts."""

_CACHE_ERRORS: Final = (OSError, ValueError, TypeError, KeyError)
"""Errors of reading a missing or damaged cache file, which is then rendered again."""
_chunk: Final = document_chunk_buffer.c
_Page = tuple[bytes, Sequence[ContentsEntry]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedSection:
    """One part of a rendered text."""

    html: bytes
    headings: Sequence[ContentsEntry]
    number: int
    """The number of the part, from 1."""
    parts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _PartBounds:
    """The offset of each part of a text, and the number of the first passage in each."""

    offsets: Sequence[int]
    passages: Sequence[int]
    end: int


class UnrenderedError(LookupError):
    """A part of a text is to be rendered first, which may take long."""

    def __init__(self, document: Mapping[str, Any], number: int) -> None:
        super().__init__(number)
        self.document = document
        self.number = number


class HtmlTexts:
    """The texts of documents as HTML, rendered by reader processes on demand.

    Those of public documents are cached: a file would outlive an upload that its user deletes.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._folder = context.settings.home / FOLDER

    def part(self, document: Mapping[str, Any], number: int) -> RenderedSection | None:
        """A part of a document's text: None without a text, the last for too large a number.

        UnrenderedError if it is not in the cache.
        """
        if document["body_text_sha256"] is None:
            return None
        key = _key(document)
        bounds = self._bounds(key, document)
        number = min(max(number, 1), len(bounds.offsets))
        cached = _read_cache(self._path(key, number)) if _is_public(document) else None
        if cached is None:
            raise UnrenderedError(document, number)
        html, headings = cached
        return RenderedSection(
            html=html, headings=headings, number=number, parts=len(bounds.offsets)
        )

    def render(self, unrendered: UnrenderedError) -> RenderedSection:
        """Render a part, and cache it if the document is public."""
        document, number = unrendered.document, unrendered.number
        key = _key(document)
        bounds = self._bounds(key, document)
        html, headings = self._render(self._path(key, number), document, bounds, number)
        return RenderedSection(
            html=html, headings=headings, number=number, parts=len(bounds.offsets)
        )

    def _path(self, key: str, number: int) -> Path:
        return self._folder / key[:2] / f"{key}.{number}"

    def part_of(self, document: Mapping[str, Any], passage: int) -> int:
        """The number of the part that contains a passage."""
        if document["body_text_sha256"] is None:
            return 1
        bounds = self._bounds(_key(document), document)
        return max(1, sum(first <= passage for first in bounds.passages))

    def _bounds(self, key: str, document: Mapping[str, Any]) -> _PartBounds:
        path = self._folder / key[:2] / f"{key}.cuts"
        with suppress(*_CACHE_ERRORS):
            return _PartBounds(**json.loads(path.read_bytes()))
        with self._context.database.read() as connection:
            bounds = _part_bounds(connection, document)
        if _is_public(document):
            _write_cache(path, json.dumps(asdict(bounds)).encode())
        return bounds

    def _render(
        self, path: Path, document: Mapping[str, Any], bounds: _PartBounds, number: int
    ) -> _Page:
        start = bounds.offsets[number - 1]
        end = [*bounds.offsets, bounds.end][number]
        with self._context.database.read() as connection:
            text = _text(connection, document["id"], start, end)
            passages = _passages(connection, document, start, end)
        prefix = f"s{number}-" if number > 1 else "s"
        work = RenderInput(text=text, passages=passages, prefix=prefix)
        rendered = rendered_of_json(self._context.readers.read_now(render_part, work))
        html = rendered.html.encode()
        if _is_public(document):
            headings = [asdict(heading) for heading in rendered.headings]
            metadata = {"crc32": crc32(html), "headings": headings}
            _write_cache(_metadata_path(path), json.dumps(metadata).encode())
            _write_cache(path, html)
        return html, rendered.headings


def _is_public(document: Mapping[str, Any]) -> bool:
    return document["owner"] is None


def _key(document: Mapping[str, Any]) -> str:
    """The key of the cache: `recipe` determines where passages start."""
    inputs = [VERSION, document["body_text_sha256"], document["recipe"]]
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


def _part_bounds(connection: Connection, document: Mapping[str, Any]) -> _PartBounds:
    """Split a text into parts at the starts of passages."""
    is_document = documents.c.id == document["id"]
    end = connection.scalar(select(func.length(documents.c.body_text)).where(is_document)) or 0
    offsets, firsts = [0], [0]
    if end > PART_LENGTH:
        for number, start in sorted(_passages(connection, document, 0, end).items()):
            if start - offsets[-1] >= PART_LENGTH:
                offsets.append(start)
                firsts.append(number)
    return _PartBounds(offsets=offsets, passages=firsts, end=end)


def _text(connection: Connection, document_id: str, start: int, end: int) -> str:
    part = func.substr(documents.c.body_text, start + 1, end - start)
    return connection.scalar(select(part).where(documents.c.id == document_id)) or ""


def _passages(
    connection: Connection, document: Mapping[str, Any], start: int, end: int
) -> dict[int, int]:
    """The offsets of the passages in a part, relative to its start."""
    query = select(_chunk.chunk_ord, _chunk.meta).where(_chunk.document_id == document["uid"])
    starts = {row.chunk_ord: row.meta["start"] for row in connection.execute(query)}
    return {number: at - start for number, at in starts.items() if start <= at < end}


def _metadata_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _read_cache(path: Path) -> _Page | None:
    """A cached page; None if it is missing or damaged."""
    with suppress(*_CACHE_ERRORS):
        html, metadata = path.read_bytes(), json.loads(_metadata_path(path).read_bytes())
        headings = [ContentsEntry(**each) for each in metadata["headings"]]
        return (html, headings) if crc32(html) == metadata["crc32"] else None
    return None


def _write_cache(path: Path, content: bytes) -> None:
    """Write a file atomically; errors are ignored, since the cache is optional."""
    with suppress(OSError):
        make_private_folder(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
