"""The commands by their names; a command's module is imported when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

_OFFERED: Final = (
    ("ingest", "sources run backfill bootstrap"),
    ("crawling", "crawl"),
    ("oversight", "status logs errors dismiss schedule scheduler commands audit"),
    ("read", "parse show search"),
    ("changes", "changes"),
    ("citing", "citations cites cited-by cite"),
    ("proof", "resolve check-quote verify"),
    ("embedding", "embed-status"),
    ("agents", "mcp"),
    ("serving", "serve"),
    ("uploading", "upload"),
    ("working", "worker"),
    ("system", "init demo"),
    ("upkeep", "doctor prune metrics"),
    ("proving", "selftest"),
    ("exporting", "export"),
    ("texts", "normalize renormalize chunk"),
    ("codes", "code"),
    ("crawling", "site"),
    ("embedding", "embed plan"),
    ("tokens", "token"),
    ("uploading", "jobs"),
    ("indexing", "index"),
    ("bundling", "bundle"),
    ("system", "db"),
)

MENU: Final = {name: module for module, names in _OFFERED for name in names.split()}
"""Each command, in the order of the help, and the module of this package that registers it."""


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


def commands_of(module: str) -> Mapping[str, Any]:
    """What a module of this package registers."""
    app = typer.Typer()
    import_module(f"fonds.cli.{module}").register(app)
    return typer.main.get_group(app).commands
