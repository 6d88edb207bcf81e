"""What a library holds when GAO refuses some of what it is asked for."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from tests.sources.publishing import library_of

from fonds.demo.http import Request, Response
from fonds.runs.state import RunStatus
from fonds.sources.gao import source

FEED = (Path(__file__).parent / "files" / "reports.xml").read_bytes()


def test_refused_files_cost_no_record(tmp_path: Path) -> None:
    def www(request: Request) -> Response:
        if request.path == "/rss/reports.xml":
            return Response(body=FEED)
        return Response(status=HTTPStatus.FORBIDDEN)

    def files(request: Request) -> Response:
        if request.path == "/assets/gao-26-107521.pdf":
            return Response(body=b"%PDF-1.7", media_type="application/octet-stream")
        return Response(status=HTTPStatus.FORBIDDEN)

    with library_of(tmp_path, source, {"www.gao.gov": www, "files.gao.gov": files}) as library:
        report = library.run()
        assert (report.status, report.counts.inserted) == (RunStatus.SUCCESS, 3)
        again = library.run()
        assert (again.status, again.counts.skipped) == (RunStatus.SUCCESS, 3)
