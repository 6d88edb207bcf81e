"""A bill: who brought it in, what happened to it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, Table, select, union

from fonds.catalog.changes import ListPage, page_of
from fonds.errors import UnknownDocumentError
from fonds.results import DocumentSummary
from fonds.search.lookup import describe_document, document_rows
from fonds.sources.bills import tables
from fonds.sources.roll_call_votes.tables import (
    roll_call_votes,
    vote_amendments,
    vote_documents,
)
from fonds.stores.database import Database, from_row
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import select_in
from fonds.stores.tables import documents

MAX_ACTIONS: Final = 100
"""Of one page."""
MAX_ROWS: Final = 500
"""Of any other list; the House has 435 members."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BillSigner:
    """A member who brought a bill in, or signed it."""

    member_id: str | None
    """`legislator:C000127`, if that member is held."""
    name: str
    party: str | None
    state: str | None
    district: int | None
    """0 is at large; None for senators."""
    since: str | None = None
    """Of a cosponsor: the day of the signature."""
    withdrawn: str | None = None
    """Of a cosponsor: the day it was taken back."""
    is_original: bool = False
    """Of a cosponsor: since the day of introduction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Referral:
    """A committee that a bill was before."""

    committee_id: str | None
    name: str
    chamber: str | None
    is_subcommittee: bool
    activities: Sequence[Mapping[str, Any]]
    """One action: `name` and `date`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """Something that happened to a bill."""

    date: str | None
    time: str | None
    text: str
    kind: str | None
    """`IntroReferral`, `Committee`, `Floor`, `BecameLaw`, …"""
    by: str | None
    """The system that recorded it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BillText:
    """The text of a bill at one stage."""

    id: str
    code: str
    """`ih`, `enr`, …"""
    stage: str | None
    """`Introduced in House`."""
    date: str | None
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BillVote:
    """A roll call; what is None is not held or was not counted."""

    id: str
    is_held: bool
    chamber: str
    number: int
    date: str | None
    question: str | None
    result: str | None
    about: str | None
    yea: int | None
    nay: int | None
    present: int | None
    not_voting: int | None
    url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """A law that a bill became."""

    id: str | None
    """If it is held."""
    kind: str
    """`Public Law` or `Private Law`."""
    number: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Related:
    """Something else that belongs to a bill: a bill, a report, an estimate."""

    id: str | None
    """If it is held."""
    title: str
    how: str | None = None
    """Of a bill: what relates them."""
    date: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BillDetails:
    """Everything of one bill that a page shows."""

    document: DocumentSummary
    congress: int
    type: str
    number: int
    title: str
    origin_chamber: str | None
    introduced: str | None
    policy_area: str | None
    latest_action: Action | None
    sponsors: tuple[BillSigner, ...]
    cosponsors: tuple[BillSigner, ...]
    committees: tuple[Referral, ...]
    subjects: tuple[str, ...]
    actions: ListPage[Action]
    """The newest first."""
    texts: tuple[BillText, ...]
    """The newest first."""
    votes: tuple[BillVote, ...]
    """The newest first."""
    laws: tuple[Law, ...]
    related: tuple[Related, ...]
    reports: tuple[Related, ...]
    estimates: tuple[Related, ...]


def bill(
    database: Database,
    bill_id: str,
    *,
    owner: UUID | None = None,
    limit: int = MAX_ACTIONS,
    offset: int = 0,
) -> BillDetails:
    """A bill by its id; limit and offset are of its actions."""
    with database.read() as connection:
        query = document_rows(owner).where(documents.c.id == bill_id)
        document = connection.execute(query).one_or_none()
        row = connection.execute(
            select(tables.bills).where(tables.bills.c.id == bill_id)
        ).one_or_none()
        if document is None or row is None:
            raise UnknownDocumentError(f"the library has no bill {bill_id!r}")
        return from_row(
            BillDetails,
            row,
            document=describe_document(document),
            introduced=row.introduced_date,
            latest_action=_latest(row),
            sponsors=tuple(map(_signer, _below(connection, tables.bill_sponsors, bill_id))),
            cosponsors=tuple(map(_cosigner, _below(connection, tables.bill_cosponsors, bill_id))),
            committees=tuple(map(_referral, _below(connection, tables.bill_committees, bill_id))),
            subjects=tuple(each.name for each in _below(connection, tables.bill_subjects, bill_id)),
            actions=_actions(connection, bill_id, limit, offset),
            texts=_texts(connection, bill_id, owner),
            votes=_votes(connection, bill_id),
            laws=tuple(map(_law, _below(connection, tables.bill_laws, bill_id))),
            related=tuple(map(_related, _below(connection, tables.bill_related, bill_id))),
            reports=tuple(map(_report, _below(connection, tables.bill_committee_reports, bill_id))),
            estimates=tuple(
                map(_estimate, _below(connection, tables.bill_cost_estimates, bill_id))
            ),
        )


def _below(connection: Connection, table: Table, bill_id: str) -> Sequence[Row[Any]]:
    query = select(table).where(table.c.bill_id == bill_id)
    return connection.execute(query.order_by(table.c.ord).limit(MAX_ROWS)).all()


def _signer(row: Row[Any]) -> BillSigner:
    name = row.full_name or row.last_name or ""
    return from_row(BillSigner, row, member_id=row.legislator_id, name=name)


def _cosigner(row: Row[Any]) -> BillSigner:
    return replace(
        _signer(row),
        since=row.sponsorship_date,
        withdrawn=row.sponsorship_withdrawn_date,
        is_original=bool(row.is_original_cosponsor),
    )


def _referral(row: Row[Any]) -> Referral:
    return Referral(
        committee_id=row.committee_id,
        name=row.name or row.system_code or "",
        chamber=row.chamber,
        is_subcommittee=row.parent_system_code is not None,
        activities=tuple(row.activities or ()),
    )


def _latest(row: Row[Any]) -> Action | None:
    if row.latest_action_text is None:
        return None
    return Action(
        date=row.latest_action_date,
        time=row.latest_action_time,
        text=row.latest_action_text,
        kind=None,
        by=None,
    )


def _actions(connection: Connection, bill_id: str, limit: int, offset: int) -> ListPage[Action]:
    # The publisher lists them newest first.
    table = tables.bill_actions
    query = select(table).where(table.c.bill_id == bill_id).order_by(table.c.ord)
    return page_of(connection, query, _action, limit=limit, offset=offset)


def _action(row: Row[Any]) -> Action:
    return Action(
        date=row.action_date,
        time=row.action_time,
        text=row.text or "",
        kind=row.type,
        by=row.source_system_name,
    )


def _texts(connection: Connection, bill_id: str, owner: UUID | None) -> tuple[BillText, ...]:
    table = tables.bill_text_versions
    query = (
        select(table, documents.c.title.label("document_title"), documents.c.published_at)
        .join(documents, documents.c.id == table.c.id)
        .where(table.c.bill_ref == bill_id, visible_to(owner))
        .limit(MAX_ROWS)
    )
    rows = sorted(
        connection.execute(query), key=lambda row: (row.published_at or "", row.id), reverse=True
    )
    return tuple(
        BillText(
            id=row.id,
            code=row.version_code,
            stage=row.type,
            date=(row.published_at or row.date or "")[:10] or None,
            title=row.document_title,
        )
        for row in rows
    )


def _votes(connection: Connection, bill_id: str) -> tuple[BillVote, ...]:
    """Those that the bill's own record lists, and those of the chambers that name the bill."""
    listed = _below(connection, tables.bill_recorded_votes, bill_id)
    naming = union(
        select(roll_call_votes.c.id).where(roll_call_votes.c.bill_id == bill_id),
        *(
            select(table.c.vote_id).where(table.c.bill_id == bill_id)
            for table in (vote_documents, vote_amendments)
        ),
    ).limit(MAX_ROWS)
    vote_ids = {*connection.scalars(naming), *(row.vote_ref for row in listed)} - {None}
    query = select(roll_call_votes)
    stored = select_in(connection, query, roll_call_votes.c.id, sorted(vote_ids))
    votes = {row.id: vote_of(row) for row in stored}
    bill_votes = [*votes.values(), *(_unheld(row) for row in listed if row.vote_ref not in votes)]
    return tuple(sorted(bill_votes, key=lambda vote: (vote.date or "", vote.number), reverse=True))


def vote_of(row: Row[Any]) -> BillVote:
    """A roll call of a row of `roll_call_votes`."""
    return from_row(
        BillVote,
        row,
        is_held=True,
        date=row.vote_date,
        question=row.vote_question,
        result=row.vote_result,
        about=row.vote_desc or row.vote_title,
    )


def _unheld(row: Row[Any]) -> BillVote:
    return BillVote(
        id=row.vote_ref or "",
        is_held=False,
        chamber=(row.chamber or "").lower(),
        number=row.roll_number or 0,
        date=(row.date or "")[:10] or None,
        question=row.full_action_name,
        result=None,
        about=None,
        yea=None,
        nay=None,
        present=None,
        not_voting=None,
        url=row.url,
    )


def _law(row: Row[Any]) -> Law:
    return Law(id=row.law_id, kind=row.type or "", number=row.number or "")


def _related(row: Row[Any]) -> Related:
    how = (each.get("type") for each in row.relationship_details or ())
    return Related(
        id=row.related_id,
        title=f"{row.type} {row.number}: {row.title or ''}".rstrip(": "),
        how=", ".join(dict.fromkeys(filter(None, how))) or None,
        date=row.latest_action_date,
    )


def _report(row: Row[Any]) -> Related:
    return Related(id=row.report_id, title=row.citation or "")


def _estimate(row: Row[Any]) -> Related:
    return Related(
        id=row.publication_id,
        title=row.title or "",
        date=(row.pub_date or "")[:10] or None,
        url=row.url,
    )
