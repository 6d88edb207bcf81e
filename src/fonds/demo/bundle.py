"""The small upstream that comes with the package: invented documents, people and committees."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Final

from fonds.demo.federal_register_api import DocumentXml, Record, RegisterApi
from fonds.demo.http import Handler, Request, Response, not_found

DATA: Final = Path(__file__).parent / "data"
"""One folder for each host."""

FEEDS: Final = (
    *("bills", "cbo", "committee_reports", "committees", "congressional_record", "crs"),
    *("federal_register", "gao", "hearings", "lda_filings", "legislators", "member_statements"),
    *("public_laws", "roll_call_votes", "sap", "taxonomy"),
)
"""The sources whose publishers are bundled."""

FIRST_DAY: Final = date(2025, 1, 3)
LAST_DAY: Final = date(2026, 2, 28)
"""Between these days each of them has something, and requests nothing that is not bundled."""

REGISTER: Final = "www.federalregister.gov"
_MEDIA_TYPES: Final = {".yaml": "text/yaml; charset=utf-8", ".csv": "text/csv; charset=utf-8"}
# Issues appear on the web at a quarter to nine in Washington, give or take the summer.
_PUBLISHED: Final = time(12, 45, tzinfo=UTC)


def bundled_sites() -> dict[str, Handler]:
    """Each host of the bundled upstream with its handler."""
    folders = (folder for folder in sorted(DATA.iterdir()) if folder.is_dir())
    sites: dict[str, Handler] = {folder.name: StaticFiles(folder) for folder in folders}
    return {**sites, REGISTER: RegisterApi(BundledRegister(DATA / REGISTER))}


class StaticFiles:
    """Serves the files below a folder, and nothing outside it.

    For an address that is a folder, such as a listing, it serves the `index.*` inside.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def __call__(self, request: Request) -> Response:
        """Respond to a request whose path starts after the host."""
        if "\0" in request.path:
            return not_found()
        path = (self._folder / request.path.lstrip("/")).resolve()
        if path.is_dir():
            path = next(path.glob("index.*"), path)
        if not path.is_relative_to(self._folder) or not path.is_file():
            return not_found()
        guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return Response(
            body=path.read_bytes(),
            media_type=_MEDIA_TYPES.get(path.suffix, guessed),
            modified=datetime.fromtimestamp(path.stat().st_mtime, UTC),
        )


class BundledRegister:
    """The catalogue of a folder: a folder for each day, two files for each document.

    `2026-01-12/2026-00101.json` is the record as the API serves it; the XML is next to it
    if the record has a `full_text_xml_url`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def documents(
        self, since: date, until: date, types: frozenset[str] | None = None
    ) -> Sequence[Record]:
        """The records of a range of days, both included, oldest first; types by their labels."""
        return [
            record
            for record in self._records
            if since.isoformat() <= record["publication_date"] <= until.isoformat()
            and (types is None or record["type"] in types)
        ]

    def find(self, number: str) -> Sequence[Record]:
        """The records of that number, oldest first."""
        return [record for record in self._records if record["document_number"] == number]

    def full_text(self, number: str, published: date) -> DocumentXml | None:
        """The XML of a document, if there is one."""
        day = published.isoformat()
        if all(record["publication_date"] != day for record in self.find(number)):
            return None
        path = self._folder / day / f"{number}.xml"
        if not path.is_file():
            return None
        return DocumentXml(data=path.read_bytes(), modified=datetime.combine(published, _PUBLISHED))

    def agencies(self) -> Sequence[Record]:
        """All agencies, children included."""
        return self._agencies

    @cached_property
    def _records(self) -> list[Record]:
        files = self._folder.glob("*/*.json")
        records: list[Record] = [json.loads(path.read_text("utf-8")) for path in files]
        # The print edition's order: pages, and numbers where two share a page.
        return sorted(
            records,
            key=lambda record: (record["publication_date"], record["start_page"], _number(record)),
        )

    @cached_property
    def _agencies(self) -> list[Record]:
        agencies: list[Record] = json.loads((self._folder / "agencies.json").read_text("utf-8"))
        return agencies


def _number(record: Record) -> str:
    number: str = record["document_number"]
    return number
