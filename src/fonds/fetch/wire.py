"""What is asked and what is answered: the nouns that the network, recordings and replays share."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from fonds.fetch.addresses import Address

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One request; who asks adds `Host` to its headers."""

    address: Address = field(repr=False)
    headers: Headers = field(repr=False, default_factory=list)
    patience: float | None = None
    """Seconds to wait for a connection, and for each piece that is sent or received."""
    method: bytes = b"GET"
    content: AsyncIterable[bytes] | None = None
    """Its body; the headers say how long it is."""


class Body(Protocol):
    """What follows the head of an answer, once; to be closed, read or not."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, as they arrive."""
        ...

    async def aclose(self) -> None:
        """Read no further."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One response, whose body is still to be read."""

    status: int
    body: Body
    headers: Headers = field(default_factory=list)
    reason: bytes = b""
    given_at: datetime | None = None
    """When, if a recording or a replay knows that."""


class Wire(Protocol):
    """A way to upstreams."""

    async def ask(self, question: Question) -> Answer:
        """The answer to a question; whoever gets it closes its body."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...


def told(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by their names in small letters; one that is sent several times is one list."""
    held: dict[str, str] = {}
    for raw, value in headers:
        name = raw.lower().decode("latin-1")
        held[name] = f"{held[name]}, {text(value)}" if name in held else text(value)
    return held


def text(value: bytes) -> str:
    """A header's value: what is not ASCII is mostly UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
