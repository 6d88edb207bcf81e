"""The bundled upstream with copies of every notice and every report, each with its own number.

A copy differs from its original by its number and by a word in each paragraph, so that its text
is parsed, cut and embedded like any other. The same number always gives the same bytes. Notices of
the Federal Register have XML, reports of CRS have HTML and PDFs; the other publishers are not
copied.

`python -m tests.support.upstreams.copies --times 3` serves it in the foreground.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any, Final

from fonds.demo.bundle import DATA, REGISTER, BundledRegister, bundled_sites
from fonds.demo.federal_register_api import Catalogue, DocumentXml, Record, RegisterApi
from fonds.demo.http import Handler, Request, Response, not_found
from fonds.demo.server import DemoUpstream, serve_until_interrupted

_REPORTS: Final = "www.everycrsreport.com"
_LIST: Final = "/reports.csv"


def copied_sites(times: int) -> dict[str, Handler]:
    """Each host of the bundled upstream, with every notice and report `times` times."""
    sites = bundled_sites()
    register = CopiedRegister(BundledRegister(DATA / REGISTER), times)
    return {
        **sites,
        REGISTER: RegisterApi(register),
        _REPORTS: CopiedReports(sites[_REPORTS], times),
    }


class CopiedRegister:
    """A catalogue with every document `times` times, the original first."""

    def __init__(self, register: Catalogue, times: int) -> None:
        self._register = register
        self._times = times
        self._copy = cache(self._make)

    def documents(
        self, since: date, until: date, types: frozenset[str] | None = None
    ) -> Sequence[Record]:
        """The records of a range of days, both included, oldest first; types by their labels."""
        originals = self._register.documents(since, until, types)
        return [
            self._copy(record["document_number"], record["publication_date"], copy)
            for record in originals
            for copy in range(self._times)
        ]

    def find(self, number: str) -> Sequence[Record]:
        """The records of that number, oldest first."""
        original, copy = self._split(number)
        records = self._register.find(original) if copy < self._times else ()
        return [self._copy(original, record["publication_date"], copy) for record in records]

    def full_text(self, number: str, published: date) -> DocumentXml | None:
        """The XML of a document, where there is any."""
        original, copy = self._split(number)
        text = self._register.full_text(original, published) if copy < self._times else None
        return text and replace(text, data=_marked(text.data, b"</P>", copy))

    def agencies(self) -> Sequence[Record]:
        """All agencies, children included."""
        return self._register.agencies()

    def _split(self, number: str) -> tuple[str, int]:
        original, _, copy = number.rpartition("-")
        if self._register.find(number) or not copy.isdigit():
            return number, 0
        return original, int(copy)

    def _make(self, number: str, day: str, copy: int) -> Record:
        record = next(
            each for each in self._register.find(number) if each["publication_date"] == day
        )
        made: dict[str, Any] = json.loads(_renumbered(json.dumps(record), number, copy))
        return {**made, "title": f"{record['title']}{_label(copy)}"} if copy else record


class CopiedReports:
    """EveryCRSReport.com with every report `times` times."""

    def __init__(self, site: Handler, times: int) -> None:
        self._site = site
        self._times = times
        self._rows = self._read_list()
        numbers = "|".join(re.escape(row["number"]) for row in self._rows)
        self._address = re.compile(rf"(.*?)({numbers})-([1-9][0-9]*)([._].*)")

    def __call__(self, request: Request) -> Response:
        """Answer one request whose path begins after the host."""
        if request.path == _LIST:
            return Response(body=self._list(), media_type="text/csv; charset=utf-8")
        match = self._address.fullmatch(request.path)
        if match is None:
            return self._site(request)
        before, number, copy, after = match.groups()
        if int(copy) >= self._times:
            return not_found()
        response = self._site(replace(request, target=f"{before}{number}{after}"))
        return replace(response, body=_copied_file(response, number, int(copy)))

    def _read_list(self) -> list[dict[str, str]]:
        response = self._site(Request("GET", _LIST, {}))
        return list(csv.DictReader(io.StringIO(response.body.decode())))

    def _list(self) -> bytes:
        output = io.StringIO(newline="")
        table = csv.DictWriter(output, list(self._rows[0]))
        table.writeheader()
        for row in self._rows:
            for copy in range(self._times):
                number = row["number"]
                renumbered = {k: _renumbered(v, number, copy) for k, v in row.items()}
                table.writerow({**renumbered, "title": f"{row['title']}{_label(copy)}"})
        return output.getvalue().encode()


def _copied_file(response: Response, number: str, copy: int) -> bytes:
    if "json" in response.media_type:
        return _renumbered(response.body.decode(), number, copy).encode()
    if "html" in response.media_type:
        return _marked(response.body, b"</p>", copy)
    return response.body + b"%% copy %d\n" % copy


def _renumbered(text: str, number: str, copy: int) -> str:
    return text.replace(number, f"{number}-{copy}") if copy else text


def _marked(data: bytes, end: bytes, copy: int) -> bytes:
    return data.replace(end, _label(copy).encode() + end)


def _label(copy: int) -> str:
    return f" Copy {copy}." if copy else ""


def main() -> None:
    """Serve the copied upstream in the foreground until interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--times", type=int, required=True)
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    options = parser.parse_args()
    serve_until_interrupted(DemoUpstream(copied_sites(options.times), port=options.port))


if __name__ == "__main__":
    main()
