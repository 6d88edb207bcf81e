"""A citation found in a text."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "usc",
    "cfr",
    "public_law",
    "stat",
    "bill",
    "fr",
    "crs",
    "gao",
    "report",
    "eo",
    "case",
    "conn_gen_stat",
    "dc_code",
]


class Found(NamedTuple):
    """One citation: where it stands, how it is written there, and what it names."""

    start: int
    end: int
    raw: str
    """Equal to `text[start:end]`."""
    kind: Kind
    target: str
    """The form of `citations.forms`; for a bill of an unknown Congress without the Congress."""
    pinpoint: str | None = None
    """The place within the target: subsections, a page, a part of a report."""


def found_at(
    text: str, start: int, end: int, *, kind: Kind, target: str, pinpoint: str | None = None
) -> Found:
    """The citation in `text[start:end]`."""
    place = pinpoint.strip(" ,") if pinpoint else None
    return Found(start, end, text[start:end], kind, target, place or None)
