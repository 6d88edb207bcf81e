"""Plugins: what installed packages announce as entry points of the groups `fonds.…`.

A plugin that cannot be loaded is reported by one line, left out, and listed by `fonds doctor`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Final, TypeVar

from fonds.errors import PluginError

_log: Final = logging.getLogger("fonds.plugins")  # without a handler it writes to stderr

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenPlugin:
    """A plugin that cannot be loaded."""

    name: str
    group: str
    package: str
    reason: str


_broken: Final[dict[tuple[str, str], BrokenPlugin]] = {}


def load_plugin(entry: EntryPoint, load: Callable[[EntryPoint], T]) -> T:
    """The result of a function for an entry point; PluginError, reported once, if it fails."""
    try:
        return load(entry)
    except Exception as error:
        key = (entry.group, entry.name)
        if key not in _broken:
            _broken[key] = _describe(entry, error)
            _log.warning("%s", _message(_broken[key]))
        raise PluginError(_message(_broken[key])) from error


def broken_plugins(group: str) -> list[BrokenPlugin]:
    """The plugins of a group that could not be loaded by this process, in order of their names."""
    return [plugin for key, plugin in sorted(_broken.items()) if key[0] == group]


def _describe(entry: EntryPoint, error: Exception) -> BrokenPlugin:
    text = " ".join(str(error).split())
    return BrokenPlugin(
        name=entry.name,
        group=entry.group,
        package=entry.dist.name if entry.dist else "an unknown package",
        reason=f"{type(error).__name__}: {text}" if text else type(error).__name__,
    )


def _message(plugin: BrokenPlugin) -> str:
    return (
        f"the plugin {plugin.name} of {plugin.package} ({plugin.group}) is left out: "
        f"{plugin.reason}; update or remove the package"
    )
