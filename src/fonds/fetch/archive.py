"""What the publishers served, kept byte for byte and never overwritten."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fonds.errors import BlobExistsError, StoreError
from fonds.fetch.client import Download, Fetcher, Validators
from fonds.fetch.rates import Pace
from fonds.ids import archive_key, changed_key
from fonds.model import Archived
from fonds.stores.blobs import Blobs


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFile:
    """What is remembered of a file, to ask for it again without fetching it twice."""

    source: str
    url: str
    """Without secrets, as `public_url` gives it."""
    archived: Archived
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Obtained:
    """A file that is in the archive."""

    archived: Archived
    changed: bool
    """False when the upstream said 304, or served the bytes that were known."""
    known: KnownFile | None
    """What to remember from here on; None when that has not changed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the answer told of the file; nothing, when it said 304."""


class Archive:
    """Obtains files: asks whether they changed, and puts new bytes into the blob store."""

    def __init__(self, blobs: Blobs, fetcher: Fetcher) -> None:
        self._blobs = blobs
        self._fetcher = fetcher

    async def obtain(
        self,
        *,
        source: str,
        url: str,
        path: str,
        pace: Pace,
        known: KnownFile | None,
        headers: Mapping[str, str] | None = None,
    ) -> Obtained:
        """The file at an address, archived under `corpus/<source>/<path>`."""
        download = await self.ask(source=source, url=url, pace=pace, known=known, headers=headers)
        return await asyncio.to_thread(self.take, source, path, download, known)

    async def ask(
        self,
        *,
        source: str,
        url: str,
        pace: Pace,
        known: KnownFile | None,
        headers: Mapping[str, str] | None = None,
    ) -> Download | None:
        """The file at an address, for `take`; None where the one that is known is the latest."""
        validators = Validators()
        if known is not None:
            validators = Validators(etag=known.etag, last_modified=known.last_modified)
        download = await self._fetcher.download(
            url, source=source, pace=pace, validators=validators, headers=headers
        )
        if download is not None or known is None:
            return download
        if await asyncio.to_thread(self._is_held, known.archived):
            return None
        # Our copy is lost or cut short, so "not modified" is no help.
        return await self._fetcher.download(url, source=source, pace=pace, headers=headers)

    def take(
        self, source: str, path: str, download: Download | None, known: KnownFile | None
    ) -> Obtained:
        """What `ask` gave, archived under `corpus/<source>/<path>`."""
        if download is None:
            assert known is not None, "an unconditional request is never answered by None"
            return Obtained(archived=known.archived, changed=False, known=None)
        try:
            return self._keep(source, archive_key(source, path), download, known)
        finally:
            download.file.unlink(missing_ok=True)

    def keep(self, source: str, path: str, download: Download) -> Archived:
        """A file that was obtained in another way, archived under `corpus/<source>/<path>`."""
        return self._archived(archive_key(source, path), download)

    def find(self, source: str, path: str, proven: Archived) -> Archived | None:
        """A file that is known to have been archived, wherever its key is; None if it is lost."""
        key = archive_key(source, path)
        for candidate in (key, changed_key(key, proven.sha256)):
            if self._holds(candidate, proven):
                return replace(proven, key=candidate)
        return None

    def read(self, archived: Archived) -> bytes:
        """The bytes of a file, proven to be those that were archived."""
        data = self._blobs.get(archived.key)
        if hashlib.sha256(data).hexdigest() != archived.sha256:
            raise StoreError(
                f"{archived.key} is damaged: delete it from the blob store and run again"
            )
        return data

    def _is_held(self, archived: Archived) -> bool:
        info = self._blobs.head(archived.key)
        return info is not None and info.size == archived.size

    def _keep(self, source: str, key: str, download: Download, known: KnownFile | None) -> Obtained:
        same = known is not None and self._is_still_there(known.archived, download)
        archived = known.archived if known and same else self._archived(key, download)
        latest = KnownFile(
            source=source,
            url=download.url,
            archived=archived,
            etag=download.etag,
            last_modified=download.last_modified,
        )
        remember = None if latest == known else latest
        return Obtained(
            archived=archived, changed=not same, known=remember, headers=download.headers
        )

    def _is_still_there(self, archived: Archived, download: Download) -> bool:
        """Whether the known blob stands for this download, being put back if it was lost."""
        if archived.sha256 != download.sha256:
            return False
        info = self._blobs.head(archived.key)
        return info.size == archived.size if info else self._put(archived.key, download)

    def _archived(self, key: str, download: Download) -> Archived:
        return Archived(
            url=download.url,
            key=self._place(key, download),
            sha256=download.sha256,
            size=download.size,
            retrieved_at=download.retrieved_at,
            media_type=download.media_type,
        )

    def _place(self, key: str, download: Download) -> str:
        renamed = changed_key(key, download.sha256)
        for candidate in (key, renamed):
            if self._put(candidate, download):
                return candidate
        raise StoreError(
            f"{renamed} holds other bytes than its name says; move it away and fetch again"
        )

    def _put(self, key: str, download: Download) -> bool:
        """Whether the key holds these bytes now; a taken key is left as it is."""
        store = self._blobs.adopt if download.is_ours else self._blobs.create
        try:
            store(key, download.file)
        except BlobExistsError:
            return self._holds(key, download)
        return True

    def _holds(self, key: str, file: Download | Archived) -> bool:
        info = self._blobs.head(key)
        if info is None or info.size != file.size:
            return False
        sha = hashlib.sha256()
        for chunk in self._blobs.stream(key):
            sha.update(chunk)
        return sha.hexdigest() == file.sha256
