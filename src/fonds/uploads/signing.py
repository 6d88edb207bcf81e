"""Signed addresses that allow one request until a time, for stores that cannot sign."""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from uuid import uuid4

from fonds.errors import AddressRefusedError, SettingsError
from fonds.settings import Settings
from fonds.stores.blobs import Method
from fonds.stores.folder import sync_path
from fonds.stores.permissions import make_private_folder

KEY_FILE: Final = "server.key"
KEY_BYTES: Final = 32
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


def server_secret(settings: Settings) -> bytes:
    """The secret of the settings, or one that is made once and stored in the home folder."""
    if settings.server_secret:
        return settings.server_secret.encode()
    path = settings.home / KEY_FILE
    try:
        if not path.exists():
            _make_once(path)
        secret = path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written or read ({error.strerror}): set FONDS_SERVER_SECRET instead"
        ) from error
    if len(secret) != KEY_BYTES:
        raise SettingsError(f"{path} is damaged: remove it to have another one made")
    return secret


def _make_once(path: Path) -> None:
    """Create the file atomically; of two processes that do so, the first one wins."""
    make_private_folder(path.parent)
    making = path.with_name(f".{KEY_FILE}.{uuid4().hex}")
    handle = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(making)
        sync_path(path.parent)
    finally:
        making.unlink(missing_ok=True)
