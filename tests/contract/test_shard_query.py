"""SQL over an index: the newest of every record, as it was put, and nothing besides."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.indexes import EVERY

from fonds.errors import ShardError, StoreError, UsageError
from fonds.seams import Seams, SystemClock
from fonds.shards.compiler import Compiler, Locks
from fonds.shards.divide import divide
from fonds.shards.inbox import put, put_many
from fonds.shards.index import Index, create_index, open_index, version_of
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import find, merge, read_entry, write_shard
from fonds.shards.query import query
from fonds.shards.schema import MAX_RECORD_SIZE, Record, Value, schema_of
from fonds.stores.blobs import FolderBlobs, open_blobs

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HARD = [
    "\0", "a\0b", "\ufeff", "\r", "\r\n", "\n", '"', '""', "'", "\\", "\\N", "", "NULL", "\x1b",
    "\x1b-", "\x1bJ", "\x1b[", "\x1f", "\x1e", "\x7f", "\x85", "\u2028", "🦊", " x ", "#",
    ",", "\t",
]  # fmt: skip


@pytest.fixture(params=["folder", "memory", "s3", "azure"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    if request.param == "folder":
        address = str(tmp_path / "store")
    elif request.param == "memory":
        address = "memory://"
    else:
        address = request.getfixturevalue(f"{request.param}_address")
    return create_index(open_blobs(address, seams=Seams()), "things", EVERY)


@pytest.fixture
def folder_index(tmp_path: Path) -> Index:
    return create_index(open_blobs(str(tmp_path / "store"), seams=Seams()), "things", EVERY)


def thing(key: str, hours: int = 0, **values: Value) -> Record:
    return {"key": key, "updated_at": NOON + timedelta(hours=hours), **values}


def compile_all(index: Index) -> None:
    done = Compiler(index, seams=Seams()).run()
    assert (done.busy, done.failed, done.damaged) == (0, 0, [])


def asked(index: Index, sql: str, **folders: Path) -> list[tuple[Any, ...]]:
    with query(index, sql, **folders) as answer:
        return list(answer.rows)


def test_an_empty_index_is_an_empty_table_with_its_types(index: Index) -> None:
    with query(index, "SELECT * FROM things") as answer:
        assert dict(answer.columns) == {
            "key": "VARCHAR",
            "text": "VARCHAR",
            "whole": "BIGINT",
            "part": "DOUBLE",
            "flag": "BOOLEAN",
            "day": "DATE",
            "moment": "TIMESTAMP WITH TIME ZONE",
            "updated_at": "TIMESTAMP WITH TIME ZONE",
        }
        assert list(answer.rows) == []


def test_records_are_found_in_inbox_and_shards_once_and_the_newest_of_each(index: Index) -> None:
    put_many(index, [thing(key, text="first") for key in "abcde"])
    compile_all(index)
    put_many(index, [thing("b", 1, text="newer"), thing("c", -1, text="older")])
    put_many(index, [thing("d", text="zzz"), thing("e", text="aaa"), thing("f", text="fresh")])
    assert asked(index, "SELECT key, text FROM things ORDER BY key") == [
        ("a", "first"),
        ("b", "newer"),
        ("c", "first"),
        ("d", "zzz"),  # at one time the greater bytes win, as in a compile
        ("e", "first"),
        ("f", "fresh"),
    ]
    before = asked(index, "SELECT * FROM things ORDER BY key")
    compile_all(index)
    assert asked(index, "SELECT * FROM things ORDER BY key") == before


def test_every_hard_text_is_read_as_it_was_put(index: Index) -> None:
    wanted = {f"{place} {text}": text for place, text in enumerate(HARD)}
    records = [thing(key, text=text) for key, text in wanted.items()]
    put_many(index, records[::2])
    compile_all(index)
    put_many(index, records[1::2])
    assert dict(asked(index, "SELECT key, text FROM things")) == wanted


pieces = st.sampled_from(HARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
texts = st.none() | st.lists(pieces, max_size=6).map("".join)
moments = st.datetimes(
    min_value=datetime(1, 1, 1),  # noqa: DTZ001 — hypothesis adds the zone
    timezones=st.just(UTC),
)
values = st.fixed_dictionaries(
    {
        "text": texts,
        "whole": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        "part": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.none() | st.booleans(),
        "day": st.none() | st.dates(),
        "moment": st.none() | moments,
        "updated_at": moments,
    }
)
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(keys, st.lists(st.tuples(values, st.booleans()), min_size=1, max_size=3),
                    max_size=6)
)  # fmt: skip
def test_any_values_are_read_as_they_were_put(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: dict[str, list[tuple[dict[str, Value], bool]]],
) -> None:
    folder = tmp_path_factory.mktemp("store")
    index = create_index(open_blobs(str(folder), seams=Seams()), "things", EVERY)
    for round_number in range(3):
        rounds = {
            key: puts[round_number] for key, puts in drawn.items() if len(puts) > round_number
        }
        put_many(index, [{"key": key, **record} for key, (record, _) in rounds.items()])
        if any(is_compiled for _, is_compiled in rounds.values()):
            compile_all(index)
    found = {row[0]: row for row in asked(index, "SELECT * FROM things")}
    assert found == {
        key: newest(key, [record for record, _ in puts]) for key, puts in drawn.items()
    }


def newest(key: str, records: list[dict[str, Value]]) -> tuple[Value, ...]:
    lines = [EVERY.encode({"key": key, **record})[:-1] for record in records]
    return tuple(
        EVERY.decode(max(lines, key=lambda line: (line.rpartition(b"\x1f")[2], line))).values()
    )


def test_types_sort_and_add_up_as_what_they_are(folder_index: Index) -> None:
    index = folder_index
    put_many(
        index,
        [
            thing("a", whole=10, part=2.5, flag=True, day=date(2026, 1, 31), moment=NOON),
            thing("b", whole=9, part=10.0, flag=False, day=date(2026, 2, 1), moment=None),
            thing("c", whole=-1, part=-0.5, flag=None, day=None, moment=None),
        ],
    )
    compile_all(index)
    assert asked(index, "SELECT whole FROM things ORDER BY whole") == [(-1,), (9,), (10,)]
    assert asked(index, "SELECT sum(whole), max(part), count(*) FILTER (flag) FROM things") == [
        (18, 10.0, 1)
    ]
    assert asked(index, "SELECT max(day) - min(day), max(moment) FROM things") == [(1, NOON)]
    assert asked(index, "SELECT key FROM things WHERE updated_at > '2026-03-04 11:59:59Z'") != []
    assert asked(index, "SELECT key FROM things WHERE updated_at > '2026-03-04 12:00:00Z'") == []


def test_the_order_that_was_asked_for_is_kept_over_many_rows(folder_index: Index) -> None:
    rows = asked(folder_index, "SELECT i, now() FROM range(30000) t(i) ORDER BY i DESC")
    assert [row[0] for row in rows] == list(reversed(range(30000)))
    assert rows[0][1].tzinfo is UTC


def test_times_inside_of_other_values_can_be_asked_for(folder_index: Index) -> None:
    put(folder_index, thing("a"))
    ((found, name),) = asked(folder_index, "SELECT {'at': [updated_at]}, key FROM things")
    assert found == {"at": [NOON.replace(tzinfo=None)]}
    assert name == "a"


def test_columns_of_one_name_are_kept_apart(folder_index: Index) -> None:
    with query(folder_index, "SELECT 1 AS a, 2 AS a") as answer:
        assert len(answer.columns) == 2
        assert list(answer.rows) == [(1, 2)]


@pytest.mark.parametrize("name", ["select", "table", "base", "newer", "main"])
def test_an_index_may_have_the_name_of_a_word_of_sql(tmp_path: Path, name: str) -> None:
    schema = schema_of([("order", "string"), ("group", "string"), ("updated_at", "datetime")])
    index = create_index(open_blobs(str(tmp_path), seams=Seams()), name, schema)
    put(index, {"order": "a", "group": "x", "updated_at": NOON})
    compile_all(index)
    put(index, {"order": "b", "group": "y", "updated_at": NOON})
    assert asked(index, f'SELECT "order", "group" FROM "{name}" ORDER BY ALL') == [
        ("a", "x"),
        ("b", "y"),
    ]


def test_a_record_as_long_as_may_be_is_read(folder_index: Index) -> None:
    long = "x" * (MAX_RECORD_SIZE - 300) + "\n\x1f"
    put_many(folder_index, [thing(key, text=long) for key in "ab"])
    compile_all(folder_index)
    put(folder_index, thing("c", text=long))
    assert asked(folder_index, "SELECT key, text FROM things ORDER BY key") == [
        (key, long) for key in "abc"
    ]


def test_an_index_that_is_divided_meanwhile_is_read_once(index: Index) -> None:
    index = replace(index, layout=IndexLayout(index.name, 1))
    put_many(index, [thing(f"k{number}", whole=number) for number in range(40)])
    compile_all(index)
    smaller = replace(index, layout=IndexLayout(index.name, 2))
    for number in range(0, 40, 4):  # half-way: some records are copied and not yet removed
        copy_record(index, smaller, f"k{number}")
    put(index, thing("k0", 1, whole=1000))
    wanted = [(1000 + sum(range(40)), 40)]
    assert asked(index, "SELECT sum(whole), count(*) FROM things") == wanted
    divide(index, 2, Locks(index, SystemClock(), "test"))
    assert asked(index, "SELECT sum(whole), count(*) FROM things") == wanted
    assert asked(open_index(index.blobs, "things"), "SELECT count(*) FROM things") == [(40,)]


def copy_record(index: Index, smaller: Index, key: str) -> None:
    held = index.blobs.get(index.layout.shard(index.layout.shard_of(key)))
    line = find(held, key.encode() + b"\x1f")
    assert line is not None
    shard = smaller.layout.shard_of(key)
    before = version_of(smaller.blobs, smaller.layout.shard(shard))
    merged = merge(before.data if before else b"", [line], len(EVERY.fields))
    write_shard(smaller, shard, merged, before=before, after=read_entry(smaller, shard))


def test_shards_of_a_remote_store_are_kept_and_read_again_only_when_changed(
    tmp_path: Path,
) -> None:
    index = create_index(open_blobs("memory://", seams=Seams()), "things", EVERY)
    put_many(index, [thing(f"k{number}", whole=number) for number in range(20)])
    compile_all(index)
    cache, counted = tmp_path / "cache", CountedBlobs(index.blobs)
    watched = replace(index, blobs=counted)
    shards = sum(info.key.endswith(".usv") for info in index.blobs.list(index.layout.shards))
    assert asked(watched, "SELECT sum(whole) FROM things", cache=cache) == [(190,)]
    assert counted.reads == shards
    assert asked(watched, "SELECT sum(whole) FROM things", cache=cache) == [(190,)]
    assert counted.reads == shards
    put(index, thing("k0", 1, whole=1000))
    compile_all(index)
    assert asked(watched, "SELECT sum(whole) FROM things", cache=cache) == [(1190,)]
    assert counted.reads == shards + 1


class CountedBlobs:
    """A store that counts how many objects were read."""

    def __init__(self, blobs: Any) -> None:
        self._blobs = blobs
        self._lock = threading.Lock()
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def read(self, key: str, *, unless: str | None = None) -> Any:
        with self._lock:
            self.reads += 1
        return self._blobs.read(key, unless=unless)


def test_a_shard_that_is_cut_inside_a_record_is_refused(index: Index) -> None:
    put(index, thing("a", text="some text"))
    compile_all(index)
    key = index.layout.shard(index.layout.shard_of("a"))
    whole = index.blobs.get(key)
    for cut in (1, 5, len(whole) - 1):
        index.blobs.put(key, whole[:cut])
        with pytest.raises(ShardError, match="ends inside a record"):
            asked(index, "SELECT 1 FROM things LIMIT 0")
    index.blobs.put(key, whole)
    assert asked(index, "SELECT text FROM things") == [("some text",)]


@pytest.mark.parametrize(
    "data", [b"a\x1fb\n", b"a" + b"\x1f" * 8 + b"\n", b"\xff" + b"\x1f" * 7 + b"\n"]
)
def test_a_shard_that_does_not_hold_records_is_refused_by_its_name(
    folder_index: Index, data: bytes
) -> None:
    folder_index.blobs.create(folder_index.layout.shard("a1"), data)
    with pytest.raises(ShardError, match=r"shard a1 is damaged; see `fonds index verify`"):
        asked(folder_index, "SELECT * FROM things")


def test_a_damaged_record_of_the_inbox_is_refused_by_its_name(folder_index: Index) -> None:
    folder_index.blobs.create(folder_index.layout.item("a"), b"cut of")
    with pytest.raises(ShardError, match=r"indexes/things/a\.usv"):
        asked(folder_index, "SELECT * FROM things")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text("password\nswordfish\n")
    return path


FORBIDDEN = [
    "COPY (SELECT 1) TO '{out}'",
    "COPY (SELECT 1) TO '{shard}' (USE_TMP_FILE false)",
    "COPY things TO '{out}' (FORMAT parquet)",
    "WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1",
    "WITH x AS (COPY (SELECT 1) TO '{shard}' (USE_TMP_FILE false)) SELECT 1",
    "WITH x AS MATERIALIZED (COPY (SELECT 1) TO '{shard}' (USE_TMP_FILE false)) SELECT * FROM x",
    "SELECT * FROM query('WITH x AS (COPY (SELECT 1) TO ''{out}'') SELECT 1')",
    "FROM (WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}' AS other",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW things AS SELECT 1",
    "INSERT INTO things SELECT * FROM things",
    "DELETE FROM things",
    "DROP VIEW things",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 9",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA threads = 9",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})",
    "SELECT * FROM enable_profiling()",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO '{out}'",
    "",
    "-- nothing",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM read_duckdb('{secret}')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('{folder}/*')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM query_table('{secret}')",
    "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
    "SELECT (SELECT content FROM read_text('{secret}'))",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_csv('https://127.0.0.1:9/x.csv')",
    "SELECT * FROM read_csv('s3://bucket/x.csv')",
    "SELECT getenv('HOME')",
    "SELECT * FROM hidden_rows",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_no_query_reaches_beyond_the_index(
    folder_index: Index, tmp_path: Path, secret: Path, sql: str
) -> None:
    hidden_rows = [("swordfish",)]  # DuckDB looks names up among the variables of its callers
    put(folder_index, thing("a"))
    compile_all(folder_index)
    before = contents(tmp_path)
    places = {
        "out": tmp_path / "out",
        "secret": secret,
        "folder": tmp_path,
        "shard": folder_index.blobs.local_path(folder_index.layout.shard(layout_shard("a"))),
    }
    with pytest.raises(UsageError) as refused:
        asked(folder_index, sql.format(**places))
    assert "swordfish" not in str(refused.value)
    assert contents(tmp_path) == before
    assert hidden_rows


def layout_shard(key: str) -> str:
    return IndexLayout("things").shard_of(key)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files_that_a_query_may_read_cannot_be_written_by_it(
    folder_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder_index, thing("a"))
    compile_all(folder_index)
    before = contents(tmp_path / "store")
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter(["guessed"]))
    link = tmp_path / "scratch" / "fonds-query-guessed" / f"{layout_shard('a')}.usv"
    reading = f"SELECT count(*) FROM read_text('{link}')"
    assert asked(folder_index, reading, scratch=tmp_path / "scratch") == [(1,)]
    writing = f"WITH x AS (COPY (SELECT 1) TO '{link}' (USE_TMP_FILE false)) SELECT 1"
    with pytest.raises(UsageError, match="must be at the top level"):
        asked(folder_index, writing, scratch=tmp_path / "scratch")
    assert contents(tmp_path / "store") == before


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        ("SELECT colour FROM things", 'Referenced column "colour" not found'),
        ("SELECT * FROM thigs", 'Did you mean "things"'),
        ("SELECT 'x'::INTEGER FROM things", "Could not convert string 'x'"),
        ("SELECT ?", "parameters"),
        ("SELECT 1 /* open", "unterminated"),
    ],
)
def test_what_is_wrong_with_a_query_is_said_in_the_words_of_duckdb(
    folder_index: Index, tmp_path: Path, sql: str, said: str
) -> None:
    put(folder_index, thing("a"))
    with pytest.raises(UsageError) as refused:
        asked(folder_index, sql, scratch=tmp_path / "scratch")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_an_error_amid_the_rows_is_told_in_the_same_way(folder_index: Index) -> None:
    asking = "SELECT CASE WHEN i = 90000 THEN error('far in') ELSE i END FROM range(100000) t(i)"
    with query(folder_index, asking) as answer, pytest.raises(UsageError, match="far in"):
        list(answer.rows)


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1;", "SELECT 1 -- why not", "  \n SELECT 1 ; -- x", "VALUES (1)", "FROM range(1, 2)"],
)
def test_a_query_may_be_written_in_many_ways(folder_index: Index, sql: str) -> None:
    assert asked(folder_index, sql) == [(1,)]


def test_tables_can_be_described(folder_index: Index) -> None:
    assert [row[:2] for row in asked(folder_index, "DESCRIBE things")][:3] == [
        ("key", "VARCHAR"),
        ("text", "VARCHAR"),
        ("whole", "BIGINT"),
    ]


def test_nothing_is_left_behind(folder_index: Index, tmp_path: Path) -> None:
    scratch = tmp_path / "deep" / "scratch"
    put(folder_index, thing("a"))
    with query(folder_index, "SELECT * FROM things", scratch=scratch) as answer:
        assert len(list(scratch.iterdir())) == 1
        next(answer.rows)
    assert list(scratch.iterdir()) == []
    with pytest.raises(UsageError):
        query(folder_index, "SELECT nonsense FROM things", scratch=scratch)
    assert list(scratch.iterdir()) == []


def test_a_query_left_in_the_middle_is_closed(folder_index: Index, tmp_path: Path) -> None:
    rows: Iterator[tuple[Any, ...]]
    with query(folder_index, "SELECT * FROM range(10000000000)", scratch=tmp_path / "s") as answer:
        rows = answer.rows
        assert [next(rows), next(rows)] == [(0,), (1,)]
    assert list((tmp_path / "s").iterdir()) == []


@pytest.mark.parametrize("name", ["a[1]", "a*", "what?", "{x}"])
def test_folders_with_names_that_look_like_patterns_are_read(tmp_path: Path, name: str) -> None:
    index = create_index(open_blobs(str(tmp_path / name), seams=Seams()), "things", EVERY)
    put(index, thing("a"))
    compile_all(index)
    assert asked(index, "SELECT key FROM things") == [("a",)]
    with pytest.raises(UsageError, match="DuckDB takes for a pattern"):
        asked(index, "SELECT key FROM things", scratch=tmp_path / name / "scratch")


def test_a_folder_with_a_quote_in_its_name_is_read(tmp_path: Path) -> None:
    index = create_index(open_blobs(str(tmp_path / "it's"), seams=Seams()), "things", EVERY)
    put(index, thing("a"))
    compile_all(index)
    found = asked(index, "SELECT key FROM things", scratch=tmp_path / "it's" / "scratch")
    assert found == [("a",)]


def test_a_missing_duckdb_is_told_with_what_to_install(
    folder_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"pip install 'fonds\[query\]'"):
        query(folder_index, "SELECT 1")


def test_only_a_folder_says_in_which_file_an_object_is(index: Index) -> None:
    index.blobs.create("a/b", b"here")
    path = index.blobs.local_path("a/b")
    assert path is None or path.read_bytes() == b"here"
    assert (path is not None) == isinstance(index.blobs, FolderBlobs)
    assert index.blobs.local_path("a/c") is None


def test_a_link_in_a_folder_is_not_followed(folder_index: Index, secret: Path) -> None:
    put(folder_index, thing("a"))
    compile_all(folder_index)
    path = folder_index.blobs.local_path(folder_index.layout.shard(layout_shard("a")))
    assert path is not None
    path.with_name("00.usv").symlink_to(secret)
    assert asked(folder_index, "SELECT key FROM things") == [("a",)]
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(StoreError, match="symbolic link"):
        folder_index.blobs.local_path(folder_index.layout.shard(layout_shard("a")))


def test_a_shard_that_vanishes_under_a_query_is_no_empty_answer(
    folder_index: Index, tmp_path: Path
) -> None:
    put(folder_index, thing("a"))
    compile_all(folder_index)
    with pytest.raises(StoreError):
        asked(replace(folder_index, blobs=Vanishing(folder_index.blobs)), "SELECT * FROM things")
    assert list(tmp_path.glob("**/fonds-query-*")) == []


class Vanishing:
    """A store that lists a shard which is gone when it is asked for."""

    def __init__(self, blobs: Any) -> None:
        self._blobs = blobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def list(self, prefix: str = "") -> Iterator[Any]:
        for info in self._blobs.list(prefix):
            if info.key.endswith(".usv"):
                yield replace(info, key=info.key.replace(".usv", "0.usv"))
            else:
                yield info


def test_plain_duckdb_reads_shards_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index(open_blobs(str(tmp_path / "demo-library/blobs"), seams=Seams()), "domains")
    names = ['Water "and" Wood', "Umwelt, Bundesamt", "'"]
    for number, name in enumerate(names):
        record: Record = {
            "domain": f"{number}.example",
            "company_name": name,
            "updated_at": NOON,
        }
        put(index, record)
    compile_all(index)
    page = Path(__file__).parents[2] / "docs/how-to/indexes.md"
    sql = page.read_text().partition("```sql\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        assert sorted(connection.execute(sql).fetchall()) == [
            (f"{number}.example", name) for number, name in enumerate(names)
        ]
