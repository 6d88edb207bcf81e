"""Users and their API tokens. The caller owns the transaction.

A token is shown once, when it is created; only its SHA-256 is stored. It has 256 random bits, so a
plain hash is enough: there is nothing to guess that salt or slowness would make harder.
"""

from __future__ import annotations

import random
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Self
from uuid import UUID

from sqlalchemy import Connection, CursorResult, Row, Select, bindparam, insert, or_, select, update

from fonds import ids
from fonds.errors import UsageError
from fonds.stores.database import insert_ignoring
from fonds.stores.tables import api_tokens, users

Scope = Literal["user", "admin", "service"]

MAX_NAME_LENGTH: Final = 200
_PREFIX: Final = "fonds_"
_BYTES: Final = 32
_SHAPE: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_token: Final = api_tokens.c
_columns: Final = (
    _token.id,
    _token.user_id,
    users.c.name.label("user_name"),
    _token.label,
    _token.scope,
    _token.created_at,
    _token.expires_at,
    _token.revoked_at,
)
_joined: Final[Select[Any]] = select(*_columns).join(users, users.c.id == _token.user_id)

# Building a statement takes longer than executing it, and every request needs one.
_BY_HASH: Final = _joined.where(_token.token_sha256 == bindparam("sha256"))
_BY_ID: Final = _joined.where(_token.id == bindparam("token"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A token, without its secret."""

    id: UUID
    user_id: UUID
    user_name: str
    label: str
    """Its purpose, in its user's words."""
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The token of a row that has all the columns."""
        return cls(**row._asdict())

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The user that sent a request, by a token."""

    user_id: UUID
    user_name: str
    scope: Scope
    token_id: UUID


# Users ------------------------------------------------------------------------------------


def user_by_name(connection: Connection, name: str) -> UUID | None:
    """The user of that name."""
    if _UNPRINTABLE.search(name):  # PostgreSQL refuses some of these in any text
        return None
    return connection.scalar(select(users.c.id).where(users.c.name == name))


def ensure_user(connection: Connection, name: str, *, now: datetime, rng: random.Random) -> UUID:
    """The user of that name, created if there is none."""
    if not name.strip() or name != name.strip() or _UNPRINTABLE.search(name):
        raise UsageError(
            f"{name!r} is not a valid name of a user: give one line without spaces around it"
        )
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(f"the name of a user has at most {MAX_NAME_LENGTH} characters")
    if (user_id := user_by_name(connection, name)) is not None:
        return user_id
    row = {"id": _new_id(rng), "name": name, "created_at": now}
    insert_ignoring(connection, users, [row])  # another process may have been first
    user_id = user_by_name(connection, name)
    assert user_id is not None
    return user_id


# Tokens -----------------------------------------------------------------------------------


def create_token(
    connection: Connection,
    *,
    user: str,
    label: str,
    scope: Scope,
    now: datetime,
    rng: random.Random,
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """Create a token and, if needed, its user. Returns the secret too, which is stored nowhere."""
    if len(label) > MAX_NAME_LENGTH or _UNPRINTABLE.search(label):
        raise UsageError(f"a label is one line of at most {MAX_NAME_LENGTH} characters")
    user_id = ensure_user(connection, user, now=now, rng=rng)
    # Ids come from the random seam, which may be seeded; a secret never does.
    secret = f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"
    token_id = _new_id(rng)
    row = {
        "id": token_id,
        "user_id": user_id,
        "label": label,
        "scope": scope,
        "token_sha256": ids.text_sha256(secret),
        "created_at": now,
        "expires_at": expires_at,
    }
    connection.execute(insert(api_tokens), [row])
    created = connection.execute(_joined.where(_token.id == token_id)).one()
    return Token.from_row(created), secret


def list_tokens(connection: Connection) -> list[Token]:
    """All tokens, revoked ones included, by user, the oldest first."""
    ordered = _joined.order_by(users.c.name, _token.created_at, _token.id)
    return [Token.from_row(row) for row in connection.execute(ordered)]


def has_valid_token(connection: Connection, now: datetime) -> bool:
    """Whether any token is neither revoked nor expired."""
    unexpired = or_(_token.expires_at.is_(None), _token.expires_at > now)
    query = select(_token.id).where(_token.revoked_at.is_(None), unexpired)
    return connection.scalar(query.limit(1)) is not None


def revoke_token(connection: Connection, name: str, now: datetime) -> Token:
    """Revoke a token, named by its id or by a prefix that no other id has."""
    prefix = name.lower()
    matches = [token for token in list_tokens(connection) if str(token.id).startswith(prefix)]
    if len(matches) != 1 or not name:
        count = f"{len(matches)} tokens" if matches else "no token"
        raise UsageError(f"{count} with an id that begins with {name!r}; see `fonds token list`")
    same = _token.id == matches[0].id
    ended = update(api_tokens).where(same, _token.revoked_at.is_(None)).values(revoked_at=now)
    connection.execute(ended)
    return Token.from_row(connection.execute(_joined.where(same)).one())


def authenticate(connection: Connection, secret: str, now: datetime) -> Caller | None:
    """The user of a token; None if it is unknown, revoked or expired."""
    # Another text is not a token, and may be one that a database refuses.
    if _SHAPE.fullmatch(secret) is None:
        return None
    # The time of the lookup depends on the hash only, from which no token can be derived.
    return _caller(connection.execute(_BY_HASH, {"sha256": ids.text_sha256(secret)}), now)


def caller_of_token(connection: Connection, token_id: UUID, now: datetime) -> Caller | None:
    """The user of the token with an id; None if it is revoked or expired."""
    return _caller(connection.execute(_BY_ID, {"token": token_id}), now)


def _caller(result: CursorResult[Any], now: datetime) -> Caller | None:
    row = result.one_or_none()
    if row is None or not (token := Token.from_row(row)).is_valid(now):
        return None
    return Caller(
        user_id=token.user_id,
        user_name=token.user_name,
        scope=token.scope,
        token_id=token.id,
    )


def _new_id(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128), version=4)
