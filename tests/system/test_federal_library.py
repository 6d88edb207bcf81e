"""The whole federal library from the bundled upstream: complete, linked, cited, and stable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from fonds.demo.bundle import FEEDS, FIRST_DAY, LAST_DAY
from fonds.demo.server import DemoUpstream
from fonds.library import Library, open_library
from fonds.runs.overview import overview
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.seams import Seams
from fonds.sources.registry import SourceRegistry
from fonds.stores.tables import documents
from fonds.testing import ManualClock

REQUEST = RunRequest(mode="backfill", since=date(2024, 6, 1))
SOURCES = [SourceRegistry().parser(name) for name in FEEDS]
TABLES = [table for source in SOURCES for table in source.info.tables]
LOOSE = {"statute_compilations"}
"""Tables that are filled from loose files only: nothing lists them."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[DemoUpstream]:
    with DemoUpstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def library(upstream: DemoUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    home = tmp_path_factory.mktemp("federal")
    seams = Seams(clock=ManualClock(datetime(2026, 3, 1, 15, tzinfo=UTC)))
    with open_library(home, seams=seams, hosts=upstream.hosts, allow_private=True) as library:
        yield library


@pytest.fixture(scope="module")
def reports(library: Library) -> dict[str, RunReport]:
    found = asyncio.run(library.ingest_all(FEEDS, REQUEST))
    return {report.source: report for report in found}


@pytest.mark.smoke
def test_every_source_succeeds(reports: dict[str, RunReport]) -> None:
    assert {name: report.error_summary for name, report in reports.items()} == dict.fromkeys(FEEDS)
    assert {report.status for report in reports.values()} == {RunStatus.SUCCESS}


@pytest.mark.smoke
@pytest.mark.usefixtures("reports")
def test_every_table_of_every_source_has_rows(library: Library) -> None:
    with library.database.read() as connection:
        empty = [
            table.name
            for table in TABLES
            if not connection.scalar(select(func.count()).select_from(table))
        ]
    assert set(empty) == LOOSE


@pytest.mark.smoke
@pytest.mark.usefixtures("reports")
def test_every_document_can_be_cited_and_opened(library: Library) -> None:
    table = documents.c
    blank = (table.citation_string == "") | (table.source_org == "") | (table.title == "")
    unopenable = table.source_url.not_like("https://%")
    with library.database.read() as connection:
        assert connection.scalars(select(table.id).where(blank | unopenable)).all() == []
        assert set(connection.scalars(select(table.source).distinct())) == {
            name for name in FEEDS if name != "taxonomy"
        }


@pytest.mark.smoke
@pytest.mark.usefixtures("reports")
def test_every_reference_holds_or_waits(library: Library) -> None:
    with library.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        linked = {
            f"{table.name}.{column.name}": connection.scalar(select(func.count(column)))
            for table in TABLES
            for column in table.c
            if "resolves" in column.info and table.name not in LOOSE
        }
    assert [name for name, count in linked.items() if not count] == []


@pytest.mark.usefixtures("reports")
def test_a_second_bootstrap_changes_nothing(library: Library) -> None:
    again = asyncio.run(library.ingest_all(FEEDS, REQUEST))
    changed = {
        report.source: report.counts
        for report in again
        if report.counts.inserted or report.counts.updated or report.counts.gone
    }
    assert changed == {}


@pytest.mark.smoke
@pytest.mark.usefixtures("reports")
def test_status_tells_checked_changed_and_failed_apart(library: Library) -> None:
    rows = overview(library.database, SOURCES, library.seams.clock.now())
    assert all(row.last_run_at and row.last_failure_at is None for row in rows)
    assert all(row.last_change_at for row in rows if row.source != "taxonomy")


@pytest.mark.parametrize("year", [pytest.param(2027, marks=pytest.mark.long), 2035])
def test_the_bundled_upstream_can_be_loaded_in_any_year(
    year: int, upstream: DemoUpstream, tmp_path: Path
) -> None:
    seams = Seams(clock=ManualClock(datetime(year, 6, 1, 15, tzinfo=UTC)))
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    with open_library(tmp_path, seams=seams, hosts=upstream.hosts, allow_private=True) as library:
        found = asyncio.run(library.ingest_all(FEEDS, request))
    assert {report.source: report.error_summary for report in found} == dict.fromkeys(FEEDS)


def test_both_databases_hold_the_same(
    library: Library,
    reports: dict[str, RunReport],
    upstream: DemoUpstream,
    postgres_database: str,
    tmp_path: Path,
) -> None:
    assert reports
    with open_library(
        tmp_path,
        seams=library.seams,
        database=postgres_database,
        hosts=upstream.hosts,
        allow_private=True,
    ) as other:
        asyncio.run(other.ingest_all(FEEDS, REQUEST))
        assert _sizes(other) == _sizes(library)


def _sizes(library: Library) -> dict[str, int | None]:
    with library.database.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table))
            for table in (documents, *TABLES)
        }
