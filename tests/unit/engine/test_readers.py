"""The pool that reads files of others."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from tests.support.polling import wait_until
from tests.support.ray_cluster import is_alive
from tests.unit.engine import chores

from fonds.engine.readers import MAX_CACHED_BYTES, ReaderPool, ReadingKey
from fonds.errors import (
    ItemFailedError,
    ItemMemoryError,
    ItemTimeoutError,
    MalformedError,
    WorkerDiedError,
)


@pytest.fixture(params=[(), ("tests.unit.engine.chores",)], ids=["workers", "copies"])
def readers(request: pytest.FixtureRequest) -> Iterator[ReaderPool]:
    with ReaderPool(workers=2, memory_mib=512, seconds=60, preload=request.param) as pool:
        yield pool


@pytest.fixture
def one_reader() -> Iterator[ReaderPool]:
    with ReaderPool(workers=1, memory_mib=512, seconds=60) as pool:
        yield pool


def test_plain_data_is_read_from_threads_and_coroutines(readers: ReaderPool) -> None:
    plain = {"a": [1, 2.5, None, True, "é\ud800"], "b": {"c": "x" * 3_000_000}}
    assert readers.read_now(chores.unchanged, plain) == plain
    assert asyncio.run(readers.read(chores.unchanged, plain)) == plain
    assert [o.unwrap() for o in readers.run(chores.unchanged, [plain, plain])] == [plain, plain]


def test_a_reading_knows_how_much_time_it_has(one_reader: ReaderPool) -> None:
    assert 0 < one_reader.read_now(chores.seconds_left, None) <= 60
    assert chores.seconds_left(None) == math.inf


def test_a_child_that_answers_with_a_pickle_is_refused(readers: ReaderPool, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(WorkerDiedError, match="something that is not a result"):
        readers.read_now(chores.answer_with_a_pickle, str(mark))
    assert not mark.exists()
    assert readers.read_now(chores.double, 2) == 4


def test_a_second_answer_is_not_taken_for_that_of_the_next_item(
    one_reader: ReaderPool,
) -> None:
    assert one_reader.read_now(chores.answer_twice, "first") == "first"
    assert one_reader.read_now(chores.unchanged, "second") == "second"


def test_a_child_that_begins_an_answer_and_stops_is_ended() -> None:
    with ReaderPool(workers=1, memory_mib=512, seconds=2) as pool:
        with pytest.raises(ItemTimeoutError):
            pool.read_now(chores.begin_an_answer, None)
        assert pool.read_now(chores.double, 2) == 4


def test_a_child_that_announces_too_long_an_answer_is_ended(one_reader: ReaderPool) -> None:
    with pytest.raises(ItemMemoryError, match="longer than 256 MiB"):
        one_reader.read_now(chores.announce_a_long_answer, None)
    assert one_reader.read_now(chores.double, 2) == 4


def test_an_object_that_is_not_plain_data_is_an_error(readers: ReaderPool) -> None:
    with pytest.raises(ItemFailedError, match="not plain data"):
        readers.read_now(chores.not_plain, None)


def test_an_error_has_its_name_and_message(readers: ReaderPool) -> None:
    with pytest.raises(MalformedError, match="the chore is malformed"):
        readers.read_now(chores.misbehave, "complain")
    with pytest.raises(ItemFailedError, match="UploadRefusedError: too long a name"):
        readers.read_now(chores.refuse, None)


def test_a_childs_environment_has_no_secret(
    readers: ReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FONDS_DATABASE", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "HOME"):
        monkeypatch.setenv(name, "hidden")
    variables, open_files = readers.read_now(chores.surroundings, None)
    assert "hidden" not in variables.values()
    assert not any(name.startswith(("FONDS", "AWS", "PG")) for name in variables)
    assert not any(str(Path.home()) in file for file in open_files)


def test_a_child_writes_no_file(readers: ReaderPool, tmp_path: Path) -> None:
    with pytest.raises(ItemFailedError, match="File too large"):
        readers.read_now(chores.write_file, str(tmp_path / "file"))


def test_a_killed_reader_is_replaced(one_reader: ReaderPool, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(
            one_reader.read_now, chores.write_process_id_and_hang, str(tmp_path)
        )
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        (worker,) = one_reader._engine._busy
        os.killpg(worker._process.pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError):
            reading.result()
    assert one_reader.read_now(chores.double, 2) == 4
    (worker,) = one_reader._engine._idle
    os.killpg(worker._process.pid, signal.SIGKILL)
    wait([worker.channel.fileno()], 60)
    assert one_reader.read_now(chores.double, 3) == 6


def test_all_threads_together_have_no_more_processes_than_workers(
    one_reader: ReaderPool, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(8) as threads:
        items = [(str(tmp_path), number) for number in range(16)]
        most = list(
            threads.map(lambda item: one_reader.read_now(chores.count_at_once, item), items)
        )
    assert max(most) == 1


def test_a_cancelled_reading_is_ended(one_reader: ReaderPool, tmp_path: Path) -> None:
    async def cancel() -> None:
        reading = asyncio.create_task(
            one_reader.read(chores.write_process_id_and_hang, str(tmp_path))
        )
        await asyncio.to_thread(wait_until, lambda: len(list(tmp_path.iterdir())) == 2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await one_reader.read(chores.double, 2) == 4

    asyncio.run(cancel())
    pids = [int(path.name) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_alive, pids)))


def test_closing_ends_what_other_threads_read(one_reader: ReaderPool, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(
            one_reader.read_now, chores.write_process_id_and_hang, str(tmp_path)
        )
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        one_reader.close()
        with pytest.raises(WorkerDiedError):
            reading.result()
    with pytest.raises(WorkerDiedError):
        one_reader.read_now(chores.double, 2)


# Kept results -----------------------------------------------------------------------------


def test_equal_requests_share_a_reading(readers: ReaderPool, tmp_path: Path) -> None:
    key = ReadingKey.of(b"the bytes", "count", "1")
    with ThreadPoolExecutor(8) as threads:
        items = [(str(tmp_path), number) for number in range(16)]
        results = threads.map(
            lambda item: readers.read_now(chores.count_at_once, item, key=key), items
        )
        assert list(results) == [1] * 16
    assert len(list(tmp_path.iterdir())) == 1


def test_a_result_is_kept_by_the_hash_of_its_content(readers: ReaderPool, tmp_path: Path) -> None:
    def read(content: bytes, recipe: str) -> int:
        key = ReadingKey.of(content, recipe)
        readers.read_now(chores.count_at_once, (str(tmp_path), os.urandom(4).hex()), key=key)
        return len(list(tmp_path.iterdir()))

    assert [read(b"one", "1"), read(b"one", "1"), read(b"two", "1"), read(b"one", "2")] == [
        1,
        1,
        2,
        3,
    ]
    readers.forget(ReadingKey.of(b"one", "").content)
    assert [read(b"two", "1"), read(b"one", "1"), read(b"one", "2")] == [3, 4, 5]


def test_a_kept_result_cannot_be_changed(readers: ReaderPool) -> None:
    key = ReadingKey.of(b"bytes", "1")
    readers.read_now(chores.unchanged, ["first"], key=key).append("second")
    assert readers.read_now(chores.unchanged, ["other"], key=key) == ["first"]


def test_the_error_of_a_file_is_kept_and_that_of_a_killed_process_is_not(
    readers: ReaderPool,
) -> None:
    for how, kind in (("complain", MalformedError), ("die", WorkerDiedError)):
        with pytest.raises(kind):
            readers.read_now(chores.misbehave, how, key=ReadingKey.of(b"bytes", how))
    with pytest.raises(MalformedError):
        readers.read_now(chores.misbehave, "fine", key=ReadingKey.of(b"bytes", "complain"))
    assert readers.read_now(chores.misbehave, "fine", key=ReadingKey.of(b"bytes", "die")) == "fine"


def test_kept_results_are_bounded_in_bytes(readers: ReaderPool) -> None:
    for number in range(6):
        key = ReadingKey.of(b"%d" % number, "1")
        readers.read_now(chores.unchanged, "x" * (MAX_CACHED_BYTES // 5), key=key)
    assert readers._results._size <= MAX_CACHED_BYTES
    assert len(readers._results._cached) == 4
    readers.read_now(chores.unchanged, "x" * MAX_CACHED_BYTES, key=ReadingKey.of(b"too long", "1"))
    assert len(readers._results._cached) == 4
