"""Files that ended processes left behind, and pages that can be made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from fonds.settings import Settings

GRACE: Final = timedelta(days=1)
"""What is younger may be somebody's who still works on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftFile:
    """A file that may go."""

    path: Path
    size: int


def stale_files(settings: Settings, now: datetime) -> Iterator[LeftFile]:
    """Temporary files whose process has surely ended."""
    folders = [settings.home / "tmp"]
    if "://" not in settings.blobs_url:
        folders.append(Path(settings.blobs_url) / ".tmp")
    for folder in folders:
        yield from _older(folder, now - GRACE)


def cached_pages(settings: Settings, before: datetime) -> Iterator[LeftFile]:
    """Rendered texts that were made before a moment; whoever wants one has it made again."""
    yield from _older(settings.home / "cache" / "pages", before)


def _older(folder: Path, before: datetime) -> Iterator[LeftFile]:
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            found = path.lstat()
            changed = datetime.fromtimestamp(found.st_mtime, UTC)
            if not path.is_dir() and changed < before:
                yield LeftFile(path=path, size=found.st_size)
