"""Users and their tokens, on every database."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, event, select, text
from tests.support import servers

from fonds.errors import UsageError
from fonds.seams import Seams
from fonds.stores.database import Database, open_database
from fonds.stores.tables import api_tokens, users
from fonds.uploads.users import (
    MAX_NAME_LENGTH,
    Token,
    authenticate,
    create_token,
    has_valid_token,
    list_tokens,
    revoke_token,
    user_by_name,
)

NOW = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_database")
    else:
        shutil.copyfile(servers.sqlite_template(), tmp_path / "fonds.db")
        address = f"sqlite:///{tmp_path / 'fonds.db'}"
    opened = open_database(address, seams=Seams())
    yield opened
    opened.close()


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with database.write() as opened:
        yield opened


def made(connection: Connection, user: str = "maria", **given: Any) -> tuple[Token, str]:
    known: dict[str, Any] = {"label": "laptop", "scope": "user", "now": NOW}
    chance = random.Random(given.pop("seed", None))
    return create_token(connection, user=user, rng=chance, **{**known, **given})


def test_secret_lets_its_user_in(connection: Connection) -> None:
    token, secret = made(connection, scope="admin")
    assert re.fullmatch(r"fonds_[A-Za-z0-9_-]{43}", secret)
    caller = authenticate(connection, secret, NOW)
    assert caller is not None
    assert (caller.user_id, caller.user_name) == (token.user_id, "maria")
    assert (caller.scope, caller.token_id) == ("admin", token.id)
    assert user_by_name(connection, "maria") == caller.user_id


def test_only_the_hash_of_a_secret_is_stored(connection: Connection) -> None:
    _, secret = made(connection)
    rows = [tuple(map(str, row)) for row in connection.execute(select(api_tokens))]
    rows += [tuple(map(str, row)) for row in connection.execute(select(users))]
    stored = " ".join(" ".join(row) for row in rows)
    assert secret.removeprefix("fonds_") not in stored
    assert sha256(secret.encode()).hexdigest() in stored


def test_secret_does_not_come_from_seeded_chance(connection: Connection) -> None:
    one, first = made(connection, seed=1)
    connection.execute(text("DELETE FROM api_tokens"))
    again, second = made(connection, seed=1, now=NOW + DAY)
    assert first != second
    assert one.user_id == again.user_id


def test_second_token_is_of_the_same_user(connection: Connection) -> None:
    one, first = made(connection)
    other, second = made(connection, scope="service", now=NOW + DAY)
    assert one.user_id == other.user_id
    assert one.id != other.id
    assert first != second
    assert [token.scope for token in list_tokens(connection)] == ["user", "service"]


def test_token_of_one_user_is_not_another(connection: Connection) -> None:
    _, secret = made(connection, "maria")
    other, _ = made(connection, "bob")
    caller = authenticate(connection, secret, NOW)
    assert caller is not None
    assert caller.user_id != other.user_id


@pytest.mark.parametrize(
    "secret",
    ["", "fonds_", "nonsense", "fonds_" + "a" * 43, "fonds_" + "a" * 42 + "\0", "é" * 49, "\ud800"],
)
def test_wrong_secret_lets_nobody_in(connection: Connection, secret: str) -> None:
    made(connection)
    assert authenticate(connection, secret, NOW) is None


def test_near_misses_let_nobody_in(connection: Connection) -> None:
    _, secret = made(connection)
    hashed = sha256(secret.encode()).hexdigest()
    for wrong in (secret[:-1], f"{secret}a", secret.upper(), f" {secret}", f"{secret}\n", hashed):
        assert authenticate(connection, wrong, NOW) is None


def test_expired_token_lets_nobody_in(connection: Connection) -> None:
    _, secret = made(connection, expires_at=NOW + DAY)
    assert authenticate(connection, secret, NOW + DAY - timedelta(milliseconds=1)) is not None
    assert has_valid_token(connection, NOW)
    assert authenticate(connection, secret, NOW + DAY) is None
    assert not has_valid_token(connection, NOW + DAY)


def test_revoked_token_lets_nobody_in_and_others_go_on(connection: Connection) -> None:
    gone, first = made(connection)
    _, second = made(connection)
    ended = revoke_token(connection, str(gone.id), NOW + DAY)
    assert ended.revoked_at == NOW + DAY
    assert authenticate(connection, first, NOW) is None
    assert authenticate(connection, second, NOW) is not None
    assert revoke_token(connection, str(gone.id), NOW + 2 * DAY).revoked_at == NOW + DAY


def test_token_is_revoked_by_an_unambiguous_beginning(connection: Connection) -> None:
    one, _ = made(connection, seed=1)
    other, _ = made(connection, "bob", seed=2)
    ended = revoke_token(connection, str(one.id)[:8].upper(), NOW)
    assert ended.id == one.id
    left = [token.id for token in list_tokens(connection) if token.is_valid(NOW)]
    assert left == [other.id]


@pytest.mark.parametrize("name", ["", "zz", "\0", "%"])
def test_token_that_is_not_named_clearly_is_not_revoked(connection: Connection, name: str) -> None:
    made(connection)
    with pytest.raises(UsageError, match="fonds token list"):
        revoke_token(connection, name, NOW)
    assert has_valid_token(connection, NOW)


def test_ambiguous_beginning_revokes_nothing(connection: Connection) -> None:
    tokens = [made(connection, seed=seed)[0] for seed in range(17)]
    starts = [str(token.id)[0] for token in tokens]
    shared = next(start for start in starts if starts.count(start) > 1)
    with pytest.raises(UsageError, match=f"{starts.count(shared)} tokens"):
        revoke_token(connection, shared, NOW)
    assert all(token.is_valid(NOW) for token in list_tokens(connection))


@pytest.mark.parametrize(
    "name",
    ["", " ", " maria", "maria ", "ma\nria", "ma\0ria", "\ud800", "m" * (MAX_NAME_LENGTH + 1)],
)
def test_name_that_is_none_makes_no_user(connection: Connection, name: str) -> None:
    with pytest.raises(UsageError):
        made(connection, name)
    assert user_by_name(connection, name) is None
    assert connection.scalars(select(users.c.id)).all() == []


def test_label_is_one_line(connection: Connection) -> None:
    with pytest.raises(UsageError, match="label"):
        made(connection, label="a\nb")


def test_unknown_user_is_nobody(connection: Connection) -> None:
    assert user_by_name(connection, "nobody") is None
    assert not has_valid_token(connection, NOW)
    assert list_tokens(connection) == []


def test_authentication_is_one_statement(database: Database) -> None:
    with database.write() as connection:
        _, secret = made(connection)
    statements: list[str] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )
    with database.read() as connection:
        begun = len(statements)
        assert authenticate(connection, secret, NOW) is not None
        assert len(statements) == begun + 1
        assert authenticate(connection, "fonds_nonsense", NOW) is None
        assert len(statements) == begun + 1


def test_ids_come_from_the_seam_of_chance(connection: Connection) -> None:
    token, _ = made(connection, seed=7)
    drawn = random.Random(7)
    expected = [UUID(int=drawn.getrandbits(128), version=4) for _ in range(2)]
    assert [token.user_id, token.id] == expected
