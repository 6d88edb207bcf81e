"""Deleting one version of an object, and no other: what obstore does not do by itself.

The request goes to an address that obstore signs, with the etag as its condition.
"""

from __future__ import annotations

import atexit
import logging
import time
from contextlib import suppress
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import Any, Final
from uuid import uuid4

import httpx
from obstore import sign
from obstore.exceptions import PreconditionError
from obstore.store import AzureStore, S3Store

from fonds.errors import StoreError

_VALID: Final = timedelta(minutes=5)
_NO_VERSION: Final = '"0x0000000000000000"'
_WAITS: Final = (0.2, 0.6, 2.0, 5.0)
"""Seconds before a server that is busy is asked again."""
_ALONE: Final = Lock()
_CHANGED: Final = (httpx.codes.PRECONDITION_FAILED, httpx.codes.NOT_FOUND, httpx.codes.CONFLICT)


class _BusyError(Exception):
    """The server may do it a moment later."""


def remove_version(store: Any, key: str, etag: str) -> None:
    """Delete the object if it still has this etag; obstore's PreconditionError if not."""
    status = _delete(_address(store, key), etag)
    if status in _CHANGED:
        raise PreconditionError
    if not httpx.codes.is_success(status):
        raise StoreError(f"cannot remove {key!r}: the server answered {status}")


def compares_deletes(store: Any) -> bool:
    """Whether a server that is told a wrong etag refuses to delete."""
    if not isinstance(store, S3Store | AzureStore):
        return False  # Google compares generations, which a signed address cannot carry
    key = f"probe-{uuid4()}"
    # obstore signs the encoded path and Azure checks the decoded one.
    if "%" in httpx.URL(_address(store, key)).raw_path.partition(b"?")[0].decode():
        return False
    store.put(key, b"", mode="create")
    try:
        return _delete(_address(store, key), _NO_VERSION) == httpx.codes.PRECONDITION_FAILED
    finally:
        with suppress(FileNotFoundError):
            store.delete(key)


def _address(store: Any, key: str) -> str:
    return sign(store, "DELETE", key, _VALID)


def _delete(address: str, etag: str) -> int:
    # The words of these errors hold the address, which is as good as a key for a while.
    try:
        return _delete_patiently(address, etag)
    except _BusyError:
        raise StoreError("cannot remove a version: the server is too busy") from None
    except httpx.HTTPError:
        raise StoreError("cannot remove a version: the server cannot be reached") from None


def _delete_patiently(address: str, etag: str) -> int:
    # A second try after an answer that was lost finds the object gone: its version has changed.
    for wait in _WAITS:
        with suppress(_BusyError, httpx.TransportError):
            return _delete_now(address, etag)
        time.sleep(wait)
    return _delete_now(address, etag)


def _delete_now(address: str, etag: str) -> int:
    status = _client().delete(address, headers={"If-Match": etag}).status_code
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
        raise _BusyError
    return status


class _Discreet(logging.Filter):
    """Takes what is signed out of the line that the client writes about each request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                each.copy_with(query=None) if isinstance(each, httpx.URL) else each
                for each in record.args
            )
        return True


def _client() -> httpx.Client:
    with _ALONE:  # or threads that come at the same time would make one each
        return _open_client()


@cache
def _open_client() -> httpx.Client:
    logging.getLogger("httpx").addFilter(_Discreet())
    client = httpx.Client(timeout=30, limits=httpx.Limits(max_connections=64))
    atexit.register(client.close)
    return client
