"""Permissions of what a library creates: its folders and files are for their owner alone.

They are given when something is created; what exists keeps the permissions that it has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600


def make_private_folder(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for the owner alone."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    folder.mkdir(exist_ok=True)  # an error if it is a file


def make_private_file(file: Path) -> None:
    """Create an empty file for the owner alone, unless it exists."""
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))


def private_opener(path: str, flags: int) -> int:
    """The opener of `open` for a file that may have to be created."""
    return os.open(path, flags, PRIVATE_FILE)


def is_private(path: Path) -> bool:
    """True if only the owner of a file or folder can read it."""
    return not path.stat().st_mode & 0o077
