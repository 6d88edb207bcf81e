"""Ctrl-C while a command imports what it needs, before its work starts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def ending_on_ctrl_c() -> Iterator[None]:
    """Let the system end the process on Ctrl-C: nothing is open that must be closed.

    Python would raise an exception in the midst of an import, and then take itself apart, which
    needs seconds on a busy machine.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
