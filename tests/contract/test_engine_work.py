"""What runs on an engine gives the same on either: texts, vectors, shards, units of a code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support import servers
from tests.support.indexes import all_shards, check_manifest, make_index, record
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.codes.run import CodeRequest
from fonds.demo.server import DemoUpstream
from fonds.engine.base import portable_settings, require_local_files
from fonds.engine.opening import open_engine
from fonds.errors import SettingsError
from fonds.library import open_library
from fonds.runs.state import RunStatus
from fonds.seams import Seams
from fonds.selftest.state import rows_of
from fonds.settings import Settings
from fonds.shards.compiler import Compiled, Compiler, ShardOrder, compile_shard, compiling_on
from fonds.shards.inbox import put_many, waiting
from fonds.stores.blobs import open_blobs
from fonds.testing import FakeSource

NOTES = 6


@pytest.fixture(scope="module")
def cluster(ray_cluster: str) -> Iterator[str]:
    with open_engine(ray_cluster):  # so that all others find their connection there
        yield ray_cluster


@pytest.fixture(params=["local", "ray"])
def engine(request: pytest.FixtureRequest) -> str:
    address: str = "local" if request.param == "local" else request.getfixturevalue("cluster")
    return address


def notes(folder: Path, **settings: Any) -> Mapping[str, Sequence[str]]:
    """A library of notes whose texts and vectors were made after loading."""
    with MisbehavingServer() as server:
        NoteOffice(server, NOTES)
        with note_library(folder, server, **settings) as library:
            ingest(library, FakeSource(queued=True))
            assert library.normalize_queued().done == NOTES
            report = library.embed(workers=2 if settings else None)
            assert (report.done, report.ended) == (NOTES, None)
            return rows_of(library)


def test_texts_and_vectors_are_those_of_one_process(engine: str, tmp_path: Path) -> None:
    assert notes(tmp_path / "engine", engine=engine) == notes(tmp_path / "alone")


def test_shards_are_those_of_one_process(cluster: str, tmp_path: Path) -> None:
    held = []
    for root in (tmp_path / "cluster", tmp_path / "alone"):
        index = make_index(open_blobs(str(root), seams=Seams()))
        put_many(index, [record(f"{number}.example", 1) for number in range(60)])
        with compiling_on(cluster if root.name == "cluster" else "local", str(root)) as elsewhere:
            done = Compiler(index, seams=Seams(), remote=elsewhere(index)).run()
        assert (done.records, done.failed, done.busy) == (60, 0, 0)
        assert list(waiting(index)) == []
        check_manifest(index)
        held.append(all_shards(index))
    assert held[0] == held[1]


def test_units_of_a_code_are_those_of_one_process(cluster: str, tmp_path: Path) -> None:
    held = []
    with DemoUpstream() as upstream:
        for name in ("cluster", "alone"):
            (tmp_path / name).mkdir()
            servers.sqlite_database(tmp_path / name / "fonds.db")
            settings: dict[str, Any] = {
                "hosts": upstream.hosts,
                "allow_private": True,
                "rate_factor": 0.0,
                "engine": cluster if name == "cluster" else "local",
            }
            with open_library(tmp_path / name, **settings) as library:
                report = asyncio.run(library.ingest_code("usc", CodeRequest()))
                assert report.run.status is RunStatus.SUCCESS, report.run.error_summary
                held.append(rows_of(library))
    assert held[0] == held[1]
    assert held[0]["nodes"]


def test_a_library_in_files_of_another_machine_is_refused(tmp_path: Path) -> None:
    settings = portable_settings(Settings(home=tmp_path / "elsewhere"))
    with pytest.raises(SettingsError, match="share the library with PostgreSQL"):
        require_local_files(settings)


def test_an_index_in_a_folder_of_another_machine_is_refused(tmp_path: Path) -> None:
    order = ShardOrder(
        root=str(tmp_path / "elsewhere"), index="domains", digits=2, shard="00", paths=()
    )
    with pytest.raises(SettingsError, match="an object store"):
        compile_shard(order)


def test_a_shard_of_an_index_that_was_divided_waits(tmp_path: Path) -> None:
    index = make_index(open_blobs(str(tmp_path), seams=Seams()))
    order = ShardOrder(
        root=str(tmp_path), index=index.name, digits=index.layout.digits + 1, shard="00", paths=()
    )
    assert compile_shard(order) == Compiled(busy=1)
