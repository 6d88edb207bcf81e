"""The inside of an invocation that has a process of its own: one order in, one report out."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from fonds.codes.budget import MIB, Budget, data_size, resident
from fonds.codes.invocation import InvocationReport, UnitOrder, invoke, read_order
from fonds.errors import ItemMemoryError
from fonds.library import Library
from fonds.settings import Settings
from fonds.sources.registry import get_code

CACHE_MIB: Final = 2
THREADS: Final = 4
STACK: Final = 2 * MIB
"""Of a thread: counted by the kernel as if it were used."""


def main() -> None:
    """Read the order, work, answer."""
    order, chosen = read_order(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lean = {"home": Path(chosen["home"]), "sqlite_cache_mib": CACHE_MIB}
    settings = Settings(**{**chosen, **lean})
    threading.stack_size(STACK)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_limit(order.budget), resource.RLIM_INFINITY))
    try:
        told = asyncio.run(_invoked(order, settings)).to_json()
    except MemoryError:
        allowed = f"more than the {order.budget.memory_mib} MiB allowed"
        told = {"error": ItemMemoryError.__name__, "message": f"the invocation needs {allowed}"}
    except Exception as error:  # noqa: BLE001 — the parent decides what it means
        told = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(told) + "\n")


async def _invoked(order: UnitOrder, settings: Settings) -> InvocationReport:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    library = Library(settings)
    try:
        async with library.open_context(tables=False) as context:
            return await invoke(order, get_code(order.source), context)
    except MemoryError:
        # Ending in good order takes a little more.
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
        raise
    finally:
        library.close()


def _limit(budget: Budget) -> int:
    """What the kernel must count as data for resident memory to stay within the budget.

    It counts what was reserved and not touched, and not what is mapped from files.
    """
    return data_size() - resident() + budget.memory_mib * MIB + THREADS * STACK


def _end_with_parent() -> None:
    """The pipe closes when the parent ends, however it ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
