"""The command `fonds`."""

from __future__ import annotations

import asyncio
import io
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.exc import SQLAlchemyError

from fonds.cli.menu import MenuGroup
from fonds.cli.options import EXIT_FAILED, EXIT_USAGE
from fonds.cli.output import err, out
from fonds.cli.session import Session
from fonds.errors import FondsError, UsageError

EXIT_STOPPED = 130

app = typer.Typer(
    name="fonds",
    cls=MenuGroup,
    help="Public documents in, cited answers out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"fonds {metadata.version('fonds')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(help="Folder where everything lives (or FONDS_HOME; default ./library)."),
    ] = None,
    version: Annotated[  # noqa: ARG001 — its callback has done all there is to do
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print it.")
    ] = False,
) -> None:
    context.obj = Session(home)


def main() -> None:
    """Run a command; exit 0 done, 1 failed, 2 usage, 3 incomplete."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character is shown its number.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=_home_first(sys.argv[1:]))
    except FondsError as error:
        err.print(f"error: {error}", style="red", markup=False)
        sys.exit(EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED)
    except (asyncio.CancelledError, KeyboardInterrupt):
        err.print("stopped; the next run continues from here")
        sys.exit(EXIT_STOPPED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except UnicodeEncodeError:
        err.print("error: an argument is not valid UTF-8", style="red")
        sys.exit(EXIT_USAGE)
    except (OSError, SQLAlchemyError) as error:
        err.print(f"error: {_cause(error)}; `fonds doctor` says more", style="red", markup=False)
        sys.exit(EXIT_FAILED)


def _cause(error: OSError | SQLAlchemyError) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    # SQLAlchemy's own text goes on with the statement and its parameters.
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0]


def _home_first(args: list[str]) -> list[str]:
    """`--home` may stand anywhere on the line."""
    for index, arg in enumerate(args):
        if arg == "--":
            break
        width = 2 if arg == "--home" else 1 if arg.startswith("--home=") else 0
        if width:
            return [*args[index : index + width], *args[:index], *args[index + width :]]
    return args
