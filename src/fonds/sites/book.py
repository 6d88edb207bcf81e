"""What a crawl knows of its files and addresses, in a scratch file and not in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Literal

from pysqlite3 import dbapi2 as sqlite3

from fonds.sites.journal import Outcome
from fonds.sites.models import CrawlError, DownloadedPDF, PdfState
from fonds.stores.sqlite import in_statements

Counted = Literal["downloaded", "failed"]

_WRITTEN_AFTER: Final = 64
_SETTLED: Final = "('discovered', 'indexed', 'failed')"
_TABLES: Final = f"""
    CREATE TABLE files (
        position INTEGER PRIMARY KEY, url TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL,
        size INTEGER NOT NULL, line BLOB NOT NULL, until INTEGER, is_here INTEGER NOT NULL);
    CREATE INDEX files_by_url ON files (url, position);
    CREATE INDEX files_by_sha256 ON files (sha256);
    CREATE INDEX files_ended ON files (until, position) WHERE until IS NOT NULL;
    CREATE TABLE errors (position INTEGER PRIMARY KEY, line BLOB NOT NULL UNIQUE);
    CREATE TABLE addresses (
        url TEXT PRIMARY KEY, state TEXT NOT NULL, counted TEXT) WITHOUT ROWID;
    CREATE INDEX addresses_under_way ON addresses (url, state) WHERE state NOT IN {_SETTLED};
    CREATE TABLE websites (id TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE held (path TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
"""

_ENTER: Final = (
    "INSERT INTO files (url, path, sha256, size, line, is_here) VALUES (?, ?, ?, ?, ?, ?)"
)
_SUPERSEDE: Final = """
    UPDATE files SET until = newer.position FROM files AS newer
    WHERE newer.position > ? AND files.position < newer.position AND files.until IS NULL
    AND files.url = newer.url AND files.path = newer.path
"""
# One statement for many addresses: a thread that others wait for loses its turn with each.
_MEET: Final = "INSERT OR IGNORE INTO addresses SELECT value, 'discovered', NULL FROM json_each(?)"
_COUNTED: Final = """
    SELECT url, counted FROM addresses
    WHERE counted IS NOT NULL AND url IN (SELECT value FROM json_each(?))
"""
_COUNT: Final = """
    UPDATE addresses SET counted = ?, state = ? WHERE url IN (SELECT value FROM json_each(?))
"""
_MOVE: Final = "UPDATE addresses SET state = ? WHERE url IN (SELECT value FROM json_each(?))"


class Book:
    """The scratch file; whoever calls lets one thread at a time in."""

    def __init__(self, folder: Path | None) -> None:
        self._kept = 0
        with NamedTemporaryFile(prefix="fonds-crawl-", dir=folder) as file:
            self._base = sqlite3.connect(file.name, isolation_level=None, check_same_thread=False)
            # The file loses its name at the end of this block and lives on as long as it is open:
            # nobody has to clean up after a process that was killed.
            for setting in (
                "journal_mode=MEMORY",
                "synchronous=OFF",
                "locking_mode=EXCLUSIVE",
                "cache_size=-1000",
            ):
                self._base.execute(f"PRAGMA {setting}").fetchall()
            self._base.executescript(_TABLES)

    def begin(self) -> None:
        """What follows is kept or undone as a whole."""
        # Nobody else reads the file and nothing of it outlives the process, so what is kept may
        # stay in memory for a while: writing its pages out each time took longer than all else.
        if not self._base.in_transaction:
            self._base.execute("BEGIN")
        self._base.execute("SAVEPOINT note")

    def keep(self) -> None:
        """Keep what was done since `begin`."""
        self._base.execute("RELEASE note")
        self._kept += 1
        if self._kept % _WRITTEN_AFTER == 0:
            self._base.execute("COMMIT")

    def undo(self) -> None:
        """Undo what was done since `begin`."""
        self._base.execute("ROLLBACK TO note")
        self._base.execute("RELEASE note")

    def close(self) -> None:
        """Give the file back."""
        self._base.close()

    # Files

    def hold(self, path: str, size: int) -> None:
        """Remember that the output holds such a file."""
        self._base.execute("INSERT OR REPLACE INTO held VALUES (?, ?)", (path, size))

    def holds(self, pdf: DownloadedPDF) -> bool:
        """Whether the output held the file of an entry when it was opened."""
        statement = "SELECT size = ? FROM held WHERE path = ?"
        return bool(self._one(statement, pdf.file_size_bytes, pdf.local_path))

    def enter(self, pdfs: Sequence[DownloadedPDF], *, is_here: bool) -> None:
        """Add entries; earlier ones of the same address and file end with them."""
        before = self.last("files")
        rows = [
            (
                pdf.original_url, pdf.local_path, pdf.sha256_hash, pdf.file_size_bytes,
                pdf.model_dump_json().encode(), is_here,
            )
            for pdf in pdfs
        ]  # fmt: skip
        for statement, values in in_statements(_ENTER, rows):
            self._base.execute(statement, values)
        self._base.execute(_SUPERSEDE, (before,))

    def find(self, url: str) -> DownloadedPDF | None:
        """The newest entry of an address whose file is here."""
        line = self._one(
            "SELECT line FROM files WHERE url = ? AND is_here ORDER BY position DESC LIMIT 1", url
        )
        return DownloadedPDF.model_validate_json(line) if line else None

    def path_of(self, sha256: str) -> str | None:
        """Where bytes with this hash are kept, if they are."""
        path: str | None = self._one(
            "SELECT path FROM files WHERE sha256 = ? AND is_here ORDER BY position LIMIT 1", sha256
        )
        return path

    def count_newest(self, count: int) -> None:
        """Remember the addresses of the newest entries, so many of them, as downloaded."""
        self._base.execute(
            "INSERT INTO addresses SELECT url, 'indexed', 'downloaded' FROM"
            " (SELECT url FROM files GROUP BY url ORDER BY max(position) DESC LIMIT ?) WHERE true"
            " ON CONFLICT (url) DO UPDATE SET state = 'indexed', counted = 'downloaded'",
            (count,),
        )

    def last(self, table: str) -> int:
        """The position of the newest file or error."""
        return self._one(f"SELECT max(position) FROM {table}") or 0  # noqa: S608 — our own names

    def files(self, after: int, upto: int, count: int) -> list[tuple[int, bytes]]:
        """Some entries of those that stood when `upto` was the newest."""
        found: list[tuple[int, bytes]] = self._base.execute(
            "SELECT position, line FROM files WHERE position > ?1 AND position <= ?2"
            " AND (until IS NULL OR until > ?2) ORDER BY position LIMIT ?3",
            (after, upto, count),
        ).fetchall()
        return found

    def has_changed(self, upto: int) -> bool:
        """Whether one of the entries up to a position has ended since that was the newest."""
        statement = "SELECT count(*) FROM files WHERE until > ?1 AND position <= ?1"
        return bool(self._one(statement, upto))

    # Errors

    def add_error(self, error: CrawlError) -> None:
        """Add an error, unless it is known."""
        line = error.model_dump_json().encode()
        self._base.execute("INSERT OR IGNORE INTO errors (line) VALUES (?)", (line,))

    def errors(self, after: int, upto: int, count: int) -> list[tuple[int, bytes]]:
        """Some errors of those that stood when `upto` was the newest."""
        found: list[tuple[int, bytes]] = self._base.execute(
            "SELECT position, line FROM errors WHERE position > ? AND position <= ?"
            " ORDER BY position LIMIT ?",
            (after, upto, count),
        ).fetchall()
        return found

    # Addresses and websites

    def meet(self, urls: Sequence[str]) -> int:
        """Remember addresses, and say how many of them were unknown."""
        met: int = self._base.execute(_MEET, (json.dumps(urls),)).rowcount
        return met

    def counted(self, urls: Sequence[str]) -> dict[str, Counted]:
        """As what addresses have been counted in this crawl, those that have."""
        return dict(self._base.execute(_COUNTED, (json.dumps(urls),)).fetchall())

    def count(self, urls: Sequence[str], counted: Counted) -> None:
        """Remember as what addresses have been counted, ones that were met."""
        state = PdfState.INDEXED if counted == "downloaded" else PdfState.FAILED
        self._base.execute(_COUNT, (counted, state, json.dumps(urls)))

    def move(self, urls: Sequence[str], state: PdfState) -> int:
        """Remember how far addresses have come, and say how many of them were known."""
        known: int = self._base.execute(_MOVE, (state, json.dumps(urls))).rowcount
        return known

    def met(self) -> int:
        """How many addresses are known."""
        return int(self._one("SELECT count(*) FROM addresses"))

    def under_way(self) -> list[tuple[str, PdfState]]:
        """The addresses that something is being done about."""
        rows = self._base.execute(
            f"SELECT url, state FROM addresses WHERE state NOT IN {_SETTLED}"  # noqa: S608 — constants
        )
        return [(url, PdfState(state)) for url, state in rows.fetchall()]

    def outcome(self, website: str) -> Outcome | None:
        """How a website ended, if it did."""
        outcome: Outcome | None = self._one("SELECT outcome FROM websites WHERE id = ?", website)
        return outcome

    def end(self, website: str, outcome: Outcome) -> None:
        """Remember how a website ended."""
        self._base.execute("INSERT OR REPLACE INTO websites VALUES (?, ?)", (website, outcome))

    def websites(self) -> dict[str, Outcome]:
        """How each website ended that did."""
        return dict(self._base.execute("SELECT id, outcome FROM websites ORDER BY id").fetchall())

    def _one(self, statement: str, *values: object) -> Any:
        found = self._base.execute(statement, values).fetchone()
        return found[0] if found else None
