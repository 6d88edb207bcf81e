"""A port of this machine that leaves no connection open.

asyncio's own server leaks what it accepts while it is being closed, and Python warns of that in
whichever test runs next.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

Talk = Callable[[socket.socket], Coroutine[Any, Any, None]]
"""What is done about a client; cancelled when the port is closed, perhaps before it has begun."""


@asynccontextmanager
async def open_port(talk: Talk, port: int = 0) -> AsyncIterator[int]:
    """The number of a port where clients are let in until the block ends."""
    loop = asyncio.get_running_loop()
    talks: dict[asyncio.Task[None], socket.socket] = {}

    def let_in() -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):  # who came has gone
            connection, _ = listening.accept()
            talks[loop.create_task(talk(connection))] = connection

    with socket.create_server(("127.0.0.1", port), backlog=256) as listening:
        listening.setblocking(False)
        loop.add_reader(listening, let_in)
        try:
            yield listening.getsockname()[1]
        finally:
            loop.remove_reader(listening)
    for task in talks:
        task.cancel()
    await asyncio.gather(*talks, return_exceptions=True)
    await asyncio.sleep(0)
    for connection in talks.values():
        connection.close()
