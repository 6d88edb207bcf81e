"""Commands that keep a library well: look at it, count, and let go of what may go.

The command that proves on this machine that killing loses nothing.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fonds.cli.output import EXIT_FAILED, AsJson, err, out, print_json, print_table, safe
from fonds.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fonds.maintenance.findings import Finding
    from fonds.maintenance.prune import Heap
    from fonds.selftest.report import Part, SelftestReport, Violation
    from fonds.selftest.runner import SelftestPlan

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_SPANS: Final = {"d": "days", "w": "weeks", "h": "hours"}


def doctor(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check everything fonds needs, and say what to do about what is wrong; exit 1 if it fails.

    \b
    Example: fonds doctor
    """
    from fonds.maintenance.doctor import examine  # noqa: PLC0415 — no other command needs it

    findings = list(examine(context.obj.settings()))
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _print_findings(findings: Sequence[Finding]) -> None:
    widest = max(len(finding.check) for finding in findings)
    for group, some in groupby(findings, key=lambda finding: finding.group):
        out.print(f"[bold]{group}[/bold]")
        for one in some:
            style = _STYLES[one.status]
            status = f"[{style}]{one.status:4}[/{style}]"
            out.print(f"  {status}  {one.check:{widest}}  {safe(one.found)}")
            if one.advice:
                out.print(f"  {'':4}  {'':{widest}}  → {safe(one.advice)}")
    counted = [sum(one.status == status for one in findings) for status in _STYLES]
    out.print("\n{} ok, {} to look at, {} failed".format(*counted))


def prune(
    context: typer.Context,
    *,
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Delete it, or only say what may go.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Age of history and rendered pages that may go: 30d, 8w, 12h; "
            "by default the setting retention_days.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what may go, and delete it with --apply. What anything refers to always stays.

    \b
    Examples: fonds prune
              fonds prune --apply --older-than 90d
    """
    from fonds.maintenance.findings import Patient  # noqa: PLC0415 — few commands need it
    from fonds.maintenance.prune import hints  # noqa: PLC0415 — no other command needs it
    from fonds.maintenance.prune import prune as pruned  # noqa: PLC0415 — likewise

    with context.obj.library() as library:
        patient = Patient.of(library)
        days = library.settings.retention_days
        span = _span(older_than) if older_than else timedelta(days=days)
        heaps = list(pruned(patient, older_than=span, apply=apply))
        more = list(hints(patient))
    if as_json:
        print_json({"applied": apply, "heaps": heaps, "hints": more})
        return
    _print_heaps(heaps, more, apply=apply)


def _span(text: str) -> timedelta:
    named = re.fullmatch(r"(\d{1,5})([dwh])", text.strip().lower())
    if named is None:
        raise UsageError(f"{text!r} is not a span such as 30d, 8w or 12h")
    return timedelta(**{_SPANS[named[2]]: int(named[1])})


def _print_heaps(heaps: Sequence[Heap], more: Sequence[str], *, apply: bool) -> None:
    from fonds.maintenance.findings import sized  # noqa: PLC0415 — few commands need it

    for heap in heaps:
        size = "" if heap.bytes is None else f"  {sized(heap.bytes)}"
        out.print(f"{heap.count:>9,} [bold]{heap.name}[/bold]{size}  {heap.about}")
        for example in heap.examples:
            out.print(f"{'':10}{safe(example)}")
        if heap.left:
            out.print(f"{'':10}{heap.left:,} stay: their source is being run; prune again later")
    for hint in more:
        out.print(f"→ {safe(hint)}")
    if not apply and any(heap.count for heap in heaps):
        err.print("nothing was deleted; `fonds prune --apply` does it")


def metrics(context: typer.Context) -> None:
    """Print all figures as Prometheus reads them, for a text file of its node exporter.

    \b
    Example: fonds metrics > fonds.prom
    """
    from fonds.maintenance.metrics import render  # noqa: PLC0415 — no other command needs it

    with context.obj.library() as library, library.database.read() as connection:
        sys.stdout.write(render(connection, library.seams.clock.now()))


ROUNDS: Final = 4
"""How often each fault is tried that may hit anywhere."""
QUICK_KILLS: Final = 20
QUICK_SAMPLE: Final = 5
SEEDS: Final = 1_000_000
SHOWN: Final = 12
"""Lines of what differs, and of what was done before."""

_TITLES: Final[dict[Part, list[str]]] = {
    "chaos": ["step", "killed at"],
    "exhaustive": ["step", "struck at"],
    "faults": ["fault"],
}
_KEYS: Final[dict[Part, list[str]]] = {
    "chaos": ["step", "operation"],
    "exhaustive": ["step", "operation"],
    "faults": ["fault"],
}
"""What rows are about: as tables say it, and as JSON does."""


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (doctor, prune, metrics):
        app.command()(command)
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
        typer.Option(metavar="K", min=1, help="With --exhaustive: K of the operations, by chance."),
    ] = None,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="A full disk, a locked database, a torn write and others."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CASE", help="A case, or the words it begins with; may be repeated."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The same number, the same chances; else any."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the scratch folder is made, instead of /tmp."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep all libraries, not only what lost something.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Kill, starve and confuse libraries in a scratch folder; exit 1 if one loses anything.

    Each takes in the bundled upstream through every stage. Its processes are killed and made to
    fail; others go on, and in the end every row and file must be as if nothing had happened. Your
    own library is not touched. Without options some of everything is tried, in about a minute.

    \b
    Examples: fonds selftest
              fonds selftest --chaos 500
              fonds selftest --exhaustive --sample 20
              fonds selftest --faults --seed 7
    """
    from fonds.selftest.runner import SelftestPlan  # noqa: PLC0415 — no other command needs it

    if sample is not None and not exhaustive:
        raise UsageError("--sample says how much of --exhaustive is tried; give both")
    wanted = SelftestPlan(
        kills=chaos or 0,
        exhaustive=exhaustive,
        sample=sample,
        faults=ROUNDS if faults else 0,
        only=only or (),
        keep=keep,
    )
    if not wanted.kills and not exhaustive and not faults:
        if only:
            raise UsageError("--only takes a case of --chaos, --exhaustive or --faults; give both")
        wanted = replace(wanted, kills=QUICK_KILLS, exhaustive=True, sample=QUICK_SAMPLE, faults=1)
    report = _tried(wanted, seed, folder, quiet=as_json)
    if as_json:
        print_json(plain_report(report))
    else:
        print_report(report)
    if report.violations:
        raise typer.Exit(EXIT_FAILED)


def _tried(
    wanted: SelftestPlan, seed: int | None, folder: Path | None, *, quiet: bool
) -> SelftestReport:
    from fonds.selftest.runner import selftest as tried  # noqa: PLC0415 — as above

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="fonds-selftest-", dir=folder))
    began = SystemRandom().randrange(SEEDS) if seed is None else seed
    is_kept = True
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing is left running
    try:
        with _progress(quiet=quiet) as watch:
            report = tried(wanted, scratch, seed=began, watch=watch)
        is_kept = wanted.keep or bool(report.violations)
    except UsageError:
        is_kept = False
        raise
    finally:
        if is_kept:
            err.print(f"kept: {scratch}", markup=False)
        else:
            shutil.rmtree(scratch)
    return report


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[SelftestReport], None]]:
    """A line that says how far it is; silent where nobody watches."""
    if quiet or not err.is_terminal:
        yield lambda _report: None
        return
    with err.status("an undisturbed library is made first") as line:
        yield lambda report: line.update(
            f"{report.tried:,} of {report.planned:,} libraries: {_summary(report)}"
        )


def _summary(report: SelftestReport) -> str:
    tried = {
        "kill": report.total("chaos", "before", "during"),
        "struck operation": report.total("exhaustive", "killed", "failed"),
        "fault": report.total("faults", "tried"),
    }
    found = {name: number for name, number in tried.items() if number}
    found["violation"] = len(report.violations)
    return ", ".join(f"{number:,} {name}{'s' * (number != 1)}" for name, number in found.items())


def print_report(report: SelftestReport) -> None:
    """Tables, then what was lost and how to lose it again, then the verdict."""
    from fonds.selftest.report import COLUMNS  # noqa: PLC0415 — as above

    for part, titles in _TITLES.items():
        if rows := sorted(report.rows(part), key=_by):
            cells = [(*point[: len(titles)], *counts.values()) for *point, counts in rows]
            print_table([*titles, *COLUMNS[part]], cells)
            out.print()
    for fault, why in report.skipped.items():
        out.print(f"not tried: {fault}: {why}")
    for violation in report.violations:
        _print_violation(violation)
    out.print(_verdict(report))
    out.print(f"{_summary(report)}, seed {report.seed}, {report.seconds:,.0f} s")


def _verdict(report: SelftestReport) -> str:
    if lost := len(report.violations):
        return (
            f"[bold red]{lost:,} of {report.tried:,} libraries did not come out as they should[/]"
        )
    return "Nothing was lost: every library is as if nobody had disturbed it."


def _by(row: tuple[str, str, Any]) -> tuple[int, str, str]:
    from fonds.selftest.scenario import OPENING, STEPS  # noqa: PLC0415 — as above

    order = [OPENING, *STEPS]
    where, what, _ = row
    return (order.index(where) if where in order else len(order)), where, what


def _print_violation(violation: Violation) -> None:
    out.print(f"[bold red]VIOLATION[/] {safe(violation.case)}")
    for line in violation.history[-SHOWN:]:
        out.print(f"  {safe(line)}")
    for line in violation.says[:SHOWN]:
        out.print(f"  → {safe(line)}")
    if len(violation.says) > SHOWN:
        out.print(f"  → {len(violation.says) - SHOWN:,} more")
    out.print(f"  replay: {violation.replay}", markup=False)
    out.print(f"  library: {violation.folder}", markup=False)


def plain_report(report: SelftestReport) -> dict[str, Any]:
    """The same for a program."""
    tables: dict[str, Any] = {
        part: [
            {**dict(zip(keys, point, strict=False)), **counts}
            for *point, counts in report.rows(part)
        ]
        for part, keys in _KEYS.items()
    }
    return {
        "seed": report.seed,
        "seconds": round(report.seconds, 1),
        "libraries": report.tried,
        **tables,
        "skipped": report.skipped,
        "violations": [asdict(each) for each in report.violations],
    }
