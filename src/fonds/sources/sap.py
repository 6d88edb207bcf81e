"""Statements of Administration Policy: what the President thinks of a bill before Congress.

Quirks of the publishers:
- The White House has no feed and takes its list down with each administration. The archive of
  unitedstates/statements-of-administration-policy keeps one YAML file for each president, with PDFs
  from 2009 on; before, it only has the address of a page of the American Presidency Project,
  which is not asked for: those statements have no body.
- A statement names no bill, one, or several, and one PDF may be under several entries of the
  archive. Each statement and bill is a document of its own, for each is cited by its bill.
- One bill can have two statements of one day, for the House and for the Senate: only their
  addresses tell them apart.
- Titles end in spaces and set their dashes in every way; a file's place must not be guessed.
- Addresses at whitehouse.gov die with the administration, so people are sent to the archive's copy.
- A rescinded statement stays in the archive and says so.

The archive is read first, then the White House's list for what the archive does not have yet. A
backfill takes the Congresses or the days asked for, else the current Congress and the one before.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.errors import MalformedError, ParseError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Body,
    Discovery,
    Document,
    FetchTask,
    Listing,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.formats import fields, yaml
from fonds.sources.formats.congress import congress_of, find_bill_numbers, read_bill_code
from fonds.sources.formats.days import is_requested, printed_day, requested_congresses, today
from fonds.sources.formats.html import joined, parts_of, read_page, text_of
from fonds.sources.formats.records import listing_of
from fonds.stores.columns import Json, document_key, reference, texts
from fonds.stores.tables import metadata

# A statement as the archive's YAML and the White House's list describe it, made alike.

LIST: Final = (
    "https://www.whitehouse.gov/omb/information-resources/legislative/"
    "statements-of-administration-policy/"
)

_DATE: Final = re.compile(r"\b([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),?\s+(\d{4})\b")
# `H.R. 21 – Title`: hyphens are inside names, dashes with spaces around them are not.
_SEPARATOR: Final = re.compile(r"\s+[-\u2013\u2014]\s+|\s*\u2014\s*")
_ENTRY_ELEMENTS: Final = ("p", "li", "tr", "article", "div")


def sap_id(issued: str, url: str, bill: str) -> str:
    """`sap:2025-01-22/<hash>`: one PDF can serve several bills."""
    return f"sap:{issued}/{ids.text_sha256(url + bill)[:16]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyStatement:
    """One statement, on no bill, one, or several."""

    title: str
    issued: str
    """ISO day."""
    bills: tuple[str, ...] = ()
    """Codes such as `hr2101`."""
    congress: int | None = None
    file: str | None = None
    url: str | None = None
    fetched_from_url: str | None = None
    date_fetched: str | None = None
    source: str | None = None
    rescinded: str | None = None

    @property
    def day(self) -> date:
        """The day it was issued."""
        return date.fromisoformat(self.issued)

    @property
    def address(self) -> str:
        """The address it was published at; it distinguishes statements of one day on one bill."""
        return self.fetched_from_url or self.url or self.file or ""

    @property
    def key(self) -> str:
        """Its task; the document's id where it is on one bill or none."""
        return sap_id(self.issued, self.address, ",".join(self.bills))

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self) | {"bills": list(self.bills)}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> PolicyStatement:
        """The statement that `to_params` wrote."""
        return cls(**{**params, "bills": tuple(params["bills"])})


def same_address(url: str) -> str:
    """An address in the form in which two of them are compared."""
    parts = parts_of(url)
    return f"{(parts.hostname or '').removeprefix('www.')}{parts.path}"


def read_archive(data: bytes) -> Iterator[PolicyStatement]:
    """The statements of one president's YAML file."""
    for number, entry in enumerate(yaml.items(data), 1):
        record = fields.mapping(entry)
        if "document_title" not in record:
            raise WrongContentError(f"expected statements, found {fields.describe(record)}")
        try:
            yield _archived(record)
        except MalformedError as error:
            raise MalformedError(f"statement {number} of the file: {error}") from error


def read_list(data: bytes, address: str = LIST) -> list[PolicyStatement]:
    """The statements a page of the White House links to."""
    statements = [
        statement
        for link in read_page(data).iter("a")
        if (statement := _linked(link, address)) is not None
    ]
    if not statements:
        raise WrongContentError("an HTML page that lists no Statement of Administration Policy")
    return list({statement.key: statement for statement in statements}.values())


def _archived(record: Mapping[str, Any]) -> PolicyStatement:
    issued = fields.required(record, "date_issued")
    try:
        date.fromisoformat(issued)
    except ValueError:
        raise MalformedError(f"`date_issued` is {issued[:40]!r}, not an ISO date") from None
    title = " ".join((fields.text(record, "document_title") or "").split())
    names = ("file", "url", "fetched_from_url", "date_fetched", "source", "rescinded")
    return PolicyStatement(
        title=title or "Statement of Administration Policy",
        issued=issued,
        bills=tuple(dict.fromkeys(code.lower() for code in fields.texts(record, "bills"))),
        congress=fields.whole(record, "congress"),
        **{name: fields.text(record, name) for name in names},
    )


def _linked(link: Any, address: str) -> PolicyStatement | None:
    target, title = _as_archived(joined(address, link.get("href") or "") or ""), text_of(link)
    if not title or not parts_of(target).path.lower().endswith(".pdf"):
        return None
    issued = _date_near(link, title)
    if issued is None:
        return None
    numbers = find_bill_numbers(_SEPARATOR.split(title)[0]) or find_bill_numbers(title)[:1]
    return PolicyStatement(
        title=title,
        issued=issued.isoformat(),
        bills=tuple(bill.code for bill in numbers),
        congress=congress_of(issued),
        fetched_from_url=target,
        source=address,
    )


def _as_archived(url: str) -> str:
    """An address of the White House as the archive writes it, so that both give one id."""
    if (parts_of(url).hostname or "").removeprefix("www.") != "whitehouse.gov":
        return url
    return f"https://www.{same_address(url)}"


def _date_near(link: Any, title: str) -> date | None:
    """The first date after a link in its block; the text before it is of another."""
    for block in link.iterancestors(*_ENTRY_ELEMENTS):
        words = text_of(block) or ""
        after = words.partition(title)[2] or words
        if days := [
            day
            for match in _DATE.finditer(after)
            if (day := printed_day(" ".join(match.groups()), "%b %d %Y"))
        ]:
            return days[0]
        if block.tag != "div":
            return None
    return None


# The table of Statements of Administration Policy; columns bear the archive's names.

saps: Final = Table(
    "saps",
    metadata,
    document_key("sap:2025-01-22/<hash>, documents.id: one for each statement and bill."),
    Column("document_title", Text, nullable=False, comment="As published, spaces folded."),
    *texts(
        bill="The bill this row is about, as the archive codes it: hr2101; NULL for none.",
    ),
    *reference("bill", "bills", "The same as an id: bill:119-hr-2101."),
    Column("bills", Json, nullable=False, comment="All bills of the statement, as coded."),
    Column("congress", Integer, comment="As stated, else that of date_issued."),
    *texts(
        date_issued="ISO day.",
        file="The PDF's place in the archive.",
        url="Its page at the American Presidency Project, before 2009.",
        fetched_from_url="Where the White House had the PDF.",
        date_fetched="When the archive fetched it.",
        source="The list it was found in.",
        rescinded="What the archive says of its withdrawal; NULL while it is in force.",
    ),
    Index("ix_saps_date_issued", "date_issued"),
    comment="Statements of Administration Policy.",
)

TABLES: Final = (saps,)


# How a Statement of Administration Policy is cited.

_NAME: Final = "Statement of Administration Policy"


def cite_sap(*, bill: str | None, title: str, issued: date | None) -> str:
    """The citation, `Statement of Administration Policy on H.R. 1234 (Jan. 22, 2025).`, to paste.

    A statement on no bill is known by its title, and one without a date does without.
    """
    day = f" ({bluebook_date(issued)})" if issued else ""
    if bill:
        return f"{_NAME} on {bill}{day}."
    name = title if title.startswith(_NAME) else f"{_NAME}, {title}"
    return f"{name.rstrip('.')}{day}."


NAME: Final = "sap"
ISSUER: Final = "Office of Management and Budget"
ARCHIVE: Final = (
    "https://raw.githubusercontent.com/unitedstates/statements-of-administration-policy/"
    "main/archive"
)
COPIES: Final = (
    "https://github.com/unitedstates/statements-of-administration-policy/blob/main/archive"
)
# The archive has no list of its files. A president who is not named here yet is found by the
# White House's list alone.
PRESIDENTS: Final = (
    ("40-Reagan", date(1981, 1, 20)),
    ("41-Bush", date(1989, 1, 20)),
    ("42-Clinton", date(1993, 1, 20)),
    ("43-Bush", date(2001, 1, 20)),
    ("44-Obama", date(2009, 1, 20)),
    ("45-Trump", date(2017, 1, 20)),
    ("46-Biden", date(2021, 1, 20)),
    ("47-Trump", date(2025, 1, 20)),
)


class Sap:
    """The source `sap`."""

    info = SourceInfo(
        name=NAME,
        title="Statements of Administration Policy",
        summary="statements of administration policy, the newer ones in full",
        organisation=ISSUER,
        addresses=(LIST, ARCHIVE),
        jurisdiction="United States",
        version="1.0.0",
        schedule="50 9,15,21 * * *",
        rate=Rate(per_second=1, burst=2),
        tables=TABLES,
        depends_on=("bills",),
        at_least=20,
        published_at="date_issued",
        options=("congresses",),
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The statements of the archive, then those only the White House lists."""
        archived: set[str] = set()
        files: list[list[PolicyStatement]] = []
        for president in _presidents(state):
            page = await ask(f"{ARCHIVE}/{president}.yaml", path=f"archive/{president}.yaml")
            statements = list(read_archive(page.data))
            if not statements:
                raise SuspiciousYieldError(f"the archive's file {president} lists no statement")
            archived |= {same_address(statement.address) for statement in statements}
            files.append(statements)
            for statement in _requested(statements, state):
                yield _task(statement, page.archived)
        page = await ask(LIST, path="lists/whitehouse.html")
        others = [
            statement
            for statement in read_list(page.data)
            if same_address(statement.address) not in archived
        ]
        for statement in _requested(others, state):
            yield _task(statement, page.archived)
        for listing in _listings(files, others, state):
            yield listing
        if not state.backfill:
            yield Watermark(
                last_seen_key=max(statement.issued for statement in (*files[-1], *others))
            )

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """A document for each bill of a statement, or all that a loose file or list holds."""
        if "statement" in raw.task.params:
            yield from _fetched(raw)
        loose = [part for part in raw.parts if part.name == ""]
        yield from fields.distinct(_together(loose))

    def pdf_names(self, part: RawPart) -> frozenset[str]:
        """The files of the statements in the archive's YAML, or on the list of the White House."""
        try:
            statements = list(_loose(part))
        except ParseError:
            return frozenset()
        return frozenset(map(_file_name, statements)) - {""}

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The statements of this administration on the list of the White House."""
        listing = await ask(LIST, path="lists/whitehouse.html")
        days = SourceState(
            now=listing.archived.retrieved_at, backfill=True, since=since, until=until
        )
        statements = [
            statement for statement in read_list(listing.data) if is_requested(statement.day, days)
        ]
        documents = frozenset(key for statement in statements for key, _ in _documents(statement))
        yield Expected(scope="the White House's list", document_ids=documents)


source: Final = Sap()


# What is asked for ------------------------------------------------------------------------


def _presidents(state: SourceState) -> list[str]:
    names = [name for name, _ in PRESIDENTS]
    if not state.backfill:
        # The file before the newest still changes around an inauguration.
        return names[-2:]
    until = [*(first for _, first in PRESIDENTS[1:]), date.max]
    return [
        name
        for (name, first), end in zip(PRESIDENTS, until, strict=True)
        if _overlaps(first, end, state)
    ]


def _overlaps(first: date, end: date, state: SourceState) -> bool:
    if state.since or state.until:
        return (state.until is None or first <= state.until) and (
            state.since is None or state.since <= end
        )
    last = min(end, today(state))
    return any(
        congress_of(first) <= congress <= congress_of(last)
        for congress in requested_congresses(state)
    )


def _requested(
    statements: Iterable[PolicyStatement], state: SourceState
) -> Iterator[PolicyStatement]:
    whole = not state.backfill or (
        not state.options.get("congresses") and (state.since or state.until)
    )
    for statement in statements:
        chosen = whole or _congress(statement) in requested_congresses(state)
        if chosen and is_requested(statement.day, state):
            yield statement


def _listings(
    files: list[list[PolicyStatement]], others: list[PolicyStatement], state: SourceState
) -> Iterator[Listing]:
    """Each file is all there is between its first and its last day."""
    if state.backfill and (state.options.get("congresses") or not (state.since or state.until)):
        return
    keys = frozenset(statement.key for statements in (*files, others) for statement in statements)
    for statements in files:
        days = [statement.day for statement in statements if is_requested(statement.day, state)]
        if days:
            yield Listing(since=min(days), until=max(days), task_keys=keys)


def _task(statement: PolicyStatement, origin: Archived) -> FetchTask:
    params = {"statement": statement.to_params()}
    return FetchTask(
        source=NAME,
        key=statement.key,
        parts=tuple(_parts(statement)),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


def _parts(statement: PolicyStatement) -> Iterator[Part]:
    if statement.file:
        address = f"{ARCHIVE}/{quote(statement.file, safe='/,')}"
        yield Part(name="body", url=address, path=f"bodies/raw/{statement.file}", optional=True)
    elif statement.fetched_from_url and _is_of_the_white_house(statement.fetched_from_url):
        path = f"bodies/raw/whitehouse/{statement.issued}/{_name(statement.fetched_from_url)}"
        yield Part(
            name="body",
            url=statement.fetched_from_url,
            path=path,
            optional=True,
            refusable=True,
        )


def _is_of_the_white_house(url: str) -> bool:
    return parts_of(url).hostname == parts_of(LIST).hostname


# Records ----------------------------------------------------------------------------------


def _fetched(raw: Raw) -> Iterator[ParsedRecord]:
    statement = PolicyStatement.from_params(raw.task.params["statement"])
    pdf = raw.part("body")
    if pdf and not pdf.data.startswith(b"%PDF-"):
        raise WrongContentError("not a PDF, although its address says so")
    body = Body(archived=pdf.archived, format="pdf") if pdf else None
    yield from _records(statement, listing_of(raw.task), body)


def _together(parts: list[RawPart]) -> Iterator[ParsedRecord]:
    """The statements of loose files; a PDF joins the statement whose file has its name."""
    pdfs = {
        _name(part.archived.url).lower(): part for part in parts if part.data.startswith(b"%PDF-")
    }
    names: set[str] = set()
    for part in parts:
        for statement in () if part.data.startswith(b"%PDF-") else _loose(part):
            name = _file_name(statement)
            names.add(name)
            pdf = pdfs.get(name)
            body = Body(archived=pdf.archived, format="pdf") if pdf else None
            yield from _records(statement, part.archived, body)
    if alone := pdfs.keys() - names:
        raise WrongContentError(
            f"the PDF of a statement ({min(alone)}); the archive's YAML says what it is: name "
            "that with it"
        )


def _loose(part: RawPart) -> Iterable[PolicyStatement]:
    is_page = part.data[:1024].lstrip().startswith(b"<")
    return read_list(part.data) if is_page else read_archive(part.data)


def _file_name(statement: PolicyStatement) -> str:
    return _name(statement.file or statement.fetched_from_url or "").lower()


def _name(address: str) -> str:
    return parts_of(address).path.rpartition("/")[2]


def _documents(statement: PolicyStatement) -> Iterator[tuple[str, str | None]]:
    """The documents a statement makes: their ids and the bill of each."""
    for bill in statement.bills or (None,):
        yield sap_id(statement.issued, statement.address, bill or ""), bill


def _records(
    statement: PolicyStatement, raw: Archived, body: Body | None
) -> Iterator[ParsedRecord]:
    congress = _congress(statement)
    for key, code in _documents(statement):
        bill = read_bill_code(code) if code else None
        row: dict[str, Any] = {
            "id": key,
            "document_title": statement.title,
            "bill": code,
            "bill_ref": bill.document_id(congress) if bill else None,
            "bills": list(statement.bills),
            "congress": congress,
            "date_issued": statement.issued,
            "file": statement.file,
            "url": statement.url,
            "fetched_from_url": statement.fetched_from_url,
            "date_fetched": statement.date_fetched,
            "source": statement.source,
            "rescinded": statement.rescinded,
        }
        yield ParsedRecord(
            source=NAME,
            table=saps.name,
            key=key,
            payload=row,
            document=_document(key, bill.printed if bill else None, statement, raw, body),
        )


def _congress(statement: PolicyStatement) -> int:
    return statement.congress or congress_of(statement.day)


def _document(
    key: str, bill: str | None, statement: PolicyStatement, raw: Archived, body: Body | None
) -> Document:
    return Document(
        id=key,
        source=NAME,
        kind="statement_of_administration_policy",
        title=statement.title,
        source_url=_page(statement),
        source_org=ISSUER,
        published_at=statement.issued,
        citation_string=cite_sap(bill=bill, title=statement.title, issued=statement.day),
        raw=raw,
        body=body,
        aliases=tuple(dict.fromkeys(filter(None, (statement.address, _page(statement))))),
    )


def _page(statement: PolicyStatement) -> str:
    if statement.file:
        return f"{COPIES}/{quote(statement.file, safe='/,')}"
    return statement.url or statement.fetched_from_url or LIST
