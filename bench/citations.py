"""How fast are citations found, against eyecite on the same text, and links made among a million?

Both read the same text for everything they know: ours for codes, laws, bills, registers, reports
and federal cases, eyecite for cases, statutes and journals. Neither leaves anything out; the
invented prose holds no cases, so that what eyecite knows best costs neither of them much. eyecite
is measured with each tokenizer that is installed (`pip install eyecite hyperscan`), the fast one
being hyperscan's, on processor time, turn by turn with ours, the best of several.

    python -m bench.citations [--size 1000000] [--edges 1000000] [--repeats 5] [--json] [FILE…]
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.figures import Figure, asking, tell
from sqlalchemy import Connection, text

from fonds import ids
from fonds.citations.extract import extract
from fonds.schema import upgrade
from fonds.seams import Seams
from fonds.stores.citations import link
from fonds.stores.database import Database, insert_many, open_database
from fonds.stores.tables import citation_edges, document_aliases, documents

MEGABYTE = 1_000_000
VOCABULARY = """
the of and to in that for is on by with as be this or an are not from any such which shall may must
agency rule proposed comment section paragraph emission standards applicability requirements notice
Administrator review hearing public interest economic analysis small entities burden reporting
facility operator permit compliance date effective under authority statute Congress committee report
bill amended striking inserting term fiscal year appropriation Secretary Department of Energy health
"""
WORDS = VOCABULARY.split()
FORMS: tuple[Callable[[random.Random], str], ...] = (
    lambda dice: f"{dice.randint(1, 54)} U.S.C. {dice.randint(1, 9999)}(a)({dice.randint(1, 9)})",
    lambda dice: f"{dice.randint(1, 50)} CFR {dice.randint(1, 999)}.{dice.randint(1, 99)}",
    lambda dice: f"Pub. L. {dice.randint(90, 119)}–{dice.randint(1, 400)}",
    lambda dice: f"{dice.randint(60, 139)} Stat. {dice.randint(1, 4000)}",
    lambda dice: f"{dice.randint(50, 91)} FR {dice.randint(1, 99999)}",
    lambda dice: f"section {dice.randint(1, 9999)} of title {dice.randint(1, 54)}",
    lambda dice: f"H.R. {dice.randint(1, 9999)}",
    lambda dice: f"Executive Order {dice.randint(10000, 14999)}",
)


def prose(size: int) -> str:
    """About `size` characters, a citation in every fifth sentence, the same in every run."""
    dice = random.Random(7)
    sentences: list[str] = []
    length = 0
    while length < size:
        words = dice.choices(WORDS, k=dice.randint(8, 30))
        if dice.random() < 0.2:
            words.insert(4, dice.choice(FORMS)(dice))
        sentences.append(f"{words[0].title()} {' '.join(words[1:])}.")
        length += len(sentences[-1]) + 1
    return " ".join(sentences)


def seconds_of(works: list[Callable[[], object]], repeats: int) -> list[float]:
    """The shortest of some runs of each, in processor time, one run of each in turn."""
    shortest = [float("inf")] * len(works)
    for _ in range(repeats):
        for number, work in enumerate(works):
            begun = time.process_time()
            work()
            shortest[number] = min(shortest[number], time.process_time() - begun)
    return shortest


def tokenizers() -> Iterator[tuple[str, Any]]:
    """Those of eyecite that can be used here, ready to work."""
    try:
        module = import_module("eyecite.tokenizers")
    except ImportError:
        return
    yield "eyecite, its default tokenizer", module.AhocorasickTokenizer()
    try:
        import_module("hyperscan")
    except ImportError:
        return
    cache = Path(tempfile.gettempdir()) / "eyecite-hyperscan"
    cache.mkdir(exist_ok=True)
    yield "eyecite with hyperscan", module.HyperscanTokenizer(cache_dir=str(cache))


def speeds(sample: str, repeats: int) -> Iterator[Figure]:
    """Megabytes in a second, ours and eyecite's."""
    for name, tokenizer in tokenizers():
        find = partial(import_module("eyecite").get_citations, tokenizer=tokenizer)
        find("1 U.S. 1")
        # The default tokenizer takes seconds for a hundred kilobytes.
        part = sample if name.endswith("hyperscan") else sample[: MEGABYTE // 10]
        ours, theirs = seconds_of([partial(extract, part), partial(find, part)], repeats)
        megabytes = len(part.encode()) / MEGABYTE
        yield Figure(
            what="finding citations",
            ours=megabytes / ours,
            theirs=megabytes / theirs,
            unit="MB/s",
            peer=name,
            better="more",
        )


def linking(database: Database, edges: int) -> Figure:
    """Seconds to link a thousand documents again, among so many edges, and for the first time."""
    upgrade(database)
    with database.write() as connection:
        _fill(connection, edges)
    with database.write() as connection:
        begun = time.perf_counter()
        changed = link(connection, [f"bench:{number}" for number in range(1000)])
        taken = time.perf_counter() - begun
        begun = time.perf_counter()
        link(connection, [f"bench:{number}" for number in range(1000)])
        again = time.perf_counter() - begun
        links = "SELECT count(*) FROM citation_edges WHERE to_document_id IS NOT NULL"
        assert connection.scalar(text(links)) == changed
    return Figure(
        what="linking 1,000 documents again",
        ours=again,
        theirs=taken,
        unit="s",
        peer=f"the first time, {changed:,} of {edges:,} edges",
        better="less",
    )


def _fill(connection: Connection, edges: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    insert_many(connection, documents, [_document(number, now) for number in range(2000)])
    names = [
        {"alias": f"{number % 54 + 1} USC {number}", "document_id": f"bench:{number}"}
        for number in range(1000)
    ]
    insert_many(connection, document_aliases, names)
    per_document = edges // 1000
    for citing in range(1000, 2000):
        rows = [_edge(citing, start) for start in range(per_document)]
        insert_many(connection, citation_edges, rows)


def _document(number: int, now: datetime) -> dict[str, Any]:
    document_id = f"bench:{number}"
    return {
        "id": document_id,
        "uid": ids.document_uid(document_id),
        "source": "bench",
        "kind": "thing",
        "title": document_id,
        "source_url": "https://example.org",
        "source_org": "Bench",
        "retrieved_at": now,
        "raw_path": "x",
        "raw_sha256": "x",
        "citation_string": document_id,
        "content_sha256": "x",
        "recipe": "x",
        "updated_at": now,
    }


def _edge(citing: int, start: int) -> dict[str, Any]:
    # One edge in five hundred cites something that is held.
    section = (citing * 1000 + start) % 500_000
    return {
        "from_document_id": f"bench:{citing}",
        "start": start,
        "end": start + 1,
        "locator": {},
        "raw": "x",
        "kind": "usc",
        "target": f"{section % 54 + 1} USC {section}",
        "to_document_id": None,
    }


def main() -> None:
    """Print the figures."""
    parser = asking(__doc__)
    parser.add_argument("--size", type=int, default=MEGABYTE, help="characters of invented prose")
    parser.add_argument("--edges", type=int, default=MEGABYTE, help="0 leaves linking out")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("files", nargs="*", type=Path, help="Markdown to read instead of prose")
    options = parser.parse_args()
    given = "\n".join(file.read_text("utf-8") for file in options.files)
    figures = list(speeds(given or prose(options.size), options.repeats))
    if options.edges:
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(f"sqlite:///{folder}/bench.db", seams=Seams())
            figures.append(linking(database, options.edges))
            database.close()
    tell(options, figures)


if __name__ == "__main__":
    main()
