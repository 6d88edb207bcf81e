"""Commands about a library as a whole: create, demonstrate, upgrade, copy, back up, export."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from sqlalchemy import func, select

from fonds.cli.citations import summarize
from fonds.cli.output import (
    EXIT_INCOMPLETE,
    AsJson,
    AsUser,
    err,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.progress import exit_code, print_reports, progress_display
from fonds.cli.queues import print_waiting
from fonds.cli.read import print_results
from fonds.cli.session import Session, find_owner
from fonds.codes.run import CodeRequest
from fonds.demo.bundle import FEEDS, FIRST_DAY, LAST_DAY
from fonds.demo.server import DemoUpstream
from fonds.exchange import backup
from fonds.exchange.database_copy import Copied, copy, database_address
from fonds.exchange.export import export
from fonds.exchange.snapshot import display_address
from fonds.library import Library
from fonds.runs.hosts import compile_hosts
from fonds.runs.state import RunReport, RunRequest
from fonds.schema import HEAD, current_version, require_library, upgrade
from fonds.seams import Seams
from fonds.search.filters import require_source
from fonds.settings import FILE_NAME
from fonds.stores.blobs import open_blobs
from fonds.stores.database import open_database
from fonds.stores.permissions import make_private_file
from fonds.stores.tables import document_chunk_buffer, documents

_DATABASES: Final = "the home of a library, an SQLite file, or postgresql://…"


def db_copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help=f"Source: {_DATABASES}")],
    target: Annotated[str, typer.Argument(metavar="TO", help=f"Target: {_DATABASES}")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy every row of a library's database to an empty one.

    The copy is a consistent snapshot, complete or not made at all. Each table is read back and
    compared; full-text and vector indexes are rebuilt. Raw files are not copied.

    \b
    Examples: fonds db copy library postgresql://fonds@db.example/fonds
              fonds db copy postgresql://fonds@db.example/fonds other-library
    """
    addresses = [database_address(address) for address in (source, target)]
    with err.status("copying …") as status:
        done = copy(
            *addresses,
            watch=lambda table, rows: status.update(f"copying … {rows:,} rows of {table}"),
        )
    copied_from, copied_to = (display_address(address) for address in addresses)
    if as_json:
        print_json({"from": copied_from, "to": copied_to, **_copy_fields(done)})
        return
    filled = [table for table in done.tables.values() if table.rows]
    out.print(f"copied {safe(copied_from)} to {safe(copied_to)}")
    out.print(
        f"{sum(table.rows for table in filled):,} rows in {len(filled):,} tables, equal in both; "
        f"{done.passages:,} passages and {done.vectors:,} vectors indexed"
    )
    err.print("raw files are not copied: see the setting `blobs`")


def _copy_fields(done: Copied) -> dict[str, object]:
    return {"tables": done.tables, "passages": done.passages, "vectors": done.vectors}


CODE: Final = "usc"
QUERIES: Final = (
    "overtime salary threshold",
    "how much lead may drinking water contain?",
    "how soon must a request for a record be answered?",
)


def demonstrate(session: Session) -> int:
    """Ingest the bundled upstream, search it, and return the exit code."""
    with DemoUpstream() as upstream:
        overrides = {"hosts": upstream.hosts, "allow_private": True}
        with session.library(create=True, **overrides) as library:
            _forbid_contact(library)
            reports = asyncio.run(_ingest(library))
            print_reports(reports)
            queued = library.normalize_queued()
            out.print(f"PDFs: {queued.done} read")
            out.print(f"citations: {summarize(library.extract_citations())}")
            vectors = library.embed()
            out.print(f"vectors: {vectors.embedded:,} passages embedded, {vectors.reused:,} reused")
            compile_hosts(library.context)
            is_waiting = print_waiting(library)
            _print_contents(library)
            for query in QUERIES:
                out.print(f"\n$ fonds search {query!r}\n", style="bold", markup=False)
                print_results(library.search(query, limit=2, per_document=1), query)
            home = library.settings.home
    out.print("try a search of your own:")
    out.print(f'{sys.argv[0]} --home {home} search "wildfire smoke"', markup=False)
    out.print("or open it in a browser:")
    out.print(f"{sys.argv[0]} --home {home} serve", markup=False)
    return exit_code(reports) or (EXIT_INCOMPLETE if is_waiting else 0)


_NO_CONTACT: Final = """\
# The documents of the demo are invented; those of publishers do not belong among them.
contact_publishers = false
"""


def _forbid_contact(library: Library) -> None:
    """Let later runs contact no publisher, if this library has nothing but the demo."""
    with library.database.read() as connection:
        if connection.scalar(select(documents.c.id).limit(1)) is not None:
            return
    path = library.settings.home / FILE_NAME
    existing = path.read_text("utf-8") if path.exists() else ""
    if "contact_publishers" not in existing:
        make_private_file(path)
        path.write_text(_NO_CONTACT + existing, "utf-8")


async def _ingest(library: Library) -> list[RunReport]:
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    with progress_display(quiet=False) as progress:
        reports = await library.ingest_all(FEEDS, request, progress=progress)
        code = await library.ingest_code(CODE, CodeRequest(), progress=progress)
    return [*reports, code.run]


def _print_contents(library: Library) -> None:
    query = (
        select(
            documents.c.source,
            documents.c.kind,
            func.count(documents.c.id.distinct()),
            func.count(document_chunk_buffer.c.id),
        )
        .join(document_chunk_buffer, document_chunk_buffer.c.document_id == documents.c.uid)
        .group_by(documents.c.source, documents.c.kind)
        .order_by(documents.c.source, documents.c.kind)
    )
    with library.database.read() as connection:
        rows = [tuple(row) for row in connection.execute(query)]
    out.print()
    print_table(["source", "kind", "documents", "passages"], rows)


db = typer.Typer(help="Upgrade, copy, back up and restore the database.", no_args_is_help=True)


def init(context: typer.Context) -> None:
    """Create the library, or report where it is.

    \b
    Example: fonds --home library init
    """
    with context.obj.library(create=True) as library:
        out.print(f"the library is in {library.settings.home.absolute()}")


@db.command("upgrade")
def db_upgrade(context: typer.Context) -> None:
    """Upgrade the database to the schema of this version of fonds.

    \b
    Example: fonds db upgrade
    """
    library = Library(context.obj.settings())
    try:
        upgrade(library.database)
        out.print(f"the database is at version {current_version(library.database)}")
    finally:
        library.close()


@db.command("backup")
def db_backup(
    context: typer.Context,
    to: Annotated[Path, typer.Argument(help="A file that does not exist yet.")],
) -> None:
    """Copy a consistent snapshot of the database into a new file; SQLite only.

    Other processes may read and write meanwhile. Copy the blobs after the database, never before.

    \b
    Example: fonds db backup backups/2026-03-04.db
    """
    settings = context.obj.settings()
    require_library(settings)
    library = Library(settings)
    try:
        backup.back_up(library.database, to, library.seams)
        out.print(f"the database is copied to {to} ({to.stat().st_size:,} bytes)")
    finally:
        library.close()


@db.command("restore")
def db_restore(
    context: typer.Context,
    copy: Annotated[Path, typer.Argument(help="A file made by `fonds db backup`.")],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the content of an existing library.")
    ] = False,
) -> None:
    """Fill the database from a backup; SQLite only.

    An existing library is replaced only with --replace, and not while a process uses it: stop its
    servers, schedulers and workers first. If the command is killed, the previous content stays.

    \b
    Examples: fonds db restore backups/2026-03-04.db
              fonds db restore --replace backups/2026-03-04.db
    """
    settings, seams = context.obj.settings(), Seams()
    database = open_database(settings.database_url, seams=seams)
    try:
        version = backup.restore(database, copy, seams, replace=replace)
    finally:
        database.close()
    out.print(f"restored; the database is at version {version}")
    if version < HEAD:
        out.print("run `fonds db upgrade` next")


def demo(context: typer.Context) -> None:
    """Ingest a small bundled upstream and search it.

    Its publishers are simulated on loopback: no key and no network is needed. Later runs in its
    library contact no publisher, until `contact_publishers` is set in its fonds.toml.

    \b
    Example: fonds --home demo-library demo
    """
    out.print("no key, no network: a small bundled upstream replaces the publishers\n")
    raise typer.Exit(demonstrate(context.obj))


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (init, demo):
        app.command()(command)
    db.command("copy")(db_copy)
    app.add_typer(db, name="db")
    app.command("export")(export_tables)


def export_tables(
    context: typer.Context,
    *,
    kind: Annotated[
        Literal["csv", "parquet", "jsonl"], typer.Option("--format", help="Format of the files.")
    ],
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="A folder, s3://…, az://…")],
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source; repeatable. Default: all.")
    ] = None,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Write documents, passages, citations and tables to files.

    Each table, those of sources included, is one file; a data package lists columns and types. An
    earlier export at the same address is replaced. Needs DuckDB: the extra `query`.

    \b
    Examples: fonds export --format parquet --to tables
              fonds export --format csv --source bills --to s3://bucket/bills
    """
    with context.obj.library() as library, err.status("exporting …") as status:
        done = export(
            library.database,
            open_blobs(to, seams=library.seams, private=False),
            kind,
            where=display_address(to),
            registry=library.sources,
            sources=[require_source(name, library.sources) for name in source] if source else None,
            owner=find_owner(library, as_user),
            scratch=library.settings.home / "tmp",
            watch=lambda table, rows: status.update(f"exporting … {rows:,} rows of {table}"),
        )
    if as_json:
        print_json({"address": display_address(to), "rows": done.rows, "bytes": done.bytes})
        return
    print_table(["table", "rows"], list(done.rows.items()))
    out.print(
        f"\n{sum(done.rows.values()):,} rows, {done.bytes:,} bytes: {safe(display_address(to))}"
    )
