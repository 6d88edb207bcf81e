"""Limits of what a client may occupy: connections, and the time in which it sends and reads.

Uvicorn closes connections that are idle between requests and no others: a client that sends half a
request, or reads no response, would occupy its connection for ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from fonds.peers import belongs_to_own_user
from fonds.serving import is_loopback


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionLimits:
    """The limits of a server. Each bounds a client that is slower than any honest one."""

    max_connections: int = 500
    """Beyond it the connection is closed that has waited longest for its client."""
    idle_seconds: int = 5
    """Between two requests."""
    head_seconds: float = 20.0
    """From the first byte of a request, or from connecting, to the end of its headers."""
    body_seconds: float = 30.0
    """Between two parts of a body; and for a body before it must have the least rate."""
    body_bytes_per_second: int = 500
    """The least rate of a body, on average."""
    read_seconds: float = 60.0
    """Without the client reading anything of a response."""


IS_OWN_USER: Final = "is_own_user"
"""In the state of a request from this machine: if its peer belongs to the user of this process."""

_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\n"
    b"Connection: close\r\n\r\n"
)

_log: Final = structlog.get_logger("fonds.connections")


def bounded_protocol(limits: ConnectionLimits) -> type[H11Protocol]:
    """The protocol class for a server with these limits."""
    return type("BoundedProtocol", (_BoundedProtocol,), {"limits": limits})


class _BoundedProtocol(H11Protocol):
    """One connection, closed when its client exceeds a limit."""

    limits: ConnectionLimits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        self._deadline: asyncio.TimerHandle | None = None
        self._read_deadline: asyncio.TimerHandle | None = None
        self._phase: object = None
        self._has_responded = False
        self._restart_body()
        super().connection_made(transport)
        if self.client and is_loopback(self.client[0]):
            peer = transport.get_extra_info("socket")
            self.app_state = {**self.app_state, IS_OWN_USER: belongs_to_own_user(peer)}
        if len(self.connections) > self.limits.max_connections and not self._make_room():
            transport.write(_UNAVAILABLE)
            transport.close()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadlines()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._last_byte_at = self.loop.time()
        self._received_bytes += len(data)
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._has_responded = True
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_deadline is None:
            seconds = self.limits.read_seconds
            self._read_deadline = self.loop.call_later(seconds, self._end, "response not read")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_deadline is not None:
            self._read_deadline.cancel()
            self._read_deadline = None

    @property
    def is_waiting(self) -> bool:
        """True while the rest of a request, or the next one, is still to come."""
        return self.conn.their_state in {h11.IDLE, h11.SEND_BODY}

    @property
    def waiting_since(self) -> float:
        """The time of the last byte."""
        return self._last_byte_at

    def _make_room(self) -> bool:
        """Close the connection that has waited longest; false if all others are at work."""
        bounded = {each for each in self.connections if isinstance(each, _BoundedProtocol)}
        waiting = [each for each in bounded - {self} if each.is_waiting]
        if not waiting:
            return False
        # One without a whole head has cost nothing yet.
        oldest = min(
            waiting, key=lambda each: (each.conn.their_state is h11.SEND_BODY, each.waiting_since)
        )
        oldest._end("too many connections")  # noqa: SLF001 — of another connection
        self.connections.discard(oldest)  # it is one no longer, although it closes a little later
        return True

    def _watch(self) -> None:
        """Set the deadline of the phase that a request is in, when it enters it."""
        state = self.conn.their_state
        if state is h11.IDLE and self._has_responded and not self.conn.trailing_data[0]:
            state = h11.DONE  # uvicorn closes it when it is idle for too long
        if state is self._phase:
            return
        self._phase = state
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if state is h11.IDLE:
            seconds = self.limits.head_seconds
            self._deadline = self.loop.call_later(seconds, self._end, "headers incomplete")
        elif state is h11.SEND_BODY:
            self._restart_body()
            self._check_body()

    def _restart_body(self) -> None:
        self._receiving_since = self._last_byte_at = self.loop.time()
        self._received_bytes = 0

    def _check_body(self) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._restart_body()  # it is the server that does not read
        limits = self.limits
        grace = limits.body_seconds + self._received_bytes / limits.body_bytes_per_second
        end = min(self._last_byte_at + limits.body_seconds, self._receiving_since + grace)
        if self.loop.time() >= end:
            self._end("body too slow")
        else:
            self._deadline = self.loop.call_at(end, self._check_body)

    def _end(self, reason: str) -> None:
        self._cancel_deadlines()
        if self.transport.is_closing():
            return
        client = self.client[0] if self.client else ""
        _log.info("connection_closed", reason=reason, client=client)
        self.transport.abort()

    def _cancel_deadlines(self) -> None:
        for deadline in (self._deadline, self._read_deadline):
            if deadline is not None:
                deadline.cancel()
        self._deadline = self._read_deadline = None
