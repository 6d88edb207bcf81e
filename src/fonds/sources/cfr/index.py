"""eCFR's list of titles, and the days up to which it holds their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fonds.errors import UsageError, WrongContentError
from fonds.sources.families import fields
from fonds.sources.families.congress_gov import read_object
from fonds.sources.jurisdiction import TocNode

INDEX: Final = "api/versioner/v1/titles.json"


def newest_day(data: bytes) -> str:
    """The latest day that eCFR has the text of."""
    days = [_up_to(title) for title in _titles(data)]
    return max(days)


def titles(data: bytes, version: str) -> Iterator[TocNode]:
    """The titles that are not reserved, as of a day.

    A title that lags behind is taken as of the last day there is of it; it is refused for later
    ones.
    """
    for title in _titles(data):
        number, day = fields.required(title, "number"), min(version, _up_to(title))
        yield TocNode(
            kind="title",
            number=number,
            label=f"Title {number}—{fields.required(title, 'name')}",
            pages=(f"api/versioner/v1/full/{day}/title-{number}.xml",),
        )


def _titles(data: bytes) -> list[Mapping[str, Any]]:
    listed = read_object(data, INDEX).get("titles")
    if not isinstance(listed, list) or not all(isinstance(title, Mapping) for title in listed):
        raise WrongContentError(f"{INDEX} holds no list of titles")
    in_force = [title for title in listed if not title.get("reserved")]
    if not in_force:
        raise WrongContentError(f"{INDEX} lists no title that is not reserved")
    return in_force


def _up_to(title: Mapping[str, Any]) -> str:
    day = fields.text(title, "up_to_date_as_of")
    if day is None:
        number = fields.required(title, "number")
        raise UsageError(f"eCFR does not say up to which day it has title {number}; try later")
    return day
