"""The one thread in which codes are cut, normalized and written.

One, because the memory that the C libraries under us use is kept by each thread anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="codes")


async def in_thread(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something that blocks without holding up what is being fetched; it pays as we do."""
    call = partial(copy_context().run, partial(act, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_THREAD, call)
