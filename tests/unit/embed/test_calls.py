from __future__ import annotations

import base64
import hashlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from fonds.embed.base import Embedded, EmbeddingModel, Purpose, pack_vectors
from fonds.embed.client import PROBE, EmbeddingClient, EmbeddingResult
from fonds.errors import BadVectorsError, EmbedError, RetryableEmbedError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.testing import ManualClock

DIMS = 8
Mishap = Callable[[Sequence[str]], NDArray[np.float32] | None]


def good(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array(
        [list(hashlib.sha256(text.encode()).digest()[:DIMS]) for text in texts], np.float32
    ).reshape(len(texts), DIMS)


class Scripted:
    """A model that does what a function says, and remembers what it was asked."""

    is_remote = True
    model = EmbeddingModel(name="scripted", version="1", dims=DIMS)

    def __init__(self, mishap: Mishap = lambda _texts: None) -> None:
        self.asked: list[list[str]] = []
        self._mishap = mishap

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        assert purpose == "passage"
        self.asked.append(list(texts))
        wrong = self._mishap(texts)
        return Embedded(vectors=good(texts) if wrong is None else wrong, tokens=10 * len(texts))


class Waits:
    """A sleep that only moves the clock, a little too far as real ones do."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.clock.move(seconds=seconds + 0.00001)


@pytest.fixture
def waits() -> Waits:
    return Waits(ManualClock())


def calls_of(model: Scripted, waits: Waits, **settings: object) -> EmbeddingClient:
    seams = Seams(clock=waits.clock, rng=random.Random(1))
    return EmbeddingClient(model, seams, Settings(**settings), sleep=waits)  # type: ignore[arg-type]  # by name


def ask(calls: EmbeddingClient, texts: Sequence[str]) -> EmbeddingResult:
    return calls.embed(texts, [10] * len(texts))


def in_turn(*mishaps: Exception | NDArray[np.float32] | None) -> Mishap:
    script: Iterator[Exception | NDArray[np.float32] | None] = iter(mishaps)

    def happen(_texts: Sequence[str]) -> NDArray[np.float32] | None:
        mishap = next(script, None)
        if isinstance(mishap, Exception):
            raise mishap
        return mishap

    return happen


def words(count: int) -> list[str]:
    return [f"word {number}" for number in range(count)]


def test_vectors_come_in_the_order_of_their_texts(waits: Waits) -> None:
    answers = ask(calls_of(Scripted(), waits), words(5))
    expected = pack_vectors(good(words(5)), 5, DIMS)
    assert [answers.vectors[place] for place in range(5)] == expected
    assert (answers.requests, answers.retries, answers.tokens) == (1, 0, 50)
    assert (answers.refused, answers.ended, waits.slept) == ({}, None, [])


def test_a_failure_that_may_pass_is_repeated_with_growing_jittered_waits(waits: Waits) -> None:
    down = RetryableEmbedError("503")
    answers = ask(calls_of(Scripted(in_turn(down, down, down)), waits, retry_wait=1.0), words(2))
    assert len(answers.vectors) == 2
    assert (answers.requests, answers.retries) == (4, 3)
    for wait, least in zip(waits.slept, (1, 2, 4), strict=True):
        assert least < wait < least + 1


def test_the_wait_an_endpoint_asks_for_is_kept_up_to_a_bound(waits: Waits) -> None:
    mishaps = in_turn(
        RetryableEmbedError("429", retry_after=7), RetryableEmbedError("429", retry_after=9999)
    )
    ask(calls_of(Scripted(mishaps), waits, retry_wait_max=60.0), words(1))
    assert waits.slept == [7.0, 60.0]


def test_who_is_held_back_while_waiting_for_its_turn_waits_on(waits: Waits) -> None:
    calls = calls_of(Scripted(), waits, embed_rate="60/")
    calls.embed(["first"], [1])

    def held_meanwhile(seconds: float) -> None:
        if not waits.slept:
            calls.endpoint.limits.pause(30)
        waits(seconds)

    calls._sleep = held_meanwhile
    assert calls.embed(["second"], [1]).ended is None
    assert waits.slept == [1.0, 29.0]


def test_the_limits_of_the_settings_are_kept(waits: Waits) -> None:
    calls = calls_of(Scripted(), waits, embed_rate="60/6000")
    for _ in range(3):
        calls.embed(words(2), [100, 100])
    assert waits.clock.elapsed == pytest.approx(6, abs=0.1)


def test_the_limits_of_an_endpoint_are_none_of_a_model_on_this_machine(waits: Waits) -> None:
    model = Scripted()
    model.is_remote = False
    calls = calls_of(model, waits, embed_rate="1/1")
    for _ in range(3):
        assert len(ask(calls, words(2)).vectors) == 2
    assert waits.slept == []


@pytest.mark.parametrize(
    "wrong",
    [
        good(words(3))[:2],
        good(words(4)),
        good(words(3))[:, :-1],
        np.full((3, DIMS), np.nan, np.float32),
        np.full((3, DIMS), np.inf, np.float32),
        np.zeros(3, np.float32),
    ],
    ids=["fewer", "more", "narrow", "nan", "infinite", "flat"],
)
def test_a_bad_answer_is_asked_for_again(wrong: NDArray[np.float32], waits: Waits) -> None:
    answers = ask(calls_of(Scripted(in_turn(wrong)), waits), words(3))
    assert len(answers.vectors) == 3
    assert (answers.requests, answers.retries, answers.tokens) == (2, 1, 60)


@pytest.mark.parametrize("place", [0, 77, 255])
@pytest.mark.parametrize("kind", ["nan", "500", "400", "crash"])
def test_a_text_that_spoils_its_batch_is_found_and_the_others_are_kept(
    place: int, kind: str, waits: Waits
) -> None:
    def spoil(texts: Sequence[str]) -> NDArray[np.float32] | None:
        if f"word {place}" not in texts:
            return None
        if kind == "nan":
            return np.full((len(texts), DIMS), np.nan, np.float32)
        errors = {"500": RetryableEmbedError("500 oops"), "400": EmbedError("400 oops")}
        raise errors.get(kind, ZeroDivisionError("oops"))

    model = Scripted(spoil)
    answers = ask(calls_of(model, waits), words(256))
    assert set(answers.refused) == {place}
    assert set(answers.vectors) == set(range(256)) - {place}
    assert ("finite" if kind == "nan" else "oops") in answers.refused[place]
    assert answers.ended is None
    assert answers.requests == len(model.asked)
    everything = pack_vectors(good(words(256)), 256, DIMS)
    assert all(vector == everything[at] for at, vector in answers.vectors.items())


def test_several_texts_that_spoil_a_batch_are_all_found(waits: Waits) -> None:
    bad = {"word 3", "word 4", "word 60"}

    def spoil(texts: Sequence[str]) -> None:
        if bad & set(texts):
            raise EmbedError("refused by a filter")

    answers = ask(calls_of(Scripted(spoil), waits), words(64))
    assert set(answers.refused) == {3, 4, 60}
    assert len(answers.vectors) == 61


def test_a_model_that_refuses_every_text_blames_none_of_them(waits: Waits) -> None:
    def refuse(_texts: Sequence[str]) -> None:
        raise EmbedError("401: set FONDS_EMBED_KEY")

    model = Scripted(refuse)
    answers = ask(calls_of(model, waits), words(256))
    assert answers.ended == "401: set FONDS_EMBED_KEY"
    assert (answers.vectors, answers.refused) == ({}, {})
    assert model.asked == [words(256), [PROBE]]


def test_a_model_of_other_dims_blames_no_text(waits: Waits) -> None:
    model = Scripted(lambda texts: np.ones((len(texts), DIMS + 1), np.float32))
    answers = ask(calls_of(model, waits), words(64))
    assert "instead of" in str(answers.ended)
    assert (answers.vectors, answers.refused) == ({}, {})
    assert len(model.asked) == 4


def test_an_endpoint_that_is_down_opens_the_breaker_and_is_left_alone(waits: Waits) -> None:
    def down(_texts: Sequence[str]) -> None:
        raise RetryableEmbedError("no answer")

    model = Scripted(down)
    calls = calls_of(model, waits, retries=4)
    answers = ask(calls, words(256))
    assert "5 times in a row" in str(answers.ended)
    assert (answers.vectors, answers.refused) == ({}, {})
    assert len(model.asked) == 5
    again = ask(calls, words(3))
    assert "no requests for now" in str(again.ended)
    assert again.requests == 0
    assert len(model.asked) == 5


def test_after_the_pause_an_endpoint_that_is_back_is_asked_as_before(waits: Waits) -> None:
    down = RetryableEmbedError("no answer")
    calls = calls_of(Scripted(in_turn(*[down] * 5)), waits)
    assert ask(calls, words(8)).ended is not None
    waits.clock.move(seconds=31)
    assert len(ask(calls, words(8)).vectors) == 8
    assert ask(calls, words(8)).ended is None


def test_more_tries_than_the_breaker_allows_do_not_make_a_bad_text_look_like_an_outage(
    waits: Waits,
) -> None:
    def spoil(texts: Sequence[str]) -> None:
        if "word 0" in texts:
            raise RetryableEmbedError("500")

    answers = ask(calls_of(Scripted(spoil), waits, retries=9), words(16))
    assert (set(answers.refused), answers.ended) == ({0}, None)


def test_what_was_answered_before_the_end_is_kept(waits: Waits) -> None:
    seen: list[int] = []

    def fail_late(texts: Sequence[str]) -> None:
        seen.append(len(texts))
        if len(texts) == 8 or len(seen) > 3:
            raise EmbedError("gone")

    answers = ask(calls_of(Scripted(fail_late), waits), words(8))
    assert seen == [8, 1, 4, 4, 1]
    assert set(answers.vectors) == {0, 1, 2, 3}
    assert answers.ended == "gone"


def test_nothing_is_asked_when_it_should_stop(waits: Waits) -> None:
    model, stop = Scripted(), Event()
    stop.set()
    answers = EmbeddingClient(model, Seams(clock=waits.clock), Settings(), stop=stop).embed(
        ["a"], [1]
    )
    assert answers.ended == "asked to stop"
    assert model.asked == []


def test_stopping_ends_a_long_wait() -> None:
    stop = Event()

    def fail_and_stop(_texts: Sequence[str]) -> None:
        stop.set()
        raise RetryableEmbedError("429", retry_after=10_000)

    model = Scripted(fail_and_stop)
    calls = EmbeddingClient(model, Seams(), Settings(retry_wait_max=10_000), stop=stop)
    assert calls.embed(["a"], [1]).ended == "asked to stop"
    assert len(model.asked) == 1


def test_stored_vectors_have_unit_length_and_the_hash_of_their_base64() -> None:
    long = np.array([[3.0, 4.0], [0.0, 0.0], [1e38, 1e38], [1e-30, 0.0]], np.float32)
    stored = pack_vectors(long, 4, 2)
    numbers = [np.frombuffer(vector.data, "<f4").tolist() for vector in stored]
    assert numbers[:2] == [pytest.approx([0.6, 0.8]), [0.0, 0.0]]
    assert numbers[2:] == [pytest.approx([math.sqrt(0.5)] * 2), [1.0, 0.0]]
    assert stored[0].sha == hashlib.sha256(base64.b64encode(stored[0].data)).hexdigest()


def test_an_array_that_is_not_one_vector_for_each_text_is_refused() -> None:
    with pytest.raises(BadVectorsError, match="3 vectors of 8"):
        pack_vectors(np.zeros((2, 8), np.float32), 3, 8)
