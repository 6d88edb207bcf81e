"""`fonds index …` as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Fonds

TIME = "2026-03-04T05:06:07Z"
HOSTS = [
    {"Domain name": "harbour.example", "Organization name": "Harbour Board"},
    {"Domain name": "ferries.example", "Organization name": 'Board of "Ferries", \u00e9'},
]


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "indexed")


@pytest.fixture
def table(tmp_path: Path) -> str:
    file = tmp_path / "hosts.csv"
    quoted = [
        ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in h.values()) for h in HOSTS
    ]
    file.write_text("\n".join(["Domain name,Organization name,City", *(f"{q}," for q in quoted)]))
    return str(file)


def load(fonds: Fonds, table: str, root: str, *more: str) -> None:
    columns = ("--column", "domain=Domain name", "--column", "company_name=Organization name")
    done = fonds("index", "load", "domains", table, *columns, "--time", TIME, "--root", root, *more)
    assert done.code == 0, done.err


def test_table_is_loaded_compiled_looked_up_and_asked(fonds: Fonds, table: str, root: str) -> None:
    load(fonds, table, root)
    assert (
        "2 records merged into 2 shards" in fonds("index", "compile", "domains", "--root", root).err
    )
    found = fonds("index", "lookup", "domains", "ferries.example", "--root", root, "--json")
    assert found.json == [
        {
            "domain": "ferries.example",
            "company_name": 'Board of "Ferries", \u00e9',
            "scraper_version": None,
            "updated_at": "2026-03-04T05:06:07.000Z",
        }
    ]
    sql = "SELECT company_name, count(*) AS hosts FROM domains GROUP BY ALL ORDER BY 1 DESC"
    asked = fonds("index", "query", "domains", sql, "--root", root, "--json")
    assert asked.json[0] == {"company_name": "Harbour Board", "hosts": 1}
    assert fonds("index", "verify", "domains", "--root", root).code == 0
    assert fonds("index", "stats", "domains", "--root", root, "--json").json["records"] == 2


def test_table_that_is_loaded_twice_changes_nothing(fonds: Fonds, table: str, root: str) -> None:
    load(fonds, table, root)
    fonds("index", "compile", "domains", "--root", root)
    load(fonds, table, root)
    again = fonds("index", "compile", "domains", "--root", root, "--json").json
    assert (again["records"], again["shards"]) == (2, 0)


def test_record_is_put_and_an_older_one_is_not_taken(fonds: Fonds, root: str) -> None:
    put = ("index", "put", "domains", "domain=epa.gov", "--root", root)
    assert fonds(*put, "scraper_version=2").code == 0
    assert "newer" in fonds(*put, "scraper_version=1", "updated_at=2020-01-01").err
    (found,) = fonds("index", "lookup", "domains", "epa.gov", "--root", root, "--json").json
    assert found["scraper_version"] == 2


def test_key_that_is_not_there_is_named_and_the_others_are_shown(fonds: Fonds, root: str) -> None:
    fonds("index", "put", "domains", "domain=epa.gov", "--root", root)
    found = fonds("index", "lookup", "domains", "nasa.gov", "epa.gov", "--root", root)
    assert found.code == 1
    assert "epa.gov" in found.out
    assert "not in domains: nasa.gov" in found.err


def test_cut_shard_is_named_with_its_own_exit_code(fonds: Fonds, table: str, root: str) -> None:
    load(fonds, table, root)
    fonds("index", "compile", "domains", "--root", root)
    shard = max(Path(root).glob("indexes/domains/shards/*.usv"))
    shard.write_bytes(shard.read_bytes()[:-3])
    checked = fonds("index", "verify", "domains", "--root", root)
    assert checked.code == 3
    assert shard.stem in checked.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["put", "domains", "domain"], "NAME=VALUE"),
        (["put", "domains", "host=a"], "no field 'host'"),
        (["put", "domains", "scraper_version=1"], "needs a key"),
        (["put", "domains", "domain=a", "scraper_version=many"], "whole number"),
        (["put", "things", "key=a"], "fonds index create things"),
        (["put", "Domains", "domain=a"], "lower-case letters"),
        (["create", "pdfs", "url:text", "updated_at:datetime"], "'text' is not a type"),
        (["create", "pdfs", "url"], "at least two fields"),
        (["load", "domains", "hosts.txt"], "is not a .csv"),
        (["load", "domains", "absent.csv"], "cannot read"),
        (["compile", "domains", "--once", "--every", "1"], "cannot be combined"),
        (["query", "domains", "DROP TABLE domains"], ""),
        (["divide", "domains", "--digits", "2"], "already"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(
    fonds: Fonds, root: str, arguments: list[str], said: str
) -> None:
    done = fonds("index", *arguments, "--root", root)
    assert done.code == 2
    assert said in done.err


def test_line_that_does_not_fit_is_named(fonds: Fonds, tmp_path: Path, root: str) -> None:
    file = tmp_path / "hosts.jsonl"
    lines = [{"domain": "a.example", "scraper_version": 1}, {"domain": "b", "scraper_version": "x"}]
    file.write_text("\n".join(map(json.dumps, lines)))
    done = fonds("index", "load", "domains", str(file), "--root", root)
    assert done.code == 2
    assert "hosts.jsonl, line 2: scraper_version" in done.err
    named = fonds("index", "load", "domains", str(file), "--column", "domain=Host", "--root", root)
    assert "--column domain=NAME" in named.err


def test_index_of_ones_own_is_made_once_and_divided(fonds: Fonds, root: str) -> None:
    made = ("index", "create", "pdfs", "url", "pages:integer", "updated_at:datetime")
    assert fonds(*made, "--root", root).code == 0
    assert fonds(*made, "--root", root).code == 0
    assert fonds("index", "create", "pdfs", "url", "at:datetime", "--root", root).code == 2
    fonds("index", "put", "pdfs", "url=https://example.org/A b.pdf", "pages=12", "--root", root)
    fonds("index", "compile", "pdfs", "--root", root)
    assert fonds("index", "divide", "pdfs", "--digits", "3", "--root", root).code == 0
    sql = "SELECT pages + 1 AS more FROM pdfs"
    assert fonds("index", "query", "pdfs", sql, "--root", root, "--json").json == [{"more": 13}]


def test_every_host_a_source_asked_is_in_the_index_of_the_library(fonds: Fonds) -> None:
    found = fonds("index", "lookup", "domains", "www.gao.gov", "--json")
    assert found.json[0]["company_name"] == "U.S. Government Accountability Office"
    count = "SELECT count(*) > 5 AS many FROM domains"
    assert fonds("index", "query", "domains", count, "--json").json == [{"many": True}]
