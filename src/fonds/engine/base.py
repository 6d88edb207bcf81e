"""The protocol of engines: an idempotent function is run for each item, in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, Protocol, Self, TypeVar, runtime_checkable

from fonds.errors import EngineError, FondsError, SettingsError
from fonds.settings import Settings
from fonds.stores.permissions import make_private_folder

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

MEMORY_MIB: Final = 2048
"""The default memory limit of an item."""
SECONDS: Final = 120.0
"""The default time limit of an item."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemResult(Generic[ItemT, ResultT]):
    """The result of one item, or its error."""

    index: int
    """The item's index in the input."""
    item: ItemT
    result: ResultT | None = None
    error: FondsError | None = None

    def unwrap(self) -> ResultT:
        """The result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # None is a result where ResultT allows it


@runtime_checkable
class Engine(Protocol):
    """Runs an idempotent function over items, each at least once, in any order.

    Items have limits of time and memory; one that crashes its process harms no other.
    """

    @property
    def workers(self) -> int:
        """The number of items that run at a time; at most twice as many are read ahead."""
        ...

    def run(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[ItemResult[Any, Any]]:
        """The results of all items, as they finish; may be called by several threads at a time."""
        ...

    def close(self) -> None:
        """End all processes of the engine."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def require_importable(function: Callable[[Any], Any]) -> None:
    """Raise for a function that other processes cannot import."""
    if getattr(function, "__module__", None) == "__main__":
        raise EngineError("workers cannot import a script's functions; put it into a module")


_SQLITE: Final = "sqlite:///"


def portable_settings(settings: Settings) -> Settings:
    """The settings with absolute paths, for a process in another folder."""
    return replace(
        settings,
        home=settings.home.absolute(),
        database=settings.database_url,
        blobs=settings.blobs_url,
        indexes=settings.indexes_url,
    )


def require_local_files(settings: Settings) -> None:
    """Raise if the library is in files that this machine does not have."""
    files = [settings.database.removeprefix(_SQLITE)] * settings.database.startswith(_SQLITE)
    folders = [settings.blobs] if "://" not in settings.blobs else []
    for path in (*files, *folders):
        if not Path(path).exists():
            raise SettingsError(
                f"{path} is not on every machine of the cluster: share the library with PostgreSQL"
                " and an object store, or set FONDS_ENGINE=local"
            )
    make_private_folder(settings.home)
