"""The user of this machine who opened a loopback connection to this process.

A browser or a program of that user does. A proxy that a system service runs does not, although its
address is this machine's and it may add no header.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

TABLES: Final = {
    socket.AF_INET: Path("/proc/net/tcp"),
    socket.AF_INET6: Path("/proc/net/tcp6"),
}
"""The connections of this machine, with their users."""
_WORD: Final = 4
"""Addresses are written in words of so many bytes, each as a number of this machine."""


def belongs_to_own_user(connection: Any) -> bool | None:
    """Look up the user of the peer of a loopback connection; None if the system does not tell."""
    table = TABLES.get(connection.family)
    if table is None or not table.exists():
        return None
    try:
        peer, own = connection.getpeername(), connection.getsockname()
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:
        return False  # it is closed by now
    return user_of(lines, peer, own) == os.getuid()


def user_of(lines: Iterable[str], peer: tuple[Any, ...], own: tuple[Any, ...]) -> int | None:
    """The user of the connection from `peer` to `own` in a table; None if it is not there."""
    ends = [_entry(peer), _entry(own)]
    for line in lines:
        fields = line.split()
        if fields[1:3] == ends:
            return int(fields[7])
    return None


def _entry(address: tuple[Any, ...]) -> str:
    host, port = address[0], address[1]
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = [packed[start : start + _WORD] for start in range(0, len(packed), _WORD)]
    order = -1 if sys.byteorder == "little" else 1
    return f"{b''.join(word[::order] for word in words).hex().upper()}:{port:04X}"
