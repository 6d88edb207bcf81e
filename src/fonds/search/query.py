"""What somebody typed: words to look for, phrases that must be there, and what to leave out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Words that stand in nearly every passage and say nothing about any of them.
STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in into is it its "
        "may must not of on or shall should such that the their there these they this to under "
        "was were what when where which who will with would",
    )
)

FIELDS: Final = ("source", "kind", "org", "title", "since", "until", "edition", "under")
"""What may stand before a colon; any other `word:` is a word like others."""

LONGEST: Final = 10_000
"""In characters; what is beyond says nothing that the beginning does not."""
MOST_TERMS: Final = 64
"""A longer query is cut: it is a pasted text, and its beginning says what it is about."""
LONGEST_WORD: Final = 128
"""In characters. Text without spaces is one word here, and thousands of pairs in the index."""

_PART: Final = re.compile(
    rf'(?P<minus>(?<!\S)-(?=[^\W_]|"))?'
    rf'(?:(?<!\S)(?P<field>{"|".join(FIELDS)}):(?="[^"]|[^\s"]))?'
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)|")',
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question in its parts."""

    text: str = ""
    """What a model is asked: the words as they were typed, without fields and exclusions."""
    terms: tuple[str, ...] = ()
    """Words that rank; any of them is enough. Stop words only when there is nothing else."""
    phrases: tuple[str, ...] = ()
    """Words in quotation marks: a passage without them is none."""
    excluded: tuple[str, ...] = ()
    """Words and phrases behind a minus sign: a passage with one of them is none."""
    fields: tuple[tuple[str, str], ...] = ()
    """`field:value` pairs, in order."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """All that a passage may be found by."""
        return (*self.phrases, *self.terms)

    def values(self, field: str) -> tuple[str, ...]:
        """The values given for one field."""
        return tuple(value for name, value in self.fields if name == field)


def read_query(typed: str) -> Query:
    """Take apart what was typed; whatever it is, it has a meaning, if only an empty one."""
    # Half characters and NUL are none, and no database takes them.
    clean = typed[:LONGEST].encode("utf-8", "replace").decode().replace("\0", " ")
    asked: list[str] = []
    phrases: list[str] = []
    words: list[str] = []
    excluded: list[str] = []
    fields: list[tuple[str, str]] = []
    for part in _PART.finditer(clean):
        value = (part["word"] or part["phrase"] or "").strip()
        if not value:
            continue
        if part["minus"]:
            excluded.append(_phrase(value))
        elif part["field"]:
            fields.append((part["field"].lower(), value))
            if part["field"].lower() == "title":
                asked.append(value)
                words += _words(value)
        else:
            asked.append(value)
            if part["phrase"]:
                phrases.append(_phrase(value))
            else:
                words += _words(value)
    telling = [word for word in words if word.lower() not in STOP_WORDS]
    terms = telling or ([] if any(phrases) else words)
    return Query(
        text=" ".join(asked),
        terms=_few(terms),
        phrases=_few(phrases),
        excluded=_few(excluded),
        fields=tuple(fields[:MOST_TERMS]),
    )


def _few(terms: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for term in terms if term))[:MOST_TERMS]


def _phrase(text: str) -> str:
    return " ".join(_words(text)[:MOST_TERMS])


def _words(text: str) -> list[str]:
    return [word[:LONGEST_WORD] for word in _WORD.findall(text)]
