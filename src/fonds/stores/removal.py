"""Deleting one version of an object, and no other: what obstore does not do by itself.

The request goes to an address that obstore signs, with the etag as its condition.
"""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener
from uuid import uuid4

from obstore import sign
from obstore.exceptions import PreconditionError
from obstore.store import AzureStore, S3Store

from fonds.errors import StoreError

_VALID: Final = timedelta(minutes=5)
_NO_VERSION: Final = '"0x0000000000000000"'
_WAITS: Final = (0.2, 0.6, 2.0, 5.0)
"""Seconds before a server that is busy is asked again."""
_TIMEOUT: Final = 30.0
_CHANGED: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_SUCCESSES: Final = range(200, 300)


class _BusyError(Exception):
    """The server may do it a moment later."""


def remove_version(store: Any, key: str, etag: str) -> None:
    """Delete the object if it still has this etag; obstore's PreconditionError if not."""
    status = _delete(_address(store, key), etag)
    if status in _CHANGED:
        raise PreconditionError
    if status not in _SUCCESSES:
        raise StoreError(f"cannot remove {key!r}: the server answered {status}")


def compares_deletes(store: Any) -> bool:
    """True if the server refuses to delete an object whose etag is another."""
    if not isinstance(store, S3Store | AzureStore):
        return False  # Google compares generations, which a signed address cannot carry
    key = f"probe-{uuid4()}"
    # obstore signs the encoded path and Azure checks the decoded one.
    if "%" in urlsplit(_address(store, key)).path:
        return False
    store.put(key, b"", mode="create")
    try:
        return _delete(_address(store, key), _NO_VERSION) == HTTPStatus.PRECONDITION_FAILED
    finally:
        with suppress(FileNotFoundError):
            store.delete(key)


def _address(store: Any, key: str) -> str:
    return sign(store, "DELETE", key, _VALID)


def _delete(address: str, etag: str) -> int:
    # The text of these errors has the address, which is as good as a key for a while.
    try:
        return _delete_patiently(address, etag)
    except _BusyError:
        raise StoreError("cannot remove a version: the server is too busy") from None
    except (HTTPException, OSError):
        raise StoreError("cannot remove a version: the server cannot be reached") from None


def _delete_patiently(address: str, etag: str) -> int:
    # A second try after an answer that was lost finds the object gone: its version has changed.
    for wait in _WAITS:
        with suppress(_BusyError, HTTPException, OSError):
            return _delete_now(address, etag)
        time.sleep(wait)
    return _delete_now(address, etag)


def _delete_now(address: str, etag: str) -> int:
    request = Request(address, method="DELETE", headers={"If-Match": etag})  # noqa: S310 — signed by obstore
    try:
        with _opener().open(request, timeout=_TIMEOUT) as response:
            status = int(response.status)
    except HTTPError as error:
        with error:
            status = error.code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise _BusyError
    return status


@cache
def _opener() -> OpenerDirector:
    # Loading the certificates takes longer than a request.
    return build_opener(HTTPSHandler(context=ssl.create_default_context()))
