"""Commands about codes: statutes and regulations as trees, in editions."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.text import Text

from fonds.catalog.codes import Branch, StoredEdition, editions
from fonds.catalog.codes import tree as read_tree
from fonds.cli.output import (
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    AsJson,
    err,
    harmless,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.process import run_until_stopped
from fonds.cli.progress import exit_code, print_reports, progress_display
from fonds.cli.session import Session
from fonds.codes.budget import WORKER, Budget
from fonds.codes.diff.editions import Comparison, UnitComparison
from fonds.codes.diff.editions import compare_editions as compare
from fonds.codes.diff.redline import excerpt, redline
from fonds.codes.run import CodePlan, CodeReport, CodeRequest, UnitReport, find_orders, plan_code
from fonds.errors import UsageError
from fonds.library import Library
from fonds.sources.registry import SourceRegistry

app = typer.Typer(help="Codes: statutes and regulations, in editions.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="See `fonds code list`.")]
Edition = Annotated[str, typer.Argument(metavar="VERSION", help="An edition in the library.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PATH|URL",
        help="A file, a folder with the publisher's layout, or an address.",
    ),
]
Version = Annotated[
    str | None,
    typer.Option("--version", help="The publisher's label of the edition; default: the newest."),
]
Units = Annotated[
    list[str] | None, typer.Option("--unit", help="Only this unit, e.g. title-42; repeatable.")
]
BudgetName = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="worker|N,MIB",
        help="Limits of each invocation: `worker` is 1,000 sub-requests and 128 MiB.",
    ),
]
_MAX_PRINTED_FAILURES: Final = 5
_NUMBERS: Final = re.compile(r"([1-9]\d{0,8}),([1-9]\d{0,8})")
_STYLES: Final = {"delete": "red strike", "insert": "green"}


def register(main: typer.Typer) -> None:
    """Add these commands to the app."""
    main.add_typer(app, name="code")


@app.command("list")
def list_codes(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the codes that can be ingested, and their editions in the library.

    \b
    Example: fonds code list
    """
    with context.obj.library_if_any() as library:
        stored = editions(library.database) if library else []
    infos = [adapter.info for adapter in SourceRegistry().codes().values()]
    if as_json:
        print_json([_code_fields(info, stored) for info in infos])
        return
    print_table(
        ["code", "title", "jurisdiction", "units", "editions"],
        [
            (info.name, info.title, info.jurisdiction, f"{info.unit}s", _editions(info, stored))
            for info in infos
        ],
        prose=["title", "editions"],
    )


@app.command()
def plan(
    context: typer.Context,
    name: Name,
    *,
    origin: From = None,
    version: Version = None,
    unit: Units = None,
    budget: BudgetName = None,
    as_json: AsJson = False,
) -> None:
    """Walk a code and estimate the cost of ingesting it; nothing is written.

    The invocations are those with a budget, which is `worker` by default, and those without one.

    \b
    Examples: fonds code plan usc --from usc42.xml --version 2024
              fonds code plan dc --from dc-law-xml --version 2016 --unit title-47
    """
    limits = _budget(budget) or Budget()
    request = CodeRequest(version=version, given=origin, units=tuple(unit or ()))

    async def walk(library: Library) -> tuple[CodePlan, int]:
        adapter = library.sources.code(name)
        async with library.open_context(tables=False) as opened:
            orders = await find_orders(adapter, request, opened)
            return await plan_code(orders, adapter, opened, limits), len(orders)

    with TemporaryDirectory() as scratch:
        # Planning must not even create an empty library.
        settings = replace(context.obj.settings(), home=Path(scratch), database="", blobs="")
        with closing(Library(settings)) as library:
            planned, units = run_until_stopped(walk(library))
    if as_json:
        errors = [{"id": unit_id, "error": error} for unit_id, error in planned.failures]
        without = {"budget": None, "invocations": units}
        print_json(
            {
                "units": [asdict(plan) for plan in planned.plans] + errors,
                "divided": planned.parts,
                "budget": asdict(limits),
                "without_budget": without,
            }
        )
    else:
        _print_plans(planned, units, limits)
        for unit_id, error in planned.failures:
            err.print(f"{unit_id}: {error}", style="red", markup=False)
    if planned.failures:
        raise typer.Exit(EXIT_INCOMPLETE if planned.plans else EXIT_FAILED)


@app.command()
def ingest(
    context: typer.Context,
    name: Name,
    *,
    origin: From = None,
    version: Version = None,
    unit: Units = None,
    budget: BudgetName = None,
    as_json: AsJson = False,
) -> None:
    """Ingest an edition of a code.

    Without a budget, each unit is one invocation, and several units are ingested at a time. With
    one, each invocation is a process that keeps to it, and a unit takes as many as it needs.

    \b
    Examples: fonds code ingest usc --from usc42.xml --version 2024
              fonds code ingest cfr --unit title-40 --budget worker
    """
    request = CodeRequest(
        version=version, given=origin, units=tuple(unit or ()), budget=_budget(budget)
    )
    ingest_code(context.obj, name, request, as_json=as_json)


def ingest_code(session: Session, name: str, request: CodeRequest, *, as_json: bool) -> NoReturn:
    """Ingest an edition, print the result of each unit, and exit."""

    async def work(library: Library) -> CodeReport:
        with progress_display(quiet=as_json) as progress:
            return await library.ingest_code(name, request, progress=progress)

    if not as_json:
        out.print(_mode(request.budget))
    with session.library(create=True) as library:
        report = run_until_stopped(work(library))
    if as_json:
        print_json(
            {
                "units": [_unit_fields(unit_report) for unit_report in report.units],
                "run": report.run,
                "budget": asdict(request.budget) if request.budget else None,
                "left_aside": report.left_aside,
            }
        )
    else:
        _print_units(report.units)
        _print_left_aside(report)
        print_reports([report.run])
    raise typer.Exit(exit_code([report.run]))


@app.command()
def tree(
    context: typer.Context,
    name: Name,
    version: Edition,
    top: Annotated[str | None, typer.Argument(metavar="[ID]", help="Start at this node.")] = None,
    *,
    depth: Annotated[int, typer.Option(min=1, help="Number of levels.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Print the tree of an edition, in the publisher's order.

    \b
    Examples: fonds code tree usc 2024
              fonds code tree usc 2024 usc/2024/root/title-42/chapter-7 --depth 3
    """
    with context.obj.library() as library:
        branches = read_tree(
            library.database, library.sources.code(name).info.name, version, top, depth=depth
        )
    if as_json:
        print_json(branches[0] if top else branches)
        return
    for branch in branches:
        _print_branch(branch, 0)


@app.command()
def diff(
    context: typer.Context,
    name: Name,
    old: Annotated[str, typer.Argument(metavar="V1", help="The older edition.")],
    new: Annotated[str, typer.Argument(metavar="V2", help="The newer edition.")],
    *,
    unit: Annotated[str | None, typer.Option(help="Only this unit, or a path in it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two editions: sections added, removed, renumbered and changed, with a redline.

    \b
    Examples: fonds code diff usc 2014 119-36 --unit title-17
              fonds code diff usc 2014 119-36 --unit title-17/chapter-1
    """
    with context.obj.library() as library:
        comparison = compare(
            library.database, library.sources.code(name).info.name, old, new, unit=unit
        )
        if as_json:
            print_json({"units": [_diff_fields(comparison, changes) for changes in comparison]})
            return
        for changes in comparison:
            _print_diff(comparison, changes)


# Tables and text --------------------------------------------------------------------------


def _editions(info: Any, stored: list[StoredEdition]) -> str:
    editions_of_code = [edition for edition in stored if edition.source == info.name]
    return (
        ", ".join(
            f"{edition.version} ({edition.complete} of {edition.units} complete)"
            for edition in editions_of_code
        )
        or "–"
    )


def _budget(text: str | None) -> Budget | None:
    """Read the value of `--budget`."""
    if text is None:
        return None
    if text == WORKER:
        return Budget()
    if (match := _NUMBERS.fullmatch(text)) is None:
        raise UsageError(
            f"--budget {text}: give `worker`, or sub-requests and MiB with a comma, as 500,256"
        )
    return Budget(subrequests=int(match[1]), memory_mib=int(match[2]))


def _mode(budget: Budget | None) -> str:
    if budget is None:
        return "no budget: one invocation for each unit"
    return f"budget of an invocation: {_limits(budget)}"


def _limits(budget: Budget) -> str:
    return f"{budget.subrequests:,} sub-requests, {budget.memory_mib} MiB"


def _print_plans(planned: CodePlan, units: int, budget: Budget) -> None:
    plans = planned.plans
    print_table(
        ["unit", "nodes", "sections", "bytes", "fetches", "sub-requests", "invocations"],
        [
            (p.id, p.nodes, p.shards, p.bytes, p.fetches, p.subrequests, p.invocations)
            for p in plans
        ],
    )
    sections, invocations = sum(p.shards for p in plans), sum(p.invocations for p in plans)
    out.print(
        f"{sections:,} sections: {invocations:,} invocations with a budget of {_limits(budget)};"
        f" {units:,} without one"
    )
    for unit_id, parts in planned.parts.items():
        out.print(
            f"{unit_id}: too large for the budget, a run divides it into {parts} parts",
            style="yellow",
            markup=False,
        )


def _print_units(reports: tuple[UnitReport, ...]) -> None:
    print_table(
        [
            "unit",
            "nodes",
            "sections",
            "new",
            "unchanged",
            "invocations",
            "most sub-requests",
            "MiB",
        ],
        [
            (
                report.id,
                report.nodes,
                report.shards,
                report.inserted,
                report.skipped,
                len(report.invocations),
                max(each.subrequests for each in report.invocations),
                max(each.peak_mib for each in report.invocations),
            )
            for report in reports
            if report.invocations
        ],
    )
    for report in reports:
        if report.parts:
            out.print(
                f"{report.id}: too large for the budget, divided into {len(report.parts)} parts",
                markup=False,
            )
        if report.error:
            err.print(f"{report.id}: {report.error}", style="red", markup=False)
        for unit_id, error in report.failures[:_MAX_PRINTED_FAILURES]:
            err.print(f"  {unit_id}: {error}", style="red", markup=False)
        if len(report.failures) > _MAX_PRINTED_FAILURES:
            err.print(f"  and {len(report.failures) - _MAX_PRINTED_FAILURES} more", style="red")


def _print_left_aside(report: CodeReport) -> None:
    if not report.left_aside:
        return
    count = len(report.left_aside)
    err.print(
        f"{count:,} files were left aside, since no unit of this edition has them; those of another"
        " edition need its --version:",
        style="yellow",
        markup=False,
    )
    for name in report.left_aside[:_MAX_PRINTED_FAILURES]:
        err.print(f"  {harmless(name)}", markup=False)
    if count > _MAX_PRINTED_FAILURES:
        err.print(f"  and {count - _MAX_PRINTED_FAILURES:,} more (see --json)")


def _print_branch(branch: Branch, depth: int) -> None:
    status = f" [dim]({branch.status})[/dim]" if branch.status else ""
    last = branch.id.rpartition("/")[2]
    out.print(f"{'  ' * depth}{safe(branch.label)}{status}  [dim]{safe(last)}[/dim]")
    for child in branch.children:
        _print_branch(child, depth + 1)


def _print_diff(comparison: Comparison, changes: UnitComparison) -> None:
    counts = {
        "added": len(changes.added),
        "removed": len(changes.removed),
        "renumbered": len(changes.moved),
        "changed": len(changes.changed),
        "unchanged": changes.unchanged,
    }
    summary = ", ".join(f"{number:,} {label}" for label, number in counts.items())
    out.print(f"[bold]{safe(changes.unit)}[/bold]: {summary}")
    states = {comparison.old: changes.old_state, comparison.new: changes.new_state}
    for version, state in states.items():
        if state != "complete":
            status = "not in the library" if state is None else f"only {state}"
            out.print(f"  in edition {safe(version)} it is {status}", style="yellow")
    for section in changes.added:
        out.print(f"  [green]+ {safe(section.label)}[/green]  {safe(section.id)}")
    for section in changes.removed:
        out.print(f"  [red]- {safe(section.label)}[/red]  {safe(section.id)}")
    for moved in changes.moved:
        out.print(f"  > {safe(moved.old.label)} → {safe(moved.new.label)}  {safe(moved.new.id)}")
    pairs = zip(changes.changed, comparison.texts(changes.changed), strict=True)
    for changed, (before, after) in pairs:
        out.print(f"  ~ {safe(changed.new.label)}  {safe(changed.new.id)}")
        _print_redline(before, after)
    for path in changes.unread:
        out.print(f"  ? {safe(path)}: no text yet")


def _print_redline(before: str, after: str) -> None:
    """Print a redline: in colours on a terminal, with brackets elsewhere."""
    signs = {} if out.is_terminal else {"delete": ("[-", "-]"), "insert": ("{+", "+}")}
    text = Text()
    for op, words in excerpt(redline(before, after)):
        before_words, after_words = signs.get(op, ("", ""))
        text.append(f"{before_words}{harmless(words)}{after_words}", style=_STYLES.get(op))
    for line in text.split("\n", allow_blank=True):
        out.print(Text("      ") + line)


# JSON -------------------------------------------------------------------------------------


def _code_fields(info: Any, stored: list[StoredEdition]) -> dict[str, Any]:
    return {
        "name": info.name,
        "title": info.title,
        "jurisdiction": info.jurisdiction,
        "organisation": info.organisation,
        "language": info.language,
        "unit": info.unit,
        "schedule": info.schedule,
        "base": info.base,
        "editions": [asdict(edition) for edition in stored if edition.source == info.name],
    }


def _unit_fields(report: UnitReport) -> dict[str, Any]:
    invocations = [
        {
            "subrequests": invocation.subrequests,
            "http": invocation.http,
            "database": invocation.database,
            "blobs": invocation.blobs,
            "peak_mib": invocation.peak_mib,
            "seconds": invocation.seconds,
            "inserted": invocation.progress.inserted,
            "skipped": invocation.progress.skipped,
            "remaining_batches": invocation.batches - invocation.progress.next_batch,
        }
        for invocation in report.invocations
    ]
    failures = [{"id": unit_id, "error": error} for unit_id, error in report.failures]
    return {**asdict(report), "invocations": invocations, "failures": failures}


def _diff_fields(comparison: Comparison, changes: UnitComparison) -> dict[str, Any]:
    texts = comparison.texts(changes.changed)
    changed = [
        {**asdict(pair), "redline": [list(op) for op in excerpt(redline(before, after))]}
        for pair, (before, after) in zip(changes.changed, texts, strict=True)
    ]
    return {**asdict(changes), "changed": changed}
