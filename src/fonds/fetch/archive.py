"""What the publishers served, kept byte for byte and never overwritten."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from fonds.errors import BlobExistsError, FondsError, StoreError
from fonds.fetch.client import Download, Fetcher, Validators
from fonds.fetch.rates import Pace
from fonds.ids import archive_key, changed_key
from fonds.model import Archived
from fonds.stores.blobs import Blobs
from fonds.stores.folder import create_all

P = ParamSpec("P")
T = TypeVar("T")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Taking:
    """What `ask` gave, and where it goes."""

    source: str
    path: str
    download: Download | None
    known: KnownFile | None

    @property
    def key(self) -> str:
        """Where it is archived, if nothing else is there."""
        return archive_key(self.source, self.path)


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
        held: int = 0,
    ) -> Download | None:
        """The file at an address, for `take`; None where the one that is known is the latest.

        One that has no more bytes than `held` is kept in memory until then.
        """
        validators = Validators()
        if known is not None:
            validators = Validators(etag=known.etag, last_modified=known.last_modified)
        download = await self._fetcher.download(
            url, source=source, pace=pace, validators=validators, headers=headers, held=held
        )
        if download is not None or known is None:
            return download
        if await asyncio.to_thread(self._is_held, known.archived):
            return None
        # Our copy is lost or cut short, so "not modified" is no help.
        return await self._fetcher.download(
            url, source=source, pace=pace, headers=headers, held=held
        )

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
            download.discard()

    def take_all(self, some: Sequence[Taking]) -> list[Obtained | Exception]:
        """As `take`, for several: of each what it became, or the error that it alone ended with."""
        new = [(one.key, one.download) for one in some if one.known is None]
        stored = self._stored([(key, download) for key, download in new if download is not None])
        return [_outcome(self._taken, one, stored) for one in some]

    def _taken(self, one: Taking, stored: dict[str, Download]) -> Obtained:
        download = one.download
        if download is None or stored.get(one.key) is not download:
            return self.take(one.source, one.path, download, one.known)
        return _obtained(one.source, _archived(one.key, download), download, None)

    def keep(self, source: str, path: str, download: Download) -> Archived:
        """A file that was obtained in another way, archived under `corpus/<source>/<path>`."""
        return self._archived(archive_key(source, path), download)

    def keep_all(
        self, source: str, some: Sequence[tuple[str, Download]]
    ) -> list[Archived | Exception]:
        """As `keep`, for several: of each what it became, or the error that it alone ended with."""
        keyed = [(archive_key(source, path), download) for path, download in some]
        stored = self._stored(keyed)
        return [_outcome(self._kept, key, download, stored) for key, download in keyed]

    def _kept(self, key: str, download: Download, stored: dict[str, Download]) -> Archived:
        if stored.get(key) is not download:
            return self._archived(key, download)
        return _archived(key, download)

    def _stored(self, some: Sequence[tuple[str, Download]]) -> dict[str, Download]:
        """Those of some files in memory that could be stored at once, by their keys."""
        light = [(key, download, download.data) for key, download in some]
        held = [(key, download, data) for key, download, data in light if data is not None]
        troubles = create_all(self._blobs, [(key, data) for key, _, data in held])
        told = zip(held, troubles, strict=True)
        return {key: download for (key, download, _), trouble in told if trouble is None}

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
        if known is not None and self._is_still_there(known.archived, download):
            return _obtained(source, known.archived, download, known, changed=False)
        return _obtained(source, self._archived(key, download), download, known)

    def _is_still_there(self, archived: Archived, download: Download) -> bool:
        """Whether the known blob stands for this download, being put back if it was lost."""
        if archived.sha256 != download.sha256:
            return False
        info = self._blobs.head(archived.key)
        return info.size == archived.size if info else self._put(archived.key, download)

    def _archived(self, key: str, download: Download) -> Archived:
        return _archived(self._place(key, download), download)

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
        try:
            if download.data is not None:
                self._blobs.create(key, download.data)
            elif download.is_ours:
                self._blobs.adopt(key, download.file)
            else:
                self._blobs.create(key, download.file)
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


def _archived(key: str, download: Download) -> Archived:
    return Archived(
        url=download.url,
        key=key,
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def _obtained(
    source: str,
    archived: Archived,
    download: Download,
    known: KnownFile | None,
    *,
    changed: bool = True,
) -> Obtained:
    latest = KnownFile(
        source=source,
        url=download.url,
        archived=archived,
        etag=download.etag,
        last_modified=download.last_modified,
    )
    remember = None if latest == known else latest
    return Obtained(archived=archived, changed=changed, known=remember, headers=download.headers)


def _outcome(work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T | Exception:
    try:
        return work(*args, **more)
    except (FondsError, OSError) as error:
        return error
