"""What does ingesting a title cost beside the least it could cost?

A real title of the United States Code is planned and executed into a fresh library: normalized,
chunked and searchable. The limit is the sum of three bare things on the same file: lxml's iterparse
with nothing done, the Markdown of its sections with nothing else, and `executemany` of the very
rows that came out, 250 nodes a transaction, into the same tables, indexes and pragmas. Then the
title is ingested again.

All in one process, in turn, each the best of some rounds. A small title goes through everything
before, so that no side pays for modules, vocabulary and compiled statements; words that were
counted in one round are known in the next.

On a busy machine the short bare things find a quiet moment sooner than the long run does, and the
ratio is too high; `--processor` counts the processor's seconds, and no waiting for the disk.

    FONDS_CORPUS=… python -m bench.codes [--rounds 3] [--processor] [--json]
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, asking, tell
from lxml import etree

from fonds.codes.run import CodeRequest
from fonds.library import open_library
from fonds.normalize.uslm import element_to_markdown, read_uslm
from fonds.runs.state import RunStatus
from fonds.stores.fulltext import visible_text, with_bigrams

ARCHIVE = "codes/usc-mono"
WARMING = "usc09.xml"
TITLES = ("usc54.xml", "usc37.xml")
AT_MOST = 2.0
AT_MOST_AGAIN = 0.15
BATCH = 250
TABLES = {
    "nodes": "id",
    "documents": "id",
    "document_versions": "document_id",
    "document_aliases": "document_id",
    "ingestion_embedding_queue": "record_id",
    "ingestion_citation_queue": "record_id",
}
"""Each with the column that names the section."""
PASSAGES = "document_chunk_buffer"
WORDS = "INSERT INTO chunk_index (rowid, title, headings, text) VALUES (?, ?, ?, ?)"

Statement = tuple[str, list[tuple[Any, ...]]]
Clock = Callable[[], float]


@dataclass(kw_only=True, slots=True)
class Seconds:
    """What each thing took, at best."""

    ingest: float = float("inf")
    again: float = float("inf")
    iterparse: float = float("inf")
    normalize: float = float("inf")
    inserts: float = float("inf")

    def note(self, **taken: float) -> None:
        """Keep what is better than before."""
        for name, seconds in taken.items():
            setattr(self, name, min(getattr(self, name), seconds))

    @property
    def bare(self) -> float:
        """The three bare things together."""
        return self.iterparse + self.normalize + self.inserts


def timed(act: Callable[[], object], clock: Clock) -> float:
    """Seconds of doing it once."""
    gc.collect()
    begun = clock()
    act()
    return clock() - begun


def measure(title: Path, rounds: int, clock: Clock) -> Seconds:
    """All there is to measure of one title."""
    best = Seconds()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "ours"
            best.note(ingest=ingest(title, home, clock))
            best.note(again=ingest(title, home, clock))
            best.note(inserts=bare_inserts(home, Path(folder) / "bare", clock))
        best.note(iterparse=timed(lambda: iterparse(title), clock))
        best.note(normalize=timed(lambda: normalize(title), clock))
    return best


# What is measured -------------------------------------------------------------------------


def ingest(title: Path, home: Path, clock: Clock) -> float:
    """Seconds of a run; opening the library is no part of it."""
    request = CodeRequest(version="2024", given=str(title))
    with open_library(home) as library:

        def act() -> None:
            report = asyncio.run(library.ingest_code("usc", request))
            assert report.run.status is RunStatus.SUCCESS, report

        return timed(act, clock)


# What it is measured by -------------------------------------------------------------------


def iterparse(title: Path) -> None:
    """Nothing but reading."""
    with title.open("rb") as file:
        for _, element in etree.iterparse(file, huge_tree=True, resolve_entities=False):
            element.clear()


def normalize(title: Path) -> None:
    """Nothing but the Markdown of each section."""
    root, _ = read_uslm(title.read_bytes())
    for section in root.iter("{*}section"):
        if next(section.iterancestors("{*}quotedContent"), None) is None:
            element_to_markdown(section)


def bare_inserts(filled: Path, home: Path, clock: Clock) -> float:
    """Seconds of inserting what a library holds into an empty one."""
    with open_library(filled) as library:
        batches = list(rows_by_batch(library.database.engine.raw_connection()))
    with (
        open_library(home) as library,
        closing(library.database.engine.raw_connection()) as connection,
    ):
        cursor = connection.cursor()
        return timed(lambda: insert(cursor, batches), clock)


def insert(cursor: Any, batches: Sequence[Sequence[Statement]]) -> None:
    """A transaction for each batch."""
    for batch in batches:
        cursor.execute("BEGIN IMMEDIATE")
        for statement, rows in batch:
            cursor.executemany(statement, rows)
        cursor.execute("COMMIT")


def rows_by_batch(connection: Any) -> Iterator[list[Statement]]:
    """Everything known of 250 nodes, in reading order, as it would be inserted."""
    cursor = connection.cursor()
    listed = "SELECT nodes.id, uid, documents.title FROM nodes LEFT JOIN documents USING (id)"
    sections = cursor.execute(f"{listed} ORDER BY position").fetchall()
    for first in range(0, len(sections), BATCH):
        part = sections[first : first + BATCH]
        keys = [section for section, _, _ in part]
        titles = {uid: title for _, uid, title in part if uid}
        passages = rows_of(cursor, PASSAGES, "document_id", list(titles))
        yield [
            *(rows_of(cursor, table, column, keys) for table, column in TABLES.items()),
            passages,
            (WORDS, [entry(row, titles) for row in passages[1]]),
        ]
    connection.close()


def rows_of(cursor: Any, table: str, column: str, keys: Sequence[str]) -> Statement:
    """What a table has of some sections, and the statement that inserts it."""
    marks = ",".join("?" * len(keys))
    cursor.execute(f"SELECT * FROM {table} WHERE {column} IN ({marks}) ORDER BY rowid", keys)
    columns = ",".join("?" * len(cursor.description))
    return f"INSERT INTO {table} VALUES ({columns})", cursor.fetchall()


def entry(passage: Sequence[Any], titles: dict[str, str]) -> tuple[Any, ...]:
    """What the full-text index was told of a passage."""
    number, _, uid, _, _, _, _, text, meta, _ = passage
    locator = json.loads(meta)["locator"]
    path = [heading for heading in locator["heading_path"] if heading != titles[uid]]
    headings = "\n".join([*path, *locator.get("lead_ins", ())])
    spelled = map(with_bigrams, (titles[uid], headings, visible_text(text)))
    return (number, *spelled)


# Files ------------------------------------------------------------------------------------


@contextmanager
def real_titles() -> Iterator[Path]:
    """The folder of real titles, unpacked if it is not."""
    corpus = Path(os.environ["FONDS_CORPUS"])
    if (corpus / ARCHIVE).is_dir():
        yield corpus / ARCHIVE
        return
    with tempfile.TemporaryDirectory() as target:
        subprocess.run([corpus / "unpack", target, ARCHIVE], check=True)
        yield Path(target) / ARCHIVE


# Telling ----------------------------------------------------------------------------------


def figures(title: str, taken: Seconds) -> Iterator[Figure]:
    """The first time beside the bare things, and the second beside the first."""
    yield Figure(
        what=f"plan and execute {title}",
        ours=taken.ingest,
        theirs=taken.bare,
        unit="s",
        peer="bare iterparse, Markdown and inserts together",
        better="less",
        least=1 / AT_MOST,
        remark="ours also plans, hashes, chunks, finds citations and keeps state",
    )
    yield Figure(
        what=f"{title} again, unchanged",
        ours=taken.again,
        theirs=taken.ingest,
        unit="s",
        peer="the first time",
        better="less",
        least=1 / AT_MOST_AGAIN,
    )


def main() -> None:
    """Print the figures; fail if a ratio is above its bar."""
    parser = asking(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="its seconds, not the clock's")
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    with real_titles() as files:
        measure(files / WARMING, 1, clock)
        taken = {title: measure(files / title, options.rounds, clock) for title in TITLES}
    told = [figure for title, one in taken.items() for figure in figures(title, one)]
    tell(options, told, titles={title: asdict(one) for title, one in taken.items()})


if __name__ == "__main__":
    main()
