"""A real endpoint that misbehaves, and real kills: nothing wrong is stored, and nothing is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text
from tests.support import servers
from tests.support.kills.embedding import SPEC, WORKERS
from tests.support.libraries.passages import problems, put
from tests.support.upstreams.embedding_endpoint import (
    FINE,
    HANG,
    POISONOUS,
    REPEATED,
    RETRYABLE,
    SHUFFLED,
    EmbeddingEndpoint,
    Mood,
    failing,
    moody,
)

from fonds.embed.client import PROBE
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder
from fonds.embed.worker import EmbeddingReport, drain
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database, open_database
from fonds.stores.vectors import Generation, current_generation

BATCH = 32
TOKENS = 65_536 // BATCH
"""Said of every passage, so that batches are small."""


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(dims=16) as endpoint:
        yield endpoint


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(servers.sqlite_database(tmp_path / "fonds.db"), seams=Seams())
    yield database
    database.close()


Run = Callable[..., EmbeddingReport]


@pytest.fixture
def run(database: Database, endpoint: EmbeddingEndpoint) -> Run:
    settings = Settings(
        embed_url=endpoint.url,
        allow_private=True,
        timeout=0.4,
        retry_wait=0.001,
        retry_wait_max=0.01,
    )
    embedder = open_embedder(SPEC, settings)
    generation = ensure_generation(database, Seams(), embedder, SPEC)

    def drained(workers: int = 3) -> EmbeddingReport:
        return drain(database, Seams(), embedder, generation, settings=settings, workers=workers)

    return drained


def chosen(database: Database) -> Generation:
    with database.read() as connection:
        generation = current_generation(connection)
    assert generation is not None
    return generation


def notes(count: int, passages: int = 2) -> dict[str, list[str]]:
    return {
        f"note:{number}": [f"Passage {place} of note {number}." for place in range(passages)]
        for number in range(count)
    }


def stored(database: Database) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    query = text(
        "SELECT c.text, v.vector FROM document_chunk_buffer c"
        " JOIN document_vector_buffer v ON v.chunk_id = c.chunk_id"
    )
    with database.read() as connection:
        return {row[0]: np.frombuffer(row[1], "<f4") for row in connection.execute(query)}


def assert_all_is_right(database: Database, endpoint: EmbeddingEndpoint) -> None:
    assert problems(database, chosen(database)) == []
    for passage, vector in stored(database).items():
        assert np.allclose(vector, endpoint.vector(passage), atol=1e-6)


def drain_to_the_end(run: Run, *, at_most: int) -> list[EmbeddingReport]:
    reports = [run()]
    while reports[-1].waiting:
        assert len(reports) < at_most
        assert reports[-1].given_up == 0
        reports.append(run())
    return reports


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_endpoint_does_the_queue_drains_in_the_end(
    database: Database, endpoint: EmbeddingEndpoint, run: Run, seed: int
) -> None:
    context = notes(200)
    put(database, context, tokens=TOKENS)
    endpoint.behave(moody(seed=seed, share=0.5))
    reports = drain_to_the_end(run, at_most=30)
    assert_all_is_right(database, endpoint)
    assert sum(report.embedded for report in reports) == 400
    assert sum(report.done for report in reports) == 200
    assert sum(report.retries for report in reports) > 0
    assert sum(report.requests for report in reports) == len(endpoint.requests)


@pytest.mark.parametrize(
    "mood", [*RETRYABLE, *POISONOUS, HANG, REPEATED, SHUFFLED], ids=lambda mood: mood.name
)
def test_each_misbehaviour_is_survived_by_asking_again(
    database: Database, endpoint: EmbeddingEndpoint, run: Run, mood: Mood
) -> None:
    put(database, notes(30))
    endpoint.behave([mood, FINE, mood])
    report = run(workers=1)
    assert (report.done, report.waiting, report.ended) == (30, 0, None)
    assert_all_is_right(database, endpoint)


@pytest.mark.parametrize("mood", [*POISONOUS, failing(400), failing(500)], ids=lambda m: m.name)
def test_a_text_that_spoils_every_batch_fails_alone(
    database: Database, endpoint: EmbeddingEndpoint, run: Run, mood: Mood
) -> None:
    context = notes(100)
    context["note:42"][0] = "poison"
    put(database, context)
    endpoint.behave(lambda asked: mood if "poison" in asked.texts else FINE)
    report = run()
    assert (report.done, report.failed, report.ended) == (99, 1, None)
    assert "poison" not in stored(database)
    assert len(stored(database)) == 199
    endpoint.behave([])
    assert run().done == 1
    assert_all_is_right(database, endpoint)


def test_an_endpoint_that_is_down_is_left_alone_and_costs_no_try(
    database: Database, endpoint: EmbeddingEndpoint, run: Run
) -> None:
    put(database, notes(300), tokens=TOKENS)
    endpoint.behave(lambda asked: FINE if asked.number < 5 else failing(503))
    first = run()
    assert first.embedded == 5 * BATCH
    assert "503" in str(first.ended)
    asked = len(endpoint.requests)
    for _ in range(6):
        assert run().ended is not None
    assert len(endpoint.requests) - asked <= 6 * (5 + 3)
    endpoint.behave([])
    assert run().waiting == 0
    assert_all_is_right(database, endpoint)
    once = [each for each, times in Counter(endpoint.answered).items() if times == 1]
    assert len(once) == 600


def test_a_wrong_key_is_no_fault_of_the_documents(
    database: Database, endpoint: EmbeddingEndpoint, run: Run
) -> None:
    put(database, notes(300))
    endpoint.key = "another"
    report = run(workers=1)
    assert "FONDS_EMBED_KEY" in str(report.ended)
    assert (report.failed, report.given_up, report.waiting) == (0, 0, 300)
    assert [len(asked.texts) for asked in endpoint.requests] == [256, 1]
    assert endpoint.texts[-1] == PROBE


def test_a_share_that_changed_is_all_that_reaches_the_endpoint(
    database: Database, endpoint: EmbeddingEndpoint, run: Run
) -> None:
    _reingest(database, endpoint, run, documents=1000)


@pytest.mark.long
def test_one_percent_of_ten_thousand_is_all_that_reaches_the_endpoint(
    database: Database, endpoint: EmbeddingEndpoint, run: Run
) -> None:
    _reingest(database, endpoint, run, documents=10_000)


def _reingest(database: Database, endpoint: EmbeddingEndpoint, run: Run, *, documents: int) -> None:
    context = notes(documents)
    _put_in_steps(database, context)
    assert run().done == documents
    assert len(endpoint.texts) == 2 * documents
    endpoint.forget()
    chance = random.Random(4)
    changed = chance.sample(sorted(context), documents // 100)
    for name in changed:
        context[name][chance.randrange(2)] = f"The changed text of {name}."
    _put_in_steps(database, context)
    report = run()
    assert sorted(endpoint.texts) == sorted(f"The changed text of {name}." for name in changed)
    assert (report.done, report.embedded) == (len(changed), len(changed))
    assert run().requests == 0
    assert_all_is_right(database, endpoint)


def _put_in_steps(database: Database, context: dict[str, list[str]]) -> None:
    names = list(context)
    for start in range(0, len(names), 500):
        put(database, {name: context[name] for name in names[start : start + 500]})


# Kills ------------------------------------------------------------------------------------


def child(
    address: str, endpoint: EmbeddingEndpoint, hours: int, kill_at: int | None = None
) -> subprocess.Popen[str]:
    python = str(servers.forked_python())
    command = [python, "-m", "tests.support.kills.embedding", address, endpoint.url, str(hours)]
    return subprocess.Popen(
        [*command, *([str(kill_at)] if kill_at else [])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_database")
        return url
    return servers.sqlite_database(tmp_path / "killed.db")


def _filled(address: str) -> Database:
    database = open_database(address, seams=Seams())
    context = notes(300)
    for number in range(0, 300, 3):
        context[f"note:{number}"][1] = f"Shared by some, {number % 5}."
    put(database, context, tokens=TOKENS)
    return database


def _assert_nothing_was_lost_or_doubled(
    database: Database, endpoint: EmbeddingEndpoint, kills: int
) -> None:
    assert_all_is_right(database, endpoint)
    with database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM ingestion_embedding_queue")) == 0
    times = Counter(endpoint.answered)
    assert set(times) == set(stored(database))
    assert max(times.values()) <= 1 + kills
    # What was in flight at a kill is all that may be asked for again.
    assert times.total() - len(times) <= kills * WORKERS * BATCH


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_commits_every_passage_has_one_vector(
    address: str, endpoint: EmbeddingEndpoint, seed: int
) -> None:
    database = _filled(address)
    chance = random.Random(seed)
    kills = 4  # a document is given up after five tries
    for hours in range(kills):
        killed = child(address, endpoint, hours, kill_at=chance.randint(2, 5))
        killed.communicate(timeout=120)
        assert killed.returncode == -signal.SIGKILL
    last = child(address, endpoint, kills)
    last.communicate(timeout=120)
    assert last.returncode == 0
    _assert_nothing_was_lost_or_doubled(database, endpoint, kills)
    database.close()


def test_killed_at_any_moment_every_passage_has_one_vector(
    address: str, endpoint: EmbeddingEndpoint
) -> None:
    database = _filled(address)
    chance = random.Random(9)
    kills = 0
    for hours in range(4):
        running = child(address, endpoint, hours)
        asked = len(endpoint.requests)
        while len(endpoint.requests) < asked + 2 and running.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.05))
        if running.poll() is None:
            running.kill()
            kills += 1
        running.communicate(timeout=120)
    assert kills
    last = child(address, endpoint, 4)
    last.communicate(timeout=120)
    assert last.returncode == 0
    _assert_nothing_was_lost_or_doubled(database, endpoint, kills)
    database.close()
