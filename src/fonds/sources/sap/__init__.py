"""Statements of Administration Policy: what the President thinks of a bill before Congress.

Quirks of the publishers:
- The White House has no feed and takes its list down with each administration. The archive of
  unitedstates/statements-of-administration-policy keeps one YAML file for each president, with PDFs
  from 2009 on; before, it only has the address of a page of the American Presidency Project,
  which is not asked for: those statements have no body.
- A statement names no bill, one, or several, and one PDF may stand under several entries of the
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

from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import date
from typing import Any, Final
from urllib.parse import quote

from fonds import ids
from fonds.citations.sap import cite_sap
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
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
from fonds.sources.families import fields
from fonds.sources.families.addresses import parts_of
from fonds.sources.families.bill_numbers import congress_of, read_bill_code
from fonds.sources.families.feeds import WASHINGTON
from fonds.sources.sap.statements import (
    LIST,
    Statement,
    read_archive,
    read_list,
    same_address,
)
from fonds.sources.sap.tables import TABLES, saps

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
        organisation=ISSUER,
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
        files: list[list[Statement]] = []
        for president in _presidents(state):
            answer = await ask(f"{ARCHIVE}/{president}.yaml", path=f"archive/{president}.yaml")
            statements = list(read_archive(answer.data))
            if not statements:
                raise SuspiciousYieldError(f"the archive's file {president} lists no statement")
            archived |= {same_address(statement.address) for statement in statements}
            files.append(statements)
            for statement in _asked_for(statements, state):
                yield _task(statement, answer.archived)
        answer = await ask(LIST, path="lists/whitehouse.html")
        others = [
            statement
            for statement in read_list(answer.data)
            if same_address(statement.address) not in archived
        ]
        for statement in _asked_for(others, state):
            yield _task(statement, answer.archived)
        for listing in _listings(files, others, state):
            yield listing
        if not state.backfill:
            yield Watermark(last_seen_key=max(one.issued for one in (*files[-1], *others)))

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """A document for each bill of a statement, or all that a loose file or list holds."""
        if "statement" in raw.task.params:
            yield from _fetched(raw)
        loose = [part for part in raw.parts if part.name == ""]
        yield from fields.distinct(_together(loose))

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """What the White House lists of this administration, whatever the archive has of it."""
        answer = await ask(LIST, path="lists/whitehouse.html")
        days = SourceState(
            now=answer.archived.retrieved_at, backfill=True, since=since, until=until
        )
        found = [one for one in read_list(answer.data) if _is_within(one, days)]
        documents = frozenset(key for one in found for key, _ in _documents(one))
        yield Expected(scope="the White House's list", document_ids=documents)


source: Final = Sap()


# What is asked for ------------------------------------------------------------------------


def _today(state: SourceState) -> date:
    return state.now.astimezone(WASHINGTON).date()


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
    last = min(end, _today(state))
    return any(congress_of(first) <= one <= congress_of(last) for one in _congresses(state))


def _congresses(state: SourceState) -> list[int]:
    if chosen := state.options.get("congresses"):
        return [int(congress) for congress in chosen]
    current = congress_of(_today(state))
    return [current - 1, current]


def _asked_for(statements: Iterable[Statement], state: SourceState) -> Iterator[Statement]:
    whole = not state.backfill or (
        not state.options.get("congresses") and (state.since or state.until)
    )
    for statement in statements:
        chosen = whole or _congress(statement) in _congresses(state)
        if chosen and _is_within(statement, state):
            yield statement


def _is_within(statement: Statement, state: SourceState) -> bool:
    if not state.backfill:
        return True
    return (state.since or date.min) <= statement.day <= (state.until or date.max)


def _listings(
    files: list[list[Statement]], others: list[Statement], state: SourceState
) -> Iterator[Listing]:
    """Each file is all there is between its first and its last day."""
    if state.backfill and (state.options.get("congresses") or not (state.since or state.until)):
        return
    keys = frozenset(one.key for statements in (*files, others) for one in statements)
    for statements in files:
        days = [one.day for one in statements if _is_within(one, state)]
        if days:
            yield Listing(since=min(days), until=max(days), task_keys=keys)


def _task(statement: Statement, origin: Archived) -> FetchTask:
    params = {"statement": statement.to_params()}
    return FetchTask(
        source=NAME,
        key=statement.key,
        parts=tuple(_parts(statement)),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


def _parts(statement: Statement) -> Iterator[Part]:
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
    if raw.task.origin is None:
        raise MalformedError(f"{raw.task.key}: no archived list says what it is")
    statement = Statement.from_params(raw.task.params["statement"])
    pdf = raw.part("body")
    if pdf and not pdf.data.startswith(b"%PDF-"):
        raise WrongContentError("not a PDF, although its address says so")
    body = Body(archived=pdf.archived, format="pdf") if pdf else None
    yield from _records(statement, raw.task.origin, body)


def _together(parts: list[RawPart]) -> Iterator[ParsedRecord]:
    """The statements of loose files; a PDF joins the statement whose file has its name."""
    pdfs = {_name(part.archived.url): part for part in parts if part.data.startswith(b"%PDF-")}
    named: set[str] = set()
    for part in parts:
        for statement in () if part.data.startswith(b"%PDF-") else _loose(part):
            name = _name(statement.file or statement.fetched_from_url or "")
            named.add(name)
            pdf = pdfs.get(name)
            body = Body(archived=pdf.archived, format="pdf") if pdf else None
            yield from _records(statement, part.archived, body)
    if alone := pdfs.keys() - named:
        raise WrongContentError(
            f"the PDF of a statement ({min(alone)}); the archive's YAML says what it is: name "
            "that with it"
        )


def _loose(part: RawPart) -> Iterable[Statement]:
    is_page = part.data[:1024].lstrip().startswith(b"<")
    return read_list(part.data) if is_page else read_archive(part.data)


def _name(address: str) -> str:
    return parts_of(address).path.rpartition("/")[2]


def _documents(statement: Statement) -> Iterator[tuple[str, str | None]]:
    """The documents a statement makes: their ids and the bill of each."""
    for bill in statement.bills or (None,):
        yield ids.sap_id(statement.issued, statement.address, bill or ""), bill


def _records(statement: Statement, raw: Archived, body: Body | None) -> Iterator[ParsedRecord]:
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
            document=_document(key, bill.written if bill else None, statement, raw, body),
        )


def _congress(statement: Statement) -> int:
    return statement.congress or congress_of(statement.day)


def _document(
    key: str, bill: str | None, statement: Statement, raw: Archived, body: Body | None
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


def _page(statement: Statement) -> str:
    if statement.file:
        return f"{COPIES}/{quote(statement.file, safe='/,')}"
    return statement.url or statement.fetched_from_url or LIST
