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
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from fonds.errors import FondsError, ItemFailedError, ItemMemoryError

_MIB: Final = 1 << 20
_STATM: Final = Path("/proc/self/statm")
_SLACK_MIB: Final = 16
"""Refused a little later than it is seen from outside, where nobody can look away."""
MOST_ITEMS: Final = 500
"""After so many a process is replaced: native code is never quite tidy."""
_CLOSED: Final = 77
"""How a copy ends when nobody sends anything any more."""
READY: Final = b"ready"
"""The first word of a worker: from here on the time of items counts."""


class Post(NamedTuple):
    """What a worker is given."""

    channel: Connection
    lifeline: Connection
    """Closes when whoever started the worker is gone."""
    memory_mib: int
    seconds: float


def work(post: Post, worn: str, modules: Sequence[str]) -> None:
    """Answer items until the channel closes, by copies of this process, which loads the modules."""
    for module in modules:
        import_module(module)
    is_worn = _found(worn) if worn else lambda: bool(modules)
    gc.freeze()  # what all copies share is not looked through, and so not copied, in each
    with contextlib.suppress(EOFError, OSError):
        post.channel.send_bytes(READY)
        _silence()
        while True:
            _serve_by_a_copy(post, is_worn)


def _found(worn: str) -> Callable[[], bool]:
    module, _, name = worn.partition(":")
    found: Callable[[], bool] = getattr(import_module(module), name)
    return found


def _serve(post: Post, is_worn: Callable[[], bool]) -> None:
    """Answer items until one has left something behind."""
    for _ in range(MOST_ITEMS):
        task = post.channel.recv_bytes()
        _limit_processor(post.seconds)
        post.channel.send_bytes(_answer(task, post.memory_mib))
        if is_worn():
            return


def _serve_by_a_copy(post: Post, is_worn: Callable[[], bool]) -> None:
    """Let a copy answer until it is worn; if it dies of an item, die like it."""
    copy = os.fork()
    if copy == 0:
        code = 1
        try:
            # Who ends our parent may end this process with it, but not what an item has started.
            _watch(post.lifeline)
            _limit_memory(post.memory_mib)
            _serve(post, is_worn)
            code = 0
        except (EOFError, OSError):
            code = _CLOSED
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code == _CLOSED:
        raise EOFError
    if code:
        os._exit(code)


def _watch(lifeline: Connection) -> None:
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
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
        resource.setrlimit(resource.RLIMIT_AS, (used + (memory_mib + _SLACK_MIB) * _MIB,) * 2)
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
    first, second, memory_mib, seconds, worn, *modules = sys.argv[1:]
    channel, lifeline = Connection(int(first)), Connection(int(second))
    _watch(lifeline)
    work(Post(channel, lifeline, int(memory_mib), float(seconds)), worn, modules)


if __name__ == "__main__":
    main()
