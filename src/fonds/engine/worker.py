"""The inside of a worker process: one item at a time, under the limits it was given."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from fonds.errors import FondsError, ItemFailedError, ItemMemoryError

_MIB: Final = 1 << 20
_STATM: Final = Path("/proc/self/statm")
READY: Final = b"ready"
"""The first word of a worker: from here on the time of items counts."""


def work(channel: Connection, memory_mib: int, seconds: float, modules: Sequence[str]) -> None:
    """Answer items until the channel closes; with modules, each in a copy that has them loaded."""
    for module in modules:
        import_module(module)
    gc.freeze()  # what all copies share is not looked through, and so not copied, in each
    _limit_memory(memory_mib)
    take = _in_a_copy if modules else _take
    with contextlib.suppress(EOFError, OSError):
        channel.send_bytes(READY)
        _silence()
        while True:
            take(channel, channel.recv_bytes(), memory_mib, seconds)


def _take(channel: Connection, task: bytes, memory_mib: int, seconds: float) -> None:
    _limit_processor(seconds)
    channel.send_bytes(_answer(task, memory_mib))


def _in_a_copy(channel: Connection, task: bytes, memory_mib: int, seconds: float) -> None:
    """Let a copy answer that ends with its item; if it dies of it, die like it."""
    copy = os.fork()
    if copy == 0:
        try:
            _take(channel, task, memory_mib, seconds)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        os._exit(code)


def _watch(lifeline: Connection) -> None:
    """A killed parent says no word, but its end of the pipe closes."""
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    # The whole group: the item may have started programs of its own.
    os.killpg(0, signal.SIGKILL)


def _silence() -> None:
    """Native code prints its panics, which are no news: what went wrong is answered."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stderr.fileno())
    os.close(silence)


def _limit_memory(memory_mib: int) -> None:
    """Allow so much more address space than the interpreter has; no core files."""
    used = int(_STATM.read_text().split()[0]) * resource.getpagesize() if _STATM.exists() else 0
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_mib * _MIB,) * 2)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_processor(seconds: float) -> None:
    """Bound a loop in native code that lets no other thread run: not even the watching one."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = usage.ru_utime + usage.ru_stime
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent + 2 * seconds) + 10, hard))


def _answer(task: bytes, memory_mib: int) -> bytes:
    try:
        function, item = pickle.loads(task)  # noqa: S301 — written by the parent
        return pickle.dumps((function(item), None))
    except MemoryError:
        error = ItemMemoryError(f"this item needed more than {memory_mib} MiB of memory")
        return pickle.dumps((None, error))
    except FondsError as error:
        return _packed(error)
    except BaseException as error:  # noqa: BLE001 — native code panics beside Exception
        return _packed(ItemFailedError(f"{type(error).__name__}: {error}"))


def _packed(error: Any) -> bytes:
    """The error itself, or where its constructor cannot be repeated, what it says."""
    try:
        packed = pickle.dumps((None, error))
        pickle.loads(packed)  # noqa: S301 — written in the line before
    except Exception:  # noqa: BLE001 — pickling runs the error's own code
        return pickle.dumps((None, ItemFailedError(f"{type(error).__name__}: {error}")))
    return packed


def main() -> None:
    """Take over the descriptors the parent hands down, and work."""
    channel, lifeline, memory_mib, seconds, *modules = sys.argv[1:]
    watcher = threading.Thread(target=_watch, args=(Connection(int(lifeline)),), daemon=True)
    watcher.start()
    work(Connection(int(channel)), int(memory_mib), float(seconds), modules)


if __name__ == "__main__":
    main()
