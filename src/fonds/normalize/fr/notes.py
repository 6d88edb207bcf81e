"""Footnotes as GPO sets them: `SU` and `FTREF` at the call, `FTNT` with `SU` for the note."""

from __future__ import annotations

import re
from typing import Any, Final

_NO_SIGN: Final = re.compile(r"[\s,\[\]\\|^]+")


def leading_sign(footnote: Any) -> Any:
    """The `SU` a footnote begins with, or None."""
    first = next(footnote.iterchildren("*"), None)
    if first is None or (footnote.text or "").strip():
        return None
    if first.tag != "SU":
        if (first.text or "").strip():
            return None
        first = next(first.iterchildren("*"), None)
    return first if first is not None and first.tag == "SU" and signs(first) else None


def signs(element: Any) -> list[str]:
    """The printed signs: usually one number, sometimes `12 13` or `*`."""
    return _NO_SIGN.sub(" ", "".join(element.itertext())).split()


def is_reference(element: Any) -> bool:
    """Whether FTREF follows, which tells a footnote's number from an exponent."""
    following = element.getnext()
    if following is None and (parent := element.getparent()) is not None and parent.tag == "E":
        following = parent.getnext()
    referring = following is not None and following.tag == "FTREF"
    return referring and not (element.tail or "").strip() and bool(signs(element))
