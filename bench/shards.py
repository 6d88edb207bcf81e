"""What does a look-up, a scan and a compile of a sharded index cost, beside the alternatives?

One run, one set of invented domains. The index stands in a folder; what would be requests to a
bucket are counted as they are made. Beside it: a design with a manifest (one file that maps each
key to its shard, read before the shard), one file for each key, SQLite, and DuckDB on Parquet.

The processor's seconds are compared, of all threads, for the machine is shared; each the best of
some rounds. The shards are filled by writing them, and the inbox by plain files: what is measured
begins where a compiler and a reader begin. `--largest` adds the cost of a look-up in ten million.

    python -m bench.shards [--rows 1000000] [--items 100000] [--largest] [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
from bench.figures import Figure, asking, tell, within

from fonds.seams import Seams
from fonds.shards import usv
from fonds.shards.compiler import Compiler
from fonds.shards.index import DOMAINS, Index, open_index
from fonds.shards.layout import IndexLayout
from fonds.shards.lookup import Lookup
from fonds.shards.manifest import entry_of, find, merge, publish, write_shard
from fonds.shards.query import query
from fonds.stores.blobs import Blobs, open_blobs

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
AT_MOST_MERGE: Final = 3.0
AT_MOST_PART: Final = 1 / 200
AT_MOST_MIB: Final = 300
ASKED: Final = 2000
OPEN_FILE: Final = "SQLite needs the whole file on this machine; ours reads one object of a bucket"
KEPT_OPEN: Final = "a shard is read and scanned each time; SQLite keeps its pages in memory"
COLUMNS: Final = "lines of text are parsed each time; Parquet keeps columns apart and compressed"
ORGANISATIONS: Final = 5000


def record(number: int, version: int = 1) -> dict[str, Any]:
    """An invented host."""
    return {
        "domain": f"host-{number:x}.example-{number % 977}.org",
        "company_name": f"Organisation of Public Matters No. {number % ORGANISATIONS}",
        "scraper_version": version,
        "updated_at": BEGINNING + timedelta(seconds=number % 86400, days=version),
    }


def fill(root: Path, rows: int) -> Index:
    """An index whose shards hold so many records."""
    index = open_index(open_blobs(str(root), seams=Seams()), "domains")
    groups: dict[str, list[bytes]] = defaultdict(list)
    for number in range(rows):
        made = record(number)
        groups[index.layout.shard_of(made["domain"])].append(DOMAINS.encode(made))
    for shard, lines in groups.items():
        write_shard(index, shard, b"".join(sorted(lines)), before=None, after=None)
    publish(index)
    return index


def seconds(act: Callable[[], Any], rounds: int = 3) -> float:
    """Of the processor, the best of some rounds."""
    spent = []
    for _ in range(rounds):
        before = time.process_time()
        act()
        spent.append(time.process_time() - before)
    return min(spent)


class Counted:
    """A store that counts requests and the bytes they gave."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.requests: Counter[str] = Counter()
        self.of_items: Counter[str] = Counter()
        """Those that concern a record in the inbox."""
        self.bytes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._blobs, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self.requests[name] += 1
            key = str(arguments[0]) if arguments else ""
            self.of_items[name] += key.endswith(".usv") and "/shards/" not in key
            result = method(*arguments, **options)
            self.bytes += len(getattr(result, "data", result) or b"") if _is_data(result) else 0
            return result

        return counted


def _is_data(result: Any) -> bool:
    return isinstance(result, bytes) or hasattr(result, "data")


def counted(index: Index) -> tuple[Index, Counted]:
    """The index again, on a store that counts."""
    store = Counted(index.blobs)
    return Index(blobs=store, layout=index.layout, schema=index.schema), store


# Looking up -------------------------------------------------------------------------------


def look_up(index: Index, root: Path, rows: int, asked: Sequence[str]) -> dict[str, Any]:
    """Requests and bytes of a look-up, in this design and in two others, each asked for real."""
    files = [info for info in index.blobs.list(index.layout.shards) if info.key.endswith(".usv")]
    total = sum(info.size for info in files)
    blobs = open_blobs(str(root / "others"), seams=Seams())
    names = ((key := record(n)["domain"], index.layout.shard_of(key)) for n in range(rows))
    blobs.create("manifest.usv", b"".join(usv.encode(pair) for pair in names))
    for key in asked:
        shard = index.layout.shard(index.layout.shard_of(key))
        blobs.put(shard, index.blobs.get(shard))
        blobs.put(f"each/{key}.usv", find(blobs.get(shard), usv.encode([key, ""])[:-1]) or b"")
    ours, store = counted(index)
    one, other = Counted(blobs), Counted(blobs)
    for key in asked:
        assert Lookup(ours).find(key) is not None
        _by_manifest(one, index, key)
        assert other.get(f"each/{key}.usv")
    told = {"this index": store, "a manifest": one, "a file for each key": other}
    return {
        "rows": rows,
        "bytes of the index": total,
        "part of the index": store.bytes / len(asked) / total,
        **{name: _each(each, len(asked)) for name, each in told.items()},
        "requests to read all": {"this index": len(files), "a file for each key": rows},
    }


def _by_manifest(blobs: Counted, index: Index, key: str) -> None:
    """One file says where each key stands, and is read before the shard."""
    line = find(blobs.get("manifest.usv"), usv.encode([key, ""])[:-1])
    assert line is not None
    named = line.rpartition(b"\x1f")[2].decode()
    assert find(blobs.get(index.layout.shard(named)), usv.encode([key, ""])[:-1])


def _each(store: Counted, times: int) -> dict[str, float]:
    reads = sum(store.requests[name] for name in ("get", "read", "head"))
    return {"requests": reads / times, "bytes": store.bytes // times}


def speed(index: Index, root: Path, rows: int, asked: Sequence[str]) -> dict[str, float]:
    """Look-ups for each second of the processor."""
    table, parquet = root / "same.db", root / "same.parquet"
    _write_sqlite(table, rows)
    _write_parquet(parquet, rows)
    plain, kept = Lookup(index), Lookup(index, cache=root / "cache")
    for key in asked:
        kept.find(key)
    ways: dict[str, Callable[[], Any]] = {
        "this index, cold": lambda: [plain.find(key) for key in asked],
        "this index, cached": lambda: [kept.find(key) for key in asked],
        "this index, in one batch": lambda: dict(plain.find_many(asked)),
        "SQLite, opened for each": lambda: [_in_sqlite(table, [key]) for key in asked],
        "SQLite, kept open": lambda: _in_sqlite(table, asked),
        "DuckDB on Parquet, kept open": lambda: _in_parquet(parquet, asked[:50]),
    }
    counts = {name: 50 if "Parquet" in name else len(asked) for name in ways}
    return {name: round(counts[name] / seconds(way)) for name, way in ways.items()}


def _rows(rows: int) -> Iterator[tuple[Any, ...]]:
    for number in range(rows):
        made = record(number)
        yield (*tuple(made.values())[:3], made["updated_at"].isoformat())


def _write_sqlite(path: Path, rows: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE domains (domain TEXT PRIMARY KEY, company_name TEXT,"
            " scraper_version INTEGER, updated_at TEXT) WITHOUT ROWID"
        )
        connection.executemany("INSERT INTO domains VALUES (?, ?, ?, ?)", _rows(rows))
    connection.close()


def _in_sqlite(path: Path, keys: Sequence[str]) -> list[Any]:
    connection = sqlite3.connect(path)
    found = [
        connection.execute("SELECT * FROM domains WHERE domain = ?", (key,)).fetchone()
        for key in keys
    ]
    connection.close()
    return found


def _write_parquet(path: Path, rows: int) -> None:
    """In order of the key, so that a look-up can pass over most of it."""
    made = path.with_suffix(".csv")
    with made.open("wb") as file:
        file.writelines(DOMAINS.encode(record(number)) for number in range(rows))
    source = _csv([made], types=("VARCHAR", "VARCHAR", "BIGINT", "TIMESTAMPTZ"))
    duckdb.execute(f"COPY (FROM {source} ORDER BY domain) TO '{path}' (FORMAT parquet)")


def _csv(files: Sequence[Path], types: Sequence[str] = ("VARCHAR",) * 4) -> str:
    columns = ", ".join(
        f"'{field.name}': '{kind}'" for field, kind in zip(DOMAINS.fields, types, strict=True)
    )
    listed = ", ".join(f"'{file}'" for file in files)
    return (
        f"read_csv([{listed}], delim = chr(31), quote = '', escape = '', header = false,"
        f" auto_detect = false, columns = {{{columns}}}, nullstr = '{usv.NULL}')"
    )


def _in_parquet(path: Path, keys: Sequence[str]) -> list[Any]:
    return [
        duckdb.execute(
            f"SELECT * REPLACE (epoch_us(updated_at) AS updated_at) FROM '{path}' WHERE domain = ?",
            [key],
        ).fetchone()
        for key in keys
    ]


# Scanning ---------------------------------------------------------------------------------


def scan(index: Index, root: Path) -> dict[str, float]:
    """Seconds of the processor for all records."""
    # Sums that no statistics of a file can tell.
    everything = (
        "SELECT sum(length(domain)), sum(length(company_name)), sum(scraper_version),"
        " sum(epoch(updated_at)) FROM {}"
    )
    typed = (
        "SELECT company_name, count(*) AS hosts, sum(scraper_version), epoch_us(max(updated_at))"
        " FROM {} GROUP BY company_name ORDER BY hosts DESC, company_name LIMIT 10"
    )
    file = f"'{root / 'same.parquet'}'"

    def ours(sql: str) -> Callable[[], Any]:
        def run() -> list[Any]:
            with query(index, sql.format("domains")) as answer:
                return list(answer.rows)

        return run

    def theirs(sql: str) -> Callable[[], Any]:
        return lambda: duckdb.execute(sql.format(file)).fetchall()

    assert ours(typed)()[0][:3] == theirs(typed)()[0][:3]
    return {
        "scan, this index": seconds(ours(everything)),
        "scan, Parquet": seconds(theirs(everything)),
        "aggregate, this index": seconds(ours(typed)),
        "aggregate, Parquet": seconds(theirs(typed)),
    }


# Compiling --------------------------------------------------------------------------------


def fill_inbox(index: Index, root: Path, rows: int, items: int) -> list[bytes]:
    """Changed and new records, half and half, in plain files."""
    chance = random.Random(3)
    numbers = [*chance.sample(range(rows), items // 2), *range(rows, rows + items - items // 2)]
    lines = []
    for number in numbers:
        made = record(number, version=2)
        path = root / index.layout.item(made["domain"])
        path.parent.mkdir(parents=True, exist_ok=True)
        lines.append(DOMAINS.encode(made))
        path.write_bytes(lines[-1])
    return lines


def merging(index: Index, root: Path, lines: Sequence[bytes]) -> dict[str, float]:
    """Our merge of these records into all shards beside DuckDB's, from bytes to bytes."""
    groups: dict[str, list[bytes]] = defaultdict(list)
    for line in lines:
        key = line.partition(b"\x1f")[0].decode()
        groups[index.layout.shard_of(key)].append(line.removesuffix(b"\n"))
    held = {shard: index.blobs.get(index.layout.shard(shard)) for shard in groups}
    new = root / "new.usv"
    new.write_bytes(b"".join(lines))
    files = [root / index.layout.shard(shard) for shard in groups]
    out = root / "partitioned"

    def ours() -> None:
        for shard, data in held.items():
            hashlib.sha256(data).hexdigest()
            after = merge(data, groups[shard], len(DOMAINS.fields))
            entry_of(after)

    def theirs() -> None:
        both = f"(FROM {_csv(files)} UNION ALL FROM {_csv([new])})"
        newest = f"SELECT DISTINCT ON (domain) * FROM {both} ORDER BY updated_at DESC"
        shards = f"SELECT *, sha256(domain)[:2] AS shard FROM ({newest}) ORDER BY domain"
        duckdb.execute(
            f"COPY ({shards}) TO '{out}' (FORMAT csv, DELIMITER '\x1f', QUOTE '', ESCAPE '',"
            " HEADER false, PARTITION_BY (shard), OVERWRITE)"
        )

    one, other = seconds(ours), seconds(theirs)
    return {"merge, ours": one, "merge, DuckDB": other, "ratio": one / other}


def compile_apart(root: Path) -> dict[str, Any]:
    """The whole compile, in a process of its own, so that its memory can be told."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.shards", "--compile", str(root)],
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, Any] = json.loads(told.stdout)
    return answer


def compile_here(root: Path) -> dict[str, Any]:
    """One round of a compiler with two workers."""
    index, store = counted(open_index(open_blobs(str(root), seams=Seams()), "domains"))
    began, before = time.monotonic(), time.process_time()
    done = Compiler(index, seams=Seams(), workers=2).run()
    wall, spent = time.monotonic() - began, time.process_time() - before
    return {
        "records": done.records,
        "shards": done.shards,
        "seconds": wall,
        "processor": spent,
        "reads for each record": store.of_items["read"] / max(done.records, 1),
        "deletions for each record": store.of_items["remove"] / max(done.records, 1),
        "MiB": most_memory(),
    }


def most_memory() -> float:
    """Of this program alone: what getrusage tells begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


# Growth -----------------------------------------------------------------------------------


def growth(folder: Path, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """What one look-up reads, and takes, in larger and larger indexes."""
    found = []
    for rows in sizes:
        digits = 2 if rows < 10_000_000 else 3
        found += [_one_shard(folder, rows, names) for names in sorted({2, digits})]
    return found


def _one_shard(folder: Path, rows: int, digits: int) -> dict[str, Any]:
    """One shard of such an index, filled with the records that belong there."""
    layout = IndexLayout("domains", digits)
    root = folder / f"{rows}-{digits}"
    index = Index(blobs=open_blobs(str(root), seams=Seams()), layout=layout, schema=DOMAINS)
    shard = layout.shard_of(record(0)["domain"])
    mine = [made for n in range(rows) if layout.shard_of((made := record(n))["domain"]) == shard]
    data = b"".join(sorted(map(DOMAINS.encode, mine)))
    write_shard(index, shard, data, before=None, after=None)
    keys = [made["domain"] for made in mine][:200]
    lookup = Lookup(index)
    spent = seconds(lambda: [lookup.find(key) for key in keys])
    return {
        "rows": rows,
        "digits": digits,
        "bytes": len(data),
        "milliseconds": 1000 * spent / len(keys),
    }


def main() -> None:
    """Measure, print, and say whether it holds."""
    asked = asking(__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--items", type=int, default=100_000)
    asked.add_argument("--largest", action="store_true", help="also ten million")
    asked.add_argument("--compile", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.compile:
        print(json.dumps(compile_here(given.compile)))
        return
    with tempfile.TemporaryDirectory(prefix="fonds-bench-") as name:
        measured = measure(Path(name), given)
    if not given.json:
        print(json.dumps(measured, indent=2))
    tell(given, list(figures(measured, given.items)), **measured)


def measure(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    root = folder / "index"
    index = fill(root, given.rows)
    chance = random.Random(7)
    keys = [record(chance.randrange(given.rows))["domain"] for _ in range(ASKED)]
    measured: dict[str, Any] = {
        "look-up": look_up(index, folder, given.rows, keys[:50]),
        "look-ups a second": speed(index, folder, given.rows, keys),
        "seconds": scan(index, folder),
    }
    lines = fill_inbox(index, root, given.rows, given.items)
    measured["merge"] = merging(index, root, lines)
    measured["compile"] = compile_apart(root)
    sizes = {10_000, 100_000, given.rows, *([10_000_000] if given.largest else [])}
    measured["growth"] = growth(folder, sorted(sizes))
    return measured


# Telling ----------------------------------------------------------------------------------


def figures(measured: dict[str, Any], items: int) -> Iterator[Figure]:
    """Each beside what it may cost, or what another way costs."""
    found, speeds, compiled = (
        measured[name] for name in ("look-up", "look-ups a second", "compile")
    )
    yield within("requests of a look-up", found["this index"]["requests"], 2)
    yield within("part of the index that it reads", found["part of the index"], AT_MOST_PART)
    yield _beside(speeds, "this index, cold", "SQLite, opened for each", OPEN_FILE)
    yield _beside(speeds, "this index, cached", "SQLite, kept open", KEPT_OPEN)
    yield _beside(speeds, "this index, cached", "DuckDB on Parquet, kept open")
    for what in ("scan", "aggregate"):
        yield _taking(
            measured["seconds"], f"{what}, this index", f"{what}, Parquet", remark=COLUMNS
        )
    yield _taking(measured["merge"], "merge, ours", "merge, DuckDB", least=1 / AT_MOST_MERGE)
    yield within("records left out by the compiler", items - compiled["records"], 0)
    yield within("reads for each record compiled", compiled["reads for each record"], 1)
    yield within("deletions for each record compiled", compiled["deletions for each record"], 1)
    yield within("memory of compiling", compiled["MiB"], AT_MOST_MIB, "MiB")


def _beside(speeds: dict[str, float], ours: str, theirs: str, remark: str = "") -> Figure:
    return Figure(
        what=f"look-ups in {ours}",
        ours=speeds[ours],
        theirs=speeds[theirs],
        unit="for each CPU second",
        peer=theirs,
        better="more",
        remark=remark,
    )


def _taking(
    spent: dict[str, float], ours: str, theirs: str, *, least: float | None = None, remark: str = ""
) -> Figure:
    return Figure(
        what=ours,
        ours=spent[ours],
        theirs=spent[theirs],
        unit="CPU s",
        peer=theirs.rpartition(", ")[2],
        better="less",
        least=least,
        remark=remark,
    )


if __name__ == "__main__":
    main()
