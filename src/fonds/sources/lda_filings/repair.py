"""Texts of filings as their writers meant them: escapes undone, and provable mojibake.

Much was pasted as UTF-8, read as Windows-1252 and escaped as HTML on its way into the forms:
`&#226;€‹` is a zero-width space. A run of characters whose Windows-1252 bytes are one character in
UTF-8 is taken back. Of runs of two only those that begin with Â or Ã are: É® may stand at the end
of a brand's name.
"""

from __future__ import annotations

import html
import re
from typing import Final

# Without its semicolon an entity may be the beginning of a word: R&parity.
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ROUNDS: Final = 3
"""Some texts went through the forms more than once."""


def _as_windows_1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)  # five bytes have no character; browsers take them for controls


_BYTES: Final = {_as_windows_1252(byte): byte for byte in range(0x80, 0x100)}


def _class(first: int, last: int) -> str:
    return "[" + re.escape("".join(c for c, b in _BYTES.items() if first <= b <= last)) + "]"


_NEXT: Final = _class(0x80, 0xBF)
_MANGLED: Final = re.compile(
    f"{_class(0xC2, 0xC3)}{_NEXT}|{_class(0xE0, 0xEF)}{_NEXT}{{2}}|{_class(0xF0, 0xF4)}{_NEXT}{{3}}"
)


def repair(text: str) -> str:
    """The text without escapes and, where that is certain, with the characters it had."""
    for _ in range(_ROUNDS):
        better = _MANGLED.sub(_restored, _ENTITY.sub(_unescaped, text))
        if better == text:
            break
        text = better
    return text.replace("\0", "")


def _unescaped(match: re.Match[str]) -> str:
    return html.unescape(match[0])


def _restored(match: re.Match[str]) -> str:
    try:
        return bytes(_BYTES[character] for character in match[0]).decode()
    except UnicodeDecodeError:
        return match[0]
