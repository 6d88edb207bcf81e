"""Free space where a library keeps its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fonds.settings import Settings


class FreeSpace(NamedTuple):
    """The free bytes of a disk."""

    name: str
    """`home`, or `blobs` if they are on another disk."""
    folder: Path
    free: int


def free_space(settings: Settings) -> Iterator[FreeSpace]:
    """The free space of each disk that holds files of a library."""
    folders = {"home": settings.home.absolute()}
    if "://" not in settings.blobs_url:
        folders["blobs"] = Path(settings.blobs_url)
    devices: set[int] = set()
    for name, folder in folders.items():
        if folder.exists() and (device := folder.stat().st_dev) not in devices:
            devices.add(device)
            yield FreeSpace(name, folder, shutil.disk_usage(folder).free)
