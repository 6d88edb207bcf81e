"""Bodies too large for memory, taken in on disk, never more of them than allowed."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from fonds.api.edge import refuse_beyond
from fonds.api.problems import ProblemError

PIECE: Final = 1 << 20
"""Bytes that are written at once."""


@asynccontextmanager
async def spooled(request: Request, folder: Path, most: int) -> AsyncIterator[Path]:
    """The body of a request as a file that is gone afterwards; 413 beyond so many bytes."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit():
        refuse_beyond(most, int(announced[:18]))
    file = await anyio.to_thread.run_sync(_open, folder)
    try:
        await _fill(request, file, most)
        yield Path(file.name)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(file.close)


def _open(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.NamedTemporaryFile(dir=folder)


async def _fill(request: Request, file: Any, most: int) -> None:
    size, waiting = 0, bytearray()
    try:
        async for piece in request.stream():
            size += len(piece)
            refuse_beyond(most, size)
            waiting += piece
            if len(waiting) >= PIECE:
                await anyio.to_thread.run_sync(file.write, bytes(waiting))
                waiting.clear()
    except ClientDisconnect:
        raise ProblemError(400, "cut-short", "the connection ended before the body did") from None
    await anyio.to_thread.run_sync(_finish, file, bytes(waiting))


def _finish(file: Any, rest: bytes) -> None:
    file.write(rest)
    file.flush()
