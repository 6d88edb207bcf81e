"""Requests and responses of the demo's hosts, which are plain functions of one to the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """A GET or HEAD request; header names are lower-case."""

    method: str
    target: str
    """The path and the query as the client sent them."""
    headers: Mapping[str, str]

    @cached_property
    def path(self) -> str:
        """The path, decoded, without the query."""
        return unquote(urlsplit(self.target).path)

    @cached_property
    def query(self) -> list[tuple[str, str]]:
        """The names and values of the query, decoded, in their order."""
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def conditional(self) -> bool:
        """Whether the client has a copy and wants the content only if it has changed."""
        return "if-none-match" in self.headers or "if-modified-since" in self.headers


@dataclass(frozen=True, kw_only=True)
class Response:
    """A complete response; its ETag is the hash of its body."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    media_type: str = "text/plain; charset=utf-8"
    modified: datetime | None = None
    """Sent as Last-Modified, cut to seconds."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent in addition to the usual ones."""

    @cached_property
    def etag(self) -> str:
        """A strong validator."""
        return f'"{hashlib.sha256(self.body).hexdigest()}"'


Handler = Callable[[Request], Response]
"""Serves one host. It runs on the event loop of the server, so it must not block."""


def not_found(message: str = "Not Found") -> Response:
    """A response with status 404."""
    return Response(status=HTTPStatus.NOT_FOUND, body=message.encode())


def with_conditions(request: Request, response: Response) -> Response:
    """The same response, or 304 if the client has the same bytes."""
    if response.status == HTTPStatus.OK and request.conditional and _is_current(request, response):
        return replace(response, status=HTTPStatus.NOT_MODIFIED)
    return response


def _is_current(request: Request, response: Response) -> bool:
    # A date counts only if the client sent no tag.
    if (tags := request.headers.get("if-none-match")) is not None:
        client_tags = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return "*" in client_tags or response.etag in client_tags
    if response.modified is None:
        return False
    try:
        since = parsedate_to_datetime(request.headers["if-modified-since"])
    except ValueError:
        return False
    return response.modified.replace(microsecond=0) <= since.replace(tzinfo=since.tzinfo or UTC)
