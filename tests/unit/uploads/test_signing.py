"""Addresses of our own: what is signed is allowed, for a while, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.libraries.uploads import upload_library

from fonds.errors import AddressRefusedError, SettingsError
from fonds.settings import Settings
from fonds.stores.blobs import Method
from fonds.stores.database import Database
from fonds.stores.server_values import SERVER_SECRET, read_value
from fonds.uploads.signing import SECRET_BYTES, Signer, server_secret

SECRET = b"a secret of this test, long enough"
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
EXPIRES = int(NOW.timestamp()) + 300
KEY = "incoming/user/job"


def signature_of(query: str) -> str:
    return parse_qs(query)["signature"][0]


def refusal(
    *,
    signature: str,
    method: Method = "PUT",
    key: str = KEY,
    expires: int = EXPIRES,
    now: datetime = NOW,
    filename: str | None = None,
    secret: bytes = SECRET,
) -> str | None:
    try:
        Signer(secret).check(method, key, expires, signature, now, filename=filename)
    except AddressRefusedError as error:
        return error.kind
    return None


SIGNATURE = signature_of(Signer(SECRET).sign("PUT", KEY, EXPIRES))


def test_what_was_signed_is_allowed_until_its_time_is_over() -> None:
    assert refusal(signature=SIGNATURE) is None
    assert refusal(signature=SIGNATURE, now=NOW + timedelta(seconds=299.999)) is None
    assert refusal(signature=SIGNATURE, now=NOW + timedelta(seconds=300)) == "expired"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"},
        {"key": "incoming/user/other"},
        {"key": "incoming/user/job/x"},
        {"expires": EXPIRES + 1},
        {"filename": "policy.pdf"},
        {"filename": ""},
        {"secret": b"another secret, which is as long"},
        {"signature": ""},
        {"signature": "é"},
        {"signature": "\ud800"},
        {"signature": SIGNATURE + "="},
        {"signature": SIGNATURE.lower()},
    ],
)
def test_nothing_else_is_allowed_by_it(change: dict[str, Any]) -> None:
    assert refusal(**{"signature": SIGNATURE, **change}) == "bad-signature"


def test_expiry_that_was_moved_is_a_forgery_and_not_merely_late() -> None:
    late = NOW + timedelta(hours=1)
    assert refusal(signature=SIGNATURE, expires=EXPIRES + 9999, now=late) == "bad-signature"


def test_name_of_the_file_is_signed_and_travels_along() -> None:
    query = Signer(SECRET).sign("GET", KEY, EXPIRES, filename="Police & Bedingungen é.pdf")
    fields = parse_qs(query)
    assert fields["expires"] == [str(EXPIRES)]
    assert fields["filename"] == ["Police & Bedingungen é.pdf"]
    told = refusal(method="GET", signature=fields["signature"][0], filename=fields["filename"][0])
    assert told is None
    assert refusal(method="GET", signature=fields["signature"][0]) == "bad-signature"


fields_ = st.tuples(
    st.sampled_from(["GET", "PUT"]),
    st.text(max_size=12),
    st.integers(0, 2**40),
    st.none() | st.text(max_size=12),
)


@given(one=fields_, other=fields_)
def test_two_different_permissions_never_share_a_signature(one: Any, other: Any) -> None:
    signer = Signer(SECRET)
    first = signature_of(signer.sign(*one[:3], filename=one[3]))
    second = signature_of(signer.sign(*other[:3], filename=other[3]))
    assert (first == second) == (one == other)


@given(place=st.integers(0, len(SIGNATURE) - 1), bit=st.integers(0, 6))
def test_signature_with_one_changed_bit_is_refused(place: int, bit: int) -> None:
    changed = bytearray(SIGNATURE.encode())
    changed[place] ^= 1 << bit
    assert refusal(signature=changed.decode()) == "bad-signature"


def test_refusal_shows_neither_secret_nor_signature() -> None:
    with pytest.raises(AddressRefusedError) as refused:
        Signer(SECRET).check("PUT", KEY, EXPIRES, "x", NOW)
    assert SIGNATURE not in str(refused.value)
    assert SECRET.decode() not in str(refused.value)


# The secret ---------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with upload_library(tmp_path) as library:
        yield library.database


def test_secret_that_is_set_is_taken(tmp_path: Path, database: Database) -> None:
    settings = Settings(home=tmp_path, server_secret="sixteen bytes or more")
    assert server_secret(settings, database, NOW) == b"sixteen bytes or more"
    with database.read() as connection:
        assert read_value(connection, SERVER_SECRET) is None


def test_secret_that_is_easily_guessed_is_refused(tmp_path: Path, database: Database) -> None:
    settings = Settings(home=tmp_path, server_secret="hush")
    with pytest.raises(SettingsError, match="FONDS_SERVER_SECRET") as refused:
        Signer(server_secret(settings, database, NOW))
    assert "hush" not in str(refused.value)


def test_secret_is_made_once_and_kept_in_the_database(tmp_path: Path, database: Database) -> None:
    first = server_secret(Settings(home=tmp_path), database, NOW)
    assert len(first) == SECRET_BYTES
    assert server_secret(Settings(home=tmp_path / "other"), database, NOW) == first
    with upload_library(tmp_path / "second") as second:
        assert server_secret(second.settings, second.database, NOW) != first


def test_racing_processes_end_up_with_one_secret(tmp_path: Path, database: Database) -> None:
    settings = Settings(home=tmp_path)
    with ThreadPoolExecutor(8) as executor:
        made = list(executor.map(lambda _: server_secret(settings, database, NOW), range(8)))
    assert len(set(made)) == 1
