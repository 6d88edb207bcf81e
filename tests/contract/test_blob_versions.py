"""Reading and removing one version of an object, and no other, in every store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests.support.upstreams.failing_store import FailingStore, Fault, always, first

from fonds.errors import BlobChangedError, BlobMissingError, StoreError
from fonds.seams import Seams
from fonds.shards.layout import IndexLayout
from fonds.stores import objects
from fonds.stores.blobs import Blobs, open_blobs


def _address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "blobs")
    if request.param == "memory":
        return "memory://"
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture(params=["folder", "memory", "s3", "azure"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return open_blobs(_address(request, tmp_path), seams=Seams())


@pytest.fixture(params=["folder", "s3", "azure"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _address(request, tmp_path)


@pytest.fixture
def removing(address: str) -> Blobs:
    return open_blobs(address, seams=Seams())


def _etag(blobs: Blobs, key: str) -> str:
    info = blobs.head(key)
    assert info is not None
    return info.etag


# Reading ------------------------------------------------------------------------------------


def test_a_version_is_bytes_etag_and_time(blobs: Blobs) -> None:
    etag = blobs.create("a/b", b"secret")
    read = blobs.read("a/b")
    assert read is not None
    assert (read.data, read.etag) == (b"secret", etag)
    assert read.etag == _etag(blobs, "a/b")
    assert abs(datetime.now(UTC) - read.modified) < timedelta(days=1)
    assert "secret" not in repr(read)


def test_what_is_missing_has_no_version(blobs: Blobs) -> None:
    etag = blobs.create("a", b"1")
    for unless in (None, etag):
        with pytest.raises(BlobMissingError, match="'b'"):
            blobs.read("b", unless=unless)


def test_a_version_that_is_known_is_not_sent_again(blobs: Blobs) -> None:
    first = blobs.create("a", b"1")
    assert blobs.read("a", unless=first) is None
    second = blobs.replace("a", b"2", etag=first)
    read = blobs.read("a", unless=first)
    assert read is not None
    assert (read.data, read.etag) == (b"2", second)
    assert blobs.read("a", unless=second) is None


def test_the_etag_that_was_read_can_be_replaced(blobs: Blobs) -> None:
    blobs.create("a", b"1")
    read = blobs.read("a")
    assert read is not None
    blobs.replace("a", b"2", etag=read.etag)
    with pytest.raises(BlobChangedError):
        blobs.replace("a", b"3", etag=read.etag)
    assert blobs.get("a") == b"2"


def test_an_empty_object_has_a_version(blobs: Blobs) -> None:
    etag = blobs.create("a", b"")
    read = blobs.read("a")
    assert read is not None
    assert (read.data, read.etag) == (b"", etag)
    assert blobs.read("a", unless=etag) is None


# Removing -----------------------------------------------------------------------------------


def test_the_version_that_is_named_is_removed(removing: Blobs) -> None:
    assert removing.can_remove_versions()
    removing.create("b", b"another")
    removing.remove("a", etag=removing.create("a", b"1"))
    assert [info.key for info in removing.list()] == ["b"]


def test_every_way_to_learn_an_etag_serves(removing: Blobs) -> None:
    def listed() -> str:
        return next(iter(removing.list("k"))).etag

    def read() -> str:
        version = removing.read("k")
        assert version is not None
        return version.etag

    def replaced() -> str:
        return removing.replace("k", b"2", etag=_etag(removing, "k"))

    for learn in (listed, read, replaced, lambda: _etag(removing, "k")):
        removing.create("k", b"1")
        removing.remove("k", etag=learn())
        assert removing.head("k") is None


def test_another_version_is_left_alone(removing: Blobs) -> None:
    first = removing.create("a", b"1")
    second = removing.replace("a", b"2", etag=first)
    with pytest.raises(BlobChangedError, match="'a'"):
        removing.remove("a", etag=first)
    assert removing.get("a") == b"2"
    removing.remove("a", etag=second)
    assert list(removing.list()) == []


def test_what_is_gone_cannot_be_removed(removing: Blobs) -> None:
    etag = removing.create("a", b"1")
    removing.remove("a", etag=etag)
    for key in ("a", "never/was"):
        with pytest.raises(BlobChangedError, match=key):
            removing.remove(key, etag=etag)


def test_what_was_made_anew_is_left_alone(removing: Blobs) -> None:
    etag = removing.create("a", b"1")
    removing.delete("a")
    removing.create("a", b"anew")
    with pytest.raises(BlobChangedError):
        removing.remove("a", etag=etag)
    assert removing.get("a") == b"anew"


@pytest.mark.parametrize(
    "key", ["example.org", "Ex ämple/Org?x=1&y#2", "%25+~", "a" * 250, "..tmp"]
)
def test_records_of_any_key_are_removed(removing: Blobs, key: str) -> None:
    path = IndexLayout("domains").item(key)
    removing.remove(path, etag=removing.create(path, b"1"))
    assert list(removing.list()) == []


@pytest.mark.parametrize("key", ["", "/", "a/../b", ".tmp/x", "back\\slash", "line\nfeed"])
def test_a_key_that_is_no_name_has_no_version(removing: Blobs, key: str) -> None:
    with pytest.raises(StoreError, match="cannot be a blob key"):
        removing.read(key)
    with pytest.raises(StoreError, match="cannot be a blob key"):
        removing.remove(key, etag='"x"')


def test_removal_announces_itself_before_it_shows(address: str) -> None:
    seen: list[tuple[str, str, bool]] = []

    def watch(operation: str, subject: str) -> None:
        if operation == "blob.delete":
            seen.append((operation, subject, store.head(subject) is not None))

    store = open_blobs(address, seams=Seams(durable=watch))
    store.remove("k", etag=store.create("k", b"1"))
    assert seen == [("blob.delete", "k", True)]


def _race(works: list[Callable[[], str]]) -> list[str]:
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], str]) -> str:
        barrier.wait()
        try:
            return work()
        except BlobChangedError:
            return "lost"

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(start, works))


def test_of_racing_removals_and_replacements_exactly_one_wins(removing: Blobs) -> None:
    for number in range(10):
        key = f"race/{number}"
        etag = removing.create(key, b"old")

        def remove(key: str = key, etag: str = etag) -> str:
            removing.remove(key, etag=etag)
            return "removed"

        def put_in_place(key: str = key, etag: str = etag) -> str:
            removing.replace(key, b"new", etag=etag)
            return "replaced"

        results = Counter(_race([remove, put_in_place] * 2))
        assert results["lost"] == 3
        held = [info.key for info in removing.list(key)]
        assert held == ([key] if results["replaced"] else [])
        assert not held or removing.get(key) == b"new"


# Stores that compare nothing ----------------------------------------------------------------


def test_memory_says_that_it_compares_nothing() -> None:
    assert not open_blobs("memory://", seams=Seams()).can_remove_versions()


def test_azure_compares_nothing_where_it_could_not_be_signed(azure_address: str) -> None:
    parts = urlsplit(azure_address)
    odd = urlunsplit(parts._replace(path=f"{parts.path}/with%20space"))
    assert not open_blobs(odd, seams=Seams()).can_remove_versions()


@pytest.fixture(params=["s3", "azure"])
def behind(request: pytest.FixtureRequest) -> str:
    """The address of a real server, before which a proxy can be put."""
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


def test_server_that_deletes_whatever_it_is_told_is_found_out(behind: str) -> None:
    with FailingStore(behind, forgets="if-match") as way:
        store = open_blobs(way.address, seams=Seams())
        assert not store.can_remove_versions()
        assert not store.can_remove_versions()
        probes = [request for request in way.requests if request.method == "DELETE"]
        assert [("if-match" in request.headers) for request in probes] == [True]
        assert list(store.list()) == []


def test_server_that_compares_is_tried_out_once(behind: str) -> None:
    with FailingStore(behind) as way:
        store = open_blobs(way.address, seams=Seams())
        assert store.can_remove_versions()
        asked = len(way.requests)
        assert store.can_remove_versions()
        assert len(way.requests) == asked
        assert list(store.list()) == []


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.BUSY_AFTERWARDS, Fault.LOST])
@pytest.mark.parametrize("forgets", ["if-match", None])
def test_a_bad_moment_does_not_mislead_the_trial(
    behind: str, fault: Fault, forgets: str | None
) -> None:
    with FailingStore(behind, first("DELETE", fault), forgets=forgets) as way:
        assert open_blobs(way.address, seams=Seams()).can_remove_versions() == (forgets is None)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no server that is busy."""
    monkeypatch.setattr(objects, "_WAITS", (0.0, 0.0))


@pytest.mark.usefixtures("impatient")
def test_a_trial_that_came_to_nothing_is_made_again(behind: str) -> None:
    with FailingStore(behind, always("DELETE", Fault.BUSY)) as way:
        store = open_blobs(way.address, seams=Seams())
        with pytest.raises(StoreError):
            store.can_remove_versions()
        way.choose = always("none", Fault.BUSY)
        assert store.can_remove_versions()
