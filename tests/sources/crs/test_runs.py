"""What a library holds of the bundled reports, and of a publisher that has lost a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlalchemy import text
from tests.sources.publishing import Run, library_of

from fonds.demo.bundle import DATA, StaticFiles
from fonds.demo.http import Handler, Request, Response, not_found
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.sources.crs import source

SITE = StaticFiles(DATA / "www.everycrsreport.com")


def sites(site: Handler = SITE) -> dict[str, Handler]:
    return {"www.everycrsreport.com": site}


def backfill(run: Run) -> RunReport:
    return asyncio.run(run.library.ingest(run.source, RunRequest(mode="backfill")))


def bodies(run: Run) -> dict[str, tuple[str, str]]:
    query = "SELECT id, task_key, body_raw_format FROM documents WHERE gone_at IS NULL"
    with run.library.database.read() as connection:
        return {
            row.id: (row.task_key, row.body_raw_format) for row in connection.execute(text(query))
        }


def test_the_bundled_reports_are_held_and_a_second_run_writes_nothing(tmp_path: Path) -> None:
    with library_of(tmp_path, source, sites()) as library:
        report = backfill(library)
        assert (report.status, report.counts.inserted) == (RunStatus.SUCCESS, 5)
        assert {number: form for number, (_, form) in bodies(library).items()} == {
            "crs:R48481": "html",
            "crs:IF12990": "html",
            "crs:IN12777": "html",
            "crs:RL30917": "html",
            "crs:98-807": "pdf",
        }
        again = library.run()
        assert (again.status, again.counts.skipped, again.counts.fetched) == (
            RunStatus.SUCCESS,
            5,
            0,
        )


def test_a_report_whose_html_is_lost_is_held_with_its_pdf(tmp_path: Path) -> None:
    def forgetful(request: Request) -> Response:
        return (
            not_found() if "20250315" in request.path and "html" in request.path else SITE(request)
        )

    with library_of(tmp_path, source, sites(forgetful)) as library:
        assert backfill(library).status == RunStatus.SUCCESS
        assert bodies(library)["crs:R48481"] == ("crs:R48481#pdf", "pdf")
        assert library.run().counts.gone == 0
        assert len(bodies(library)) == 5


def test_a_report_that_leaves_the_list_is_withdrawn(tmp_path: Path) -> None:
    def shortened(request: Request) -> Response:
        if request.path != "/reports.csv" or not lost:
            return SITE(request)
        kept = SITE(request).body.splitlines(keepends=True)
        return Response(body=b"".join(line for line in kept if b"IF12990" not in line))

    lost: list[str] = []
    with library_of(tmp_path, source, sites(shortened)) as library:
        backfill(library)
        lost.append("IF12990")
        assert library.run().counts.gone == 1
        assert "crs:IF12990" not in bodies(library)
