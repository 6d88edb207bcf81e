"""An event loop whose connections all go to one port of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class RedirectingLoop(asyncio.SelectorEventLoop):
    """Notes the addresses that connections are opened to, and opens them to a port of this machine.

    So a test sees the very address that the kernel would be asked to connect to.
    """

    def __init__(self, port: int, *, unreachable: Iterable[str] = ()) -> None:
        super().__init__()
        self.connected: list[str] = []
        self._port = port
        self._unreachable = frozenset(unreachable)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self.connected.append(address[0])
        if address[0] in self._unreachable:
            raise ConnectionRefusedError(111, "unreachable")
        await super().sock_connect(sock, ("127.0.0.1", self._port))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this loop, and close it."""
        with asyncio.Runner(loop_factory=lambda: self) as runner:
            return runner.run(work)
