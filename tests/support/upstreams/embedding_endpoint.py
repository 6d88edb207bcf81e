"""A real loopback server that speaks OpenAI's embeddings API, well or badly, as a test asks.

```python
with EmbeddingEndpoint(dims=64) as endpoint:
    endpoint.behave([TOO_MANY, FINE, NAN])      # one for each request, then FINE for ever
    endpoint.behave(moody(seed=7, share=0.3))   # or by chance, the same in every run
    endpoint.behave(lambda asked: FEWER if "trout" in asked.texts else FINE)
```
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from tests.support.upstreams.loopback import LoopbackServer

from fonds.chunk.tokens import count

MOST_TEXTS: Final = 2048
MOST_TOKENS: Final = 8191
_BLOCK: Final = b" " * (1 << 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request as it arrived."""

    number: int
    """From 0, in the order of arrival."""
    texts: tuple[str, ...]
    model: str
    encoding: str
    dimensions: int | None
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mood:
    """One way to answer."""

    name: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Instead of vectors."""

    def after(self, retry_after: str) -> Mood:
        """The same with a Retry-After header, seconds or a date."""
        return replace(self, headers={**self.headers, "Retry-After": retry_after})


def failing(status: int, message: str = "no", code: str | None = None) -> Mood:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()
    return Mood(name=f"status {status}", status=status, body=body)


FINE: Final = Mood(name="fine")
TOO_MANY: Final = failing(429, "Rate limit reached")
BROKEN: Final = failing(500, "The server had an error")
OVERLOADED: Final = failing(503, "Overloaded")
HANG: Final = Mood(name="hang")
"""Says nothing until the client goes away or the endpoint is closed."""
RESET: Final = Mood(name="reset")
"""Resets the connection in the midst of the body."""
FEWER: Final = Mood(name="fewer")
MORE: Final = Mood(name="more")
NAN: Final = Mood(name="nan")
INFINITE: Final = Mood(name="infinite")
WRONG_DIMS: Final = Mood(name="wrong dims")
RAGGED: Final = Mood(name="ragged")
"""One vector is shorter than the others."""
SHUFFLED: Final = Mood(name="shuffled")
"""Right, but in another order; `index` tells."""
REPEATED: Final = Mood(name="repeated")
"""Two vectors claim the same index."""
PLAIN: Final = Mood(name="plain")
"""Lists of numbers, also when base64 was asked for."""
UNCOUNTED: Final = Mood(name="uncounted")
"""Right, but without token usage."""
NO_JSON: Final = Mood(name="no json", body=b'{"data": [{"index": 0, "embedding": [0.1, ')
NO_DATA: Final = Mood(name="no data", body=b'{"object": "list"}')
APOLOGY: Final = Mood(
    name="apology",
    headers={"Content-Type": "text/html"},
    body=b"<!doctype html><title>Sorry</title><p>Down for maintenance.</p>",
)
ENDLESS: Final = Mood(name="endless")
"""A body that never ends."""
DRIP: Final = Mood(name="drip")
"""A body that comes byte by byte."""

RETRYABLE: Final = (TOO_MANY.after("0"), BROKEN, OVERLOADED, RESET, NO_JSON, APOLOGY)
POISONOUS: Final = (FEWER, MORE, NAN, INFINITE, WRONG_DIMS, RAGGED)

Behaviour = Callable[[Asked], Mood]


def moody(*, seed: int, share: float, moods: Sequence[Mood] = RETRYABLE + POISONOUS) -> Behaviour:
    """Misbehaves in about that share of requests, by the request's number and the seed alone."""

    def choose(asked: Asked) -> Mood:
        chance = random.Random(f"{seed}/{asked.number}")
        return chance.choice(moods) if chance.random() < share else FINE

    return choose


class EmbeddingEndpoint:
    """`POST /v1/embeddings` with deterministic vectors, on a port of its own."""

    def __init__(self, *, dims: int = 64, key: str = "") -> None:
        self.dims = dims
        self.key = key
        """If set, every other key is answered by 401, naming the key as OpenAI does."""
        self.requests: list[Asked] = []
        self.moods: list[Mood] = []
        """How each request was answered, in their order of arrival."""
        self._lock = threading.Lock()
        self._behaviour: Behaviour = lambda _asked: FINE
        self.closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """The base address, as the setting `embed_url` wants it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        """All texts received, request after request, whether they were answered well or not."""
        with self._lock:
            return [text for asked in self.requests for text in asked.texts]

    @property
    def answered(self) -> list[str]:
        """The texts of those requests that were answered with good vectors."""
        good = {FINE.name, SHUFFLED.name, PLAIN.name, UNCOUNTED.name}
        with self._lock:
            pairs = zip(self.requests, self.moods, strict=True)
            return [text for asked, mood in pairs if mood.name in good for text in asked.texts]

    def behave(self, script: Sequence[Mood] | Behaviour) -> None:
        """Answer the coming requests by a script, then well; or by what a function says."""
        if callable(script):
            self._behaviour = script
            return
        moods: Iterator[Mood] = iter(script)
        self._behaviour = lambda _asked: next(moods, FINE)

    def forget(self) -> None:
        """Start counting anew; behaviour and numbering go on."""
        with self._lock:
            self.requests.clear()
            self.moods.clear()

    def vector(self, text: str, dims: int | None = None) -> NDArray[np.float32]:
        """The unit vector this endpoint gives for a text."""
        seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
        drawn = np.random.default_rng(seed).standard_normal(dims or self.dims)
        unit: NDArray[np.float32] = (drawn / np.linalg.norm(drawn)).astype(np.float32)
        return unit

    def decide(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[Asked, Mood]:
        """Note a request and choose its answer."""
        given = body["input"]
        texts = tuple([given] if isinstance(given, str) else given)
        with self._lock:
            asked = Asked(
                number=self._server.numbers(),
                texts=texts,
                model=body["model"],
                encoding=body.get("encoding_format", "float"),
                dimensions=body.get("dimensions"),
                headers={name.lower(): value for name, value in headers.items()},
            )
            mood = self._refusal(asked) or self._behaviour(asked)
            self.requests.append(asked)
            self.moods.append(mood)
        return asked, mood

    def _refusal(self, asked: Asked) -> Mood | None:
        given = asked.headers.get("authorization", "")
        if self.key and given != f"Bearer {self.key}":
            return failing(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}")
        if not asked.texts or "" in asked.texts or len(asked.texts) > MOST_TEXTS:
            return failing(400, "'$.input' is invalid")
        if any(len(text) > MOST_TOKENS and count(text) > MOST_TOKENS for text in asked.texts):
            return failing(400, "This model's maximum context length is 8192 tokens")
        return None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.hang_up()
        self._server.server_close()
        if self._server.crashes and error is None:
            raise AssertionError("the endpoint crashed:\n" + "\n".join(self._server.crashes))


class _Server(LoopbackServer):
    def __init__(self, endpoint: EmbeddingEndpoint) -> None:
        self.endpoint = endpoint
        self._connections: set[socket.socket] = set()
        self._arrivals = iter(range(1 << 62))
        super().__init__(_Handler)

    def numbers(self) -> int:
        return next(self._arrivals)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        # A kept-alive connection would keep its thread waiting for the next request.
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; with Nagle's algorithm the second waits for 40 ms.
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the library's name
        """Says nothing."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # whoever asked has been killed meanwhile
            return
        if self.path != "/v1/embeddings":
            self._send(failing(404, "no such path"), b"")
            return
        endpoint = self.server.endpoint
        asked, mood = endpoint.decide(json.loads(body), dict(self.headers))
        answer = {
            HANG.name: self._hang,
            RESET.name: self._reset,
            ENDLESS.name: self._endless,
            DRIP.name: self._drip,
        }
        if mood.name in answer:
            answer[mood.name]()
        else:
            self._send(mood, b"" if mood.body is not None else _vectors(endpoint, asked, mood))

    def _send(self, mood: Mood, content: bytes) -> None:
        content = content if mood.body is None else mood.body
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        self._head(mood.status, {**headers, **mood.headers})
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang(self) -> None:
        self.close_connection = True
        self.connection.settimeout(0.05)
        while not self.server.endpoint.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue

    def _reset(self) -> None:
        self.close_connection = True
        self._head(200, {"Content-Type": "application/json", "Content-Length": "100000"})
        self.wfile.write(b'{"object": "list", "data": [')
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The handler's two file objects hold the socket open until they are closed as well.
        self.rfile.close()
        self.connection.close()

    def _endless(self) -> None:
        self.close_connection = True
        self._head(200, {"Content-Type": "application/json", "Connection": "close"})
        while not self.server.endpoint.closing.is_set():
            self.wfile.write(_BLOCK)

    def _drip(self) -> None:
        self.close_connection = True
        self._head(200, {"Content-Type": "application/json", "Content-Length": "1000000"})
        while not self.server.endpoint.closing.wait(0.005):
            self.wfile.write(b" ")


def _vectors(endpoint: EmbeddingEndpoint, asked: Asked, mood: Mood) -> bytes:
    dims = (asked.dimensions or endpoint.dims) + (mood.name == WRONG_DIMS.name)
    vectors = [endpoint.vector(text, dims) for text in asked.texts]
    _spoil(vectors, mood)
    as_text = asked.encoding == "base64" and mood.name != PLAIN.name
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, as_text=as_text)}
        for index, vector in enumerate(vectors)
    ]
    if mood.name == SHUFFLED.name:
        random.Random(asked.number).shuffle(data)
        data = data[1:] + data[:1] if data[0]["index"] == 0 else data
    if mood.name == REPEATED.name:
        data[-1]["index"] = 0
    answer: dict[str, Any] = {"object": "list", "data": data, "model": asked.model}
    if mood.name != UNCOUNTED.name:
        tokens = sum(map(count, asked.texts))
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps(answer).encode()


def _spoil(vectors: list[NDArray[np.float32]], mood: Mood) -> None:
    if mood.name == FEWER.name:
        vectors.pop()
    elif mood.name == MORE.name:
        vectors.append(vectors[0])
    elif mood.name == NAN.name:
        vectors[-1][0] = np.nan
    elif mood.name == INFINITE.name:
        vectors[-1][0] = np.inf
    elif mood.name == RAGGED.name:
        vectors[-1] = vectors[-1][:-1]


def _encoded(vector: NDArray[np.float32], *, as_text: bool) -> str | list[float]:
    if as_text:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in vector]
