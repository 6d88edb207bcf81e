"""Markdown inside one line, read as plain text."""

from __future__ import annotations

import re
from collections import defaultdict
from html import unescape
from typing import Final, NamedTuple

_MARKUP: Final = re.compile(r"[\\`*_~\[&]")
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?P<entity>&#?\w{1,31};)"
    r"|(?P<run>\*+|_+|~~)"
    r"|(?P<ticks>`+)"
)
_LINK: Final = re.compile(r"(?<!\\)!?\[([^\[\]]*)\]\([^()\s]*(?: +\"[^\"]*\")?\)")
# A heading that long is a paragraph gone astray; its markup is left as it is.
_LONGEST: Final = 4000


class _Opener(NamedTuple):
    piece: int
    width: int


def plain_text(markdown: str) -> str:
    """A line of Markdown without emphasis, code marks, link targets, escapes and entities."""
    if len(markdown) > _LONGEST or not _MARKUP.search(markdown):
        return markdown
    return _Reader(_LINK.sub(r"\1", markdown)).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[str] = []
        self.openers: dict[str, list[_Opener]] = defaultdict(list)

    def read(self) -> str:
        position = 0
        while token := _TOKEN.search(self.text, position):
            self.pieces.append(self.text[position : token.start()])
            position = self._take(token)
        self.pieces.append(self.text[position:])
        return "".join(self.pieces)

    def _take(self, token: re.Match[str]) -> int:
        if token["ticks"]:
            return self._take_code(token)
        if token["run"]:
            self._take_run(token)
        else:
            self.pieces.append(token["escaped"] or unescape(token["entity"]))
        return token.end()

    def _take_code(self, token: re.Match[str]) -> int:
        ticks = token["ticks"]
        closing = self.text.find(ticks, token.end())
        if closing < 0:
            self.pieces.append(ticks)
            return token.end()
        self.pieces.append(self.text[token.end() : closing].strip())
        return closing + len(ticks)

    def _take_run(self, token: re.Match[str]) -> None:
        mark, width = token["run"][0], len(token["run"])
        opens, closes = self._flanks(token)
        openers = self.openers[mark]
        while closes and width and openers:
            opener = openers.pop()
            used = min(width, opener.width)
            width -= used
            left = opener.width - used
            self.pieces[opener.piece] = mark * left
            if left:
                openers.append(_Opener(opener.piece, left))
        self.pieces.append(mark * width)
        if opens and width:
            openers.append(_Opener(len(self.pieces) - 1, width))

    def _flanks(self, token: re.Match[str]) -> tuple[bool, bool]:
        before = self.text[token.start() - 1 : token.start()]
        after = self.text[token.end() : token.end() + 1]
        opens, closes = bool(after.strip()), bool(before.strip())
        if token["run"][0] == "_":
            # Identifiers such as body_raw_path keep their underscores.
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        return opens, closes
