"""Characters that GPO's text spells out, since it is typed in ASCII: `<greek-m>`, `<bullet>`."""

from __future__ import annotations

import re
from typing import Final

# GPO publishes no list. A letter is read where only one Greek letter is written so in English and
# in fonts of symbols; `<greek-h>` or `<greek-y>` may be two of them. `<gr-thn-eq>` is kept, too:
# besides ≥ it was set for the sign of inches.
_GREEK: Final = {
    **dict(zip("abgdeziklmnprst", "αβγδεζικλμνπρστ", strict=True)),
    "th": "θ",
    "ph": "φ",
    "ch": "χ",
    "ps": "ψ",
}
_SIGNS: Final = {"bullet": "•", "plus-minus": "±"}
_SYMBOL_CODE: Final = re.compile(
    r"<(?:greek-([A-Za-z]{1,2})|bullet|[a-z]{2,8}(?:-[a-z]{2,8}){1,3})>"
)


def spelled_out(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with the characters that are meant, and a warning of codes that stay as they are."""
    unread: dict[str, None] = {}

    def character(code: re.Match[str]) -> str:
        read = _greek(code[1]) if code[1] else _SIGNS.get(code[0][1:-1])
        if read is None:
            unread.setdefault(code[0])
        return read or code[0]

    text = _SYMBOL_CODE.sub(character, text)
    warning = f"typesetting codes left as they are: {', '.join(unread)}"
    return text, (warning,) if unread else ()


def _greek(name: str) -> str | None:
    letter = _GREEK.get(name.lower())
    return letter.upper() if letter and name[0].isupper() else letter
