"""A citation as somebody types it, read as what it names; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fonds.citations.extract import extract
from fonds.citations.extract_found import Found, Kind

LONGEST: Final = 1_000
"""Characters of the longest citation; whatever is longer is a text."""
MOST: Final = 20
"""Citations of one list that are followed."""

_SOME_CONGRESS: Final = 119
_NAME_BEGINS: Final = re.compile(r"(?<![\w-])[a-z]")
_YEAR: Final = re.compile(r"[ ]?\((?:[^()]{0,30}[ ])?(?P<year>(?:17|18|19|20)\d\d)\)")
_WITHIN: Final = re.compile(
    r",?\s?(?:§§?|[Ss]ec(?:tion|s?\.)?)\s?(?P<section>\d[\w.-]{0,12}?)(?P<labels>(?:\([0-9A-Za-z]{1,5}\))*)"
    r"(?=[\s,;.)]|\Z)"
)


class Reading(NamedTuple):
    """What a citation names."""

    kind: Kind
    target: str
    """The form by which documents are known; a bill of an unknown Congress comes without it."""
    pinpoint: str | None = None
    year: str | None = None
    """In parentheses behind it: of the edition, where it cites a code."""

    @property
    def has_no_congress(self) -> bool:
        """Whether it is a bill that any Congress may have had."""
        return self.kind == "bill" and not self.target[0].isdigit()


def read_citation(typed: str) -> list[Reading]:
    """The citations in what somebody typed, in order; none is an empty list."""
    if not typed or len(typed) > LONGEST:
        return []
    for spelled in _spellings(typed):
        if found := extract(spelled)[:MOST]:
            return [_reading(spelled, one) for one in found]
    return _bill(typed)


def names_one_thing(typed: str) -> bool:
    """Whether a text is a citation and nothing beside it."""
    for spelled in _spellings(typed):
        if found := extract(spelled):
            first, last = found[0], found[-1]
            year = _YEAR.match(spelled, last.end)
            beside = spelled[: first.start] + spelled[year.end() if year else last.end :]
            return not any(map(str.isalnum, beside))
    return bool(_bill(typed))


def _spellings(typed: str) -> Iterator[str]:
    """As typed; with capitals where names begin; in capitals. `12-704e` stays what it is."""
    yield typed
    yield _NAME_BEGINS.sub(lambda letter: letter[0].upper(), typed)
    yield typed.upper()


def _bill(typed: str) -> list[Reading]:
    """`S 567` and `HR 2024` are bills if nothing else was typed; a text could mean a year."""
    for spelled in _spellings(typed):
        match extract(f"{spelled}, {_SOME_CONGRESS}th Cong."):
            case [Found(start=0, kind="bill", target=target)]:
                return [Reading("bill", target.partition(" ")[2])]
    return []


def _reading(text: str, found: Found) -> Reading:
    pinpoint = found.pinpoint
    if pinpoint is None and found.kind in {"public_law", "bill"}:
        within = _WITHIN.match(text, found.end)
        pinpoint = f"§ {within['section']}{within['labels']}" if within else None
    year = _YEAR.match(text, found.end)
    return Reading(found.kind, found.target, pinpoint, year["year"] if year else None)
