"""Asking a model: politely, again where that may help, and never trusting the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final

from fonds.embed.base import Embedder, EmbeddingModel
from fonds.embed.breaker import FAILURES, Breaker
from fonds.embed.limits import Limits, read_rate
from fonds.embed.packing import packed
from fonds.errors import BadVectorsError, BreakerOpenError, EmbedError, RetryableEmbedError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.embedding import Vector

BAD_ANSWERS: Final = 2
"""So many in a row are no accident: the batch is divided to find the text that causes them."""
PROBE: Final = "Public documents in, cited answers out."
"""A text that every model can embed; if it fails too, no other text is to blame."""

Sleep = Callable[[float], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Restraint:
    """How an endpoint is spared; shared by all who ask it from one process."""

    limits: Limits
    breaker: Breaker


@dataclass(kw_only=True, slots=True)
class Answers:
    """What came of asking for the vectors of some texts, by their place among them."""

    vectors: dict[int, Vector] = field(default_factory=dict)
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
            limits=Limits(rate, seams.clock), breaker=Breaker(seams.clock, failures=failures)
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

    def _ask(self, texts: Sequence[str], tokens: int, answers: Answers) -> list[Vector]:
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

    def _ask_once(self, texts: Sequence[str], answers: Answers) -> list[Vector]:
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
