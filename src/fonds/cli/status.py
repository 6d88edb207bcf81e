"""Commands that show the state of sources, and run them on schedule."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final

import typer

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
from fonds.cli.queues import drain_queues
from fonds.errors import UsageError
from fonds.library import Library
from fonds.operations import audited, dispatcher
from fonds.runs.active_run import drop_old_history, mark_dead_runs_failed
from fonds.runs.audit import Audit
from fonds.runs.commands import listing
from fonds.runs.overview import (
    log_lines,
    open_error_rows,
    overview,
    recent_runs,
    run_logs,
    source_logs,
)
from fonds.runs.schedule import next_run, scheduled, serve_schedule
from fonds.runs.state import RunRequest, read_state
from fonds.runs.tasks import resolve
from fonds.seams import Seams
from fonds.sources.base import Registered
from fonds.sources.registry import SourceRegistry

MAX_PRINTED_FAILURES: Final = 20
MAX_PRINTED_IDS: Final = 5
LOCAL_USER: Final = "local"
"""The requester of commands that are typed on this machine."""


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (status, logs, errors, dismiss, schedule, scheduler, commands, audit):
        app.command()(command)


def status(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="Show this source in detail.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of each source.

    \b
    Examples: fonds status
              fonds status --source federal_register
    """
    with context.obj.library() as library:
        chosen = [library.sources.require(source)] if source else list(library.sources.values())
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
        str | None, typer.Argument(metavar="[RUN]", help="Id of a run, or its first characters.")
    ] = None,
    *,
    source: Annotated[
        str | None, typer.Option(help="All runs of this source; default: the latest run of any.")
    ] = None,
    tail: Annotated[int, typer.Option(help="Number of lines, from the end.")] = 100,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print further lines until the latest run has ended."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the log of a run.

    \b
    Examples: fonds logs
              fonds logs 4f1c
              fonds logs --source federal_register --tail 20
              fonds logs --follow
    """
    if run_id is not None and source is not None:
        raise UsageError("pass either a run or --source")
    with context.obj.library() as library:
        name = library.sources.require(source).info.name if source is not None else None
        if run_id is None and (name is None or follow):
            run_id = _latest_run(library, name)
        if follow and run_id is not None:
            _follow(library, run_id, tail, as_json=as_json)
            return
        if run_id is not None:
            lines = run_logs(library.database, run_id, tail)
        else:
            lines = source_logs(library.database, name, tail) if name else []
    if as_json:
        print_json(lines)
        return
    if not lines:
        err.print("no log lines")
    for line in lines:
        _print_line(line["logged_at"], line["level"], line["message"], line["context"])


def _print_line(logged_at: datetime, level: str, message: str, fields: Any) -> None:
    details = " ".join(f"{key}={value}" for key, value in (fields or {}).items())
    out.print(f"{logged_at:%Y-%m-%d %H:%M:%S} {level:5} {safe(message)}  {safe(details)}")


def _latest_run(library: Library, source: str | None) -> str | None:
    """Print which run is the latest, and return its id."""
    latest = next(iter(recent_runs(library.database, source, 1)), None)
    if latest is None:
        return None
    err.print(
        f"run {str(latest['id'])[:8]} of {latest['source']}, {latest['status']},"
        f" started {latest['started_at']:%Y-%m-%d %H:%M} UTC",
        highlight=False,
    )
    return str(latest["id"])


def _follow(library: Library, run: str, tail: int, *, as_json: bool) -> None:
    """Print lines as the run stores them, every few seconds, until it has ended."""
    for line in log_lines(library.database, run, tail, wait=time.sleep):
        if as_json:
            print_json(line)
        else:
            _print_line(line.logged_at, line.level, line.message, line.context)


def errors(
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="See `fonds sources`; default: all."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List failed tasks, which the next run retries.

    \b
    Examples: fonds errors
              fonds errors federal_register
    """
    with context.obj.library() as library:
        name = library.sources.require(source).info.name if source is not None else None
        failures = open_error_rows(library.database, name)
    if as_json:
        print_json(failures)
        return
    if not failures:
        err.print("no failed tasks")
        return
    columns = ["task_key", "error_stage", "attempts", "error"]
    headings = ["task", "stage", "tries", "error"]
    if source is None:
        columns, headings = ["source", *columns], ["source", *headings]
    print_table(
        headings,
        [
            [safe(value) if isinstance(value, str) else value for value in map(row.get, columns)]
            for row in failures
        ],
        prose=["error"],
    )


def dismiss(
    context: typer.Context,
    source: SourceName,
    tasks: Annotated[
        list[str], typer.Argument(metavar="TASK...", help="As listed by `fonds errors`.")
    ],
) -> None:
    """Stop retrying failed tasks and forget them.

    \b
    Example: fonds dismiss federal_register fr:2026-00107
    """
    with context.obj.library() as library, library.database.write() as connection:
        name = library.sources.require(source).info.name
        dismissed = resolve(connection, name, tasks, library.seams.clock.now())
    if not dismissed:
        raise UsageError(f"{source} has no failed task of this name; see `fonds errors {source}`")
    err.print(f"dismissed {dismissed}")


def schedule(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show when each source runs (America/New_York).

    Sources that the setting `scheduled_sources` leaves out have no next run.

    \b
    Example: fonds schedule
    """
    with context.obj.library_if_any() as library:
        sources, clock = (
            (library.sources, library.seams.clock) if library else (SourceRegistry(), Seams().clock)
        )
        included = scheduled(sources, context.obj.settings().scheduled_sources)
        now = clock.now()
        rows = [
            _schedule_row(source, now, is_included=source in included)
            for source in sources.values()
        ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["source", "schedule", "next run (UTC)"],
        [
            (row["source"], row["schedule"], row["next"] if row["is_included"] else "left out")
            for row in rows
        ],
    )


def _schedule_row(source: Registered, now: datetime, *, is_included: bool) -> dict[str, Any]:
    return {
        "source": source.info.name,
        "schedule": source.info.schedule,
        "next": next_run(source.info, now) if is_included else None,
        "is_included": is_included,
    }


def scheduler(
    context: typer.Context,
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this source; repeatable. Default: the setting scheduled_sources."
        ),
    ] = None,
) -> None:
    """Run all sources on schedule, and execute commands.

    Commands of the admin pages and the API start within two seconds, one after another;
    `fonds commands` lists them. They may be for any source.

    \b
    Examples: fonds scheduler
              fonds scheduler --source federal_register --source gao
    """

    async def serve(library: Library) -> None:
        names = source or library.settings.scheduled_sources
        included = scheduled(library.sources, names)

        async def sources() -> list[Registered]:
            await asyncio.to_thread(library.reload_websites)
            return scheduled(library.sources, names)

        limited = f" for {', '.join(each.info.name for each in included)}" if names else ""
        err.print(f"scheduler started{limited}; stop it with Ctrl-C", markup=False)
        commands_task = asyncio.create_task(dispatcher(library).serve())
        try:
            await serve_schedule(
                sources,
                lambda name: library.ingest(name, RunRequest(mode="incremental")),
                lambda: _tidy(library),
                asyncio.Event(),
                follow_up=lambda: drain_queues(library),
            )
        finally:
            commands_task.cancel()
            await asyncio.gather(commands_task, return_exceptions=True)

    with context.obj.library() as library:
        run_until_stopped(serve(library))


def commands(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    is_open: Annotated[
        bool, typer.Option("--open", help="Only commands that have not ended.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the commands of operators and their results.

    \b
    Examples: fonds commands
              fonds commands --open --source federal_register
    """
    with context.obj.library() as library, library.database.read() as connection:
        name = library.sources.require(source).info.name if source else None
        listed = listing(connection, limit=limit, source=name, is_open=is_open or None)
    if as_json:
        print_json([{**asdict(command), "state": command.state} for command in listed])
        return
    if not listed:
        err.print("no commands")
        return
    print_table(
        ["id", "command", "source", "requested (UTC)", "by", "state", "outcome"],
        [
            (
                command.id,
                command.command,
                command.source or command.args.get("queue"),
                command.requested_at,
                safe(command.requested_by),
                command.state,
                safe(command.outcome) if command.outcome else None,
            )
            for command in listed
        ],
        prose=["outcome"],
    )


def audit(
    context: typer.Context,
    source: SourceName,
    *,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Compare a publisher's list with the library; exit 3 if short.

    \b
    Example: fonds audit federal_register --since 2026-01-01 --until 2026-01-31
    """

    async def count(library: Library) -> Audit:
        return await audited(library, source, day(since), day(until), requested_by=LOCAL_USER)

    with context.obj.library() as library:
        result = run_until_stopped(count(library))
    if as_json:
        numbers = {"expected": result.expected, "missing": result.missing}
        print_json({**numbers, "open_errors": result.open_errors, "audit": result})
    else:
        _print_audit(result)
    if result.missing or result.open_errors:
        raise typer.Exit(EXIT_INCOMPLETE)


async def _tidy(library: Library) -> None:
    async with library.open_context() as context:
        await asyncio.to_thread(mark_dead_runs_failed, context)
        await asyncio.to_thread(drop_old_history, context)


def _status_of(library: Library, source: str, row: Any, *, as_json: bool) -> None:
    runs = recent_runs(library.database, source, 10)
    failures = open_error_rows(library.database, source)
    now = library.seams.clock.now()
    with library.database.read() as connection:
        custom = read_state(connection, source, RunRequest(mode="manual"), now).custom
    if as_json:
        print_json({"overview": row, "custom": custom, "runs": runs, "errors": failures})
        return
    _print_overview([row])
    print_table(
        ["last success (UTC)", "watermark", "custom state"],
        [(row.last_success_at, row.last_seen_key, json.dumps(custom) if custom else None)],
        title="\nstate",
        prose=["custom state"],
    )
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
            "succeeded",
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
                row.last_success_at,
                row.last_change_at,
                row.last_failure_at,
                row.open_errors,
                row.next_run_at,
            )
            for row in rows
        ],
    )


def _print_audit(result: Audit) -> None:
    summary = (
        f"{result.expected:,} expected in {len(result.scopes)} lists, {result.missing:,} missing"
        if result.scopes
        else "its publisher has no second list to compare with"
    )
    out.print(f"{result.source}: {summary}, {result.open_errors} failed tasks")
    for scope in result.scopes:
        if scope.missing:
            ids = _abbreviate(scope.missing)
            out.print(f"  {safe(scope.name)}: {len(scope.missing)} of {scope.expected}: {ids}")
    for name, error in result.failures[:MAX_PRINTED_FAILURES]:
        out.print(f"  {safe(name)}: {safe(error)}", style="red")
    for column, unlinked in result.unlinked.items():
        ids = _abbreviate(unlinked.targets)
        out.print(f"  {column}: {unlinked.rows:,} references to missing documents: {ids}")


def _abbreviate(ids: Sequence[str]) -> str:
    more = " …" if len(ids) > MAX_PRINTED_IDS else ""
    return safe(", ".join(ids[:MAX_PRINTED_IDS]) + more)
