"""Commands that fill the library."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

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
from fonds.cli.progress import exit_code, print_reports, progress_display
from fonds.cli.queues import drain_queues, print_waiting
from fonds.cli.session import Session
from fonds.errors import UsageError
from fonds.library import Library
from fonds.plugins import broken_plugins
from fonds.runs.overview import DaysAfter, days_after
from fonds.runs.state import RunReport, RunRequest
from fonds.sources.registry import GROUP, SourceRegistry

if TYPE_CHECKING:
    from fonds.runs.files import FilesReport

Recheck = Annotated[
    bool, typer.Option("--recheck", help="Request every item, also if its list entry is unchanged.")
]
AcceptLoss = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Accept a listing that shrank sharply, and mark the missing items as withdrawn.",
    ),
]
Record = Annotated[
    Path | None, typer.Option(help="Record all requests and responses in this new WARC file.")
]
Replay = Annotated[
    Path | None, typer.Option(help="Replay the responses of this WARC file, offline.")
]
BOOTSTRAPPED_CODES: Final = ("usc", "cfr")
"""Federal law, which documents of most feeds cite."""
MAX_LEFT_ASIDE: Final = 20
"""Files that are printed with their reasons."""


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (sources, run, backfill, reparse, bootstrap, ingest):
        app.command()(command)


def sources(*, as_json: AsJson = False) -> None:
    """List the sources that can be run.

    \b
    Example: fonds sources
    """
    infos = [source.info for source in SourceRegistry().values()]
    broken = broken_plugins(GROUP)
    if as_json:
        print_json([_source_fields(info) for info in infos] + [asdict(each) for each in broken])
        return
    print_table(
        ["source", "publisher", "schedule", "after"],
        [
            (
                info.name,
                info.organisation,
                info.schedule,
                ", ".join(info.depends_on) or None,
            )
            for info in infos
        ]
        + [(each.name, f"broken plugin of {each.package}", None, None) for each in broken],
    )


def run(
    context: typer.Context,
    source: SourceName,
    *,
    recheck: Recheck = False,
    accept_loss: AcceptLoss = False,
    record: Record = None,
    replay: Replay = None,
    as_json: AsJson = False,
) -> None:
    """Bring one source up to date.

    \b
    Example: fonds run federal_register
    """
    request = RunRequest(mode="incremental", recheck=recheck, accept_loss=accept_loss)
    _run(context.obj, source, request, record=record, replay=replay, as_json=as_json)


def backfill(
    context: typer.Context,
    source: SourceName,
    *,
    since: Since = None,
    until: Until = None,
    congresses: Annotated[
        str | None, typer.Option(metavar="N,N", help="For sources that are organised by Congress.")
    ] = None,
    recheck: Recheck = False,
    accept_loss: AcceptLoss = False,
    record: Record = None,
    replay: Replay = None,
    as_json: AsJson = False,
) -> None:
    """Fill a range of one source, or all of it.

    With --until, the end says what the library has of the days after it.

    \b
    Examples: fonds backfill federal_register --since 2026-01-01 --until 2026-01-31
              fonds backfill legislators
    """
    options = {"congresses": _numbers(congresses)} if congresses else {}
    request = RunRequest(
        mode="backfill",
        since=day(since),
        until=day(until),
        options=options,
        recheck=recheck,
        accept_loss=accept_loss,
    )
    _run(context.obj, source, request, record=record, replay=replay, as_json=as_json)


def bootstrap(
    context: typer.Context,
    only: Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...")] = None,
    *,
    since: Since = None,
    until: Until = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Leave this source out; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fill the library from all feeds, the US Code and the CFR.

    Sources run in order of dependency. Then texts are read, citations extracted, vectors made; exit
    3 if documents still wait for any of these. Codes of other jurisdictions are ingested only if
    they are named.

    \b
    Examples: fonds bootstrap --since 2026-01-01
              fonds bootstrap --without usc --without cfr
              fonds bootstrap bills --since 2025-01-03 --until 2026-02-28
    """
    request = RunRequest(mode="backfill", since=day(since), until=day(until))

    async def work(library: Library) -> list[RunReport]:
        names = only or {*library.sources.feeds(), *BOOTSTRAPPED_CODES}
        with progress_display(quiet=as_json) as progress:
            reports = await library.ingest_all(
                names, request, without=without or (), progress=progress
            )
        await drain_queues(library)
        return reports

    with context.obj.library(create=True) as library:
        reports = run_until_stopped(work(library))
        if as_json:
            print_json(reports)
        else:
            print_reports(reports)
        is_waiting = print_waiting(library)
        others = sorted(set(library.sources.codes()) - {report.source for report in reports})
    if others and not only:
        err.print(f"codes left out: {', '.join(others)}; `fonds code ingest CODE` gets each")
    raise typer.Exit(exit_code(reports) or (EXIT_INCOMPLETE if is_waiting else 0))


def ingest(
    context: typer.Context,
    source: SourceName,
    files: Annotated[
        list[Path],
        typer.Option("--from", metavar="PATH...", help="Files, folders, zip or tar archives."),
    ],
    more: Annotated[list[Path] | None, typer.Argument(metavar="", hidden=True)] = None,
    *,
    version: Annotated[
        str | None, typer.Option(help="Of a code: the publisher's label of the edition.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load files that you have, instead of fetching them.

    Files are matched to the source by their content; those of other kinds are listed with the
    reason. Archives of feeds are read without being unpacked, those of codes are unpacked into the
    library's folder for temporary files. Nothing is fetched.

    \b
    Examples: fonds ingest bills --from BILLSTATUS-119-hr.zip
              fonds ingest federal_register --from 2026/ FR-2026-01.zip
              fonds ingest usc --from xml_uscAll@119-36.zip --version 119-36
    """
    paths = [*files, *(more or [])]
    if source in SourceRegistry().codes():
        _ingest_code(context.obj, source, paths, version=version, as_json=as_json)
    if version is not None:
        raise UsageError(f"{source} is not a code and has no --version")

    async def work(library: Library) -> FilesReport:
        with progress_display(quiet=as_json) as progress:
            return await library.ingest_files(source, paths, progress=progress)

    with context.obj.library(create=True) as library:
        report = run_until_stopped(work(library))
    if as_json:
        print_json(report)
    else:
        _print_files(report)
    raise typer.Exit(exit_code([report.run]))


def _ingest_code(
    session: Session, name: str, paths: list[Path], *, version: str | None, as_json: bool
) -> NoReturn:
    from fonds.cli.codes import ingest_code  # noqa: PLC0415 — `run` starts 60 ms faster
    from fonds.codes.edition_files import edition_folder, innermost  # noqa: PLC0415 — as above
    from fonds.codes.run import CodeRequest  # noqa: PLC0415 — as above

    def reject(member: str, reason: str) -> None:
        err.print(f"left aside: {member}: {reason}", markup=False)

    with edition_folder(paths, session.settings().home / "tmp", reject) as folder:
        adapter = SourceRegistry().code(name)
        location = (
            folder if folder in paths else run_until_stopped(innermost(adapter, folder, version))
        )
        request = CodeRequest(version=version, given=str(location))
        ingest_code(session, name, request, as_json=as_json)


def _print_files(report: FilesReport) -> None:
    print_reports([report.run])
    if report.further_files:
        out.print(
            f"  {report.further_files} files that records name were not loaded;"
            f" `fonds run {report.run.source}` fetches those of new documents"
        )
    if report.left_aside:
        out.print(f"  {len(report.left_aside)} of {report.files} files were left aside:")
    for left in report.left_aside[:MAX_LEFT_ASIDE]:
        out.print(f"    {safe(left.name)}: {safe(left.reason)}")
    if len(report.left_aside) > MAX_LEFT_ASIDE:
        out.print(f"    and {len(report.left_aside) - MAX_LEFT_ASIDE} more (--json lists all)")


def reparse(
    context: typer.Context,
    source: SourceName,
    *,
    accept_loss: AcceptLoss = False,
    as_json: AsJson = False,
) -> None:
    """Parse what was fetched again, after a parser has changed.

    The files are read from the archive, and nothing is fetched. What does not differ is not
    written. Texts alone are made again by `fonds renormalize`.

    \b
    Example: fonds reparse gao
    """
    with context.obj.library() as library, progress_display(quiet=as_json) as progress:
        report = run_until_stopped(
            library.reparse(source, accept_loss=accept_loss, progress=progress)
        )
    _report([report], report if as_json else None)


def _run(
    session: Session,
    source: str,
    request: RunRequest,
    *,
    record: Path | None,
    replay: Path | None,
    as_json: bool,
) -> NoReturn:
    if record is not None and replay is not None:
        raise UsageError("--record and --replay cannot be combined")

    async def work(library: Library) -> RunReport:
        unknown = sorted(set(request.options) - set(library.sources.require(source).info.options))
        if unknown:
            raise UsageError(f"{source} has no option --{unknown[0]}")
        with progress_display(quiet=as_json) as progress:
            return await library.ingest(
                source, request, progress=progress, record=record, replay=replay
            )

    with session.library(create=True) as library:
        report = run_until_stopped(work(library))
        after = days_after(library.database, report.source, request, library.seams.clock.now())
    if after is not None:
        _print_days_after(report.source, after)
    _report([report], report if as_json else None)


def _print_days_after(source: str, after: DaysAfter) -> None:
    loaded = f"{after.documents:,} documents, the first of {after.first}" if after.first else "none"
    until = f" --until {after.first}" if after.first else ""
    follows = f"from {after.watermark}" if after.watermark else "as a first run"
    err.print(
        f"loaded of the days from {after.since} on: {loaded}."
        f" `fonds backfill {source} --since {after.since}{until}` fills what lies between;"
        f" the next `fonds run {source}` continues {follows}",
        markup=False,
    )


def _report(reports: list[RunReport], machine_readable: Any) -> NoReturn:
    if machine_readable is not None:
        print_json(machine_readable)
    else:
        print_reports(reports)
    raise typer.Exit(exit_code(reports))


def _source_fields(info: Any) -> dict[str, Any]:
    return {
        "name": info.name,
        "title": info.title,
        "organisation": info.organisation,
        "schedule": info.schedule,
        "depends_on": info.depends_on,
        "tables": [table.name for table in info.tables],
        "published_at": info.published_at,
    }


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"{text!r} is not a list of numbers such as 118,119") from error
