"""Blobs in an object store, or in memory, through obstore.

Conditional deletion, which obstore does not have, is a request with `If-Match` to an address that
obstore signs.
"""

from __future__ import annotations

import ipaddress
import mmap
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener
from uuid import uuid4

from obstore import sign
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotModifiedError,
    PreconditionError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    BlobMissingError,
    SettingsError,
    StoreError,
)
from fonds.seams import Seams, spend
from fonds.stores.folder import (
    CHUNK_SIZE,
    BlobInfo,
    BlobVersion,
    Data,
    Method,
    SignedAddress,
    check_key,
    check_lifetime,
    check_range,
    open_source,
)

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode

_VALID: Final = timedelta(minutes=5)
_NO_VERSION: Final = '"0x0000000000000000"'
_WAITS: Final = (0.2, 0.6, 2.0, 5.0)
"""Seconds before each retry of a busy server."""
_TIMEOUT: Final = 30.0
_CHANGED: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_SUCCESSES: Final = range(200, 300)


class _BusyError(Exception):
    """The server is busy; a retry may succeed."""


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
        return False  # Google compares generations, which a signed address cannot contain
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
    # The messages of these errors contain the signed address, which is a credential.
    try:
        return _delete_with_retries(address, etag)
    except _BusyError:
        raise StoreError("cannot remove a version: the server is too busy") from None
    except (HTTPException, OSError):
        raise StoreError("cannot remove a version: the server cannot be reached") from None


def _delete_with_retries(address: str, etag: str) -> int:
    # If a response was lost, the retry reports a changed version, as the object is deleted.
    for wait in _WAITS:
        with suppress(_BusyError, HTTPException, OSError):
            return _send_delete(address, etag)
        time.sleep(wait)
    return _send_delete(address, etag)


def _send_delete(address: str, etag: str) -> int:
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


_PAGE: Final = 1000

# obstore's default of thirty seconds would end transfers of large files over slow connections.
_DEFAULTS: Final = {"timeout": "300s"}
# Its default of ten tries lasts minutes without a response; our callers retry themselves.
_RETRY: Final = {"max_retries": 5}

_STATUS: Final = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")


THROUGH_SERVER: Final = "server"
"""Instead of a public endpoint: clients send and read files through `fonds serve`."""
_ATTRIBUTES: Final = {"Content-Disposition": "attachment"}
"""Of every object: a browser that is sent to one saves it, and neither shows nor runs it."""


def open_objects(parts: SplitResult, *, seams: Seams, public_endpoint: str = "") -> ObjectBlobs:
    """A store by its split address."""
    if parts.scheme == "memory":
        return ObjectBlobs(MemoryStore(), "memory://", seams=seams)
    where = f"{parts.scheme}://{parts.netloc}{parts.path}"
    store = _open_remote(parts)
    signing_store = store if not public_endpoint else _open_public(parts, public_endpoint)
    return ObjectBlobs(store, where, seams=seams, signing_store=signing_store)


class ObjectBlobs:
    """Blobs in an object store, or in memory, through obstore."""

    def __init__(
        self, store: Any, where: str, *, seams: Seams, signing_store: Any | None = None
    ) -> None:
        """`signing_store` is the same store by the address for clients; None: it signs none."""
        self._store = store
        self._signing_store = signing_store
        self._where = where
        self._seams = seams
        self._compares_deletes: bool | None = None

    def head(self, key: str) -> BlobInfo | None:
        """Size, etag and time of an object, or None if there is none."""
        check_key(key)
        try:
            with self._explained("look up", key):
                return _info(self._store.head(key))
        except BlobMissingError:
            return None

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        check_key(key)
        with self._explained("read", key):
            return bytes(self._store.get(key).bytes())

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        """An object with its etag; None if it has the etag `unless`."""
        check_key(key)
        try:
            with self._explained("read", key):
                response = self._store.get(key, options={"if_none_match": unless} if unless else {})
                meta = response.meta
                return BlobVersion(
                    bytes(response.bytes()), _quoted(meta["e_tag"]), meta["last_modified"]
                )
        except NotModifiedError:
            return None

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes of a range; fewer, or none, if the object ends before its end."""
        check_key(key)
        check_range(key, start, length)
        try:
            with self._explained("read", key):
                # A range without bytes cannot be requested, nor one that begins after the end.
                size = max(length, 1)
                return bytes(self._store.get_range(key, start=start, length=size))[:length]
        except BlobMissingError:
            raise
        except StoreError:
            info = self.head(key)
            if info and start >= info.size:
                return b""
            raise

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks of bounded size."""
        check_key(key)
        with self._explained("read", key):
            for chunk in self._store.get(key).stream(min_chunk_size=CHUNK_SIZE):
                for start in range(0, len(chunk), CHUNK_SIZE):
                    yield chunk[start : start + CHUNK_SIZE]

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """The objects whose key begins with a text, page by page, always in the same order."""
        # obstore lists whole folders only, so the rest of the prefix is filtered here.
        folder = prefix.rpartition("/")[0]
        if folder:
            check_key(folder)
        with self._explained("list", prefix):
            for page in self._store.list(folder or None, chunk_size=_PAGE):
                yield from (_info(meta) for meta in page if meta["path"].startswith(prefix))

    def create(self, key: str, data: Data) -> str:
        """Store an object under a free key."""
        return self._write("create", key, data, "create")

    def move_file(self, key: str, file: Path) -> str:
        """Store a file under a free key, and remove it."""
        etag = self.create(key, file)
        file.unlink()
        return etag

    def replace(self, key: str, data: Data, *, etag: str) -> str:
        """Replace the version with this etag."""
        check_key(key)
        return self._write("replace", key, data, self._condition(key, etag))

    def put(self, key: str, data: Data) -> str:
        """Store an object, in place of any other."""
        return self._write("put", key, data, "overwrite")

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        check_key(key)
        self._seams.durable("blob.delete", key)
        try:
            with self._explained("delete", key):
                self._store.delete(key)
        except BlobMissingError:
            return

    def remove(self, key: str, *, etag: str) -> None:
        """Remove the version with this etag."""
        check_key(key)
        self._seams.durable("blob.delete", key)
        with self._explained("remove", key):
            remove_version(self._store, key, etag)

    def can_remove_versions(self) -> bool:
        """True if the server compares etags when it deletes, which is probed once."""
        if self._compares_deletes is None:
            with self._explained("probe", "conditional deletion"):
                self._compares_deletes = compares_deletes(self._store)
        return self._compares_deletes

    def local_path(self, key: str) -> Path | None:
        """None: the store has no files on this machine."""
        check_key(key)
        return None

    def sign(self, method: Method, key: str, seconds: int) -> SignedAddress | None:
        """A signed address for one method and key; None for stores that clients do not reach."""
        check_key(key)
        check_lifetime(key, seconds)
        if self._signing_store is None:
            return None
        with self._explained("sign an address of", key):
            url = sign(self._signing_store, method, key, timedelta(seconds=seconds))
        headers: dict[str, str] = {}
        if isinstance(self._store, AzureStore):
            # obstore signs the encoded path and Azure checks the decoded one, so Azure would
            # reject the address of such a key.
            if "%" in urlsplit(url).path:
                return None
            headers = {"x-ms-blob-type": "BlockBlob"} if method == "PUT" else {}
        return SignedAddress(method=method, url=url, headers=headers)

    def _condition(self, key: str, etag: str) -> PutMode:
        if not isinstance(self._store, GCSStore):
            return {"e_tag": etag}
        # Google compares generations, not etags, and its listings do not contain them.
        try:
            with self._explained("look up", key):
                meta = self._store.head(key)
        except BlobMissingError:
            raise BlobChangedError(f"blob {key!r} was deleted from {self._where}") from None
        if _quoted(meta["e_tag"]) != etag:
            raise BlobChangedError(f"blob {key!r} in {self._where} is another version")
        return {"version": meta["version"]}

    def _write(self, action: str, key: str, data: Data, mode: PutMode) -> str:
        check_key(key)
        content = self._content(data)
        self._seams.durable("blob.put", key)
        try:
            with self._explained(action, key):
                # One request for one object: multipart uploads cannot be conditional, and the
                # parts of one that was interrupted stay in the bucket, invisible and billed.
                stored = self._store.put(
                    key, content, attributes=_ATTRIBUTES, mode=mode, use_multipart=False
                )
                return _quoted(stored["e_tag"])
        except BlobMissingError:
            if isinstance(mode, dict):
                raise BlobChangedError(f"blob {key!r} was deleted from {self._where}") from None
            raise StoreError(f"{self._where}: there is no such bucket or container") from None

    def _content(self, data: Data) -> bytes | mmap.mmap:
        if not isinstance(data, Path):
            return data
        with open_source(data) as file:
            # For a conditional write obstore reads a file into memory, and copies it; a mapped
            # file is sent from the page cache. A MemoryStore would keep the mapping.
            if isinstance(self._store, MemoryStore) or not data.stat().st_size:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @contextmanager
    def _explained(self, action: str, key: str) -> Iterator[None]:
        # obstore's messages contain addresses and whole responses, and so perhaps credentials:
        # they are neither repeated nor chained.
        spend("blob")
        try:
            yield
        except FileNotFoundError:
            raise BlobMissingError(f"there is no blob {key!r} in {self._where}") from None
        except AlreadyExistsError:
            raise BlobExistsError(f"blob {key!r} exists in {self._where}") from None
        except NotModifiedError:
            raise
        except PreconditionError:
            raise BlobChangedError(f"blob {key!r} in {self._where} is another version") from None
        except (BaseError, ValueError) as error:
            reason = _reason(error)
            raise StoreError(f"cannot {action} {key!r} in {self._where}: {reason}") from None


def _info(meta: ObjectMeta) -> BlobInfo:
    return BlobInfo(
        key=meta["path"],
        size=meta["size"],
        etag=_quoted(meta["e_tag"]),
        modified=meta["last_modified"],
    )


def _quoted(etag: str | None) -> str:
    # Azure quotes an etag in the response about one blob, but not in a listing.
    return etag if etag and etag.endswith('"') else f'"{etag or ""}"'


def _reason(error: Exception) -> str:
    text = str(error)
    if status := _STATUS.search(text):
        code = _CODE.search(text)
        return f"the server answered {status[1].strip()}" + (f" ({code[1]})" if code else "")
    if "HTTP error" in text:
        return "the server cannot be reached"
    return f"the store rejected it ({type(error).__name__})"


def _open_public(parts: SplitResult, endpoint: str) -> Any | None:
    """The store at the endpoint that clients reach; None if they reach this server only."""
    if endpoint == THROUGH_SERVER:
        return None
    if parts.scheme not in {"s3", "az"}:
        raise SettingsError(
            f"blobs_public_endpoint cannot be set for {parts.scheme}://, only for s3:// and az://"
        )
    return _open_remote(parts, {"endpoint": endpoint})


def _open_remote(parts: SplitResult, changes: Mapping[str, str] | None = None) -> Any:
    if not parts.netloc or "@" in parts.netloc:
        raise SettingsError(
            f"{parts.scheme}:// must be followed by the name of a bucket or container; "
            "put credentials into the query or the environment"
        )
    options = {**_options(parts.query), **(changes or {})}
    config = _DEFAULTS | options
    if _is_unencrypted_loopback(options):
        config["allow_http"] = "true"
    prefix = unquote(parts.path).strip("/") or None
    try:
        # Not as client_options, which would replace those of the query and environment.
        return _OPENERS[parts.scheme](
            parts.netloc, prefix=prefix, config=config, retry_config=_RETRY
        )
    except UnknownConfigurationKeyError:
        problem = "at least one of the options is unknown"
    except (BaseError, ValueError):
        problem = "an option has an invalid value, or a required one is missing"
    names = ", ".join(sorted(options)) or "none"
    raise SettingsError(f"{parts.scheme}://{parts.netloc}: {problem} (given: {names})")


def _options(query: str) -> dict[str, str]:
    # A plus is not a space here: many account keys contain one.
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return {unquote(name).lower(): unquote(value) for name, _, value in pairs}


def _is_unencrypted_loopback(options: dict[str, str]) -> bool:
    try:
        endpoint = urlsplit(options.get("endpoint", ""), allow_fragments=False)
    except ValueError:
        raise SettingsError("the endpoint of the blob store is malformed") from None
    if endpoint.scheme != "http" or "allow_http" in options:
        return False
    host = endpoint.hostname or ""
    if host == "localhost" or _is_loopback_address(host):
        return True
    raise SettingsError(
        f"the endpoint {host} is not encrypted: use https, or add allow_http=true to the address"
    )


def _is_loopback_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_OPENERS: Final[dict[str, Callable[..., Any]]] = {
    "s3": S3Store,
    "az": AzureStore,
    "gs": GCSStore,
}
