"""`Idempotency-Key`: a request that is sent twice with one key is answered twice, and done once."""

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
from fonds.api.problems import MEDIA_TYPE, ErrorText, ProblemError, told
from fonds.stores.database import Database, insert_into
from fonds.stores.tables import idempotency_keys

KEPT: Final = timedelta(hours=24)
"""How long an answer is repeated."""
ABANDONED: Final = timedelta(minutes=1)
"""A request that is under way for so long has died with its process."""
REPLAYED: Final = {"Idempotency-Replayed": "true"}

_PASSING: Final = frozenset({409, 425, 429})
"""Answers that say `not now`: the next try may fare better."""
_AT_ONCE: Final = 1000
_CLIENT_ERRORS: Final = 400
_SERVER_ERRORS: Final = 500

_key: Final = idempotency_keys.c

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="The same key and request within 24 hours give the same answer, done once.",
        examples=["4f1c7b52-7f0c-4c67-a7a4-0ef1f2a4b0f6"],
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredResponse:
    """What a request is answered with, as it can be kept."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _RequestRow:
    """The row of a request that is under way; nobody else has one with this key and moment."""

    user_id: UUID
    key: str
    since: datetime


def once(
    desk: AppState,
    request: Request,
    user_id: UUID,
    key: str | None,
    work: Callable[[], StoredResponse],
    *,
    asked: Any = None,
) -> tuple[StoredResponse, bool]:
    """Do the work, or find the answer it had before; says whether it was found.

    `asked` is what the body says: with one key, only one thing may be asked.
    """
    if key is None:
        return work(), False
    path: str = request.scope["path"]
    database, now = desk.library.database, desk.now()
    what = ids.json_sha256([request.method, path, asked])
    with database.write() as connection:
        held = _take(connection, _RequestRow(user_id=user_id, key=key, since=now), what)
    if isinstance(held, StoredResponse):
        return held, True
    try:
        answer = work()
    except Exception as error:
        known = told(error)
        _settle(database, held, _kept(known, path))
        raise
    _settle(database, held, answer)
    return answer, False


def respond(
    answer: StoredResponse, *, is_replayed: bool, headers: Mapping[str, str]
) -> JSONResponse:
    """The answer as it is sent, marked where it is a repetition."""
    is_problem = answer.status >= _CLIENT_ERRORS
    return JSONResponse(
        dict(answer.body),
        answer.status,
        headers={**({} if is_problem else headers), **(REPLAYED if is_replayed else {})},
        media_type=MEDIA_TYPE if is_problem else None,
    )


def _take(connection: Connection, place: _RequestRow, what: str) -> StoredResponse | _RequestRow:
    """A place for the request, or the answer it had; refused while another has the place."""
    same = and_(_key.user_id == place.user_id, _key.key == place.key)
    # A request that died in between leaves its place to whoever comes a minute later.
    died = and_(same, _key.status.is_(None), _key.created_at < place.since - ABANDONED)
    connection.execute(delete(idempotency_keys).where(died))
    _forget(connection, place.since - KEPT)
    row = insert_into(idempotency_keys, connection.dialect.name).values(
        user_id=place.user_id, key=place.key, request_sha256=what, created_at=place.since
    )
    made = connection.execute(row.on_conflict_do_nothing().returning(_key.key)).one_or_none()
    if made is not None:
        return place
    return _earlier(connection.execute(select(idempotency_keys).where(same)).one_or_none(), what)


def _forget(connection: Connection, before: datetime) -> None:
    # Others may be forgetting the same ones.
    old = select(_key.key).where(_key.created_at < before).limit(_AT_ONCE)
    found = _key.key.in_(old.with_for_update(skip_locked=True))
    connection.execute(delete(idempotency_keys).where(_key.created_at < before, found))


def _earlier(row: Row[Any] | None, what: str) -> StoredResponse:
    if row is not None and row.request_sha256 != what:
        raise ProblemError(
            422, "key-reused", "this Idempotency-Key was sent with another request; take a new one"
        )
    if row is None or row.status is None:
        raise ProblemError(
            409,
            "in-progress",
            "the first request with this Idempotency-Key is still under way",
            headers={"Retry-After": "1"},
        )
    return StoredResponse(status=row.status, body=row.answer)


def _kept(known: ErrorText | None, path: str) -> StoredResponse | None:
    return StoredResponse(status=known.status, body=known.body(path)) if known is not None else None


def _settle(database: Database, place: _RequestRow, answer: StoredResponse | None) -> None:
    """Keep an answer that will stay true; any other leaves the place to the next try."""
    ours = and_(
        _key.user_id == place.user_id,
        _key.key == place.key,
        _key.created_at == place.since,
        _key.status.is_(None),
    )
    is_lasting = (
        answer is not None and answer.status < _SERVER_ERRORS and answer.status not in _PASSING
    )
    with database.write() as connection:
        if answer is None or not is_lasting:
            connection.execute(delete(idempotency_keys).where(ours))
        else:
            values = {"status": answer.status, "answer": dict(answer.body)}
            connection.execute(update(idempotency_keys).where(ours).values(values))
