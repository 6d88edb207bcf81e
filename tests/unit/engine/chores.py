"""What the workers of the tests are asked to do; a worker imports it by name."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fonds.engine.opening import open_engine
from fonds.errors import MalformedError


def double(number: int) -> int:
    """Two times the number."""
    return 2 * number


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
