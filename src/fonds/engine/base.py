"""What an engine is: an idempotent function in, one outcome for each item out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from fonds.errors import FondsError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(Generic[ItemT, ResultT]):
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
    """Runs an idempotent function over items, each at least once, in any order."""

    def run(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[Outcome[Any, Any]]:
        """One outcome for each item, as they finish; the input is read only a little ahead."""
        ...

    def close(self) -> None:
        """End what the engine started; nothing of it is left running."""
        ...
