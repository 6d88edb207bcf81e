"""Commands that keep a library well: look at it, count, and let go of what may go."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fonds.cli.options import EXIT_FAILED, AsJson
from fonds.cli.output import err, out, print_json, safe
from fonds.errors import UsageError

if TYPE_CHECKING:
    from fonds.upkeep.findings import Finding
    from fonds.upkeep.prune import Heap

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_SPANS: Final = {"d": "days", "w": "weeks", "h": "hours"}


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (doctor, prune, metrics):
        app.command()(command)


def doctor(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check everything fonds needs, and say what to do about what is wrong; exit 1 if it fails.

    \b
    Example: fonds doctor
    """
    from fonds.upkeep.doctor import examine  # noqa: PLC0415 — no other command needs it

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
    from fonds.upkeep.findings import Patient  # noqa: PLC0415 — few commands need it
    from fonds.upkeep.prune import hints  # noqa: PLC0415 — no other command needs it
    from fonds.upkeep.prune import prune as pruned  # noqa: PLC0415 — likewise

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
    from fonds.upkeep.findings import sized  # noqa: PLC0415 — few commands need it

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
    from fonds.upkeep.metrics import render  # noqa: PLC0415 — no other command needs it

    with context.obj.library() as library, library.database.read() as connection:
        sys.stdout.write(render(connection, library.seams.clock.now()))
