"""The part of the Federal Register's API that the package uses, over any catalogue.

Quirks of the real API that are reproduced:
- `count` never exceeds 10,000, and results after the ten-thousandth are not available.
- A `per_page` outside its limits is not an error; it silently becomes 20.
- The next page is named by the address without `.json`, and the last page names none.
- A single missing number is a 404; among several, the missing ones are listed next to the results.
- Types are codes in a condition (`PRORULE`) and labels in a record (`Proposed Rule`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from fonds.demo.http import Request, Response, not_found

SITE: Final = "https://www.federalregister.gov"
CAP: Final = 10_000
"""The maximum count of the real API."""
LABELS: Final = {
    "RULE": "Rule",
    "PRORULE": "Proposed Rule",
    "NOTICE": "Notice",
    "PRESDOCU": "Presidential Document",
}
"""Labels in records by the codes in conditions."""

_DEFAULT_FIELDS: Final = (
    "title",
    "type",
    "abstract",
    "document_number",
    "html_url",
    "pdf_url",
    "public_inspection_pdf_url",
    "publication_date",
    "agencies",
    "excerpts",
)
_PER_PAGE: Final = 20
_MAX_PER_PAGE: Final = 1000
_DATE_CONDITION: Final = re.compile(r"conditions\[publication_date\]\[(is|gte|lte|year)\]")
_FULL_TEXT: Final = r"/documents/full_text/xml/(\d{4})/(\d\d)/(\d\d)/([^/]+)\.xml"

Record = Mapping[str, Any]
"""A document with all fields of the API."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentXml:
    """The XML of a document."""

    data: bytes
    modified: datetime


class Catalogue(Protocol):
    """The data behind the API."""

    def documents(
        self, since: date, until: date, types: frozenset[str] | None = None
    ) -> Sequence[Record]:
        """The records of a range of days, both included, oldest first; types by their labels."""
        ...

    def find(self, number: str) -> Sequence[Record]:
        """The records of that number, oldest first; old numbers were given out repeatedly."""
        ...

    def full_text(self, number: str, published: date) -> DocumentXml | None:
        """The XML of a document, if there is one."""
        ...

    def agencies(self) -> Sequence[Record]:
        """All agencies, children included."""
        ...


class _BadRequestError(Exception):
    """Becomes a 400; the text is its message."""


class RegisterApi:
    """Serves www.federalregister.gov from a catalogue."""

    def __init__(self, catalogue: Catalogue, *, cap: int = CAP) -> None:
        self._catalogue = catalogue
        self._cap = cap
        self._routes = (
            (re.compile(_FULL_TEXT), self._full_text),
            (re.compile(r"/api/v1/documents(?:\.json)?"), self._list),
            (re.compile(r"/api/v1/documents/([^/]+?)(?:\.json)?"), self._numbers),
            (re.compile(r"/api/v1/issues/(\d{4}-\d\d-\d\d|current)(?:\.json)?"), self._issue),
            (re.compile(r"/api/v1/agencies(?:\.json)?"), self._agencies),
            (re.compile(r"/api/v1/agencies/([^/]+?)(?:\.json)?"), self._agency),
        )

    def __call__(self, request: Request) -> Response:
        """Respond to a request whose path starts after the host."""
        try:
            return self._respond(request)
        except _BadRequestError as error:
            return _json({"status": 400, "message": str(error)}, HTTPStatus.BAD_REQUEST)

    def _respond(self, request: Request) -> Response:
        for pattern, respond in self._routes:
            if match := pattern.fullmatch(request.path):
                return respond(request, match)
        return not_found("no such page")

    def _full_text(self, _request: Request, match: re.Match[str]) -> Response:
        text = self._catalogue.full_text(match[4], _day("-".join(match.group(1, 2, 3))))
        if text is None:
            return not_found("no such document")
        return Response(body=text.data, media_type="text/xml", modified=text.modified)

    def _list(self, request: Request, _match: re.Match[str]) -> Response:
        search = _ListQuery(request.query)
        matches = self._catalogue.documents(search.since, search.until, search.types)
        count = min(len(matches), self._cap)
        pages = -(-count // search.per_page)
        first = (search.page - 1) * search.per_page
        numbers = range(first, min(first + search.per_page, count))
        if not search.oldest_first:
            numbers = range(len(matches) - 1 - numbers.start, len(matches) - 1 - numbers.stop, -1)
        envelope: dict[str, Any] = {
            "description": search.description,
            "count": count,
            "total_pages": pages,
        }
        if search.page < pages:
            envelope["next_page_url"] = search.next_page_url
        fields = search.fields or _DEFAULT_FIELDS
        envelope["results"] = [_chosen(matches[number], fields) for number in numbers]
        return _json(envelope)

    def _numbers(self, request: Request, match: re.Match[str]) -> Response:
        numbers = match[1].split(",")
        fields = _all(request.query, "fields[]")
        day = next(iter(_all(request.query, "publication_date")), None)
        results: list[Record] = []
        missing = []
        for number in numbers:
            records = self._catalogue.find(number)
            same_day = [record for record in records if day in (None, record["publication_date"])]
            results += same_day[:1]
            if not same_day:
                missing.append(number)
        if len(numbers) == 1 and missing:
            return _record_not_found()
        chosen = [_chosen(record, fields) for record in results]
        if len(numbers) == 1:
            return _json(chosen[0])
        errors = {"errors": {"not_found": missing}} if missing else {}
        return _json({"count": len(chosen), "results": chosen, **errors})

    def _issue(self, _request: Request, match: re.Match[str]) -> Response:
        day = self._last_day() if match[1] == "current" else _day(match[1])
        documents = self._catalogue.documents(day, day)
        if not documents:
            return _record_not_found()
        return _json({"agencies": contents(documents, self._catalogue.agencies())})

    def _last_day(self) -> date:
        published = self._catalogue.documents(date.min, date.max)
        return _day(published[-1]["publication_date"]) if published else date.max

    def _agencies(self, _request: Request, _match: re.Match[str]) -> Response:
        return _json(list(self._catalogue.agencies()))

    def _agency(self, _request: Request, match: re.Match[str]) -> Response:
        for agency in self._catalogue.agencies():
            if match[1] in {agency["slug"], str(agency["id"])}:
                return _json(agency)
        return _record_not_found()


def contents(documents: Iterable[Record], agencies: Iterable[Record]) -> list[Record]:
    """The table of contents of an issue: agencies, what kinds they published, which numbers."""
    by_slug = {agency["slug"]: agency for agency in agencies}
    listed: dict[tuple[str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    see_also: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for document in documents:
        *above, agency = map(_contents_name, document["agencies"])
        for name, slug in above:
            reference = {"name": agency[0], "slug": agency[1]}
            if reference not in see_also[name, slug]:
                see_also[name, slug].append(reference)
        listed[agency][document["type"]].append(_contents_line(document))
    entries: list[Record] = []
    for name, slug in sorted({*listed, *see_also}):
        entry: dict[str, Any] = {"name": name, "slug": slug}
        if slug in by_slug:
            entry["url"] = by_slug[slug]["agency_url"]
        if (name, slug) in see_also:
            entry["see_also"] = see_also[name, slug]
        kinds = listed.get((name, slug), {})
        entry["document_categories"] = [
            {"type": kind, "documents": kinds[kind]} for kind in LABELS.values() if kind in kinds
        ]
        entries.append(entry)
    return entries


def _contents_name(agency: Record) -> tuple[str, str]:
    name = agency.get("name") or agency["raw_name"]
    return name, agency.get("slug") or "-".join(re.findall(r"\w+", name.lower()))


def _contents_line(document: Record) -> Record:
    subject, line = document.get("toc_subject"), document.get("toc_doc") or document["title"]
    subjects = {"subject_1": subject, "subject_2": line} if subject else {"subject_1": line}
    return {**subjects, "document_numbers": [document["document_number"]]}


class _ListQuery:
    """A query of the document list; unknown parameters are rejected."""

    def __init__(self, query: list[tuple[str, str]]) -> None:
        self.since, self.until = date.min, date.max
        self.types: frozenset[str] | None = None
        self.fields = _all(query, "fields[]")
        self.per_page, self.page = _PER_PAGE, 1
        self.oldest_first = False
        self._query = query
        for name, value in query:
            self._take(name, value)

    @property
    def description(self) -> str:
        kinds = ", ".join(sorted(self.types)) if self.types else "any type"
        first = "the beginning" if self.since == date.min else self.since.isoformat()
        last = "today" if self.until == date.max else self.until.isoformat()
        return f"Documents of {kinds} published from {first} to {last}"

    @property
    def next_page_url(self) -> str:
        others = [(name, value) for name, value in self._query if name not in {"page", "format"}]
        pairs = [*others, ("format", "json"), ("page", str(self.page + 1))]
        return f"{SITE}/api/v1/documents?{urlencode(pairs)}"

    def _take(self, name: str, value: str) -> None:
        if match := _DATE_CONDITION.fullmatch(name):
            self._take_date(match[1], value)
        elif name == "conditions[type][]":
            if value not in LABELS:
                raise _BadRequestError(f"{value} is not a document type")
            self.types = (self.types or frozenset()) | {LABELS[value]}
        elif name == "per_page":
            number = _whole(name, value)
            self.per_page = number if 1 <= number <= _MAX_PER_PAGE else _PER_PAGE
        elif name == "page":
            self.page = max(_whole(name, value), 1)
        elif name == "order" and value in {"oldest", "newest", "relevance"}:
            # Without a term all documents are equally relevant, and the newest come first.
            self.oldest_first = value == "oldest"
        elif name not in {"fields[]", "format"}:
            raise _BadRequestError(f"the demo does not support {name}={value}")

    def _take_date(self, relation: str, value: str) -> None:
        if relation == "year":
            year = _whole(relation, value)
            first, last = _day(f"{year:04}-01-01"), _day(f"{year:04}-12-31")
        else:
            first = last = _day(value)
        if relation != "lte":
            self.since = max(self.since, first)
        if relation != "gte":
            self.until = min(self.until, last)


def _all(query: list[tuple[str, str]], name: str) -> tuple[str, ...]:
    return tuple(value for key, value in query if key == name)


def _whole(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value):
        raise _BadRequestError(f"{name} is not a number: {value}")
    return int(value)


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise _BadRequestError(f"not a date: {value}") from None


def _chosen(record: Record, fields: Sequence[str]) -> Record:
    if not fields:
        return record
    # Excerpts contain the matched terms; without a term they are the abstract.
    filled = {"excerpts": record["abstract"], **record}
    if unknown := [name for name in fields if name not in filled]:
        raise _BadRequestError(f"no such field: {', '.join(unknown)}")
    return {name: filled[name] for name in fields}


def _record_not_found() -> Response:
    return _json({"status": 404, "message": "Record Not Found"}, HTTPStatus.NOT_FOUND)


def _json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body=content, status=status, media_type="application/json; charset=utf-8")
