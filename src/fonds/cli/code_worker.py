"""The process of one invocation: reads an order from stdin, writes a report to stdout."""

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

from fonds.cli.process import set_up_logging
from fonds.codes.budget import MIB, Budget, data_size, memory_in_use
from fonds.codes.invocation import InvocationReport, UnitOrder, invoke, read_order
from fonds.errors import ItemMemoryError
from fonds.library import Library
from fonds.settings import Settings

SQLITE_CACHE_MIB: Final = 2
THREADS: Final = 4
STACK_BYTES: Final = 2 * MIB
"""The kernel counts the whole stack of a thread as used."""


def main() -> None:
    """Read the order, execute it, write the report."""
    order, options = read_order(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    overrides = {"home": Path(options["home"]), "sqlite_cache_mib": SQLITE_CACHE_MIB}
    settings = Settings(**{**options, **overrides})
    set_up_logging(settings)
    threading.stack_size(STACK_BYTES)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_limit(order.budget), resource.RLIM_INFINITY))
    try:
        report = asyncio.run(_invoke(order, settings)).to_json()
    except MemoryError:
        allowed = f"more than the {order.budget.memory_mib} MiB allowed"
        report = {"error": ItemMemoryError.__name__, "message": f"the invocation needs {allowed}"}
    except Exception as error:  # noqa: BLE001 — the parent process handles it
        report = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(report) + "\n")


async def _invoke(order: UnitOrder, settings: Settings) -> InvocationReport:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    library = Library(settings)
    try:
        async with library.open_context(tables=False) as context:
            return await invoke(order, library.sources.code(order.source), context)
    except MemoryError:
        # Closing the library needs a little more memory.
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
        raise
    finally:
        library.close()


def _limit(budget: Budget) -> int:
    """The RLIMIT_DATA that keeps anonymous memory within the budget.

    The kernel counts reserved pages that were never touched, and not those mapped from files.
    """
    return data_size() - memory_in_use() + budget.memory_mib * MIB + THREADS * STACK_BYTES


def _end_with_parent() -> None:
    """Exit when stdin closes, which happens however the parent ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
