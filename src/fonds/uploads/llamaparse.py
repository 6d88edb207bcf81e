"""LlamaParse: a file goes out, its text comes back later, by webhook or when asked for.

The service answers an upload with an id of its own. `GET job/{id}` then tells how far it is
(PENDING, SUCCESS, PARTIAL_SUCCESS, ERROR, CANCELLED), and `GET job/{id}/result/markdown` gives
the text. It takes webhook addresses only with https and a host name, of less than 200 characters.
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
"""What a fetched text was made by: the service does not tell more than its API's version."""
HOST: Final = "api.cloud.llamaindex.ai"

_BASE: Final = f"https://{HOST}/api/v1/parsing"
_MIB: Final = 1 << 20
_STATEMENT: Final = _MIB
"""Bytes of any answer but a text."""
_READ_TIMEOUTS: Final = 4
"""Times the setting `timeout`, for a whole answer: a server that drips must not hold a worker."""
# Shorter than the waits between a job's tries taken together, or no job would outlive it.
_PAUSE: Final = 10.0
_QUOTED: Final = 300
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

# What would end the header it stands in, as browsers write it.
_ESCAPES: Final = {ord("\n"): "%0A", ord("\r"): "%0D", ord('"'): "%22"}

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """A text that the service has made."""

    markdown: str = field(repr=False)
    parser_version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    """A body of known length that is made while it is sent."""

    content_type: str
    size: int
    pieces: Iterator[bytes] = field(repr=False)


class LlamaParse:
    """Asks the service; one for a process, shared by its threads, none of which runs a loop."""

    def __init__(self, settings: Settings, seams: Seams) -> None:
        self._settings = settings
        self._headers = _headers(settings)
        self._breaker = Breaker(seams.clock, pause=_PAUSE)

    def submit(
        self,
        pieces: Iterable[bytes],
        size: int,
        name: str,
        *,
        webhook_url: str | None,
        job_id: UUID,
        document_id: UUID,
    ) -> str:
        """Send a file piece by piece and give the service's id of the job."""
        fields = {"job_id": str(job_id), "document_id": str(document_id)}
        if webhook_url:
            fields["webhook_url"] = webhook_url
        form = _form(pieces, size, name, fields)
        return self._ask("upload", _submitted, form=form)

    def fetch(self, their_id: str) -> Fetched | None:
        """The text of a job, or None while it is worked on; ParserError if it failed there."""
        job = f"job/{_checked_id(their_id)}"
        if not self._ask(job, self._is_done):
            return None
        most = self._settings.max_file_mib * _MIB
        markdown = self._ask(f"{job}/result/markdown", _markdown, most=most)
        return Fetched(markdown=markdown, parser_version=VERSION)

    def _ask(
        self,
        path: str,
        read: Callable[[dict[str, Any]], _Answer],
        *,
        form: _Form | None = None,
        most: int = _STATEMENT,
    ) -> _Answer:
        with self._watched():
            spend("http")
            # A job asks a few times in minutes, so every request may have a loop and a connection
            # of its own, which its file may block while it is read.
            return read(_decoded(asyncio.run(self._exchange(path, form, most))))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            self._breaker.check()
        except BreakerOpenError as error:
            raise RetryableParserError(f"{HOST} is not asked for now: {error}") from error
        try:
            with _our_errors():
                yield
        except RetryableParserError as error:
            self._breaker.failed(str(error))
            raise
        except BaseException:
            # Neither a refusal nor a trouble of our own says that the service is down.
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()

    async def _exchange(self, path: str, form: _Form | None, most: int) -> bytes:
        settings = self._settings
        network = HttpTransport(allow_private=settings.allow_private, hosts=settings.hosts)
        async with aclosing(network):
            response = await read_response(
                network,
                self._request(path, form),
                max_bytes=most,
                seconds=settings.timeout * _READ_TIMEOUTS,
            )
        if response.status != _OK:
            raise self._failure(response.status, response.content)
        return response.content

    def _request(self, path: str, form: _Form | None) -> HttpRequest:
        headers = dict(self._headers)
        if form is not None:
            headers["Content-Type"] = form.content_type
            headers["Content-Length"] = str(form.size)
        return HttpRequest(
            url=f"{_BASE}/{path}",
            headers=list(headers.items()),
            timeout=self._settings.timeout,
            method="GET" if form is None else "POST",
            body=None if form is None else _iterated(form.pieces),
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
            said = json.loads(content)["detail"]
        except (ValueError, RecursionError, KeyError, TypeError):
            said = None
        return ParserError(f"{message}{self._quoted(said)}")

    def _is_done(self, job: dict[str, Any]) -> bool:
        status = job.get("status")
        if status in _WORKING:
            return False
        if status in _FAILED:
            said = self._quoted(job.get("error_message") or job.get("error_code"))
            raise ParserError(f"{HOST} could not read the file{said}")
        if status == "PARTIAL_SUCCESS":
            # A document that lacks pages nobody knows of would be found, cited, and wrong.
            raise ParserError(f"{HOST} could read only some pages of the file")
        if status != "SUCCESS":
            raise _broken("a status that is not known")
        return True

    def _quoted(self, said: Any) -> str:
        if not isinstance(said, str):
            return ""
        shown = " ".join(said.split()).replace(self._settings.llamaparse_key, "[key]")
        return f" ({shown[:_QUOTED]})" if shown else ""


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except RetryableFetchError as error:
        raise RetryableParserError(str(error)) from error
    except TooLargeError as error:
        raise ParserError(f"{error}; FONDS_MAX_FILE_MIB sets the limit for texts") from error
    except FetchError as error:
        raise ParserError(str(error)) from error


async def _iterated(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise _broken("something other than a JSON object")
    return answer


def _submitted(answer: dict[str, Any]) -> str:
    their_id = answer.get("id")
    if not isinstance(their_id, str) or not _ID.fullmatch(their_id):
        raise _broken("no id of the job")
    return their_id


def _markdown(answer: dict[str, Any]) -> str:
    text = answer.get("markdown")
    if not isinstance(text, str):
        raise _broken("no text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParserError(f"{HOST} gave a text with halves of characters") from None
    if "\0" in text:
        raise ParserError(f"{HOST} gave a text that holds NUL characters")
    return text


def _broken(what: str) -> RetryableParserError:
    return RetryableParserError(f"{HOST} answered with {what}")


def _checked_id(their_id: str) -> str:
    # It becomes part of a path.
    if not _ID.fullmatch(their_id):
        raise ParserError(f"{HOST} has no job of this id: it is malformed")
    return their_id


def _headers(settings: Settings) -> dict[str, str]:
    key = settings.llamaparse_key
    if not key:
        raise MissingKeyError("the parser llamaparse wants a key: set FONDS_LLAMAPARSE_KEY")
    # A line break in a header would make a library quote the key in its error.
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise SettingsError("FONDS_LLAMAPARSE_KEY holds characters that no key has")
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Authorization": f"Bearer {key}",
        "User-Agent": settings.user_agent,
    }


def _form(pieces: Iterable[bytes], size: int, name: str, fields: Mapping[str, str]) -> _Form:
    boundary = uuid4().hex
    opening = f"--{boundary}\r\nContent-Disposition: form-data; name="
    told = "".join(f'{opening}"{each}"\r\n\r\n{value}\r\n' for each, value in fields.items())
    media_type = _TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")
    file = f'{opening}"file"; filename="{name.translate(_ESCAPES)}"\r\nContent-Type: {media_type}'
    head = f"{told}{file}\r\n\r\n".encode("utf-8", "replace")
    tail = f"\r\n--{boundary}--\r\n".encode()
    return _Form(
        content_type=f"multipart/form-data; boundary={boundary}",
        size=len(head) + size + len(tail),
        pieces=chain([head], _counted(pieces, size), [tail]),
    )


def _counted(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    sent = 0
    for piece in pieces:
        sent += len(piece)
        if sent <= size:
            yield piece
    if sent != size:
        raise ParserError(f"the stored file has {sent} bytes, and not the {size} it should have")
