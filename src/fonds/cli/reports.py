"""What came of runs, for people and for the shell."""

from __future__ import annotations

from fonds.cli.options import EXIT_FAILED, EXIT_INCOMPLETE
from fonds.cli.output import out, safe
from fonds.runs.state import Counts, RunReport, RunStatus


def print_reports(reports: list[RunReport]) -> None:
    """What came of runs, a line each."""
    for report in reports:
        if report.skipped:
            out.print(f"{report.source}: skipped: {safe(report.error_summary or '')}")
            continue
        out.print(
            f"{report.source}: {report.status} in {report.seconds:.1f} s: {summary(report.counts)}"
        )
        if report.error_summary:
            hint = f"(see: fonds errors {report.source})"
            out.print(f"  {safe(report.error_summary)} {hint}")


def exit_code(reports: list[RunReport]) -> int:
    """0 if all is there, 3 if something is missing, 1 if a source gave nothing at all."""
    states = {report.status for report in reports}
    if states <= {RunStatus.SUCCESS}:
        return 0
    skipped = any(report.skipped for report in reports)
    return EXIT_FAILED if states <= {RunStatus.FAILED} and not skipped else EXIT_INCOMPLETE


def summary(counts: Counts) -> str:
    """Counts in words, without those that are zero."""
    shown = {
        "found": counts.discovered,
        "fetched": counts.fetched,
        "new": counts.inserted,
        "updated": counts.updated,
        "unchanged": counts.skipped,
        "gone": counts.gone,
        "errors": counts.error,
    }
    words = [f"{number:,} {word}" for word, number in shown.items() if number]
    return ", ".join(words) or "nothing yet"
