"""Commands about the library itself: create, upgrade, demonstrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fonds.cli.copying import db_copy
from fonds.cli.demonstration import demonstrate
from fonds.cli.output import out
from fonds.library import Library
from fonds.schema import upgrade
from fonds.stores import backup
from fonds.stores.revisions import HEAD, current_version

db = typer.Typer(help="The database.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (init, demo):
        app.command()(command)
    db.command("copy")(db_copy)
    app.add_typer(db, name="db")


def init(context: typer.Context) -> None:
    """Create the library, or say that it is there.

    \b
    Example: fonds --home library init
    """
    with context.obj.library() as library:
        out.print(f"the library is in {library.settings.home.absolute()}")


@db.command("upgrade")
def db_upgrade(context: typer.Context) -> None:
    """Bring the database up to this program's schema.

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
    context: typer.Context, to: Annotated[Path, typer.Argument(help="A file that is not there.")]
) -> None:
    """Copy the database, as it is at one moment, into a new file; SQLite only.

    Others may go on reading and writing. Copy the blobs after it, never before.

    \b
    Example: fonds db backup backups/2026-03-04.db
    """
    library = Library(context.obj.settings())
    try:
        backup.back_up(library.database, to, library.seams)
        out.print(f"the database is copied to {to} ({to.stat().st_size:,} bytes)")
    finally:
        library.close()


@db.command("restore")
def db_restore(
    context: typer.Context, copy: Annotated[Path, typer.Argument(help="What `backup` wrote.")]
) -> None:
    """Put a back-up in the place of all that the database holds; SQLite only.

    Stop scheduler, workers and servers first. Killed in between, it leaves what was there.

    \b
    Example: fonds db restore backups/2026-03-04.db
    """
    library = Library(context.obj.settings())
    try:
        version = backup.restore(library.database, copy, library.seams)
        out.print(f"restored; the database is at version {version}")
        if version < HEAD:
            out.print("run `fonds db upgrade` next")
    finally:
        library.close()


def demo(context: typer.Context) -> None:
    """Ingest a small bundled upstream, served on loopback, and search it.

    \b
    Example: fonds --home demo-library demo
    """
    out.print("no key, no network: a small bundled upstream stands in for the publishers\n")
    raise typer.Exit(demonstrate(context.obj))
