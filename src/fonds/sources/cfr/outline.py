"""The nodes of a title in reading order, over all of its volumes and files.

A volume begins in the middle of a chapter, often of a part, and prints their headings again. What
was open when the volume before it ended is continued, not listed a second time.
"""

from __future__ import annotations

from dataclasses import dataclass

from fonds.errors import MalformedError
from fonds.sources.jurisdiction import TocNode


@dataclass(slots=True)
class _Placed:
    kind: str
    number: str
    volume: int


class Outline:
    """Takes nodes as they are found, and gives them away as the tree can be built of them."""

    def __init__(self) -> None:
        self._ready: list[TocNode] = []
        self._path: list[_Placed] = []
        self._held: list[TocNode] = []
        self._volume = 0
        self._is_titled = False

    def turn(self) -> None:
        """Another volume or file begins."""
        self._volume += 1

    def container(self, node: TocNode) -> bool:
        """List a level that has others below it; False if it only goes on from the last volume."""
        position = self._position(node)
        placed = _Placed(node.kind, node.number, self._volume)
        last = self._path[position] if position < len(self._path) else None
        is_same = last is not None and (last.kind, last.number) == (placed.kind, placed.number)
        if last and is_same and node.number and last.volume != self._volume:
            last.volume = self._volume
            return False
        self._leave(position)
        self._path.append(placed)
        self._ready.append(node)
        return True

    def leaf(self, node: TocNode) -> None:
        """List a leaf."""
        self._leave(self._position(node))
        self._ready.append(node)

    def hold(self, node: TocNode) -> None:
        """List a leaf of a level that goes on, once nothing below that level can go on any more."""
        self._position(node)
        self._held.append(node)

    def title(self, node: TocNode) -> bool:
        """Know the unit itself better; False if an earlier volume told already."""
        if self._is_titled:
            return False
        self._is_titled = True
        self._ready.append(node)
        return True

    def drain(self) -> list[TocNode]:
        """What is ready since it was last asked for."""
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> list[TocNode]:
        """The rest, at the end of the last file."""
        self._leave(0)
        return self.drain()

    def _position(self, node: TocNode) -> int:
        position = node.depth - 1
        if position > len(self._path):
            raise MalformedError(f"{node.label!r} stands in a level that has already ended")
        return position

    def _leave(self, position: int) -> None:
        """Nothing from here on can go on; the innermost is told first."""
        for node in sorted(self._held, key=lambda node: -node.depth):
            if node.depth > position:
                self._ready.append(node)
                self._held.remove(node)
        del self._path[position:]
