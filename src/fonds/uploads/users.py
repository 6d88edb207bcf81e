"""Users, and the API tokens by which they are known. The caller owns the transaction.

A token is shown once, when it is made; only its SHA-256 is stored. It has 256 random bits, so a
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

LONGEST_NAME: Final = 200
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

# Building it takes longer than the database takes to answer it, and every request asks it.
_BY_HASH: Final = _joined.where(_token.token_sha256 == bindparam("sha256"))
_BY_ID: Final = _joined.where(_token.id == bindparam("token"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """What is known of a token; the secret is not."""

    id: UUID
    user_id: UUID
    user_name: str
    label: str
    """What it is for."""
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The token of a row that has all the columns."""
        return cls(**row._asdict())

    def is_valid(self, now: datetime) -> bool:
        """Whether it lets anybody in."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who sent a request."""

    user_id: UUID
    user_name: str
    scope: Scope
    token_id: UUID


# Users ------------------------------------------------------------------------------------


def user_named(connection: Connection, name: str) -> UUID | None:
    """The user of that name."""
    known = _UNPRINTABLE.search(name) is None  # PostgreSQL refuses some of these in any text
    return connection.scalar(select(users.c.id).where(users.c.name == name)) if known else None


def ensure_user(connection: Connection, name: str, *, now: datetime, chance: random.Random) -> UUID:
    """The user of that name, made if there is none."""
    if not name.strip() or name != name.strip() or _UNPRINTABLE.search(name):
        raise UsageError(f"{name!r} is no name for a user: give one line without spaces around it")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"the name of a user has at most {LONGEST_NAME} characters")
    if (known := user_named(connection, name)) is not None:
        return known
    row = {"id": _new_id(chance), "name": name, "created_at": now}
    insert_ignoring(connection, users, [row])  # another process may have been first
    made = user_named(connection, name)
    assert made is not None
    return made


# Tokens -----------------------------------------------------------------------------------


def create_token(
    connection: Connection,
    *,
    user: str,
    label: str,
    scope: Scope,
    now: datetime,
    chance: random.Random,
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """A token for a user, who is made if there is none, and its secret, which is kept nowhere."""
    if len(label) > LONGEST_NAME or _UNPRINTABLE.search(label):
        raise UsageError(f"a label is one line of at most {LONGEST_NAME} characters")
    user_id = ensure_user(connection, user, now=now, chance=chance)
    # Identities come from the seam of chance, which may be seeded; what must be secret never does.
    secret = f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"
    token_id = _new_id(chance)
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
    made = connection.execute(_joined.where(_token.id == token_id)).one()
    return Token.from_row(made), secret


def list_tokens(connection: Connection) -> list[Token]:
    """All tokens there ever were, by user, the oldest first."""
    ordered = _joined.order_by(users.c.name, _token.created_at, _token.id)
    return [Token.from_row(row) for row in connection.execute(ordered)]


def has_valid_token(connection: Connection, now: datetime) -> bool:
    """Whether anybody could be let in."""
    unexpired = or_(_token.expires_at.is_(None), _token.expires_at > now)
    query = select(_token.id).where(_token.revoked_at.is_(None), unexpired)
    return connection.scalar(query.limit(1)) is not None


def revoke_token(connection: Connection, name: str, now: datetime) -> Token:
    """End a token, named by its id or by a beginning of it that no other has."""
    known = [each for each in list_tokens(connection) if str(each.id).startswith(name.lower())]
    if len(known) != 1 or not name:
        what = "no token" if not known else f"{len(known)} tokens"
        raise UsageError(f"{what} with an id that begins with {name!r}; see `fonds token list`")
    same = _token.id == known[0].id
    ended = update(api_tokens).where(same, _token.revoked_at.is_(None)).values(revoked_at=now)
    connection.execute(ended)
    return Token.from_row(connection.execute(_joined.where(same)).one())


def authenticate(connection: Connection, secret: str, now: datetime) -> Caller | None:
    """Who a token belongs to; None if it is wrong, revoked or out of date."""
    # What has another shape is no token, and need not be one that a database takes.
    if _SHAPE.fullmatch(secret) is None:
        return None
    # Looked up by its hash: how long that takes tells of the hash, which helps nobody to a token.
    return _caller(connection.execute(_BY_HASH, {"sha256": ids.text_sha256(secret)}), now)


def caller_of_token(connection: Connection, token_id: UUID, now: datetime) -> Caller | None:
    """Whose token has an id; None if it is revoked or out of date."""
    return _caller(connection.execute(_BY_ID, {"token": token_id}), now)


def _caller(found: CursorResult[Any], now: datetime) -> Caller | None:
    row = found.one_or_none()
    if row is None or not (token := Token.from_row(row)).is_valid(now):
        return None
    return Caller(
        user_id=token.user_id,
        user_name=token.user_name,
        scope=token.scope,
        token_id=token.id,
    )


def _new_id(chance: random.Random) -> UUID:
    return UUID(int=chance.getrandbits(128), version=4)
