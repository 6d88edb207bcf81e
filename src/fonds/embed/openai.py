"""Endpoints with OpenAI's embeddings API, remote or local."""

from __future__ import annotations

import base64
import json
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from fonds.chunk.tokens import count
from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.embed.hashing import encodable, unit, whole_number
from fonds.errors import (
    BadVectorsError,
    EmbedError,
    EndpointRefusedError,
    FetchError,
    RetryableEmbedError,
    RetryableFetchError,
    SettingsError,
    TooLargeError,
    UsageError,
)
from fonds.fetch.client import retry_after
from fonds.fetch.transport import (
    BufferedResponse,
    Headers,
    HttpRequest,
    HttpTransport,
    close_soon,
    endpoint_url,
    public_url,
    read_response,
    run_sync,
)
from fonds.seams import spend
from fonds.settings import Settings

_MAX_TOKENS: Final = 8191
_MAX_DIMS: Final = 65_536
# A number takes up to 25 bytes in decimals, and a fifth of that in base64.
_BYTES_PER_NUMBER: Final = 32
_ENVELOPE: Final = 1 << 20
_READ_TIMEOUTS: Final = 4
"""Times the setting `timeout`, for the whole response: a slow server must not block a worker."""
_MAX_DETAIL_LENGTH: Final = 300
"""The limit of the quoted error message of the endpoint, in characters."""
_OK: Final = 200
_TRANSIENT: Final = frozenset({408, 409, 425, 429, *range(500, 600)})
_REMEDIES: Final = {
    401: "set FONDS_EMBED_KEY to a key that is valid there",
    403: "the key in FONDS_EMBED_KEY may not use this model",
    404: "check the model's name, and the address in FONDS_EMBED_URL",
    429: "raise the quota there, or set FONDS_EMBED_KEY to a key that has one",
}
_QUOTA_USED_UP: Final = "insufficient_quota"
"""An error with the status of too many requests that does not pass by itself."""
_KEY_REFUSED: Final = frozenset({401, 403})


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteModel:
    """A model of an endpoint."""

    name: str
    dims: int | None = None
    """None: as many as the endpoint returns."""
    price: float = 0.0
    max_tokens: int = _MAX_TOKENS
    shortened: bool = False
    """Whether the endpoint is asked for fewer dimensions than the model has."""


MODELS: Final = {
    model.name: model
    for model in (
        RemoteModel(name="text-embedding-3-small", dims=1536, price=0.02),
        RemoteModel(name="text-embedding-3-large", dims=3072, price=0.13),
        RemoteModel(name="text-embedding-ada-002", dims=1536, price=0.10),
    )
}


_OPTIONS: Final = "price (USD for a million tokens), dims and max_tokens"


def open_openai(rest: str, settings: Settings) -> OpenAiEmbedder:
    """The embedder of `openai:MODEL` or `openai:MODEL?price=…`."""
    name, _, query = rest.partition("?")
    if not name:
        raise UsageError(
            "openai needs a model: openai:MODEL, such as openai:text-embedding-3-small"
        )
    options = _options(query)
    listed = MODELS.get(name)
    model = listed or RemoteModel(name=name)
    if "price" in options:
        model = replace(model, price=_price(options["price"]))
    if "max_tokens" in options:
        model = replace(model, max_tokens=whole_number("max_tokens", options["max_tokens"]))
    if "dims" in options:
        dims = whole_number("dims", options["dims"])
        # Only listed models can be asked for fewer dimensions; others may refuse.
        model = replace(model, dims=dims, shortened=listed is not None and dims != listed.dims)
    return OpenAiEmbedder(model, settings)


def _options(query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, strict_parsing=bool(query), keep_blank_values=True))
    except ValueError:
        options = {query: ""}
    if unknown := sorted(set(options) - {"price", "dims", "max_tokens"}):
        raise UsageError(f"openai:MODEL?… takes {_OPTIONS}, not {', '.join(unknown)}")
    return options


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise UsageError(f"price must be a number of US dollars, not {text!r}")
    return price


class OpenAiEmbedder:
    """Requests vectors from an endpoint; one request for each call."""

    is_remote: Final = True

    def __init__(self, model: RemoteModel, settings: Settings) -> None:
        self._remote = model
        self._key = settings.embed_key
        self._url = _embeddings_url(settings.embed_url)
        self._timeout = settings.timeout
        self._max_wait = settings.retry_wait_max
        self._lock = Lock()
        self._dims = model.dims
        self._headers = _headers(settings)
        # The settings name the host, which may be this machine.
        self._transport = HttpTransport(allow_private=True)
        weakref.finalize(self, close_soon, self._transport)

    @property
    def model(self) -> EmbeddingModel:
        """The model; if its dimensions are not listed, one request tells them."""
        dims = self._dims or self._request_dims()
        return EmbeddingModel(
            name=self._remote.name,
            version=f"{dims}d",
            dims=dims,
            price=self._remote.price,
            max_tokens=self._remote.max_tokens,
        )

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:  # noqa: ARG002 — alike for both
        """The vectors of some texts."""
        if not texts:
            return Embedded(vectors=np.zeros((0, self.model.dims), np.float32), tokens=0)
        return self._request([self._fit(text) for text in texts])

    def close(self) -> None:
        """Close the connections."""
        run_sync(self._transport.aclose())

    def _fit(self, text: str) -> str:
        # The API refuses an empty text.
        return cut(encodable(text), self._remote.max_tokens) or " "

    def _request_dims(self) -> int:
        with self._lock:
            if self._dims is None:
                self._dims = int(self._request(["dimensions"]).vectors.shape[1])
            return self._dims

    def _request(self, texts: Sequence[str]) -> Embedded:
        payload: dict[str, Any] = {
            "model": self._remote.name,
            "input": texts,
            "encoding_format": "base64",
        }
        if self._remote.shortened:
            payload["dimensions"] = self._remote.dims
        response = self._decoded(self._post(payload, len(texts)))
        vectors = _vectors(response["data"], len(texts), self._dims)
        return Embedded(vectors=unit(vectors), tokens=_tokens(response, texts))

    def _post(self, payload: Mapping[str, Any], texts: int) -> bytes:
        max_bytes = _ENVELOPE + texts * (self._dims or _MAX_DIMS) * _BYTES_PER_NUMBER
        spend("http")
        request = HttpRequest(
            url=self._url,
            method="POST",
            headers=self._headers,
            timeout=self._timeout,
            body=json.dumps(payload, ensure_ascii=False).encode(),
        )
        seconds = _READ_TIMEOUTS * self._timeout
        with self._embed_errors():
            response = run_sync(
                read_response(self._transport, request, max_bytes=max_bytes, seconds=seconds)
            )
        if response.status != _OK:
            raise self._failure(response)
        return response.content

    def _decoded(self, content: bytes) -> dict[str, Any]:
        try:
            response = json.loads(content)
        except (ValueError, RecursionError):
            response = None
        if not isinstance(response, dict) or not isinstance(response.get("data"), list):
            raise RetryableEmbedError(
                f"{self._where} answered with something other than vectors; if it does so again, "
                f"check FONDS_EMBED_URL"
            )
        return response

    def _failure(self, response: BufferedResponse) -> EmbedError:
        status = response.status
        detail = "" if status in _KEY_REFUSED else self._error_detail(response.content)
        message = f"{self._where} answered {status} for {self._remote.name}{detail}"
        if status in _TRANSIENT and _error_field(response.content, "code") != _QUOTA_USED_UP:
            wait = retry_after(response.headers.get("retry-after"), datetime.now(UTC))
            capped = None if wait is None else min(wait, self._max_wait)
            return RetryableEmbedError(message, retry_after=capped)
        remedy = _REMEDIES.get(status, "check FONDS_EMBED_URL and the texts' size")
        return EndpointRefusedError(f"{message}: {remedy}")

    def _error_detail(self, content: bytes) -> str:
        text = _error_field(content, "message")
        if text is None:
            return ""
        line = " ".join(str(text).split())
        if self._key:
            line = line.replace(self._key, "[key]")
        return f" ({line[:_MAX_DETAIL_LENGTH]})"

    @property
    def _where(self) -> str:
        return public_url(self._url)

    @contextmanager
    def _embed_errors(self) -> Iterator[None]:
        try:
            yield
        except TooLargeError:
            raise EmbedError(
                f"{self._where} returned more bytes than the vectors can have"
            ) from None
        except RetryableFetchError as error:
            raise RetryableEmbedError(str(error)) from error
        except FetchError as error:
            raise EmbedError(f"{error}; check FONDS_EMBED_URL") from error


def _error_field(content: bytes, name: str) -> Any:
    """A field of the error that an endpoint describes in its response; None if there is none."""
    try:
        return json.loads(content)["error"][name]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def cut(text: str, max_tokens: int) -> str:
    """Approximately the longest prefix of a text with at most so many tokens."""
    # A token has at least one byte.
    if len(text.encode()) <= max_tokens or count(text) <= max_tokens:
        return text
    fits, too_long = 0, max_tokens
    while too_long < len(text) and count(text[:too_long]) <= max_tokens:
        fits, too_long = too_long, too_long * 2
    too_long = min(too_long, len(text))
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(text[:middle]) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return text[:fits]


def _embeddings_url(base: str) -> str:
    try:
        return endpoint_url(base, "embeddings")
    except ValueError as error:
        raise SettingsError(
            f"FONDS_EMBED_URL must be an address without a password that begins with http:// or "
            f"https:// and names a host: {error}"
        ) from None


def _headers(settings: Settings) -> Headers:
    headers = [
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Content-Type", "application/json"),
        ("User-Agent", settings.user_agent),
    ]
    key = settings.embed_key
    if key:
        if not (key.isascii() and key.isprintable()) or key != key.strip():
            raise SettingsError("FONDS_EMBED_KEY contains characters that no key has")
        headers.append(("Authorization", f"Bearer {key}"))
    return headers


def _vectors(data: Sequence[Any], texts: int, dims: int | None) -> NDArray[np.float32]:
    if len(data) != texts:
        raise BadVectorsError(f"the endpoint returned {len(data)} vectors for {texts} texts")
    rows: dict[int, NDArray[np.float32]] = {}
    for position, entry in enumerate(data):
        index, row = _row(position, entry)
        if row.ndim != 1 or row.size != (dims or row.size) or not row.size:
            raise BadVectorsError(
                f"the endpoint returned {row.size} numbers for a vector, not {dims}"
            )
        dims = row.size
        rows[index] = row
    if sorted(rows) != list(range(texts)):
        raise BadVectorsError("the endpoint numbered its vectors wrongly")
    vectors = np.stack([rows[index] for index in range(texts)])
    if not np.isfinite(vectors).all():
        raise BadVectorsError("the endpoint returned numbers that are not finite")
    return vectors


def _row(position: int, entry: Any) -> tuple[int, NDArray[np.float32]]:
    try:
        value = entry["embedding"]
        read: Callable[[Any], NDArray[np.float32]] = _unpacked if isinstance(value, str) else _list
        with np.errstate(over="ignore"):
            return int(entry.get("index", position)), read(value)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadVectorsError("the endpoint returned something other than a vector") from error


def _unpacked(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)


def _list(numbers: Any) -> NDArray[np.float32]:
    return np.array(numbers, np.float64).astype(np.float32)


def _tokens(response: Mapping[str, Any], texts: Sequence[str]) -> int:
    usage = response.get("usage")
    stated = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, dict) else 0
    return stated if isinstance(stated, int) and stated > 0 else sum(map(count, texts))
