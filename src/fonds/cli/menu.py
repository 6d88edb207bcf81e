"""The commands by their names and what they are for; a command is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

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
        "crawling",
        "Crawl websites for their PDFs; each becomes a document, and a file with a good name.",
    ),
    ("status", "oversight", "Show how each source stands."),
    ("logs", "oversight", "Show what a run wrote to its log."),
    ("errors", "oversight", "List what failed and still stands; the next run tries it again."),
    ("dismiss", "oversight", "Stop retrying failed tasks and forget them."),
    ("schedule", "oversight", "Show when each source runs by itself (America/New_York)."),
    (
        "scheduler",
        "oversight",
        "Run every source by its schedule until stopped, and what is asked for meanwhile.",
    ),
    ("commands", "oversight", "Show what operators asked for, who did, and what came of it."),
    (
        "audit",
        "oversight",
        "Compare what the upstream says exists with what is held; exit 3 when short.",
    ),
    (
        "parse",
        "read",
        "Parse raw files and print records as JSON lines; touches neither network nor library.",
    ),
    ("show", "read", "Show one document."),
    ("search", "read", "Find passages, each with its citation."),
    ("changes", "changes", "Show what was added, changed and withdrawn, the newest first."),
    (
        "citations",
        "citing",
        "Find the citations in documents that are new or changed, and link them.",
    ),
    ("cites", "citing", "Show what a document cites, and which of that is held."),
    ("cited-by", "citing", "Show which documents cite a document, and where."),
    ("cite", "citing", "Print how a document is cited."),
    ("resolve", "proof", "Find the document, edition and passage that a citation leads to."),
    (
        "check-quote",
        "proof",
        "Check whether words stand in what is cited: EXACT, CHANGED or NOT FOUND.",
    ),
    (
        "verify",
        "proof",
        "Make a text or passage again from the archived bytes: MATCH, DIFFERS or UNPROVEN.",
    ),
    (
        "embed-status",
        "embedding",
        "Show which vectors there are, what waits, what failed, and what it cost.",
    ),
    (
        "mcp",
        "agents",
        "Serve the library to agents over the Model Context Protocol; nothing is written.",
    ),
    ("serve", "serving", "Serve the library over HTTP: pages for people, and an API for programs."),
    ("upload", "uploading", "Upload files, and watch each become searchable."),
    (
        "worker",
        "working",
        "Take uploads forward: parse, cut, embed, publish; and do what operators ask for.",
    ),
    ("init", "system", "Create the library, or say that it is there."),
    ("demo", "system", "Ingest a small bundled upstream, served on loopback, and search it."),
    (
        "doctor",
        "upkeep",
        "Check everything fonds needs, and say what to do about what is wrong; exit 1 if it fails.",
    ),
    (
        "prune",
        "upkeep",
        "Say what may go, and delete it with --apply. What anything refers to always stays.",
    ),
    (
        "metrics",
        "upkeep",
        "Print all figures as Prometheus reads them, for a text file of its node exporter.",
    ),
    (
        "selftest",
        "proving",
        "Kill, starve and confuse libraries in a scratch folder; exit 1 if one loses anything.",
    ),
    (
        "export",
        "exporting",
        "Write documents, passages, citations and the tables of sources to files, a table each.",
    ),
    (
        "normalize",
        "texts",
        "Turn a file into Markdown, or drain the queue of bodies that wait for it.",
    ),
    (
        "renormalize",
        "texts",
        "Make the text of bodies anew whose normalizer has changed; nothing is fetched.",
    ),
    ("chunk", "texts", "Cut Markdown into passages, as loading does."),
    ("code", "codes", "Codes: statutes and regulations, in editions."),
    ("site", "crawling", "Websites: how their PDFs are found, and what came of them."),
    (
        "embed",
        "embedding",
        "Make the vectors of documents that are new or changed; or change the model.",
    ),
    ("plan", "embedding", "What something will take, before it begins."),
    ("token", "tokens", "API tokens: who may use the library from elsewhere."),
    ("jobs", "uploading", "Uploads on their way; those that failed, and once more."),
    (
        "index",
        "indexing",
        "Records by key, on nothing but an object store: indexes of hosts, or of your own.",
    ),
    ("bundle", "bundling", "The public content under one hash: equal libraries have equal ones."),
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
