"""What an engine is: an idempotent function in, one outcome for each item out.

Libraries that are opened by an item, on whatever machine it lands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, Protocol, Self, TypeVar, runtime_checkable

from fonds.errors import EngineError, FondsError, SettingsError
from fonds.settings import Settings

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

MEMORY_MIB: Final = 2048
"""What an item may need, unless told otherwise."""
SECONDS: Final = 120.0
"""Likewise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemResult(Generic[ItemT, ResultT]):
    """What became of one item: a result, or an error."""

    index: int
    """The item's place in the input."""
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

    An item has a limit of time and memory, and cannot take anything with it when it goes wrong.
    """

    @property
    def workers(self) -> int:
        """How many items are worked on at once; no more than twice as many are read ahead."""
        ...

    def run(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[ItemResult[Any, Any]]:
        """One outcome for each item, as they finish; may be called by several threads at once."""
        ...

    def close(self) -> None:
        """End what the engine started; nothing of it is left running."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def require_importable(function: Callable[[Any], Any]) -> None:
    """Raise for a function that no other process can find."""
    if getattr(function, "__module__", None) == "__main__":
        raise EngineError("workers cannot import a script's functions; put it into a module")


_SQLITE: Final = "sqlite:///"


def on_the_way(settings: Settings) -> Settings:
    """The same settings for a process that stands in another folder."""
    return replace(
        settings,
        home=settings.home.absolute(),
        database=settings.database_url,
        blobs=settings.blobs_url,
        indexes=settings.indexes_url,
    )


def require_here(settings: Settings) -> None:
    """Raise where the library is in files that this machine does not have."""
    files = [settings.database.removeprefix(_SQLITE)] * settings.database.startswith(_SQLITE)
    folders = [settings.blobs] if "://" not in settings.blobs else []
    for path in (*files, *folders):
        if not Path(path).exists():
            raise SettingsError(
                f"{path} is not on every machine of the cluster: share the library with PostgreSQL"
                " and an object store, or set FONDS_ENGINE=local"
            )
    settings.home.mkdir(parents=True, exist_ok=True)
