"""A crawl of several hosts gives the same on a cluster, where each of them is a part of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support import servers
from tests.support.crawls import crawl, crawl_part_and_die, crawler, downloads, plan_for, told
from tests.zoo import SITES, Zoo, serve

import fonds.library
import fonds.website_runner
from fonds.engine.base import portable_settings
from fonds.engine.opening import open_engine
from fonds.errors import SettingsError
from fonds.library import Library, crawl_part
from fonds.runs.state import RunReport, RunStatus
from fonds.seams import Seams
from fonds.selftest.state import rows_of
from fonds.sites import cluster as site_cluster
from fonds.sites.cluster import PartOrder
from fonds.sites.models import CrawlMetadata, read_metadata
from fonds.sites.output import JOURNAL, METADATA, PARTS, open_output
from fonds.sites.session import CrawlPart

BY_ID = {site.id: site for site in SITES}
HOSTS = ("register-table", "kitaura-list", "bezirk-robots")
LISTED = {f"{name} {truth.path}" for name in HOSTS for truth in BY_ID[name].listed}


@pytest.fixture(scope="module")
def cluster(ray_cluster: str) -> Iterator[str]:
    with open_engine(ray_cluster):  # so that all others find their connection there
        yield ray_cluster


@pytest.fixture
def zoo() -> Iterator[Zoo]:
    with serve([BY_ID[name] for name in HOSTS]) as served:
        yield served


@contextmanager
def opened(home: Path, **settings: Any) -> Iterator[Library]:
    (home / "library").mkdir(parents=True)
    servers.sqlite_database(home / "library" / "fonds.db")
    with crawler(home, **settings) as library:
        yield library


def pdfs(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (output / "pdfs").iterdir()}


def comparable(metadata: CrawlMetadata) -> dict[str, Any]:
    """What a crawl tells, but for moments, generated names, and the order of things."""
    told: dict[str, Any] = json.loads(metadata.model_dump_json())
    for name in ("crawl_id", "crawl_start_time", "crawl_end_time", "output_folder"):
        told.pop(name)
    for name in ("downloaded_files", "errors"):
        own = {"file_id", "download_timestamp", "timestamp", "http_headers"}
        entries = [{key: each[key] for key in each.keys() - own} for each in told[name]]
        told[name] = sorted(json.dumps(each, sort_keys=True) for each in entries)
    return told


def statuses(reports: Sequence[RunReport]) -> dict[str, tuple[RunStatus, int, int, int]]:
    return {
        each.source: (each.status, each.counts.inserted, each.counts.skipped, each.counts.error)
        for each in reports
    }


def fetched(zoo: Zoo) -> Counter[str]:
    """How often each PDF that is listed was sent."""
    return Counter({name: count for name, count in downloads(zoo).items() if name in LISTED})


def test_a_crawl_on_a_cluster_is_that_of_one_process_and_so_is_the_next(
    cluster: str, zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = [], []
    for name in ("local", "cluster"):
        home, output = tmp_path / name, tmp_path / name / "output"
        with opened(home, engine=cluster if name == "cluster" else "local") as library:
            reports = crawl(library, zoo, output)
            rows = rows_of(library)
            first.append((statuses(reports), rows, pdfs(output), comparable(told(output))))
            zoo.reset()
            reports = crawl(library, zoo, output)
            asked = Counter((one.site, one.path, one.status) for one in zoo.requests)
            second.append((statuses(reports), asked, pdfs(output), comparable(told(output))))
            zoo.reset()
        monkeypatch.setattr(fonds.website_runner, "run_source", _not_here)
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert len(first[1][2]) == first[1][3]["total_pdfs_downloaded"] > 10
    assert second[1][3]["total_pdfs_downloaded"] == 0
    assert not (tmp_path / "cluster" / "output" / PARTS).exists()


def test_a_shared_library_and_a_bucket_hold_the_same(
    cluster: str, zoo: Zoo, tmp_path: Path, postgres_database: str, s3_address: str
) -> None:
    raw, output = (s3_address.replace("?", f"/{name}?") for name in ("raw", "output"))
    shared = {"engine": cluster, "database": postgres_database, "blobs": raw}
    with crawler(tmp_path, **shared) as library:
        reports = crawl(library, zoo, output)
        bucket = open_output(output, seams=Seams())
        metadata = read_metadata(b"".join(bucket.read(METADATA) or ()), path=METADATA)
        left = bucket.parts()
    assert {each.status for each in reports} <= {RunStatus.SUCCESS, RunStatus.PARTIAL}
    assert left == []
    assert metadata.total_pdfs_discovered == len(LISTED)
    assert {each.local_path for each in metadata.downloaded_files} == {
        path for path, _ in bucket.files()
    }
    assert metadata.total_pdfs_downloaded == len(metadata.downloaded_files) > 10


def _not_here(*_: object) -> None:
    raise AssertionError("this process was to crawl nothing")


def test_a_website_or_a_process_that_fails_leaves_the_others_alone(
    cluster: str, zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "output"
    monkeypatch.setattr(fonds.library, "crawl_part", crawl_part_and_die)
    with opened(tmp_path, engine=cluster) as library:
        plan = plan_for(library, zoo, output)
        dead = plan.websites[2].model_copy(update={"id": "dead", "base_url": "http://127.0.0.1:9/"})
        lost = plan.websites[2].model_copy(update={"id": "dies-at-once"})
        late = plan.websites[0].model_copy(update={"id": "dies-late"})
        again = plan.websites[1].model_copy(update={"id": "dies-with-its-node"})
        some = replace(plan, websites=[dead, lost, late, again])
        reports = {each.source: each for each in asyncio.run(library.crawl(some))}
    assert [each.status for each in reports.values()] == [
        RunStatus.FAILED,
        RunStatus.FAILED,
        RunStatus.SUCCESS,
        RunStatus.SUCCESS,
    ]
    assert "127.0.0.1:9" in (reports["site-dead"].error_summary or "")
    assert "SIGKILL" in (reports["site-dies-at-once"].error_summary or "")
    metadata = told(output)
    assert (metadata.websites_crawled, metadata.websites_failed) == (2, 2)
    assert {each.website_id for each in metadata.errors} == {"dead", "dies-at-once"}
    assert {each.website_id for each in metadata.downloaded_files} == {late.id, again.id}
    assert (tmp_path / "library" / "lost").exists()
    assert set(fetched(zoo).values()) == {1}
    assert len(metadata.downloaded_files) == metadata.total_pdfs_downloaded == len(pdfs(output))


@pytest.fixture
def stopped(
    cluster: str, zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Library]:
    """A crawl whose process ended when all parts had, and before it merged them."""
    ended: list[object] = []

    def merge(_: object, outcome: object) -> list[RunReport]:
        ended.append(outcome)
        if len(ended) == len(HOSTS):
            raise OSError("stopped")
        return []

    with opened(tmp_path, engine=cluster) as library:
        with monkeypatch.context() as patched:
            patched.setattr(site_cluster, "_merge", merge)
            with pytest.raises(OSError, match="stopped"):
                crawl(library, zoo, tmp_path / "output")
        assert fetched(zoo) == dict.fromkeys(LISTED, 1)
        assert told(tmp_path / "output").downloaded_files == []
        yield library


def forget_ends(output: Path) -> int:
    """Make parts look as if they had been stopped just before the end of their websites."""
    journals = list(output.rglob(f"{PARTS}*/{JOURNAL}"))
    for journal in journals:
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(line for line in lines if b'"event":"website"' not in line))
    return len(journals)


@pytest.mark.parametrize("engine", ["cluster", "local"])
def test_parts_that_were_interrupted_are_resumed_and_nothing_is_fetched_twice(
    stopped: Library, zoo: Zoo, tmp_path: Path, engine: str
) -> None:
    output = tmp_path / "output"
    assert forget_ends(output) == len(HOSTS)
    begun = told(output)
    address = stopped.settings.engine if engine == "cluster" else "local"
    with crawler(tmp_path, engine=address) as library:
        reports = crawl(library, zoo, output, resume=True)
    assert {each.status for each in reports} <= {RunStatus.SUCCESS, RunStatus.PARTIAL}
    assert len(reports) == len(HOSTS)
    assert fetched(zoo) == dict.fromkeys(LISTED, 1)
    _check_whole(told(output), output)
    assert told(output).crawl_id == begun.crawl_id


def test_parts_that_had_ended_are_not_crawled_again(
    stopped: Library, zoo: Zoo, tmp_path: Path
) -> None:
    zoo.reset()
    assert crawl(stopped, zoo, tmp_path / "output", resume=True) == []
    assert zoo.requests == []
    _check_whole(told(tmp_path / "output"), tmp_path / "output")


def test_a_new_crawl_knows_what_the_parts_of_a_stopped_one_had_fetched(
    stopped: Library, zoo: Zoo, tmp_path: Path
) -> None:
    zoo.reset()
    crawl(stopped, zoo, tmp_path / "output")
    metadata = told(tmp_path / "output")
    assert not fetched(zoo)
    assert metadata.total_pdfs_downloaded == 0
    assert len(metadata.downloaded_files) == len(pdfs(tmp_path / "output"))


def _check_whole(metadata: CrawlMetadata, output: Path) -> None:
    assert metadata.websites_crawled == metadata.total_websites == len(HOSTS)
    assert metadata.total_pdfs_discovered == len(LISTED)
    assert metadata.total_pdfs_downloaded == len(metadata.downloaded_files) == len(pdfs(output))
    assert metadata.crawl_end_time is not None
    assert not list((output / PARTS).rglob("*.json*"))


def test_a_repeated_item_continues_from_its_journal(zoo: Zoo, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    with opened(tmp_path) as library:
        plan = plan_for(library, zoo, output)
        clock, settings = library.seams.clock, portable_settings(library.settings)
        crawl_part_ = CrawlPart(
            name="part", crawl_id=str(uuid4()), started=clock.now(), follows=False
        )
        part = replace(plan, websites=plan.websites[:1], advisors=(), part=crawl_part_)
        order = PartOrder(plan=part, settings=settings)
        (report,) = crawl_part(order)
        forget_ends(output)
        (again,) = crawl_part(order)
    assert (report.status, again.status) == (RunStatus.SUCCESS, RunStatus.SUCCESS)
    assert set(fetched(zoo).values()) == {1}
    metadata = told(output / PARTS / "part")
    assert metadata.total_pdfs_downloaded == len(metadata.downloaded_files) == len(fetched(zoo))


def test_a_crawl_that_is_cancelled_ends_at_once_on_all_machines_and_is_resumed(
    cluster: str, zoo: Zoo, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    with opened(tmp_path, engine=cluster) as library:
        seconds = asyncio.run(_cancelled(library, zoo, output))
        time.sleep(0.5)  # what was on its way arrives
        asked = len(zoo.requests)
        time.sleep(0.5)
        assert len(zoo.requests) == asked
        crawl(library, zoo, output, resume=True)
    assert seconds < 5
    metadata = told(output)
    assert metadata.websites_crawled == len(HOSTS)
    assert metadata.total_pdfs_discovered == len(LISTED)
    assert len(metadata.downloaded_files) == len(pdfs(output))


async def _cancelled(library: Library, zoo: Zoo, output: Path) -> float:
    crawling = asyncio.ensure_future(library.crawl(plan_for(library, zoo, output)))
    while not fetched(zoo):  # noqa: ASYNC110 — of another thread
        await asyncio.sleep(0.005)
    crawling.cancel()
    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await crawling
    return time.monotonic() - begun


def test_an_output_in_a_folder_of_another_machine_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as library:
        library.blobs.put("raw", b"")
        settings = portable_settings(library.settings)
        with serve([BY_ID["register-table"]]) as zoo:
            plan = plan_for(library, zoo, tmp_path / "elsewhere")
    with pytest.raises(SettingsError, match="is not on every machine of the cluster"):
        PartOrder(plan=plan, settings=settings).unpacked()
