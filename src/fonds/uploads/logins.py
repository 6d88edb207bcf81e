"""Sessions of browsers, and the limit of failed logins, which all servers of a library share.

A browser keeps a random value, of which only the SHA-256 is stored: a copy of the database is not
enough to log in. The row names the token of the login, which is looked up at each request, so
that revoking a token ends its sessions.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, update

from fonds import ids
from fonds.stores.database import Database, insert_ignoring
from fonds.stores.tables import login_limits, login_sessions
from fonds.uploads.users import Caller, caller_of_token

SESSION_LIFETIME: Final = timedelta(hours=12)
FAILED_LOGINS: Final = 5
"""Failed logins of one client that are processed at once."""
SECONDS_PER_LOGIN: Final = 12.0
"""Seconds after which a client that used them up has one more."""

_RECOVERY: Final = timedelta(seconds=FAILED_LOGINS * SECONDS_PER_LOGIN)
_BATCH_SIZE: Final = 100
_session: Final = login_sessions.c
_limit: Final = login_limits.c


def start_session(connection: Connection, token_id: UUID, now: datetime) -> str:
    """Log in with a token: the value for the browser to send."""
    _delete_some(connection, login_sessions, _session.expires_at <= now)
    session = secrets.token_urlsafe(32)
    row = {
        "session_sha256": ids.text_sha256(session),
        "token_id": token_id,
        "created_at": now,
        "expires_at": now + SESSION_LIFETIME,
    }
    connection.execute(insert(login_sessions), [row])
    return session


def end_session(connection: Connection, session: str) -> None:
    """Log out: the value is of no use from now on."""
    same = _session.session_sha256 == ids.text_sha256(session)
    connection.execute(delete(login_sessions).where(same))


def caller_of_session(connection: Connection, session: str, now: datetime) -> Caller | None:
    """The logged-in user; None after logging out, after its time, or without its token."""
    same = _session.session_sha256 == ids.text_sha256(session)
    query = select(_session.token_id).where(same, _session.expires_at > now)
    token_id = connection.scalar(query)
    return None if token_id is None else caller_of_token(connection, token_id, now)


def count_failed_login(database: Database, client: str, now: datetime) -> float:
    """Count a failed login: 0, or the seconds to wait if the client has none left."""
    # A client that does not stop is refused by reading alone.
    with database.read() as connection:
        row = connection.execute(select(login_limits).where(_limit.client == client)).one_or_none()
    if row is not None and (wait := _wait(_remaining(row, now))):
        return wait
    with database.write() as connection:
        _delete_some(connection, login_limits, _limit.updated_at < now - _RECOVERY)
        new = {"client": client, "remaining": FAILED_LOGINS, "updated_at": now}
        insert_ignoring(connection, login_limits, [new])
        query = select(login_limits).where(_limit.client == client).with_for_update()
        remaining = _remaining(connection.execute(query).one(), now)
        if wait := _wait(remaining):
            return wait
        counted = {"remaining": remaining - 1, "updated_at": now}
        connection.execute(update(login_limits).where(_limit.client == client).values(counted))
    return 0.0


def _remaining(row: Any, now: datetime) -> float:
    elapsed = max(0.0, (now - row.updated_at).total_seconds())
    return float(min(FAILED_LOGINS, row.remaining + elapsed / SECONDS_PER_LOGIN))


def _wait(remaining: float) -> float:
    return 0.0 if remaining >= 1 else (1 - remaining) * SECONDS_PER_LOGIN


def _delete_some(connection: Connection, table: Table, past: ColumnElement[bool]) -> None:
    # Other processes may be deleting the same rows.
    (key,) = table.primary_key
    some = select(key).where(past).limit(_BATCH_SIZE).with_for_update(skip_locked=True)
    connection.execute(delete(table).where(past, key.in_(some)))
