"""What draining the embedding queue promises, on every database."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from threading import Barrier, Event, Lock, Thread
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from tests.support.libraries.passages import problems, put

from fonds.embed import batches as workshop
from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.embed.client import PROBE
from fonds.embed.costs import sum_costs
from fonds.embed.generations import ensure_generation
from fonds.embed.worker import EmbeddingReport, drain, fill
from fonds.errors import EmbedError, RetryableEmbedError, UsageError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_embedding_queue as queue
from fonds.stores.vectors import Generation
from fonds.testing import ManualClock

DIMS = 16
BATCH = 32
TOKENS = 65_536 // BATCH
"""Said of every passage where batches are to be small."""
QUICK = Settings(retries=3, retry_wait=0.001, retry_wait_max=0.002)


class Counting:
    """A deterministic model that counts the texts it is asked for, and can be told to misbehave."""

    is_remote = True

    def __init__(self, version: str = "1", batch_tokens: int = 65_536) -> None:
        self.model = EmbeddingModel(
            name="counting", version=version, dims=DIMS, price=2.0, batch_tokens=batch_tokens
        )
        self.asked: list[list[str]] = []
        self.before: Callable[[Sequence[str]], None] = lambda _texts: None
        self._lock = Lock()

    @property
    def texts(self) -> list[str]:
        return [each for texts in self.asked for each in texts if each != PROBE]

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        assert purpose == "passage"
        with self._lock:
            self.asked.append(list(texts))
        self.before(texts)
        drawn = [list(hashlib.sha256(each.encode()).digest()[:DIMS]) for each in texts]
        return Embedded(vectors=np.array(drawn, np.float32), tokens=3 * len(texts))


class Restless(ManualClock):
    """A clock that also moves a little whenever somebody looks at it: nobody waits for ever."""

    def monotonic(self) -> float:
        self.elapsed += 0.001
        return self.elapsed


@pytest.fixture
def clock() -> ManualClock:
    return Restless()


@pytest.fixture
def seams(clock: ManualClock) -> Seams:
    return Seams(clock=clock)


@pytest.fixture
def model() -> Counting:
    return Counting()


@pytest.fixture
def generation(database: Database, seams: Seams, model: Counting) -> Generation:
    return ensure_generation(database, seams, model, "counting")


@pytest.fixture
def run(
    database: Database, clock: ManualClock, model: Counting, generation: Generation
) -> Callable[..., EmbeddingReport]:
    def drained(**options: Any) -> EmbeddingReport:
        clock.move(minutes=1)  # a drain does not try again what was tried since it began
        given = {"settings": QUICK, **options}
        return drain(database, Seams(clock=clock), model, generation, **given)

    return drained


Run = Callable[..., EmbeddingReport]


def rows(database: Database, query: str) -> list[dict[str, Any]]:
    with database.read() as connection:
        return [row._asdict() for row in connection.execute(text(query))]


def notes(count: int, passages: int = 3) -> dict[str, list[str]]:
    return {
        f"note:{number}": [f"passage {place} of note {number}" for place in range(passages)]
        for number in range(count)
    }


def all_texts(context: dict[str, list[str]]) -> list[str]:
    return sorted(each for texts in context.values() for each in texts)


@pytest.mark.parametrize("workers", [1, 4])
def test_every_passage_gets_one_vector_and_the_queue_is_empty(
    database: Database, run: Run, model: Counting, generation: Generation, workers: int
) -> None:
    context = notes(230)
    put(database, context)
    report = run(workers=workers)
    assert problems(database, generation) == []
    assert sorted(model.texts) == all_texts(context)
    assert max(map(len, model.asked)) == 256
    assert (report.done, report.embedded, report.reused) == (230, 690, 0)
    assert (report.waiting, report.failed, report.given_up, report.ended) == (0, 0, 0, None)
    assert (report.requests, report.retries, report.tokens) == (3, 0, 3 * 690)
    assert report.cost == pytest.approx(3 * 690 * 2 / 1e6)


def test_a_second_drain_asks_for_nothing(database: Database, run: Run, model: Counting) -> None:
    put(database, notes(5))
    run()
    model.asked.clear()
    report = run()
    assert model.asked == []
    assert (report.done, report.embedded, report.requests) == (0, 0, 0)


def test_the_text_is_embedded_as_a_reader_sees_it(
    database: Database, run: Run, model: Counting
) -> None:
    put(database, {"note:1": ["A regu\xadlation<!-- page 7 --> applies."]})
    run()
    assert model.texts == ["A regulation  applies."]


@pytest.mark.parametrize("workers", [1, 3])
def test_equal_text_is_embedded_once_wherever_it_stands(
    database: Database, run: Run, model: Counting, generation: Generation, workers: int
) -> None:
    context = {
        f"note:{number}": ["Signed by the clerk.", f"Matter {number % 7}", f"Only {number}"]
        for number in range(250)
    }
    put(database, context)
    report = run(workers=workers)
    assert problems(database, generation) == []
    assert sorted(model.texts) == sorted({each for texts in context.values() for each in texts})
    assert (report.embedded, report.reused) == (258, 750 - 258)
    model.asked.clear()
    put(database, {"note:later": ["Signed by the clerk.", "Another matter"]})
    report = run()
    assert model.texts == ["Another matter"]
    assert (report.embedded, report.reused) == (1, 1)
    assert problems(database, generation) == []


def test_a_thousand_passages_of_one_text_need_one_request(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    put(database, {"note:1": ["Reserved."] * 1300})
    report = run()
    assert model.asked == [["Reserved."]]
    assert (report.embedded, report.reused, report.done) == (1, 1299, 1)
    assert problems(database, generation) == []


def test_only_changed_passages_reach_the_model(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    context = notes(40)
    put(database, context)
    run()
    model.asked.clear()
    context["note:7"] = ["put in front", *context["note:7"]]
    context["note:9"][1] = "another text"
    put(database, context)
    report = run()
    assert sorted(model.texts) == ["another text", "put in front"]
    assert report.done == 2
    assert problems(database, generation) == []


def test_batches_are_sized_by_tokens(
    database: Database, clock: ManualClock, generation: Generation
) -> None:
    model = Counting(batch_tokens=50)
    put(database, notes(10))
    drain(database, Seams(clock=clock), model, generation, settings=QUICK)
    assert [len(texts) for texts in model.asked] == [6] * 5
    assert problems(database, generation) == []


def test_a_long_document_is_read_in_pages_and_stored_batch_by_batch(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    stored: list[int] = []

    def count_stored(_texts: Sequence[str]) -> None:
        query = "SELECT count(*) AS held FROM document_vector_buffer"
        stored.append(rows(database, query)[0]["held"])

    model.before = count_stored
    put(database, {**notes(3), "note:long": [f"paragraph {place}" for place in range(1200)]})
    report = run()
    assert (report.done, report.embedded) == (4, 1209)
    # One worker asks for nothing before all it asked for is stored.
    assert stored == [256 * number for number in range(5)]
    assert problems(database, generation) == []


def test_a_limit_is_a_number_of_documents(database: Database, run: Run, model: Counting) -> None:
    put(database, notes(10, passages=2))
    report = run(limit=4)
    assert (report.done, report.waiting, len(model.texts)) == (4, 6, 8)
    assert run(limit=0).done == 0
    assert run().done == 6


def test_progress_is_told(database: Database, run: Run) -> None:
    told: list[tuple[int, int]] = []
    put(database, notes(300, passages=1), tokens=TOKENS)
    run(watch=lambda documents, passages: told.append((documents, passages)))
    assert told[-1] == (300, 300)
    assert told == sorted(told)
    assert len(told) > 2


def test_a_document_without_passages_leaves_the_queue(database: Database, run: Run) -> None:
    put(database, {"note:empty": []})
    assert run().done == 1
    assert rows(database, "SELECT 1 FROM ingestion_embedding_queue") == []


def test_only_the_document_with_the_bad_passage_fails(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    context = notes(100)
    context["note:50"][1] = "unspeakable"
    put(database, context)

    def refuse(texts: Sequence[str]) -> None:
        if "unspeakable" in texts:
            raise EmbedError("the model cannot read this")

    model.before = refuse
    report = run()
    assert (report.done, report.failed, report.waiting, report.embedded) == (99, 1, 1, 299)
    (left,) = rows(database, "SELECT * FROM ingestion_embedding_queue")
    assert left["record_id"] == "note:50"
    assert left["last_error"] == "the model cannot read this"
    assert (left["attempts"], left["lease_owner"]) == (1, None)
    model.before = lambda _texts: None
    model.asked.clear()
    assert run().done == 1
    assert model.texts == ["unspeakable"]
    assert problems(database, generation) == []


def test_a_document_that_never_succeeds_is_given_up(
    database: Database, run: Run, model: Counting
) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "unspeakable" in texts:
            raise EmbedError("no")

    model.before = refuse
    put(database, {"note:1": ["fine"], "note:2": ["unspeakable"]})
    reports = [run() for _ in range(7)]
    assert [report.failed for report in reports] == [1] * 5 + [0, 0]
    assert reports[-1].given_up == 1
    put(database, {"note:2": ["speakable"]})
    assert (run().done, run().given_up) == (1, 0)


def test_all_documents_with_a_bad_text_fail_and_it_is_not_asked_for_each(
    database: Database, run: Run, model: Counting
) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "unspeakable" in texts:
            raise EmbedError("no")

    model.before = refuse
    put(database, {f"note:{number}": ["unspeakable", f"{number}"] for number in range(300)})
    report = run()
    assert (report.failed, report.done, report.embedded) == (300, 0, 300)
    assert model.texts.count("unspeakable") < 15


def test_an_endpoint_that_is_down_ends_the_drain_and_burns_no_try(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    down = Event()
    down.set()

    def fail(_texts: Sequence[str]) -> None:
        if down.is_set() and len(model.asked) > 2:
            raise RetryableEmbedError("503")

    model.before = fail
    put(database, notes(60), tokens=TOKENS)
    for _ in range(6):
        report = run(workers=2)
        assert "5 times in a row" in str(report.ended)
        assert report.failed == report.given_up == 0
    left = rows(database, "SELECT DISTINCT attempts, lease_owner FROM ingestion_embedding_queue")
    assert left == [{"attempts": 0, "lease_owner": None}]
    assert report.waiting > 0
    down.clear()
    report = run()
    assert (report.waiting, report.ended) == (0, None)
    assert problems(database, generation) == []
    assert rows(database, "SELECT count(*) AS n FROM document_vector_buffer") == [{"n": 180}]


def test_the_drain_stops_between_batches_when_asked(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    stop = Event()

    def stop_in_the_second(_texts: Sequence[str]) -> None:
        if len(model.asked) == 2:
            stop.set()

    model.before = stop_in_the_second
    put(database, notes(50), tokens=TOKENS)
    report = run(stop=stop)
    assert (report.ended, report.embedded, len(model.asked)) == ("asked to stop", 2 * BATCH, 2)
    leased = "SELECT 1 FROM ingestion_embedding_queue WHERE lease_owner IS NOT NULL OR attempts > 0"
    assert rows(database, leased) == []
    assert run().waiting == 0
    assert sorted(model.texts) == all_texts(notes(50))
    assert problems(database, generation) == []


def test_an_interrupt_keeps_what_is_made_and_gives_the_rest_back(
    database: Database, run: Run, generation: Generation
) -> None:
    def interrupt(_documents: int, passages: int) -> None:
        if passages > 0:
            raise KeyboardInterrupt

    put(database, notes(300), tokens=TOKENS)
    with pytest.raises(KeyboardInterrupt):
        run(watch=interrupt)
    leased = "SELECT 1 FROM ingestion_embedding_queue WHERE lease_owner IS NOT NULL OR attempts > 0"
    assert rows(database, leased) == []
    assert run().waiting == 0
    assert problems(database, generation) == []


def test_a_document_that_changes_while_it_is_embedded_keeps_no_vector_of_its_old_text(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    context = notes(3)

    def change(texts: Sequence[str]) -> None:
        if "passage 1 of note 1" in texts:
            put(database, {"note:1": ["passage 0 of note 1", "changed", "changed too"]})

    model.before = change
    put(database, context)
    report = run()
    assert (report.done, report.waiting) == (2, 1)
    assert run().done == 1
    assert problems(database, generation) == []
    assert sorted(model.texts) == sorted([*all_texts(context), "changed", "changed too"])


def test_a_document_that_changes_there_and_back_is_not_forgotten(
    database: Database, run: Run, model: Counting, generation: Generation
) -> None:
    context = notes(1)

    def change(_texts: Sequence[str]) -> None:
        if len(model.asked) == 1:
            put(database, {"note:0": ["something else"]})
            put(database, context)

    model.before = change
    put(database, context)
    assert (run().done, run().done) == (0, 1)
    assert problems(database, generation) == []


def test_two_drains_at_once_do_no_harm(
    database: Database, clock: ManualClock, model: Counting, generation: Generation
) -> None:
    put(database, notes(450, passages=1), tokens=TOKENS)
    clock.move(minutes=1)
    together = Barrier(2)
    reports: list[EmbeddingReport] = []

    def go() -> None:
        together.wait()
        seams = Seams(clock=clock)
        reports.append(drain(database, seams, model, generation, settings=QUICK, workers=2))

    threads = [Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.done for report in reports) == 450
    assert problems(database, generation) == []
    assert sorted(model.texts) == all_texts(notes(450, passages=1))


def test_who_works_on_after_its_lease_has_ended_does_no_harm(
    database: Database, clock: ManualClock, run: Run, model: Counting, generation: Generation
) -> None:
    put(database, notes(4))
    other = Counting()

    def overtake(_texts: Sequence[str]) -> None:
        if len(model.asked) == 1:
            clock.move(hours=1)
            drain(database, Seams(clock=clock), other, generation, settings=QUICK)

    model.before = overtake
    report = run()
    assert report.done == 0
    assert sorted(other.texts) == sorted(model.texts) == all_texts(notes(4))
    assert problems(database, generation) == []


def test_leases_are_renewed_while_a_long_document_is_worked_on(
    database: Database, clock: ManualClock, run: Run, model: Counting
) -> None:
    def take_long(_texts: Sequence[str]) -> None:
        clock.move(seconds=25)
        with database.write() as connection:
            found = leases.claim(connection, queue, "another", clock.now(), 10)
        assert found == []

    model.before = take_long
    long = [f"paragraph {place}" for place in range(8 * BATCH)]
    put(database, {"note:long": long}, tokens=TOKENS)
    report = run()
    assert (report.done, report.embedded) == (1, len(long))


def test_what_the_queue_knew_before_is_left_when_the_database_fails(
    database: Database, run: Run, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(database, notes(60), tokens=TOKENS)

    def broken(*_args: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(workshop, "record_costs", broken)
        with pytest.raises(OSError, match="disk full"):
            run()
    assert rows(database, "SELECT count(*) AS n FROM document_vector_buffer") == [{"n": 0}]
    leased = "SELECT 1 FROM ingestion_embedding_queue WHERE lease_owner IS NOT NULL OR attempts > 0"
    assert rows(database, leased) == []
    assert run().done == 60
    assert problems(database, generation) == []


def test_costs_are_kept_by_batch_document_source_and_run(
    database: Database, run: Run, model: Counting
) -> None:
    def stumble(_texts: Sequence[str]) -> None:
        if len(model.asked) == 1:
            raise RetryableEmbedError("500")

    model.before = stumble
    put(database, notes(100), source="note")
    put(database, {"memo:1": ["a memo"], "memo:2": ["a memo", "another"]}, source="memo")
    first, _ = run(), put(database, {"memo:3": ["third"]}, source="memo")
    second = run()
    assert (first.requests, first.retries) == (3, 1)
    with database.read() as connection:
        by_source = sum_costs(connection, by="source")
        by_run = sum_costs(connection, by="run")
        by_document = sum_costs(connection, by="document", source="memo")
        (one,) = sum_costs(connection, by="document", document="note:5")
    assert [(each.name, each.texts) for each in by_source] == [("note", 300), ("memo", 3)]
    assert sum(each.tokens for each in by_source) == first.tokens + second.tokens == 3 * 303
    assert sorted(each.requests for each in by_run) == [1, 3]
    assert sum(each.cost for each in by_run) == pytest.approx(first.cost + second.cost)
    assert sum(each.cost for each in by_source) == pytest.approx(first.cost + second.cost)
    assert {each.name: each.texts for each in by_document} == {
        "memo:1": 1,
        "memo:2": 1,
        "memo:3": 1,
    }
    assert one.texts == 3
    assert one.tokens == pytest.approx(9, abs=1)
    batches = rows(database, "SELECT requests, retries, texts FROM embedding_batches ORDER BY id")
    assert [tuple(each.values()) for each in batches] == [(2, 1, 256), (1, 0, 46), (1, 0, 1)]


def test_a_model_of_another_version_is_refused(
    database: Database, seams: Seams, generation: Generation
) -> None:
    for act in (drain, fill):
        with pytest.raises(UsageError, match="migrate"):
            act(database, seams, Counting("2"), generation, settings=QUICK)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_second_generation_is_filled_beside_the_first(
    database: Database, run: Run, seams: Seams, generation: Generation, workers: int
) -> None:
    context = {f"note:{number}": ["Signed.", f"Matter {number}"] for number in range(150)}
    put(database, context, tokens=TOKENS)
    run()
    newer = Counting("2")
    second = ensure_generation(database, seams, newer, "counting")
    put(database, {"note:new": ["in the queue of the first"]})
    report = fill(database, seams, newer, second, settings=QUICK, workers=workers)
    assert (report.embedded, report.reused) == (152, 149)
    assert (report.waiting, report.failed, report.ended) == (0, 0, None)
    assert len(newer.texts) == 152
    assert fill(database, seams, newer, second, settings=QUICK).requests == 0
    assert run().done == 1
    for each in (generation, second):
        assert [one for one in problems(database, each) if "of passages" not in one] == []


def test_a_fill_that_was_stopped_says_what_is_left_and_goes_on_from_there(
    database: Database, seams: Seams, model: Counting, generation: Generation
) -> None:
    stop = Event()

    def stop_in_the_second(_texts: Sequence[str]) -> None:
        if len(model.asked) == 2:
            stop.set()

    model.before = stop_in_the_second
    put(database, notes(50), tokens=TOKENS)
    report = fill(database, seams, model, generation, settings=QUICK, stop=stop)
    assert (report.ended, report.embedded) == ("asked to stop", 2 * BATCH)
    assert report.waiting == 50 - 2 * BATCH // 3
    report = fill(database, seams, model, generation, settings=QUICK)
    assert (report.ended, report.waiting, report.embedded) == (None, 0, 150 - 2 * BATCH)
    assert sorted(model.texts) == all_texts(notes(50))
    assert problems(database, generation) == []


def test_a_fill_goes_on_past_a_text_the_model_refuses(
    database: Database, seams: Seams, model: Counting, generation: Generation
) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "passage 1 of note 7" in texts:
            raise EmbedError("no")

    model.before = refuse
    put(database, notes(30))
    report = fill(database, seams, model, generation, settings=QUICK)
    assert (report.failed, report.embedded, report.ended) == (1, 89, None)
