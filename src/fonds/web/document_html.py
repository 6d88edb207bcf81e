"""Markdown of hostile documents as HTML that does nothing but be read.

Two walls. The parser passes on only what it makes itself, and of the document's own markup the few
inline tags that normalizers write. The sanitizer behind it knows a short list of tags and
attributes, and lets nothing else through.

The texts of documents as pages show them: rendered once, kept in files, read from there.
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
from sqlalchemy import Connection, func, select

from fonds.stores.database import Database
from fonds.stores.tables import document_chunk_buffer, documents

VERSION: Final = "1"
"""Of what is made here; another one means that kept pages are made again."""

SCHEMES: Final = frozenset({"http", "https", "mailto"})
NESTING: Final = 20
"""Lists in lists, quotes in quotes; hostile texts make each level cost more than the last."""
DEEPEST_SHOWN: Final = 4
"""Levels of headings that the contents list."""

# Left-to-right and right-to-left overrides, embeddings and isolates: in running text they let one
# document reorder what stands beside it. Scripts written from right to left need none of them.
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
    """A line of the contents."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A text as HTML, and its contents."""

    html: str
    headings: Sequence[ContentsEntry]


def render(text: str, passages: Mapping[int, int] | None = None, *, prefix: str = "s") -> Rendered:
    """A text as HTML; `passages` gives the offset at which each begins, by its number.

    A passage gets the anchor `p<number>`, a heading one that begins with `prefix`.
    """
    shown = text.translate(BIDI) if not text.isascii() else text
    # What is left out shortens the text: offsets are turned into lines while it is whole.
    lines = _lines_of(text, passages or {})
    tokens = _PARSER.parse(shown)
    headings = [*_anchored(tokens, prefix)]
    _mark(tokens, lines)
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Rendered(html=_clean(html).replace("<p></p>\n", ""), headings=headings)


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
    """The line each passage begins in."""
    if not passages:
        return {}
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return {number: bisect_right(starts, offset) - 1 for number, offset in passages.items()}


def _anchored(tokens: Sequence[Token], prefix: str) -> Iterator[ContentsEntry]:
    number = 0
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        number += 1
        anchor = f"{prefix}{number}"
        token.attrSet("id", anchor)
        level = int(token.tag[1])
        if level <= DEEPEST_SHOWN:
            yield ContentsEntry(level=level, text=_words(inline), anchor=anchor)


def _words(inline: Token) -> str:
    """The words of a heading, without its markup."""
    parts = [_SPACES.get(child.type, child.content) for child in inline.children or ()]
    return " ".join("".join(parts).split())


def _mark(tokens: Sequence[Token], lines: Mapping[int, int]) -> None:
    """Give each passage an anchor at the beginning of the block that it begins in."""
    blocks = [token for token in tokens if token.type == "inline" and token.map]
    if not blocks:
        return
    begins = [token.map[0] for token in blocks if token.map]
    for number, line in sorted(lines.items(), reverse=True):
        block = blocks[max(0, bisect_right(begins, line) - 1)]
        anchor = Token("passage", "span", 0, content=f"p{number}")
        block.children = [anchor, *(block.children or ())]


class _Renderer(RendererHTML):
    """Writes nothing that the document brought along as markup, but a few inline tags."""

    def html_inline(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        return _own_markup(tokens[index].content)

    def passage(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        return f'<span class="at" id="{tokens[index].content}"></span>'

    def image(
        self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
    ) -> str:
        """A picture is told of and not loaded: its host would learn who reads."""
        said = " ".join(tokens[index].content.split()) or "picture"
        return f'<span class="image">{escape(said)}</span>'

    def link_open(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, _env: EnvType
    ) -> str:
        if not _leads_elsewhere(str(tokens[index].attrs.get("href", ""))):
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
        """The policy of the pages refuses styles of elements; columns are aligned by class."""
        style = str(tokens[index].attrs.pop("style", ""))
        if style:
            tokens[index].attrSet("class", style.rpartition(":")[2])
        return self.renderToken(tokens, index, options, {})


def _own_markup(markup: str) -> str:
    if _INLINE_TAG.fullmatch(markup):
        return markup.lower()
    return "" if markup.startswith("<!--") else escape(markup)


def _leads_elsewhere(address: str) -> bool:
    """Whether a link says where it leads; a relative one means the publisher's site, not this."""
    try:
        return urlsplit(address).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _parser() -> MarkdownIt:
    options: dict[str, Any] = {
        "html": True,
        "linkify": False,
        "typographer": False,
        "maxNesting": NESTING,
    }
    parser = MarkdownIt("js-default", options, renderer_cls=_Renderer)
    # A block of HTML would keep the Markdown behind its first tag from being read.
    parser.disable("html_block")
    return parser


_PARSER: Final = _parser()


FOLDER: Final = Path("cache", "pages")
"""Below the library's home; it may be deleted at any time."""
PART: Final = 1_000_000
"""Characters of text on one page, about: a longer text is shown in parts."""

_DAMAGE: Final = (OSError, ValueError, TypeError, KeyError)
"""What reading a file of the cache may end in; whatever is wrong with it, it is made again."""
_chunk: Final = document_chunk_buffer.c
_Page = tuple[bytes, Sequence[ContentsEntry]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedSection:
    """One part of a text."""

    html: bytes
    headings: Sequence[ContentsEntry]
    number: int
    """From 1."""
    parts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cuts:
    """Where the parts of a text begin, and the number of the first passage in each."""

    offsets: Sequence[int]
    passages: Sequence[int]
    end: int


class HtmlTexts:
    """Gives the text of a document as HTML, rendering it if nobody did before."""

    def __init__(self, database: Database, home: Path) -> None:
        self._database = database
        self._folder = home / FOLDER

    def part(self, document: Mapping[str, Any], number: int) -> RenderedSection | None:
        """A part of a document's text; None if it has no text, the last one for too high ones."""
        if document["body_text_sha256"] is None:
            return None
        key = _key(document)
        cuts = self._cuts(key, document)
        number = min(max(number, 1), len(cuts.offsets))
        path = self._folder / key[:2] / f"{key}.{number}"
        html, headings = _kept(path) or self._make(path, document, cuts, number)
        return RenderedSection(html=html, headings=headings, number=number, parts=len(cuts.offsets))

    def part_of(self, document: Mapping[str, Any], passage: int) -> int:
        """The part that a passage stands in."""
        if document["body_text_sha256"] is None:
            return 1
        cuts = self._cuts(_key(document), document)
        return max(1, sum(first <= passage for first in cuts.passages))

    def _cuts(self, key: str, document: Mapping[str, Any]) -> _Cuts:
        path = self._folder / key[:2] / f"{key}.cuts"
        with suppress(*_DAMAGE):
            return _Cuts(**json.loads(path.read_bytes()))
        with self._database.read() as connection:
            cuts = _cut(connection, document)
        _keep(path, json.dumps(asdict(cuts)).encode())
        return cuts

    def _make(self, path: Path, document: Mapping[str, Any], cuts: _Cuts, number: int) -> _Page:
        start = cuts.offsets[number - 1]
        end = [*cuts.offsets, cuts.end][number]
        with self._database.read() as connection:
            text = _text(connection, document["id"], start, end)
            passages = _passages(connection, document, start, end)
        made = render(text, passages, prefix=f"s{number}-" if number > 1 else "s")
        html = made.html.encode()
        headings = [asdict(heading) for heading in made.headings]
        _keep(_beside(path), json.dumps({"crc32": crc32(html), "headings": headings}).encode())
        _keep(path, html)
        return html, made.headings


def _key(document: Mapping[str, Any]) -> str:
    """The recipe says how the text was cut, and so where its passages begin."""
    made_of = [VERSION, document["body_text_sha256"], document["recipe"]]
    return hashlib.sha256("\0".join(made_of).encode()).hexdigest()


def _cut(connection: Connection, document: Mapping[str, Any]) -> _Cuts:
    """A part ends where a passage begins: nothing is torn that belongs together."""
    whole = documents.c.id == document["id"]
    end = connection.scalar(select(func.length(documents.c.body_text)).where(whole)) or 0
    offsets, firsts = [0], [0]
    if end > PART:
        for number, start in sorted(_passages(connection, document, 0, end).items()):
            if start - offsets[-1] >= PART:
                offsets.append(start)
                firsts.append(number)
    return _Cuts(offsets=offsets, passages=firsts, end=end)


def _text(connection: Connection, document_id: str, start: int, end: int) -> str:
    piece = func.substr(documents.c.body_text, start + 1, end - start)
    return connection.scalar(select(piece).where(documents.c.id == document_id)) or ""


def _passages(
    connection: Connection, document: Mapping[str, Any], start: int, end: int
) -> dict[int, int]:
    """Where the passages within a part begin, from its beginning."""
    query = select(_chunk.chunk_ord, _chunk.meta).where(_chunk.document_id == document["uid"])
    begins = {row.chunk_ord: row.meta["start"] for row in connection.execute(query)}
    return {number: at - start for number, at in begins.items() if start <= at < end}


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _kept(path: Path) -> _Page | None:
    """What was rendered before; None if it is not there, or not as it was written."""
    with suppress(*_DAMAGE):
        html, told = path.read_bytes(), json.loads(_beside(path).read_bytes())
        headings = [ContentsEntry(**each) for each in told["headings"]]
        return (html, headings) if crc32(html) == told["crc32"] else None
    return None


def _keep(path: Path, content: bytes) -> None:
    """Whole or not at all; a cache that cannot be written to costs time and nothing else."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
