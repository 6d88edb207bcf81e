"""Asking a model: politely, again where that may help, and never trusting the answer.

The circuit breaker: an endpoint that keeps failing is left alone for a while.

How often, and with how many tokens, an endpoint is asked.

Endpoints that are left alone, written where other processes see it: among the leases.

A breaker belongs to the process that asks. When it opens, that process notes until when; the note
runs out by itself if the process dies, as a lease does.
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

from fonds.embed.base import Embedder, EmbeddingModel, packed
from fonds.errors import (
    BadVectorsError,
    BreakerOpenError,
    EmbedError,
    RetryableEmbedError,
    SettingsError,
)
from fonds.fetch.rates import Bucket, Pace
from fonds.seams import Clock, Seams
from fonds.settings import Settings
from fonds.stores.database import Database, upsert
from fonds.stores.tables import ingestion_leases
from fonds.stores.vector_buffer import StoredVector

FAILURES: Final = 5
PAUSE: Final = 30.0
"""Seconds before one request tries whether the endpoint is back."""


class Breaker:
    """Opens after some failures in a row; shared by all threads that ask one endpoint."""

    def __init__(self, clock: Clock, *, failures: int = FAILURES, pause: float = PAUSE) -> None:
        self._clock = clock
        self._most = failures
        self._pause = pause
        self._lock = Lock()
        self._failures = 0
        self._cause = ""
        self._open_until: float | None = None
        self._is_probing = False
        self.tell: Callable[[float | None], object] = lambda _seconds: None
        """Told for how many seconds the endpoint is left alone, and None when it is back."""

    def check(self) -> None:
        """Let a request pass or raise BreakerOpenError; after the pause one may try.

        Whoever passes must say how it went, by `succeeded` or `failed`.
        """
        with self._lock:
            if self._open_until is None:
                return
            left = self._open_until - self._clock.monotonic()
            if left > 0 or self._is_probing:
                raise BreakerOpenError(
                    f"the endpoint failed {self._failures} times in a row and is left alone;"
                    f" last: {self._cause}",
                    retry_after=max(left, 0.0),
                )
            self._is_probing = True

    def succeeded(self) -> None:
        """The endpoint answered."""
        with self._lock:
            was_open = self._open_until is not None
            self._failures, self._open_until, self._is_probing = 0, None, False
        if was_open:
            self.tell(None)

    def failed(self, cause: str) -> None:
        """The endpoint did not answer, or said that it cannot."""
        with self._lock:
            self._failures += 1
            self._cause = cause
            self._is_probing = False
            is_open = self._failures >= self._most
            if is_open:
                self._open_until = self._clock.monotonic() + self._pause
        if is_open:
            self.tell(self._pause)


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointRate:
    """What an endpoint allows in a minute; infinite where it sets no limit."""

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
        raise ValueError("a limit must let something through")
    return number


class RateLimits:
    """Tells whoever asks how long to wait; one for all threads that share an endpoint."""

    def __init__(self, rate: EndpointRate | None, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._requests = _bucket(rate.requests, clock) if rate else None
        self._tokens = _bucket(rate.tokens, clock) if rate else None
        self._held_until = 0.0

    def reserve(self, tokens: int) -> float:
        """Take a turn for one request, and say in how many seconds it comes."""
        with self._lock:
            turn = self._requests.reserve() if self._requests else 0.0
            share = self._tokens.reserve(tokens) if self._tokens else 0.0
        return max(turn, share, self.held())

    def hold(self, seconds: float) -> None:
        """Let nobody ask before so many seconds have passed."""
        with self._lock:
            self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def held(self) -> float:
        """For how many seconds nobody may ask."""
        return max(0.0, self._held_until - self._clock.monotonic())


def _bucket(a_minute: float, clock: Clock) -> Bucket | None:
    """Evenly spread: no minute, wherever it begins, has more than is allowed and one request."""
    return None if math.isinf(a_minute) else Bucket(Pace(per_second=a_minute / 60), clock)


BAD_ANSWERS: Final = 2
"""So many in a row are no accident: the batch is divided to find the text that causes them."""
PROBE: Final = "Public documents in, cited answers out."
"""A text that every model can embed; if it fails too, no other text is to blame."""

Sleep = Callable[[float], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Restraint:
    """How an endpoint is spared; shared by all who ask it from one process."""

    limits: RateLimits
    breaker: Breaker


@dataclass(kw_only=True, slots=True)
class Answers:
    """What came of asking for the vectors of some texts, by their place among them."""

    vectors: dict[int, StoredVector] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    """Texts the model cannot embed, and why."""
    tokens: int = 0
    requests: int = 0
    """All of them, retries included."""
    retries: int = 0
    ended: str | None = None
    """Why no more should be asked now; texts that are in neither list were not answered."""


class _EndedError(Exception):
    """Nothing more is to be asked now."""


class Calls:
    """Asks one model; used by several threads at once.

    A failure that may pass is repeated with growing waits. A batch that keeps failing is divided
    until the text that causes it is alone, unless the model fails with any text: then the blame
    is not on the texts, and asking ends.
    """

    def __init__(
        self,
        embedder: Embedder,
        seams: Seams,
        settings: Settings | None = None,
        *,
        stop: Event | None = None,
        restraint: Restraint | None = None,
        sleep: Sleep | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._seams = seams
        self._embedder = embedder
        self.stop = stop or Event()
        """Set it to end the waiting and asking soon."""
        self.restraint = restraint or self.restraint_of(embedder, seams, self._settings)
        self._sleep = sleep or self.stop.wait

    @property
    def model(self) -> EmbeddingModel:
        """Which model is asked."""
        return self._embedder.model

    @property
    def is_remote(self) -> bool:
        """Whether asking it means waiting for another machine."""
        return self._embedder.is_remote

    @staticmethod
    def restraint_of(embedder: Embedder, seams: Seams, settings: Settings) -> Restraint:
        """What the settings ask for; keep it to share it between several drains."""
        rate = read_rate(settings.embed_rate) if embedder.is_remote else None
        # One batch that fails to the last try must not open it: its texts may be the cause.
        failures = max(FAILURES, settings.retries + 1)
        return Restraint(
            limits=RateLimits(rate, seams.clock), breaker=Breaker(seams.clock, failures=failures)
        )

    def embed(self, texts: Sequence[str], sizes: Sequence[int]) -> Answers:
        """The vectors of texts, whose sizes are in tokens, as we count them."""
        answers = Answers()
        try:
            self._divide(range(len(texts)), texts, sizes, answers)
        except _EndedError as ended:
            answers.ended = str(ended)
        return answers

    def _divide(
        self, places: range, texts: Sequence[str], sizes: Sequence[int], answers: Answers
    ) -> None:
        try:
            wanted = [texts[place] for place in places]
            made = self._ask(wanted, sum(sizes[place] for place in places), answers)
        except EmbedError as error:
            self._require_health(answers)
            if len(places) == 1:
                answers.refused[places[0]] = str(error)
                return
            middle = len(places) // 2
            self._divide(places[:middle], texts, sizes, answers)
            self._divide(places[middle:], texts, sizes, answers)
        else:
            answers.vectors.update(zip(places, made, strict=True))

    def _require_health(self, answers: Answers) -> None:
        try:
            self._ask([PROBE], len(PROBE), answers)
        except EmbedError as error:
            raise _EndedError(str(error)) from error

    def _ask(self, texts: Sequence[str], tokens: int, answers: Answers) -> list[StoredVector]:
        failures = 0
        while True:
            self._await_turn(tokens)
            try:
                return self._ask_once(texts, answers)
            except BadVectorsError:
                failures += 1
                if failures >= BAD_ANSWERS:
                    raise
            except RetryableEmbedError as error:
                failures += 1
                if failures >= self._settings.retries:
                    raise
                self.restraint.limits.hold(self._wait_after(error, failures))
            answers.retries += 1

    def _await_turn(self, tokens: int) -> None:
        wait = self.restraint.limits.reserve(tokens)
        # Whoever was told to wait may find, when the time has come, that all are held back.
        while wait > 0:
            self._sleep(wait)
            self._require_going()
            wait = self.restraint.limits.held()
        self._require_going()
        try:
            self.restraint.breaker.check()
        except BreakerOpenError as error:
            raise _EndedError(str(error)) from error

    def _require_going(self) -> None:
        if self.stop.is_set():
            raise _EndedError("asked to stop")

    def _ask_once(self, texts: Sequence[str], answers: Answers) -> list[StoredVector]:
        answers.requests += 1
        breaker = self.restraint.breaker
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
        answers.tokens += embedded.tokens
        return packed(embedded.vectors, len(texts), self._embedder.model.dims)

    def _wait_after(self, error: RetryableEmbedError, failures: int) -> float:
        first, longest = self._settings.retry_wait, self._settings.retry_wait_max
        if error.retry_after is not None:
            return min(error.retry_after, longest)
        # Jitter keeps processes that failed together from coming back together.
        doubled = first * 2.0 ** min(failures - 1, 32)
        return min(doubled + self._seams.chance.uniform(0, first), longest)


PREFIX: Final = "breaker-"
"""How the names of these notes begin among the leases."""


def noted(database: Database, model: str, clock: Clock) -> Callable[[float | None], None]:
    """Notes that the endpoint of a model is left alone for so many seconds, or (None) no more."""

    def note(seconds: float | None) -> None:
        # It is news about trouble, and must not become trouble itself.
        with suppress(SQLAlchemyError), database.write() as connection:
            if seconds is None:
                mine = ingestion_leases.c.name == f"{PREFIX}{model}"
                connection.execute(delete(ingestion_leases).where(mine))
                return
            owner = f"{os.uname().nodename}:{os.getpid()}"
            until = clock.now() + timedelta(seconds=seconds)
            row = {"name": f"{PREFIX}{model}", "owner": owner, "lease_until": until}
            upsert(connection, ingestion_leases, [row])

    return note


def left_alone(connection: Connection, now: datetime) -> set[str]:
    """The models whose endpoint some process leaves alone now."""
    table = ingestion_leases.c
    query = select(table.name).where(table.name.startswith(PREFIX), table.lease_until > now)
    return {name.removeprefix(PREFIX) for name in connection.scalars(query)}
