"""The versions of a bill's text: their list in the status file, their headers, their records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, Body, BodyFormat, Document, FetchTask, ParsedRecord, Part, RawPart
from fonds.normalize.registry import get_normalizer, sniff
from fonds.sources.bills.names import (
    BillName,
    code_of,
    fallback_code,
    kind_of,
    package_parts,
    stage_chamber,
    stage_name,
    stage_phrase,
)
from fonds.sources.bills.status import NAME, day, every, first, is_law_text
from fonds.sources.bills.tables import bill_text_versions
from fonds.sources.formats import xml
from fonds.sources.formats.congress import cite_bill_text
from fonds.sources.formats.days import printed_day
from fonds.sources.formats.gpo_files import is_error_page
from fonds.sources.formats.html import parts_of
from fonds.sources.formats.records import normalized_body

_UNITS: Final = (
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)
_TENS: Final = {"twenty": 20, "thirty": 30, "thirtieth": 30}
_COUNTED: Final = re.compile(r"([0-9]{2,3})(?:st|nd|rd|th|d)\b", re.IGNORECASE)
_WORDS: Final = re.compile(r"one hundred (?:and )?([a-z]+)[ -]?([a-z]*)", re.IGNORECASE)
_HUNDRED: Final = 100
_TITLE: Final = re.compile(r"([0-9]{2,3})?\s*([A-Z]+)\s*([0-9]+)\s*([A-Z]+[0-9]?)?\s*:\s*(.*)")
_NUMBERED: Final = re.compile(r"([A-Za-z. ]+?)\s*([0-9]+)")
_ISO: Final = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})")
_DATE_IN_WORDS: Final = re.compile(r"([A-Z][a-z]+) ([0-9]{1,2})(?: \([^()]*\))?, ([0-9]{4})")
_QUOTES: Final = "“”‘’\"' "
_QUOTATIONS: Final = ("{*}quoted-block", "{*}quotedContent")
_OWN_TITLE: Final = (
    r"This (?:Act|(?i:bill|(?:(?:joint|concurrent) )?resolution))\b"
    r"[^.;]{0,80}\bmay be cited (?:as )?(?:the )?[“‘\"']*\s*"
)
"""The words before the short title of a whole bill, as against `This section may be cited as`."""
_STAGES: Final = ("bill-stage", "resolution-stage", "amend-stage")


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """All of it may be missing: enrolled bills name no date, and some samples no stage."""

    bill: BillName | None = None
    code: str | None = None
    title: str | None = None
    date: str | None = None
    official_title: str | None = None


def read_header(root: Any) -> Header:
    """The facts in the root element, its metadata and its first lines."""
    bill, code = _cited(root) or (_bill(root), None)
    return Header(
        bill=bill,
        code=code or code_of(_stage(root)) or _titled(root, 4),
        title=_title_of(root),
        date=_date(root),
        official_title=_first(root, "official-title", "officialTitle"),
    )


def _title_of(root: Any) -> str | None:
    """Its own short title, else its official one, else that of its metadata.

    The metadata of enrolled bills may have the short title of a section instead.
    """
    official = _first(root, "official-title", "officialTitle")
    return _short_title(root) or official or _titled(root, 5)


def _short_title(root: Any) -> str | None:
    for element in root.iter("{*}short-title", "{*}shortTitle", "{*}quote"):
        title = (xml.whole_text(element) or "").strip(_QUOTES)
        block = next(element.iterancestors("{*}text", "{*}content", "{*}chapeau", "{*}p"), None)
        if not title or block is None or next(block.iterancestors(*_QUOTATIONS), None) is not None:
            continue
        if re.search(_OWN_TITLE + re.escape(title), xml.whole_text(block) or ""):
            return title.rstrip(".,")
    return None


def _cited(root: Any) -> tuple[BillName, str] | None:
    """USLM gives the name of the package among the ways to cite it."""
    for element in root.iter("{*}citableAs"):
        text = xml.whole_text(element) or ""
        parts = package_parts(text)
        if parts and f"{parts[0].package}{parts[1]}" == text.lower():
            return parts
    return None


def _bill(root: Any) -> BillName | None:
    numbered = _NUMBERED.search(_first(root, "legis-num") or "")
    kind = kind_of(numbered[1]) if numbered else kind_of(_first(root, "type") or "")
    number = numbered[2] if numbered else _first(root, "docNumber")
    if number is None or not number.isdecimal():
        return None
    return BillName.of_parts(_congress(root), kind, int(number))


def _congress(root: Any) -> int | None:
    text = _first(root, "congress") or ""
    if text.isdecimal():
        return int(text)
    if counted := _COUNTED.search(text):
        return int(counted[1])
    words = _WORDS.search(text)
    return _in_words(words[1].lower(), words[2].lower()) if words else None


def _in_words(word: str, unit: str) -> int | None:
    """`one hundred nineteenth`, `one hundred twenty-first`."""
    if word in _UNITS:
        return _HUNDRED + _UNITS.index(word)
    if word in _TENS:
        return _HUNDRED + _TENS[word] + (_UNITS.index(unit) if unit in _UNITS else 0)
    return None


def _stage(root: Any) -> str | None:
    stated = next((root.get(name) for name in _STAGES if root.get(name)), None)
    return stated or _first(root, "docStage")


def _titled(root: Any, group: int) -> str | None:
    """`116 HR 1500 IH: Consumers First Act`; the House leaves out the Congress, some the stage."""
    match = _TITLE.fullmatch(_first(root, "title") or "")
    if match is None or not match[group]:
        return None
    return code_of(match[group]) if group == _TITLE_CODE else match[group].strip() or None


_TITLE_CODE: Final = 4


def _date(root: Any) -> str | None:
    """The last day its first lines name: a reported bill also names the day it was introduced."""
    stated = _iso(_first(root, "{http://purl.org/dc/elements/1.1/}date") or "")
    return stated or max(filter(None, map(_day, _dated(root))), default=None)


def _dated(root: Any) -> Iterator[Any]:
    for opening in root.iter(
        "{*}form", "{*}preface", "{*}amendPreface", "{*}engrossed-amendment-form"
    ):
        yield from opening.iter("{*}action-date", "{*}date")


def _day(element: Any) -> str | None:
    return _iso(element.get("date") or "") or _iso(xml.whole_text(element) or "")


def _iso(text: str) -> str | None:
    if match := _ISO.match(text):
        day_stated = printed_day("-".join(match.groups()), "%Y-%m-%d")
    elif match := _DATE_IN_WORDS.search(text):
        day_stated = printed_day(" ".join(match.groups()), "%B %d %Y")
    else:
        return None
    return day_stated.isoformat() if day_stated else None


def _first(root: Any, *names: str) -> str | None:
    for name in names:
        for element in root.iter(name if name.startswith("{") else f"{{*}}{name}"):
            if text := xml.whole_text(element):
                return text
    return None


TEXT: Final = "text"
"""The name of a text task's only part."""

# Nothing is fetched from anywhere else, whatever a status file says.
_HOSTS: Final = frozenset({"www.govinfo.gov", "www.congress.gov"})
_FORMATS: Final = (".xml", ".htm", ".html", ".txt", ".pdf")
"""Best first."""
_XML: Final = frozenset({"billres_v1", "uslm_v1"})
_TEXT_FORMATS: Final[dict[str, BodyFormat]] = {"text_v1": "text", "html_v1": "html"}


def bill_text_id(bill: str, version: str) -> str:
    """`bill:119-hr-1/ih`."""
    return f"{bill}/{version.lower()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BillVersion:
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
        return bill_text_id(self.bill.id, self.code)

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


def listed_versions(bill: Any, name: BillName, title: str) -> list[BillVersion]:
    """The versions a status file lists, each code once; a law's own text is none of them.

    An item with neither a type nor a file, perhaps with a date, is of an unknown version.
    """
    items = [
        item
        for item in every(bill, "textVersions/item")
        if not is_law_text(item) and (first(item, "type") or first(item, "formats/item/url"))
    ]
    versions: dict[str, BillVersion] = {}
    for item in sorted(items, key=lambda item: day(first(item, "date")) or "9"):
        version = _listed(item, name, title)
        previous = versions.get(version.code)
        if previous is None:
            versions[version.code] = version
        elif previous.url is None and version.url:
            versions[version.code] = replace(version, date=version.date or previous.date)
        elif version.date != previous.date and version.url is None:
            # Two amendments of one house may have no file to tell them apart.
            code = f"{version.code}~{1 + sum(key.startswith(version.code) for key in versions)}"
            versions[code] = _listed(item, name, title, code)
    return list(versions.values())


def _listed(item: Any, name: BillName, title: str, code: str | None = None) -> BillVersion:
    kind = first(item, "type")
    formats = [
        url
        for inner in every(item, "formats/item")
        if (url := first(inner, "url")) and _is_offered(url)
    ]
    best = min(formats, key=_rank, default=None)
    return BillVersion(
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
    parts = package_parts((url or "").rpartition("/")[2])
    return parts[1] if parts and parts[0] == name else None


def _parts(version: BillVersion) -> Iterator[Part]:
    if version.url:
        ending = _FORMATS[_rank(version.url)]
        file = f"BILLS-{version.bill.package}{version.code}{ending}"
        path = f"text/{version.bill.congress}/{version.bill.kind}/{file}"
        yield Part(name=TEXT, url=version.url, path=path)


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
    version = BillVersion(
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
    parts = package_parts(file)
    bill = header.bill or (parts[0] if parts else None)
    code = header.code or (parts[1] if parts else _code_in(file))
    if bill is None or code is None:
        missing = "bill" if bill is None else "version"
        raise WrongContentError(
            f"the text does not say which {missing} it is, and neither does the name of its "
            "file; name it like BILLS-119hr1ih.xml"
        )
    version = BillVersion(
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
                "not the text of a bill, although it was listed as one; govinfo answers with "
                "a page of its own for files it does not have"
            )
        return Header()
    return read_header(xml.read(part.data))


def _body(part: RawPart) -> Body:
    kind = sniff(part.data)
    if kind == "pdf_v1":
        return Body(archived=part.archived, format="pdf")
    return normalized_body(part, _TEXT_FORMATS.get(kind, "xml"), get_normalizer(kind))


def _record(version: BillVersion, raw: Archived, body: Body | None) -> ParsedRecord:
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


def _document(version: BillVersion, raw: Archived, body: Body | None) -> Document:
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


def _aliases(version: BillVersion) -> Iterator[str]:
    package = f"{version.bill.package}{version.code}"
    yield f"BILLS-{package}"
    yield f"{version.bill.congress} {version.bill.printed} {version.code.upper()}"
    yield f"{version.bill.kind}{version.bill.number}-{version.bill.congress}-{version.code}"
    yield f"https://www.govinfo.gov/app/details/BILLS-{package}"
