"""Generations of vectors, on every database: made, filled, compared, chosen, forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from sqlalchemy import select, text, update
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.embedding_endpoint import FINE, NAN, EmbeddingEndpoint, failing
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.embed.base import Embedded, EmbeddingModel, Purpose
from fonds.embed.generations import (
    drop,
    ensure_generation,
    find_generation,
    renew_damaged_vectors,
    roll_back,
    switch,
)
from fonds.embed.hashing import HashingEmbedder
from fonds.embed.migration import (
    EmbeddedQueries,
    Migration,
    compare,
    migrate,
    query_vectors,
    sample_queries,
)
from fonds.embed.status import embedding_status, plan_embedding
from fonds.embed.worker import EmbeddingReport, drain, embed_waiting, embedder_of
from fonds.errors import EmbedError, ModelMissingError, UsageError
from fonds.library import Library
from fonds.maintenance.doctor import check_vectors
from fonds.maintenance.findings import Health, MaintenanceTarget
from fonds.seams import Seams
from fonds.stores.database import open_database
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer
from fonds.stores.vectors import Generation, current_generation, generations
from fonds.testing import ManualClock, Saboteur

FIRST = "hashing:32"
SECOND = "hashing:64"
NOTES = 12


class Renamed:
    """A hashing embedder that calls itself, and behaves, as it is told."""

    is_remote = False

    def __init__(self, **changes: Any) -> None:
        self._inner = HashingEmbedder(32)
        self.model: EmbeddingModel = replace(self._inner.model, **changes)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        return self._inner.embed(texts, purpose)


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        office = NoteOffice(server, NOTES)
        for number in office.notes:
            office.change(number, text=f"# Part {number}\n\nRivers and note {number} of lakes.")
        office.change(2, text="# Part 1\n\nRivers and note 1 of lakes.")
        yield office


@pytest.fixture
def saboteur() -> Saboteur:
    return Saboteur()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(dims=24) as endpoint:
        yield endpoint


@pytest.fixture
def seams(clock: ManualClock, saboteur: Saboteur) -> Seams:
    return Seams(clock=clock, durable=saboteur)


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    office: NoteOffice,
    seams: Seams,
    endpoint: EmbeddingEndpoint,
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    settings = {"database": address, "embedder": FIRST, "embed_url": endpoint.url, "timeout": 10.0}
    with note_library(tmp_path, office.server, seams=seams, **settings) as library:
        ingest(library)
        yield library


def embed(library: Library, **options: Any) -> EmbeddingReport:
    return embed_waiting(library.database, library.seams, library.settings, **options)


def move(library: Library, to: str, **options: Any) -> Migration:
    return migrate(library.database, library.seams, library.settings, to, **options)


def ensure(library: Library, dims: int) -> Generation:
    embedder = HashingEmbedder(dims)
    return ensure_generation(library.database, library.seams, embedder, f"hashing:{dims}")


def current(library: Library) -> Generation | None:
    with library.database.read() as connection:
        return current_generation(connection)


def vectors(library: Library) -> dict[str, int]:
    query = "SELECT embed_model, count(*) AS n FROM document_vector_buffer GROUP BY embed_model"
    return {row["embed_model"]: row["n"] for row in rows(library, query)}


def waiting(library: Library) -> list[str]:
    query = "SELECT record_id FROM ingestion_embedding_queue ORDER BY record_id"
    return [row["record_id"] for row in rows(library, query)]


def found_in(library: Library, generation: Generation, query: str, limit: int = 5) -> list[int]:
    """The passages that the index of a generation has for a question, best first."""
    embedder = embedder_of(generation, library.settings)
    everything = select(document_chunk_buffer.c.id)
    with library.database.read() as connection:
        (vector,) = query_vectors(embedder, [query])
        near = library.database.vectors.search(connection, generation, vector, everything, limit)
    return [each.row for each in near]


# Making -----------------------------------------------------------------------------------


def test_damaged_vector_is_named_by_doctor_and_made_again(library: Library) -> None:
    embed(library)
    before = rows(library, "SELECT chunk_id, vector FROM document_vector_buffer ORDER BY chunk_id")
    damage = update(document_vector_buffer).values(vector=bytes(len(before[0]["vector"])))
    with library.database.write() as connection:
        connection.execute(damage)
    target = MaintenanceTarget.of(library)
    assert [finding.status for finding in check_vectors(target)] == [Health.FAIL]
    assert renew_damaged_vectors(library.database, library.seams) == len(before)
    embed(library)
    query = "SELECT chunk_id, vector FROM document_vector_buffer ORDER BY chunk_id"
    assert rows(library, query) == before
    assert [finding.status for finding in check_vectors(target)] == [Health.OK]
    assert renew_damaged_vectors(library.database, library.seams) == 0


def test_first_embedding_makes_a_generation_of_the_setting_and_chooses_it(
    library: Library,
) -> None:
    assert current(library) is None
    report = embed(library)
    assert (report.done, report.failed, report.waiting) == (NOTES, 0, 0)
    chosen = current(library)
    assert chosen is not None
    assert (chosen.name, chosen.embedder, chosen.dims) == ("hashing-32", FIRST, 32)
    assert vectors(library) == {"hashing-32": NOTES}


def test_generation_that_is_there_is_found_without_a_write(
    library: Library, saboteur: Saboteur
) -> None:
    made = ensure(library, 32)
    saboteur.operations.clear()
    assert ensure(library, 32) == made
    assert saboteur.operations == []


def test_generation_is_made_once_however_many_make_it_at_once(library: Library) -> None:
    start = Barrier(6)

    def make(_: int) -> Generation:
        database = open_database(library.settings.database_url, seams=library.seams)
        try:
            start.wait()
            return ensure_generation(database, library.seams, HashingEmbedder(32), FIRST)
        finally:
            database.close()

    with ThreadPoolExecutor(6) as pool:
        made = set(pool.map(make, range(6)))
    assert len(made) == 1
    assert current(library) in made


def test_second_generation_is_not_searched_by_itself(library: Library) -> None:
    first = ensure(library, 32)
    second = ensure(library, 64)
    assert first.table != second.table
    assert current(library) == first


def test_model_that_moved_or_costs_more_stays_its_generation(library: Library) -> None:
    first = ensure(library, 32)
    seams, database = library.seams, library.database
    moved = ensure_generation(database, seams, Renamed(price=3.0), "onnx:elsewhere")
    assert moved == replace(first, embedder="onnx:elsewhere", price=3.0)
    assert current(library) == moved


def test_model_that_changes_its_size_under_one_version_is_refused(library: Library) -> None:
    ensure(library, 32)
    with pytest.raises(EmbedError, match="32 numbers before, and now makes 16"):
        ensure_generation(library.database, library.seams, Renamed(dims=16), FIRST)


def test_model_that_is_another_version_than_the_vectors_is_not_mixed_with_them(
    library: Library,
) -> None:
    ensure_generation(library.database, library.seams, Renamed(version="0"), FIRST)
    with pytest.raises(ModelMissingError, match=f"fonds embed migrate --to {FIRST}"):
        embed(library)
    assert vectors(library) == {}
    assert move(library, FIRST).is_searched
    assert vectors(library) == {"hashing-32": NOTES}


def test_generation_goes_by_number_model_and_embedder(library: Library) -> None:
    first, second = ensure(library, 32), ensure(library, 64)
    with library.database.read() as connection:
        for name in (str(second.id), "hashing-64", "hashing-64@1", SECOND):
            assert find_generation(connection, name) == second
        with pytest.raises(UsageError, match=f"{first.id} .hashing-32@1"):
            find_generation(connection, "word2vec")


# Choosing ---------------------------------------------------------------------------------


def test_switch_queues_exactly_the_documents_that_lack_vectors(
    library: Library, office: NoteOffice
) -> None:
    embed(library)
    assert not move(library, SECOND, switching=False).is_searched
    office.change(3, text="Something else came meanwhile.")
    ingest(library, recheck=True)
    embed(library)
    with library.database.read() as connection:
        second = find_generation(connection, SECOND)
    assert waiting(library) == []
    assert switch(library.database, library.seams, second) == 1
    assert waiting(library) == ["fake:3"]
    assert embed(library).done == 1
    assert vectors(library)["hashing-64"] == NOTES
    assert switch(library.database, library.seams, second) == 0


def test_switch_gives_documents_that_were_given_up_another_chance(library: Library) -> None:
    embed(library)
    with library.database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO ingestion_embedding_queue"
                " (table_name, record_id, input_sha, enqueued_at, attempts, last_error)"
                " SELECT 'documents', id, 'x', updated_at, 5, 'no' FROM documents"
                " WHERE id = 'fake:1'"
            )
        )
    second = ensure(library, 64)
    assert switch(library.database, library.seams, second) == NOTES
    report = embed(library)
    assert (report.done, report.given_up) == (NOTES, 0)


def test_roll_back_returns_to_what_was_searched_and_catches_up(
    library: Library, office: NoteOffice
) -> None:
    embed(library)
    first = current(library)
    second = move(library, SECOND).generation
    assert current(library) == second
    office.change(5, text="Only the second generation has seen this.")
    ingest(library, recheck=True)
    embed(library)
    assert roll_back(library.database, library.seams) == (first, 1)
    assert (current(library), waiting(library)) == (first, ["fake:5"])
    assert embed(library).embedded == 1
    assert vectors(library) == {"hashing-32": NOTES, "hashing-64": NOTES}
    assert roll_back(library.database, library.seams) == (second, 0)


def test_without_an_earlier_generation_there_is_nothing_to_roll_back_to(
    library: Library,
) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match="no earlier generation"):
            roll_back(library.database, library.seams)
        embed(library)


def test_switch_that_dies_before_its_commit_has_not_happened(
    library: Library, saboteur: Saboteur
) -> None:
    embed(library)
    first, second = current(library), ensure(library, 64)
    saboteur.fail_at = len(saboteur.operations) + 1
    with pytest.raises(OSError, match="sabotaged"):
        switch(library.database, library.seams, second)
    assert (current(library), waiting(library)) == (first, [])


# Changing the model -----------------------------------------------------------------------


def test_migration_fills_beside_the_first_and_switches(library: Library) -> None:
    embed(library)
    before = current(library)
    result = move(library, SECOND)
    assert (result.before, result.is_filled, result.is_searched) == (before, True, True)
    # Notes 1 and 2 have the same text.
    assert (result.filling.embedded, result.filling.reused) == (NOTES - 1, 1)
    assert current(library) == result.generation
    assert vectors(library) == {"hashing-32": NOTES, "hashing-64": NOTES}
    assert found_in(library, result.generation, "Rivers and note 7 of lakes.")[0] == 7
    assert result.overlap is not None
    assert 0 < result.overlap.worst <= result.overlap.mean <= 1


def test_second_migration_embeds_nothing(library: Library, endpoint: EmbeddingEndpoint) -> None:
    embed(library)
    move(library, "openai:small", switching=False)
    texts = len(endpoint.texts)
    result = move(library, "openai:small", queries=["rivers"])
    assert (result.filling.embedded, result.is_searched) == (0, True)
    assert endpoint.texts[texts:] == ["dimensions", "rivers"]


def test_migration_to_what_is_searched_completes_it(library: Library) -> None:
    result = move(library, FIRST)
    assert (result.filling.embedded, result.is_searched, result.overlap) == (NOTES - 1, True, None)
    assert embed(library).embedded == 0


def test_generation_with_a_passage_missing_is_not_switched_to(
    library: Library, endpoint: EmbeddingEndpoint
) -> None:
    embed(library)
    before = current(library)
    spoilt = "Rivers and note 7 of lakes."
    endpoint.behave(lambda asked: NAN if spoilt in "".join(asked.texts) else FINE)
    result = move(library, "openai:small")
    assert (result.is_filled, result.is_searched, result.filling.failed) == (False, False, 1)
    assert current(library) == before
    assert vectors(library)["small"] == NOTES - 1
    endpoint.behave([])
    again = move(library, "openai:small")
    assert (again.filling.embedded, again.is_searched) == (1, True)


def test_endpoint_that_refuses_everything_leaves_all_as_it_was(
    library: Library, endpoint: EmbeddingEndpoint
) -> None:
    embed(library)
    before = current(library)
    endpoint.behave(lambda _asked: failing(401))
    result = move(library, "openai:small?dims=24")
    assert (result.is_filled, current(library)) == (False, before)
    assert "FONDS_EMBED_KEY" in (result.filling.ended or "")


def test_migration_that_is_asked_to_stop_does_not_switch(library: Library) -> None:
    embed(library)
    before, stop = current(library), Event()
    stop.set()
    result = move(library, SECOND, stop=stop)
    assert (result.is_filled, result.is_searched, current(library)) == (False, False, before)


def test_model_that_is_gone_does_not_hold_back_the_next(
    library: Library, endpoint: EmbeddingEndpoint
) -> None:
    move(library, "openai:small")
    endpoint.behave(lambda _asked: failing(404))
    result = move(library, FIRST)
    assert (result.overlap, result.is_searched) == (None, True)
    assert "FONDS_EMBED_URL" in (result.not_compared or "")


# Comparing --------------------------------------------------------------------------------


def overlap(library: Library, *embedders: tuple[Generation, Any], queries: list[str]) -> Any:
    asked = [
        EmbeddedQueries(generation=generation, vectors=query_vectors(embedder, queries))
        for generation, embedder in embedders
    ]
    return compare(library.database, asked[0], asked[1], queries)


def test_generation_agrees_with_itself(library: Library) -> None:
    embed(library)
    side = (ensure(library, 32), HashingEmbedder(32))
    found = overlap(library, side, side, queries=["rivers", "note 4"])
    assert (found.queries, found.mean, found.worst, found.most_different) == (2, 1, 1, ())


def test_overlap_is_the_part_of_the_best_passages_that_both_find(library: Library) -> None:
    embed(library)
    other = move(library, "openai:small", switching=False).generation
    first, queries = ensure(library, 32), ["rivers", "lakes", "note 3"]
    shared = {
        query: len({*found_in(library, first, query, 10)} & {*found_in(library, other, query, 10)})
        for query in queries
    }
    sides = (first, HashingEmbedder(32)), (other, embedder_of(other, library.settings))
    found = overlap(library, *sides, queries=queries)
    assert (found.queries, found.top) == (3, 10)
    assert found.mean == pytest.approx(sum(shared.values()) / 30)
    assert found.worst == min(shared.values()) / 10
    # Of twelve passages each leaves out two, and they hardly agree on which.
    assert found.worst < 1
    different = {each.query: round(10 * each.shared) for each in found.most_different}
    assert different == {query: number for query, number in shared.items() if number < 10}


def test_library_without_passages_has_nothing_to_compare(
    library: Library, office: NoteOffice
) -> None:
    office.withdraw(*list(office.notes)[1:])
    ingest(library, accept_loss=True)
    embed(library)
    assert sample_queries(library.database) == ["Note 1"]
    with library.database.write() as connection:
        connection.execute(text("UPDATE documents SET gone_at = updated_at"))
    assert sample_queries(library.database) == []
    side = (ensure(library, 32), HashingEmbedder(32))
    assert overlap(library, side, side, queries=["rivers"]) is None


def test_sample_is_titles_headings_and_sentences_and_always_the_same(library: Library) -> None:
    sample = sample_queries(library.database)
    assert sample == sample_queries(library.database)
    kinds = [words.split()[0] for words in sample]
    assert {"Note", "Part", "Rivers"} == set(kinds)
    assert sample_queries(library.database, 3) == sample[:3]


# Forgetting -------------------------------------------------------------------------------


def test_forgotten_generation_leaves_nothing_behind(library: Library) -> None:
    embed(library)
    first = current(library)
    assert first is not None
    move(library, SECOND)
    assert drop(library.database, first) == NOTES
    with library.database.read() as connection:
        assert [each.name for each in generations(connection)] == ["hashing-64"]
    for table in ("embedding_models", "embedding_generations"):
        assert len(rows(library, f"SELECT * FROM {table}")) == 1
    assert vectors(library) == {"hashing-64": NOTES}
    left = rows(library, "SELECT generation FROM embedding_batches")
    assert first.id not in {row["generation"] for row in left}
    with pytest.raises(UsageError, match="no earlier generation"):
        roll_back(library.database, library.seams)
    again = ensure(library, 32)
    assert again.id != first.id
    assert found_in(library, again, "rivers") == []


def test_generation_that_is_searched_cannot_be_forgotten(library: Library) -> None:
    embed(library)
    chosen = current(library)
    assert chosen is not None
    with pytest.raises(UsageError, match="is the one that is searched"):
        drop(library.database, chosen)
    assert vectors(library) == {"hashing-32": NOTES}


@pytest.mark.parametrize("commit", [1, 2, 3])
def test_forgetting_that_was_interrupted_can_be_repeated_or_undone_by_filling(
    library: Library, saboteur: Saboteur, commit: int
) -> None:
    embed(library)
    first = current(library)
    assert first is not None
    move(library, SECOND)
    saboteur.fail_at = len(saboteur.operations) + commit
    with pytest.raises(OSError, match="sabotaged"):
        drop(library.database, first)
    filled = move(library, FIRST)
    assert (filled.is_filled, vectors(library)["hashing-32"]) == (True, NOTES)
    assert found_in(library, first, "Rivers and note 7 of lakes.")[0] == 7
    roll_back(library.database, library.seams)
    assert drop(library.database, first) == NOTES


# Planning and status ----------------------------------------------------------------------


def test_plan_counts_each_text_once_and_writes_nothing(
    library: Library, saboteur: Saboteur
) -> None:
    saboteur.operations.clear()
    plan = plan_embedding(library.database, library.seams, library.settings)
    assert (plan.documents, plan.passages, plan.texts) == (NOTES, NOTES, NOTES - 1)
    assert (plan.model, plan.requests, plan.cost) == ("hashing-32", 1, 0)
    assert plan.tokens > NOTES
    assert saboteur.operations == []
    embed(library)
    done = plan_embedding(library.database, library.seams, library.settings)
    assert (done.passages, done.texts, done.tokens, done.requests, done.seconds) == (0, 0, 0, 0, 0)


def test_plan_leaves_out_texts_that_have_a_vector_elsewhere(
    library: Library, office: NoteOffice
) -> None:
    embed(library)
    office.change(4, text="# Part 9\n\nRivers and note 9 of lakes.")
    ingest(library, recheck=True)
    plan = plan_embedding(library.database, library.seams, library.settings)
    assert (plan.documents, plan.passages, plan.texts, plan.tokens) == (1, 1, 0, 0)
    assert embed(library).reused == 1


def test_plan_for_an_endpoint_says_what_it_costs_and_asks_it_nothing(
    library: Library, endpoint: EmbeddingEndpoint
) -> None:
    embed(library)
    settings = replace(library.settings, embed_rate="10/60")
    spec = "openai:small?dims=24&price=500"
    plan = plan_embedding(library.database, library.seams, settings, spec)
    assert (plan.is_remote, plan.texts) == (True, NOTES - 1)
    assert plan.cost == pytest.approx(plan.tokens * 500 / 1_000_000)
    assert plan.seconds == pytest.approx(plan.tokens)
    unlimited = plan_embedding(library.database, library.seams, library.settings, spec)
    assert unlimited.seconds is None
    assert endpoint.requests == []
    assert move(library, spec, queries=["rivers"]).filling.cost == pytest.approx(plan.cost)


def test_plan_is_of_the_generation_in_use_unless_another_is_named(library: Library) -> None:
    move(library, SECOND)
    assert plan_embedding(library.database, library.seams, library.settings).embedder == SECOND
    other = plan_embedding(library.database, library.seams, library.settings, FIRST)
    assert (other.embedder, other.passages) == (FIRST, NOTES)


def test_status_tells_generations_queue_speed_and_costs(
    library: Library, clock: ManualClock
) -> None:
    empty = embedding_status(library.database, clock.now())
    assert (empty.generations, empty.passages, empty.waiting) == ([], NOTES, NOTES)
    embed(library)
    clock.move(hours=2)
    spec = "openai:small?dims=24&price=500"
    move(library, spec)
    status = embedding_status(library.database, clock.now())
    first, second = status.generations
    assert (first.vectors, first.is_current, first.is_previous) == (NOTES, False, True)
    assert (second.vectors, second.is_current, second.filled_at) == (NOTES, True, clock.now())
    assert (status.waiting, status.given_up, status.errors) == (0, 0, [])
    assert status.last_hour["texts"] == NOTES - 1
    assert status.last_hour["requests"] >= 1
    (source,) = status.costs
    assert (source.name, source.texts) == ("fake", 2 * (NOTES - 1))
    assert source.cost > 0


def test_status_shows_the_most_frequent_causes(library: Library) -> None:
    with library.database.write() as connection:
        connection.execute(
            text(
                "UPDATE ingestion_embedding_queue SET last_error ="
                " CASE WHEN record_id < 'fake:3' THEN 'rare' ELSE 'frequent' END"
            )
        )
    causes = embedding_status(library.database, library.seams.clock.now()).errors
    assert [cause["cause"] for cause in causes] == ["frequent", "rare"]
    assert sum(cause["documents"] for cause in causes) == NOTES


def test_drain_that_a_switch_overtakes_leaves_the_queue_to_the_chosen_model(
    library: Library,
) -> None:
    old, new = ensure(library, 32), ensure(library, 64)
    switch(library.database, library.seams, new)
    settings = library.settings
    late = drain(library.database, library.seams, HashingEmbedder(32), old, settings=settings)
    assert (late.done, late.embedded, late.waiting) == (0, 0, NOTES)
    assert embed(library).done == NOTES
    vector = document_vector_buffer.c
    of_it = (vector.embed_model == new.name) & (vector.embed_version == new.version)
    with library.database.read() as connection:
        held = connection.scalars(select(vector.chunk_id).where(of_it)).all()
    assert len(held) == NOTES
