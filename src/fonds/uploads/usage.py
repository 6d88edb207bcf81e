"""What uploads take: tokens and money for their vectors, bytes in the object store.

How values are spread, counted by the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, Text, case, cast, func, literal, select

from fonds.stores.database import by_bytes
from fonds.stores.tables import (
    embedding_batches,
    embedding_costs,
    upload_errors,
    upload_jobs,
    users,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """Of values that are not negative: how many there are, their sum, and how many are small."""

    count: int
    sum: float
    buckets: tuple[tuple[int, int], ...]
    """Bounds, and how many values are not above them; `count` has those above the last, too."""

    @property
    def mean(self) -> float:
        """0 where there is no value."""
        return self.sum / self.count if self.count else 0.0

    @classmethod
    def read(cls, values: Iterator[Any], bounds: Sequence[int], *, unit: int = 1) -> Self:
        """Take what `spread` asked for from the values of a row; sums are of so many to one."""
        count, total = next(values), next(values)
        return cls(
            count=count,
            sum=int(total or 0) / unit,  # PostgreSQL sums to decimals
            buckets=tuple((bound, next(values)) for bound in bounds),
        )


def spread(
    value: ColumnElement[int], bounds: Sequence[int], *, unit: int = 1
) -> list[ColumnElement[Any]]:
    """The columns that tell how a whole number is spread, as long as it is not NULL."""
    within = (func.count(case((value <= bound * unit, 1))) for bound in bounds)
    return [func.count(value), func.sum(value), *within]


TOKENS: Final = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DEAREST: Final = 10
LISTED_USERS: Final = 100

_PREFIX: Final = "upload:"
_AFTER_PREFIX: Final = "upload;"
_job: Final = upload_jobs.c
_error: Final = upload_errors.c
_share: Final = embedding_costs.c
_batch: Final = embedding_batches.c


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUsage:
    """Tokens that a model read, and their price."""

    tokens: int
    cost: float
    """USD"""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSpent:
    """What one upload took."""

    id: str
    """documents.id"""
    spent: ModelUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What the vectors of uploads took; of a batch with other documents, the uploads' share."""

    total: ModelUsage
    repeated: ModelUsage
    """In batches with repeated requests, or after an error in embedding the same document."""
    requests: int
    """Of all batches with uploads in them, retries included."""
    retries: int
    batches: Distribution
    """Of tokens."""
    documents: Distribution
    """Of tokens."""
    dearest: tuple[DocumentSpent, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageUsage:
    """Bytes in the object store."""

    raw: int
    """The files that came."""
    parsed: int
    """Their texts; one that several files of a user have is stored once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UserStored:
    """What one user keeps here."""

    user_id: UUID
    name: str
    stored: StorageUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """What uploads take in the object store."""

    by_format: Mapping[str, StorageUsage]
    by_user: tuple[UserStored, ...]
    """The 100 with the most, the greatest first."""
    users: int
    """All that keep something here."""

    @property
    def total(self) -> StorageUsage:
        """Of all users."""
        kept = self.by_format.values()
        return StorageUsage(
            raw=sum(one.raw for one in kept), parsed=sum(one.parsed for one in kept)
        )


# Tokens and money -------------------------------------------------------------------------


def costs(connection: Connection) -> Costs:
    """What the vectors of uploads took so far."""
    ours = _is_upload(connection)
    batch = _by_batch(connection, ours)
    later = _after_errors(connection)
    return Costs(
        total=ModelUsage(tokens=int(batch.tokens.sum), cost=batch.cost),
        repeated=ModelUsage(
            tokens=batch.retried.tokens + later.tokens, cost=batch.retried.cost + later.cost
        ),
        requests=batch.requests,
        retries=batch.retries,
        batches=batch.tokens,
        documents=_by_document(connection, ours),
        dearest=_dearest(connection, ours),
    )


def _is_upload(connection: Connection) -> ColumnElement[bool]:
    """Whether a share is that of an upload, asked so that the index over documents can serve.

    SQLite's LIKE ignores case, so no index serves it; a range means little to PostgreSQL, which
    sorts by language.
    """
    if connection.dialect.name == "sqlite":
        return (_share.document_id >= _PREFIX) & (_share.document_id < _AFTER_PREFIX)
    return _share.document_id.like(f"{_PREFIX}%")


class _Batches(NamedTuple):
    tokens: Distribution
    cost: float
    requests: int
    retries: int
    retried: ModelUsage


def _by_batch(connection: Connection, ours: ColumnElement[bool]) -> _Batches:
    shares = _sums(_share.batch_id, ours).subquery()
    part, was_retried = shares.c, _batch.retries > 0
    query = select(
        func.sum(part.cost).label("all_cost"),
        func.sum(_batch.requests).label("requests"),
        func.sum(_batch.retries).label("retries"),
        func.sum(part.tokens).filter(was_retried).label("tokens"),
        func.sum(part.cost).filter(was_retried).label("cost"),
        *spread(part.tokens, TOKENS),
    ).join_from(shares, embedding_batches, _batch.id == part.batch_id)
    row = connection.execute(query).one()
    return _Batches(
        tokens=Distribution.read(iter(row[5:]), TOKENS),
        cost=float(row.all_cost or 0),
        requests=int(row.requests or 0),
        retries=int(row.retries or 0),
        retried=_spent(row),
    )


def _by_document(connection: Connection, ours: ColumnElement[bool]) -> Distribution:
    shares = _sums(_share.document_id, ours).subquery().c
    row = connection.execute(select(*spread(shares.tokens, TOKENS))).one()
    return Distribution.read(iter(row), TOKENS)


def _dearest(connection: Connection, ours: ColumnElement[bool]) -> tuple[DocumentSpent, ...]:
    sums = _sums(_share.document_id, ours)
    cost, tokens = func.sum(_share.cost), func.sum(_share.tokens)
    order = (cost.desc(), tokens.desc(), by_bytes(connection, _share.document_id))
    return tuple(
        DocumentSpent(id=row.document_id, spent=_spent(row))
        for row in connection.execute(sums.order_by(*order).limit(DEAREST))
    )


def _sums(key: ColumnElement[Any], ours: ColumnElement[bool]) -> Select[Any]:
    tokens, cost = func.sum(_share.tokens).label("tokens"), func.sum(_share.cost).label("cost")
    return select(key, tokens, cost).where(ours).group_by(key)


def _after_errors(connection: Connection) -> ModelUsage:
    """Spent on documents whose embedding had met an error before, in batches without retries."""
    document = literal(_PREFIX).concat(cast(_job.document_id, Text)).label("document_id")
    failed = (
        select(document, func.min(_error.at).label("at"))
        .join_from(upload_errors, upload_jobs, _job.job_id == _error.job_id)
        .where(_error.stage == "embedding")
        .group_by(_job.document_id)
        .subquery()
    )
    query = (
        select(func.sum(_share.tokens).label("tokens"), func.sum(_share.cost).label("cost"))
        .join_from(failed, embedding_costs, _share.document_id == failed.c.document_id)
        .join(embedding_batches, _batch.id == _share.batch_id)
        .where(_batch.retries == 0, _batch.created_at > failed.c.at)
    )
    return _spent(connection.execute(query).one())


def _spent(row: Any) -> ModelUsage:
    return ModelUsage(tokens=int(row.tokens or 0), cost=float(row.cost or 0))


# Bytes ------------------------------------------------------------------------------------

_has_own_text: Final = _job.parsed_path.contains(cast(_job.document_id, Text))
"""Whether its text stands at its own key, not at that of an earlier file with the same text."""
_raw: Final = func.sum(_job.bytes)
_parsed: Final = func.coalesce(func.sum(_job.parsed_bytes).filter(_has_own_text), 0)
_has_come: Final = _job.arrived_at.is_not(None)


def storage(connection: Connection) -> Storage:
    """What uploads take in the object store now."""
    by_format = select(_job.format, _raw.label("raw"), _parsed.label("parsed")).where(_has_come)
    by_format = by_format.group_by(_job.format).order_by(_job.format)
    formats = {row.format: _stored(row) for row in connection.execute(by_format)}
    owners = connection.execute(_owners()).all()
    return Storage(
        by_format=formats,
        by_user=tuple(
            UserStored(user_id=row.id, name=row.name, stored=_stored(row)) for row in owners
        ),
        users=owners[0].users if owners else 0,
    )


def _owners() -> Select[Any]:
    """The users with the most, each row with the number of all."""
    kept = (
        select(
            _job.user_id,
            _raw.label("raw"),
            _parsed.label("parsed"),
            func.count().over().label("users"),
        )
        .where(_has_come)
        .group_by(_job.user_id)
        .order_by((_raw + _parsed).desc(), _job.user_id)
        .limit(LISTED_USERS)
        .subquery()
    )
    named = select(users.c.id, users.c.name, kept.c.raw, kept.c.parsed, kept.c.users)
    return named.join_from(kept, users, users.c.id == kept.c.user_id).order_by(
        (kept.c.raw + kept.c.parsed).desc(), kept.c.user_id
    )


def _stored(row: Any) -> StorageUsage:
    return StorageUsage(raw=int(row.raw), parsed=int(row.parsed))
