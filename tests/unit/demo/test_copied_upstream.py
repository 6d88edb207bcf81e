"""The bundled upstream many times over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select
from tests.support import servers
from tests.support.upstreams.copies import copied_sites

from fonds.demo.bundle import FIRST_DAY
from fonds.demo.server import DemoUpstream
from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.stores.tables import document_chunk_buffer, documents

TIMES = 3


def filled(home: Path, times: int) -> dict[str, int]:
    """How many documents there are of each source, and how many different passages."""
    home.mkdir()
    servers.sqlite_database(home / "fonds.db")
    with DemoUpstream(copied_sites(times)) as upstream:
        hosts = upstream.hosts
        with open_library(home, hosts=hosts, allow_private=True, rate_factor=0.0) as library:
            for source in ("federal_register", "crs"):
                request = RunRequest(mode="backfill", since=FIRST_DAY)
                report = asyncio.run(library.ingest(source, request))
                assert report.status is RunStatus.SUCCESS, report.error_summary
            return _counted(library)


def _counted(library: Library) -> dict[str, int]:
    by_source = select(documents.c.source, func.count()).group_by(documents.c.source)
    texts = select(func.count(document_chunk_buffer.c.chunk_sha.distinct()))
    with library.database.read() as connection:
        counts = {row.source: int(row[1]) for row in connection.execute(by_source)}
        return {**counts, "texts": connection.scalar(texts) or 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copies")


def test_every_copy_is_a_document_with_words_of_its_own(folder: Path) -> None:
    once, more = filled(folder / "once", 1), filled(folder / "more", TIMES)
    assert more["federal_register"] == TIMES * once["federal_register"]
    assert more["crs"] == TIMES * once["crs"]
    assert more["texts"] > 2 * once["texts"]
    with open_library(folder / "more") as library:
        assert "Copy 2." in library.document("crs:R48481-2")["body_text"]
        assert "Copy 1." in library.document("fr:2026-00232-1")["body_text"]
        assert "Copy" not in library.document("fr:2026-00232")["body_text"]


def test_what_is_beyond_the_copies_is_not_there() -> None:
    sites = copied_sites(TIMES)
    asked = ("www.federalregister.gov", "/api/v1/documents/2026-00232-3.json")
    reports = ("www.everycrsreport.com", "/reports/R48481-3.json")
    with DemoUpstream(sites) as upstream:
        for host, path in (asked, reports):
            assert httpx.get(f"{upstream.address}/{host}{path}").status_code == 404
            near = path.replace("-3.", "-2.")
            assert httpx.get(f"{upstream.address}/{host}{near}").status_code == 200
