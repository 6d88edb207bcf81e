"""What a library holds after a status file is corrected."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text
from tests.sources.publishing import Run, library_of

from fonds.demo.bundle import DATA, StaticFiles
from fonds.demo.http import Request, Response
from fonds.runs.state import RunStatus
from fonds.sources.bills import source

HOST = "www.govinfo.gov"
STATUS = "/bulkdata/BILLSTATUS/119/hr/BILLSTATUS-119hr2101.xml"
FOLDER = "/bulkdata/json/BILLSTATUS/119/hr"
WRITTEN = re.compile(rb"[0-9]{2}-[A-Z][a-z]{2}-20[0-9]{2} [0-9:]{5}")
COSPONSOR = re.compile(rb"<item>\s*<bioguideId>W901008</bioguideId>.*?</item>", re.DOTALL)


class Corrected:
    """The bundled site, after somebody is taken off a bill and its folder says so."""

    def __init__(self) -> None:
        self._site = StaticFiles(DATA / HOST)
        self.corrected = False

    def __call__(self, request: Request) -> Response:
        answer = self._site(request)
        if not self.corrected:
            return answer
        if request.path == STATUS:
            before, cosponsors, after = answer.body.partition(b"<cosponsors>")
            return _changed(answer, before + cosponsors + COSPONSOR.sub(b"", after, count=1))
        if request.path == FOLDER:
            return _changed(answer, WRITTEN.sub(b"28-Feb-2026 20:00", answer.body))
        return answer


def _changed(answer: Response, body: bytes) -> Response:
    assert body != answer.body
    return replace(answer, body=body, modified=None)


def cosponsors(run: Run) -> set[str]:
    query = text("SELECT bioguide_id FROM bill_cosponsors WHERE bill_id = 'bill:119-hr-2101'")
    with run.library.database.read() as connection:
        return set(connection.scalars(query))


def test_a_cosponsor_who_is_taken_off_a_bill_disappears_and_the_rest_stays(tmp_path: Path) -> None:
    site = Corrected()
    with library_of(tmp_path, source, {HOST: site}) as run:
        first = run.run()
        assert (first.status, first.counts.inserted) == (RunStatus.SUCCESS, 11)
        before = cosponsors(run)
        assert "W901008" in before
        site.corrected = True
        second = run.run()
        assert second.status == RunStatus.SUCCESS
        assert (second.counts.inserted, second.counts.updated, second.counts.gone) == (0, 1, 0)
        assert cosponsors(run) == before - {"W901008"}
