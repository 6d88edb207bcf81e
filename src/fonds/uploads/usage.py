"""The usage of uploads: tokens and money for their vectors, bytes in the object store.

Distributions of values are counted by the database.
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
    """The count, the sum and the histogram of values that are not negative."""

    count: int
    sum: float
    buckets: tuple[tuple[int, int], ...]
    """Bounds, and how many values are not above them; `count` includes those above the last."""

    @property
    def mean(self) -> float:
        """0 if there is no value."""
        return self.sum / self.count if self.count else 0.0

    @classmethod
    def read(cls, values: Iterator[Any], bounds: Sequence[int], *, unit: int = 1) -> Self:
        """Read the columns of `distribution_columns` from a row; the sum is divided by `unit`."""
        count, total = next(values), next(values)
        return cls(
            count=count,
            sum=int(total or 0) / unit,  # PostgreSQL sums to decimals
            buckets=tuple((bound, next(values)) for bound in bounds),
        )


def distribution_columns(
    value: ColumnElement[int], bounds: Sequence[int], *, unit: int = 1
) -> list[ColumnElement[Any]]:
    """The columns for the distribution of a whole number; NULL is not counted."""
    within = (func.count(case((value <= bound * unit, 1))) for bound in bounds)
    return [func.count(value), func.sum(value), *within]


TOKENS: Final = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MAX_DOCUMENTS: Final = 10
MAX_USERS: Final = 100

_PREFIX: Final = "upload:"
_AFTER_PREFIX: Final = "upload;"
_job: Final = upload_jobs.c
_error: Final = upload_errors.c
_cost: Final = embedding_costs.c
_batch: Final = embedding_batches.c


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUsage:
    """Tokens that a model read, and their price."""

    tokens: int
    cost: float
    """USD"""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentUsage:
    """The usage of one upload."""

    id: str
    """documents.id"""
    usage: ModelUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """The costs of the vectors of uploads; of a batch with other documents, the uploads' part."""

    total: ModelUsage
    repeated: ModelUsage
    """The part in batches with retries, or after an error in embedding the same document."""
    requests: int
    """The requests of all batches with uploads in them, retries included."""
    retries: int
    batches: Distribution
    """Of tokens."""
    documents: Distribution
    """Of tokens."""
    top_documents: tuple[DocumentUsage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageUsage:
    """Bytes in the object store."""

    raw: int
    """The uploaded files."""
    parsed: int
    """Their texts; equal texts of one user are stored once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UserStorage:
    """The storage of one user."""

    user_id: UUID
    name: str
    stored: StorageUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """The bytes of uploads in the object store."""

    by_format: Mapping[str, StorageUsage]
    by_user: tuple[UserStorage, ...]
    """The 100 users with the most bytes, in descending order."""
    users: int
    """The number of all users with files."""

    @property
    def total(self) -> StorageUsage:
        """The bytes of all users."""
        usages = self.by_format.values()
        return StorageUsage(
            raw=sum(usage.raw for usage in usages), parsed=sum(usage.parsed for usage in usages)
        )


# Tokens and money -------------------------------------------------------------------------


def costs(connection: Connection) -> Costs:
    """The costs of the vectors of uploads so far."""
    is_upload = _is_upload(connection)
    batch = _by_batch(connection, is_upload)
    later = _after_errors(connection)
    return Costs(
        total=ModelUsage(tokens=int(batch.tokens.sum), cost=batch.cost),
        repeated=ModelUsage(
            tokens=batch.retried.tokens + later.tokens, cost=batch.retried.cost + later.cost
        ),
        requests=batch.requests,
        retries=batch.retries,
        batches=batch.tokens,
        documents=_by_document(connection, is_upload),
        top_documents=_top_documents(connection, is_upload),
    )


def _is_upload(connection: Connection) -> ColumnElement[bool]:
    """True for costs of uploads, in a form for which the index on documents is used.

    SQLite's LIKE ignores case, so no index serves it; a range means little to PostgreSQL, which
    sorts by language.
    """
    if connection.dialect.name == "sqlite":
        return (_cost.document_id >= _PREFIX) & (_cost.document_id < _AFTER_PREFIX)
    return _cost.document_id.like(f"{_PREFIX}%")


class _Batches(NamedTuple):
    tokens: Distribution
    cost: float
    requests: int
    retries: int
    retried: ModelUsage


def _by_batch(connection: Connection, is_upload: ColumnElement[bool]) -> _Batches:
    costs = _sums(_cost.batch_id, is_upload).subquery()
    part, was_retried = costs.c, _batch.retries > 0
    query = select(
        func.sum(part.cost).label("all_cost"),
        func.sum(_batch.requests).label("requests"),
        func.sum(_batch.retries).label("retries"),
        func.sum(part.tokens).filter(was_retried).label("tokens"),
        func.sum(part.cost).filter(was_retried).label("cost"),
        *distribution_columns(part.tokens, TOKENS),
    ).join_from(costs, embedding_batches, _batch.id == part.batch_id)
    row = connection.execute(query).one()
    return _Batches(
        tokens=Distribution.read(iter(row[5:]), TOKENS),
        cost=float(row.all_cost or 0),
        requests=int(row.requests or 0),
        retries=int(row.retries or 0),
        retried=_model_usage(row),
    )


def _by_document(connection: Connection, is_upload: ColumnElement[bool]) -> Distribution:
    costs = _sums(_cost.document_id, is_upload).subquery().c
    row = connection.execute(select(*distribution_columns(costs.tokens, TOKENS))).one()
    return Distribution.read(iter(row), TOKENS)


def _top_documents(
    connection: Connection, is_upload: ColumnElement[bool]
) -> tuple[DocumentUsage, ...]:
    sums = _sums(_cost.document_id, is_upload)
    cost, tokens = func.sum(_cost.cost), func.sum(_cost.tokens)
    order = (cost.desc(), tokens.desc(), by_bytes(connection, _cost.document_id))
    return tuple(
        DocumentUsage(id=row.document_id, usage=_model_usage(row))
        for row in connection.execute(sums.order_by(*order).limit(MAX_DOCUMENTS))
    )


def _sums(key: ColumnElement[Any], is_upload: ColumnElement[bool]) -> Select[Any]:
    tokens, cost = func.sum(_cost.tokens).label("tokens"), func.sum(_cost.cost).label("cost")
    return select(key, tokens, cost).where(is_upload).group_by(key)


def _after_errors(connection: Connection) -> ModelUsage:
    """The usage of documents after an error in their embedding, in batches without retries."""
    document = literal(_PREFIX).concat(cast(_job.document_id, Text)).label("document_id")
    failed = (
        select(document, func.min(_error.at).label("at"))
        .join_from(upload_errors, upload_jobs, _job.job_id == _error.job_id)
        .where(_error.stage == "embedding")
        .group_by(_job.document_id)
        .subquery()
    )
    query = (
        select(func.sum(_cost.tokens).label("tokens"), func.sum(_cost.cost).label("cost"))
        .join_from(failed, embedding_costs, _cost.document_id == failed.c.document_id)
        .join(embedding_batches, _batch.id == _cost.batch_id)
        .where(_batch.retries == 0, _batch.created_at > failed.c.at)
    )
    return _model_usage(connection.execute(query).one())


def _model_usage(row: Any) -> ModelUsage:
    return ModelUsage(tokens=int(row.tokens or 0), cost=float(row.cost or 0))


# Bytes ------------------------------------------------------------------------------------

_has_own_text: Final = _job.parsed_path.contains(cast(_job.document_id, Text))
"""True if its text is stored at its own key, not at that of an earlier file with the same text."""
_raw: Final = func.sum(_job.bytes)
_parsed: Final = func.coalesce(func.sum(_job.parsed_bytes).filter(_has_own_text), 0)
_has_come: Final = _job.arrived_at.is_not(None)


def storage(connection: Connection) -> Storage:
    """The bytes of uploads in the object store now."""
    by_format = select(_job.format, _raw.label("raw"), _parsed.label("parsed")).where(_has_come)
    by_format = by_format.group_by(_job.format).order_by(_job.format)
    formats = {row.format: _stored(row) for row in connection.execute(by_format)}
    owners = connection.execute(_owners()).all()
    return Storage(
        by_format=formats,
        by_user=tuple(
            UserStorage(user_id=row.id, name=row.name, stored=_stored(row)) for row in owners
        ),
        users=owners[0].users if owners else 0,
    )


def _owners() -> Select[Any]:
    """The users with the most bytes, each row with the number of all users."""
    stored = (
        select(
            _job.user_id,
            _raw.label("raw"),
            _parsed.label("parsed"),
            func.count().over().label("users"),
        )
        .where(_has_come)
        .group_by(_job.user_id)
        .order_by((_raw + _parsed).desc(), _job.user_id)
        .limit(MAX_USERS)
        .subquery()
    )
    query = select(users.c.id, users.c.name, stored.c.raw, stored.c.parsed, stored.c.users)
    return query.join_from(stored, users, users.c.id == stored.c.user_id).order_by(
        (stored.c.raw + stored.c.parsed).desc(), stored.c.user_id
    )


def _stored(row: Any) -> StorageUsage:
    return StorageUsage(raw=int(row.raw), parsed=int(row.parsed))
