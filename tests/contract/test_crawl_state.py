"""The state of a crawl: nothing lost, nothing counted twice, whatever is cut or killed."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.crawl_states import abandoned, begun, metadata, put_file, text
from tests.support.kills.crawl_state import (
    CLOCK,
    WEBSITES,
    data_of,
    downloaded,
    entry,
    error_of,
    opening,
    url_of,
)

from fonds.errors import StoreError
from fonds.seams import Seams
from fonds.sites import crawl_state
from fonds.sites.crawl_state import CrawlState, read_part
from fonds.sites.journal import CrawlTotals, read_events
from fonds.sites.models import PdfState
from fonds.sites.output import JOURNAL, METADATA, Output, open_output
from fonds.stores.blobs import Blobs, open_blobs
from fonds.testing import Saboteur


@pytest.fixture(params=["folder", "s3", "azure"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "output")
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture
def output(address: str) -> Output:
    return open_output(address, seams=Seams())


@pytest.fixture
def folder(tmp_path: Path) -> Output:
    return open_output(str(tmp_path / "output"), seams=Seams())


# What a crawl leaves ------------------------------------------------------------------------


def test_a_crawl_is_told_in_full_when_it_has_ended(output: Output) -> None:
    state = begun(output)
    state.discovered("site-0", *map(url_of, range(4)))
    downloaded(state, entry(0))
    downloaded(state, entry(1))
    state.failed(url_of(2), error_of(2))
    state.unchanged(url_of(3))
    state.problem(error_of(1))
    state.website("site-0", "crawled")
    state.website("site-1", "failed", error_of(1).model_copy(update={"error_type": "RobotsError"}))
    state.close(CLOCK.now() + timedelta(seconds=1))
    found = metadata(output)
    assert [pdf.original_url for pdf in found.downloaded_files] == [url_of(0), url_of(1)]
    assert [error.url for error in found.errors] == [url_of(2), None, None]
    assert (found.websites_crawled, found.websites_failed) == (1, 1)
    assert (found.total_pdfs_discovered, found.total_pdfs_downloaded) == (4, 2)
    assert (found.total_pdfs_failed, found.total_bytes_downloaded) == (1, 2 * len(data_of(0)))
    assert found.crawl_end_time is not None
    assert found.storage_backend == output.backend


def test_every_event_is_in_the_journal_at_once_with_its_time(output: Output) -> None:
    state = begun(output)
    state.discovered("site-0", url_of(0))
    state.moved([url_of(0)], PdfState.DOWNLOADING)
    downloaded(state, entry(0))
    lines = [json.loads(line) for line in text(output, JOURNAL).splitlines()]
    assert [line["event"] for line in lines] == ["opened", "discovered", "state", "downloaded"]
    assert all(datetime.fromisoformat(line["at"]).tzinfo == UTC for line in lines)
    assert [pdf["original_url"] for pdf in lines[-1]["pdfs"]] == [url_of(0)]
    assert metadata(output).downloaded_files == []
    state.close()


def test_a_fold_empties_the_journal_and_keeps_what_is_under_way(output: Output) -> None:
    state = begun(output)
    downloaded(state, entry(0))
    state.moved([url_of(1)], PdfState.DOWNLOADED)
    state.website("site-2", "crawled")
    state.fold()
    assert len(metadata(output).downloaded_files) == 1
    kept = [event.event for event in read_events(text(output, JOURNAL))]
    assert kept == ["opened", "website", "state"]
    state.close()


def test_a_stopped_crawl_is_resumed_as_it_was(output: Output) -> None:
    state = begun(output)
    put_file(output, 0)
    state.discovered("site-0", *map(url_of, range(6)))
    downloaded(state, entry(0))
    state.failed(url_of(4), error_of(4))
    state.website("site-1", "crawled")
    before, started = state.totals, state.started
    abandoned(state)
    resumed = CrawlState.resume(output, CLOCK)
    assert (resumed.crawl_id, resumed.started, resumed.totals) == (
        state.crawl_id,
        started,
        before,
    )
    assert resumed.websites() == {"site-1": "crawled"}
    assert resumed.find(url_of(0)) is not None
    assert resumed.find(url_of(1)) is None
    resumed.close()
    assert metadata(output).crawl_end_time is None


def test_addresses_count_once_also_when_a_resumed_crawl_meets_them_again(folder: Output) -> None:
    state = begun(folder)
    state.discovered("site-0", *map(url_of, range(10)), url_of(0))
    downloaded(state, entry(0))
    state.close()
    for _ in range(2):
        state = CrawlState.resume(folder, CLOCK)
        state.discovered("site-0", *map(url_of, range(10)))
        assert state.totals.pdfs_discovered == 10
        state.close()
    state = CrawlState.resume(folder, CLOCK)
    state.discovered("site-0", *map(url_of, range(12)))
    assert state.totals.pdfs_discovered == 12
    state.close()


def test_a_new_crawl_carries_over_the_entries_whose_files_stand(output: Output) -> None:
    state = begun(output)
    for number in (0, 1, 2):
        put_file(output, number)
        downloaded(state, entry(number))
        if number == 0:
            state.fold()
    state.failed(url_of(4), error_of(4))
    abandoned(state)
    output.blobs.delete("pdfs/party_2024-q1_1.pdf")
    again = CrawlState.begin(output, opening(output, crawl_id=uuid4()), CLOCK)
    assert again.find(url_of(2)) is not None
    assert again.totals == CrawlTotals()
    put_file(output, 3)
    downloaded(again, entry(3))
    again.close(CLOCK.now())
    found = metadata(output)
    assert [pdf.original_url for pdf in found.downloaded_files] == [
        url_of(0),
        url_of(2),
        url_of(3),
    ]
    assert (found.total_pdfs_downloaded, found.errors) == (1, [])


def test_an_entry_of_another_crawl_is_replaced_and_counted_when_fetched_anew(
    folder: Output,
) -> None:
    put_file(folder, 0)
    state = begun(folder)
    downloaded(state, entry(0))
    state.close(CLOCK.now())
    again = CrawlState.begin(folder, opening(folder, crawl_id=uuid4()), CLOCK)
    downloaded(again, entry(0, http_status_code=203))
    again.close()
    resumed = CrawlState.resume(folder, CLOCK)
    downloaded(resumed, entry(0, http_status_code=206))
    assert resumed.totals.pdfs_downloaded == 1
    resumed.close()
    (pdf,) = metadata(folder).downloaded_files
    assert pdf.http_status_code == 206


def test_other_bytes_at_the_same_address_are_another_entry(folder: Output) -> None:
    path = f"{put_file(folder, 0).removesuffix('.pdf')}-12345678.pdf"
    folder.blobs.put(path, data_of(0))
    state = begun(folder)
    downloaded(state, entry(0))
    downloaded(state, entry(0, path))
    assert (state.totals.pdfs_downloaded, state.totals.pdfs_discovered) == (1, 1)
    newest = state.find(url_of(0))
    state.close()
    assert newest is not None
    assert newest.local_path == path
    assert len(metadata(folder).downloaded_files) == 2
    resumed = CrawlState.resume(folder, CLOCK)
    assert resumed.totals == state.totals
    resumed.close()


def test_bytes_are_found_by_their_hash(folder: Output) -> None:
    state = begun(folder)
    downloaded(state, entry(0))
    sha256 = entry(0).sha256_hash
    assert state.path_of(sha256) == entry(0).local_path
    assert state.path_of(hashlib.sha256(b"").hexdigest()) is None
    downloaded(state, entry(1, entry(0).local_path))
    state.close()
    assert [pdf.local_path for pdf in metadata(folder).downloaded_files] == [
        entry(0).local_path
    ] * 2


def test_a_file_that_is_gone_is_not_found_though_its_entry_stays(folder: Output) -> None:
    state = begun(folder)
    downloaded(state, entry(0))
    state.close()
    resumed = CrawlState.resume(folder, CLOCK)
    assert (resumed.find(url_of(0)), resumed.path_of(entry(0).sha256_hash)) == (None, None)
    resumed.close()
    assert len(metadata(folder).downloaded_files) == 1


# Counting -----------------------------------------------------------------------------------


def test_a_failed_pdf_that_is_fetched_after_all_is_no_failure(folder: Output) -> None:
    state = begun(folder)
    state.discovered("site-0", url_of(0))
    state.failed(url_of(0), error_of(0))
    state.failed(url_of(0), error_of(0))
    assert state.totals.pdfs_failed == 1
    state.close()
    resumed = CrawlState.resume(folder, CLOCK)
    resumed.failed(url_of(0), error_of(0))
    downloaded(resumed, entry(0))
    resumed.failed(url_of(0), error_of(0))
    assert (resumed.totals.pdfs_failed, resumed.totals.pdfs_downloaded) == (0, 1)
    assert resumed.totals.pdfs_discovered == 1
    resumed.close()
    assert metadata(folder).total_pdfs_failed == 0
    again = CrawlState.resume(folder, CLOCK)
    assert again.totals == resumed.totals
    again.close()


def test_pdfs_that_are_told_together_count_each_once_as_if_told_singly(folder: Output) -> None:
    state = begun(folder)
    state.discovered("site-0", url_of(0), url_of(1), url_of(0))
    state.failed(url_of(1), error_of(1))
    downloaded(state, entry(0))
    state.moved([url_of(1), url_of(2)], PdfState.VALIDATED)
    downloaded(state, entry(0), entry(1), entry(2), entry(2))
    size = len(data_of(0))
    assert state.totals == CrawlTotals(
        pdfs_discovered=3, pdfs_downloaded=3, bytes_downloaded=3 * size
    )
    state.close()
    told = [pdf.original_url for pdf in metadata(folder).downloaded_files]
    assert told == [url_of(0), url_of(1), url_of(2)]


def test_what_was_never_discovered_counts_as_discovered(folder: Output) -> None:
    state = begun(folder)
    downloaded(state, entry(0))
    state.failed(url_of(4), error_of(4))
    state.discovered("site-0", url_of(0), url_of(4))
    state.close()
    assert metadata(folder).total_pdfs_discovered == 2


def test_a_part_is_taken_into_the_whole_once_however_often_it_is_told(output: Output) -> None:
    part = output.part("one")
    put_file(output, 0)
    state = begun(part)
    state.discovered("site-0", *map(url_of, range(3)))
    downloaded(state, entry(0))
    state.fold()
    state.failed(url_of(1), error_of(1))
    state.website("site-0", "crawled")
    abandoned(state)
    whole = CrawlState.begin(output, state.opening, CLOCK)
    for _ in range(2):
        told = read_part(part)
        assert told
        whole.merge(told, {"site-0": [*map(url_of, range(3))]})
    assert (whole.totals, whole.websites()) == (state.totals, {"site-0": "crawled"})
    whole.close(CLOCK.now() + timedelta(seconds=1))
    assert [each.records for each in output.parts()] == [part.records]
    part.discard()
    assert (output.parts(), read_part(part)) == ([], None)
    found = metadata(output)
    assert [pdf.original_url for pdf in found.downloaded_files] == [url_of(0)]
    assert [error.url for error in found.errors] == [url_of(1)]


def test_a_website_counts_as_what_became_of_it_last(folder: Output) -> None:
    state = begun(folder)
    state.website("site-0", "failed", error_of(0))
    state.website("site-0", "crawled")
    state.website("site-0", "crawled")
    assert (state.totals.websites_crawled, state.totals.websites_failed) == (1, 0)
    state.close()


def test_more_websites_than_there_are_is_refused_and_not_counted(folder: Output) -> None:
    state = begun(folder)
    for number in range(WEBSITES):
        state.website(f"site-{number}", "crawled")
    with pytest.raises(StoreError, match="site-9 is not one of the websites"):
        state.website("site-9", "crawled", error_of(0))
    state.close()
    assert (metadata(folder).websites_crawled, metadata(folder).errors) == (WEBSITES, [])


def test_a_crawl_never_ends_before_it_began(folder: Output) -> None:
    state = begun(folder)
    state.close(state.started - timedelta(hours=1))
    found = metadata(folder)
    assert found.crawl_end_time is not None
    assert found.crawl_end_time > found.crawl_start_time


def test_closing_twice_changes_nothing(folder: Output) -> None:
    with begun(folder) as state:
        state.close(CLOCK.now())
    assert metadata(folder).crawl_end_time is not None


# What was there -----------------------------------------------------------------------------


def test_there_is_nothing_to_resume_in_an_empty_output(output: Output) -> None:
    with pytest.raises(StoreError, match="There is no crawl in"):
        CrawlState.resume(output, CLOCK)


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_metadata_in_another_layout_is_read_too(
    folder: Output, indent: int | str | None, version: str
) -> None:
    put_file(folder, 0)
    state = begun(folder)
    downloaded(state, entry(0))
    state.failed(url_of(4), error_of(4))
    state.close()
    told = json.loads(text(folder, METADATA)) | {"metadata_version": version}
    folder.write(METADATA, json.dumps(told, indent=indent).encode())
    resumed = CrawlState.resume(folder, CLOCK)
    assert resumed.find(url_of(0)) is not None
    assert resumed.totals == state.totals
    resumed.close()
    assert metadata(folder).metadata_version == "1.1"
    assert text(folder, METADATA).count(b"\n{") == 2


@pytest.mark.parametrize("keep", [0, 0.3, 0.9])
def test_damaged_metadata_is_reported_and_left_alone(folder: Output, keep: float) -> None:
    state = begun(folder)
    for number in range(3):
        downloaded(state, entry(number))
    state.close()
    whole = text(folder, METADATA)
    damaged = whole[: int(len(whole) * keep)]
    folder.write(METADATA, damaged)
    with pytest.raises(StoreError, match=r"metadata\.json"):
        CrawlState.resume(folder, CLOCK)
    with pytest.raises(StoreError, match=r"metadata\.json"):
        begun(folder)
    assert text(folder, METADATA) == damaged


def test_newer_metadata_is_refused_and_left_alone(folder: Output) -> None:
    begun(folder).close()
    newer = text(folder, METADATA).replace(b'"1.1"', b'"2.0"')
    folder.write(METADATA, newer)
    with pytest.raises(StoreError, match="install a newer one"):
        begun(folder)
    assert text(folder, METADATA) == newer


def test_a_journal_of_other_metadata_is_reported(folder: Output) -> None:
    state = begun(folder)
    earlier = text(folder, METADATA)
    downloaded(state, entry(0))
    state.fold()
    downloaded(state, entry(1))
    abandoned(state)
    folder.write(METADATA, earlier)
    with pytest.raises(StoreError, match="continues another"):
        CrawlState.resume(folder, CLOCK)


def test_a_crawl_whose_journal_is_gone_goes_on_from_its_metadata(folder: Output) -> None:
    state = begun(folder)
    state.website("site-0", "crawled")
    downloaded(state, entry(0))
    state.close()
    folder.blobs.delete(JOURNAL)
    resumed = CrawlState.resume(folder, CLOCK)
    assert resumed.totals.pdfs_downloaded == 1
    for number in range(WEBSITES):
        resumed.website(f"site-{number}", "crawled")
    resumed.close()
    assert metadata(folder).websites_crawled == WEBSITES


# Failures -----------------------------------------------------------------------------------


def test_an_event_that_cannot_be_written_is_not_counted(tmp_path: Path) -> None:
    saboteur = Saboteur()
    output = open_output(str(tmp_path / "output"), seams=Seams(durable=saboteur))
    state = begun(output)
    saboteur.fail_at = len(saboteur.operations) + 1
    with pytest.raises(OSError, match=r"sabotaged: journal\.append"):
        downloaded(state, entry(0))
    assert (state.totals, state.find(url_of(0))) == (CrawlTotals(), None)
    downloaded(state, entry(1))
    state.close()
    (pdf,) = metadata(output).downloaded_files
    assert pdf.original_url == url_of(1)


def test_a_full_disk_leaves_no_half_line(folder: Output) -> None:
    state = begun(folder)
    downloaded(state, entry(0))
    before = text(folder, JOURNAL)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal, and the write is cut short.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(StoreError, match="cannot write"):
            downloaded(state, entry(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert text(folder, JOURNAL) == before
    downloaded(state, entry(2))
    state.close()
    assert len(metadata(folder).downloaded_files) == 2


def test_a_fold_that_fails_is_made_good_by_the_next(tmp_path: Path) -> None:
    saboteur = Saboteur()
    output = open_output(str(tmp_path / "output"), seams=Seams(durable=saboteur))
    state = begun(output)
    downloaded(state, entry(0))
    for step in range(1, 5):
        saboteur.fail_at = len(saboteur.operations) + step
        with pytest.raises(StoreError, match="metadata"):
            state.fold()
        downloaded(state, entry(step))
    state.close()
    assert len(metadata(output).downloaded_files) == 5
    assert metadata(output).total_pdfs_downloaded == 5


# Threads and size ---------------------------------------------------------------------------


def test_many_threads_note_at_once_and_nothing_is_lost(output: Output) -> None:
    state = begun(output)

    def work(number: int) -> None:
        state.discovered("site-0", url_of(number))
        downloaded(state, entry(number))
        if number % 10 == 0:
            state.fold()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(60)))
    abandoned(state)
    resumed = CrawlState.resume(output, CLOCK)
    assert (resumed.totals.pdfs_discovered, resumed.totals.pdfs_downloaded) == (60, 60)
    resumed.close()
    assert {pdf.original_url for pdf in metadata(output).downloaded_files} == set(
        map(url_of, range(60))
    )


class SlowBlobs:
    """A store in which each `put` under one key waits until it is let go."""

    def __init__(self, blobs: Blobs, key: str) -> None:
        self._blobs = blobs
        self._key = key
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        self.puts = 0

    def put(self, key: str, data: Any) -> str:
        if key == self._key:
            self.puts += 1
            self.has_begun.set()
            assert self.may_end.wait(10)
        return self._blobs.put(key, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


def test_notes_that_come_while_a_journal_is_put_share_the_next_put() -> None:
    blobs = SlowBlobs(open_blobs("memory://", seams=Seams()), JOURNAL)
    bare: Any = blobs
    output = Output(address="s3://x", backend="s3", folder=None, seams=Seams(), blobs=bare)
    state = begun(output)
    before = blobs.puts
    blobs.has_begun.clear()
    blobs.may_end.clear()
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(downloaded, state, entry(0))
        assert blobs.has_begun.wait(10)
        others = [pool.submit(downloaded, state, entry(number)) for number in range(1, 20)]
        while state.totals.pdfs_downloaded < 20:
            assert not any(other.done() for other in others)
        blobs.may_end.set()
        for each in (first, *others):
            each.result(10)
    assert blobs.puts - before == 2
    assert len(list(read_events(blobs.get(JOURNAL)))) == 21
    state.close()


def test_what_happens_during_a_fold_stays_in_the_journal(output: Output) -> None:
    blobs: Any = SlowBlobs(output.blobs, METADATA)
    state = begun(replace(output, blobs=blobs))
    downloaded(state, entry(0))
    blobs.has_begun.clear()
    blobs.may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        fold = pool.submit(state.fold)
        assert blobs.has_begun.wait(10)
        downloaded(state, entry(1))
        downloaded(state, entry(0, http_status_code=203))
        blobs.may_end.set()
        fold.result(10)
    abandoned(state)
    assert [pdf.http_status_code for pdf in metadata(output).downloaded_files] == [200]
    kept = [event.event for event in read_events(text(output, JOURNAL))]
    assert kept == ["opened", "downloaded", "downloaded"]
    resumed = CrawlState.resume(output, CLOCK)
    assert resumed.totals == state.totals
    resumed.close()
    found = metadata(output).downloaded_files
    assert [(pdf.original_url, pdf.http_status_code) for pdf in found] == [
        (url_of(1), 200),
        (url_of(0), 203),
    ]


def test_no_more_than_a_thousand_downloads_wait_to_be_folded(folder: Output) -> None:
    state = begun(folder)
    longest = 0
    for number in range(2500):
        downloaded(state, entry(number))
        longest = max(longest, state._downloads)
    assert longest <= crawl_state.MAX_UNFOLDED
    assert metadata(folder).total_pdfs_downloaded >= 1500
    state.close()


def test_what_happened_is_folded_also_while_nothing_happens(
    folder: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_state, "FOLD_SECONDS", 0.05)
    state = begun(folder)
    downloaded(state, entry(0))
    waiting = threading.Event()
    for _ in range(200):
        if metadata(folder).total_pdfs_downloaded:
            break
        waiting.wait(0.05)
    assert metadata(folder).total_pdfs_downloaded == 1
    state.close()


_MANY = """
import os, sys
from tests.support.kills.crawl_state import CLOCK, downloaded, entry, opening, url_of
from fonds.seams import Seams
from fonds.sites.crawl_state import CrawlState
from fonds.sites.output import open_output

def held():
    pages = open("/proc/self/statm").read().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") >> 20

output = open_output(sys.argv[1], seams=Seams())
few, many = int(sys.argv[2]), int(sys.argv[3])
with CrawlState.begin(output, opening(output), CLOCK) as state:
    for number in range(many):
        state.discovered("site-0", url_of(number))
        downloaded(state, entry(number))
        if number == few:
            before = held()
    grown = held() - before
with CrawlState.resume(output, CLOCK) as state:
    assert state.totals.pdfs_downloaded == many
    print(grown, held() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_a_hundred_thousand_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _MANY, str(tmp_path / "output"), "20000", "100000"]
    run = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    grown, resumed = map(int, run.stdout.split())
    assert grown < 15
    assert resumed < 30


def test_ours_and_another_clock_make_no_difference(folder: Output) -> None:
    """Entries of an earlier crawl stay apart from those of this one, though no time has passed."""

    class Standing:
        def now(self) -> datetime:
            return datetime(2026, 1, 19, 10, tzinfo=UTC)

        def monotonic(self) -> float:
            return 0.0

    moment: dict[str, Any] = {"download_timestamp": Standing().now()}
    start = {"crawl_start_time": Standing().now()}
    put_file(folder, 0)
    first = CrawlState.begin(folder, opening(folder).model_copy(update=start), Standing())
    downloaded(first, entry(0, **moment))
    first.close(Standing().now())
    again = opening(folder, crawl_id=uuid4()).model_copy(update=start)
    second = CrawlState.begin(folder, again, Standing())
    downloaded(second, entry(1, **moment))
    second.close()
    resumed = CrawlState.resume(folder, Standing())
    downloaded(resumed, entry(0, **moment))
    assert resumed.totals.pdfs_downloaded == 2
    resumed.close(Standing().now())
    assert len(metadata(folder).downloaded_files) == 2
