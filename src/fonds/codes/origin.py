"""Where an edition is read from: a folder or file as the publisher lays it out, or an address."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote

from fonds.errors import NotFoundError, UsageError
from fonds.model import Archived

_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A page that is a file of this machine."""

    name: str
    archived: Archived
    path: Path

    def read(self) -> bytes:
        """All of it."""
        return self.path.read_bytes()

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return self.path.open("rb")


class LocalOrigin:
    """A folder laid out as the publisher lays it out, or one file of it; nothing is kept."""

    def __init__(self, path: Path, *, base: str, version: str = "") -> None:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
        self.version = version
        self._base = base
        self._folder = path if path.is_dir() else path.parent
        found = path.rglob("*") if path.is_dir() else [path]
        names = (file.relative_to(self._folder).as_posix() for file in found if file.is_file())
        self.files: list[str] | None = sorted(names)
        self._names = frozenset(self.files)

    async def read(self, page: str) -> LocalPage:
        """The page of that path; only what lies in the folder can be named."""
        if page not in self._names:
            raise NotFoundError(f"the folder holds no {page}")
        path = self._folder / page
        return LocalPage(page, _described(path, self._base + quote(page)), path)


def _described(path: Path, url: str) -> Archived:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    changed = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    return Archived(url=url, key="", sha256=digest.hexdigest(), size=size, retrieved_at=changed)
