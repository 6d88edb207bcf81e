"""Bytes on their way to disk: decoded, counted and hashed, never more than the cap."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Final

from fonds.errors import IncompleteBodyError, RefusedError, TooLargeError
from fonds.fetch.secrecy import public_url
from fonds.seams import Clock

_PIECE: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_GZIP_FIRST_BYTE: Final = b"\x1f"
_PREFIX: Final = "download-"
_LIFETIME: Final = timedelta(days=1)


class Inflation:
    """Decompresses in pieces of bounded size, so that a bomb is never held."""

    def __init__(self, encoding: str) -> None:
        self._window = _WINDOWS[encoding]
        self._engine = zlib.decompressobj(self._window)
        self._untouched = True

    @property
    def is_whole(self) -> bool:
        """Whether the compressed stream reached its end."""
        return self._engine.eof

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What the chunk decompresses to; `zlib.error` where it is damaged."""
        filled = False
        while (chunk or filled) and not self._is_trailing(chunk):
            piece = self._step(chunk)
            yield piece
            filled = len(piece) == _PIECE
            chunk = self._engine.unconsumed_tail or self._engine.unused_data

    def _step(self, chunk: bytes) -> bytes:
        try:
            piece = self._engine.decompress(chunk, _PIECE)
        except zlib.error:
            # "deflate" means zlib by the standard and raw deflate by some servers' habit.
            if not (self._untouched and self._window == _ZLIB):
                raise
            self._window = _RAW
            self._engine = zlib.decompressobj(_RAW)
            piece = self._engine.decompress(chunk, _PIECE)
        self._untouched = False
        return piece

    def _is_trailing(self, chunk: bytes) -> bool:
        """A gzip body may go on with another member; anything else after its end is padding."""
        if not self._engine.eof:
            return False
        if self._window == _GZIP and chunk.startswith(_GZIP_FIRST_BYTE):
            self._engine = zlib.decompressobj(_GZIP)
            return False
        return True


def sweep(folder: Path, clock: Clock) -> None:
    """Remove temporary files that killed processes left behind; living ones have younger files."""
    for file in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if datetime.fromtimestamp(file.stat().st_mtime, UTC) < clock.now() - _LIFETIME:
                file.unlink()


class Intake:
    """What is being received: `add` chunks, then `finish`, or `discard`.

    It goes to a temporary file, unless it is no longer than what is to be held in memory.
    """

    def __init__(
        self, url: str, folder: Path, *, cap: int, encoding: str, announced: str, held: int = 0
    ) -> None:
        self._address = url
        self._cap = cap
        self._inflation = self._inflation_for(encoding)
        self._announced = self._length(announced)
        self._sha = hashlib.sha256()
        self.received = 0
        self.size = 0
        self.file = folder / f"{_PREFIX}{token_hex(8)}"
        self._held = held
        self._pieces: list[bytes] = []
        self._out = None if held else self._opened()

    @property
    def data(self) -> bytes | None:
        """All of it, where it is held in memory and there is no file."""
        return b"".join(self._pieces) if self._out is None else None

    def _opened(self) -> FileIO:
        return open(self.file, "xb", buffering=0, opener=_private)

    @property
    def _url(self) -> str:
        return public_url(self._address)

    def _inflation_for(self, encoding: str) -> Inflation | None:
        name = encoding.strip().lower()
        if name in {"", "identity"}:
            return None
        if name not in _WINDOWS:
            raise RefusedError(f"{self._url} is encoded as {name!r}, which was not asked for")
        return Inflation(name)

    def _length(self, announced: str) -> int | None:
        length = int(announced) if announced.isascii() and announced.isdigit() else None
        if length is not None and length > self._cap:
            raise self._too_large()
        return length

    def add(self, chunk: bytes) -> None:
        """Take in what arrived, up to the cap."""
        self.received += len(chunk)
        if self.received > self._cap:
            raise self._too_large()
        if self._inflation is None:
            self._write(chunk)
            return
        try:
            for piece in self._inflation.pieces(chunk):
                self._write(piece)
        except zlib.error as error:
            raise IncompleteBodyError(f"{self._url} is damaged compressed data: {error}") from error

    def _write(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._cap:
            raise self._too_large()
        self._sha.update(piece)
        if self._out is None and self.size <= self._held:
            self._pieces.append(piece)
            return
        if self._out is None:
            self._out = self._opened()
        pieces, self._pieces = [*self._pieces, piece], []
        for each in pieces:
            # An unbuffered file may take less than it is given.
            view = memoryview(each)
            while view:
                view = view[self._out.write(view) :]

    def finish(self) -> str:
        """Make sure nothing is missing, close the file, and give the hash of what came."""
        if self._out is not None:
            self._out.close()
        if self._announced is not None and self.received < self._announced:
            raise IncompleteBodyError(
                f"{self._url} ended after {self.received} of {self._announced} bytes"
            )
        if self._inflation is not None and self.received and not self._inflation.is_whole:
            raise IncompleteBodyError(f"{self._url} ended inside its compressed data")
        return self._sha.hexdigest()

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._out is not None:
            self._out.close()
            self.file.unlink(missing_ok=True)

    def _too_large(self) -> TooLargeError:
        return TooLargeError(
            f"{self._url} is larger than {self._cap // 2**20} MiB; "
            "FONDS_MAX_FILE_MIB sets the limit"
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
