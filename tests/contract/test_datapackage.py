"""The data package: Frictionless reads every shard by it, and finds what is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.support.indexes import EVERY

from fonds.errors import ShardError
from fonds.seams import Seams
from fonds.shards import usv
from fonds.shards.compiler import Compiler
from fonds.shards.inbox import put_many
from fonds.shards.index import DOMAINS, Index, ShardEntry, create_index, describe, read_description
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import entry_of
from fonds.shards.schema import Record
from fonds.stores.blobs import open_blobs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it brings along
    import frictionless

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TEXTS = [
    '"', '""', '"quoted"', '"open', "'", "\\", "\\n", "a,b", ";", "|", "\t", "\n", "\r", "\x1f",
    "\x1b", "\x1b-", "\0", "\x1c", "\ufeff", "", " ", "#x", "🦊", "\u2028", "\x85", None,
]  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return create_index(open_blobs(str(tmp_path), seams=Seams()), "things", EVERY)


def fill(index: Index) -> list[Record]:
    records: list[Record] = [
        {
            "key": f"{place} {text}",
            "text": text,
            "whole": (-1) ** place * place * 10**17,
            "part": (0.1, 1e300, -5e-324, 1e16, -0.0)[place % 5],
            "flag": (True, False, None)[place % 3],
            "day": (date(2026, 3, 4), date(1, 1, 1), None)[place % 3],
            "moment": None if place % 2 else NOON - timedelta(days=1 + place),
            "updated_at": NOON + timedelta(microseconds=place),
        }
        for place, text in enumerate(TEXTS)
    ]
    put_many(index, records)
    assert Compiler(index, seams=Seams()).run().records == len(records)
    return records


def validated(folder: Path) -> Any:
    return frictionless.validate(str(folder / "indexes/things/datapackage.json"))


def faults(folder: Path) -> set[str]:
    return {kind for (kind,) in validated(folder).flatten(["type"])}


def test_an_empty_index_is_valid(index: Index, tmp_path: Path) -> None:
    assert faults(tmp_path) == set()
    assert read_description(index.blobs.get(index.layout.descriptor)).schema == EVERY


def test_a_compiled_index_is_valid_and_read_with_its_types(index: Index, tmp_path: Path) -> None:
    records = fill(index)
    report = validated(tmp_path)
    assert report.flatten(["type", "message"]) == []
    assert report.tasks[0].stats["rows"] == len(records)
    package = frictionless.Package(str(tmp_path / "indexes/things/datapackage.json"))
    resource: Any = package.get_resource("shards")
    found = {row["key"]: row.to_dict() for row in resource.read_rows()}
    assert found == {escaped(record["key"]): expected(record) for record in records}


def escaped(value: object) -> str | None:
    return None if value is None else usv.encode([str(value)])[:-1].decode()


def expected(record: Record) -> dict[str, Any]:
    part = record["part"]
    return dict(record) | {
        "key": escaped(record["key"]),
        "text": escaped(record["text"]),
        "part": Decimal(repr(part)),
    }


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"\x1ftrue\x1f", b"\x1fperhaps\x1f", "type-error"),
        (b"\x1f0\x1f", b"\x1fnought\x1f", "type-error"),
        (b"2026-03-04T12:00:00.000000Z", b"noon", "type-error"),
        (b"2026-03-04T12:00:00.000000Z", usv.NULL.encode(), "constraint-error"),
        (b"\x1ftrue\x1f", b"\x1f", "missing-cell"),
        (b"\x1ftrue\x1f", b"\x1ftrue\x1f\x1f", "extra-cell"),
    ],
)
def test_the_tool_finds_what_is_not_of_its_type(
    index: Index, tmp_path: Path, old: bytes, new: bytes, fault: str
) -> None:
    fill(index)
    key = index.layout.shard(index.layout.shard_of('0 "'))
    data = index.blobs.get(key)
    assert old in data
    index.blobs.put(key, data.replace(old, new, 1))
    assert fault in faults(tmp_path)


def test_the_tool_finds_a_key_that_stands_twice_and_a_count_that_is_wrong(
    index: Index, tmp_path: Path
) -> None:
    fill(index)
    key = index.layout.shard(index.layout.shard_of('0 "'))
    index.blobs.put(key, index.blobs.get(key) * 2)
    assert faults(tmp_path) == {"primary-key", "row-count"}


def test_the_tool_finds_a_shard_that_is_missing(index: Index, tmp_path: Path) -> None:
    fill(index)
    index.blobs.delete(index.layout.shard(index.layout.shard_of('0 "')))
    assert "scheme-error" in faults(tmp_path)


def test_counts_and_hashes_stand_in_it(index: Index) -> None:
    records = fill(index)
    told = json.loads(index.blobs.get(index.layout.descriptor))
    shards = {
        info.key.removeprefix(index.layout.shards)[:2]: index.blobs.get(info.key)
        for info in index.blobs.list(index.layout.shards)
        if info.key.endswith(".usv")
    }
    assert told["records"] == len(records)
    assert told["bytes"] == sum(map(len, shards.values()))
    assert told["resources"][0]["path"] == [f"shards/{shard}.usv" for shard in sorted(shards)]
    assert read_description(json.dumps(told).encode()).entries == {
        shard: entry_of(data) for shard, data in shards.items()
    }


def test_it_has_the_shape_of_its_specification() -> None:
    told = json.loads(describe(IndexLayout("domains"), DOMAINS, {"a1": ShardEntry(1, 9, "0" * 64)}))
    resource = told["resources"][0]
    assert resource["name"] == "shards"
    assert resource["path"] == ["shards/a1.usv"]
    assert [(field["name"], field["type"]) for field in resource["schema"]["fields"]] == [
        ("domain", "string"),
        ("company_name", "string"),
        ("scraper_version", "integer"),
        ("updated_at", "datetime"),
    ]


def test_the_same_entries_give_the_same_bytes_in_any_order() -> None:
    entries = {shard: ShardEntry(1, 9, shard * 32) for shard in ("a1", "00", "ff")}
    backwards = dict(reversed(list(entries.items())))
    layout = IndexLayout("domains")
    assert describe(layout, DOMAINS, entries) == describe(layout, DOMAINS, backwards)


def test_what_it_says_can_be_read_back() -> None:
    entries = {"a1": ShardEntry(1, 9, "0" * 64), "b2": ShardEntry(0, 0, "1" * 64)}
    found = read_description(describe(IndexLayout("domains", 2), EVERY, entries))
    assert (found.schema, found.digits, dict(found.entries)) == (EVERY, 2, entries)


def test_the_one_of_the_specification_can_be_read() -> None:
    fields = [{"name": field.name, "type": field.type} for field in DOMAINS.fields]
    resource = {"name": "shards", "path": "shards/*.usv", "schema": {"fields": fields}}
    found = read_description(json.dumps({"name": "x", "resources": [resource]}).encode())
    assert (found.schema, found.digits, dict(found.entries)) == (DOMAINS, 2, {})


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b'{"resources": []}',
     b'{"resources": [{"schema": {"fields": []}}]}',
     b'{"resources": [{"schema": {"fields": [{"name": "a", "type": "string"}]}}]}',
     b'{"resources": 5}', b"null"],
)  # fmt: skip
def test_what_is_no_data_package_of_an_index_is_refused(data: bytes) -> None:
    with pytest.raises(ShardError, match=r"datapackage\.json"):
        read_description(data)


@pytest.mark.parametrize(
    "bent",
    [{"shards": []}, {"shards": {"a1": 5}}, {"shards": {"a1": {"records": 1}}}, {"digits": "two"},
     {"digits": 9}, {"shards": {"a1": {"records": "1", "bytes": 9, "sha256": "0"}}}],
)  # fmt: skip
def test_one_that_counts_in_words_is_refused(bent: dict[str, Any]) -> None:
    told = json.loads(describe(IndexLayout("domains"), DOMAINS, {})) | bent
    with pytest.raises(ShardError, match=r"datapackage\.json"):
        read_description(json.dumps(told).encode())


def test_data_package_of_the_hosts_is_named_domain_index() -> None:
    names = {"domains": "domain-index", "things": "things"}
    for name, expected in names.items():
        assert json.loads(describe(IndexLayout(name), DOMAINS, {}))["name"] == expected


def test_duckdb_reads_shards_as_the_documentation_says(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path), seams=Seams())
    hosts = Index(blobs=blobs, layout=IndexLayout("domains"), schema=DOMAINS)
    company = 'An "agency", one; of two'
    record: Record = {
        "domain": "epa.gov",
        "company_name": company,
        "scraper_version": 1,
        "updated_at": NOON,
    }
    put_many(hosts, [record])
    Compiler(hosts, seams=Seams()).run()
    page = Path(__file__).parents[2] / "docs" / "how-to" / "indexes.md"
    (query,) = re.findall(r"(?ms)^```sql\n(.*?)^```$", page.read_text("utf-8"))
    # In another process: at its end, DuckDB prints pages about what it did not free.
    program = "import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchall())"
    command = [sys.executable, "-c", program, query.replace("demo-library/blobs", str(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([("epa.gov", company)])
