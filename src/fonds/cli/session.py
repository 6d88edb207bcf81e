"""The library a command works on, and how long-running work is stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from fonds.cli.lines import set_up_logging
from fonds.errors import UsageError
from fonds.library import Library, open_library
from fonds.settings import Settings, read_settings
from fonds.uploads.users import user_named

T = TypeVar("T")


class Session:
    """What the global options decided."""

    def __init__(self, home: Path | None) -> None:
        self.home = home

    def settings(self) -> Settings:
        """The settings this command works under."""
        return read_settings({"home": self.home})

    @contextmanager
    def library(self, **overrides: Any) -> Iterator[Library]:
        """The library, opened and with logging set up."""
        with open_library(self.home, **overrides) as library:
            set_up_logging(library.settings)
            yield library


def owner_named(library: Library, user: str | None) -> UUID | None:
    """The user whose uploads a command may show; nobody's, if none is named."""
    if user is None:
        return None
    with library.database.read() as connection:
        owner = user_named(connection, user)
    if owner is None:
        raise UsageError(f"there is no user {user!r}; `fonds token list` names those there are")
    return owner


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; SIGTERM and Ctrl-C cancel, and what is loaded stays loaded."""

    async def guarded() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(guarded())
