"""A website with a handful of PDFs, served beside the bundled upstream."""

from __future__ import annotations

from typing import Final

from fonds.demo.bundle import DATA, bundled_sites
from fonds.demo.serving import Handler, Request, Response, not_found
from fonds.demo.upstream import DemoUpstream
from fonds.sites.models import WebsiteConfiguration

HOST: Final = "reports.example"
WEBSITE: Final = WebsiteConfiguration(
    id="reports", name="The Report Office", base_url=f"https://{HOST}/"
)
_REPORTS: Final = {
    f"/files/report-{number}.pdf": path
    for number, path in enumerate(sorted((DATA / "raw.githubusercontent.com").rglob("*.pdf")), 1)
}
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><title>Reports</title></head>
<body><main><h1>Annual reports</h1><ul>
{}
</ul></main></body></html>
"""


def upstream() -> DemoUpstream:
    """The bundled upstream, and the website."""
    site: Handler = _answer
    return DemoUpstream({**bundled_sites(), HOST: site})


def _answer(request: Request) -> Response:
    if request.path == "/":
        links = (
            f'<li><a href="{path}">Report of 202{n} (PDF)</a></li>'
            for n, path in enumerate(_REPORTS)
        )
        return Response(body=_PAGE.format("\n".join(links)).encode(), media_type="text/html")
    if request.path in _REPORTS:
        body = _REPORTS[request.path].read_bytes()
        return Response(body=body, media_type="application/pdf")
    return not_found()
