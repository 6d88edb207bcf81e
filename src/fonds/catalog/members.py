"""A member of Congress: terms, committees, bills, votes and statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, select

from fonds.catalog.bills import BillVote, vote_of
from fonds.catalog.changes import ListPage, page_of
from fonds.errors import UnknownDocumentError
from fonds.results import DocumentSummary
from fonds.search.lookup import describe_document, document_rows
from fonds.sources.bills.tables import bills
from fonds.sources.committees import committee_members, committees
from fonds.sources.legislators.tables import (
    legislator_leadership_roles,
    legislator_terms,
    legislators,
)
from fonds.sources.member_statements import member_statements
from fonds.sources.roll_call_votes.tables import roll_call_votes, vote_positions
from fonds.stores.database import Database, from_row
from fonds.stores.documents import visible_to
from fonds.stores.tables import documents

MAX_ITEMS: Final = 50
"""Of one page."""
_MAX_TERMS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """A term of office."""

    type: str
    """`sen` or `rep`."""
    start: str | None
    end: str | None
    state: str | None
    district: int | None
    """0 is at large, -1 unknown; None for senators."""
    party: str | None
    url: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A seat on a committee."""

    committee_id: str | None
    """If the committee is held."""
    name: str
    is_subcommittee: bool
    title: str | None
    """`Chairman`, `Ranking Member`; None for most."""
    rank: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """An office in the leadership."""

    title: str
    chamber: str | None
    start: str | None
    end: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sponsored:
    """A bill that a member brought in."""

    id: str
    congress: int
    type: str
    number: int
    title: str
    introduced: str | None
    latest_action: str | None
    latest_action_date: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cast:
    """How a member voted."""

    position: str
    """As printed: `Aye`, `Not Voting`, a candidate's name."""
    vote: BillVote


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberStatement:
    """Something a member published."""

    id: str
    title: str
    published_at: str | None
    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberDetails:
    """Everything of one member that a page shows first."""

    document: DocumentSummary
    name: str
    in_office: bool | None
    party: str | None
    state: str | None
    district: int | None
    chamber: str | None
    birthday: str | None
    terms: tuple[Term, ...]
    """The newest first."""
    roles: tuple[Role, ...]
    """The newest first."""
    seats: tuple[Seat, ...]
    sponsored: ListPage[Sponsored]
    votes: ListPage[Cast]
    statements: ListPage[MemberStatement]


def member(database: Database, member_id: str, *, owner: UUID | None = None) -> MemberDetails:
    """A member by id, with the first page of bills, votes and statements."""
    with database.read() as connection:
        query = document_rows(owner).where(documents.c.id == member_id)
        document = connection.execute(query).one_or_none()
        own = select(legislators).where(legislators.c.id == member_id)
        row = connection.execute(own).one_or_none()
        if document is None or row is None:
            raise UnknownDocumentError(f"the library has no member {member_id!r}")
        return from_row(
            MemberDetails,
            row,
            document=describe_document(document),
            name=row.official_full or " ".join(filter(None, (row.first, row.last, row.suffix))),
            terms=_terms(connection, member_id),
            roles=_roles(connection, member_id),
            seats=_seats(connection, member_id),
            sponsored=_sponsored(connection, member_id, MAX_ITEMS, 0),
            votes=_votes(connection, member_id, MAX_ITEMS, 0),
            statements=_statements(connection, member_id, owner, MAX_ITEMS, 0),
        )


def sponsored(
    database: Database, member_id: str, *, limit: int = MAX_ITEMS, offset: int = 0
) -> ListPage[Sponsored]:
    """The bills that a member brought in, the newest first."""
    with database.read() as connection:
        return _sponsored(connection, member_id, limit, offset)


def votes_cast(
    database: Database, member_id: str, *, limit: int = MAX_ITEMS, offset: int = 0
) -> ListPage[Cast]:
    """How a member voted, the newest vote first."""
    with database.read() as connection:
        return _votes(connection, member_id, limit, offset)


def statements(
    database: Database,
    member_id: str,
    *,
    owner: UUID | None = None,
    limit: int = MAX_ITEMS,
    offset: int = 0,
) -> ListPage[MemberStatement]:
    """The statements of a member, the newest first."""
    with database.read() as connection:
        return _statements(connection, member_id, owner, limit, offset)


def _terms(connection: Connection, member_id: str) -> tuple[Term, ...]:
    table = legislator_terms
    query = select(table).where(table.c.legislator_id == member_id)
    rows = connection.execute(query.order_by(table.c.ord.desc()).limit(_MAX_TERMS))
    return tuple(from_row(Term, row, end=row.end_date) for row in rows)


def _roles(connection: Connection, member_id: str) -> tuple[Role, ...]:
    table = legislator_leadership_roles
    query = select(table).where(table.c.legislator_id == member_id)
    rows = connection.execute(query.order_by(table.c.ord.desc()).limit(_MAX_TERMS))
    return tuple(
        Role(title=row.title or "", chamber=row.chamber, start=row.start, end=row.end_date)
        for row in rows
    )


def _seats(connection: Connection, member_id: str) -> tuple[Seat, ...]:
    seat, table = committee_members.c, committees.c
    query = (
        select(seat.committee_ref, seat.title, seat.rank, table.id, table.name, table.parent_ref)
        .outerjoin(committees, table.id == seat.committee_id)
        .where(seat.legislator_id == member_id)
        .order_by(seat.committee_ref)
        .limit(_MAX_TERMS)
    )
    return tuple(
        Seat(
            committee_id=row.id,
            name=row.name or row.committee_ref,
            is_subcommittee=row.parent_ref is not None,
            title=row.title,
            rank=row.rank,
        )
        for row in connection.execute(query)
    )


def _sponsored(
    connection: Connection, member_id: str, limit: int, offset: int
) -> ListPage[Sponsored]:
    table = bills.c
    query = select(bills).where(table.sponsor_id == member_id)
    newest = query.order_by(table.introduced_date.desc(), table.id.desc())
    return page_of(connection, newest, _bill, limit=limit, offset=offset)


def _bill(row: Row[Any]) -> Sponsored:
    introduced, action = row.introduced_date, row.latest_action_text
    return from_row(Sponsored, row, introduced=introduced, latest_action=action)


def _votes(connection: Connection, member_id: str, limit: int, offset: int) -> ListPage[Cast]:
    vote, cast = roll_call_votes.c, vote_positions.c
    query = (
        select(roll_call_votes, cast.position)
        .join(vote_positions, cast.vote_id == vote.id)
        .where(cast.legislator_id == member_id)
        .order_by(vote.vote_date.desc(), vote.chamber, vote.number.desc())
    )
    return page_of(connection, query, _cast, limit=limit, offset=offset)


def _cast(row: Row[Any]) -> Cast:
    return Cast(position=row.position, vote=vote_of(row))


def _statements(
    connection: Connection, member_id: str, owner: UUID | None, limit: int, offset: int
) -> ListPage[MemberStatement]:
    statements, table = member_statements.c, documents.c
    query = (
        select(table.id, table.title, table.published_at, table.source_url)
        .join(member_statements, statements.id == table.id)
        .where(statements.legislator_id == member_id, visible_to(owner))
        .order_by(statements.pub_date.desc(), table.id)
    )
    return page_of(connection, query, _statement, limit=limit, offset=offset)


def _statement(row: Row[Any]) -> MemberStatement:
    return from_row(MemberStatement, row, url=row.source_url)
