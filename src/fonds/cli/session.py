"""The global options of a command, and the library that it opens.

Modules that open a library are imported when one is opened: without them `fonds --help` and
`fonds --version` start 190 ms faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fonds.cli.imports import ending_on_ctrl_c
from fonds.cli.output import err
from fonds.errors import MissingLibraryError, UsageError
from fonds.settings import Settings, overridden_database, read_settings

if TYPE_CHECKING:
    from fonds.library import Library


class Session:
    """The global options."""

    def __init__(self, home: Path | None) -> None:
        self.home = home
        self._is_database_reported = False

    def settings(self) -> Settings:
        """The settings of this command; variables win over the `fonds.toml` of `--home`."""
        settings = read_settings({"home": self.home})
        if self.home and not self._is_database_reported and overridden_database(self.home):
            self._is_database_reported = True
            err.print(
                f"FONDS_DATABASE is set, and wins over the database of {self.home}: "
                "unset it to use that one",
                markup=False,
                highlight=False,
            )
        return settings

    @contextmanager
    def library(self, *, create: bool = False, **overrides: Any) -> Iterator[Library]:
        """Set up logging and open the library; `create` it if there is none, or raise an error."""
        with ending_on_ctrl_c():
            from fonds.cli.process import (  # noqa: PLC0415 — see the module
                enter_until_stopped,
                set_up_logging,
            )
            from fonds.library import open_library  # noqa: PLC0415 — as above

        self.settings()
        # First, since opening may wait for a server, and says so.
        set_up_logging(read_settings({"home": self.home, **overrides}))
        with ExitStack() as stack:
            opening = open_library(self.home, create=create, **overrides)
            yield enter_until_stopped(opening, stack)

    @contextmanager
    def library_if_any(self) -> Iterator[Library | None]:
        """As `library`, or None if there is none."""
        from fonds.schema import require_library  # noqa: PLC0415 — see the module

        try:
            require_library(self.settings())
        except MissingLibraryError:
            yield None
            return
        with self.library() as library:
            yield library


def find_owner(library: Library, user: str | None) -> UUID | None:
    """The id of a user, whose uploads a command may show; None without a name."""
    if user is None:
        return None
    from fonds.uploads.users import user_by_name  # noqa: PLC0415 — see the module

    with library.database.read() as connection:
        owner = user_by_name(connection, user)
    if owner is None:
        raise UsageError(f"no such user: {user!r}; `fonds token list` lists all users")
    return owner
