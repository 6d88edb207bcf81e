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
from contextlib import suppress
from datetime import timedelta
from functools import cache, partial
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
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
    StoreUnavailableError,
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
from fonds.stores.outages import Outage

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode

_VALID: Final = timedelta(minutes=5)
_NO_VERSION: Final = '"0x0000000000000000"'
_WAITS: Final = (0.2, 0.6, 2.0)
"""Seconds before each retry of a busy server."""
_CHANGED: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_BUSY: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
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
        raise StoreUnavailableError("the server is too busy") from None
    except (HTTPException, OSError):
        raise StoreUnavailableError("the server cannot be reached") from None


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
        with _opener().open(request, timeout=STALL_SECONDS) as response:
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

# What a transfer takes as a whole says nothing: large files take long over slow connections.
_DEFAULTS: Final = {"timeout": "6h", "connect_timeout": "10s"}
# Its default of ten tries lasts minutes without a response; longer outages are waited for here.
_RETRY: Final = {"max_retries": 4, "retry_timeout": timedelta(seconds=10)}

STALL_SECONDS: Final = 20.0
"""An operation ends if no byte has moved for so long."""
_WRITE_RATE: Final = 256 << 10
"""Bytes that move in a second at least. The time limit of a write includes that for its bytes, as
the client only tells when bytes arrive, and none do while others are being sent."""
_WRITE_SIZES: Final = (64 << 10, 1 << 20, 8 << 20, 64 << 20, 512 << 20, 4 << 30)
"""The largest writes for each time limit."""

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
    store = _open_remote(parts, STALL_SECONDS)
    signing_store = store if not public_endpoint else _open_public(parts, public_endpoint)
    return ObjectBlobs(
        store,
        where,
        seams=seams,
        signing_store=signing_store,
        open_writer=cache(partial(_open_remote, parts)),
    )


T = TypeVar("T")


class ObjectBlobs:
    """Blobs in an object store, or in memory, through obstore."""

    def __init__(
        self,
        store: Any,
        where: str,
        *,
        seams: Seams,
        signing_store: Any | None = None,
        open_writer: Callable[[float], Any] | None = None,
    ) -> None:
        """`signing_store` is the same store by the address for clients; None: it signs none.

        `open_writer` opens the same store with another time limit for a response.
        """
        self._store = store
        self._signing_store = signing_store
        self._where = where
        self._seams = seams
        self._open_writer = open_writer
        self._outage = Outage(f"the object store {where}", seams.outage_seconds)
        self._compares_deletes: bool | None = None

    def head(self, key: str) -> BlobInfo | None:
        """Size, etag and time of an object, or None if there is none."""
        check_key(key)
        try:
            return self._request("look up", key, lambda: _info(self._store.head(key)))
        except BlobMissingError:
            return None

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        check_key(key)
        return self._request("read", key, lambda: bytes(self._store.get(key).bytes()))

    def read(self, key: str, *, unless: str | None = None) -> BlobVersion | None:
        """An object with its etag; None if it has the etag `unless`."""
        check_key(key)

        def read_version() -> BlobVersion:
            response = self._store.get(key, options={"if_none_match": unless} if unless else {})
            meta = response.meta
            return BlobVersion(
                bytes(response.bytes()), _quoted(meta["e_tag"]), meta["last_modified"]
            )

        try:
            return self._request("read", key, read_version)
        except NotModifiedError:
            return None

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """The bytes of a range; fewer, or none, if the object ends before its end."""
        check_key(key)
        check_range(key, start, length)
        # A range without bytes cannot be requested, nor one that begins after the end.
        size = max(length, 1)

        def read_range() -> bytes:
            return bytes(self._store.get_range(key, start=start, length=size))[:length]

        try:
            return self._request("read", key, read_range)
        except (BlobMissingError, StoreUnavailableError):
            raise
        except StoreError:
            info = self.head(key)
            if info and start >= info.size:
                return b""
            raise

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks of bounded size."""
        check_key(key)
        spend("blob")
        stream = _Stream(self._store, key)
        while chunk := self._repeat("read", key, stream.next_chunk):
            for start in range(0, len(chunk), CHUNK_SIZE):
                yield chunk[start : start + CHUNK_SIZE]

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """The objects whose key begins with a text, page by page, always in the same order."""
        # obstore lists whole folders only, so the rest of the prefix is filtered here.
        folder = prefix.rpartition("/")[0]
        if folder:
            check_key(folder)
        spend("blob")
        pages = _Pages(self._store, folder or None)
        while page := self._repeat("list", prefix, pages.next_page):
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
            self._request("delete", key, lambda: self._store.delete(key))
        except BlobMissingError:
            return

    def remove(self, key: str, *, etag: str) -> None:
        """Remove the version with this etag."""
        check_key(key)
        self._seams.durable("blob.delete", key)
        self._request("remove", key, lambda: remove_version(self._store, key, etag))

    def can_remove_versions(self) -> bool:
        """True if the server compares etags when it deletes, which is probed once."""
        if self._compares_deletes is None:
            self._compares_deletes = self._request(
                "probe", "conditional deletion", lambda: compares_deletes(self._store)
            )
        return self._compares_deletes

    def local_path(self, key: str) -> Path | None:
        """None: the store has no files on this machine."""
        check_key(key)
        return None

    def sign(self, method: Method, key: str, seconds: int) -> SignedAddress | None:
        """A signed address for one method and key; None for stores that clients do not reach."""
        check_key(key)
        check_lifetime(key, seconds)
        signing_store = self._signing_store
        if signing_store is None:
            return None
        url = self._request(
            "sign an address of",
            key,
            lambda: sign(signing_store, method, key, timedelta(seconds=seconds)),
        )
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
            meta = self._request("look up", key, lambda: self._store.head(key))
        except BlobMissingError:
            raise BlobChangedError(f"blob {key!r} was deleted from {self._where}") from None
        if _quoted(meta["e_tag"]) != etag:
            raise BlobChangedError(f"blob {key!r} in {self._where} is another version")
        return {"version": meta["version"]}

    def _write(self, action: str, key: str, data: Data, mode: PutMode) -> str:
        check_key(key)
        content = self._content(data)
        store = self._writer(len(content))
        self._seams.durable("blob.put", key)
        attempts = 0

        def write() -> str:
            nonlocal attempts
            attempts += 1
            # One request for one object: multipart uploads cannot be conditional, and the
            # parts of one that was interrupted stay in the bucket, invisible and billed.
            stored = store.put(key, content, attributes=_ATTRIBUTES, mode=mode, use_multipart=False)
            return _quoted(stored["e_tag"])

        try:
            return self._request(action, key, write)
        except (BlobExistsError, BlobChangedError):
            # The response to an earlier attempt may have been lost.
            if attempts > 1 and (stored := self.read(key)) and stored.data == bytes(content):
                return stored.etag
            raise
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

    def _writer(self, size: int) -> Any:
        """The store, with a time limit that leaves time to send so many bytes."""
        if self._open_writer is None or size <= _WRITE_SIZES[0]:
            return self._store
        largest = next((each for each in _WRITE_SIZES if size <= each), _WRITE_SIZES[-1])
        return self._open_writer(STALL_SECONDS + largest / _WRITE_RATE)

    def _request(self, action: str, key: str, request: Callable[[], T]) -> T:
        spend("blob")
        return self._repeat(action, key, request)

    def _repeat(self, action: str, key: str, request: Callable[[], T]) -> T:
        """Make a request; again for some time if the store does not respond."""
        while True:
            try:
                result = self._attempt(action, key, request)
            except StoreUnavailableError as error:
                if not self._outage.wait(str(error)):
                    message = f"cannot {action} {key!r} in {self._where}: {error}"
                    raise StoreUnavailableError(message) from None
            else:
                self._outage.end()
                return result

    def _attempt(self, action: str, key: str, request: Callable[[], T]) -> T:
        # obstore's messages contain addresses and whole responses, and so perhaps credentials:
        # they are neither repeated nor chained.
        try:
            return request()
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
            if _is_temporary(error):
                raise StoreUnavailableError(reason) from None
            raise StoreError(f"cannot {action} {key!r} in {self._where}: {reason}") from None


class _Stream:
    """An object in chunks; a chunk that could not be read can be asked for again."""

    def __init__(self, store: Any, key: str) -> None:
        self._store = store
        self._key = key
        self._read = 0
        self._size: int | None = None
        self._options: dict[str, Any] = {}
        self._chunks: Iterator[Any] | None = None

    def next_chunk(self) -> bytes:
        """The next bytes; none at the end."""
        if self._size is not None and self._read >= self._size:
            return b""
        try:
            if self._chunks is None:
                self._chunks = self._begin()
            chunk = bytes(next(self._chunks, b""))
        except BaseError:
            self._chunks = None
            raise
        self._read += len(chunk)
        return chunk

    def _begin(self) -> Iterator[Any]:
        options = {**self._options, "range": {"offset": self._read}} if self._read else {}
        response = self._store.get(self._key, options=options)
        if self._size is None:
            self._size = response.meta["size"]
            # The rest of another version would not match what was read.
            self._options = {"if_match": response.meta["e_tag"]}
        return iter(response.stream(min_chunk_size=CHUNK_SIZE))


class _Pages:
    """A listing in pages; a page that could not be read can be asked for again."""

    def __init__(self, store: Any, folder: str | None) -> None:
        self._store = store
        self._folder = folder
        self._last: str | None = None
        self._pages: Iterator[Any] | None = None

    def next_page(self) -> Any:
        """The next objects; none at the end."""
        try:
            if self._pages is None:
                self._pages = iter(
                    self._store.list(self._folder, offset=self._last, chunk_size=_PAGE)
                )
            page = next(self._pages, ())
        except BaseError:
            self._pages = None
            raise
        if page:
            self._last = page[-1]["path"]
        return page


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
        return "the server cannot be reached, or does not respond"
    return f"the store rejected it ({type(error).__name__})"


def _is_temporary(error: Exception) -> bool:
    """True if no answer came, or one that the server is busy or broken."""
    text = str(error)
    if status := _STATUS.search(text):
        code = int(status[1][:3])
        return code >= HTTPStatus.INTERNAL_SERVER_ERROR or code in _BUSY
    return "HTTP error" in text


def _open_public(parts: SplitResult, endpoint: str) -> Any | None:
    """The store at the endpoint that clients reach; None if they reach this server only."""
    if endpoint == THROUGH_SERVER:
        return None
    if parts.scheme not in {"s3", "az"}:
        raise SettingsError(
            f"blobs_public_endpoint cannot be set for {parts.scheme}://, only for s3:// and az://"
        )
    return _open_remote(parts, STALL_SECONDS, {"endpoint": endpoint})


def _open_remote(
    parts: SplitResult, seconds: float, changes: Mapping[str, str] | None = None
) -> Any:
    """The store of a split address; `seconds` is the limit for a response and between bytes."""
    if not parts.netloc or "@" in parts.netloc:
        raise SettingsError(
            f"{parts.scheme}:// must be followed by the name of a bucket or container; "
            "put credentials into the query or the environment"
        )
    options = {**_options(parts.query), **(changes or {})}
    config = _DEFAULTS | {"read_timeout": f"{seconds:.0f}s"} | options
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
