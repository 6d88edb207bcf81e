"""Response bodies: decompressed, counted, hashed and written to disk, up to a cap."""

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
from fonds.fetch.transport import public_url
from fonds.seams import Clock

_MAX_CHUNK: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_GZIP_FIRST_BYTE: Final = b"\x1f"
_PREFIX: Final = "download-"
_MAX_AGE: Final = timedelta(days=1)


class Decompressor:
    """Decompresses in chunks of bounded size, so that a bomb is never in memory."""

    def __init__(self, encoding: str) -> None:
        self._window = _WINDOWS[encoding]
        self._engine = zlib.decompressobj(self._window)
        self._is_new = True

    @property
    def is_whole(self) -> bool:
        """True once the compressed stream has reached its end."""
        return self._engine.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Chunks of the decompressed data; `zlib.error` where it is damaged."""
        filled = False
        while (data or filled) and not self._is_trailing(data):
            chunk = self._step(data)
            yield chunk
            filled = len(chunk) == _MAX_CHUNK
            data = self._engine.unconsumed_tail or self._engine.unused_data

    def _step(self, data: bytes) -> bytes:
        try:
            chunk = self._engine.decompress(data, _MAX_CHUNK)
        except zlib.error:
            # "deflate" means zlib by the standard and raw deflate by some servers' habit.
            if not (self._is_new and self._window == _ZLIB):
                raise
            self._window = _RAW
            self._engine = zlib.decompressobj(_RAW)
            chunk = self._engine.decompress(data, _MAX_CHUNK)
        self._is_new = False
        return chunk

    def _is_trailing(self, chunk: bytes) -> bool:
        """A gzip stream may have another member; anything else after its end is padding."""
        if not self._engine.eof:
            return False
        if self._window == _GZIP and chunk.startswith(_GZIP_FIRST_BYTE):
            self._engine = zlib.decompressobj(_GZIP)
            return False
        return True


def remove_stale_files(folder: Path, clock: Clock) -> None:
    """Remove temporary files of killed processes; those of running ones are younger."""
    for file in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if datetime.fromtimestamp(file.stat().st_mtime, UTC) < clock.now() - _MAX_AGE:
                file.unlink()


class BodyWriter:
    """Receives a body: `add` its chunks, then `finish`, or `discard`.

    The body is written to a temporary file, unless it has at most `max_in_memory` bytes. A `hint`
    is added to the message about one that is larger than the cap.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        cap: int,
        encoding: str,
        announced: str,
        max_in_memory: int = 0,
        hint: str = "",
    ) -> None:
        self._full_url = url
        self._cap = cap
        self._hint = hint
        self._decompressor = self._decompressor_for(encoding)
        self._announced = self._length(announced)
        self._sha = hashlib.sha256()
        self.received = 0
        self.size = 0
        self.file = folder / f"{_PREFIX}{token_hex(8)}"
        self._max_in_memory = max_in_memory
        self._chunks: list[bytes] = []
        self._out = None if max_in_memory else self._create()

    @property
    def data(self) -> bytes | None:
        """The whole body if it is in memory, without a file."""
        return b"".join(self._chunks) if self._out is None else None

    def _create(self) -> FileIO:
        return open(self.file, "xb", buffering=0, opener=_open_private)

    @property
    def _url(self) -> str:
        return public_url(self._full_url)

    def _decompressor_for(self, encoding: str) -> Decompressor | None:
        name = encoding.strip().lower()
        if name in {"", "identity"}:
            return None
        if name not in _WINDOWS:
            raise RefusedError(f"{self._url} is encoded as {name!r}, which was not requested")
        return Decompressor(name)

    def _length(self, announced: str) -> int | None:
        length = int(announced) if announced.isascii() and announced.isdigit() else None
        if length is not None and length > self._cap:
            raise self._too_large()
        return length

    def add(self, chunk: bytes) -> None:
        """Receive a chunk, up to the cap."""
        self.received += len(chunk)
        if self.received > self._cap:
            raise self._too_large()
        if self._decompressor is None:
            self._write(chunk)
            return
        try:
            for part in self._decompressor.decompress(chunk):
                self._write(part)
        except zlib.error as error:
            raise IncompleteBodyError(f"{self._url} is damaged compressed data: {error}") from error

    def _write(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size > self._cap:
            raise self._too_large()
        self._sha.update(chunk)
        if self._out is None and self.size <= self._max_in_memory:
            self._chunks.append(chunk)
            return
        if self._out is None:
            self._out = self._create()
        chunks, self._chunks = [*self._chunks, chunk], []
        for part in chunks:
            # An unbuffered file may write only a part of a chunk.
            view = memoryview(part)
            while view:
                view = view[self._out.write(view) :]

    def finish(self) -> str:
        """Check that nothing is missing, close the file, and return the hash of the body."""
        if self._out is not None:
            self._out.close()
        if self._announced is not None and self.received < self._announced:
            raise IncompleteBodyError(
                f"{self._url} ended after {self.received} of {self._announced} bytes"
            )
        if self._decompressor is not None and self.received and not self._decompressor.is_whole:
            raise IncompleteBodyError(f"{self._url} ended inside its compressed data")
        return self._sha.hexdigest()

    def discard(self) -> None:
        """Close and remove the file."""
        if self._out is not None:
            self._out.close()
            self.file.unlink(missing_ok=True)

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"{self._url} is larger than {self._cap // 2**20} MiB{self._hint}")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
