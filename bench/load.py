"""How much of the speed of bare inserts is left when records are loaded through the runner?

The runner parses, hashes, compares, chunks and keeps state; the limit is `executemany` of the very
same rows into the same tables and the same full-text index, 500 documents a transaction. Both in
one process, on one disk, one after the other.

    python -m bench.load [--documents 2000] [--rounds 3] [--processor] [--json]
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite
from bench.figures import Figure, asking, tell

from fonds import ids
from fonds.library import open_library
from fonds.model import (
    Archived,
    Body,
    Discovery,
    Document,
    FetchTask,
    Heading,
    NormalizedBody,
    ParsedRecord,
    Raw,
    SourceState,
)
from fonds.runs.state import RunRequest
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.federal_register import source as federal_register
from fonds.stores.fulltext import with_bigrams

BATCH = 500
STEMS = """
    account act address administer agree air allow amend answer appeal apply appoint approve
    area assess assist author bank base benefit bill board border budget build care case
    charge claim clean collect comment commission common compute concern condition conduct
    consider contain contract control cost count court cover credit custom decide defer
    define depart design determine develop direct disclose district drain drink duty earn
    effect elect employ enforce enter equip establish estimate exempt expect export express
    farm federal file final find fish form fund gain govern grant ground guard harbor hazard
    health hear help hold hour house import include income increase inform inspect insur
    interest issue join judge know labor land law lead learn letter level limit list load
    market matter measure meet member mine monitor need notice number object obtain offer
    office order own part pay permit person place plan plant point power present process
    produce program project propose protect provide public publish purchase quarter question
    rate reason receive record reduce refer region register regulate relate report request
    require research reserve respond restrict result return review right road rule safe
    salary sample school season section select serve set ship sign site small source staff
    standard state station stock store study submit supply support survey system tax test
    threshold time title trade train transfer treat union unit use value vessel view visit
    wage waste water weigh work
"""
AT_LEAST = 1 / 1.6
Clock = Callable[[], float]
TABLES = (
    "documents",
    "document_versions",
    "document_aliases",
    "document_chunk_buffer",
    "ingestion_embedding_queue",
    "fr_documents",
    "fr_document_agencies",
    "fr_document_topics",
    "ingestion_inputs",
    "ingestion_tasks",
)
RUN_TABLES = ("ingestion_runs",)
KEYS = {
    "documents": "id",
    "fr_documents": "id",
    "ingestion_embedding_queue": "record_id",
    "ingestion_inputs": "task_key",
    "ingestion_tasks": "task_key",
}


class Prepared:
    """A source whose records are ready-made, one to a task, so that only loading takes time."""

    def __init__(self, records: list[ParsedRecord]) -> None:
        self._records = {record.key: record for record in records}
        self.info = SourceInfo(
            name="federal_register",
            title="Prepared records",
            organisation="bench",
            version="1",
            schedule=None,
            rate=Rate(per_second=1),
            tables=federal_register.info.tables,
        )

    async def discover(self, _state: SourceState, _ask: Ask) -> AsyncIterator[Discovery]:
        """One task per record, nothing to fetch; a listing tells what has changed."""
        for key, record in self._records.items():
            told = ids.text_sha256(text_of(record))
            yield FetchTask(
                source=self.info.name, key=key, parts=(), params={"text": told}, fingerprint=told
            )

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The record of that key."""
        yield self._records[raw.task.key]


def prepare(count: int) -> list[ParsedRecord]:
    """Records of the size of ordinary Federal Register documents."""
    chance = random.Random(7)
    words = [f"{stem}{ending}" for stem in STEMS.split() for ending in ("", "s", "ing", "ed", "er")]
    return [_record(number, chance, words) for number in range(count)]


def text_of(record: ParsedRecord) -> str:
    """The Markdown of a record's document."""
    assert record.document is not None
    assert record.document.body is not None
    assert record.document.body.normalized is not None
    return record.document.body.normalized.markdown


def _record(number: int, chance: random.Random, words: list[str]) -> ParsedRecord:
    day = date(2026, 1, 1) + timedelta(days=number // 120)
    key = f"fr:2026-{number:05}"
    body = _body(chance, words)
    archived = Archived(
        url=f"https://register.example/{number}.xml",
        key=f"corpus/federal_register/{number}.xml",
        sha256=ids.text_sha256(body.markdown),
        size=len(body.markdown),
        retrieved_at=datetime(2026, 6, 1, tzinfo=UTC),
    )
    title = " ".join(chance.choices(words, k=9))
    return ParsedRecord(
        source="federal_register",
        table="fr_documents",
        key=key,
        payload={
            "id": key,
            "document_number": key[3:],
            "publication_date": day.isoformat(),
            "type": "Rule",
            "title": "Rule",
            "abstract": " ".join(chance.choices(words, k=60)),
            "citation": f"91 FR {number}",
            "volume": 91,
            "start_page": number,
            "end_page": number + 3,
        },
        children=(
            _child("fr_document_agencies", key, {"ord": 0, "raw_name": "AGENCY", "agency_ref": 7}),
            _child("fr_document_topics", key, {"ord": 0, "topic": "Reporting"}),
        ),
        document=Document(
            id=key,
            source="federal_register",
            kind="rule",
            title=title,
            summary=" ".join(chance.choices(words, k=60)),
            source_url=f"https://register.example/{number}",
            source_org="Agency",
            citation_string=f"91 Fed. Reg. {number} (Mar. 4, 2026).",
            raw=archived,
            published_at=day.isoformat(),
            body=Body(archived=archived, format="xml", normalizer="bench@1", normalized=body),
            aliases=(f"91 FR {number}", f"FR Doc. 2026-{number:05}"),
        ),
    )


def _child(table: str, key: str, row: dict[str, Any]) -> ParsedRecord:
    return ParsedRecord(
        source="federal_register",
        table=table,
        key=f"{key}#{table}",
        payload={"document_id": key, **row},
    )


def _body(chance: random.Random, words: list[str]) -> NormalizedBody:
    text, headings = "", []
    for section in range(chance.randint(3, 8)):
        heading = " ".join(chance.choices(words, k=4))
        headings.append(Heading(level=2, text=heading, offset=len(text), section=str(section)))
        paragraphs = [" ".join(chance.choices(words, k=80)) + "." for _ in range(3)]
        text += f"## {heading}\n\n" + "\n\n".join(paragraphs) + "\n\n"
    return NormalizedBody(markdown=text.rstrip(), headings=tuple(headings))


def through_runner(home: Path, records: list[ParsedRecord], clock: Clock) -> float:
    """Seconds of a whole run over the prepared records."""
    with open_library(home) as library:
        begun = clock()
        report = asyncio.run(library.ingest(Prepared(records), RunRequest()))
        seconds = clock() - begun
    assert report.counts.inserted == len(records), report
    return seconds


def bare(filled: Path, home: Path, clock: Clock) -> float:
    """Seconds of `executemany` of what the runner wrote into an empty library."""
    with open_library(home):
        pass
    rows = _rows_by_batch(filled / "fonds.db")
    connection = sqlite.connect(str(home / "fonds.db"), isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA cache_size = -16384")
    begun = clock()
    for batch in rows:
        connection.execute("BEGIN IMMEDIATE")
        for statement, parameters in batch:
            connection.executemany(statement, parameters)
        connection.execute("COMMIT")
    seconds = clock() - begun
    connection.close()
    return seconds


def _rows_by_batch(path: Path) -> list[list[tuple[str, list[tuple[Any, ...]]]]]:
    """The rows of the filled library, as statements of 500 documents each."""
    connection = sqlite.connect(str(path))
    order = connection.execute("SELECT id, uid, title FROM documents ORDER BY rowid").fetchall()
    batches = [
        [
            (_insert(connection, table), connection.execute(f"SELECT * FROM {table}").fetchall())
            for table in RUN_TABLES
        ]
    ]
    for first in range(0, len(order), BATCH):
        part = order[first : first + BATCH]
        statements = []
        for table in TABLES:
            column = KEYS.get(table, "document_id")
            keys = [row[1] if table == "document_chunk_buffer" else row[0] for row in part]
            marks = ",".join("?" * len(keys))
            query = f"SELECT * FROM {table} WHERE {column} IN ({marks})"
            found = connection.execute(query, keys).fetchall()
            statements.append((_insert(connection, table), found))
        statements.append(_words(connection, part))
        batches.append(statements)
    connection.close()
    return batches


def _insert(connection: Any, table: str) -> str:
    width = len(connection.execute(f"PRAGMA table_info({table})").fetchall())
    return f"INSERT INTO {table} VALUES ({','.join('?' * width)})"


def _words(connection: Any, part: list[Any]) -> tuple[str, list[tuple[Any, ...]]]:
    titles = {row[1]: row[2] for row in part}
    marks = ",".join("?" * len(titles))
    columns = "id, document_id, meta, text"
    query = f"SELECT {columns} FROM document_chunk_buffer WHERE document_id IN ({marks})"
    rows = [
        (
            row,
            with_bigrams(titles[uid]),
            with_bigrams("\n".join(json.loads(meta)["locator"]["heading_path"])),
            with_bigrams(text),
        )
        for row, uid, meta, text in connection.execute(query, list(titles))
    ]
    return "INSERT INTO chunk_index (rowid, title, headings, text) VALUES (?, ?, ?, ?)", rows


def main() -> None:
    """Print the figures; end with 1 if too little is left."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="its seconds, not the clock's")
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    records = prepare(options.documents)
    gc.freeze()  # a run never holds all its records; the collector must not go through them
    runner = limit = 0.0
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            runner += through_runner(Path(folder) / "runner", records, clock)
            limit += bare(Path(folder) / "runner", Path(folder) / "bare", clock)
    documents = options.documents * options.rounds
    figure = Figure(
        what="records loaded by the runner",
        ours=documents / runner,
        theirs=documents / limit,
        unit="documents/s",
        peer="bare executemany of the same rows",
        better="more",
        least=AT_LEAST,
        remark="ours also parses, hashes, compares, chunks and keeps state",
    )
    tell(options, [figure])


if __name__ == "__main__":
    main()
