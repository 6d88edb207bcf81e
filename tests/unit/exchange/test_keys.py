"""Keys that sign bundles: kept to their owner, replaced without losing the old ones."""

from __future__ import annotations

import dataclasses
import stat
from pathlib import Path
from typing import Any

import pytest

from fonds.errors import BundleError, UsageError
from fonds.exchange.bundle.statement import STATEMENT, Statement, read_statement, to_bytes
from fonds.exchange.keys import KeyFolder, SigningKey, is_signed
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import Blobs, open_blobs
from fonds.testing import ManualClock


def folder(home: Path, **settings: str) -> KeyFolder:
    return KeyFolder(Settings(home=home, **settings), ManualClock())  # type: ignore[arg-type]


def statement(**fields: object) -> Statement:
    stated: dict[str, object] = {
        "root": "1" * 64,
        "raw": None,
        "made_at": "2026-03-04T15:00:00.000Z",
        "waiting": {},
    }
    return Statement(**{**stated, **fields})  # type: ignore[arg-type]


def stored(made: Statement) -> Blobs:
    blobs = open_blobs("memory://", seams=Seams())
    blobs.put(STATEMENT, to_bytes(made))
    return blobs


def test_private_key_is_for_its_owner_alone_and_signs(tmp_path: Path) -> None:
    keys = folder(tmp_path)
    public = keys.create().key
    assert stat.S_IMODE((tmp_path / "keys" / "signing.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    signature = keys.signing_key().sign(b"words")
    assert is_signed(b"words", signature, public)
    assert not is_signed(b"other words", signature, public)
    assert not is_signed(b"words", signature, SigningKey.generate().public)
    assert not is_signed(b"words", "no base64", public)


def test_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    keys = folder(tmp_path)
    keys.create()
    (tmp_path / "keys" / "signing.key").chmod(0o644)
    with pytest.raises(UsageError, match="others can read"):
        keys.signing_key()


def test_second_key_is_not_created_over_the_first(tmp_path: Path) -> None:
    keys = folder(tmp_path)
    first = keys.create()
    with pytest.raises(UsageError, match="rotate"):
        keys.create()
    assert keys.signing_key().public == first.key


def test_rotation_keeps_old_public_keys_and_the_old_key_signs_the_new(tmp_path: Path) -> None:
    keys = folder(tmp_path)
    owned = [keys.create(), keys.rotate(), keys.rotate()]
    assert [key.key for key in keys.public().own] == [key.key for key in owned]
    assert keys.public().current == owned[-1]
    assert keys.signing_key().public == owned[-1].key
    made = statement().sign(keys.signing_key(), keys.endorsements())
    assert made.is_successor_of(owned[0].key)
    assert not made.is_successor_of(SigningKey.generate().public)
    forged = [{**each, "signature": "AAAA"} for each in keys.endorsements()]
    assert not statement().sign(keys.signing_key(), forged).is_successor_of(owned[0].key)


def test_key_of_the_setting_signs_and_no_file_is_written(tmp_path: Path) -> None:
    key = SigningKey.generate()
    keys = folder(tmp_path, signing_key=key.secret_text())
    assert keys.signing_key().public == key.public
    with pytest.raises(UsageError, match="signing_key"):
        keys.create()
    assert not (tmp_path / "keys").exists()


def test_malformed_private_key_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        folder(tmp_path, signing_key="ed25519-private:c2VjcmV0").signing_key()
    assert "c2VjcmV0" not in str(error.value)


def test_trusted_keys_are_found_by_name_until_they_are_removed(tmp_path: Path) -> None:
    keys, other = folder(tmp_path), SigningKey.generate().public
    keys.trust(other, "newsroom")
    assert keys.find("newsroom") == other
    assert keys.find(other) == other
    assert keys.public().name_of(other) == "newsroom"
    keys.distrust("newsroom")
    with pytest.raises(UsageError, match="not a public key"):
        keys.find("newsroom")
    with pytest.raises(UsageError, match="no key"):
        keys.distrust("newsroom")


def test_statement_is_read_as_it_was_written_signed_or_not() -> None:
    key = SigningKey.generate()
    for made in (statement(), statement().sign(key, [])):
        assert read_statement(stored(made)) == made
    assert read_statement(open_blobs("memory://", seams=Seams())) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("root", "2" * 64),
        ("raw", "2" * 64),
        ("made_at", "2027-03-04T15:00:00.000Z"),
        ("waiting", {"texts": 1}),
        ("key", SigningKey.generate().public),
        ("signature", None),
        ("endorsements", [{"key": "x"}]),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_no_field_of_a_signed_statement_can_be_changed(field: str, value: Any) -> None:
    made = statement().sign(SigningKey.generate(), [])
    with pytest.raises(BundleError, match="signature"):
        read_statement(stored(dataclasses.replace(made, **{field: value})))


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"format": 1}', b"{}", b'{"format": 2}'])
def test_other_files_are_no_statements(data: bytes) -> None:
    blobs = open_blobs("memory://", seams=Seams())
    blobs.put(STATEMENT, data)
    with pytest.raises(BundleError):
        read_statement(blobs)
