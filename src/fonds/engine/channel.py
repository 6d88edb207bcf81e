"""Messages between a process and its workers: bytes with their length in front, over a socket."""

from __future__ import annotations

import socket
import struct
import time
from typing import Final

from fonds.errors import ItemMemoryError

MAX_RESULT_MIB: Final = 256
"""The limit of a result: how long it is depends on a file that may be hostile."""
_LENGTH: Final = struct.Struct("!Q")
_READ_SIZE: Final = 1 << 20


class Channel:
    """One end of a connection; with a deadline, the other end cannot block this one for longer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Both ends of a new connection."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    @classmethod
    def of_descriptor(cls, number: int) -> Channel:
        """The end that this process has inherited."""
        return cls(socket.socket(fileno=number))

    def fileno(self) -> int:
        """The descriptor, to wait for a message."""
        return self._connection.fileno()

    def close(self) -> None:
        """Close this end."""
        self._connection.close()

    def send(self, *parts: bytes | bytearray, deadline: float | None = None) -> None:
        """Send a message; TimeoutError if it is not taken by the deadline (monotonic clock)."""
        for part in (_LENGTH.pack(sum(map(len, parts))), *parts):
            self._limit(deadline)
            self._connection.sendall(part)

    def receive(self, *, deadline: float | None = None, max_mib: int | None = None) -> bytearray:
        """The next message; EOFError at the end, TimeoutError if it is incomplete by the deadline.

        ItemMemoryError for one that is announced as longer than `max_mib`.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if max_mib is not None and length > max_mib << 20:
            raise ItemMemoryError(f"the result of this item is longer than {max_mib} MiB")
        return self._read(length, deadline)

    def _read(self, length: int, deadline: float | None) -> bytearray:
        received = bytearray()
        while len(received) < length:
            self._limit(deadline)
            part = self._connection.recv(min(_READ_SIZE, length - len(received)))
            if not part:
                raise EOFError("the other end was closed")
            received += part
        return received

    def _limit(self, deadline: float | None) -> None:
        if deadline is not None:
            # A timeout of zero would not wait for what is already on its way.
            self._connection.settimeout(max(0.001, deadline - time.monotonic()))
