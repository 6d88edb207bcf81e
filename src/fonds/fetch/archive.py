"""The archive: what publishers served, stored byte for byte and never overwritten."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fonds.errors import BlobExistsError, StoreError
from fonds.fetch.client import Download, Fetcher, Permit, Validators
from fonds.fetch.rates import Pace
from fonds.ids import archive_key, changed_key
from fonds.model import Archived
from fonds.stores.blobs import Blobs

_NOT_MODIFIED: Final = 304


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """A record of an archived file, so that an unchanged one is not fetched again."""

    source: str
    url: str
    """Without secrets, as from `public_url`."""
    archived: Archived
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadResult:
    """A file that is in the archive."""

    archived: Archived
    changed: bool
    """False if the server responded with 304, or with the same bytes as before."""
    record: FileRecord | None
    """The record to store; None if it has not changed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers that describe the file; after a 304, those that are stored."""
    status: int = 200
    """Of the response."""


class Archive:
    """Downloads files that are new or have changed into the blob store."""

    def __init__(self, blobs: Blobs, fetcher: Fetcher) -> None:
        self._blobs = blobs
        self._fetcher = fetcher

    async def download(
        self,
        *,
        source: str,
        url: str,
        path: str,
        pace: Pace,
        previous: FileRecord | None,
        headers: Mapping[str, str] | None = None,
    ) -> DownloadResult:
        """The file at an address, archived under `corpus/<source>/<path>`."""
        download = await self.fetch(
            source=source, url=url, pace=pace, previous=previous, headers=headers
        )
        return await asyncio.to_thread(self.store, source, path, download, previous)

    async def fetch(
        self,
        *,
        source: str,
        url: str,
        pace: Pace,
        previous: FileRecord | None,
        headers: Mapping[str, str] | None = None,
        max_in_memory: int = 0,
        permit: Permit | None = None,
    ) -> Download | None:
        """The file at an address, for `store`; None if it is the same as the previous one.

        A file of at most `max_in_memory` bytes stays in memory until then.
        """
        validators = Validators()
        if previous is not None:
            validators = Validators(etag=previous.etag, last_modified=previous.last_modified)
        download = await self._fetcher.download(
            url,
            source=source,
            pace=pace,
            validators=validators,
            headers=headers,
            max_in_memory=max_in_memory,
            permit=permit,
        )
        if download is not None or previous is None:
            return download
        if await asyncio.to_thread(self._is_stored, previous.archived):
            return None
        # Our copy is lost or incomplete, so "not modified" does not help.
        return await self._fetcher.download(
            url,
            source=source,
            pace=pace,
            headers=headers,
            max_in_memory=max_in_memory,
            permit=permit,
        )

    def store(
        self, source: str, path: str, download: Download | None, previous: FileRecord | None
    ) -> DownloadResult:
        """Archive what `fetch` returned under `corpus/<source>/<path>`."""
        if download is None:
            assert previous is not None, "an unconditional request never returns None"
            return DownloadResult(
                archived=previous.archived,
                changed=False,
                record=None,
                headers=_stored_headers(previous),
                status=_NOT_MODIFIED,
            )
        try:
            return self._store(source, archive_key(source, path), download, previous)
        finally:
            download.discard()

    def add(self, source: str, path: str, download: Download) -> Archived:
        """Archive a file that was downloaded in another way under `corpus/<source>/<path>`."""
        return self._archived(archive_key(source, path), download)

    def find(self, source: str, path: str, file: Archived) -> Archived | None:
        """A file that was archived before, under either of its keys; None if it is lost."""
        key = archive_key(source, path)
        for candidate in (key, changed_key(key, file.sha256)):
            if self._has_bytes(candidate, file):
                return replace(file, key=candidate)
        return None

    def read(self, archived: Archived) -> bytes:
        """The bytes of a file; StoreError if they are not the archived ones."""
        data = self._blobs.get(archived.key)
        if hashlib.sha256(data).hexdigest() != archived.sha256:
            raise StoreError(
                f"{archived.key} is damaged: delete it from the blob store and run again"
            )
        return data

    def _is_stored(self, archived: Archived) -> bool:
        info = self._blobs.head(archived.key)
        return info is not None and info.size == archived.size

    def _store(
        self, source: str, key: str, download: Download, previous: FileRecord | None
    ) -> DownloadResult:
        if previous is not None and self._is_still_there(previous.archived, download):
            return _result(source, previous.archived, download, previous, changed=False)
        return _result(source, self._archived(key, download), download, previous)

    def _is_still_there(self, archived: Archived, download: Download) -> bool:
        """True if the blob of an earlier download has these bytes; a lost one is stored again."""
        if archived.sha256 != download.sha256:
            return False
        info = self._blobs.head(archived.key)
        return info.size == archived.size if info else self._put(archived.key, download)

    def _archived(self, key: str, download: Download) -> Archived:
        return _archived(self._choose_key(key, download), download)

    def _choose_key(self, key: str, download: Download) -> str:
        renamed = changed_key(key, download.sha256)
        for candidate in (key, renamed):
            if self._put(candidate, download):
                return candidate
        raise StoreError(
            f"the content of {renamed} does not match the hash in its name; "
            "move the blob away and fetch again"
        )

    def _put(self, key: str, download: Download) -> bool:
        """Store these bytes under a key; False if there are others, which are not replaced."""
        try:
            if download.data is not None:
                self._blobs.create(key, download.data)
            elif download.is_temporary:
                self._blobs.move_file(key, download.file)
            else:
                self._blobs.create(key, download.file)
        except BlobExistsError:
            return self._has_bytes(key, download)
        return True

    def _has_bytes(self, key: str, file: Download | Archived) -> bool:
        info = self._blobs.head(key)
        if info is None or info.size != file.size:
            return False
        sha = hashlib.sha256()
        for chunk in self._blobs.stream(key):
            sha.update(chunk)
        return sha.hexdigest() == file.sha256


def _archived(key: str, download: Download) -> Archived:
    return Archived(
        url=download.url,
        key=key,
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def _result(
    source: str,
    archived: Archived,
    download: Download,
    previous: FileRecord | None,
    *,
    changed: bool = True,
) -> DownloadResult:
    latest = FileRecord(
        source=source,
        url=download.url,
        archived=archived,
        etag=download.etag,
        last_modified=download.last_modified,
    )
    return DownloadResult(
        archived=archived,
        changed=changed,
        record=None if latest == previous else latest,
        headers=download.headers,
        status=download.status,
    )


def _stored_headers(record: FileRecord) -> dict[str, str]:
    headers = {
        "Content-Type": record.archived.media_type,
        "ETag": record.etag,
        "Last-Modified": record.last_modified,
    }
    return {name: value for name, value in headers.items() if value}
