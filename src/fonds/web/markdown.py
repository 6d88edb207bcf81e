"""Markdown of hostile documents as HTML that does nothing but be read.

Two walls. The parser passes on only what it makes itself, and of the document's own markup the few
inline tags that normalizers write. The sanitizer behind it knows a short list of tags and
attributes, and lets nothing else through.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

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
class Heading:
    """A line of the contents."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A text as HTML, and its contents."""

    html: str
    headings: Sequence[Heading]


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


def _anchored(tokens: Sequence[Token], prefix: str) -> Iterator[Heading]:
    number = 0
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        number += 1
        anchor = f"{prefix}{number}"
        token.attrSet("id", anchor)
        level = int(token.tag[1])
        if level <= DEEPEST_SHOWN:
            yield Heading(level=level, text=_words(inline), anchor=anchor)


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
