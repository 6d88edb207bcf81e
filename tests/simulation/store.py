"""An object store in memory: its clock is its own, and it may fail before or after the fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from fonds.errors import BlobChangedError, BlobExistsError, BlobMissingError, StoreError
from fonds.stores.blobs import BlobInfo, BlobVersion, Data, Method, SignedAddress
from fonds.stores.folder import check_key
from tests.simulation.scheduler import BEGINNING, Scheduler
from tests.simulation.weather import Weather

PAGE: Final = 4
"""Objects that are listed at one moment."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of an object."""

    data: bytes
    etag: str
    modified: datetime


class SeededBlobs:
    """Keeps the promises of `Blobs`; `watch` is called after each change, before anybody moves."""

    def __init__(
        self,
        scheduler: Scheduler,
        weather: Weather,
        *,
        removes_versions: bool = True,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheduler = scheduler
        self._weather = weather
        self._removes_versions = removes_versions
        self._skew = timedelta(seconds=scheduler.rng.choice([0, 0, 90, -90]))
        self.objects: dict[str, Stored] = {}
        self.watch = watch
        self.writes = 0
        self._versions = 0

    # Reading ------------------------------------------------------------------------------

    def head(self, key: str) -> BlobInfo | None:
        self._reading("head", key)
        held = self.objects.get(key)
        return None if held is None else _info(key, held)

    def get(self, key: str) -> bytes:
        self._reading("get", key)
        return self._held(key).data

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        self._reading("read", key)
        held = self._held(key)
        return None if held.etag == unless else BlobVersion(held.data, held.etag, held.modified)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get(key)[start : start + length]

    def stream(self, key: str) -> Iterator[bytes]:
        yield self.get(key)

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        last = ""
        while True:
            self._reading("list", prefix)
            keys = sorted(key for key in self.objects if key.startswith(prefix) and key > last)
            if not keys:
                return
            page = [_info(key, self.objects[key]) for key in keys[:PAGE]]
            last = page[-1].key
            yield from page

    def can_remove_versions(self) -> bool:
        return self._removes_versions

    def local_path(self, _key: str) -> Path | None:
        return None

    def sign(self, _method: Method, _key: str, _seconds: int) -> SignedAddress | None:
        return None

    # Writing ------------------------------------------------------------------------------

    def create(self, key: str, data: Data) -> str:
        with self._writing("create", key):
            if key in self.objects:
                raise BlobExistsError(f"blob {key!r} exists")
            return self._store(key, data)

    def move_file(self, key: str, file: Path) -> str:
        etag = self.create(key, file)
        file.unlink()
        return etag

    def replace(self, key: str, data: Data, *, etag: str) -> str:
        with self._writing("replace", key):
            self._require(key, etag)
            return self._store(key, data)

    def put(self, key: str, data: Data) -> str:
        with self._writing("put", key):
            return self._store(key, data)

    def delete(self, key: str) -> None:
        with self._writing("delete", key):
            self.objects.pop(key, None)

    def remove(self, key: str, *, etag: str) -> None:
        assert self._removes_versions
        with self._writing("remove", key):
            self._require(key, etag)
            del self.objects[key]

    # Details ------------------------------------------------------------------------------

    def _reading(self, what: str, key: str) -> None:
        self._weather.pass_by(f"{what} {key}")
        if self._weather.harms(self._weather.refuse):
            self._scheduler.note("  refused")
            raise StoreError(f"{what} {key}: the store answers 503")

    @contextmanager
    def _writing(self, what: str, key: str) -> Iterator[None]:
        check_key(key)
        self._reading(what, key)
        yield
        self.writes += 1
        self._scheduler.check(self.watch)
        self._weather.pass_by("  done")
        if self._weather.harms(self._weather.lose):
            self._scheduler.note("  the answer is lost")
            raise StoreError(f"{what} {key}: no answer")

    def _store(self, key: str, data: Data) -> str:
        self._versions += 1
        etag = f"v{self._versions}"
        modified = BEGINNING + timedelta(seconds=self._scheduler.now) + self._skew
        read = data if isinstance(data, bytes) else data.read_bytes()
        self.objects[key] = Stored(read, etag, modified)
        return etag

    def _held(self, key: str) -> Stored:
        if key not in self.objects:
            raise BlobMissingError(f"there is no blob {key!r}")
        return self.objects[key]

    def _require(self, key: str, etag: str) -> None:
        held = self.objects.get(key)
        if held is None or held.etag != etag:
            raise BlobChangedError(f"blob {key!r} has changed")


def _info(key: str, held: Stored) -> BlobInfo:
    return BlobInfo(key, len(held.data), held.etag, held.modified)
