from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.errors import NotFoundError, StoreError
from fonds.fetch.archive import Archive, DownloadResult, FileRecord
from fonds.fetch.client import Fetcher
from fonds.fetch.rates import Pace
from fonds.ids import changed_key
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import Blobs, open_blobs

KEY = "corpus/fr/2026/a.json"


class ArchiveCase:
    """An archive over a blob store of its own, asked once at a time."""

    def __init__(self, settings: Settings, folder: Path, upstream: MisbehavingServer) -> None:
        self.blobs: Blobs = open_blobs("memory://", seams=Seams())
        self.upstream = upstream
        self.folder = folder
        self._settings = settings

    def read(self, known: FileRecord) -> bytes:
        fetcher = Fetcher(self._settings, seams=Seams(), folder=self.folder)
        return Archive(self.blobs, fetcher).read(known.archived)

    def download(
        self,
        known: FileRecord | None = None,
        *,
        path: str = "/a.json",
        headers: Mapping[str, str] | None = None,
    ) -> DownloadResult:
        async def run() -> DownloadResult:
            async with Fetcher(self._settings, seams=Seams(), folder=self.folder) as fetcher:
                return await Archive(self.blobs, fetcher).download(
                    source="fr",
                    url=self.upstream.url(path),
                    path="2026/a.json",
                    pace=Pace(per_second=1000),
                    previous=known,
                    headers=headers,
                )

        return asyncio.run(run())

    def known(self) -> FileRecord:
        known = self.download().record
        assert known is not None
        return known

    @property
    def statuses(self) -> list[int]:
        return [seen.status for seen in self.upstream.requests]

    @property
    def keys(self) -> list[str]:
        return sorted(info.key for info in self.blobs.list("corpus/"))


@pytest.fixture
def case(settings: Settings, folder: Path, upstream: MisbehavingServer) -> ArchiveCase:
    upstream.serve("/a.json", b"one", "application/json")
    return ArchiveCase(settings, folder, upstream)


def test_a_file_is_archived_as_served_and_remembered(case: ArchiveCase) -> None:
    result = case.download()
    archived = result.archived
    assert result.changed
    assert (archived.key, archived.size, archived.media_type) == (KEY, 3, "application/json")
    assert archived.sha256 == hashlib.sha256(b"one").hexdigest()
    assert archived.url == case.upstream.url("/a.json")
    assert case.blobs.get(KEY) == b"one"
    assert result.record is not None
    assert result.record.archived == archived
    assert result.record.etag


def test_temporary_files_do_not_stay(case: ArchiveCase) -> None:
    case.download(case.known())
    case.upstream.serve("/a.json", b"two")
    case.download()
    assert list(case.folder.iterdir()) == []


def test_an_unchanged_file_is_asked_for_but_not_sent(case: ArchiveCase) -> None:
    known = case.known()
    again = case.download(known)
    assert case.statuses == [200, 304]
    assert again.archived == known.archived
    assert (again.changed, again.record) == (False, None)


@pytest.mark.parametrize("loss", ["missing", "cut short"])
def test_a_lost_copy_is_fetched_again_although_it_has_not_changed(
    case: ArchiveCase, loss: str
) -> None:
    known = case.known()
    if loss == "missing":
        case.blobs.delete(KEY)
    else:
        case.blobs.put(KEY, b"o")
    again = case.download(known)
    assert case.statuses == [200, 304, 200]
    assert case.blobs.get(again.archived.key) == b"one"
    if loss == "missing":
        assert (again.archived, again.changed, again.record) == (known.archived, False, None)


def test_a_damaged_copy_is_refused_with_what_to_do(case: ArchiveCase) -> None:
    known = case.known()
    case.blobs.put(KEY, b"eno")
    with pytest.raises(StoreError, match="delete it from the blob store"):
        case.read(known)


def test_the_same_bytes_sent_again_keep_key_and_date(case: ArchiveCase) -> None:
    known = replace(case.known(), etag=None)
    again = case.download(known)
    assert case.statuses == [200, 200]
    assert (again.changed, again.archived) == (False, known.archived)
    assert again.record is not None
    assert again.record.etag
    assert case.keys == [KEY]


def test_nothing_new_is_remembered_of_a_server_without_validators(case: ArchiveCase) -> None:
    case.upstream.serve("/a.json", b"plain", etag=None)
    known = case.known()
    assert (known.etag, known.last_modified) == (None, None)
    again = case.download(known)
    assert (again.changed, again.record) == (False, None)
    assert "if-none-match" not in case.upstream.requests[-1].headers


def test_changed_bytes_get_a_key_of_their_own_and_the_old_ones_stay(case: ArchiveCase) -> None:
    known = case.known()
    case.upstream.serve("/a.json", b"two")
    second = case.download(known)
    renamed = changed_key(KEY, hashlib.sha256(b"two").hexdigest())
    assert (second.changed, second.archived.key) == (True, renamed)
    assert case.blobs.get(KEY) == b"one"
    assert case.blobs.get(renamed) == b"two"


def test_a_file_that_changes_back_is_found_where_it_was(case: ArchiveCase) -> None:
    known = case.known()
    for body in (b"two", b"one", b"two"):
        case.upstream.serve("/a.json", body)
        result = case.download(known)
        assert result.changed
        assert result.record is not None
        known = result.record
        assert case.blobs.get(known.archived.key) == body
    assert len(case.keys) == 2


def test_bytes_archived_before_a_crash_are_reused(case: ArchiveCase) -> None:
    case.download()
    again = case.download(None)
    assert (again.changed, again.archived.key) == (True, KEY)
    assert case.keys == [KEY]


def test_a_key_that_holds_other_bytes_than_it_says_stops_the_file(case: ArchiveCase) -> None:
    case.blobs.put(KEY, b"x")
    case.blobs.put(changed_key(KEY, hashlib.sha256(b"one").hexdigest()), b"y")
    with pytest.raises(StoreError, match="move the blob away"):
        case.download()
    assert list(case.folder.iterdir()) == []


def test_secrets_in_an_address_are_neither_archived_nor_remembered(case: ArchiveCase) -> None:
    result = case.download(path="/a.json?api_key=s3cret&v=1")
    assert result.record is not None
    assert result.record.url == result.archived.url == case.upstream.url("/a.json?v=1")
    assert "api_key=s3cret" in case.upstream.requests[0].target


def test_a_sources_own_headers_are_sent(case: ArchiveCase) -> None:
    case.download(headers={"X-Api-Key": "s3cret"})
    assert case.upstream.requests[0].headers["x-api-key"] == "s3cret"


def test_a_failed_request_archives_nothing(case: ArchiveCase) -> None:
    with pytest.raises(NotFoundError):
        case.download(path="/none")
    assert case.keys == []
