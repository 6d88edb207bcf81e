"""What becomes of versions when a server is busy, slow, or its answer is lost; and what is told."""

from __future__ import annotations

import logging
import os
import subprocess
import traceback
from pathlib import Path

import pytest
from tests.support import servers
from tests.support.upstreams.failing_store import FailingStore, Fault, Request, always, first

from fonds.errors import BlobChangedError, StoreError
from fonds.seams import Seams
from fonds.stores import objects
from fonds.stores.blobs import open_blobs

SIGNATURES = ("X-Amz-Signature", "X-Amz-Credential", "sig=")


@pytest.fixture(params=["s3", "azure"])
def behind(request: pytest.FixtureRequest) -> str:
    """The address of a real server, before which a proxy can be put."""
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no server that is busy."""
    monkeypatch.setattr(objects, "_WAITS", (0.0, 0.0))


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.SILENT])
def test_a_server_that_was_busy_is_asked_again(behind: str, fault: Fault) -> None:
    with FailingStore(behind, first("DELETE", fault, Fault.BUSY), silence=0.1) as way:
        store = open_blobs(way.address, seams=Seams())
        store.remove("a", etag=store.create("a", b"1"))
        assert list(store.list()) == []
        assert way.count("DELETE") == 3


@pytest.mark.parametrize("fault", [Fault.BUSY_AFTERWARDS, Fault.LOST])
def test_removal_whose_answer_was_lost_counts_as_a_change(behind: str, fault: Fault) -> None:
    with FailingStore(behind, first("DELETE", fault)) as way:
        store = open_blobs(way.address, seams=Seams())
        etag = store.create("a", b"1")
        with pytest.raises(BlobChangedError):
            store.remove("a", etag=etag)
        assert store.head("a") is None


def test_a_second_try_spares_what_came_in_between(behind: str) -> None:
    other = open_blobs(behind, seams=Seams())
    tries: list[Request] = []

    def choose(request: Request) -> Fault | None:
        if request.method != "DELETE":
            return None
        tries.append(request)
        if len(tries) == 1:
            return Fault.LOST
        other.create("a", b"newer")
        return None

    with FailingStore(behind, choose) as way:
        store = open_blobs(way.address, seams=Seams())
        with pytest.raises(BlobChangedError):
            store.remove("a", etag=store.create("a", b"1"))
    assert len(tries) == 2
    assert other.get("a") == b"newer"


def test_a_client_that_waited_long_enough_asks_again(
    behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "STALL_SECONDS", 2.0)
    with FailingStore(behind, first("DELETE", Fault.SILENT), silence=60) as way:
        store = open_blobs(way.address, seams=Seams())
        store.remove("a", etag=store.create("a", b"1"))
        assert way.count("DELETE") == 2
        assert list(store.list()) == []


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.SILENT, Fault.CUT, Fault.LOST])
def test_a_version_is_read_whole_or_not_at_all(behind: str, fault: Fault) -> None:
    data = bytes(range(256)) * 40
    with FailingStore(behind, first("GET", fault), timeout="300ms") as way:
        store = open_blobs(way.address, seams=Seams())
        etag = store.create("a", data)
        try:
            read = store.read("a")
        except StoreError:
            read = store.read("a")
        assert read is not None
        assert (read.data, read.etag) == (data, etag)


@pytest.mark.parametrize("fault", [Fault.BUSY_AFTERWARDS, Fault.LOST, Fault.SILENT])
def test_a_replacement_without_an_answer_is_done_or_not_but_never_twice(
    behind: str, fault: Fault
) -> None:
    with FailingStore(behind, timeout="300ms") as way:
        store = open_blobs(way.address, seams=Seams())
        etag = store.create("a", b"1")
        way.choose = first("PUT", fault)
        try:
            store.replace("a", b"2", etag=etag)
        except StoreError:
            assert store.get("a") == (b"1" if fault is Fault.SILENT else b"2")
        else:
            assert store.get("a") == b"2"


# What must not be said ----------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.LOST, Fault.SILENT])
def test_no_error_repeats_a_signed_address(behind: str, fault: Fault) -> None:
    with FailingStore(behind, silence=0.05) as way:
        store = open_blobs(way.address, seams=Seams())
        etag = store.create("a", b"1")
        way.choose = always("DELETE", fault)
        for ask in (lambda: store.remove("a", etag=etag), store.can_remove_versions):
            with pytest.raises(StoreError) as caught:
                ask()
            said = "".join(traceback.format_exception(caught.value))
            assert not [word for word in SIGNATURES if word in said]


def test_no_error_about_a_refusal_repeats_a_signed_address(s3_address: str) -> None:
    store = open_blobs(s3_address, seams=Seams())
    etag = store.create("a", b"1")
    wrong = s3_address.replace("fonds-test-secret", "hunter2-secret")
    with pytest.raises(StoreError, match="403") as caught:
        open_blobs(wrong, seams=Seams()).remove("a", etag=etag)
    said = "".join(traceback.format_exception(caught.value))
    assert not [word for word in (*SIGNATURES, "hunter2") if word in said]
    assert store.get("a") == b"1"


def test_no_log_record_repeats_a_signed_address(
    behind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with FailingStore(behind, first("DELETE", Fault.BUSY, Fault.LOST)) as way:
        store = open_blobs(way.address, seams=Seams())
        assert store.can_remove_versions()
        store.remove("a", etag=store.create("a", b"1"))
        signed = [request.target for request in way.requests if request.method == "DELETE"]
    assert any(word in target for target in signed for word in SIGNATURES)
    said = [record.getMessage() for record in caplog.records]
    assert not [line for line in said if any(word in line for word in SIGNATURES)]


def test_no_command_shows_a_signed_address_however_much_it_tells(
    behind: str, tmp_path: Path
) -> None:
    told = {"FONDS_LOG_LEVEL": "debug", "FONDS_HOME": str(tmp_path)}
    with FailingStore(behind, first("DELETE", Fault.BUSY)) as way:
        said = ""
        for words in (("put", "domains", "domain=a.example"), ("compile", "domains", "--once")):
            done = subprocess.run(
                [servers.fonds_command(), "index", *words, "--root", way.address],
                env=os.environ | told,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            said += done.stdout + done.stderr
        assert way.count("DELETE") > 2
    assert not [word for word in SIGNATURES if word in said]
