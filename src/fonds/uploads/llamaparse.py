"""The client of LlamaParse, which parses files and returns their text by webhook or on request.

The service answers an upload with an id of its own. `GET job/{id}` then returns the status
(PENDING, SUCCESS, PARTIAL_SUCCESS, ERROR, CANCELLED), and `GET job/{id}/result/markdown` the
text. It takes webhook addresses only with https and a host name, of less than 200 characters.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from fonds.embed.client import Breaker
from fonds.errors import (
    BreakerOpenError,
    FetchError,
    MissingKeyError,
    ParserError,
    RetryableFetchError,
    RetryableParserError,
    SettingsError,
    TooLargeError,
)
from fonds.fetch.transport import HttpRequest, HttpTransport, read_response
from fonds.seams import Seams, spend
from fonds.settings import Settings

NAME: Final = "llamaparse"
VERSION: Final = "api-v1"
"""The parser version of a fetched text: the service states only its API's version."""
HOST: Final = "api.cloud.llamaindex.ai"

_BASE: Final = f"https://{HOST}/api/v1/parsing"
_MIB: Final = 1 << 20
_MAX_STATUS_BYTES: Final = _MIB
"""The limit of any response but a text."""
_READ_TIMEOUTS: Final = 4
"""Times the setting `timeout`, for a whole response: a slow server must not block a worker."""
# Shorter than the waits between a job's retries taken together, or every job would fail meanwhile.
_PAUSE: Final = 10.0
_MAX_DETAIL_LENGTH: Final = 300
_OK: Final = 200
_KEY_REFUSED: Final = frozenset({401, 403})
_TRANSIENT: Final = frozenset({408, 425, 429, *range(500, 600)})

_WORKING: Final = frozenset({"PENDING", "RUNNING"})
_FAILED: Final = frozenset({"ERROR", "CANCELLED", "CANCELED"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TYPES: Final = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".html": "text/html",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
}

# Characters that would end the header, escaped as browsers do.
_ESCAPES: Final = {ord("\n"): "%0A", ord("\r"): "%0D", ord('"'): "%22"}

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedText:
    """A text that the service has made of a file."""

    markdown: str = field(repr=False)
    parser_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    """A request body of known length that is produced while it is sent."""

    content_type: str
    size: int
    blocks: Iterator[bytes] = field(repr=False)


class LlamaParse:
    """The client of the service; shared by the threads of a process, none with an event loop."""

    def __init__(self, settings: Settings, seams: Seams) -> None:
        self._settings = settings
        self._headers = _headers(settings)
        self._breaker = Breaker(seams.clock, pause=_PAUSE)

    def submit(
        self,
        blocks: Iterable[bytes],
        size: int,
        name: str,
        *,
        webhook_url: str | None,
        job_id: UUID,
        document_id: UUID,
    ) -> str:
        """Send a file in blocks, and return the service's id of its job."""
        fields = {"job_id": str(job_id), "document_id": str(document_id)}
        if webhook_url:
            fields["webhook_url"] = webhook_url
        form = _form(blocks, size, name, fields)
        return self._request("upload", _submitted, form=form)

    def fetch(self, external_id: str) -> ParsedText | None:
        """The text of a job, or None while it is under way; ParserError if it failed."""
        job = f"job/{_checked_id(external_id)}"
        if not self._request(job, self._is_done):
            return None
        limit = self._settings.max_file_mib * _MIB
        markdown = self._request(f"{job}/result/markdown", _markdown, max_bytes=limit)
        return ParsedText(markdown=markdown, parser_version=VERSION)

    def _request(
        self,
        path: str,
        read: Callable[[dict[str, Any]], _T],
        *,
        form: _Form | None = None,
        max_bytes: int = _MAX_STATUS_BYTES,
    ) -> _T:
        with self._watched():
            spend("http")
            # A job sends a few requests in minutes, so each may have an event loop and a connection
            # of its own, which reading the file may block.
            return read(_decoded(asyncio.run(self._exchange(path, form, max_bytes))))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            self._breaker.check()
        except BreakerOpenError as error:
            raise RetryableParserError(f"{HOST} gets no requests for now: {error}") from error
        try:
            with _parser_errors():
                yield
        except RetryableParserError as error:
            self._breaker.failed(str(error))
            raise
        except BaseException:
            # Neither a refusal nor a local error means that the service is down.
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()

    async def _exchange(self, path: str, form: _Form | None, max_bytes: int) -> bytes:
        settings = self._settings
        network = HttpTransport(allow_private=settings.allow_private, hosts=settings.hosts)
        async with aclosing(network):
            response = await read_response(
                network,
                self._http_request(path, form),
                max_bytes=max_bytes,
                seconds=settings.timeout * _READ_TIMEOUTS,
            )
        if response.status != _OK:
            raise self._failure(response.status, response.content)
        return response.content

    def _http_request(self, path: str, form: _Form | None) -> HttpRequest:
        headers = dict(self._headers)
        if form is not None:
            headers["Content-Type"] = form.content_type
            headers["Content-Length"] = str(form.size)
        return HttpRequest(
            url=f"{_BASE}/{path}",
            headers=list(headers.items()),
            timeout=self._settings.timeout,
            method="GET" if form is None else "POST",
            body=None if form is None else _iterated(form.blocks),
        )

    def _failure(self, status: int, content: bytes) -> ParserError:
        message = f"{HOST} answered {status}"
        if status in _TRANSIENT:
            return RetryableParserError(message)
        if status in _KEY_REFUSED:
            return ParserError(
                f"{message}: set FONDS_LLAMAPARSE_KEY to a key that is valid there and may parse"
            )
        try:
            detail = json.loads(content)["detail"]
        except (ValueError, RecursionError, KeyError, TypeError):
            detail = None
        return ParserError(f"{message}{self._quoted(detail)}")

    def _is_done(self, job: dict[str, Any]) -> bool:
        status = job.get("status")
        if status in _WORKING:
            return False
        if status in _FAILED:
            detail = self._quoted(job.get("error_message") or job.get("error_code"))
            raise ParserError(f"{HOST} could not read the file{detail}")
        if status == "PARTIAL_SUCCESS":
            # A document with missing pages would be searched and cited as if it were complete.
            raise ParserError(f"{HOST} could read only some pages of the file")
        if status != "SUCCESS":
            raise _broken("a status that is not known")
        return True

    def _quoted(self, detail: Any) -> str:
        if not isinstance(detail, str):
            return ""
        line = " ".join(detail.split()).replace(self._settings.llamaparse_key, "[key]")
        return f" ({line[:_MAX_DETAIL_LENGTH]})" if line else ""


@contextmanager
def _parser_errors() -> Iterator[None]:
    try:
        yield
    except RetryableFetchError as error:
        raise RetryableParserError(str(error)) from error
    except TooLargeError as error:
        raise ParserError(f"{error}; FONDS_MAX_FILE_MIB sets the limit for texts") from error
    except FetchError as error:
        raise ParserError(str(error)) from error


async def _iterated(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        response = json.loads(content)
    except (ValueError, RecursionError):
        response = None
    if not isinstance(response, dict):
        raise _broken("something other than a JSON object")
    return response


def _submitted(response: dict[str, Any]) -> str:
    external_id = response.get("id")
    if not isinstance(external_id, str) or not _ID.fullmatch(external_id):
        raise _broken("no id of the job")
    return external_id


def _markdown(response: dict[str, Any]) -> str:
    text = response.get("markdown")
    if not isinstance(text, str):
        raise _broken("no text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParserError(f"{HOST} returned a text with halves of characters") from None
    if "\0" in text:
        raise ParserError(f"{HOST} returned a text that contains NUL characters")
    return text


def _broken(what: str) -> RetryableParserError:
    return RetryableParserError(f"{HOST} answered with {what}")


def _checked_id(external_id: str) -> str:
    # It becomes part of a path.
    if not _ID.fullmatch(external_id):
        raise ParserError(f"the id of the job at {HOST} is malformed")
    return external_id


def _headers(settings: Settings) -> dict[str, str]:
    key = settings.llamaparse_key
    if not key:
        raise MissingKeyError("the parser llamaparse needs a key: set FONDS_LLAMAPARSE_KEY")
    # A line break in a header would make a library quote the key in its error.
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise SettingsError("FONDS_LLAMAPARSE_KEY contains characters that no key has")
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Authorization": f"Bearer {key}",
        "User-Agent": settings.user_agent,
    }


def _form(blocks: Iterable[bytes], size: int, name: str, fields: Mapping[str, str]) -> _Form:
    boundary = uuid4().hex
    opening = f"--{boundary}\r\nContent-Disposition: form-data; name="
    parts = "".join(f'{opening}"{key}"\r\n\r\n{value}\r\n' for key, value in fields.items())
    media_type = _TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")
    file = f'{opening}"file"; filename="{name.translate(_ESCAPES)}"\r\nContent-Type: {media_type}'
    head = f"{parts}{file}\r\n\r\n".encode("utf-8", "replace")
    tail = f"\r\n--{boundary}--\r\n".encode()
    return _Form(
        content_type=f"multipart/form-data; boundary={boundary}",
        size=len(head) + size + len(tail),
        blocks=chain([head], _counted(blocks, size), [tail]),
    )


def _counted(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    sent = 0
    for block in blocks:
        sent += len(block)
        if sent <= size:
            yield block
    if sent != size:
        raise ParserError(f"the stored file has {sent} bytes instead of {size}")
