"""Finding sources, feeds and codes alike: our own, and those that installed packages announce."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Final

import fonds.sources
from fonds.errors import UnknownSourceError, UsageError
from fonds.sources.base import Registered, Source
from fonds.sources.jurisdiction import JurisdictionAdapter

GROUP: Final = "fonds.sources"


@cache
def builtin_sources() -> dict[str, Registered]:
    """Every module of `fonds.sources` that has a `source`."""
    names = [module.name for module in pkgutil.iter_modules(fonds.sources.__path__)]
    modules = [importlib.import_module(f"fonds.sources.{name}") for name in sorted(names)]
    found = [module.source for module in modules if hasattr(module, "source")]
    return {source.info.name: source for source in found}


@cache
def plugin_sources() -> dict[str, Registered]:
    """What installed packages offer in the entry-point group `fonds.sources`."""
    found: dict[str, Registered] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        loaded = entry.load()
        source = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(source, Source | JurisdictionAdapter):
            raise UsageError(f"the entry point {entry.name} of {GROUP} is not a source")
        if source.info.name in builtin_sources() or source.info.name in found:
            raise UsageError(f"two sources are called {source.info.name}")
        found[source.info.name] = source
    return found


_adopted: dict[str, Registered] = {}


def adopt(sources: Iterable[Registered]) -> None:
    """Take in the sources that the opened library knows by itself, in place of another's."""
    _adopted.clear()
    _adopted.update({source.info.name: source for source in sources})


def all_sources() -> dict[str, Registered]:
    """All sources by name, ours first, then those of the library that was opened last."""
    return {**builtin_sources(), **plugin_sources(), **_adopted}


def get_source(name: str) -> Registered:
    """The source of that name, or an error that names those there are."""
    sources = all_sources()
    if name not in sources:
        raise UnknownSourceError(
            f"there is no source {name!r}; there are: {', '.join(sorted(sources))}"
        )
    return sources[name]


def csl_type(document: Mapping[str, Any]) -> str:
    """The type in CSL 1.0.2 of a document's row; `document` if its source is not installed."""
    source = all_sources().get(document["source"])
    if source is None:
        return "document"
    return source.info.csl_types.get(document["kind"], source.info.csl_type)


def get_feed(name: str) -> Source:
    """The feed of that name."""
    source = get_source(name)
    if not isinstance(source, Source):
        raise UsageError(f"{name} is a code and not a feed: see `fonds code --help`")
    return source


def get_code(name: str) -> JurisdictionAdapter:
    """The code of that name. Of ours, no other is loaded for it."""
    if find_spec(f"fonds.sources.{name}") is not None:
        source = getattr(importlib.import_module(f"fonds.sources.{name}"), "source", None)
    else:
        source = all_sources().get(name)
    if not isinstance(source, JurisdictionAdapter):
        codes = ", ".join(sorted(all_codes()))
        raise UnknownSourceError(f"there is no code {name!r}; there are: {codes}")
    return source


def all_codes() -> dict[str, JurisdictionAdapter]:
    """The codes among the sources."""
    return {
        name: source
        for name, source in all_sources().items()
        if isinstance(source, JurisdictionAdapter)
    }


def all_feeds() -> dict[str, Source]:
    """The feeds among the sources."""
    return {name: source for name, source in all_sources().items() if isinstance(source, Source)}


def dependency_graph(names: Iterable[str]) -> dict[str, set[str]]:
    """Each source after those it depends on, and with them; missing ones are added."""
    graph: dict[str, set[str]] = {}
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name not in graph:
            graph[name] = set(get_source(name).info.depends_on)
            waiting += sorted(graph[name])
    try:
        order = list(TopologicalSorter(dict(sorted(graph.items()))).static_order())
    except CycleError as error:
        raise UsageError(f"sources depend on each other in a circle: {error.args[1]}") from error
    return {name: graph[name] for name in order}
