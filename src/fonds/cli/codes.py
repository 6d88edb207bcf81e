"""Commands for codes: statutes walked as trees, in editions that stand side by side."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from fonds.catalog.codes import Branch, EditionHeld, editions
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
from fonds.codes.budget import Budget
from fonds.codes.diff.editions import Comparison, UnitComparison
from fonds.codes.diff.editions import compare_editions as compare
from fonds.codes.diff.redline import excerpt, redline
from fonds.codes.run import CodeReport, CodeRequest, UnitPlan, UnitReport, find_orders, plan_unit
from fonds.errors import FondsError
from fonds.library import Library
from fonds.sources.registry import all_codes, get_code

DEFAULT: Final = Budget()

app = typer.Typer(help="Codes: statutes and regulations, in editions.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="See `fonds code list`.")]
Edition = Annotated[str, typer.Argument(metavar="VERSION", help="An edition that is held.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PATH|URL",
        help="A file, a folder laid out as the publisher does, or an address.",
    ),
]
Version = Annotated[
    str | None,
    typer.Option("--version", help="The publisher's stamp of the edition; default: the newest."),
]
Units = Annotated[
    list[str] | None, typer.Option("--unit", help="Only this one, e.g. title-42; repeatable.")
]
Subrequests = Annotated[
    int, typer.Option("--max-subrequests", min=1, help="Of one invocation, of any kind.")
]
Memory = Annotated[int, typer.Option("--max-memory-mib", min=1, help="Of one invocation.")]
_SHOWN: Final = 5
_CACHE_MIB: Final = 2
"""Of the database; what it takes counts against the budget."""
_MARKS: Final = {"delete": "red strike", "insert": "green"}


def register(main: typer.Typer) -> None:
    """Add these commands to the app."""
    main.add_typer(app, name="code")


@app.command("list")
def list_codes(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the codes that can be ingested, and the editions that are held.

    \b
    Example: fonds code list
    """
    with context.obj.library() as library:
        held = editions(library.database)
    infos = [adapter.info for adapter in all_codes().values()]
    if as_json:
        print_json([_facts(info, held) for info in infos])
        return
    print_table(
        ["code", "title", "jurisdiction", "units", "editions held"],
        [(i.name, i.title, i.jurisdiction, f"{i.unit}s", _held(i.name, held)) for i in infos],
        prose=["title", "editions held"],
    )


@app.command()
def plan(
    context: typer.Context,
    name: Name,
    *,
    given: From = None,
    version: Version = None,
    unit: Units = None,
    max_subrequests: Subrequests = DEFAULT.subrequests,
    max_memory_mib: Memory = DEFAULT.memory_mib,
    as_json: AsJson = False,
) -> None:
    """Walk a code and say what ingesting it would cost; reads only.

    \b
    Examples: fonds code plan usc --from usc42.xml --version 2024
              fonds code plan dc --from dc-law-xml --version 2016 --unit title-47
    """
    budget = Budget(subrequests=max_subrequests, memory_mib=max_memory_mib)
    request = CodeRequest(version=version, given=given, units=tuple(unit or ()), budget=budget)

    async def walk(library: Library) -> tuple[list[UnitPlan], list[tuple[str, str]]]:
        adapter = get_code(name)
        plans, failed = [], []
        async with library.open_context(tables=False) as opened:
            for order in await find_orders(adapter, request, opened):
                try:
                    plans.append(await plan_unit(order, adapter, opened))
                except FondsError as error:
                    failed.append((order.id, f"{type(error).__name__}: {error}"))
        return plans, failed

    with TemporaryDirectory() as scratch:
        # Planning must leave no trace, not even an empty library.
        settings = replace(context.obj.settings(), home=Path(scratch), database="", blobs="")
        plans, failed = run_until_stopped(walk(Library(settings)))
    if as_json:
        errors = [{"id": known, "error": cause} for known, cause in failed]
        print_json({"units": [asdict(one) for one in plans] + errors})
    else:
        _print_plans(plans)
        for known, cause in failed:
            err.print(f"{known}: {cause}", style="red", markup=False)
    if failed:
        raise typer.Exit(EXIT_INCOMPLETE if plans else EXIT_FAILED)


@app.command()
def ingest(
    context: typer.Context,
    name: Name,
    *,
    given: From = None,
    version: Version = None,
    unit: Units = None,
    max_subrequests: Subrequests = DEFAULT.subrequests,
    max_memory_mib: Memory = DEFAULT.memory_mib,
    invocation_process: Annotated[
        bool,
        typer.Option(
            "--invocation-process",
            help="Each invocation in a process of its own, its memory limited by the kernel.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ingest an edition of a code, in as many invocations as its budget asks for.

    \b
    Examples: fonds code ingest usc --from usc42.xml --version 2024
              fonds code ingest cfr --unit title-40
    """
    budget = Budget(subrequests=max_subrequests, memory_mib=max_memory_mib)
    request = CodeRequest(version=version, given=given, units=tuple(unit or ()), budget=budget)

    async def work(library: Library) -> CodeReport:
        with progress_display(quiet=as_json) as progress:
            return await library.ingest_code(
                name, request, apart=invocation_process, progress=progress
            )

    with context.obj.library(sqlite_cache_mib=_CACHE_MIB) as library:
        report = run_until_stopped(work(library))
    if as_json:
        print_json({"units": [_unit_facts(one) for one in report.units], "run": report.run})
    else:
        _print_units(report.units)
        print_reports([report.run])
    raise typer.Exit(exit_code([report.run]))


@app.command()
def tree(
    context: typer.Context,
    name: Name,
    version: Edition,
    top: Annotated[str | None, typer.Argument(metavar="[ID]", help="Begin at this node.")] = None,
    *,
    depth: Annotated[int, typer.Option(min=1, help="Levels to show.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Show the tree of an edition, in the publisher's order.

    \b
    Examples: fonds code tree usc 2024
              fonds code tree usc 2024 usc/2024/root/title-42/chapter-7 --depth 3
    """
    adapter = get_code(name)
    with context.obj.library() as library:
        branches = read_tree(library.database, adapter.info.name, version, top, depth=depth)
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
    adapter = get_code(name)
    with context.obj.library() as library:
        comparison = compare(library.database, adapter.info.name, old, new, unit=unit)
        if as_json:
            print_json({"units": [_diff_facts(comparison, one) for one in comparison]})
            return
        for one in comparison:
            _print_diff(comparison, one)


# For people -------------------------------------------------------------------------------


def _held(name: str, held: list[EditionHeld]) -> str:
    mine = [one for one in held if one.source == name]
    return (
        ", ".join(f"{one.version} ({one.complete} of {one.units} complete)" for one in mine) or "–"
    )


def _print_plans(plans: list[UnitPlan]) -> None:
    print_table(
        ["unit", "nodes", "sections", "bytes", "fetches", "sub-requests", "invocations"],
        [
            (p.id, p.nodes, p.shards, p.bytes, p.fetches, p.subrequests, p.invocations)
            for p in plans
        ],
    )
    if len(plans) > 1:
        sections, invocations = sum(p.shards for p in plans), sum(p.invocations for p in plans)
        out.print(f"{len(plans)} units, {sections:,} sections, {invocations:,} invocations")


def _print_units(units: tuple[UnitReport, ...]) -> None:
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
                one.id,
                one.nodes,
                one.shards,
                one.inserted,
                one.skipped,
                len(one.invocations),
                max(i.subrequests for i in one.invocations),
                max(i.peak_mib for i in one.invocations),
            )
            for one in units
            if one.invocations
        ],
    )
    for one in units:
        if one.error:
            err.print(f"{one.id}: {one.error}", style="red", markup=False)
        for known, cause in one.failures[:_SHOWN]:
            err.print(f"  {known}: {cause}", style="red", markup=False)
        if len(one.failures) > _SHOWN:
            err.print(f"  and {len(one.failures) - _SHOWN} more", style="red")


def _print_branch(branch: Branch, depth: int) -> None:
    status = f" [dim]({branch.status})[/dim]" if branch.status else ""
    last = branch.id.rpartition("/")[2]
    out.print(f"{'  ' * depth}{safe(branch.label)}{status}  [dim]{safe(last)}[/dim]")
    for child in branch.children:
        _print_branch(child, depth + 1)


def _print_diff(comparison: Comparison, found: UnitComparison) -> None:
    counts = {
        "added": len(found.added),
        "removed": len(found.removed),
        "renumbered": len(found.moved),
        "changed": len(found.changed),
        "unchanged": found.unchanged,
    }
    told = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    out.print(f"[bold]{safe(found.unit)}[/bold]: {told}")
    states = {comparison.old: found.old_state, comparison.new: found.new_state}
    for version, state in states.items():
        if state != "complete":
            held = "not held" if state is None else f"only {state}"
            out.print(f"  of {safe(version)} it is {held}", style="yellow")
    for section in found.added:
        out.print(f"  [green]+ {safe(section.label)}[/green]  {safe(section.id)}")
    for section in found.removed:
        out.print(f"  [red]- {safe(section.label)}[/red]  {safe(section.id)}")
    for moved in found.moved:
        out.print(f"  > {safe(moved.old.label)} → {safe(moved.new.label)}  {safe(moved.new.id)}")
    pairs = zip(found.changed, comparison.texts(found.changed), strict=True)
    for changed, (before, after) in pairs:
        out.print(f"  ~ {safe(changed.new.label)}  {safe(changed.new.id)}")
        _print_redline(before, after)
    for path in found.unread:
        out.print(f"  ? {safe(path)}: its text is not there yet")


def _print_redline(before: str, after: str) -> None:
    """Deleted words struck, inserted ones marked; signs where there are no colours."""
    signs = {} if out.is_terminal else {"delete": ("[-", "-]"), "insert": ("{+", "+}")}
    text = Text()
    for op, words in excerpt(redline(before, after)):
        opened, closed = signs.get(op, ("", ""))
        text.append(f"{opened}{harmless(words)}{closed}", style=_MARKS.get(op))
    for line in text.split("\n", allow_blank=True):
        out.print(Text("      ") + line)


# For machines -----------------------------------------------------------------------------


def _facts(info: Any, held: list[EditionHeld]) -> dict[str, Any]:
    mine = [asdict(one) for one in held if one.source == info.name]
    return {
        "name": info.name,
        "title": info.title,
        "jurisdiction": info.jurisdiction,
        "organisation": info.organisation,
        "language": info.language,
        "unit": info.unit,
        "schedule": info.schedule,
        "base": info.base,
        "editions": mine,
    }


def _unit_facts(report: UnitReport) -> dict[str, Any]:
    invocations = [
        {
            "subrequests": one.subrequests,
            "http": one.http,
            "database": one.database,
            "blobs": one.blobs,
            "peak_mib": one.peak_mib,
            "seconds": one.seconds,
            "inserted": one.progress.inserted,
            "skipped": one.progress.skipped,
            "remaining_batches": one.batches - one.progress.next_batch,
        }
        for one in report.invocations
    ]
    failures = [{"id": known, "error": cause} for known, cause in report.failures]
    return {**asdict(report), "invocations": invocations, "failures": failures}


def _diff_facts(comparison: Comparison, found: UnitComparison) -> dict[str, Any]:
    texts = comparison.texts(found.changed)
    changed = [
        {**asdict(pair), "redline": [list(op) for op in excerpt(redline(before, after))]}
        for pair, (before, after) in zip(found.changed, texts, strict=True)
    ]
    return {**asdict(found), "changed": changed}
