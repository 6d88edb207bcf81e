"""Signed addresses that allow one request until a time, for stores that cannot sign."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from fonds.errors import AddressRefusedError, SettingsError
from fonds.settings import Settings
from fonds.stores.blobs import Method
from fonds.stores.database import Database
from fonds.stores.server_values import SERVER_SECRET, read_value, store_first

SECRET_BYTES: Final = 32
MIN_SECRET_BYTES: Final = 16
"""The least bytes of a secret in the settings; a shorter one can be guessed."""

# Part of what is signed, so that no signature made for another purpose, or by another scheme,
# with the same secret is ever valid for an address.
_SCHEME: Final = "fonds:address:1"


class Signer:
    """Signs addresses with a secret, and verifies the signatures."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise SettingsError(
                f"FONDS_SERVER_SECRET is too short to sign with: give {MIN_SECRET_BYTES} bytes "
                "or more, or leave it empty to have one made"
            )
        self._secret = secret

    def sign(self, method: Method, key: str, expires: int, *, filename: str | None = None) -> str:
        """The query of an address that is valid until `expires`, in seconds since 1970."""
        pairs: dict[str, str | int] = {"expires": expires}
        if filename is not None:
            pairs["filename"] = filename
        pairs["signature"] = self._signature(method, key, expires, filename)
        return urlencode(pairs)

    def check(
        self,
        method: Method,
        key: str,
        expires: int,
        signature: str,
        now: datetime,
        *,
        filename: str | None = None,
    ) -> None:
        """Raise AddressRefusedError unless `sign` made the signature and it has not expired."""
        expected = self._signature(method, key, expires, filename)
        received = signature.encode("utf-8", "backslashreplace")
        if not hmac.compare_digest(expected.encode(), received):
            raise AddressRefusedError(
                "this address was not signed by this server; request another one",
                kind="bad-signature",
            )
        if now.timestamp() >= expires:
            raise AddressRefusedError(
                "this address has expired; request another one", kind="expired"
            )

    def _signature(self, method: Method, key: str, expires: int, filename: str | None) -> str:
        # JSON keeps fields apart, and an absent name from an empty one.
        content = json.dumps([_SCHEME, method, key, expires, filename]).encode()
        digest = hmac.digest(self._secret, content, "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def server_secret(settings: Settings, database: Database, now: datetime) -> bytes:
    """The secret of the settings, or one that is made once and stored in the database."""
    if settings.server_secret:
        return settings.server_secret.encode()
    with database.read() as connection:
        stored = read_value(connection, SERVER_SECRET)
    if stored is None:
        with database.write() as connection:
            # Of two servers that start at the same time, the first one's secret is used by both.
            store_first(connection, SERVER_SECRET, secrets.token_hex(SECRET_BYTES), now)
        with database.read() as connection:
            stored = read_value(connection, SERVER_SECRET)
    assert stored is not None
    return bytes.fromhex(stored.value)
