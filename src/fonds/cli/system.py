"""Commands about the library itself: create, upgrade, demonstrate."""

from __future__ import annotations

import typer

from fonds.cli.demonstration import demonstrate
from fonds.cli.output import out
from fonds.library import Library
from fonds.stores.schema import current_version, upgrade

db = typer.Typer(help="The database.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (init, demo):
        app.command()(command)
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


def demo(context: typer.Context) -> None:
    """Ingest a small bundled upstream, served on loopback, and search it.

    \b
    Example: fonds --home demo-library demo
    """
    out.print("no key, no network: a small bundled upstream stands in for the publishers\n")
    raise typer.Exit(demonstrate(context.obj))
