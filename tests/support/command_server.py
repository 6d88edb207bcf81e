"""The command `fonds` without its start: a process that has imported it forks for each command.

The programs it puts into a folder, `fonds` and `forked-python`, hand over their arguments,
variables, working folder and streams, pass on the signals that ask to end, and end as the command
ends. All of `fonds.cli` is imported in the fork, which sees them just as a process of its own
would. Tests of starting and of encodings need the real command, and so do those that look for its
children.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

from fonds.cli.main import MENU
from fonds.schema import statements

# The command, and what parts of it import late, which every fork would have to do anew.
_IMPORTED: Final = (
    "fonds.cli.main",
    *(f"fonds.cli.{module}" for module in sorted({entry.module for entry in MENU.values()})),
    "fonds.citations.extract",
    "fonds.codes.invocation",
    "fonds.codes.run",
    "fonds.embed.worker",
    "fonds.embed.openai",
    "fonds.embed.wordllama",
    "fonds.pipeline",
    "fonds.runs.normalization",
    "fonds.runs.overview",
    "fonds.runs.verify",
    "fonds.search.resolve",
    "fonds.search.retrieve",
    "rich._emoji_codes",
    "safetensors.numpy",
    "tokenizers",
)

PROGRAMS: Final = ("forked-python", "fonds")
"""The last of them is there when all are."""

_STDERR: Final = 2

# Ends the way the command ended, also by a signal. Without `site` it starts in no time. A request
# to end that comes before it knows whom to tell has to wait.
_PROGRAM: Final = """\
#!{python} -IS
import json, os, signal, socket, sys
asked_to_end = signal.SIGINT, signal.SIGTERM
signal.pthread_sigmask(signal.SIG_BLOCK, asked_to_end)
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
socket.send_fds(connection, [b"-"], [0, 1, 2])
request = [sys.argv, os.getcwd(), dict(os.environ)]
connection.sendall(json.dumps(request).encode() + b"\\n")
answers = connection.makefile("rb")
command = int(answers.readline())
def pass_on(number, _):
    try:
        os.kill(command, number)
    except ProcessLookupError:
        pass  # it ends as we speak
for number in asked_to_end:
    signal.signal(number, pass_on)
signal.pthread_sigmask(signal.SIG_UNBLOCK, asked_to_end)
code = int(answers.readline())
if code < 0:
    for number in asked_to_end:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""

Request = tuple[list[str], str, dict[str, str]]


def main(folder: Path, *further: str) -> None:
    """Put the program into the folder and serve until killed; a fork of it becomes the command.

    What is imported further is memory that each fork begins with.
    """
    for name in (*_IMPORTED, *further):
        import_module(name)
    statements("sqlite")
    # Consoles look at variables and streams when they are made.
    for name in [name for name in sys.modules if f"{name}.".startswith("fonds.cli.")]:
        del sys.modules[name]
    gc.freeze()
    request, streams = _await_request(_attend(folder))
    program = _take_over(request, streams)
    if program == "forked-python":
        _run_module()
    sys.exit(import_module("fonds.cli.main").main())


def _run_module() -> NoReturn:
    """As `python -m MODULE` does, which looks for it in the working folder first."""
    _, option, name, *arguments = sys.argv
    assert option == "-m"
    sys.argv, sys.path[0] = [name, *arguments], str(Path.cwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.exit()


def _attend(folder: Path) -> socket.socket:
    """A connection, each in a fork of its own."""
    address = folder / "socket"
    listener = socket.create_server(str(address), family=socket.AF_UNIX)
    for name in PROGRAMS:
        _write_program(folder / name, address)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return connection
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _write_program(program: Path, address: Path) -> None:
    making = program.with_suffix(".making")
    making.write_text(_PROGRAM.format(python=sys.executable, address=str(address)))
    making.chmod(0o755)
    making.rename(program)


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
    _tell(connection, child)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in ready:
        # The program says nothing more: it has been killed.
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _tell(connection, code)
    os._exit(0)


def _tell(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # nobody listens who has been killed
        connection.sendall(b"%d\n" % number)


def _take_over(request: Request, streams: list[int]) -> str:
    """Become what was typed, and say which program that was."""
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
    return Path(sys.argv[0]).name


def _writer(number: int, errors: str) -> TextIO:
    """A stream as Python opens it: what it may do depends on what it leads to."""
    lines = number == _STDERR or os.isatty(number)
    return open(number, "w", 1 if lines else -1, "utf-8", errors, closefd=False)


def _search_path(variables: Any) -> list[str]:
    return [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
