"""The command `fonds`: its commands by group, each imported only when it is called."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from fonds.cli.imports import ending_on_ctrl_c
from fonds.cli.output import EXIT_FAILED, EXIT_STOPPED, EXIT_USAGE, err, out
from fonds.cli.session import Session
from fonds.errors import FondsError, UsageError

_GROUPS: Final = {
    # name of the command, module that registers it, first paragraph of its help
    "Get started": (
        ("demo", "system", "Ingest a small bundled upstream and search it."),
        ("init", "system", "Create the library, or report where it is."),
        ("doctor", "maintenance", "Check the installation and the library; exit 1 on failure."),
        ("selftest", "selftest", "Kill and fault scratch libraries; exit 1 if data is lost."),
    ),
    "Fill a library": (
        ("sources", "ingest", "List the sources that can be run."),
        ("run", "ingest", "Bring one source up to date."),
        ("backfill", "ingest", "Fill a range of one source, or all of it."),
        ("reparse", "ingest", "Parse what was fetched again, after a parser has changed."),
        ("bootstrap", "ingest", "Fill the library from all feeds, the US Code and the CFR."),
        ("ingest", "ingest", "Load files that you have, instead of fetching them."),
        ("code", "codes", "Codes: statutes and regulations, in editions."),
        ("crawl", "crawl", "Crawl websites and download their PDFs."),
        ("site", "crawl", "Websites: how their PDFs are found, and crawl results."),
        ("upload", "uploads", "Upload files, and wait until each can be searched."),
        ("jobs", "uploads", "List uploads with their status; retry failed ones, and delete."),
    ),
    "Find and read": (
        ("search", "read", "Find passages, each with its citation."),
        ("show", "read", "Show one document."),
        ("changes", "citations", "List what was added, changed and withdrawn, newest first."),
    ),
    "Cite and verify": (
        ("cite", "citations", "Print how a document is cited."),
        ("cites", "citations", "List what a document cites."),
        ("cited-by", "citations", "List the documents that cite a document, and where."),
        ("resolve", "verify", "Find the document, edition and passage of a citation."),
        ("check-quote", "verify", "Check a quotation: EXACT, CHANGED or NOT FOUND."),
        ("verify", "verify", "Rebuild a text from its raw file: MATCH, DIFFERS or UNPROVEN."),
    ),
    "Make texts, citations and vectors": (
        ("parse", "read", "Parse raw files and print their records as JSON lines."),
        ("normalize", "read", "Convert a file to Markdown, or all queued files."),
        ("renormalize", "read", "Convert texts again whose normalizer has changed."),
        ("chunk", "read", "Split Markdown into passages, as loading does."),
        ("citations", "citations", "Extract the citations of new and changed documents."),
        ("embed", "embed", "Embed new and changed documents, or change the model."),
        ("embed-status", "embed", "Show vectors, queue, failures and costs of embedding."),
        ("plan", "embed", "Estimate what a command will take before it starts."),
    ),
    "Serve": (
        ("serve", "serve", "Serve the library over HTTP: web pages and an API."),
        ("worker", "serve", "Process uploads, and execute commands of operators."),
        ("mcp", "serve", "Serve the library to agents over MCP, read-only."),
        ("token", "serve", "Create, list and revoke API tokens."),
    ),
    "Operate": (
        ("status", "status", "Show the state of each source."),
        ("logs", "status", "Show the log of a run."),
        ("errors", "status", "List failed tasks, which the next run retries."),
        ("dismiss", "status", "Stop retrying failed tasks and forget them."),
        ("audit", "status", "Compare a publisher's list with the library; exit 3 if short."),
        ("schedule", "status", "Show when each source runs (America/New_York)."),
        ("scheduler", "status", "Run all sources on schedule, and execute commands."),
        ("commands", "status", "List the commands of operators and their results."),
        ("metrics", "maintenance", "Print all metrics in the text format of Prometheus."),
        ("prune", "maintenance", "List what can be deleted; delete it with --apply."),
    ),
    "Store and exchange": (
        ("db", "system", "Upgrade, copy, back up and restore the database."),
        ("export", "system", "Write documents, passages, citations and tables to files."),
        ("bundle", "bundle", "Public content in files under one hash: create, load, compare."),
        ("pull", "bundle", "Load the bundle at an address, and later what changes there."),
        ("key", "keys", "Keys that sign bundles, and those that are trusted."),
        ("index", "index", "Indexes: records by key in an object store."),
    ),
}


class MenuEntry(NamedTuple):
    """A command before its module is imported."""

    module: str
    """The module of this package that registers the command."""
    summary: str
    group: str


MENU: Final = {
    name: MenuEntry(module, summary, group)
    for group, commands in _GROUPS.items()
    for name, module, summary in commands
}
"""All commands by name, in the order of the help."""


OTHER_NAMES: Final = {"health": "doctor"}
"""Names by which commands are found, but not listed."""


class Menu(Mapping[str, Any]):
    """All commands by name; a command is imported when it is looked up."""

    def __init__(self) -> None:
        self._imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        name = OTHER_NAMES.get(name, name)
        if name not in self._imported:
            self._imported |= commands_of(MENU[name].module)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MENU)

    def __len__(self) -> int:
        return len(MENU)


class MenuGroup(TyperGroup):
    """The command `fonds`, which lists its commands without importing them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Typer expects a dictionary to which commands can be added; none are.
        self.commands = Menu()  # type: ignore[assignment]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help from names and summaries, which imports no command."""
        listed = copy(self)
        listed.commands = {
            name: TyperCommand(name=name, help=entry.summary, rich_help_panel=entry.group)
            for name, entry in MENU.items()
        }
        super(MenuGroup, listed).format_help(ctx, formatter)


def commands_of(module: str) -> Mapping[str, Any]:
    """The commands that a module of this package registers."""
    app = typer.Typer()
    with ending_on_ctrl_c():
        import_module(f"fonds.cli.{module}").register(app)
    return typer.main.get_group(app).commands


app = typer.Typer(
    name="fonds",
    cls=MenuGroup,
    help="Public documents in, cited answers out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        out.print(f"fonds {metadata.version('fonds')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(help="Folder of the library (or FONDS_HOME; default ./library)."),
    ] = None,
    version: Annotated[  # noqa: ARG001 — its callback prints it
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    context.obj = Session(home)


def main() -> None:
    """Run a command; exit 0 done, 1 failed, 2 usage, 3 incomplete."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot display a character gets its escape sequence.
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
    """Print why a command failed and return its exit code; None for a defect."""
    if isinstance(error, FondsError):
        err.print(f"error: {error}", style="red", markup=False)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return EXIT_FAILED
    if isinstance(error, UnicodeEncodeError):
        err.print("error: an argument is not valid UTF-8", style="red")
        return EXIT_USAGE
    from asyncio import CancelledError  # noqa: PLC0415 — --help and --version start without them

    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 — as above

    if isinstance(error, CancelledError | KeyboardInterrupt):
        err.print("stopped; the next run continues from here")
        return EXIT_STOPPED
    if isinstance(error, OSError | SQLAlchemyError):
        err.print(
            f"error: {_message(error)}; run `fonds doctor` for details", style="red", markup=False
        )
        return EXIT_FAILED
    return None


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    # SQLAlchemy appends the statement and its parameters to the message of the driver.
    driver_error = getattr(error, "orig", None) or error
    return str(driver_error).partition("\n")[0]


def _home_first(args: list[str]) -> list[str]:
    """The arguments with `--home` first, since it is allowed anywhere on the line."""
    for index, arg in enumerate(args):
        if arg == "--":
            break
        width = 2 if arg == "--home" else 1 if arg.startswith("--home=") else 0
        if width:
            return [*args[index : index + width], *args[:index], *args[index + width :]]
    return args
