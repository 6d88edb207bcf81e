"""What stands in an element of USLM as its line is printed, without what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError

# Marginal notes, page marks and footnotes stand inside titles and headings since 2020.
_BESIDE: Final = frozenset({"sidenote", "page", "footnote", "editorialNote"})
_SOFT_HYPHEN: Final = "\u00ad"
_DAY: Final = re.compile(r"([A-Z][a-z]+) ([0-9]{1,2}), ([0-9]{4})")


def printed(element: Any | None) -> str | None:
    """The words of an element on one line; None where there are none."""
    if element is None:
        return None
    text = "".join(_pieces(element)).replace(_SOFT_HYPHEN, "")
    return " ".join(text.split()) or None


def printed_all(root: Any, path: str) -> list[str]:
    """The words of all elements at a path, without blank ones."""
    return [text for element in root.findall(path) if (text := printed(element))]


def iso_day(stated: str | None) -> date | None:
    """A day as an attribute or `meta` states it; None where it does not."""
    if not stated:
        return None
    try:
        return date.fromisoformat(stated)
    except ValueError:
        raise MalformedError(f"{stated[:40]!r} is no ISO date") from None


def written_day(text: str | None) -> date | None:
    """The first day a text names, such as `March 27, 2017`."""
    found = _DAY.search(text or "")
    if found is None:
        return None
    try:
        return datetime.strptime(found[0], "%B %d, %Y").replace(tzinfo=UTC).date()
    except ValueError:
        return None


def _pieces(root: Any) -> Iterator[str]:
    # By events, not by recursion: quoted structures nest as deep as they like.
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event == "start":
            if element is not root and etree.QName(element).localname in _BESIDE:
                walk.skip_subtree()
            else:
                yield element.text or ""
        elif element is not root:
            yield element.tail or ""
