"""A site as large as one likes, cheap to serve: for benches and for crawls that are killed.

    python -m tests.zoo.large --pages 2000 --pdfs 5000 --port 0

prints its address and serves until it is ended. `/requests.json` tells what was asked so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.zoo.serving import Zoo
from tests.zoo.site import LAST_MODIFIED, NOT_FOUND, Answer, Ask, Truth, ZooSite, fill, lines, pdf

REQUESTS: Final = "/requests.json"
_SERIAL: Final = "%09d"
_MARK: Final = "987654321"
_ORGANIZATIONS: Final = 400
_YEARS: Final = 10

_PAGE: Final = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>{title}</title></head>
<body><header><a href="/">Registry of Campaign Reports</a></header><main><h1>{title}</h1>
{content}
</main><footer><a href="/">Back to the registry</a></footer></body></html>"""
_TABLE: Final = "<table><tr><th>Committee</th><th>Year</th><th>Report</th></tr>\n{rows}\n</table>"


def large(pages: int, pdfs: int, size: int = 2_000) -> ZooSite:
    """A site of so many pages that list so many PDFs, each of about `size` bytes.

    Its pages are a tree: the root leads to districts, each district to its lists.
    """
    districts = max(1, math.isqrt(max(pages - 1, 0)))
    lists = max(1, pages - 1 - districts)
    answers = {"/": _html("Registry of Campaign Reports", _links("district", range(districts)))}
    for district in range(districts):
        links = _links("list", range(district, lists, districts))
        answers[f"/district/{district}.html"] = _html(f"Reports of district {district}", links)
    for number in range(lists):
        rows = lines(_row(serial) for serial in range(number, pdfs, lists))
        answers[f"/list/{number}.html"] = _html(f"List {number}", fill(_TABLE, rows=rows))
    return ZooSite(
        id="registry-large",
        name="Registry of Campaign Reports",
        listed=tuple(_truth(serial) for serial in range(pdfs)),
        pages={},
        gate=_answering(answers, pdfs, size),
        notes=f"{pages} pages and {pdfs} PDFs of {size} bytes, made when they are asked for",
    )


def _truth(serial: int) -> Truth:
    organization, year = _about(serial)
    return Truth(path=_path(serial), organization=organization, period=f"{year}-annual")


def _about(serial: int) -> tuple[str, int]:
    return f"Committee {serial % _ORGANIZATIONS}", 2015 + serial // _ORGANIZATIONS % _YEARS


def _path(serial: int) -> str:
    return f"/reports/{serial // 1000}/report-{_SERIAL % serial}.pdf"


def _row(serial: int) -> str:
    organization, year = _about(serial)
    link = f'<a href="{_path(serial)}">Report</a>'
    return f"<tr><td>{organization}</td><td>{year}</td><td>{link}</td></tr>"


def _links(kind: str, numbers: range) -> str:
    items = (f'<li><a href="/{kind}/{n}.html">{kind.title()} {n}</a></li>' for n in numbers)
    return f"<ul>\n{lines(items)}\n</ul>"


def _html(title: str, content: str) -> Answer:
    body = fill(_PAGE, title=title, content=content).encode()
    return Answer(body=body, media="text/html; charset=utf-8")


def _answering(answers: dict[str, Answer], pdfs: int, size: int) -> Callable[[Ask], Answer]:
    """Answers from memory; a PDF is one pattern with its own number in it."""
    bare = len(pdf(_MARK))
    before, after = pdf(_MARK, padding=max(size - bare - 80, 0)).split(_MARK.encode())
    places = {_path(serial): serial for serial in range(pdfs)}

    def answer(ask: Ask) -> Answer:
        if ask.target in answers:
            return answers[ask.target]
        serial = places.get(ask.target)
        if serial is None:
            return NOT_FOUND
        told = _SERIAL % serial
        headers = {"ETag": f'"{told}"', "Last-Modified": LAST_MODIFIED}
        return Answer(
            body=b"".join((before, told.encode(), after)), media="application/pdf", headers=headers
        )

    return answer


def _told(zoo: Zoo) -> Answer:
    """What was asked, as rows of time, path and status."""
    rows = [(seen.time, seen.path, seen.status) for seen in zoo.requests if seen.path != REQUESTS]
    return Answer(body=json.dumps(rows).encode(), media="application/json")


async def _serve(site: ZooSite, port: int) -> None:
    zoo = Zoo([])
    known = site.gate
    site = replace(site, gate=lambda ask: _told(zoo) if ask.target == REQUESTS else known(ask))
    zoo.sites = (site,)
    await zoo.run(lambda: print(zoo.base(site), flush=True), asyncio.Event(), port)  # noqa: T201 — what a bench waits for


def main() -> None:
    """Serve a large site until the process is ended."""
    parser = argparse.ArgumentParser(description="Serve a large site of reports.")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--pdfs", type=int, default=5000)
    parser.add_argument("--size", type=int, default=2000, help="bytes of a PDF")
    parser.add_argument("--port", type=int, default=0)
    told = parser.parse_args()
    asyncio.run(_serve(large(told.pages, told.pdfs, told.size), told.port))


if __name__ == "__main__":
    main()
