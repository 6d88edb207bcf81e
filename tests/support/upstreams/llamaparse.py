"""A real loopback server that speaks LlamaParse's API, well or badly, as a test asks.

```python
with LlamaParseServer(key="llx-test") as service:
    settings = Settings(hosts={HOST: service.url}, allow_private=True, llamaparse_key="llx-test")
    service.behave([OVERLOADED, FINE])                   # one for each request, then FINE for ever
    service.text = lambda upload: "# What it says"       # or raise ValueError: the job fails there
    service.work()                                       # all jobs are done, or have failed
    service.deliver(their_id, ["the webhook's secret"])  # by a real POST to the address given
```
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self
from uuid import uuid4

import httpx
from tests.support.upstreams.loopback import LoopbackServer

from fonds.uploads.webhook import sign

PATH: Final = "/api/v1/parsing"
_BLOCK: Final = b" " * (1 << 16)


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A job as the service keeps it."""

    id: str
    name: str
    """Of the file, as it was sent."""
    media_type: str
    content: bytes = field(repr=False)
    fields: Mapping[str, str]
    status: str = "PENDING"
    markdown: str = ""
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request as it arrived."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mood:
    """One way to answer."""

    name: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Instead of the true answer."""


def failing(status: int, detail: Any = "no") -> Mood:
    """An error as the service words it."""
    body = json.dumps({"detail": detail}).encode()
    return Mood(name=f"status {status}", status=status, body=body)


def saying(answer: Any) -> Mood:
    """Another answer than the true one, with status 200."""
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return Mood(name="saying", body=body)


FINE: Final = Mood(name="fine")
TOO_MANY: Final = failing(429, "Rate limit exceeded")
BROKEN: Final = failing(500, "Internal Server Error")
OVERLOADED: Final = failing(503, "Service Unavailable")
HANG: Final = Mood(name="hang")
"""Says nothing until the client goes away or the server is closed."""
RESET: Final = Mood(name="reset")
"""Resets the connection in the midst of the answer."""
CUT: Final = Mood(name="cut")
"""Ends the answer before the length it announced."""
HASTY: Final = Mood(name="hasty", status=413, body=b'{"detail": "File too large"}')
"""Answers and closes before it has read the request."""
ENDLESS: Final = Mood(name="endless")
DRIP: Final = Mood(name="drip")
"""An answer that comes byte by byte."""
NO_JSON: Final = saying(b'{"id": "')
APOLOGY: Final = Mood(
    name="apology",
    headers={"Content-Type": "text/html"},
    body=b"<!doctype html><title>Sorry</title>",
)

Behaviour = Callable[[Asked], Mood]
Text = Callable[[Upload], str]


def _decoded(upload: Upload) -> str:
    return upload.content.decode("utf-8", "replace").replace("\0", "")


class LlamaParseServer:
    """Takes files, and gives their text once it was told to work; on a port of its own."""

    def __init__(self, *, key: str = "", text: Text = _decoded) -> None:
        self.key = key
        """If set, every other key is answered by 401."""
        self.text = text
        """What the service reads in a file; ValueError says why it cannot."""
        self.discards = False
        """Whether uploads are read without being kept."""
        self.requests: list[Asked] = []
        self.uploads: dict[str, Upload] = {}
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._behaviour: Behaviour = lambda _asked: FINE
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """The stand-in for the service's host."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def behave(self, script: Sequence[Mood] | Behaviour) -> None:
        """Answer the coming requests by a script, then well; or by what a function says."""
        if callable(script):
            self._behaviour = script
            return
        moods: Iterator[Mood] = iter(script)
        self._behaviour = lambda _asked: next(moods, FINE)

    def work(self) -> list[str]:
        """Do all waiting jobs, and give their ids."""
        with self._lock:
            waiting = [upload for upload in self.uploads.values() if upload.status == "PENDING"]
            for upload in waiting:
                self.uploads[upload.id] = self._done(upload)
        return [upload.id for upload in waiting]

    def put(self, upload: Upload) -> None:
        """Have a job stand as a test wants it."""
        with self._lock:
            self.uploads[upload.id] = upload

    def payload(self, their_id: str, **changes: Any) -> bytes:
        """What a webhook about a finished job says."""
        upload = self.uploads[their_id]
        told: dict[str, Any] = {
            "job_id": upload.fields["job_id"],
            "document_id": upload.fields["document_id"],
            "status": "parsed" if upload.error is None else "failed",
        }
        if upload.error is None:
            told["artifacts"] = [_artifact(upload.markdown)]
            told["meta"] = {"parser_name": "llamaparse", "parser_version": "2025-08-01"}
        else:
            told["error"] = upload.error
        return json.dumps(told | changes).encode()

    def deliver(
        self,
        their_id: str,
        secrets: Sequence[str],
        *,
        webhook_id: str | None = None,
        moment: datetime | None = None,
        **changes: Any,
    ) -> httpx.Response:
        """Send the webhook about a finished job, or a changed one, to the address it came with."""
        body = self.payload(their_id, **changes)
        name = webhook_id or f"msg_{uuid4().hex}"
        headers = sign(name, moment or datetime.now(UTC), body, secrets)
        headers["Content-Type"] = "application/json"
        url = self.uploads[their_id].fields["webhook_url"]
        return httpx.post(url, content=body, headers=headers, trust_env=False)

    def _done(self, upload: Upload) -> Upload:
        try:
            return replace(upload, status="SUCCESS", markdown=self.text(upload))
        except ValueError as error:
            return replace(upload, status="ERROR", error=str(error))

    def decide(self, method: str, path: str, headers: Mapping[str, str]) -> Mood:
        """Note a request and choose its answer."""
        with self._lock:
            lowered = {name.lower(): value for name, value in headers.items()}
            number = len(self.requests)
            asked = Asked(number=number, method=method, path=path, headers=lowered)
            self.requests.append(asked)
            if self.key and lowered.get("authorization") != f"Bearer {self.key}":
                return failing(401, f"Invalid API key: {lowered.get('authorization')}")
            return self._behaviour(asked)

    def take(self, content_type: str, body: bytes) -> Mapping[str, Any]:
        """Make a job of an upload."""
        upload = _read_form(content_type, body)
        self.put(upload)
        return {"id": upload.id, "status": upload.status}

    def tell(self, path: str) -> Mapping[str, Any] | None:
        """How a job stands, or its text, or None where there is no such thing."""
        their_id, _, rest = path.removeprefix(f"{PATH}/job/").partition("/")
        upload = self.uploads.get(their_id)
        if upload is None or rest not in {"", "result/markdown"}:
            return None
        if rest:
            done = upload.status in {"SUCCESS", "PARTIAL_SUCCESS"}
            return {"markdown": upload.markdown, "job_metadata": {}} if done else None
        error = {"error_code": "PARSING_FAILED" if upload.error else None}
        return {"id": their_id, "status": upload.status, "error_message": upload.error, **error}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()
        if self._server.crashes and error is None:
            raise AssertionError("the server crashed:\n" + "\n".join(self._server.crashes))


def _artifact(markdown: str) -> dict[str, Any]:
    content = markdown.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    return {"type": "markdown", "content": markdown, "sha256": sha256, "bytes": len(content)}


def _read_form(content_type: str, body: bytes) -> Upload:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    fields: dict[str, str] = {}
    file: dict[str, Any] = {}
    for part in message_from_bytes(head + body, policy=HTTP).iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if name == "file":
            media_type = part.get_content_type()
            file = {"name": part.get_filename(), "media_type": media_type, "content": content}
        else:
            fields[str(name)] = content.decode()
    return Upload(id=str(uuid4()), fields=fields, **file)


class _Server(LoopbackServer):
    def __init__(self, service: LlamaParseServer) -> None:
        self.service = service
        super().__init__(_Handler)


class _Handler(BaseHTTPRequestHandler):
    # Each connection serves one request, so that none keeps the server from closing.
    protocol_version = "HTTP/1.0"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the library's name
        """Says nothing."""

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        service = self.server.service
        mood = service.decide(self.command, self.path, dict(self.headers))
        if mood.name == HASTY.name:
            self._send(mood.status, mood.body or b"", mood.headers)
            return
        length = int(self.headers["Content-Length"] or 0)
        body = self._body(length)
        if len(body) < length and not service.discards:
            return  # who hangs up in the midst of a file has sent none
        answer = {
            HANG.name: self._hang,
            RESET.name: self._reset,
            CUT.name: self._cut,
            ENDLESS.name: self._endless,
            DRIP.name: self._drip,
        }
        if mood.name in answer:
            answer[mood.name]()
        elif mood.body is not None:
            self._send(mood.status, mood.body, mood.headers)
        else:
            self._true_answer(body)

    def _body(self, length: int) -> bytes:
        if not self.server.service.discards:
            return self.rfile.read(length)
        while length > 0 and (piece := self.rfile.read(min(length, len(_BLOCK)))):
            length -= len(piece)
        return b""

    def _true_answer(self, body: bytes) -> None:
        service = self.server.service
        told: Mapping[str, Any] | None
        if (self.command, self.path) == ("POST", f"{PATH}/upload"):
            told = service.take(self.headers["Content-Type"], body)
        else:
            told = service.tell(self.path)
        if told is None:
            self._send(404, b'{"detail": "Not Found"}', {})
        else:
            self._send(200, json.dumps(told).encode(), {})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        plain = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        self._head(status, plain | dict(headers))
        self.wfile.write(content)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang(self) -> None:
        self.connection.settimeout(0.05)
        while not self.server.service.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue

    def _reset(self) -> None:
        self._begin(100_000)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The handler's file object holds the socket open until it is closed as well.
        self.rfile.close()
        self.connection.close()

    def _cut(self) -> None:
        self._begin(100_000)

    def _begin(self, length: int) -> None:
        self._head(200, {"Content-Type": "application/json", "Content-Length": str(length)})
        self.wfile.write(b'{"id": "')
        self.wfile.flush()

    def _endless(self) -> None:
        self._head(200, {"Content-Type": "application/json"})
        with suppress(OSError):
            while not self.server.service.closing.is_set():
                self.wfile.write(_BLOCK)

    def _drip(self) -> None:
        self._begin(1_000_000)
        with suppress(OSError):
            while not self.server.service.closing.wait(0.005):
                self.wfile.write(b" ")
