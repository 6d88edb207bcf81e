"""Regular expressions over the markup of a page, given up when they take too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from fonds.errors import UsageError

_LONGEST: Final = 500
_TEXT: Final = 4 << 20
_MOST: Final = 20_000
_MOST_REPEATS: Final = 5_000
_PATTERN_SECONDS: Final = 2.0
"""Seconds; the standard library's engine cannot be stopped, whatever it is given."""


@lru_cache(maxsize=64)
def pattern(expression: str) -> Any:
    """The expression, compiled; UsageError says what is wrong with it."""
    if not expression or len(expression) > _LONGEST:
        raise UsageError(f"a regular expression has 1 to {_LONGEST} characters")
    # Its stubs are a package of their own, and few strategies need it.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        re.compile(expression)
        _refuse_large(expression)
        return regex.compile(expression)
    except (re.error, regex.error, OverflowError, RecursionError, ValueError) as error:
        raise UsageError(f"no regular expression: {expression!r}: {error}") from None


def _refuse_large(expression: str) -> None:
    # Counted repeats are written out when compiled: three of them, each in the other, take all
    # memory there is. Other braces would be this engine's fuzzy matching.
    repeats = 1
    for brace in re.finditer(r"(?<!\\)\{([^}]*)\}?", expression):
        counts = re.fullmatch(r"(\d*),?(\d*)", brace[1])
        if counts is None:
            raise UsageError(f"the braces in {expression!r} are no repeat: escape them")
        repeats *= max(1, *(int(each or 1) for each in counts.groups()))
    if repeats > _MOST_REPEATS:
        raise UsageError(f"the regular expression {expression!r} repeats too much")


def matches(expression: str, text: str) -> Iterator[tuple[int, str]]:
    """Where each match begins and its first group, or all of it where it has none."""
    compiled = pattern(expression)
    try:
        for found, match in enumerate(compiled.finditer(text[:_TEXT], timeout=_PATTERN_SECONDS)):
            if found >= _MOST:
                return
            told = match[1] if compiled.groups and match[1] is not None else match[0]
            yield match.start(), told
    except TimeoutError:
        raise UsageError(f"the regular expression {expression!r} takes too long") from None
