"""What the global options decided, and the library that a command works on.

Whatever opens a library is imported when one is opened: `fonds --help` and `fonds --version` need
none of it, and start in a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fonds.errors import UsageError
from fonds.settings import Settings, read_settings

if TYPE_CHECKING:
    from fonds.library import Library


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
        from fonds.cli.process import set_up_logging  # noqa: PLC0415 — see the top
        from fonds.library import open_library  # noqa: PLC0415 — as above

        with open_library(self.home, **overrides) as library:
            set_up_logging(library.settings)
            yield library


def owner_named(library: Library, user: str | None) -> UUID | None:
    """The user whose uploads a command may show; nobody's, if none is named."""
    if user is None:
        return None
    from fonds.uploads.users import user_named  # noqa: PLC0415 — see the top

    with library.database.read() as connection:
        owner = user_named(connection, user)
    if owner is None:
        raise UsageError(f"there is no user {user!r}; `fonds token list` names those there are")
    return owner
