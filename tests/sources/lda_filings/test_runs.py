"""What a library holds after the bundled upstream, and after corrections, is asked."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from sqlalchemy import text
from tests.sources.publishing import Run, library_of

from fonds.demo.bundle import DATA, StaticFiles
from fonds.demo.http import Request, Response
from fonds.runs.state import RunStatus
from fonds.sources.lda_filings import source

ADDRESS = "/api/v1/filings/"
BUNDLED = DATA / "lda.gov" / "api" / "v1" / "filings" / "index.json"


def count(library: Run, query: str) -> int:
    with library.library.database.read() as connection:
        return int(connection.execute(text(query)).scalar_one())


def answering(filings: list[dict[str, Any]]) -> Response:
    page = {"count": len(filings), "next": None, "previous": None, "results": filings}
    return Response(body=json.dumps(page).encode(), media_type="application/json")


def test_the_bundled_filings_are_loaded_and_linked(tmp_path: Path) -> None:
    sites = {"lda.gov": StaticFiles(DATA / "lda.gov")}
    with library_of(tmp_path, source, sites) as library:
        report = library.run()
        assert (report.status, report.counts.error) == (RunStatus.SUCCESS, 0)
        assert len(library.titles()) == 5
        assert count(library, "SELECT count(*) FROM lda_registrants") == 3
        assert count(library, "SELECT count(*) FROM lda_clients") == 4
        for unlinked in (
            "lda_filings WHERE registrant_id IS NULL OR client_id IS NULL",
            "lda_clients WHERE registrant_id IS NULL",
            "lda_lobbyists WHERE registrant_id IS NULL",
            "lda_activity_lobbyists WHERE lobbyist_id IS NULL",
        ):
            assert count(library, f"SELECT count(*) FROM {unlinked}") == 0
        found = library.library.search("dredging transparency contractors", limit=5)
        assert found
        again = library.run()
        assert (again.counts.inserted, again.counts.updated) == (0, 0)


def test_a_corrected_filing_and_registrant_are_updated_exactly(tmp_path: Path) -> None:
    filings: list[dict[str, Any]] = json.loads(BUNDLED.read_bytes())["results"][1:2]

    def lda(request: Request) -> Response:
        if request.path != ADDRESS:
            return Response(status=HTTPStatus.NOT_FOUND)
        return answering(filings)

    with library_of(tmp_path, source, {"lda.gov": lda}) as library:
        library.run()
        activities = "SELECT count(*) FROM lda_activities"
        assert count(library, activities) == 2
        filings[0]["lobbying_activities"].pop()
        filings[0]["registrant"]["contact_name"] = "ADA FENN"
        report = library.run()
        assert (report.status, report.counts.updated) == (RunStatus.SUCCESS, 2)
        assert count(library, activities) == 1
        renamed = "SELECT count(*) FROM lda_registrants WHERE contact_name = 'ADA FENN'"
        assert count(library, renamed) == 1
        unlinked = "SELECT count(*) FROM lda_filings WHERE registrant_id IS NULL"
        assert count(library, unlinked) == 0


def test_two_filings_of_one_registrant_do_not_fight_over_it(tmp_path: Path) -> None:
    earlier, later = json.loads(BUNDLED.read_bytes())["results"][2:4]
    later["registrant"]["name"] = "BREWSTER LANTERN & CO"

    def lda(_request: Request) -> Response:
        return answering([earlier, later])

    with library_of(tmp_path, source, {"lda.gov": lda}) as library:
        library.run()
        named = "SELECT count(*) FROM lda_registrants WHERE name = 'BREWSTER LANTERN & CO'"
        assert count(library, named) == 1
        again = library.run()
        assert (again.counts.inserted, again.counts.updated) == (0, 0)
        assert count(library, named) == 1
