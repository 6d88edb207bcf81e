"""The versions of a bill's text: what the status file lists, and the record of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.bills import cite_bill_text
from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, Body, BodyFormat, Document, FetchTask, ParsedRecord, Part, RawPart
from fonds.normalize.registry import get_normalizer, sniff
from fonds.sources.bills.children import NAME, is_law_text
from fonds.sources.bills.elements import day, every, first
from fonds.sources.bills.headers import Header, read_header
from fonds.sources.bills.names import BillName, package_parts
from fonds.sources.bills.stages import (
    code_of,
    fallback_code,
    stage_chamber,
    stage_name,
    stage_phrase,
)
from fonds.sources.bills.tables import bill_text_versions
from fonds.sources.families import xml_files
from fonds.sources.families.addresses import parts_of
from fonds.sources.families.gpo_files import is_error_page

BODY: Final = "text"
"""The name of a text task's only part."""

# Nothing is fetched from anywhere else, whatever a status file says.
_HOSTS: Final = frozenset({"www.govinfo.gov", "www.congress.gov"})
_FORMATS: Final = (".xml", ".htm", ".html", ".txt", ".pdf")
"""Best first."""
_XML: Final = frozenset({"billres_v1", "uslm_v1"})
_BODY_FORMATS: Final[dict[str, BodyFormat]] = {"text_v1": "text", "html_v1": "html"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of one bill, as far as it is known."""

    bill: BillName
    code: str
    title: str | None = None
    """Of the bill."""
    type: str | None = None
    """`Introduced in House`."""
    date: str | None = None
    url: str | None = None
    formats: list[str] = field(default_factory=list)
    official_title: str | None = None

    @property
    def id(self) -> str:
        """`bill:119-hr-1/ih`."""
        return ids.bill_text_id(self.bill.id, self.code)

    @property
    def stage(self) -> str:
        """Its name, by its own word or by its code."""
        return self.type or stage_name(self.code) or self.code


# Tasks ------------------------------------------------------------------------------------


def text_tasks(bill: Any, name: BillName, title: str, status: Archived) -> Iterator[FetchTask]:
    """One task for each listed version, with a file or without, oldest first."""
    for version in listed_versions(bill, name, title):
        params = {
            "bill": {"congress": name.congress, "kind": name.kind, "number": name.number},
            "title": title,
            "version": {
                "code": version.code,
                "type": version.type,
                "date": version.date,
                "url": version.url,
                "formats": version.formats,
            },
        }
        yield FetchTask(
            source=NAME,
            key=version.id,
            parts=tuple(_parts(version)),
            params=params,
            fingerprint=ids.json_sha256(params),
            origin=status,
        )


def listed_versions(bill: Any, name: BillName, title: str) -> list[Version]:
    """The versions a status file lists, each code once; a law's own text is none of them."""
    items = [item for item in every(bill, "textVersions/item") if not is_law_text(item)]
    found: dict[str, Version] = {}
    for item in sorted(items, key=lambda item: day(first(item, "date")) or "9"):
        version = _listed(item, name, title)
        former = found.get(version.code)
        if former is None:
            found[version.code] = version
        elif former.url is None and version.url:
            found[version.code] = replace(version, date=version.date or former.date)
        elif version.date != former.date and version.url is None:
            # Two amendments of one house may have no file to tell them apart.
            code = f"{version.code}~{1 + sum(key.startswith(version.code) for key in found)}"
            found[code] = _listed(item, name, title, code)
    return list(found.values())


def _listed(item: Any, name: BillName, title: str, code: str | None = None) -> Version:
    kind = first(item, "type")
    formats = [
        url
        for inner in every(item, "formats/item")
        if (url := first(inner, "url")) and _is_offered(url)
    ]
    best = min(formats, key=_rank, default=None)
    return Version(
        bill=name,
        code=code or _packaged(best, name) or code_of(kind) or fallback_code(kind),
        title=title,
        type=kind,
        date=day(first(item, "date")),
        url=best,
        formats=formats,
    )


def _is_offered(url: str) -> bool:
    return parts_of(url).hostname in _HOSTS and _rank(url) < len(_FORMATS)


def _rank(url: str) -> int:
    path = parts_of(url).path.lower()
    return next((n for n, ending in enumerate(_FORMATS) if path.endswith(ending)), len(_FORMATS))


def _packaged(url: str | None, name: BillName) -> str | None:
    found = package_parts((url or "").rpartition("/")[2])
    return found[1] if found and found[0] == name else None


def _parts(version: Version) -> Iterator[Part]:
    if version.url:
        ending = _FORMATS[_rank(version.url)]
        file = f"BILLS-{version.bill.package}{version.code}{ending}"
        path = f"text/{version.bill.congress}/{version.bill.kind}/{file}"
        yield Part(name=BODY, url=version.url, path=path)


# Records ----------------------------------------------------------------------------------


def task_record(task: FetchTask, part: RawPart | None) -> ParsedRecord:
    """The record of a listed version, with its text where there is a file."""
    listed, bill = task.params["version"], BillName(**task.params["bill"])
    header = _header(part) if part else Header()
    if header.bill and header.bill != bill:
        raise WrongContentError(f"{task.key}: the file holds {header.bill.printed} instead")
    raw = part.archived if part else task.origin
    if raw is None:
        raise MalformedError(f"{task.key}: no archived file says what it is")
    version = Version(
        bill=bill,
        code=listed["code"],
        title=task.params["title"],
        type=listed["type"],
        date=listed["date"] or header.date,
        url=listed["url"],
        formats=listed["formats"],
        official_title=header.official_title,
    )
    return _record(version, raw, _body(part) if part else None)


def loose_record(part: RawPart) -> ParsedRecord:
    """The record of a text that nothing but itself, or the name of its file, describes."""
    header = _header(part)
    file = part.archived.url.rpartition("/")[2]
    named = package_parts(file)
    bill = header.bill or (named[0] if named else None)
    code = header.code or (named[1] if named else _code_in(file))
    if bill is None or code is None:
        missing = "bill" if bill is None else "version"
        raise WrongContentError(
            f"the text does not say which {missing} it is, and neither does the name of its "
            "file; name it like BILLS-119hr1ih.xml"
        )
    version = Version(
        bill=bill,
        code=code,
        title=header.title,
        date=header.date,
        url=part.archived.url if "://" in part.archived.url else None,
        official_title=header.official_title,
    )
    return _record(version, part.archived, _body(part))


def _code_in(file: str) -> str | None:
    """GPO calls its samples H1037_RFS.XML."""
    return code_of(file.rpartition(".")[0].rpartition("_")[2])


def _header(part: RawPart) -> Header:
    kind = sniff(part.data)
    if kind not in _XML:
        if is_error_page(part.data) or part.archived.url.lower().endswith(".xml"):
            raise WrongContentError(
                "something else stands where the text of a bill was listed; govinfo answers with "
                "a page of its own for files it does not have"
            )
        return Header()
    return read_header(xml_files.read(part.data))


def _body(part: RawPart) -> Body:
    kind = sniff(part.data)
    if kind == "pdf_v1":
        return Body(archived=part.archived, format="pdf")
    normalizer = get_normalizer(kind)
    return Body(
        archived=part.archived,
        format=_BODY_FORMATS.get(kind, "xml"),
        normalizer=normalizer.label,
        normalized=normalizer.to_markdown(part.data),
    )


def _record(version: Version, raw: Archived, body: Body | None) -> ParsedRecord:
    row = {
        "id": version.id,
        "bill_ref": version.bill.id,
        "version_code": version.code,
        "type": version.stage,
        "date": version.date,
        "url": version.url,
        "official_title": version.official_title,
        "formats": version.formats or None,
    }
    return ParsedRecord(
        source=NAME,
        table=bill_text_versions.name,
        key=version.id,
        payload=row,
        document=_document(version, raw, body),
    )


def _document(version: Version, raw: Archived, body: Body | None) -> Document:
    bill = version.bill
    title = version.title or version.official_title or bill.printed
    return Document(
        id=version.id,
        source=NAME,
        kind="bill_text",
        title=f"{title} ({version.stage})",
        summary=version.official_title if version.official_title != title else None,
        source_url=f"{bill.page}/text/{version.code.partition('~')[0]}",
        source_org=stage_chamber(version.code),
        citation_string=cite_bill_text(
            congress=bill.congress,
            kind=bill.kind,
            number=bill.number,
            stage=stage_phrase(version.code, version.type),
            published=date.fromisoformat(version.date) if version.date else None,
        ),
        raw=raw,
        published_at=version.date,
        body=body,
        aliases=tuple(_aliases(version)),
    )


def _aliases(version: Version) -> Iterator[str]:
    package = f"{version.bill.package}{version.code}"
    yield f"BILLS-{package}"
    yield f"{version.bill.congress} {version.bill.printed} {version.code.upper()}"
    yield f"{version.bill.kind}{version.bill.number}-{version.bill.congress}-{version.code}"
    yield f"https://www.govinfo.gov/app/details/BILLS-{package}"
