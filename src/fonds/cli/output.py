"""How results reach people and machines: tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from fonds.stores.columns import format_timestamp

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document, indented for a terminal and compact for a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(plain(value), indent=indent, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """Anything we hand out, as JSON values."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, date):
        return format_timestamp(value) if isinstance(value, datetime) else value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """A plain table; numbers are set flush right."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    cells = [list(row) for row in rows]
    for index, heading in enumerate(headings):
        numeric = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*[_cell(value) for value in row])
    out.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return str(value)


def safe(text: str) -> str:
    """Text from a document or an upstream, unable to style or move the terminal's cursor."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return shown.replace("[", r"\[")
