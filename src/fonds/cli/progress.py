"""Progress of runs, a live line for each source on stderr, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress as Display
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from fonds.cli.output import EXIT_FAILED, EXIT_INCOMPLETE, err, out, safe
from fonds.runs.state import RunReport, RunStatus

if TYPE_CHECKING:
    from fonds.context import Progress
    from fonds.model import Counts


@contextmanager
def progress_display(*, quiet: bool) -> Iterator[Progress]:
    """A callback that draws progress; it does nothing if `quiet` or not on a terminal."""
    if quiet or not err.is_terminal:
        yield lambda _source, _counts: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Display(*columns, console=err, transient=True) as display:
        lines: dict[str, TaskID] = {}

        def draw(source: str, counts: Counts) -> None:
            if source not in lines:
                lines[source] = display.add_task(source, total=None)
            display.update(lines[source], description=f"{source}  {counts.summary()}")

        yield draw


def print_reports(reports: list[RunReport]) -> None:
    """Print the result of each run."""
    for report in reports:
        if report.skipped:
            out.print(f"{report.source}: skipped: {safe(report.error_summary or '')}")
            continue
        out.print(
            f"{report.source}: {report.status} in {report.seconds:.1f} s: {report.counts.summary()}"
        )
        if report.error_summary:
            hint = f"(see: fonds errors {report.source})"
            out.print(f"  {safe(report.error_summary)} {hint}")


def exit_code(reports: list[RunReport]) -> int:
    """0 if all runs succeeded, 1 if all failed, else 3."""
    states = {report.status for report in reports}
    if states <= {RunStatus.SUCCESS}:
        return 0
    skipped = any(report.skipped for report in reports)
    return EXIT_FAILED if states <= {RunStatus.FAILED} and not skipped else EXIT_INCOMPLETE
