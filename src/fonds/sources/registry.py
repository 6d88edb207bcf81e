"""The sources of a library: built-in ones, those of installed packages, and its websites."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import fonds.sources
from fonds.errors import PluginError, UnknownSourceError, UsageError
from fonds.plugins import load_plugin
from fonds.sources.base import Registered, Source
from fonds.sources.jurisdiction import JurisdictionAdapter

GROUP: Final = "fonds.sources"
"""The group of entry points in which packages announce sources."""


class SourceRegistry(Mapping[str, Registered]):
    """The sources of one library by name: feeds, codes and websites.

    A built-in source is imported when it is looked up, all of them when they are listed.
    """

    def __init__(self) -> None:
        self._registered: dict[str, Registered] = {}
        self.websites: Mapping[str, Registered] = {}

    def register(self, source: Registered) -> None:
        """Add a feed or code that is neither built in nor announced by a package."""
        self._registered[source.info.name] = source

    def set_websites(self, websites: Iterable[Registered]) -> None:
        """Replace the websites of the library."""
        self.websites = {website.info.name: website for website in websites}

    def __getitem__(self, name: str) -> Registered:
        if name in self.websites:
            return self.websites[name]
        if name in self._registered:
            return self._registered[name]
        builtin = _import_source(name) if name in _module_names() else None
        return builtin or plugin_sources()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._feeds_and_codes(), **self.websites})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def require(self, name: str) -> Registered:
        """The source of that name; an error that lists the sources if there is none."""
        source = self.get(name)
        if source is None:
            raise UnknownSourceError(
                f"there is no source {name!r}; there are: {', '.join(sorted(self))}"
            )
        return source

    def parser(self, name: str) -> Source:
        """The feed or website of that name, which parses what it has fetched."""
        source = self.require(name)
        if not isinstance(source, Source):
            raise UsageError(f"{name} is a code and not a feed: see `fonds code --help`")
        return source

    def code(self, name: str) -> JurisdictionAdapter:
        """The code of that name."""
        source = self.get(name)
        if not isinstance(source, JurisdictionAdapter):
            codes = ", ".join(sorted(self.codes()))
            raise UnknownSourceError(f"there is no code {name!r}; there are: {codes}")
        return source

    def csl_type(self, document: Mapping[str, Any]) -> str:
        """The type in CSL 1.0.2 of a document's row; `document` if its source is not installed."""
        source = self.get(document["source"])
        if source is None:
            return "document"
        return source.info.csl_types.get(document["kind"], source.info.csl_type)

    def feeds(self) -> dict[str, Source]:
        """All feeds by name."""
        return {
            name: source
            for name, source in self._feeds_and_codes().items()
            if isinstance(source, Source)
        }

    def codes(self) -> dict[str, JurisdictionAdapter]:
        """All codes by name."""
        return {
            name: source
            for name, source in self._feeds_and_codes().items()
            if isinstance(source, JurisdictionAdapter)
        }

    def dependency_graph(
        self, names: Iterable[str], *, without: Iterable[str] = ()
    ) -> dict[str, set[str]]:
        """The names of sources and of all they depend on, in order, each with its dependencies.

        Those of `without` are left out, also as dependencies.
        """
        excluded = {self.require(name).info.name for name in without}
        graph: dict[str, set[str]] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name not in graph and name not in excluded:
                graph[name] = set(self.require(name).info.depends_on) - excluded
                waiting += sorted(graph[name])
        try:
            order = list(TopologicalSorter(dict(sorted(graph.items()))).static_order())
        except CycleError as error:
            raise UsageError(
                f"sources depend on each other in a circle: {error.args[1]}"
            ) from error
        return {name: graph[name] for name in order}

    def _feeds_and_codes(self) -> dict[str, Registered]:
        return {**builtin_sources(), **plugin_sources(), **self._registered}


@cache
def builtin_sources() -> dict[str, Registered]:
    """The sources among the modules of `fonds.sources`, which declare their tables on import."""
    sources = filter(None, map(_import_source, _module_names()))
    return {source.info.name: source for source in sources}


@cache
def plugin_sources() -> dict[str, Registered]:
    """The sources that installed packages announce in the entry-point group `fonds.sources`.

    One that cannot be loaded is reported and left out.
    """
    plugins: dict[str, Registered] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        with suppress(PluginError):
            source = load_plugin(entry, partial(_load_source, {**builtin_sources(), **plugins}))
            plugins[source.info.name] = source
    return plugins


def _load_source(others: Mapping[str, Registered], entry: EntryPoint) -> Registered:
    loaded = entry.load()
    source = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(source, Source | JurisdictionAdapter):
        raise PluginError("it is not a source")
    if source.info.name in others:
        raise PluginError(f"another source is called {source.info.name}")
    return source


@cache
def _module_names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(fonds.sources.__path__)))


def _import_source(module: str) -> Registered | None:
    """The source that a module of `fonds.sources` defines, if it does."""
    return getattr(importlib.import_module(f"fonds.sources.{module}"), "source", None)
