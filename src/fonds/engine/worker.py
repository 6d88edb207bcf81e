"""The main program of a worker process: runs one item at a time, under limits."""

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
from pathlib import Path
from typing import Final, NamedTuple

from fonds.engine.channel import Channel
from fonds.engine.outcomes import AS_JSON, AS_PICKLE, OutcomeFormat
from fonds.errors import FondsError, ItemFailedError, ItemMemoryError
from fonds.seams import limited_to

_MIB: Final = 1 << 20
_STATM: Final = Path("/proc/self/statm")
_SLACK_MIB: Final = 16
"""Added to the memory limit: the parent, which cannot be bypassed, should notice first."""
MAX_ITEMS_PER_COPY: Final = 500
"""After so many items a copy is replaced, since native code leaks."""
_CLOSED: Final = 77
"""Exit code of a copy whose channel was closed."""
READY: Final = b"ready"
"""The first message of a worker: from then on the time of items counts."""
TASK_ID_SIZE: Final = 16
"""Bytes at the start of a task, which its outcome repeats; another item does not know them."""
ISOLATED: Final = "isolated"
"""The argument for a worker that reads files of others."""


class WorkerArguments(NamedTuple):
    """The channels and limits of a worker."""

    channel: Channel
    lifeline: Channel
    """Closed when the parent process ends."""
    memory_mib: int
    seconds: float
    is_isolated: bool
    """It reads files of others: it then writes no file, and returns plain data."""


def work(arguments: WorkerArguments, should_recycle: str, modules: Sequence[str]) -> None:
    """Import the modules, and run items in copies of this process until the channel is closed."""
    for module in modules:
        import_module(module)
    is_recycled = _function(should_recycle) if should_recycle else lambda: bool(modules)
    gc.freeze()  # the collector would touch, and so copy, the memory that copies share
    with contextlib.suppress(EOFError, OSError):
        arguments.channel.send(READY)
        _silence()
        while True:
            _serve_in_copy(arguments, is_recycled)


def _function(path: str) -> Callable[[], bool]:
    module, _, name = path.partition(":")
    function: Callable[[], bool] = getattr(import_module(module), name)
    return function


def _serve(arguments: WorkerArguments, is_recycled: Callable[[], bool]) -> None:
    """Run items until the process is to be replaced."""
    for _ in range(MAX_ITEMS_PER_COPY):
        task = arguments.channel.receive()
        _limit_processor(arguments)
        outcomes = AS_JSON if arguments.is_isolated else AS_PICKLE
        with limited_to(arguments.seconds):
            outcome = _run_item(memoryview(task)[TASK_ID_SIZE:], arguments.memory_mib, outcomes)
        arguments.channel.send(task[:TASK_ID_SIZE], outcome)
        if is_recycled():
            return


def _serve_in_copy(arguments: WorkerArguments, is_recycled: Callable[[], bool]) -> None:
    """Let a copy run items until it is replaced; if an item kills it, die in the same way."""
    copy = os.fork()
    if copy == 0:
        code = 1
        try:
            # If the parent is killed, the programs that an item started must be killed, too.
            _watch(arguments.lifeline)
            _limit_memory(arguments.memory_mib)
            if arguments.is_isolated:
                _write_no_file()
            _serve(arguments, is_recycled)
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


def _watch(lifeline: Channel) -> None:
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Channel) -> None:
    """Wait for the end of the pipe to be closed, which happens if the parent is killed."""
    with contextlib.suppress(EOFError, OSError):
        lifeline.receive()
    # The whole group: the item may have started programs of its own.
    os.killpg(0, signal.SIGKILL)


def _silence() -> None:
    """Discard the panics that native code prints: the error is returned."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stderr.fileno())
    os.close(silence)


def _limit_memory(memory_mib: int) -> None:
    """Limit the address space beyond what the interpreter uses, and write no core files."""
    used = int(_STATM.read_text().split()[0]) * resource.getpagesize() if _STATM.exists() else 0
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (used + (memory_mib + _SLACK_MIB) * _MIB,) * 2)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_processor(arguments: WorkerArguments) -> None:
    """Limit the processor time, against loops in native code that let no other thread run."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    # Our own work may use several processors; the parent limits its time as well.
    seconds = arguments.seconds if arguments.is_isolated else 2 * arguments.seconds + 10
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 2, hard))


def _write_no_file() -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _run_item(task: memoryview, memory_mib: int, outcomes: OutcomeFormat) -> bytes:
    error: FondsError
    try:
        function, item = pickle.loads(task)  # noqa: S301 — written by the parent
        return outcomes.pack((function(item), None))
    except MemoryError:
        error = ItemMemoryError(f"this item needed more than {memory_mib} MiB of memory")
    except FondsError as raised:
        error = raised
    except BaseException as raised:  # noqa: BLE001 — native code panics beside Exception
        error = ItemFailedError(f"{type(raised).__name__}: {raised}")
    return outcomes.pack((None, error))


def main() -> None:
    """Read the arguments of the parent, and work."""
    first, second, memory_mib, seconds, is_isolated, should_recycle, *modules = sys.argv[1:]
    arguments = WorkerArguments(
        channel=Channel.of_descriptor(int(first)),
        lifeline=Channel.of_descriptor(int(second)),
        memory_mib=int(memory_mib),
        seconds=float(seconds),
        is_isolated=is_isolated == ISOLATED,
    )
    _watch(arguments.lifeline)
    work(arguments, should_recycle, modules)


if __name__ == "__main__":
    main()
