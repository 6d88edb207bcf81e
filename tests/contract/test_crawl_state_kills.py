"""The state of a crawl whose journal is cut, or whose process is killed."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.crawl_states import abandoned, begun, copied, metadata, text
from tests.support.kills.crawl_state import (
    CLOCK,
    WEBSITES,
    crawl,
    data_of,
    downloaded,
    entry,
    error_of,
    fails,
    some_seconds,
    url_of,
)

from fonds.seams import Seams
from fonds.selftest.child import ForkServer
from fonds.sites.crawl_state import CrawlState
from fonds.sites.journal import CrawlTotals, read_events
from fonds.sites.models import PdfState
from fonds.sites.output import JOURNAL, METADATA, Output, open_output


@pytest.fixture(params=["folder", "s3", "azure"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "output")
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Output:
    return open_output(str(tmp_path / "output"), seams=Seams())


@pytest.fixture(scope="module")
def crawls() -> Iterator[ForkServer]:
    with ForkServer("tests.support.kills.crawl_state") as crawls:
        yield crawls


def _a_journal(output: Output) -> tuple[dict[str, bytes], list[CrawlTotals]]:
    """A crawl that was folded once and went on, and the counts after each line of its journal."""
    state = begun(output)
    downloaded(state, entry(0))
    state.fold()
    state.discovered("site-0", url_of(1), url_of(4))
    state.moved([url_of(1)], PdfState.DOWNLOADING)
    downloaded(state, entry(1))
    state.failed(url_of(4), error_of(4))
    state.website("site-0", "crawled")
    abandoned(state)
    files = copied(output)
    return files, [event.totals for event in read_events(files[JOURNAL])]


def test_a_journal_cut_at_any_byte_holds_all_its_whole_lines(folder: Output) -> None:
    files, totals = _a_journal(folder)
    journal = files[JOURNAL]
    for cut in range(len(journal) + 1):
        read = [event.totals for event in read_events(journal[:cut])]
        assert read == totals[: journal[:cut].count(b"\n")]


def test_a_crawl_is_resumed_from_a_journal_cut_anywhere(folder: Output) -> None:
    files, totals = _a_journal(folder)
    journal = files[JOURNAL]
    ends = [at + 1 for at, byte in enumerate(journal) if byte == ord("\n")]
    for cut in sorted({0, *(end + by for end in ends for by in (-1, 0, 7))}):
        folder.write(METADATA, files[METADATA])
        folder.write(JOURNAL, journal[:cut])
        with CrawlState.resume(folder, CLOCK) as resumed:
            whole = journal[:cut].count(b"\n")
            assert resumed.totals == totals[max(whole - 1, 0)]
        assert len(metadata(folder).downloaded_files) == resumed.totals.pdfs_downloaded


@pytest.mark.parametrize("lines", range(7))
def test_a_fold_that_did_not_come_to_the_journal_counts_nothing_twice(
    folder: Output, lines: int
) -> None:
    """`metadata.json` is of any moment, and the journal still the one of before."""
    files, totals = _a_journal(folder)
    journal = files[JOURNAL].splitlines(keepends=True)
    assert len(journal) == 6
    folder.write(METADATA, files[METADATA])
    folder.write(JOURNAL, b"".join(journal[:lines]))
    CrawlState.resume(folder, CLOCK).close()
    folder.write(JOURNAL, files[JOURNAL])
    resumed = CrawlState.resume(folder, CLOCK)
    assert resumed.totals == totals[-1]
    assert resumed.websites() == {"site-0": "crawled"}
    resumed.close()
    found = metadata(folder)
    assert [pdf.original_url for pdf in found.downloaded_files] == [url_of(0), url_of(1)]
    assert [error.url for error in found.errors] == [url_of(4)]


def test_a_fold_ahead_of_the_journal_of_a_store_is_believed(folder: Output) -> None:
    files, totals = _a_journal(folder)
    CrawlState.resume(folder, CLOCK).close()
    folder.write(JOURNAL, b"".join(files[JOURNAL].splitlines(keepends=True)[:3]))
    resumed = CrawlState.resume(folder, CLOCK)
    assert (resumed.totals.pdfs_downloaded, resumed.totals.pdfs_failed) == (
        totals[-1].pdfs_downloaded,
        totals[-1].pdfs_failed,
    )
    resumed.close()


def _check_after_a_kill(output: Output, files: int, noted: Path) -> None:
    """Both files are valid, what was acknowledged is there, and no file is a part of one."""
    if output.read(METADATA) is None:
        assert noted.read_bytes() == b""
        return
    metadata(output)
    *lines, _ = text(output, JOURNAL).split(b"\n") or [b""]
    assert len(list(read_events(text(output, JOURNAL)))) == len(lines)
    whole = {data_of(number) for number in range(files)}
    held = {path: output.blobs.get(path) for path, _ in output.files()}
    assert set(held.values()) <= whole
    assert len(set(held.values())) == len(held)


def _check_recovered(output: Output, noted: Path) -> None:
    acknowledged = {int(line) for line in noted.read_text().split()}
    found = metadata(output)
    urls = [pdf.original_url for pdf in found.downloaded_files]
    assert len(set(urls)) == len(urls)
    assert set(urls) >= {url_of(number) for number in acknowledged if not fails(number)}
    assert {error.url for error in found.errors} >= {
        url_of(number) for number in acknowledged if fails(number)
    }


def _check_complete(output: Output, files: int) -> None:
    failing = sum(map(fails, range(files)))
    found = metadata(output)
    assert found.total_pdfs_discovered == files
    assert (found.total_pdfs_downloaded, found.total_pdfs_failed) == (files - failing, failing)
    assert found.total_bytes_downloaded == sum(
        len(data_of(number)) for number in range(files) if not fails(number)
    )
    assert (found.websites_crawled, found.websites_failed) == (WEBSITES - 1, 1)
    assert len(found.downloaded_files) == files - failing
    assert found.crawl_end_time is not None
    for pdf in found.downloaded_files:
        assert hashlib.sha256(output.blobs.get(pdf.local_path)).hexdigest() == pdf.sha256_hash


def _addresses(address: str) -> Iterator[str]:
    """A place of its own for each crawl."""
    before, mark, after = address.partition("?")
    yield from (f"{before}-{number}{mark}{after}" for number in count())


def _killed_at_every_step(
    crawls: ForkServer, address: str, tmp_path: Path, *, files: int, step: int
) -> int:
    for kill_at, place in zip(count(1, step), _addresses(address), strict=False):
        noted = tmp_path / f"noted-{kill_at}"
        noted.touch()
        output = open_output(place, seams=Seams())
        told: dict[str, Any] = {"address": place, "files": files, "noted": str(noted)}
        code = crawls.run(crawl, **told, kill_at=kill_at)
        if code == 0:
            return kill_at
        assert code == -signal.SIGKILL
        _check_after_a_kill(output, files, noted)
        assert crawls.run(crawl, **told) == 0
        _check_recovered(output, noted)
        _check_complete(output, files)
    raise AssertionError


def test_a_crawl_killed_at_any_durable_step_loses_and_doubles_nothing(
    crawls: ForkServer, address: str, tmp_path: Path
) -> None:
    files = 6
    steps = _killed_at_every_step(crawls, address, tmp_path, files=files, step=3)
    assert steps > 3 * files


@pytest.mark.long
def test_a_crawl_killed_at_every_durable_step_loses_and_doubles_nothing(
    crawls: ForkServer, address: str, tmp_path: Path
) -> None:
    assert _killed_at_every_step(crawls, address, tmp_path, files=10, step=1) > 30


def test_a_crawl_killed_again_and_again_comes_to_its_end(
    crawls: ForkServer, address: str, tmp_path: Path
) -> None:
    files = 60
    noted = tmp_path / "noted"
    noted.touch()
    output = open_output(address, seams=Seams())
    told: dict[str, Any] = {"address": address, "files": files, "noted": str(noted)}
    for seed in range(12):
        crawls.run(crawl, **told, kill_after=some_seconds(seed, 0.25))
        _check_after_a_kill(output, files, noted)
    assert crawls.run(crawl, **told) == 0
    _check_recovered(output, noted)
    _check_complete(output, files)
