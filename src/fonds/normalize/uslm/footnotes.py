"""Footnotes of United States Legislative Markup: their signs and their places.

A footnote that its publisher put between two blocks, or at the end of one, is a footnote of
GitHub-flavoured Markdown: `[^1]` at the call, `[^1]: …` where the note stands. One in the middle of
a sentence or in a cell is written right there, as print shows it with its own number and set apart
as marginal notes are: `of the<sup>1</sup> *[1 So in original.]* law`. Behind its paragraph it would
have left its place in the text, and a passage cut between the two would lose it; a definition on
the spot would break the sentence into two paragraphs; a hidden copy would say the words twice. The
headings of sections stay free of notes, for they are quoted as locators: theirs follow as a block.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from fonds.normalize.uslm import vocabulary as words
from fonds.normalize.xhtml_table import local_name

FOOTNOTES: Final = frozenset({"footnote", "endnote"})
"""The types of notes that stand at the foot of a page."""

_NO_SIGN: Final = re.compile(r"[\s,\[\]\\|^]+")
_SAME_LINE: Final = words.RUN_IN | words.NUMBERED
# Of a note: the block, its paragraph, and the sign in it.
_DEEPEST_SIGN: Final = 3
# A block that goes on for more elements without a word is none anybody printed.
_LONGEST_ENDING: Final = 8


def sign_of(element: Any) -> str:
    """The number or symbol of a call or of a note, fit for a label."""
    return _NO_SIGN.sub("", "".join(element.itertext()))


def sign_element(note: Any) -> Any:
    """The element of the number a note begins with, in whatever block it stands; or None."""
    for _ in range(_DEEPEST_SIGN):
        if not len(note) or (note.text or "").strip():
            return None
        note = note[0]
        name = local_name(note)
        if name in {"num", "sup"} or (name == "ref" and note.get("idref")):
            return note
    return None


def footnote_sign(note: Any) -> str:
    """The number of a note, empty if it has none."""
    element = sign_element(note)
    return "" if element is None else sign_of(element)


def interrupts(note: Any) -> bool:
    """Whether words of the same block follow a note."""
    element = note
    while element is not None and local_name(element) not in words.BLOCK_LEVEL:
        if _has_words(element.tail):
            return True
        for sibling in islice(element.itersiblings(), _LONGEST_ENDING):
            name = local_name(sibling)
            if name in words.BLOCK_LEVEL and name not in _SAME_LINE:
                return False
            if not _is_footnote(sibling) and any(map(_has_words, sibling.itertext())):
                return True
            if _has_words(sibling.tail):
                return True
        element = element.getparent()
    return False


def _is_footnote(element: Any) -> bool:
    return local_name(element) == "footnote" or element.get("type") in FOOTNOTES


def _has_words(text: str | None) -> bool:
    return text is not None and any(map(str.isalnum, text))
