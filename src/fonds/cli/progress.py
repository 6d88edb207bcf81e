"""A live line for each source being run, on stderr; silent where nobody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress as Display
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from fonds.cli.output import err
from fonds.cli.reports import summary

if TYPE_CHECKING:
    from fonds.runs.context import Progress
    from fonds.runs.state import Counts


@contextmanager
def progress_display(*, quiet: bool) -> Iterator[Progress]:
    """A callback that draws; `quiet` and pipes get one that does nothing."""
    if quiet or not err.is_terminal:
        yield lambda _source, _counts: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Display(*columns, console=err, transient=True) as display:
        lines: dict[str, TaskID] = {}

        def draw(source: str, counts: Counts) -> None:
            if source not in lines:
                lines[source] = display.add_task(source, total=None)
            display.update(lines[source], description=f"{source}  {summary(counts)}")

        yield draw
