"""A small library with a bit of everything an agent may meet."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy import update
from tests.support import servers

from fonds.codes.run import CodeRequest
from fonds.demo.bundle import DATA
from fonds.demo.server import DemoUpstream
from fonds.library import Library, open_library
from fonds.runs.state import RunRequest
from fonds.stores.tables import documents
from fonds.uploads.users import create_token

LONG: Final = "fr:2026-00101"
OWNED: Final = "fr:2026-00103"
"""An upload of somebody; nobody else may learn of it."""
WITHDRAWN: Final = "fr:2026-00104"
SECTION: Final = "usc/119-36/root/title-53/chapter-1/section-103"
OLD_SECTION: Final = "usc/119-4/root/title-53/chapter-1/section-103"
SHARED_NAME: Final = "https://www.whitehouse.gov/wp-content/uploads/2026/01/SAPs-1-5-26.pdf"
"""One file that serves two documents."""

PUBLISHED: Final = "uscode.house.gov/download/releasepoints/us/pl/119/36/usc53.xml"
OLDER: Final = {
    "a request within ten working days": "a request within thirty working days",
    "2026-02-20T": "2025-03-15T",
    "Online@119-36": "Online@119-4",
}
"""In what an edition of the year before differs from the bundled one."""


def small_library() -> Path:
    """Its home; made once for a run, for reading only."""
    home = servers.run_folder() / "mcp" / "library"
    with servers.locked("mcp"):
        if not home.exists():
            making = home.with_name("making")
            making.mkdir(parents=True)
            fill(making)
            making.rename(home)
    return home


def token() -> str:
    """A token of a user who has uploaded nothing."""
    return small_library().with_name("token").read_text("utf-8")


def _let_in(library: Library) -> None:
    with library.database.write() as connection:
        _, secret = create_token(
            connection,
            user="maria",
            label="tests",
            scope="user",
            now=library.seams.clock.now(),
            rng=library.seams.rng,
        )
    library.settings.home.with_name("token").write_text(secret, "utf-8")


def fill(home: Path) -> None:
    """Two days of the register, statements of policy, and a title in two editions."""
    older = home.with_name("usc53.xml")
    text = (DATA / PUBLISHED).read_text("utf-8")
    for words, instead in OLDER.items():
        text = text.replace(words, instead)
    older.write_text(text, "utf-8")
    days = RunRequest(mode="backfill", since=date(2026, 1, 12), until=date(2026, 1, 13))
    with (
        DemoUpstream() as upstream,
        open_library(home, hosts=upstream.hosts, allow_private=True) as library,
    ):
        asyncio.run(library.ingest("federal_register", days))
        asyncio.run(library.ingest("sap", RunRequest(mode="manual")))
        asyncio.run(library.ingest_code("usc", CodeRequest()))
        asyncio.run(library.ingest_code("usc", CodeRequest(version="119-4", given=str(older))))
        _let_in(library)
        table = documents.c
        with library.database.write() as connection:
            owned = update(documents).where(table.id == OWNED).values(owner=UUID(int=7))
            connection.execute(owned)
            gone = datetime(2026, 2, 1, tzinfo=UTC)
            withdrawn = update(documents).where(table.id == WITHDRAWN).values(gone_at=gone)
            connection.execute(withdrawn)
