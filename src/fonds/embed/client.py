"""The client of an embedding model: rate limits, retries, a circuit breaker, checked results.

A breaker belongs to one process. When it opens, that process records this among the leases, where
other processes can read it; the record expires by itself if the process dies.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock
from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import SQLAlchemyError

from fonds.embed.base import Embedder, EmbeddingModel, pack_vectors
from fonds.errors import (
    BadVectorsError,
    BreakerOpenError,
    EmbedError,
    RetryableEmbedError,
    SettingsError,
    StoreError,
)
from fonds.fetch.rates import Bucket, Pace
from fonds.seams import Clock, Seams
from fonds.settings import Settings
from fonds.stores.database import Database, upsert
from fonds.stores.tables import ingestion_leases
from fonds.stores.vector_buffer import StoredVector

FAILURES: Final = 5
PAUSE: Final = 30.0
"""Seconds before one request probes whether the endpoint is back."""


class Breaker:
    """A circuit breaker: opens after some failures in a row; shared by all threads of a client."""

    def __init__(self, clock: Clock, *, failures: int = FAILURES, pause: float = PAUSE) -> None:
        self._clock = clock
        self._max_failures = failures
        self._pause = pause
        self._lock = Lock()
        self._failures = 0
        self._last_error = ""
        self._open_until: float | None = None
        self._is_probing = False
        self.on_change: Callable[[float | None], object] = lambda _seconds: None
        """Called with the seconds for which the breaker opens, and with None when it closes."""

    def check(self) -> None:
        """Raise BreakerOpenError while it is open; after the pause one request may pass.

        The caller must report the result of its request, by `succeeded` or `failed`.
        """
        with self._lock:
            if self._open_until is None:
                return
            left = self._open_until - self._clock.monotonic()
            if left > 0 or self._is_probing:
                raise BreakerOpenError(
                    f"no requests for now: the endpoint failed {self._failures} times in a row;"
                    f" last error: {self._last_error}",
                    retry_after=max(left, 0.0),
                )
            self._is_probing = True

    def succeeded(self) -> None:
        """Record a response of the endpoint."""
        with self._lock:
            was_open = self._open_until is not None
            self._failures, self._open_until, self._is_probing = 0, None, False
        if was_open:
            self.on_change(None)

    def failed(self, error: str) -> None:
        """Record that the endpoint did not respond, or responded that it is unavailable."""
        with self._lock:
            self._failures += 1
            self._last_error = error
            self._is_probing = False
            is_open = self._failures >= self._max_failures
            if is_open:
                self._open_until = self._clock.monotonic() + self._pause
        if is_open:
            self.on_change(self._pause)


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointRate:
    """The limits of an endpoint for a minute; infinite where it sets none."""

    requests: float
    tokens: float


def read_rate(text: str) -> EndpointRate | None:
    """The limits of the setting `embed_rate`: `500/1000000`, `500`, `/1000000`; None for none."""
    if not text.strip():
        return None
    requests, _, tokens = text.partition("/")
    try:
        rate = EndpointRate(requests=_number(requests), tokens=_number(tokens))
    except ValueError as error:
        raise SettingsError(
            f"embed_rate: {text!r} is not requests/tokens a minute, such as 500/1000000"
        ) from error
    return rate


def _number(text: str) -> float:
    number = float(text.replace("_", "")) if text.strip() else math.inf
    if not number > 0:
        raise ValueError("a limit must be above zero")
    return number


class RateLimits:
    """The rate limits of an endpoint, shared by all threads that send requests to it."""

    def __init__(self, rate: EndpointRate | None, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._requests = _bucket(rate.requests, clock) if rate else None
        self._tokens = _bucket(rate.tokens, clock) if rate else None
        self._paused_until = 0.0

    def reserve(self, tokens: int) -> float:
        """Reserve one request of so many tokens; returns the seconds until it may be sent."""
        with self._lock:
            for_request = self._requests.reserve() if self._requests else 0.0
            for_tokens = self._tokens.reserve(tokens) if self._tokens else 0.0
        return max(for_request, for_tokens, self.pause_left())

    def pause(self, seconds: float) -> None:
        """Send no requests for so many seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock.monotonic() + seconds)

    def pause_left(self) -> float:
        """The seconds for which no requests are sent."""
        return max(0.0, self._paused_until - self._clock.monotonic())


def _bucket(a_minute: float, clock: Clock) -> Bucket | None:
    """A bucket that allows a rate evenly: no minute has more than the limit and one request."""
    return None if math.isinf(a_minute) else Bucket(Pace(per_second=a_minute / 60), clock)


MAX_BAD_RESPONSES: Final = 2
"""After so many in a row the batch is divided, to find the text that causes them."""
PROBE: Final = "Public documents in, cited answers out."
"""A text that every model can embed; if it fails too, the other texts are not the cause."""

Sleep = Callable[[float], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointState:
    """The rate limits and the breaker of an endpoint, shared by all its clients in a process."""

    limits: RateLimits
    breaker: Breaker


@dataclass(kw_only=True, slots=True)
class EmbeddingResult:
    """The vectors and errors of some texts, by their index."""

    vectors: dict[int, StoredVector] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    """The texts that the model cannot embed, and why."""
    tokens: int = 0
    requests: int = 0
    """All requests, retries included."""
    retries: int = 0
    ended: str | None = None
    """Why no more requests should be sent now; texts in neither mapping have no result."""
    error: EmbedError | None = None
    """The error that ended it; None if it was asked to stop."""


class _EndedError(Exception):
    """No more requests are to be sent now."""

    def __init__(self, reason: str, error: EmbedError | None = None) -> None:
        super().__init__(reason)
        self.error = error


class EmbeddingClient:
    """The client of one model; used by several threads at once.

    A transient failure is retried with growing waits. A batch that keeps failing is divided until
    the text that causes it is alone, unless the model fails with any text: then it stops.
    """

    def __init__(
        self,
        embedder: Embedder,
        seams: Seams,
        settings: Settings | None = None,
        *,
        stop: Event | None = None,
        endpoint: EndpointState | None = None,
        sleep: Sleep | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._seams = seams
        self._embedder = embedder
        self.stop = stop or Event()
        """Set it to end waits and requests soon."""
        self.endpoint = endpoint or self.open_endpoint(embedder, seams, self._settings)
        self._sleep = sleep or self.stop.wait

    @property
    def model(self) -> EmbeddingModel:
        """The model that it uses."""
        return self._embedder.model

    @property
    def is_remote(self) -> bool:
        """Whether the model is on another machine."""
        return self._embedder.is_remote

    @staticmethod
    def open_endpoint(embedder: Embedder, seams: Seams, settings: Settings) -> EndpointState:
        """The limits and the breaker by the settings; several clients may share them."""
        rate = read_rate(settings.embed_rate) if embedder.is_remote else None
        # One batch that fails to the last retry must not open it: its texts may be the cause.
        failures = max(FAILURES, settings.retries + 1)
        return EndpointState(
            limits=RateLimits(rate, seams.clock), breaker=Breaker(seams.clock, failures=failures)
        )

    def embed(self, texts: Sequence[str], sizes: Sequence[int]) -> EmbeddingResult:
        """The vectors of texts, whose sizes are in tokens as our chunker counts them."""
        result = EmbeddingResult()
        try:
            self._divide(range(len(texts)), texts, sizes, result)
        except _EndedError as ended:
            result.ended, result.error = str(ended), ended.error
        return result

    def _divide(
        self, indexes: range, texts: Sequence[str], sizes: Sequence[int], result: EmbeddingResult
    ) -> None:
        try:
            some = [texts[index] for index in indexes]
            vectors = self._embed(some, sum(sizes[index] for index in indexes), result)
        except EmbedError as error:
            self._require_health(result)
            if len(indexes) == 1:
                result.refused[indexes[0]] = str(error)
                return
            middle = len(indexes) // 2
            self._divide(indexes[:middle], texts, sizes, result)
            self._divide(indexes[middle:], texts, sizes, result)
        else:
            result.vectors.update(zip(indexes, vectors, strict=True))

    def _require_health(self, result: EmbeddingResult) -> None:
        try:
            self._embed([PROBE], len(PROBE), result)
        except EmbedError as error:
            raise _EndedError(str(error), error) from error

    def _embed(
        self, texts: Sequence[str], tokens: int, result: EmbeddingResult
    ) -> list[StoredVector]:
        failures = 0
        while True:
            self._wait_for_limits(tokens)
            try:
                return self._request(texts, result)
            except BadVectorsError:
                failures += 1
                if failures >= MAX_BAD_RESPONSES:
                    raise
            except RetryableEmbedError as error:
                failures += 1
                if failures >= self._settings.retries:
                    raise
                self.endpoint.limits.pause(self._wait_after(error, failures))
            result.retries += 1

    def _wait_for_limits(self, tokens: int) -> None:
        wait = self.endpoint.limits.reserve(tokens)
        # Meanwhile another thread may have paused all requests.
        while wait > 0:
            self._sleep(wait)
            self._require_going()
            wait = self.endpoint.limits.pause_left()
        self._require_going()
        try:
            self.endpoint.breaker.check()
        except BreakerOpenError as error:
            raise _EndedError(str(error), error) from error

    def _require_going(self) -> None:
        if self.stop.is_set():
            raise _EndedError("asked to stop")

    def _request(self, texts: Sequence[str], result: EmbeddingResult) -> list[StoredVector]:
        result.requests += 1
        breaker = self.endpoint.breaker
        try:
            embedded = self._embedder.embed(texts, "passage")
        except RetryableEmbedError as error:
            breaker.failed(str(error))
            raise
        except EmbedError:
            breaker.succeeded()
            raise
        except Exception as error:
            breaker.succeeded()
            raise EmbedError(f"{type(error).__name__}: {error}") from error
        breaker.succeeded()
        result.tokens += embedded.tokens
        return pack_vectors(embedded.vectors, len(texts), self._embedder.model.dims)

    def _wait_after(self, error: RetryableEmbedError, failures: int) -> float:
        first, limit = self._settings.retry_wait, self._settings.retry_wait_max
        if error.retry_after is not None:
            return min(error.retry_after, limit)
        # Jitter keeps processes that failed together from coming back together.
        doubled = first * 2.0 ** min(failures - 1, 32)
        return min(doubled + self._seams.rng.uniform(0, first), limit)


class Endpoints:
    """The limits and breakers of a process, one for each model; all its clients share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._states: dict[str, EndpointState] = {}

    def of(self, embedder: Embedder, seams: Seams, settings: Settings) -> EndpointState:
        """The limits and the breaker of a model, by the settings."""
        name = embedder.model.name
        with self._lock:
            if name not in self._states:
                self._states[name] = EmbeddingClient.open_endpoint(embedder, seams, settings)
            return self._states[name]


BREAKER_PREFIX: Final = "breaker-"
"""The prefix of the names of open breakers among the leases."""


def breaker_recorder(
    database: Database, model: str, clock: Clock
) -> Callable[[float | None], None]:
    """A function that records that the breaker of a model opened, or (None) that it closed."""

    def record(seconds: float | None) -> None:
        # The record is for information only: failing to write it must not fail the work.
        with suppress(SQLAlchemyError, StoreError), database.write() as connection:
            if seconds is None:
                is_own = ingestion_leases.c.name == f"{BREAKER_PREFIX}{model}"
                connection.execute(delete(ingestion_leases).where(is_own))
                return
            owner = f"{os.uname().nodename}:{os.getpid()}"
            until = clock.now() + timedelta(seconds=seconds)
            row = {"name": f"{BREAKER_PREFIX}{model}", "owner": owner, "lease_until": until}
            upsert(connection, ingestion_leases, [row])

    return record


def open_breakers(connection: Connection, now: datetime) -> set[str]:
    """The models whose breaker is open in any process now."""
    table = ingestion_leases.c
    query = select(table.name).where(table.name.startswith(BREAKER_PREFIX), table.lease_until > now)
    return {name.removeprefix(BREAKER_PREFIX) for name in connection.scalars(query)}
