"""SIGKILL during a crawl: nothing is lost, nothing doubled, and nothing half written is seen."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import servers
from tests.support.crawls import crawler, downloads, told
from tests.support.kills.crawl import AT_ONCE
from tests.zoo import Zoo, serve
from tests.zoo.large import large

from fonds.seams import Seams
from fonds.sites.models import CrawlMetadata, read_metadata
from fonds.sites.output import METADATA, open_output

FEW = 60
MANY = 500


@pytest.fixture
def zoo(request: pytest.FixtureRequest) -> Iterator[Zoo]:
    with serve([large(1 + request.param // 10, request.param)]) as served:
        yield served


@pytest.mark.parametrize("zoo", [FEW], indirect=True)
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_durable_operations_a_crawl_ends_as_if_it_had_not_been(
    tmp_path: Path, zoo: Zoo, seed: int
) -> None:
    chance = random.Random(seed)
    kills = 0
    for _ in range(6):
        kills += _crawl(tmp_path, zoo, kill_at=chance.randint(5, 170)) == -signal.SIGKILL
        _check_files(tmp_path / "output")
    assert kills
    assert _crawl(tmp_path, zoo) == 0
    _check_all(tmp_path, zoo, FEW, kills)


@pytest.mark.long
@pytest.mark.parametrize("zoo", [MANY], indirect=True)
def test_killed_fifty_times_at_random_a_crawl_of_many_pdfs_ends_as_if_it_had_not_been(
    tmp_path: Path, zoo: Zoo
) -> None:
    chance = random.Random(50)
    kills = 0
    while kills < 50:
        child = _child(tmp_path, zoo)
        time.sleep(chance.uniform(0.6, 2.0))
        child.kill()
        child.communicate()
        kills += 1
        _check_files(tmp_path / "output")
        if child.returncode == 0:
            break
    assert _crawl(tmp_path, zoo) == 0
    _check_all(tmp_path, zoo, MANY, kills)


@pytest.mark.parametrize("kind", ["s3", "azure"])
@pytest.mark.parametrize("zoo", [FEW], indirect=True)
def test_a_crawl_into_an_object_store_outlives_kills_too(
    tmp_path: Path, zoo: Zoo, kind: str, request: pytest.FixtureRequest
) -> None:
    address: str = request.getfixturevalue(f"{kind}_address")
    chance = random.Random(kind)
    kills = 0
    for _ in range(3):
        kill_at = chance.randint(20, 210)
        kills += _crawl(tmp_path, zoo, kill_at=kill_at, output=address) == -signal.SIGKILL
    assert kills
    assert _crawl(tmp_path, zoo, output=address) == 0
    output = open_output(address, seams=Seams())
    metadata = read_metadata(b"".join(output.read(METADATA) or ()), path=METADATA)
    _check_counts(metadata, FEW)
    held = dict(output.files())
    assert held == {one.local_path: one.file_size_bytes for one in metadata.downloaded_files}


def _check_all(home: Path, zoo: Zoo, pdfs: int, kills: int) -> None:
    metadata = told(home / "output")
    _check_counts(metadata, pdfs)
    stored = {file.name: file.stat().st_size for file in (home / "output/pdfs").iterdir()}
    assert stored == {one.filename: one.file_size_bytes for one in metadata.downloaded_files}
    served = {path: n for path, n in downloads(zoo).items() if path.endswith(".pdf")}
    assert len(served) == pdfs
    assert sum(served.values()) <= pdfs + kills * AT_ONCE
    with crawler(home) as library, library.database.read() as connection:
        count = connection.exec_driver_sql("SELECT count(*), count(DISTINCT url) FROM site_files")
        assert tuple(count.one()) == (pdfs, pdfs)


def _check_counts(metadata: CrawlMetadata, pdfs: int) -> None:
    assert metadata.total_pdfs_discovered == pdfs
    assert metadata.total_pdfs_downloaded == pdfs
    assert metadata.total_pdfs_failed == 0
    assert metadata.crawl_end_time is not None
    assert len({one.original_url for one in metadata.downloaded_files}) == pdfs
    assert len(metadata.downloaded_files) == pdfs


def _check_files(output: Path) -> None:
    """What is there after a kill can be read, and every PDF is whole."""
    if (output / METADATA).exists():
        told(output)
    for file in (output / "pdfs").glob("*"):
        data = file.read_bytes()
        assert data.startswith(b"%PDF-")
        assert data.rstrip().endswith(b"%%EOF")


def _crawl(home: Path, zoo: Zoo, kill_at: int | None = None, output: str | None = None) -> int:
    child = _child(home, zoo, kill_at, output)
    child.communicate(timeout=240)
    return child.returncode


def _child(
    home: Path, zoo: Zoo, kill_at: int | None = None, output: str | None = None
) -> subprocess.Popen[str]:
    (site,) = zoo.sites
    where = output or str(home / "output")
    command = [str(servers.forked_python()), "-m", "tests.support.kills.crawl"]
    command += [str(home), zoo.start(site), where, *([str(kill_at)] if kill_at else [])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=servers.ROOT)
