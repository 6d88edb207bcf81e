"""What does it take to bundle a library, and to export it, beside a bare copy of the same rows?

A library of synthetic documents in SQLite is bundled, exported to Parquet, and compared with its
bundle. Beside the bundle: the same columns read with the driver alone and written as lines of JSON,
neither sorted nor hashed. Beside the export: DuckDB, which copies the files that we made to others.
Each in a process of its own, in turn; seconds are the processor's. The largest resident memory is
that of a library of a tenth of the size, compared with that of the whole.

    python -m bench.exchange [--documents 20000] [--words 400] [--rounds 3] [--json]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, asking, tell, within

from fonds import ids
from fonds.library import Library, open_library
from fonds.stores.database import insert_many
from fonds.stores.sqlite import batched
from fonds.stores.tables import document_chunk_buffer, documents

LIMIT_MIB = 400
PASSAGES = 4
NOW = datetime(2026, 3, 4, tzinfo=UTC)

TAKEN = """
import json, resource, sys, time
from pathlib import Path
def told(begun):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.process_time() - begun, "peak_mib": peak}))
home, to = Path(sys.argv[1]), Path(sys.argv[2])
"""
BUNDLE = """
from fonds.exchange.bundle.create import create
from fonds.library import open_library
from fonds.stores.blobs import open_blobs
with open_library(home) as library:
    begun = time.process_time()
    create(library.database, open_blobs(str(to), seams=library.seams), where="here")
told(begun)
"""
EXPORT = """
from fonds.exchange.export import export
from fonds.library import open_library
from fonds.stores.blobs import open_blobs
import duckdb
with open_library(home) as library:
    begun = time.process_time()
    export(library.database, open_blobs(str(to), seams=library.seams), "parquet", where="here")
told(begun)
"""
DIFF = """
from fonds.exchange.bundle.diff import differences, bundle_rows, library_rows
from fonds.exchange.bundle.contents import read_package
from fonds.exchange.snapshot import snapshot
from fonds.library import open_library
from fonds.stores.blobs import open_blobs
with open_library(home) as library, snapshot(library.database) as held:
    begun = time.process_time()
    blobs = open_blobs(str(to), seams=library.seams)
    package = read_package(blobs, "here")
    assert not list(differences(bundle_rows(blobs, package), library_rows(held, None)))
told(begun)
"""
LINES = """
from pysqlite3 import dbapi2
begun = time.process_time()
connection = dbapi2.connect(home / "fonds.db")
for table in ("documents", "document_chunk_buffer", "document_aliases", "citation_edges"):
    rows = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in rows.description]
    with (to / f"{table}.jsonl").open("w") as file:
        for row in rows:
            file.write(json.dumps(dict(zip(names, row)), ensure_ascii=False) + "\\n")
told(begun)
"""
COPY = """
import duckdb
begun = time.process_time()
connection = duckdb.connect(config={"memory_limit": "256MB", "threads": 2})
connection.execute("SET enable_progress_bar = false")
for file in sorted((to.parent / "export").glob("*.parquet")):
    source, target = str(file), str(to / file.name)
    connection.execute(f"COPY (FROM '{source}') TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
told(begun)
"""


def fill(library: Library, count: int, words: int) -> None:
    """Put documents into a library, each with its passages."""
    vocabulary = [f"word{number}" for number in range(5000)]
    chance = random.Random(5)
    for numbers in batched(range(count), 500):
        texts = {number: " ".join(chance.choices(vocabulary, k=words)) for number in numbers}
        with library.database.write() as connection:
            rows = [_document(number, text) for number, text in texts.items()]
            insert_many(connection, documents, rows)
            chunks = [row for number, text in texts.items() for row in _passages(number, text)]
            insert_many(connection, document_chunk_buffer, chunks)


def _document(number: int, text: str) -> dict[str, Any]:
    said = dict.fromkeys(column.name for column in documents.c)
    name = f"bench:{number:08}"
    return {
        **said,
        "id": name,
        "uid": ids.document_uid(name),
        "source": "bench",
        "kind": "note",
        "title": f"About {number}",
        "source_url": f"https://bench.example/{number}",
        "source_org": "The Office",
        "retrieved_at": NOW,
        "updated_at": NOW,
        "raw_path": f"corpus/bench/{number}",
        "raw_sha256": ids.text_sha256(name),
        "citation_string": f"Bench {number}.",
        "body_text": text,
        "body_text_sha256": ids.text_sha256(text),
        "body_map": {"sections": [], "pages": []},
        "content_sha256": ids.text_sha256(text),
        "recipe": "text_v1@1.0.0 headings@1.0.0:512/64",
    }


def _passages(number: int, text: str) -> Iterator[dict[str, Any]]:
    uid = ids.document_uid(f"bench:{number:08}")
    size = len(text) // PASSAGES
    for place in range(PASSAGES):
        piece = text[place * size : (place + 1) * size]
        yield {
            "id": number * PASSAGES + place + 1,
            "chunk_id": ids.chunk_id(uid, "headings", "1.0.0", place),
            "document_id": uid,
            "chunk_ord": place,
            "chunker_name": "headings",
            "chunker_version": "1.0.0",
            "chunk_sha": ids.chunk_sha(piece),
            "text": piece,
            "meta": {
                "start": place * size,
                "end": (place + 1) * size,
                "tokens": 100,
                "locator": {"heading_path": ["Part", "Chapter"]},
            },
            "created_at": NOW,
        }


def taken(script: str, home: Path, to: Path) -> dict[str, float]:
    """Seconds and MiB of a process of its own."""
    to.mkdir(exist_ok=True)
    command = [sys.executable, "-c", TAKEN + script, str(home), str(to)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def measure(folder: Path, count: int, words: int, rounds: int) -> dict[str, dict[str, float]]:
    """The median of each, all in turn."""
    home = folder / "library"
    with open_library(home) as library:
        fill(library, count, words)
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds):
        place = folder / str(number)
        place.mkdir()
        for name, script in (("bundle", BUNDLE), ("lines", LINES), ("export", EXPORT)):
            found.setdefault(name, []).append(taken(script, home, place / name))
        found.setdefault("diff", []).append(taken(DIFF, home, place / "bundle"))
        found.setdefault("copy", []).append(taken(COPY, home, place / "copy"))
    return {
        name: {each: median(one[each] for one in some) for each in some[0]}
        for name, some in found.items()
    }


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small = measure(Path(name), options.documents // 10, options.words, 1)
    with tempfile.TemporaryDirectory() as name:
        large = measure(Path(name), options.documents, options.words, options.rounds)
    rate = {each: options.documents / large[each]["seconds"] for each in large}
    figures = [
        Figure(
            what="documents bundled a second of the processor",
            ours=rate["bundle"],
            theirs=rate["lines"],
            unit="/s",
            peer="SQLite rows as JSON lines",
            better="more",
            remark="theirs is in no order, has no hash, and differs between databases",
        ),
        Figure(
            what="documents exported to Parquet a second of the processor",
            ours=rate["export"],
            theirs=rate["copy"],
            unit="/s",
            peer="DuckDB, Parquet to Parquet",
            better="more",
            remark="theirs begins with columns; ours with rows of SQLite, which Python hands over",
        ),
        *(
            within(
                f"peak memory of a {each} of {options.documents:,} documents",
                large[each]["peak_mib"],
                LIMIT_MIB,
                "MiB",
            )
            for each in ("bundle", "export", "diff")
        ),
    ]
    tell(options, figures, small=small, large=large)


if __name__ == "__main__":
    main()
