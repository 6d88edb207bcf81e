"""An engine without processes, for tests whose files are harmless and that start many workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Self, TypeVar

from fonds.engine.base import ItemResult
from fonds.errors import FondsError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class InlineEngine:
    """Runs each item at once, in the process and thread of the caller, without limits."""

    workers = 1

    def run(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]
    ) -> Iterator[ItemResult[ItemT, ResultT]]:
        """The results of all items, in their order."""
        for index, item in enumerate(items):
            try:
                result = function(item)
            except FondsError as error:
                yield ItemResult(index=index, item=item, error=error)
            else:
                yield ItemResult(index=index, item=item, result=result)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
