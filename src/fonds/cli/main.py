"""The command `fonds`.

The commands by their names and what they are for; a command is imported when it is asked for.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from fonds.cli.output import EXIT_FAILED, EXIT_USAGE, err, out
from fonds.cli.session import Session
from fonds.errors import FondsError, UsageError

_COMMANDS: Final = (
    # name, module of this package that registers it, first paragraph of its help
    ("sources", "ingest", "List the sources that can be run."),
    ("run", "ingest", "Bring one source up to date."),
    ("backfill", "ingest", "Fill a range of one source, or all of it."),
    (
        "bootstrap",
        "ingest",
        "Fill the library from all feeds, each after those it depends on; codes only if named.",
    ),
    (
        "crawl",
        "crawl",
        "Crawl websites for their PDFs; each becomes a document, and a file with a good name.",
    ),
    ("status", "status", "Show how each source stands."),
    ("logs", "status", "Show what a run wrote to its log."),
    ("errors", "status", "List what failed and still stands; the next run tries it again."),
    ("dismiss", "status", "Stop retrying failed tasks and forget them."),
    ("schedule", "status", "Show when each source runs by itself (America/New_York)."),
    (
        "scheduler",
        "status",
        "Run every source by its schedule until stopped, and what is asked for meanwhile.",
    ),
    ("commands", "status", "Show what operators asked for, who did, and what came of it."),
    (
        "audit",
        "status",
        "Compare what the upstream says exists with what is held; exit 3 when short.",
    ),
    (
        "parse",
        "read",
        "Parse raw files and print records as JSON lines; touches neither network nor library.",
    ),
    ("show", "read", "Show one document."),
    ("search", "read", "Find passages, each with its citation."),
    ("changes", "citations", "Show what was added, changed and withdrawn, the newest first."),
    (
        "citations",
        "citations",
        "Find the citations in documents that are new or changed, and link them.",
    ),
    ("cites", "citations", "Show what a document cites, and which of that is held."),
    ("cited-by", "citations", "Show which documents cite a document, and where."),
    ("cite", "citations", "Print how a document is cited."),
    ("resolve", "verify", "Find the document, edition and passage that a citation leads to."),
    (
        "check-quote",
        "verify",
        "Check whether words stand in what is cited: EXACT, CHANGED or NOT FOUND.",
    ),
    (
        "verify",
        "verify",
        "Make a text or passage again from the archived bytes: MATCH, DIFFERS or UNPROVEN.",
    ),
    (
        "embed-status",
        "embed",
        "Show which vectors there are, what waits, what failed, and what it cost.",
    ),
    (
        "mcp",
        "serve",
        "Serve the library to agents over the Model Context Protocol; nothing is written.",
    ),
    ("serve", "serve", "Serve the library over HTTP: pages for people, and an API for programs."),
    ("upload", "uploads", "Upload files, and watch each become searchable."),
    (
        "worker",
        "serve",
        "Take uploads forward: parse, cut, embed, publish; and do what operators ask for.",
    ),
    ("init", "system", "Create the library, or say that it is there."),
    ("demo", "system", "Ingest a small bundled upstream, served on loopback, and search it."),
    (
        "doctor",
        "maintenance",
        "Check everything fonds needs, and say what to do about what is wrong; exit 1 if it fails.",
    ),
    (
        "prune",
        "maintenance",
        "Say what may go, and delete it with --apply. What anything refers to always stays.",
    ),
    (
        "metrics",
        "maintenance",
        "Print all figures as Prometheus reads them, for a text file of its node exporter.",
    ),
    (
        "selftest",
        "maintenance",
        "Kill, starve and confuse libraries in a scratch folder; exit 1 if one loses anything.",
    ),
    (
        "export",
        "system",
        "Write documents, passages, citations and the tables of sources to files, a table each.",
    ),
    (
        "normalize",
        "read",
        "Turn a file into Markdown, or drain the queue of bodies that wait for it.",
    ),
    (
        "renormalize",
        "read",
        "Make the text of bodies anew whose normalizer has changed; nothing is fetched.",
    ),
    ("chunk", "read", "Cut Markdown into passages, as loading does."),
    ("code", "codes", "Codes: statutes and regulations, in editions."),
    ("site", "crawl", "Websites: how their PDFs are found, and what came of them."),
    (
        "embed",
        "embed",
        "Make the vectors of documents that are new or changed; or change the model.",
    ),
    ("plan", "embed", "What something will take, before it begins."),
    ("token", "serve", "API tokens: who may use the library from elsewhere."),
    ("jobs", "uploads", "Uploads on their way; those that failed, and once more."),
    (
        "index",
        "index",
        "Records by key, on nothing but an object store: indexes of hosts, or of your own.",
    ),
    ("bundle", "bundle", "The public content under one hash: equal libraries have equal ones."),
    ("db", "system", "The database."),
)

MENU: Final = {name: module for name, module, _ in _COMMANDS}
"""Each command, in the order of the help, and the module of this package that registers it."""

SUMMARIES: Final = {name: summary for name, _, summary in _COMMANDS}
"""What the list of commands says of each, so that `fonds --help` imports none of them."""


class Menu(Mapping[str, Any]):
    """All commands; each is made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made |= commands_of(MENU[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MENU)

    def __len__(self) -> int:
        return len(MENU)


class MenuGroup(TyperGroup):
    """The command `fonds`, which knows its commands by name before they are imported."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # Typer would allow for commands to be added; nobody does.
        self.commands = Menu()  # type: ignore[assignment]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, which of each command shows its name and its summary."""
        listed = copy(self)
        listed.commands = {
            name: TyperCommand(name=name, help=summary) for name, summary in SUMMARIES.items()
        }
        super(MenuGroup, listed).format_help(ctx, formatter)


def commands_of(module: str) -> Mapping[str, Any]:
    """What a module of this package registers."""
    app = typer.Typer()
    import_module(f"fonds.cli.{module}").register(app)
    return typer.main.get_group(app).commands


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
