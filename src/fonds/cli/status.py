"""Commands that say how the sources stand, and keep them going."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from fonds.cli.citations import extract_in_steps
from fonds.cli.embed import embed_until_stopped
from fonds.cli.output import (
    EXIT_INCOMPLETE,
    AsJson,
    Since,
    SourceName,
    Until,
    day,
    err,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.process import run_until_stopped
from fonds.errors import UsageError
from fonds.library import Library
from fonds.operations import audited, dispatcher, drain_normalization
from fonds.runs.active_run import drop_old_history, mark_dead_runs_failed
from fonds.runs.audit import Audit
from fonds.runs.commands import listing
from fonds.runs.overview import overview, recent_runs, run_logs, source_logs, standing_errors
from fonds.runs.schedule import next_run, serve_schedule
from fonds.runs.state import RunRequest
from fonds.runs.tasks import resolve
from fonds.sources.registry import all_sources, get_source

SHOWN_FAILURES: Final = 20
LOCAL: Final = "local"
"""Who asks, where nobody has said a name."""


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (status, logs, errors, dismiss, schedule, scheduler, commands, audit):
        app.command()(command)


def status(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="One source in detail.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how each source stands.

    \b
    Examples: fonds status
              fonds status --source federal_register
    """
    with context.obj.library() as library:
        chosen = [get_source(source)] if source else list(all_sources().values())
        rows = overview(library.database, chosen, library.seams.clock.now())
        if source:
            _status_of(library, source, rows[0], as_json=as_json)
        elif as_json:
            print_json(rows)
        else:
            _print_overview(rows)


def logs(
    context: typer.Context,
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Start of a run's id.")
    ] = None,
    *,
    source: Annotated[str | None, typer.Option(help="All runs of one source.")] = None,
    tail: Annotated[int, typer.Option(help="How many lines, from the end.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show what a run wrote to its log.

    \b
    Examples: fonds logs 4f1c
              fonds logs --source federal_register --tail 20
    """
    if (run_id is None) == (source is None):
        raise UsageError("name a run, or a source with --source")
    with context.obj.library() as library:
        if run_id is not None:
            lines = run_logs(library.database, run_id, tail)
        else:
            lines = source_logs(library.database, get_source(source or "").info.name, tail)
    if as_json:
        print_json(lines)
        return
    if not lines:
        err.print("nothing was logged")
    for line in lines:
        where = " ".join(f"{key}={value}" for key, value in (line["context"] or {}).items())
        moment = line["logged_at"].strftime("%Y-%m-%d %H:%M:%S")
        out.print(f"{moment} {line['level']:5} {safe(line['message'])}  {safe(where)}")


def errors(context: typer.Context, source: SourceName, *, as_json: AsJson = False) -> None:
    """List what failed and still stands; the next run tries it again.

    \b
    Example: fonds errors federal_register
    """
    with context.obj.library() as library:
        found = standing_errors(library.database, get_source(source).info.name)
    if as_json:
        print_json(found)
        return
    if not found:
        err.print("no failure stands")
        return
    columns = ["task_key", "error_stage", "attempts", "error"]
    print_table(
        ["task", "stage", "tries", "cause"],
        [
            [safe(value) if isinstance(value, str) else value for value in map(row.get, columns)]
            for row in found
        ],
        prose=["cause"],
    )


def dismiss(
    context: typer.Context,
    source: SourceName,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="As `fonds errors` shows.")],
) -> None:
    """Stop retrying failed tasks and forget them.

    \b
    Example: fonds dismiss federal_register fr:2026-00107
    """
    with context.obj.library() as library, library.database.write() as connection:
        name = get_source(source).info.name
        dismissed = resolve(connection, name, tasks, library.seams.clock.now())
    if not dismissed:
        raise UsageError(f"no failure of {source} stands under these names")
    err.print(f"dismissed {dismissed}")


def schedule(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show when each source runs by itself (America/New_York).

    \b
    Example: fonds schedule
    """
    with context.obj.library() as library:
        now = library.seams.clock.now()
        rows = [
            {"source": s.info.name, "schedule": s.info.schedule, "next": next_run(s.info, now)}
            for s in all_sources().values()
        ]
    if as_json:
        print_json(rows)
        return
    print_table(["source", "schedule", "next run (UTC)"], [list(row.values()) for row in rows])


def scheduler(context: typer.Context) -> None:
    """Run every source by its schedule until stopped, and what is asked for meanwhile.

    Whatever the admin pages or the API ask for is taken up within a second or two, one thing
    after the other; `fonds commands` shows it.

    \b
    Example: fonds scheduler
    """

    async def serve(library: Library) -> None:
        err.print("scheduler started; stop it with Ctrl-C")
        asked = asyncio.create_task(dispatcher(library).serve())
        try:
            await serve_schedule(
                all_sources().values(),
                lambda name: library.ingest(name, RunRequest(mode="incremental")),
                lambda: _tidy(library),
                asyncio.Event(),
                follow_up=lambda: _follow_up(library),
            )
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    with context.obj.library() as library:
        run_until_stopped(serve(library))


def commands(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="Of one source.")] = None,
    is_open: Annotated[
        bool, typer.Option("--open", help="Only those that nothing has come of yet.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, from the newest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what operators asked for, who did, and what came of it.

    \b
    Examples: fonds commands
              fonds commands --open --source federal_register
    """
    with context.obj.library() as library, library.database.read() as connection:
        known = get_source(source).info.name if source else None
        found = listing(connection, limit=limit, source=known, is_open=is_open or None)
    if as_json:
        print_json([{**asdict(each), "state": each.state} for each in found])
        return
    if not found:
        err.print("nobody has asked for anything")
        return
    print_table(
        ["id", "command", "source", "asked (UTC)", "by", "state", "outcome"],
        [
            (
                each.id,
                each.command,
                each.source or each.args.get("queue"),
                each.requested_at,
                safe(each.requested_by),
                each.state,
                safe(each.outcome) if each.outcome else None,
            )
            for each in found
        ],
        prose=["outcome"],
    )


async def _follow_up(library: Library) -> None:
    await drain_normalization(library)  # texts come before what is found in them
    await extract_in_steps(library)
    await embed_until_stopped(library)


def audit(
    context: typer.Context,
    source: SourceName,
    *,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Compare what the upstream says exists with what is held; exit 3 when short.

    \b
    Example: fonds audit federal_register --since 2026-01-01 --until 2026-01-31
    """

    async def count(library: Library) -> Audit:
        return await audited(library, source, day(since), day(until), requested_by=LOCAL)

    with context.obj.library() as library:
        found = run_until_stopped(count(library))
    if as_json:
        numbers = {"expected": found.expected, "missing": found.missing}
        print_json({**numbers, "open_errors": found.open_errors, "audit": found})
    else:
        _print_audit(found)
    if found.missing or found.open_errors:
        raise typer.Exit(EXIT_INCOMPLETE)


async def _tidy(library: Library) -> None:
    async with library.open_context() as context:
        await asyncio.to_thread(mark_dead_runs_failed, context)
        await asyncio.to_thread(drop_old_history, context)


def _status_of(library: Library, source: str, row: Any, *, as_json: bool) -> None:
    runs = recent_runs(library.database, source, 10)
    failures = standing_errors(library.database, source)
    if as_json:
        print_json({"overview": row, "runs": runs, "errors": failures})
        return
    _print_overview([row])
    counts = ("inserted_count", "updated_count", "skipped_count", "error_count")
    print_table(
        ["run", "mode", "status", "started (UTC)", "new", "updated", "unchanged", "errors"],
        [
            (
                str(run["id"])[:8],
                run["mode"],
                run["status"],
                run["started_at"],
                *map(run.get, counts),
            )
            for run in runs
        ],
        title="\nlatest runs",
    )


def _print_overview(rows: list[Any]) -> None:
    print_table(
        [
            "source",
            "documents",
            "gone",
            "last run",
            "checked (UTC)",
            "changed",
            "failed",
            "errors",
            "next run",
        ],
        [
            (
                row.source,
                row.documents,
                row.gone,
                row.last_status,
                row.last_run_at,
                row.last_change_at,
                row.last_failure_at,
                row.open_errors,
                row.next_run_at,
            )
            for row in rows
        ],
    )


def _print_audit(found: Audit) -> None:
    short = [scope for scope in found.scopes if scope.missing]
    counted = f"{found.expected:,} expected in {len(found.scopes)} lists, {found.missing:,} missing"
    if not found.scopes:
        counted = "its upstream offers no second list to count by"
    out.print(f"{found.source}: {counted}, {found.open_errors} errors stand")
    for scope in short:
        shown = ", ".join(scope.missing[:5]) + (" …" if len(scope.missing) > 5 else "")  # noqa: PLR2004 — a handful
        out.print(f"  {safe(scope.name)}: {len(scope.missing)} of {scope.expected}: {safe(shown)}")
    for name, cause in found.failures[:SHOWN_FAILURES]:
        out.print(f"  {safe(name)}: {safe(cause)}", style="red")
    for column, unlinked in found.unlinked.items():
        shown = ", ".join(unlinked.targets[:5]) + (" …" if len(unlinked.targets) > 5 else "")  # noqa: PLR2004 — a handful
        out.print(f"  {column}: {unlinked.rows:,} references to what is not held: {safe(shown)}")
