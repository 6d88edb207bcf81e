"""The command `fonds` without its start: a process that has imported it forks for each command.

The program it puts into a folder hands over its arguments, variables, working folder and streams,
and ends as the command ends. All of `fonds.cli` is imported in the fork, which sees them just as a
process of its own would. Tests of starting, of signals and of encodings need the real command.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TextIO

from fonds.sources.registry import builtin_sources

# The command, and what parts of it import late, which every fork would have to do anew.
_IMPORTED: Final = (
    "fonds.cli.main",
    "alembic.command",
    "fonds.embed.current",
    "fonds.embed.wordllama",
    "fonds.runs.verification",
    "fonds.search.retrieve",
    "rich._emoji_codes",
    "safetensors.numpy",
    "tokenizers",
)

_STDERR: Final = 2

# Ends the way the command ended, also by a signal. Without `site` it starts in no time.
_PROGRAM: Final = """\
#!{python} -IS
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
socket.send_fds(connection, [b"-"], [0, 1, 2])
request = [sys.argv, os.getcwd(), dict(os.environ)]
connection.sendall(json.dumps(request).encode() + b"\\n")
code = int(connection.recv(16))
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""

Request = tuple[list[str], str, dict[str, str]]


def main(folder: Path) -> None:
    """Put the program into the folder and serve until killed; a fork of it becomes the command."""
    for name in _IMPORTED:
        import_module(name)
    builtin_sources()
    # Consoles look at variables and streams when they are made.
    for name in [name for name in sys.modules if f"{name}.".startswith("fonds.cli.")]:
        del sys.modules[name]
    gc.freeze()
    request, streams = _await_request(_attend(folder))
    _take_over(request, streams)
    sys.exit(import_module("fonds.cli.main").main())


def _attend(folder: Path) -> socket.socket:
    """A connection, each in a fork of its own."""
    address = folder / "socket"
    listener = socket.create_server(str(address), family=socket.AF_UNIX)
    _write_program(folder, address)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return connection
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _write_program(folder: Path, address: Path) -> None:
    making = folder / "making"
    making.write_text(_PROGRAM.format(python=sys.executable, address=str(address)))
    making.chmod(0o755)
    making.rename(folder / "fonds")


def _await_request(connection: socket.socket) -> tuple[Request, list[int]]:
    """What is to be done, in a fork; its parent tells the program how that ended."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request: Request = json.loads(lines.readline())
    child = os.fork()
    if child == 0:
        connection.close()
        return request, streams
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in ready:
        # The program says nothing more: it has been killed.
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(str(code).encode())
    os._exit(0)


def _take_over(request: Request, streams: list[int]) -> None:
    sys.argv, folder, variables = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = _writer(1, "strict")
    sys.stderr = _writer(_STDERR, "backslashreplace")
    os.chdir(folder)
    ours, theirs = _search_path(os.environ), _search_path(variables)
    os.environ.clear()
    os.environ.update(variables)
    rest = [entry for entry in sys.path if entry not in ours]
    sys.path[:] = [str(Path(sys.executable).parent), *theirs, *rest]


def _writer(number: int, errors: str) -> TextIO:
    """A stream as Python opens it: what it may do depends on what it leads to."""
    lines = number == _STDERR or os.isatty(number)
    return open(number, "w", 1 if lines else -1, "utf-8", errors, closefd=False)


def _search_path(variables: Any) -> list[str]:
    return [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
