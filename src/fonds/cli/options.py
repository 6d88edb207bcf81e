"""Options and exit codes that several commands share."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final

import typer

from fonds.errors import UsageError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INCOMPLETE: Final = 3

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="See `fonds sources`.")]
AsUser = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="See what this user has uploaded, too."),
]
Since = Annotated[str | None, typer.Option(metavar="DATE", help="First day, YYYY-MM-DD.")]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Last day, YYYY-MM-DD.")]


def day(text: str | None) -> date | None:
    """A day as somebody typed it."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"{text!r} is not a day of the form YYYY-MM-DD") from error
