"""The command `fonds`."""

from __future__ import annotations

import io
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

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
    except SystemExit:
        raise
    except BaseException as error:
        code = _report(error)
        if code is None:
            raise
        sys.exit(code)


def _report(error: BaseException) -> int | None:
    """Say why a command ended, and give its exit code; a defect has none."""
    if isinstance(error, FondsError):
        err.print(f"error: {error}", style="red", markup=False)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return EXIT_FAILED
    if isinstance(error, UnicodeEncodeError):
        err.print("error: an argument is not valid UTF-8", style="red")
        return EXIT_USAGE
    from asyncio import CancelledError  # noqa: PLC0415 — the help and the version need neither

    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 — as above

    if isinstance(error, CancelledError | KeyboardInterrupt):
        err.print("stopped; the next run continues from here")
        return EXIT_STOPPED
    if isinstance(error, OSError | SQLAlchemyError):
        err.print(f"error: {_cause(error)}; `fonds doctor` says more", style="red", markup=False)
        return EXIT_FAILED
    return None


def _cause(error: Exception) -> str:
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
