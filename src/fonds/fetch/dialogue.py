"""HTTP/1.1 over one connection: a question, its answer, and the next question."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import h11

from fonds.fetch.addresses import Address
from fonds.fetch.heads import Head, read, written
from fonds.fetch.sockets import Dialer, Stream
from fonds.fetch.wire import Question

KEPT_ALIVE_SECONDS: Final = 30.0
_AT_ONCE: Final = 64 * 1024
_LONGEST_HEAD: Final = 100 * 1024


class BreachError(Exception):
    """A server broke off, or what it says is no HTTP."""


class UnspeakableError(Exception):
    """A question that cannot be put in HTTP."""


class Dialogue:
    """A connection to one host that serves one request at a time."""

    def __init__(self, address: Address, stream: Stream) -> None:
        self.origin = address.origin
        self.is_idle = False
        """Whether the next question may be asked."""
        self.stream = stream
        self._state: h11.Connection | None = None
        """Of an answer that is not plain."""
        self._arrived = b""
        self._missing = 0
        """Bytes of a plain answer that are still to come."""
        self._patience: float | None = None
        self._idle_until = 0.0

    @property
    def has_expired(self) -> bool:
        """Whether it has been idle for too long, or its server has ended it."""
        late = time.monotonic() > self._idle_until
        return late or self.stream.is_readable

    async def ask(self, question: Question) -> Head:
        """The head of the answer; its body is to be read, or closed."""
        self.is_idle = False
        self._patience = question.patience
        plain = written(question.method, question.address.target, question.headers)
        self._state = None if plain else _machine()
        try:
            # A server may refuse before it has read everything, and close: it has answered.
            with suppress(ConnectionError):
                if plain:
                    await self.stream.write(plain, self._patience)
                else:
                    await self._send(question)
            return await self._head(question)
        except BaseException:
            await self.aclose()
            raise

    async def _head(self, question: Question) -> Head:
        if self._state is None:
            data = await self._read()
            if plain := read(data):
                head, begin, length = plain
                self._arrived, self._missing = data[begin:], length
                return head
            self._state = _machine()
            self._said(_request(question))
            self._said(h11.EndOfMessage())
            self._state.receive_data(data)
        while not isinstance(event := await self._next(), h11.Response):
            pass  # more of the same will follow, says a server that says 1xx
        return Head(event.status_code, event.reason, event.headers.raw_items())

    async def body(self) -> AsyncIterator[bytes]:
        """The body of the answer, as it arrives."""
        if self._state is not None:
            while isinstance(event := await self._next(), h11.Data):
                yield bytes(event.data)
            return
        while self._missing:
            data, self._arrived = self._arrived, b""
            data = data or await self.stream.read(_AT_ONCE, self._patience)
            if not data:
                raise BreachError(f"the server ended it {self._missing} bytes too early")
            # What follows a whole answer would be taken for the next one.
            data, self._arrived = data[: self._missing], data[self._missing :]
            self._missing -= len(data)
            yield data

    async def end(self) -> None:
        """Read no further: the connection is kept if the answer was read whole."""
        if self._is_over():
            self._idle_until = time.monotonic() + KEPT_ALIVE_SECONDS
            self.is_idle = True
        else:
            await self.aclose()

    def _is_over(self) -> bool:
        if self._state is None:
            return not self._missing and not self._arrived
        is_done = self._state.our_state is h11.DONE and self._state.their_state is h11.DONE
        return is_done and not self._state.trailing_data[0]

    async def aclose(self) -> None:
        """Close the connection."""
        self.is_idle = False
        await self.stream.aclose()

    async def _read(self) -> bytes:
        data = await self.stream.read(_AT_ONCE, self._patience)
        if not data:
            raise BreachError("the server ended it without an answer")
        return data

    async def _send(self, question: Question) -> None:
        waiting = self._said(_request(question))
        if question.content is not None:
            async for piece in question.content:
                waiting += self._said(h11.Data(data=piece))
                if len(waiting) > _AT_ONCE:
                    await self.stream.write(waiting, self._patience)
                    waiting = b""
        await self.stream.write(waiting + self._said(h11.EndOfMessage()), self._patience)

    def _said(self, event: Any) -> bytes:
        assert self._state is not None
        try:
            return self._state.send(event) or b""
        except h11.LocalProtocolError as error:
            raise UnspeakableError(str(error)) from error

    async def _next(self) -> Any:
        assert self._state is not None
        while True:
            try:
                event = self._state.next_event()
                if event is not h11.NEED_DATA:
                    return event
                is_answered = self._state.their_state is not h11.SEND_RESPONSE
                more = self.stream.read(_AT_ONCE, self._patience) if is_answered else self._read()
                self._state.receive_data(await more)
            except h11.RemoteProtocolError as error:
                raise BreachError(str(error)) from error


def _machine() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)


def _request(question: Question) -> h11.Request:
    try:
        return h11.Request(
            method=question.method, target=question.address.target, headers=question.headers
        )
    except h11.LocalProtocolError as error:
        raise UnspeakableError(str(error)) from error


async def connect(
    dialer: Dialer, question: Question, tls: Callable[[], ssl.SSLContext]
) -> Dialogue:
    """A new connection to where a question goes."""
    address, patience = question.address, question.patience
    stream = await dialer.connect(address.host, address.port, patience)
    if address.scheme == "https":
        try:
            stream = await stream.start_tls(tls(), address.host, patience)
        except BaseException:
            await stream.aclose()
            raise
    return Dialogue(address, stream)
