"""Keys that sign bundles: the library's own, and those of others that it trusts.

The private key is in a file for its owner alone, or in the setting `signing_key`; it is never in
the database, so it is in no back-up. The public keys, old ones included, are in another file.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from uuid import uuid4

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fonds.errors import StoreError, UsageError
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.stores.columns import format_timestamp
from fonds.stores.folder import sync_path
from fonds.stores.permissions import is_private, make_private_folder, private_opener

PUBLIC: Final = "ed25519:"
"""A public key is this and 32 bytes in base64."""
PRIVATE: Final = "ed25519-private:"
_FOLDER: Final = "keys"
_PRIVATE_FILE: Final = "signing.key"
_PUBLIC_FILE: Final = "public.json"
_ROTATION: Final = "fonds key rotation 1\n"


class SigningKey:
    """A private key; it is never shown."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Read the key of a file or setting; the error does not repeat it."""
        try:
            return cls(Ed25519PrivateKey.from_private_bytes(_decode(text.strip(), PRIVATE)))
        except ValueError:
            raise UsageError(
                "the signing key cannot be read: it should be the content of a file that "
                "`fonds key create` made"
            ) from None

    @property
    def public(self) -> str:
        """The public key."""
        return _encode(self._key.public_key().public_bytes_raw(), PUBLIC)

    def secret_text(self) -> str:
        """The content of the file of the key."""
        return _encode(self._key.private_bytes_raw(), PRIVATE)

    def sign(self, data: bytes) -> str:
        """The signature of bytes, in base64."""
        return base64.b64encode(self._key.sign(data)).decode()


def is_signed(data: bytes, signature: str, public: str) -> bool:
    """True if the private key of a public one signed these bytes."""
    try:
        key = Ed25519PublicKey.from_public_bytes(_decode(public, PUBLIC))
        key.verify(base64.b64decode(signature, validate=True), data)
    except (ValueError, InvalidSignature):
        return False
    return True


def require_public_key(text: str) -> str:
    """The same text if it is a public key; UsageError if not."""
    try:
        _decode(text, PUBLIC)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a public key: `fonds key show` prints one, as {PUBLIC}…"
        ) from None
    return text


def _encode(data: bytes, prefix: str) -> str:
    return prefix + base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str, prefix: str) -> bytes:
    if not text.startswith(prefix):
        raise ValueError
    encoded = text.removeprefix(prefix)
    try:
        data = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        raise ValueError from None
    if _encode(data, prefix) != text:
        raise ValueError
    return data


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnKey:
    """A public key of this library, in use or retired."""

    key: str
    created_at: str
    retired_at: str | None = None
    previous: str | None = None
    """The key that it replaced."""
    endorsement: str | None = None
    """The signature of that key over both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustedKey:
    """A public key of another library."""

    key: str
    name: str
    added_at: str


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The public keys that a library knows."""

    own: tuple[OwnKey, ...] = ()
    trusted: tuple[TrustedKey, ...] = ()

    @property
    def current(self) -> OwnKey | None:
        """The key that is not retired."""
        return next((key for key in self.own if key.retired_at is None), None)

    def name_of(self, key: str) -> str | None:
        """The name under which a key is trusted; None for an unknown one."""
        if any(own.key == key for own in self.own):
            return "this library"
        return next((trusted.name for trusted in self.trusted if trusted.key == key), None)


class KeyFolder:
    """The folder of keys in the home of a library."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._folder = settings.home / _FOLDER
        self._setting = settings.signing_key
        self._clock = clock

    def public(self) -> PublicKeys:
        """All public keys, without reading the private one."""
        file = self._folder / _PUBLIC_FILE
        if not file.is_file():
            return PublicKeys()
        try:
            content = json.loads(file.read_text("utf-8"))
            own = tuple(OwnKey(**each) for each in content["own"])
            return PublicKeys(own, tuple(TrustedKey(**each) for each in content["trusted"]))
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{file} is damaged: restore it, or move it away") from None

    def signing_key(self) -> SigningKey:
        """The private key, of the setting or of the file."""
        if self._setting:
            return SigningKey.parse(self._setting)
        file = self._folder / _PRIVATE_FILE
        if not file.is_file():
            raise UsageError("this library has no key to sign with: run `fonds key create`")
        if not is_private(file):
            raise UsageError(f"others can read {file}: run `chmod 600 {file}`, and rotate the key")
        return SigningKey.parse(file.read_text("utf-8"))

    def create(self) -> OwnKey:
        """Create the key of a library that has none."""
        self._require_own_file()
        public = self.public()
        if (self._folder / _PRIVATE_FILE).is_file():
            raise UsageError("this library has a key: `fonds key rotate` replaces it")
        return self._add(public, SigningKey.generate(), endorsed_by=None)

    def rotate(self) -> OwnKey:
        """Replace the key by a new one that the old one signs; the old public key is kept."""
        self._require_own_file()
        return self._add(self.public(), SigningKey.generate(), endorsed_by=self.signing_key())

    def trust(self, key: str, name: str) -> TrustedKey:
        """Add a key of another library under a name; that of a name in use is replaced."""
        public = self.public()
        added = TrustedKey(
            key=require_public_key(key), name=name, added_at=format_timestamp(self._clock.now())
        )
        others = (each for each in public.trusted if name != each.name and key != each.key)
        self._write(replace(public, trusted=(*others, added)))
        return added

    def distrust(self, name: str) -> None:
        """Remove a trusted key, by its name or itself."""
        public = self.public()
        others = tuple(each for each in public.trusted if name not in {each.name, each.key})
        if len(others) == len(public.trusted):
            raise UsageError(f"no key {name!r} is trusted: `fonds key show` lists them")
        self._write(replace(public, trusted=others))

    def find(self, key_or_name: str) -> str:
        """The public key that a name means, or a key itself."""
        trusted = (each.key for each in self.public().trusted if each.name == key_or_name)
        return next(trusted, None) or require_public_key(key_or_name)

    def endorsements(self) -> list[dict[str, str]]:
        """The own keys that replaced another, each with the signature of that one."""
        return [
            {"key": own.key, "previous": own.previous, "signature": own.endorsement}
            for own in self.public().own
            if own.previous and own.endorsement
        ]

    def _require_own_file(self) -> None:
        if self._setting:
            raise UsageError(
                "the signing key is in the setting signing_key (FONDS_SIGNING_KEY): unset it first"
            )

    def _add(
        self, public: PublicKeys, key: SigningKey, *, endorsed_by: SigningKey | None
    ) -> OwnKey:
        now = format_timestamp(self._clock.now())
        previous = endorsed_by.public if endorsed_by else None
        added = OwnKey(
            key=key.public,
            created_at=now,
            previous=previous,
            endorsement=endorsed_by.sign(_rotation(previous, key.public)) if endorsed_by else None,
        )
        retired = [
            each if each.retired_at else replace(each, retired_at=now) for each in public.own
        ]
        # The public key first: one that never signs does no harm, but a signature of a key that
        # is not listed could not be checked.
        self._write(replace(public, own=(*retired, added)))
        self._store(_PRIVATE_FILE, key.secret_text() + "\n")
        return added

    def _write(self, public: PublicKeys) -> None:
        content = {
            "own": [asdict(each) for each in public.own],
            "trusted": [asdict(each) for each in public.trusted],
        }
        self._store(_PUBLIC_FILE, json.dumps(content, indent=1) + "\n")

    def _store(self, name: str, text: str) -> None:
        make_private_folder(self._folder)
        partial = self._folder / f".{name}.{uuid4().hex}"
        try:
            with open(partial, "x", encoding="utf-8", opener=private_opener) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(self._folder / name)
        finally:
            with suppress(FileNotFoundError):
                partial.unlink()
        sync_path(self._folder)


def _rotation(previous: str | None, key: str) -> bytes:
    return f"{_ROTATION}{previous}\n{key}\n".encode()


def is_endorsed(endorsements: Sequence[Mapping[str, Any]], *, key: str, by: str) -> bool:
    """True if a key follows from another by rotations, each signed by the key before."""
    step = key
    for _ in endorsements:
        rotation = next((each for each in endorsements if each.get("key") == step), None)
        if rotation is None:
            return False
        previous = str(rotation.get("previous"))
        signature = str(rotation.get("signature"))
        if not is_signed(_rotation(previous, step), signature, previous):
            return False
        if previous == by:
            return True
        step = previous
    return False
