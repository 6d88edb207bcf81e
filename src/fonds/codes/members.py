"""Members of zip archives, read without trust: by name, bounded, never to a path of their own."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Final

from fonds.codes.pages import PIECE, archived, described
from fonds.errors import MalformedError, NotFoundError, TooLargeError
from fonds.fetch.client import Download
from fonds.model import Archived

LARGEST: Final = 1 << 30
"""Bytes, unpacked; the largest title of any code has a sixth of it."""

_LOOKED_AT: Final = 512


def unpacked(archive: Download, pattern: str, target: IO[bytes]) -> Download:
    """The one member that fits a pattern, written to a file."""
    with _opened_member(archive, pattern) as (_, pieces):
        for piece in pieces:
            target.write(piece)
    target.flush()
    return described(Path(target.name), archive.url, archive.retrieved_at)


def look_into(archive: Download, pattern: str) -> tuple[str, Archived]:
    """The name of the one member that fits, and what is known of it."""
    digest, size = hashlib.sha256(), 0
    with _opened_member(archive, pattern) as (name, pieces):
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
    return name, replace(archived(archive), sha256=digest.hexdigest(), size=size)


@contextmanager
def _opened_member(archive: Download, pattern: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    try:
        with zipfile.ZipFile(archive.file) as opened:
            name = _member(opened, pattern, archive.url)
            with opened.open(name) as source:
                yield name, _bounded(source, f"{name} of {archive.url}")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise MalformedError(f"{archive.url} is {_what(archive)}, not a zip archive") from error


def _bounded(source: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while piece := source.read(PIECE):
        size += len(piece)
        if size > LARGEST:
            raise TooLargeError(f"{name} is too large unpacked")
        yield piece


def _member(archive: zipfile.ZipFile, pattern: str, url: str) -> str:
    found = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
    if len(found) != 1:
        held = ", ".join(archive.namelist()[:10]) or "nothing"
        raise NotFoundError(f"{url} has {len(found)} files {pattern!r}; it holds {held}")
    return found[0]


def _what(archive: Download) -> str:
    """What was served in its place, in words."""
    with archive.file.open("rb") as file:
        start = file.read(_LOOKED_AT).lstrip().lower()
    if not start:
        return "empty"
    return "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "damaged"
