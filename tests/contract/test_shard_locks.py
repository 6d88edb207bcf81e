"""Who compiles a shard, by the store's clock alone."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.indexes import KINDS, compile_all, keys_below, make_index, opener
from tests.support.upstreams.failing_store import FailingStore, Fault

from fonds.seams import Seams, SystemClock
from fonds.shards.compiler import LIFETIME, Locks
from fonds.shards.index import Index
from fonds.stores.blobs import BlobInfo, BlobVersion, FolderBlobs, open_blobs
from fonds.testing import ManualClock

HOUR = timedelta(hours=1)


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    return make_index(opener(request.param, tmp_path, request)(Seams()))


def _locks(index: Index, worker: str, lifetime: timedelta = LIFETIME) -> Locks:
    return Locks(index, SystemClock(), worker, lifetime)


def test_one_worker_has_a_shard_at_a_time(index: Index) -> None:
    mine, hers = _locks(index, "me"), _locks(index, "her")
    held = mine.take("a1")
    assert held is not None
    assert hers.take("a1") is None
    assert mine.take("a1") is None
    assert hers.take("a2") is not None


def test_a_lock_that_is_given_back_can_be_taken(index: Index) -> None:
    mine, hers = _locks(index, "me"), _locks(index, "her")
    held = mine.take("a1")
    assert held is not None
    mine.release(held)
    assert keys_below(index, ".lock") == []
    assert hers.take("a1") is not None


def test_a_lock_says_whose_it_is_and_for_how_long(index: Index) -> None:
    clock = ManualClock()
    assert Locks(index, clock, "me").take("a1")
    told = json.loads(index.blobs.get("indexes/domains/shards/a1.lock"))
    assert told["worker"] == "me"
    assert datetime.fromisoformat(told["created"]) == clock.now()
    assert datetime.fromisoformat(told["expires"]) == clock.now() + LIFETIME


def test_a_stale_lock_is_taken_over_and_stays_with_the_new_owner(index: Index) -> None:
    mine, hers = _locks(index, "me"), _locks(index, "her", timedelta())
    held = mine.take("a1")
    assert held is not None
    taken = hers.take("a1")
    assert taken is not None
    mine.release(held)
    assert keys_below(index, ".lock") == ["shards/a1.lock"]
    assert b'"her"' in index.blobs.get(held.key)
    hers.release(taken)
    assert keys_below(index, ".lock") == []


def test_release_of_a_lock_that_is_gone_is_no_error(index: Index) -> None:
    mine = _locks(index, "me")
    held = mine.take("a1")
    assert held is not None
    index.blobs.delete(held.key)
    mine.release(held)
    assert keys_below(index, ".lock") == []


class OtherClock(FolderBlobs):
    """A folder whose clock is not that of this machine."""

    ahead = timedelta()

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        read = super().read(key, unless=unless)
        return read and BlobVersion(read.data, read.etag, read.modified + self.ahead)

    def head(self, key: str) -> BlobInfo | None:
        info = super().head(key)
        return info and BlobInfo(info.key, info.size, info.etag, info.modified + self.ahead)


@pytest.fixture(params=[-HOUR, timedelta(), HOUR], ids=["behind", "equal", "ahead"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    """An index in a store whose clock is an hour from ours, either way."""
    blobs = OtherClock(tmp_path / "blobs", seams=Seams())
    blobs.ahead = request.param
    return make_index(blobs)


@pytest.mark.parametrize("off", [-HOUR, timedelta(), HOUR], ids=["slow", "right", "fast"])
@pytest.mark.parametrize(("age", "is_stale"), [(0, False), (45, False), (65, True)])
def test_only_the_stores_clock_says_what_is_stale(
    elsewhere: Index, tmp_path: Path, off: timedelta, age: int, *, is_stale: bool
) -> None:
    held = _locks(elsewhere, "somebody who died").take("a1")
    assert held is not None
    written = time.time() - age
    os.utime(tmp_path / "blobs" / held.key, (written, written))
    clock = ManualClock(datetime.now(UTC) + off)
    assert (Locks(elsewhere, clock, "me").take("a1") is not None) == is_stale
    assert keys_below(elsewhere, ".lock") == ["shards/a1.lock"]


@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_a_lock_whose_answer_was_lost_is_ours(request: pytest.FixtureRequest, kind: str) -> None:
    faults = [Fault.BUSY_AFTERWARDS]
    with FailingStore(request.getfixturevalue(f"{kind}_address")) as way:
        index = make_index(open_blobs(way.address, seams=Seams()))
        way.choose = lambda request: faults.pop() if faults and request.method == "PUT" else None
        mine = _locks(index, "me")
        held = mine.take("a1")
        assert held is not None
        assert not faults
        mine.release(held)
        assert keys_below(index, ".lock") == []


def test_a_lock_that_nobody_gave_back_goes_though_nothing_waits(index: Index) -> None:
    assert _locks(index, "somebody who died").take("3")
    compile_all(index)
    assert keys_below(index, ".lock") == ["shards/3.lock"]
    compile_all(index, lifetime=timedelta())
    assert keys_below(index, ".lock") == []
