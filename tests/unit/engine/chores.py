"""What the workers of the tests are asked to do; a worker imports it by name."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fonds.engine.opening import open_engine
from fonds.engine.worker import TASK_ID_SIZE
from fonds.errors import MalformedError, UploadRefusedError
from fonds.seams import time_left


def double(number: int) -> int:
    """Two times the number."""
    return 2 * number


def seconds_left(_: object) -> float:
    return time_left()


def unchanged(item: object) -> object:
    """The item itself."""
    return item


def misbehave(how: str) -> object:
    """Do what the item says, however bad; anything unknown is given back."""
    return _WAYS.get(how, lambda: how)()


def _spin() -> None:
    while True:
        pass


def _hoard_slowly() -> None:
    hoard = []
    with contextlib.suppress(MemoryError):
        while True:
            hoard.append(b"\1" * (8 << 20))
    time.sleep(600)


def _raise() -> None:
    raise ValueError("the chore went wrong")


def _complain() -> None:
    raise MalformedError("the chore is malformed")


_WAYS: Final[dict[str, Callable[[], object]]] = {
    "hang": lambda: time.sleep(600),
    "spin": _spin,
    "hoard": lambda: len(bytearray(4 << 30)),
    "hoard slowly": _hoard_slowly,
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leave": lambda: os._exit(3),
    "raise": _raise,
    "complain": _complain,
    "unsendable": lambda: lambda: None,
}


def end_the_node(file: str) -> None:
    """Note that this was tried, and kill what a node of a cluster runs this with."""
    with Path(file).open("a") as tried:
        tried.write(".")
    worker = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(worker[1]), signal.SIGKILL)
    time.sleep(600)


def double_slowly(number: int) -> int:
    """Two times the number, after a while."""
    time.sleep(0.3)
    return 2 * number


_calls: Final[list[object]] = []


def count_calls(item: object) -> int:
    """How many items this process remembers, with this one."""
    _calls.append(item)
    return len(_calls)


def has_two_calls() -> bool:
    """Whether this process has served two items."""
    return len(_calls) >= 2


def threads_allowed(_: object) -> str | None:
    """What the worker tells native libraries about threads."""
    return os.environ.get("OMP_THREAD_LIMIT")


def write_process_id_and_hang(folder: str) -> None:
    """Leave the process id, and that of a program of its own, in a folder; never end."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(folder, f"{os.getpid()}").touch()
    Path(folder, f"{child.pid}").touch()
    while True:
        time.sleep(0.1)


def parent(address: str, folder: str) -> None:
    """Run an engine until somebody kills this process."""
    engine = open_engine(address, workers=2, memory_mib=512, seconds=600)
    list(engine.run(write_process_id_and_hang, [folder, folder]))


class Unpicklable:
    """An item that cannot be sent."""

    def __reduce__(self) -> Any:
        raise TypeError("this item stays here")


class Unreadable:
    """A result that cannot be read."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> None:
    raise TypeError("this result is for nobody")


def unreadable(_: object) -> Unreadable:
    """A result that can be sent, but not read."""
    return Unreadable()


# What a file can make the process do that reads it -------------------------------------------


def _channel() -> socket.socket:
    """The channel on which this process answers."""
    return socket.socket(fileno=os.dup(int(_worker_arguments()[0])))


def _worker_arguments() -> list[str]:
    command = Path("/proc/self/cmdline").read_bytes().decode().split("\0")
    return command[command.index("fonds.engine.worker") + 1 :]


def _message(content: bytes) -> bytes:
    return struct.pack("!Q", len(content)) + content


class _TouchFile:
    """An object whose pickle makes a file where it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def _task_id() -> bytes:
    """What the answer for the item begins with."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "_serve":
        frame = frame.f_back
    assert frame is not None
    return bytes(frame.f_locals["task"][:TASK_ID_SIZE])


def answer_with_a_pickle(path: str) -> None:
    """Answer as no worker does, with code for the parent."""
    _channel().sendall(_message(_task_id() + pickle.dumps((_TouchFile(path), None))))
    time.sleep(600)


def answer_twice(item: str) -> str:
    """Answer, and then again: for the item that comes next."""
    _channel().sendall(_message(_task_id() + json.dumps({"result": item}).encode()))
    return "forged"


def begin_an_answer(_: object) -> None:
    """Send half of an answer."""
    _channel().sendall(struct.pack("!Q", 100) + b"{")
    time.sleep(600)


def announce_a_long_answer(_: object) -> None:
    """Send the length of an answer that no parent has the memory for."""
    _channel().sendall(struct.pack("!Q", 1 << 40))
    time.sleep(600)


def not_plain(_: object) -> object:
    """An object that is not plain data."""
    return Path()


def refuse(_: object) -> None:
    """Raise an error that needs more than a message."""
    raise UploadRefusedError("too long a name", kind="bad-name")


def surroundings(_: object) -> object:
    """The variables and the open files of this process."""
    files = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [dict(os.environ), files]


def write_file(path: str) -> None:
    """Write a file."""
    Path(path).write_text("text")


def count_at_once(item: tuple[str, object]) -> int:
    """How many processes do this at the same time in a folder, with this one."""
    folder, number = item
    file = Path(folder, f"{number}")
    file.touch()
    time.sleep(0.05)
    count = sum(not path.stat().st_mode & 0o100 for path in Path(folder).iterdir())
    file.chmod(0o700)
    return count
