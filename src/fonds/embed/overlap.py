"""How much two generations agree: the passages both find for the same questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, select

from fonds.embed.base import Embedder
from fonds.embed.packing import packed
from fonds.stores.batches import pieces
from fonds.stores.database import Database
from fonds.stores.fulltext import as_seen
from fonds.stores.tables import code_units, document_chunk_buffer, documents
from fonds.stores.vectors import Generation

TOP: Final = 10
SAMPLE: Final = 60
SHOWN: Final = 5
LONGEST_QUERY: Final = 200
ASKED_AT_ONCE: Final = 64

# A sentence ends before a capital, so that "Pub. L. 117-58" rarely does.
_SENTENCE: Final = re.compile(r".{20,}?[.!?。](?=\s+[A-Z\"“]|\s*$|[^\s\d])", re.DOTALL)
_MARKUP: Final = re.compile(r"[#*_`>|\\\[\]]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A generation, and the questions as its model sees them."""

    generation: Generation
    vectors: Sequence[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """What two generations find for one question."""

    query: str
    shared: float
    """Part of the best passages that both find, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """What two generations find for a sample of questions."""

    queries: int
    top: int
    mean: float
    worst: float
    most_different: tuple[Agreement, ...]


def compare(database: Database, one: Asked, other: Asked, queries: Sequence[str]) -> Overlap | None:
    """The overlap of the best passages of two generations; None if nothing is found by either."""
    found: list[Agreement] = []
    with database.read() as connection:
        for query, first, second in zip(queries, one.vectors, other.vectors, strict=True):
            mine = _nearest(database, connection, one.generation, first)
            theirs = _nearest(database, connection, other.generation, second)
            if most := max(len(mine), len(theirs)):
                found.append(Agreement(query=query, shared=len(mine & theirs) / most))
    if not found:
        return None
    found.sort(key=lambda each: (each.shared, each.query))
    return Overlap(
        queries=len(found),
        top=TOP,
        mean=sum(each.shared for each in found) / len(found),
        worst=found[0].shared,
        most_different=tuple(each for each in found[:SHOWN] if each.shared < 1),
    )


def query_vectors(embedder: Embedder, queries: Sequence[str]) -> list[bytes]:
    """Questions as a model sees them, ready to be searched with."""
    vectors: list[bytes] = []
    for piece in pieces(queries, ASKED_AT_ONCE):
        made = embedder.embed(piece, "query").vectors
        vectors += [each.data for each in packed(made, len(piece), embedder.model.dims)]
    return vectors


def sample_queries(database: Database, count: int = SAMPLE) -> list[str]:
    """Questions made of the library itself: titles, headings and first sentences, always the same.

    The computed ids of documents are as good as drawn by lot, and the same on every machine.
    """
    with database.read() as connection:
        found = list(_sampled(connection, count))
    return list(dict.fromkeys(found))


def _sampled(connection: Connection, count: int) -> Iterator[str]:
    chunk, document = document_chunk_buffer.c, documents.c
    drawn = (
        select(document.uid, document.title)
        .where(*_searched())
        .order_by(document.uid)
        .limit(count)
        .subquery()
    )
    first = select(drawn.c.title, chunk.text, chunk.meta).join(
        drawn, (drawn.c.uid == chunk.document_id) & (chunk.chunk_ord == 0)
    )
    for number, row in enumerate(connection.execute(first.order_by(drawn.c.uid))):
        kinds = (_title(row), _heading(row), _first_sentence(row))
        if query := _plain(kinds[number % len(kinds)]) or _plain(_title(row)):
            yield query


def _title(row: Any) -> str:
    title: str = row.title
    return title


def _heading(row: Any) -> str:
    return "".join(row.meta["locator"].get("heading_path", ())[-1:])


def _first_sentence(row: Any) -> str:
    text = as_seen(row.text).lstrip()
    sentence = _SENTENCE.match(text[: 5 * LONGEST_QUERY])
    return sentence[0] if sentence else text


def _plain(text: str) -> str:
    words = " ".join(_MARKUP.sub(" ", text).split())
    if len(words) <= LONGEST_QUERY:
        return words
    return words[:LONGEST_QUERY].rpartition(" ")[0] or words[:LONGEST_QUERY]


def _nearest(
    database: Database, connection: Connection, generation: Generation, query: bytes
) -> set[int]:
    near = database.vectors.search(connection, generation, query, _eligible(), TOP)
    return {each.row for each in near}


def _eligible() -> Select[Any]:
    chunk = document_chunk_buffer.c
    return (
        select(chunk.id).join(documents, documents.c.uid == chunk.document_id).where(*_searched())
    )


def _searched() -> tuple[Any, ...]:
    """What a search without filters looks at."""
    document = documents.c
    newest = select(code_units.c.id).where(code_units.c.is_newest)
    in_force = document.unit.is_(None) | document.unit.in_(newest)
    return document.owner.is_(None), document.gone_at.is_(None), in_force
