"""`Idempotency-Key`: a request repeated with the same key is executed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Header, Request
from sqlalchemy import Connection, Row, and_, delete, select, update
from starlette.responses import JSONResponse

from fonds import ids
from fonds.api.dependencies import AppState
from fonds.api.problems import MEDIA_TYPE, ProblemError, error_text
from fonds.stores.database import Database, insert_into
from fonds.stores.tables import idempotency_keys

REPLAY_FOR: Final = timedelta(hours=24)
"""How long a stored response is repeated."""
ABANDONED: Final = timedelta(minutes=1)
"""A request in progress for longer has ended with its process."""
REPLAYED: Final = {"Idempotency-Replayed": "true"}

_TRANSIENT: Final = frozenset({409, 425, 429})
"""Statuses that are not stored, since the next try may succeed."""
_BATCH_SIZE: Final = 1000
_CLIENT_ERRORS: Final = 400
_SERVER_ERRORS: Final = 500

_key: Final = idempotency_keys.c

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="A request repeated with this key within 24 hours is executed once.",
        examples=["4f1c7b52-7f0c-4c67-a7a4-0ef1f2a4b0f6"],
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredResponse:
    """A response as it is stored."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _RequestRow:
    """The row of a request in progress, unique by key and start."""

    user_id: UUID
    key: str
    since: datetime


def once(
    app: AppState,
    request: Request,
    user_id: UUID,
    key: str | None,
    work: Callable[[], StoredResponse],
    *,
    content: Any = None,
) -> tuple[StoredResponse, bool]:
    """Run `work`, or return its stored response; the flag says whether it was stored.

    A key is valid for one request: method, path and `content` must be the same.
    """
    if key is None:
        return work(), False
    path: str = request.scope["path"]
    database, now = app.library.database, app.now()
    request_sha256 = ids.json_sha256([request.method, path, content])
    with database.write() as connection:
        claimed = _claim(
            connection, _RequestRow(user_id=user_id, key=key, since=now), request_sha256
        )
    if isinstance(claimed, StoredResponse):
        return claimed, True
    try:
        response = work()
    except Exception as error:
        _finish(database, claimed, _error_to_store(error, path))
        raise
    _finish(database, claimed, response)
    return response, False


def respond(
    stored: StoredResponse, *, is_replayed: bool, headers: Mapping[str, str]
) -> JSONResponse:
    """The HTTP response, marked if it is a repetition."""
    is_problem = stored.status >= _CLIENT_ERRORS
    return JSONResponse(
        dict(stored.body),
        stored.status,
        headers={**({} if is_problem else headers), **(REPLAYED if is_replayed else {})},
        media_type=MEDIA_TYPE if is_problem else None,
    )


def _claim(
    connection: Connection, row: _RequestRow, request_sha256: str
) -> StoredResponse | _RequestRow:
    """Insert the row of a request; the stored response if it was already executed."""
    same = and_(_key.user_id == row.user_id, _key.key == row.key)
    # The row of a request whose process was killed expires after a minute.
    abandoned = and_(same, _key.status.is_(None), _key.created_at < row.since - ABANDONED)
    connection.execute(delete(idempotency_keys).where(abandoned))
    _delete_expired(connection, row.since - REPLAY_FOR)
    insert = insert_into(idempotency_keys, connection.dialect.name).values(
        user_id=row.user_id, key=row.key, request_sha256=request_sha256, created_at=row.since
    )
    inserted = connection.execute(insert.on_conflict_do_nothing().returning(_key.key)).one_or_none()
    if inserted is not None:
        return row
    existing = connection.execute(select(idempotency_keys).where(same)).one_or_none()
    return _stored_response(existing, request_sha256)


def _delete_expired(connection: Connection, before: datetime) -> None:
    # Other processes may be deleting the same rows.
    old = select(_key.key).where(_key.created_at < before).limit(_BATCH_SIZE)
    unlocked = _key.key.in_(old.with_for_update(skip_locked=True))
    connection.execute(delete(idempotency_keys).where(_key.created_at < before, unlocked))


def _stored_response(row: Row[Any] | None, request_sha256: str) -> StoredResponse:
    if row is not None and row.request_sha256 != request_sha256:
        raise ProblemError(
            422, "key-reused", "this Idempotency-Key was used for another request; send a new one"
        )
    if row is None or row.status is None:
        raise ProblemError(
            409,
            "in-progress",
            "the first request with this Idempotency-Key is still in progress; try again",
            headers={"Retry-After": "1"},
        )
    return StoredResponse(status=row.status, body=row.answer)


def _error_to_store(error: Exception, path: str) -> StoredResponse | None:
    text = error_text(error)
    return None if text is None else StoredResponse(status=text.status, body=text.content(path))


def _finish(database: Database, row: _RequestRow, response: StoredResponse | None) -> None:
    """Store a final response; after a transient error, delete the row for the next try."""
    own = and_(
        _key.user_id == row.user_id,
        _key.key == row.key,
        _key.created_at == row.since,
        _key.status.is_(None),
    )
    is_final = (
        response is not None
        and response.status < _SERVER_ERRORS
        and response.status not in _TRANSIENT
    )
    with database.write() as connection:
        if response is None or not is_final:
            connection.execute(delete(idempotency_keys).where(own))
        else:
            values = {"status": response.status, "answer": dict(response.body)}
            connection.execute(update(idempotency_keys).where(own).values(values))
