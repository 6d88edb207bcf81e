"""How results reach people and machines: tables or JSON on stdout, everything else on stderr."""

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

# A pipe has no margin at which lines would have to be folded.
_UNFOLDED: Final = 10_000

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _UNFOLDED)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document, indented for a terminal and compact for a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(plain(value), indent=indent, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """Anything we hand out, as JSON values."""
    if hasattr(value, "model_dump"):  # of pydantic, which few commands need
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, date):
        return _timestamp(value) if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _timestamp(moment: datetime) -> str:
    from fonds.stores.columns import format_timestamp  # noqa: PLC0415 — brings SQLAlchemy

    return format_timestamp(moment)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    prose: Sequence[str] = (),
) -> None:
    """A plain table; columns of `prose` may wrap, and what is still too wide becomes a list."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    cells = [list(row) for row in rows]
    for index, heading in enumerate(headings):
        numeric = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        table.add_column(
            heading, justify="right" if numeric else "left", no_wrap=heading not in prose
        )
    for row in cells:
        table.add_row(*[_cell(value) for value in row])
    unfolded = out.options.update(max_width=_UNFOLDED)
    if Measurement.get(out, unfolded, table).minimum <= out.width:
        out.print(table)
    else:
        _print_list(headings, cells, title)


def _print_list(headings: Sequence[str], rows: Sequence[Sequence[Any]], title: str) -> None:
    if title:
        out.print(title, style="italic")
    widest = max(map(len, headings))
    for row in rows:
        for heading, value in zip(headings, row, strict=True):
            out.print(f"[bold]{heading:{widest}}[/bold]  {_cell(value)}")
        out.print()


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return str(value)


# Escape sequences, and marks that reverse the order in which a line is read.
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Text from a document or an upstream, unable to move the terminal's cursor."""
    return _HARMFUL.sub("\ufffd", text)


def safe(text: str) -> str:
    """The same, unable to style what is printed with `out` and `err`."""
    return escape(harmless(text))


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
