"""Verification: what a compiler cannot have left behind is told, and what it can is not blamed."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fonds.seams import Seams, SystemClock
from fonds.shards.compiler import Compiler, Locks
from fonds.shards.divide import divide
from fonds.shards.inbox import put, put_many
from fonds.shards.index import Index, open_index
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import ManifestEntry, entry_of, publish, read_entry, write_entry
from fonds.shards.schema import Record
from fonds.shards.verify import Stats, stats, verify
from fonds.stores.blobs import open_blobs

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOSTS = [f"host{number}.gov" for number in range(30)]


def host(name: str, hours: int = 0, version: int = 1) -> Record:
    return {
        "domain": name,
        "company_name": f"Office of {name}",
        "scraper_version": version,
        "updated_at": NOON + timedelta(hours=hours),
    }


def compile_all(index: Index) -> None:
    done = Compiler(index, seams=Seams()).run()
    assert (done.busy, done.failed, done.damaged) == (0, 0, [])


@pytest.fixture(params=["folder", "memory", "s3", "azure"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    if request.param == "folder":
        address = str(tmp_path / "store")
    elif request.param == "memory":
        address = "memory://"
    else:
        address = request.getfixturevalue(f"{request.param}_address")
    return open_index(open_blobs(address, seams=Seams()), "domains")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    made = open_index(open_blobs(str(tmp_path / "store"), seams=Seams()), "domains")
    put_many(made, map(host, HOSTS))
    compile_all(made)
    return made


def shard_of_several(index: Index) -> str:
    """A shard with records enough to be put out of order."""
    groups = [index.layout.shard_of(name) for name in HOSTS]
    return next(shard for shard in groups if groups.count(shard) > 1)


def first(index: Index) -> tuple[str, bytes]:
    key = index.layout.shard(shard_of_several(index))
    return key, index.blobs.get(key)


def announce(index: Index, shard: str, data: bytes) -> None:
    """Write a shard with its entry, as a compiler does that means it."""
    write_entry(index, shard, ManifestEntry(entry_of(data), None), after=read_entry(index, shard))
    index.blobs.put(index.layout.shard(shard), data)


def test_an_index_fresh_from_the_compiler_is_as_it_should_be(empty: Index) -> None:
    assert verify(empty).problems == []
    put_many(empty, map(host, HOSTS))
    compile_all(empty)
    put(empty, host(HOSTS[0], 1))
    compile_all(empty)
    found = verify(empty)
    assert (found.problems, found.notes) == ([], [])
    assert found.records == len(HOSTS)
    assert found.shards == len({empty.layout.shard_of(name) for name in HOSTS})
    assert found.bytes == sum(
        info.size for info in empty.blobs.list(empty.layout.shards) if info.key.endswith(".usv")
    )


def test_stats_count_what_is_compiled_and_what_waits(empty: Index) -> None:
    assert stats(empty) == Stats(0, 0, 0, 0, 0, 0, None)
    put_many(empty, map(host, HOSTS))
    assert stats(empty).waiting == len(HOSTS)
    compile_all(empty)
    put_many(empty, [host("new.gov"), host("../new/🦊")])
    found, verified = stats(empty), verify(empty)
    assert (found.records, found.shards, found.bytes) == (30, verified.shards, verified.bytes)
    assert found.waiting == 2
    assert 0 < found.smallest <= found.largest < found.bytes
    assert found.compiled is not None


def test_a_shard_is_cut_at_any_byte_and_it_is_found(index: Index) -> None:
    key, whole = first(index)
    for cut in range(0, len(whole), 7):
        index.blobs.put(key, whole[:cut])
        problems = verify(index).problems
        assert any("differs from its entry" in told for told in problems)
        is_inside = cut > 0 and whole[cut - 1 : cut] != b"\n"
        assert any("ends inside a record" in told for told in problems) == is_inside


def test_one_cut_between_records_is_found(index: Index) -> None:
    key, whole = first(index)
    index.blobs.put(key, whole[: whole.index(b"\n") + 1])
    (problem,) = verify(index).problems
    assert problem.startswith(f"shard {shard_of_several(index)} differs from its entry")


def test_a_single_changed_byte_is_found(index: Index) -> None:
    key, whole = first(index)
    index.blobs.put(key, whole.replace(b"Office", b"0ffice", 1))
    (problem,) = verify(index).problems
    assert "differs from its entry" in problem


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def doubled(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines]


def foreign(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"host", b"gost"), *lines[1:]]


def short(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"\x1f1\x1f", b"\x1f", 1), *lines[1:]]


def mistyped(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"\x1f1\x1f", b"\x1fone\x1f", 1), *lines[1:]]


def loosely(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"\x1f1\x1f", b"\x1f01\x1f", 1), *lines[1:]]


def shortened_time(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b".000000Z", b"Z"), *lines[1:]]


def unknown_escape(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"Office", b"\x1bxffice"), *lines[1:]]


def no_text(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"Office", b"\xffffice"), *lines[1:]]


def keyless(lines: list[bytes]) -> list[bytes]:
    return [b"\x1f" + lines[0].partition(b"\x1f")[2], *lines[1:]]


def timeless(lines: list[bytes]) -> list[bytes]:
    return [lines[0].rpartition(b"\x1f")[0] + b"\x1f\x1b-\n", *lines[1:]]


def blank(lines: list[bytes]) -> list[bytes]:
    return [b"\n", *lines]


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (swapped, "twice, or out of order"),
        (doubled, "twice, or out of order"),
        (foreign, "which belongs in"),
        (short, "number 1: a record has 3 fields, not 4"),
        (mistyped, "number 1: a record cannot be read: scraper_version"),
        (loosely, "has record 1 in another form than the canonical one"),
        (shortened_time, "has record 1 in another form than the canonical one"),
        (unknown_escape, "number 1: a record contains an unknown escape"),
        (no_text, "number 1: a record is not UTF-8"),
        (keyless, "number 1: a record needs a key"),
        (timeless, "number 1: updated_at is missing"),
        (blank, "number 1: a record has 1 fields, not 4"),
    ],
)
def test_what_no_compiler_writes_is_found_even_if_it_is_announced(
    index: Index, bend: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    _, whole = first(index)
    announce(index, shard_of_several(index), b"".join(bend(whole.splitlines(keepends=True))))
    publish(index)
    problems = verify(index).problems
    assert problems
    assert all(said in told for told in problems)


def test_of_many_bad_records_a_few_are_told(index: Index) -> None:
    shard = shard_of_several(index)
    announce(index, shard, b"bad\n" * 1000)
    publish(index)
    problems = verify(index).problems
    assert len(problems) == 6
    assert problems[-1] == f"shard {shard} has more invalid records"


def test_a_shard_that_is_gone_is_found(index: Index) -> None:
    shard = shard_of_several(index)
    index.blobs.delete(index.layout.shard(shard))
    assert verify(index).problems == [f"shard {shard} is missing"]
    put(index, host("another.gov"))
    assert verify(index).problems == [f"shard {shard} is missing"]


def test_a_shard_that_is_gone_after_it_was_written_twice_is_found(index: Index) -> None:
    put_many(index, [host(name, 1) for name in HOSTS])
    compile_all(index)
    shard = shard_of_several(index)
    index.blobs.delete(index.layout.shard(shard))
    assert verify(index).problems == [f"shard {shard} is missing"]


def test_a_shard_without_an_entry_is_found(index: Index) -> None:
    shard = shard_of_several(index)
    index.blobs.delete(index.layout.entry(shard))
    (lost,) = verify(index).problems
    assert re.fullmatch(rf"shard {shard} had \d+ records by datapackage.json, and has 0 .*", lost)


def test_an_entry_that_cannot_be_read_is_found(index: Index) -> None:
    shard = shard_of_several(index)
    index.blobs.put(index.layout.entry(shard), b"{}")
    assert any(
        told.startswith(f"shard {shard} has an unreadable entry") for told in verify(index).problems
    )


def test_an_entry_that_counts_wrongly_is_found(index: Index) -> None:
    shard = shard_of_several(index)
    told = json.loads(index.blobs.get(index.layout.entry(shard)))
    index.blobs.put(index.layout.entry(shard), json.dumps(told | {"records": 77}).encode())
    assert verify(index).problems == [f"shard {shard} has an entry with wrong counts"]


def test_a_shard_that_vanished_with_its_entry_is_missed_by_the_data_package(index: Index) -> None:
    shard = shard_of_several(index)
    index.blobs.delete(index.layout.shard(shard))
    index.blobs.delete(index.layout.entry(shard))
    (problem,) = verify(index).problems
    assert problem.startswith(f"shard {shard} had ")
    assert problem.endswith("and has 0 by its entry")


def test_a_shard_that_was_set_back_with_its_entry_is_found(index: Index) -> None:
    shard, (_, whole) = shard_of_several(index), first(index)
    announce(index, shard, whole[: whole.index(b"\n") + 1])
    (problem,) = verify(index).problems
    assert problem.endswith("and has 1 by its entry")


def test_a_data_package_that_is_none_is_found(index: Index) -> None:
    index.blobs.put(index.layout.descriptor, b"[]")
    (problem,) = verify(index).problems
    assert "datapackage.json" in problem


def test_a_data_package_that_is_older_than_the_shards_is_a_note(index: Index) -> None:
    before = index.blobs.get(index.layout.descriptor)
    put(index, host("another.gov"))
    compile_all(index)
    index.blobs.put(index.layout.descriptor, before)
    found = verify(index)
    assert found.problems == []
    assert found.notes == ["datapackage.json is older than the entries of 1 shards"]
    index.blobs.delete(index.layout.descriptor)
    assert verify(index).problems == []


def test_a_compile_that_broke_off_before_it_wrote_is_a_note(index: Index) -> None:
    shard, (_, whole) = shard_of_several(index), first(index)
    entry = read_entry(index, shard)
    noted = ManifestEntry(entry_of(whole + b"more\n"), entry_of(whole).sha256)
    write_entry(index, shard, noted, after=entry)
    found = verify(index)
    assert found.problems == []
    assert f"shard {shard} was announced and not written: a compiler was interrupted" in found.notes


def test_a_compile_that_broke_off_before_it_announced_a_new_shard_is_a_note(index: Index) -> None:
    shard = index.layout.shard_of("new.gov")
    assert read_entry(index, shard) is None
    index.blobs.create(index.layout.shard(shard), index.schema.encode(host("new.gov")))
    found = verify(index)
    assert found.problems == []
    assert (
        f"shard {shard} has no entry in the manifest yet; the next compilation writes it"
        in found.notes
    )
    put(index, host("new.gov"))
    compile_all(index)
    assert verify(index).notes == []


def test_old_locks_and_strange_files_are_notes(index: Index, tmp_path: Path) -> None:
    for key in ("aa.lock", "bb.lock", "notes.txt"):
        index.blobs.create(f"{index.layout.shards}{key}", b"x")
    an_hour_ago = time.time() - 3600
    os.utime(tmp_path / "store" / index.layout.shards / "aa.lock", (an_hour_ago, an_hour_ago))
    found = verify(index)
    assert found.problems == []
    assert found.notes == [
        "indexes/domains/shards/aa.lock was left behind by a dead compiler",
        "indexes/domains/shards/notes.txt does not belong to an index",
    ]


def test_an_index_is_as_it_should_be_before_amid_and_after_its_division(tmp_path: Path) -> None:
    opened = open_index(open_blobs(str(tmp_path / "store"), seams=Seams()), "domains")
    index = replace(opened, layout=IndexLayout("domains", 1))
    put_many(index, map(host, HOSTS))
    compile_all(index)
    assert verify(index).problems == []

    class StoppedError(Exception):
        pass

    def stop(number: int) -> None:
        if number == 8:
            raise StoppedError

    locks = Locks(index, SystemClock(), "test")
    with pytest.raises(StoppedError):
        divide(index, 2, locks, watch=stop)
    assert (verify(index).problems, verify(index).records) == ([], len(HOSTS))
    divide(index, 2, locks)
    for held in (index, open_index(index.blobs, "domains")):
        assert (verify(held).problems, verify(held).records) == ([], len(HOSTS))


def test_an_index_that_is_compiled_meanwhile_is_not_blamed(tmp_path: Path) -> None:
    index = open_index(open_blobs(str(tmp_path / "store"), seams=Seams()), "domains")
    is_compiled = False

    def compile_now(operation: str, key: str) -> None:
        nonlocal is_compiled
        if operation == "blob.rename" and key.endswith(".usv") and "/shards/" in key:
            is_compiled = True
            assert verify(index).problems == []  # announced, and not written

    put_many(index, map(host, HOSTS[:5]))
    watched = replace(
        index, blobs=open_blobs(str(tmp_path / "store"), seams=Seams(durable=compile_now))
    )
    compile_all(watched)
    put_many(index, [host(name, 1) for name in HOSTS[:7]])
    compile_all(watched)
    assert is_compiled
    assert verify(index).problems == []
