"""The command that proves on this machine that killing fonds loses nothing."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import SystemRandom
from typing import Annotated, Any, Final

import typer

from fonds.cli.output import EXIT_FAILED, AsJson, err, out, print_json, print_table, safe
from fonds.errors import UsageError
from fonds.selftest.report import COLUMNS, Part, SelftestReport, Violation
from fonds.selftest.runner import SelftestPlan
from fonds.selftest.runner import selftest as run_selftest
from fonds.selftest.scenario import OPENING, STEPS

FAULT_ROUNDS: Final = 4
"""How often a fault that may hit any operation is tried with `--faults`."""
QUICK_KILLS: Final = 20
QUICK_SAMPLE: Final = 5
MAX_RANDOM_SEED: Final = 1_000_000
MAX_VIOLATION_LINES: Final = 12

_HEADINGS: Final[dict[Part, list[str]]] = {
    "chaos": ["step", "killed at"],
    "exhaustive": ["step", "failed at"],
    "faults": ["fault"],
}
_KEYS: Final[dict[Part, list[str]]] = {
    "chaos": ["step", "operation"],
    "exhaustive": ["step", "operation"],
    "faults": ["fault"],
}
"""Headings of the leading columns in tables, and their keys in JSON."""


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(selftest)


def selftest(
    *,
    chaos: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Kill processes at N random points.")
    ] = None,
    exhaustive: Annotated[
        bool,
        typer.Option("--exhaustive", help="Kill and fail at every durable operation, one by one."),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="With --exhaustive: only K random operations."),
    ] = None,
    faults: Annotated[
        bool,
        typer.Option(
            "--faults", help="Inject faults: a full disk, a locked database, a torn write, …"
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CASE", help="Only this case, or cases that begin so; repeatable."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Seed of all random choices; default: a random one."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Create the scratch folder here instead of in /tmp."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep all libraries, not only those with violations.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Kill and fault scratch libraries; exit 1 if data is lost.

    Each library ingests the bundled upstream through all stages. Its processes are killed and made
    to fail, other processes continue, and at the end every row and file must be the same as in an
    undisturbed library. Your own library is not touched. Without options a sample of all cases
    runs, in about a minute.

    \b
    Examples: fonds selftest
              fonds selftest --chaos 500
              fonds selftest --exhaustive --sample 20
              fonds selftest --faults --seed 7
    """
    if sample is not None and not exhaustive:
        raise UsageError("--sample limits --exhaustive; pass both options")
    plan = SelftestPlan(
        kills=chaos or 0,
        exhaustive=exhaustive,
        sample=sample,
        faults=FAULT_ROUNDS if faults else 0,
        only=only or (),
        keep=keep,
    )
    if not plan.kills and not exhaustive and not faults:
        if only:
            raise UsageError(
                "--only selects cases of --chaos, --exhaustive or --faults; pass one too"
            )
        plan = replace(plan, kills=QUICK_KILLS, exhaustive=True, sample=QUICK_SAMPLE, faults=1)
    report = _run(plan, seed, folder, quiet=as_json)
    if as_json:
        print_json(report_fields(report))
    else:
        print_report(report)
    if report.violations:
        raise typer.Exit(EXIT_FAILED)


def _run(
    plan: SelftestPlan, seed: int | None, folder: Path | None, *, quiet: bool
) -> SelftestReport:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="fonds-selftest-", dir=folder))
    if seed is None:
        seed = SystemRandom().randrange(MAX_RANDOM_SEED)
    keep_scratch = True
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that child processes are ended
    try:
        with _progress(quiet=quiet) as watch:
            report = run_selftest(plan, scratch, seed=seed, watch=watch)
        keep_scratch = plan.keep or bool(report.violations)
    except UsageError:
        keep_scratch = False
        raise
    finally:
        if keep_scratch:
            err.print(f"scratch folder kept: {scratch}", markup=False)
        else:
            shutil.rmtree(scratch)
    return report


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[SelftestReport], None]]:
    """Show progress in one line if stderr is a terminal."""
    if quiet or not err.is_terminal:
        yield lambda _report: None
        return
    with err.status("making the undisturbed library") as line:
        yield lambda report: line.update(
            f"{report.tried:,} of {report.planned:,} libraries: {_summary(report)}"
        )


def _summary(report: SelftestReport) -> str:
    counts = {
        "kill": report.total("chaos", "before", "during"),
        "failed operation": report.total("exhaustive", "killed", "failed"),
        "fault": report.total("faults", "tried"),
    }
    counts = {name: number for name, number in counts.items() if number}
    counts["violation"] = len(report.violations)
    return ", ".join(f"{number:,} {name}{'s' * (number != 1)}" for name, number in counts.items())


def print_report(report: SelftestReport) -> None:
    """Print the counts, each violation with the command that repeats it, and the verdict."""
    for part, headings in _HEADINGS.items():
        if rows := sorted(report.rows(part), key=_step_order):
            cells = [(*location[: len(headings)], *counts.values()) for *location, counts in rows]
            print_table([*headings, *COLUMNS[part]], cells)
            out.print()
    for fault, reason in report.skipped.items():
        out.print(f"not tried: {fault}: {reason}")
    for violation in report.violations:
        _print_violation(violation)
    out.print(_verdict(report))
    out.print(f"{_summary(report)}, seed {report.seed}, {report.seconds:,.0f} s")


def _verdict(report: SelftestReport) -> str:
    if lost := len(report.violations):
        return (
            f"[bold red]{lost:,} of {report.tried:,} libraries differ from the undisturbed one[/]"
        )
    return "Nothing was lost: every library equals the undisturbed one."


def _step_order(row: tuple[str, str, Any]) -> tuple[int, str, str]:
    steps = [OPENING, *STEPS]
    step, operation, _ = row
    return (steps.index(step) if step in steps else len(steps)), step, operation


def _print_violation(violation: Violation) -> None:
    out.print(f"[bold red]VIOLATION[/] {safe(violation.case)}")
    for line in violation.history[-MAX_VIOLATION_LINES:]:
        out.print(f"  {safe(line)}")
    for line in violation.says[:MAX_VIOLATION_LINES]:
        out.print(f"  → {safe(line)}")
    if len(violation.says) > MAX_VIOLATION_LINES:
        out.print(f"  → {len(violation.says) - MAX_VIOLATION_LINES:,} more")
    out.print(f"  replay: {violation.replay}", markup=False)
    out.print(f"  library: {violation.folder}", markup=False)


def report_fields(report: SelftestReport) -> dict[str, Any]:
    """The report as JSON values."""
    tables: dict[str, Any] = {
        part: [
            {**dict(zip(keys, location, strict=False)), **counts}
            for *location, counts in report.rows(part)
        ]
        for part, keys in _KEYS.items()
    }
    return {
        "seed": report.seed,
        "seconds": round(report.seconds, 1),
        "libraries": report.tried,
        **tables,
        "skipped": report.skipped,
        "violations": [asdict(violation) for violation in report.violations],
    }
