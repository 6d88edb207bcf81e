"""Bodies of requests in temporary files: how many at once, how large, and for how long."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from fonds.api.middleware import refuse_beyond
from fonds.api.problems import RETRY_AFTER, ProblemError
from fonds.stores.permissions import make_private_folder

CHUNK_BYTES: Final = 1 << 20
"""Bytes per read or write."""

SpoolKind = Literal["webhook", "file"]


@dataclass(kw_only=True, slots=True)
class SpoolSlots:
    """The bodies of one kind that a server receives at the same time.

    It belongs to one event loop, so that no lock is needed.
    """

    total: int
    per_sender: int
    seconds: float
    """Within which a body must have arrived."""
    _taken: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def take(self, sender: str) -> Iterator[None]:
        """Hold one slot; 503 if there is none."""
        if self._taken.total() >= self.total or self._taken[sender] >= self.per_sender:
            raise ProblemError(
                503,
                "busy",
                "too many files are being received at the moment; try again in a few seconds",
                headers=RETRY_AFTER,
            )
        self._taken[sender] += 1
        try:
            yield
        finally:
            self._taken[sender] -= 1
            self._taken += Counter()  # forgets senders without a slot


def make_spool_slots() -> dict[SpoolKind, SpoolSlots]:
    """The slots of a server: any client may send a webhook, files come from known users."""
    return {
        "webhook": SpoolSlots(total=4, per_sender=4, seconds=60.0),
        "file": SpoolSlots(total=32, per_sender=8, seconds=900.0),
    }


def spool_slots(request: Request, kind: SpoolKind) -> SpoolSlots:
    """The slots of the server that handles a request."""
    slots: dict[SpoolKind, SpoolSlots] = request.app.state.spool_slots
    return slots[kind]


@asynccontextmanager
async def spooled(
    request: Request, kind: SpoolKind, *, sender: str, folder: Path, max_bytes: int
) -> AsyncIterator[Path]:
    """The body of a request in a temporary file.

    413 if it is too large, 408 if it takes too long, 503 if too many others arrive.
    """
    header = request.headers.get("content-length", "")
    if header.isascii() and header.isdigit():
        refuse_beyond(max_bytes, int(header[:18]))
    slots = spool_slots(request, kind)
    with slots.take(sender):
        file = await anyio.to_thread.run_sync(_open, folder)
        try:
            await _receive_within(slots.seconds, request, file, max_bytes)
            yield Path(file.name)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(file.close)


def _open(folder: Path) -> Any:
    make_private_folder(folder)
    return tempfile.NamedTemporaryFile(dir=folder)


async def _receive_within(seconds: float, request: Request, file: Any, max_bytes: int) -> None:
    try:
        with anyio.fail_after(seconds):
            await _write_body(request, file, max_bytes)
    except TimeoutError:
        raise ProblemError(
            408, "too-slow", f"the body did not arrive within {seconds:g} seconds; send it again"
        ) from None


async def _write_body(request: Request, file: Any, max_bytes: int) -> None:
    size, buffer = 0, bytearray()
    try:
        async for chunk in request.stream():
            size += len(chunk)
            refuse_beyond(max_bytes, size)
            buffer += chunk
            if len(buffer) >= CHUNK_BYTES:
                await anyio.to_thread.run_sync(file.write, bytes(buffer))
                buffer.clear()
    except ClientDisconnect:
        raise ProblemError(
            400, "cut-short", "the connection closed before the whole body arrived"
        ) from None
    await anyio.to_thread.run_sync(_write_rest, file, bytes(buffer))


def _write_rest(file: Any, rest: bytes) -> None:
    file.write(rest)
    file.flush()
