"""Commands that maintain a library: check it, count it, delete what is no longer needed."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fonds.cli.output import EXIT_FAILED, AsJson, err, out, print_json, safe
from fonds.errors import UsageError
from fonds.maintenance.findings import MaintenanceTarget, sized
from fonds.maintenance.prune import Prunable, hints
from fonds.maintenance.prune import prune as prune_library

if TYPE_CHECKING:
    from fonds.maintenance.findings import Finding

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_UNITS: Final = {"d": "days", "w": "weeks", "h": "hours"}


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (doctor, prune, metrics):
        app.command()(command)


def doctor(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check the installation and the library; exit 1 on failure.

    Each finding that is not in order comes with advice.

    \b
    Example: fonds doctor
    """
    from fonds.maintenance.doctor import examine  # noqa: PLC0415 — other commands start 80 ms faster

    findings = list(examine(context.obj.settings()))
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _print_findings(findings: Sequence[Finding]) -> None:
    width = max(len(finding.check) for finding in findings)
    for group, findings_of_group in groupby(findings, key=lambda finding: finding.group):
        out.print(f"[bold]{group}[/bold]")
        for finding in findings_of_group:
            style = _STYLES[finding.status]
            status = f"[{style}]{finding.status:4}[/{style}]"
            out.print(f"  {status}  {finding.check:{width}}  {safe(finding.found)}")
            if finding.advice:
                out.print(f"  {'':4}  {'':{width}}  → {safe(finding.advice)}")
    counts = [sum(finding.status == status for finding in findings) for status in _STYLES]
    out.print("\n{} ok, {} warnings, {} failed".format(*counts))


def prune(
    context: typer.Context,
    *,
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Delete, or only list what can be deleted.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Delete history and rendered pages older than this: 30d, 8w, 12h; "
            "default: the setting retention_days.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what can be deleted; delete it with --apply.

    Nothing is deleted that a row or file still refers to.

    \b
    Examples: fonds prune
              fonds prune --apply --older-than 90d
    """
    with context.obj.library() as library:
        target = MaintenanceTarget.of(library)
        days = library.settings.retention_days
        span = _span(older_than) if older_than else timedelta(days=days)
        prunables = list(prune_library(target, older_than=span, apply=apply))
        more = list(hints(target))
    if as_json:
        print_json({"applied": apply, "heaps": prunables, "hints": more})
        return
    _print_prunables(prunables, more, apply=apply)


def _span(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([dwh])", text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is not a time span such as 30d, 8w or 12h")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _print_prunables(prunables: Sequence[Prunable], more: Sequence[str], *, apply: bool) -> None:
    for prunable in prunables:
        size = "" if prunable.bytes is None else f"  {sized(prunable.bytes)}"
        out.print(f"{prunable.count:>9,} [bold]{prunable.name}[/bold]{size}  {prunable.about}")
        for example in prunable.examples:
            out.print(f"{'':10}{safe(example)}")
        if prunable.left:
            out.print(f"{'':10}{prunable.left:,} kept: their source is running; prune again later")
    for hint in more:
        out.print(f"→ {safe(hint)}")
    if not apply and any(prunable.count for prunable in prunables):
        err.print("nothing was deleted; delete it with `fonds prune --apply`")


def metrics(context: typer.Context) -> None:
    """Print all metrics in the text format of Prometheus.

    The output can be a file for the textfile collector of the node exporter.

    \b
    Example: fonds metrics > fonds.prom
    """
    from fonds.maintenance.metrics import render  # noqa: PLC0415 — other commands start 40 ms faster

    with context.obj.library() as library, library.database.read() as connection:
        now = library.seams.clock.now()
        sys.stdout.write(render(connection, now, library.settings))
