"""Output of commands: results as tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from fonds.errors import UsageError

# Lines are wrapped for a terminal only.
_UNWRAPPED: Final = 10_000

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _UNWRAPPED)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document, indented on a terminal and compact in a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(to_json_value(value), indent=indent, ensure_ascii=False) + "\n")


def to_json_value(value: Any) -> Any:
    """A record, or anything made of records, as JSON values."""
    if hasattr(value, "model_dump"):  # a model of pydantic, which few commands import
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return to_json_value(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(item) for item in value]
    if isinstance(value, date):
        return _timestamp(value) if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _timestamp(value: datetime) -> str:
    from fonds.stores.columns import format_timestamp  # noqa: PLC0415 — imports SQLAlchemy

    return format_timestamp(value)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    prose: Sequence[str] = (),
) -> None:
    """Print a table. Columns of `prose` may wrap; a table that is still too wide becomes a list."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    cells = [list(row) for row in rows]
    for index, heading in enumerate(headings):
        numeric = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        table.add_column(
            heading, justify="right" if numeric else "left", no_wrap=heading not in prose
        )
    for row in cells:
        table.add_row(*[_cell(value) for value in row])
    unwrapped = out.options.update(max_width=_UNWRAPPED)
    if Measurement.get(out, unwrapped, table).minimum <= out.width:
        out.print(table)
    else:
        _print_list(headings, cells, title)


def _print_list(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    if title:
        out.print(title, style="italic")
    width = max(map(len, headings))
    for row in rows:
        for heading, value in zip(headings, row, strict=True):
            out.print(f"[bold]{heading:{width}}[/bold]  {_cell(value)}")
        out.print()


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return str(value)


# Control characters, and marks that reverse the direction of text.
_CONTROL_CHARACTERS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    """Text of a document or an upstream without control characters."""
    return _CONTROL_CHARACTERS.sub("\ufffd", text)


def safe(text: str) -> str:
    """The same, with markup of `out` and `err` escaped."""
    return escape(harmless(text))


EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INCOMPLETE: Final = 3
EXIT_STOPPED: Final = 130

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="See `fonds sources`.")]
AsUser = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="Include the uploads of this user."),
]
Since = Annotated[str | None, typer.Option(metavar="DATE", help="First day, YYYY-MM-DD.")]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Last day, YYYY-MM-DD.")]


def day(text: str | None) -> date | None:
    """A day as typed by a user."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"invalid day {text!r}: expected YYYY-MM-DD") from error
