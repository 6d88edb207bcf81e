"""What the index over vectors promises, on every database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, select, text, update
from tests.support import servers

from fonds import ids
from fonds.errors import StoreError
from fonds.model import Chunk
from fonds.schema import upgrade
from fonds.seams import Seams
from fonds.stores import sqlite_vectors
from fonds.stores.database import Database, insert_many, open_database
from fonds.stores.passages import Passages, add_passages, replace_passages
from fonds.stores.sqlite_vectors import SqliteVectors
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_generations,
    embedding_models,
)
from fonds.stores.vectors import Generation, NearPassage, generations

NOW: Final = datetime(2026, 3, 4, tzinfo=UTC)
DIMS: Final = 24
MANY: Final = 1500
"""More than any search of these tests compares in full, unless a filter makes it."""

_row: Final = document_chunk_buffer.c.id
EVERYTHING: Final = select(_row)

Matrix = NDArray[np.float32]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Database]]:
    """Opens another database each time; what is written to it is never committed."""
    with ExitStack() as stack:

        def another() -> Database:
            address = f"sqlite:///{tmp_path_factory.mktemp('library') / 'fonds.db'}"
            if request.param == "postgres":
                server = request.getfixturevalue("postgres_url")
                address = stack.enter_context(servers.postgres_database(server))
            opened = open_database(address, seams=Seams())
            stack.callback(opened.close)
            upgrade(opened)
            return opened

        yield another


@pytest.fixture(scope="module")
def database(databases: Callable[[], Database]) -> Database:
    return databases()


@pytest.fixture
def shelf(database: Database) -> Iterator[Shelf]:
    """Passages and vectors that are gone after the test."""
    with taken_back(database) as connection:
        yield Shelf(database, connection)


@pytest.fixture(scope="module")
def full_shelf(databases: Callable[[], Database]) -> Iterator[Shelf]:
    """Some clusters of vectors, as texts about few matters have them."""
    chance = np.random.default_rng(5)
    matters = chance.normal(size=(20, DIMS))
    near = matters[chance.integers(0, 20, MANY)] + chance.normal(scale=0.7, size=(MANY, DIMS))
    with taken_back(database := databases()) as connection:
        shelf = Shelf(database, connection)
        shelf.put(unit(near))
        yield shelf


@pytest.fixture(scope="module")
def small_shelf(databases: Callable[[], Database]) -> Iterator[Shelf]:
    with taken_back(database := databases()) as connection:
        shelf = Shelf(database, connection)
        shelf.put(some(8, 90))
        yield shelf


@contextmanager
def taken_back(database: Database) -> Iterator[Connection]:
    with database.engine.connect() as connection:
        connection.begin()
        yield connection
        connection.rollback()


class Shelf:
    """Passages with vectors, and what an exact search would find among them."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self.database = database
        self.connection = connection
        self.index = database.vectors
        self.generation = self.generate("model", DIMS)
        self.held: dict[int, Matrix] = {}

    def generate(self, name: str, dims: int) -> Generation:
        model = {"name": name, "version": "1", "dims": dims, "price": 0.0}
        insert_many(self.connection, embedding_models, [model])
        made = {"name": name, "version": "1", "embedder": name, "created_at": NOW}
        insert_many(self.connection, embedding_generations, [made])
        (generation,) = (each for each in generations(self.connection) if each.name == name)
        self.index.create(self.connection, generation)
        return generation

    def put(self, vectors: Matrix, *, document: str = "fake:1") -> list[int]:
        """New passages of a document, each with a vector."""
        passages = passages_of(document, [f"{document} passage {n}" for n in range(len(vectors))])
        add_passages(self.connection, self.database.fulltext, [passages], NOW)
        rows = self.rows_of(passages.document_uid)
        self.store(self.generation, dict(zip(rows, vectors, strict=True)))
        self.held |= dict(zip(rows, vectors, strict=True))
        return rows

    def rows_of(self, uid: UUID) -> list[int]:
        chunk = document_chunk_buffer.c
        ordered = EVERYTHING.where(chunk.document_id == uid).order_by(chunk.chunk_ord)
        return list(self.connection.scalars(ordered))

    def store(self, generation: Generation, vectors: dict[int, Matrix]) -> None:
        """Vectors in the buffer and in the index, as embedding does it."""
        chunk = document_chunk_buffer.c
        query = select(chunk.id, chunk.chunk_id, chunk.document_id).where(chunk.id.in_(vectors))
        insert_many(
            self.connection,
            document_vector_buffer,
            [
                {
                    "document_id": row.document_id,
                    "chunk_id": row.chunk_id,
                    "embed_model": generation.name,
                    "embed_version": generation.version,
                    "vector": stored(vectors[row.id]),
                    "vector_sha": "sha",
                    "created_at": NOW,
                }
                for row in self.connection.execute(query)
            ],
        )
        self.add(generation, vectors)

    def add(self, generation: Generation, vectors: dict[int, Matrix]) -> None:
        pairs = [(row, stored(vector)) for row, vector in vectors.items()]
        self.index.add(self.connection, generation, pairs)

    def search(
        self,
        query: Matrix,
        limit: int,
        eligible: Select[Any] = EVERYTHING,
        generation: Generation | None = None,
    ) -> list[NearPassage]:
        generation = generation or self.generation
        return self.index.search(self.connection, generation, stored(query), eligible, limit)

    def exact(self, query: Matrix, limit: int, eligible: Select[Any] = EVERYTHING) -> list[int]:
        passing = set(self.connection.scalars(eligible)) & self.held.keys()
        near = sorted(passing, key=lambda row: (-float(self.held[row] @ query), row))
        return near[:limit]


def passages_of(document: str, texts: Sequence[str]) -> Passages:
    chunks = [
        Chunk(ordinal=ordinal, text=text, start=0, end=len(text), tokens=3, heading_path=())
        for ordinal, text in enumerate(texts)
    ]
    return Passages(
        document_uid=ids.document_uid(document),
        title="A title",
        chunks=chunks,
        chunker_name="by_hand",
        chunker_version="1",
    )


def unit(vectors: NDArray[Any]) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / lengths, np.float32)


def stored(vector: Matrix) -> bytes:
    return vector.astype("<f4").tobytes()


def some(seed: int, count: int, dims: int = DIMS) -> Matrix:
    return unit(np.random.default_rng(seed).normal(size=(count, dims)))


def rows(near: Sequence[NearPassage]) -> list[int]:
    return [each.row for each in near]


# Finding ----------------------------------------------------------------------------------


def test_nearest_come_first_with_their_exact_cosine(shelf: Shelf) -> None:
    shelf.put(some(1, 90))
    query = some(2, 1)[0]
    found = shelf.search(query, 12)
    assert rows(found) == shelf.exact(query, 12)
    assert [each.similarity for each in found] == pytest.approx(
        [float(shelf.held[each.row] @ query) for each in found], abs=1e-6
    )


def test_search_for_more_than_there_are_gives_all(shelf: Shelf) -> None:
    shelf.put(some(1, 7))
    assert len(shelf.search(some(2, 1)[0], 1000)) == 7


def test_empty_index_finds_nothing(shelf: Shelf) -> None:
    assert shelf.search(some(2, 1)[0], 10) == []
    asked = (shelf.connection, shelf.generation, stored(some(2, 1)))
    assert shelf.index.similarities(*asked, []) == {}


def test_passage_without_a_vector_is_not_found(shelf: Shelf) -> None:
    rows_with = shelf.put(some(1, 3))
    without = passages_of("fake:2", ["no vector yet"])
    add_passages(shelf.connection, shelf.database.fulltext, [without], NOW)
    assert set(rows(shelf.search(some(2, 1)[0], 10))) == set(rows_with)


def test_equally_near_passages_come_in_the_order_of_their_rows(shelf: Shelf) -> None:
    one, other = some(1, 2)
    placed = shelf.put(np.stack([other, one, other, one, other]))
    assert rows(shelf.search(one, 2)) == [placed[1], placed[3]]
    assert rows(shelf.search(other, 3)) == [placed[0], placed[2], placed[4]]


def test_many_equal_vectors_are_all_found(shelf: Shelf) -> None:
    placed = shelf.put(np.repeat(some(1, 2), 400, axis=0))
    assert len(shelf.search(some(2, 1)[0], 1000)) == len(placed)
    equal = rows(shelf.search(shelf.held[placed[0]], 300))
    assert len(equal) == 300
    assert set(equal) <= set(placed[:400])


def test_thousands_of_equal_vectors_hide_no_other(shelf: Shelf) -> None:
    same, others = some(1, 1), some(2, 60)
    mixed = np.concatenate([np.repeat(same, 1200, axis=0), others, np.repeat(same, 1200, axis=0)])
    placed = shelf.put(mixed)
    for row in placed[1200:1260]:
        (found,) = shelf.search(shelf.held[row], 1)
        assert found.row == row
    equal = rows(shelf.search(same[0], 500))
    assert len(equal) == 500
    assert not set(equal) & set(placed[1200:1260])


def test_zero_vector_is_found_behind_all_that_are_nearer(shelf: Shelf) -> None:
    one = some(1, 1)[0]
    placed = shelf.put(np.stack([np.zeros_like(one), one, -one]))
    found = shelf.search(one, 3)
    assert rows(found) == [placed[1], placed[0], placed[2]]
    assert found[1].similarity == 0.0
    assert len(shelf.search(np.zeros_like(one), 3)) == 3


def test_nearly_all_of_the_nearest_among_many_are_found(full_shelf: Shelf) -> None:
    hits = 0
    for query in some(3, 30):
        found = full_shelf.search(query, 10)
        assert len(found) == 10
        hits += len(set(rows(found)) & set(full_shelf.exact(query, 10)))
    assert hits / 300 >= 0.98


FILTERS: Final = st.one_of(
    st.builds(lambda part, of: (of, part % of), st.integers(0, 500), st.integers(1, 500)),
    st.just((1, 1)),  # nothing passes
)


@settings(max_examples=40)
@given(filtered=FILTERS, limit=st.integers(1, 60), seed=st.integers(0, 1000))
def test_filter_leaves_no_fewer_than_there_are_and_the_best_of_them(
    full_shelf: Shelf, filtered: tuple[int, int], limit: int, seed: int
) -> None:
    part, rest = filtered
    eligible = EVERYTHING.where(_row % part == rest)
    query = some(seed, 1)[0]
    exact = full_shelf.exact(query, limit, eligible)
    found = rows(full_shelf.search(query, limit, eligible))
    assert len(found) == len(exact)
    assert all(row % part == rest for row in found)
    assert len(set(found) & set(exact)) >= 0.9 * len(exact)


@settings(max_examples=25)
@given(chosen=st.sets(st.integers(0, 89)), limit=st.integers(1, 100), seed=st.integers(0, 1000))
def test_few_passages_are_searched_exactly_whatever_the_filter(
    small_shelf: Shelf, chosen: set[int], limit: int, seed: int
) -> None:
    placed = list(small_shelf.held)
    eligible = EVERYTHING.where(_row.in_([placed[each] for each in chosen]))
    query = some(seed, 1)[0]
    assert rows(small_shelf.search(query, limit, eligible)) == small_shelf.exact(
        query, limit, eligible
    )


# Writing ----------------------------------------------------------------------------------


def test_vector_that_is_added_again_is_replaced(shelf: Shelf) -> None:
    one, other, query = some(1, 3)
    (row,) = shelf.put(one[None])
    for vector in (other, query, query):
        held = document_vector_buffer
        shelf.connection.execute(update(held).values(vector=stored(vector)))
        shelf.add(shelf.generation, {row: vector})
    (found,) = shelf.search(query, 10)
    assert found.row == row
    assert found.similarity == pytest.approx(1.0)


def test_removed_passages_are_not_found_and_the_others_are(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 700))
    gone = placed[:300] + placed[301:690:2]
    shelf.index.remove(shelf.connection, [shelf.generation], gone)
    shelf.index.remove(shelf.connection, [shelf.generation], [*gone, 10**9])
    left = set(placed) - set(gone)
    assert set(rows(shelf.search(some(2, 1)[0], 1000))) == left
    shelf.add(shelf.generation, {gone[7]: shelf.held[gone[7]]})
    assert set(rows(shelf.search(some(2, 1)[0], 1000))) == left | {gone[7]}


def test_index_without_a_passage_left_is_empty(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 5))
    shelf.index.remove(shelf.connection, [shelf.generation], placed)
    assert shelf.search(some(2, 1)[0], 10) == []


def test_similarities_are_exact_and_leave_out_what_has_no_vector(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 1200))
    query = some(2, 1)[0]
    asked = [*placed, 10**9]
    given = shelf.index.similarities(shelf.connection, shelf.generation, stored(query), asked)
    assert given == pytest.approx({row: float(shelf.held[row] @ query) for row in placed}, abs=1e-6)


@pytest.mark.parametrize("dims", [1, 63, 65, 384, 2100, 4100])
def test_vectors_of_any_size_are_found(shelf: Shelf, dims: int) -> None:
    placed = shelf.put(some(1, 40))
    generation = shelf.generate("other", dims)
    vectors = dict(zip(placed, some(3, 40, dims), strict=True))
    shelf.store(generation, vectors)
    for row in placed[::13]:
        (found,) = shelf.search(vectors[row], 1, generation=generation)
        assert found.similarity == pytest.approx(1.0)
        assert np.allclose(vectors[found.row], vectors[row], atol=1e-3)


def test_generations_do_not_see_each_other(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 6))
    other = shelf.generate("other", 7)
    vectors = some(3, 2, 7)
    shelf.store(other, {placed[0]: vectors[0], placed[4]: vectors[1]})
    assert set(rows(shelf.search(vectors[0], 10, generation=other))) == {placed[0], placed[4]}
    shelf.index.remove(shelf.connection, [other], placed[:3])
    assert rows(shelf.search(vectors[0], 10, generation=other)) == [placed[4]]
    shelf.index.drop(shelf.connection, other)
    assert len(shelf.search(some(2, 1)[0], 10)) == 6


def test_creating_an_index_that_is_there_keeps_what_it_holds(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 4))
    shelf.index.create(shelf.connection, shelf.generation)
    assert set(rows(shelf.search(some(2, 1)[0], 10))) == set(placed)


def test_what_is_taken_back_is_not_found(shelf: Shelf) -> None:
    placed = shelf.put(some(1, 4))
    query = some(2, 1)[0]
    before = shelf.search(query, 10)
    with shelf.connection.begin_nested() as savepoint:
        shelf.put(query[None], document="fake:2")
        shelf.index.remove(shelf.connection, [shelf.generation], placed[:2])
        assert shelf.search(query, 10)[0].similarity == pytest.approx(1.0)
        savepoint.rollback()
    assert shelf.search(query, 10) == before


# Passages that change ---------------------------------------------------------------------


def test_changed_passage_leaves_the_index_and_equal_text_enters_it_in_its_place(
    shelf: Shelf,
) -> None:
    vectors = dict(zip("abc", some(1, 3), strict=True))
    first, second = passages_of("fake:1", ["a", "b"]), passages_of("fake:2", ["c"])
    add_passages(shelf.connection, shelf.database.fulltext, [first, second], NOW)
    for passages in (first, second):
        placed = shelf.rows_of(passages.document_uid)
        texts = [chunk.text for chunk in passages.chunks]
        shelf.store(shelf.generation, {r: vectors[t] for r, t in zip(placed, texts, strict=True)})
    changed = [passages_of("fake:1", ["new", "a"]), passages_of("fake:2", ["d", "c", "b"])]
    replace_passages(shelf.connection, shelf.database.fulltext, changed, NOW)
    one = shelf.rows_of(first.document_uid)
    other = shelf.rows_of(second.document_uid)
    assert rows(shelf.search(vectors["a"], 1)) == [one[1]]
    assert rows(shelf.search(vectors["b"], 1)) == [other[2]]
    assert rows(shelf.search(vectors["c"], 1)) == [other[1]]
    assert set(rows(shelf.search(vectors["a"], 10))) == {one[1], other[1], other[2]}
    assert owners(shelf.connection) == {one[1]: "fake:1", other[1]: "fake:2", other[2]: "fake:2"}


def owners(connection: Connection) -> dict[int, str]:
    """The document that each vector says it belongs to."""
    chunk, vector = document_chunk_buffer.c, document_vector_buffer.c
    query = select(chunk.id, vector.document_id).join(
        document_chunk_buffer, chunk.chunk_id == vector.chunk_id
    )
    names = {ids.document_uid(name): name for name in ("fake:1", "fake:2")}
    return {row.id: names[row.document_id] for row in connection.execute(query)}


# Particular to one database ---------------------------------------------------------------


def test_process_that_searched_before_sees_what_another_one_wrote(shelf: Shelf) -> None:
    shelf.put(some(1, 3))
    query = some(2, 1)[0]
    shelf.search(query, 10)
    elsewhere = open_database(str(shelf.database.engine.url), seams=Seams()).vectors
    shelf.index = elsewhere
    (row,) = shelf.put(query[None], document="fake:2")
    shelf.index = shelf.database.vectors
    assert rows(shelf.search(query, 1)) == [row]


def test_codes_beyond_what_a_process_keeps_are_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'fonds.db'}", seams=Seams())
    upgrade(database)
    query = some(2, 1)[0]
    with taken_back(database) as connection:
        shelf = Shelf(database, connection)
        shelf.put(some(1, 600))
        expected = shelf.search(query, 20)
        monkeypatch.setattr(sqlite_vectors, "CACHE_BYTES", 0)
        shelf.index = SqliteVectors()
        assert shelf.search(query, 20) == shelf.search(query, 20) == expected
        assert shelf.index._cache == {}
    database.close()


def test_vector_that_one_adds_while_another_removes_its_last_passage_is_found(
    postgres_database: str,
) -> None:
    database = open_database(postgres_database, seams=Seams())
    vector = some(1, 1)
    with database.engine.begin() as connection:
        shelf = Shelf(database, connection)
        shelf.put(vector)
        added = passages_of("fake:2", ["another"])
        add_passages(connection, database.fulltext, [added], NOW)
        (row,) = shelf.rows_of(added.document_uid)
    with database.engine.begin() as connection, ThreadPoolExecutor() as pool:
        database.vectors.remove(connection, [shelf.generation], list(shelf.held))
        adding = pool.submit(_add_alone, database, shelf.generation, row, stored(vector[0]))
        wait([adding], timeout=0.3)
        connection.commit()
        adding.result()
    with database.engine.begin() as connection:
        asked = (connection, shelf.generation, stored(vector[0]), EVERYTHING, 5)
        assert rows(database.vectors.search(*asked)) == [row]
    database.close()


def _add_alone(database: Database, generation: Generation, row: int, vector: bytes) -> None:
    with database.engine.begin() as connection:
        database.vectors.add(connection, generation, [(row, vector)])


def test_postgres_without_the_extension_is_refused_with_what_to_do(
    postgres_database: str,
) -> None:
    database = open_database(postgres_database, seams=Seams())
    generation = Generation(id=1, name="m", version="1", embedder="m", dims=3, price=0.0)
    with taken_back(database) as connection:
        connection.execute(text("CREATE ROLE nobody_much"))
        connection.execute(text("SET LOCAL ROLE nobody_much"))
        with pytest.raises(StoreError, match="CREATE EXTENSION vector"):
            database.vectors.create(connection, generation)
    database.close()
