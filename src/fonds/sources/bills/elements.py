"""Fields of BILLSTATUS, whatever its version calls them; times, truth values and plain JSON."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.sources.families import xml_files

# Before June 2016 times were written "03:36PM".
_TWELVE_HOURS: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*([AP])M", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TRUE: Final = frozenset({"true", "y", "yes"})
_FALSE: Final = frozenset({"false", "n", "no"})
_NOON: Final = 12


def first(element: Any, *paths: str) -> str | None:
    """The first text at these paths; of a field that stands twice, one may be blank."""
    found = (text for path in paths for text in xml_files.texts(element, path))
    return next(found, None)


def number_at(element: Any, path: str) -> int | None:
    """The whole number at a path, or None."""
    return next(
        (
            found
            for item in element.findall(path)
            if (found := xml_files.whole(item, ".")) is not None
        ),
        None,
    )


def every(element: Any, *paths: str) -> list[Any]:
    """All elements at the first of these paths that has any."""
    return next((found for path in paths if (found := element.findall(path))), [])


def texts(element: Any, **paths: str) -> dict[str, str | None]:
    """A row of texts, each from the element of that name."""
    return {column: first(element, path) for column, path in paths.items()}


def day(value: str | None) -> str | None:
    """The date of a date or moment: `2019-11-19T05:00:00Z` is midnight in Washington."""
    found = _DATE.match(value or "")
    if found is None:
        return None
    try:
        return date.fromisoformat(found[0]).isoformat()
    except ValueError as error:
        raise MalformedError(f"{found[0]} is no day of any year") from error


def clock(value: str | None) -> str | None:
    """A time of day in 24 hours, however it was written."""
    found = _TWELVE_HOURS.fullmatch(value or "")
    if found is None:
        return value
    hour = int(found[1]) % _NOON + (_NOON if found[4].upper() == "P" else 0)
    return f"{hour:02}:{found[2]}:{found[3] or '00'}"


def truth(value: str | None) -> bool | None:
    """`True`, `Y`, `False`, `N`; None where nothing is said."""
    if value is None:
        return None
    folded = value.lower()
    if folded not in _TRUE | _FALSE:
        raise MalformedError(f"{value[:40]!r} should be true or false")
    return folded in _TRUE


def latest_action(element: Any) -> dict[str, str | None]:
    """The three columns about the last thing that happened."""
    return {
        "latest_action_date": first(element, "latestAction/actionDate"),
        "latest_action_time": clock(first(element, "latestAction/actionTime")),
        "latest_action_text": first(element, "latestAction/text"),
    }


def as_json(element: Any) -> Any:
    """An element as JSON: lists of `item` as lists, blank fields left out.

    A field that stands twice, as many do in format 1.0.0, is kept once, or as a list where the
    two differ.
    """
    children = [child for child in element if isinstance(child.tag, str)]
    if not children:
        return xml_files.whole_text(element)
    names = {child.tag for child in children}
    if len(names) == 1 and (names & {"item", "link", "recordedVote"}):
        return [value for child in children if (value := as_json(child)) is not None]
    found: dict[str, list[Any]] = {}
    for child in children:
        value = as_json(child)
        if value is not None and not child.tag.endswith("Counts"):
            found.setdefault(child.tag, []).append(value)
    return {name: _once(values) for name, values in found.items()} or None


def _once(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else values


def listed(element: Any, path: str) -> Any:
    """The element at a path as JSON, or None."""
    found = element.find(path)
    return None if found is None else as_json(found)


def from_json(name: str, value: Any) -> Any:
    """The same fields as api.congress.gov writes them, as the element the bulk files hold."""
    element = etree.Element(name)
    if isinstance(value, dict):
        element.extend(from_json(key, inner) for key, inner in value.items() if _is_name(key))
    elif isinstance(value, list):
        element.extend(from_json("item", inner) for inner in value)
    elif value is not None:
        element.text = _without_controls(str(value))
    return element


def _is_name(key: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", key) is not None


def _without_controls(text: str) -> str:
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
