"""`fonds bundle`, `fonds export` and `fonds db copy` as somebody types them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Fonds

from fonds.exchange.snapshot import display_address


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exchanged")


def test_bundle_is_made_verified_and_compared(fonds: Fonds, folder: Path) -> None:
    place = str(folder / "bundle")
    made = fonds("bundle", "create", "--to", place)
    root = made.out.split()[0]
    assert len(root) == 64
    # In this library they were never looked for: what there is, is not all there will be.
    assert made.code == 3
    assert "documents are queued: run `fonds citations` first" in made.err
    again = fonds("bundle", "create", "--to", place, "--json").json
    assert (again["root"], again["written"], again["address"]) == (root, 0, place)
    assert fonds("bundle", "verify", place).out.split()[0] == root
    assert fonds("bundle", "verify", place, "--json").json["count"] == 0
    same = fonds("bundle", "diff", place)
    assert (same.code, same.out, same.err) == (0, "", "no differences\n")


def test_difference_is_told_and_ends_with_1(fonds: Fonds, folder: Path) -> None:
    places = [str(folder / name) for name in ("some", "more")]
    fonds("bundle", "create", "--to", places[0], "--source", "crs")
    fonds("bundle", "create", "--to", places[1], "--source", "crs", "--source", "sap")
    told = fonds("bundle", "diff", *places, "--limit", "2")
    assert told.code == 1
    assert [line[:6] for line in told.out.splitlines()[:2]] == ["+ sap:", "+ sap:"]
    assert "and 2 more; raise --limit to list more" in told.out
    assert "4 added, 0 removed, 0 changed" in told.err
    back = fonds("bundle", "diff", *reversed(places), "--json")
    assert (back.code, back.json["is_equal"]) == (1, False)
    assert back.json["counts"] == {"added": 0, "removed": 4, "changed": 0}
    # A library is compared as far as the bundle goes.
    assert fonds("bundle", "diff", places[0]).code == 0


def test_damage_is_told_and_ends_with_1(fonds: Fonds, folder: Path) -> None:
    place = folder / "damaged"
    fonds("bundle", "create", "--to", str(place), "--source", "crs")
    (file,) = (place / "data" / "origins").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    told = fonds("bundle", "verify", str(place))
    assert told.code == 1
    assert f"{file.name} has" in told.out
    assert "problems" in told.err


@pytest.mark.parametrize("command", ["verify", "diff"])
def test_no_bundle_is_not_made_into_one(fonds: Fonds, folder: Path, command: str) -> None:
    told = fonds("bundle", command, str(folder / "nowhere"))
    assert told.code == 2
    assert "no such folder" in told.err
    assert not (folder / "nowhere").exists()


def test_unknown_source_is_refused(fonds: Fonds, folder: Path) -> None:
    for command in (["bundle", "create"], ["export", "--format", "csv"]):
        told = fonds(*command, "--source", "nobody", "--to", str(folder / "none"))
        assert (told.code, "there is no source 'nobody'" in told.err) == (2, True)


def test_tables_are_exported(fonds: Fonds, folder: Path) -> None:
    place = str(folder / "tables")
    told = fonds("export", "--format", "parquet", "--source", "crs", "--to", place)
    assert told.code == 0, told.err
    assert "crs_reports" in told.out
    assert (folder / "tables" / "documents.parquet").exists()
    counted = fonds("export", "--format", "csv", "--source", "crs", "--to", place, "--json").json
    assert counted["rows"]["documents"] > 0
    assert counted["address"] == place


def test_unknown_format_and_unknown_user_are_refused(fonds: Fonds, folder: Path) -> None:
    place = str(folder / "none")
    assert fonds("export", "--format", "xlsx", "--to", place).code == 2
    told = fonds("export", "--format", "csv", "--to", place, "--as", "nobody")
    assert (told.code, "no such user" in told.err) == (2, True)


def test_database_is_copied(fonds: Fonds, folder: Path) -> None:
    source, target = str(folder / "one"), str(folder / "other")
    assert fonds("--home", source, "init").code == 0
    told = fonds("db", "copy", source, target)
    assert told.code == 0, told.err
    assert "equal in both" in told.out
    assert "raw files are not copied" in told.err
    again = fonds("db", "copy", source, target)
    assert (again.code, "already" in again.err) == (2, True)
    more = fonds("db", "copy", source, str(folder / "third.db"), "--json").json
    assert more["tables"]["documents"]["rows"] == 0
    assert more["to"].endswith("third.db")


SECRET = "hunter2"


def test_password_is_in_nothing_that_is_printed(fonds: Fonds, folder: Path) -> None:
    address = f"postgresql://me:{SECRET}@127.0.0.1:1/none?password={SECRET}"
    for ends in ([address, str(folder / "new.db")], [str(folder / "new.db"), address]):
        told = fonds("db", "copy", *ends)
        assert told.code in {1, 2}
        assert SECRET not in told.out + told.err
    bucket = f"s3://bucket/x?secret_access_key={SECRET}&endpoint=http://127.0.0.1:1"
    told = fonds("bundle", "verify", f"{bucket}&access_key_id=a&allow_http=true&max_retries=0")
    assert SECRET not in told.out + told.err


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("a folder/of mine", "a folder/of mine"),
        ("s3://bucket/prefix?key=x", "s3://bucket/prefix"),
        ("postgresql://me:pass@host:5432/fonds?password=x", "postgresql://host:5432/fonds"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
        ("postgresql://me:pass@[bad/fonds", "postgresql://…"),
        ("postgresql://me:pass@host:port/fonds", "postgresql://…"),
    ],
)
def test_address_is_shown_without_secrets(address: str, told: str) -> None:
    assert display_address(address) == told


def copied_with_a_row_less(home: Path, copy: Path) -> str:
    """The address of a copy of a library's database that lacks a document."""
    shutil.copytree(home, copy)
    with closing(sqlite3.connect(copy / "fonds.db")) as connection, connection:
        connection.execute("DELETE FROM documents WHERE id = (SELECT min(id) FROM documents)")
    return f"sqlite:///{copy / 'fonds.db'}"


def test_check_of_a_migration_fails_after_rows_were_deleted(
    fonds: Fonds, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/move-to-postgresql.md").read_text("utf-8")
    (check,) = re.findall(r"^fonds (bundle diff library/\S+)", page, re.MULTILINE)
    monkeypatch.setenv("FONDS_HOME", str(home))
    monkeypatch.setenv("FONDS_DATABASE", copied_with_a_row_less(home, tmp_path / "copy"))
    monkeypatch.chdir(home.parent)
    outcome = fonds(*check.split())
    assert (outcome.code, outcome.err) == (1, "0 added, 1 removed, 0 changed\n")


def test_home_that_is_compared_is_read_by_its_own_settings_alone(
    fonds: Fonds, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_with_a_row_less(home, tmp_path / "copy")
    monkeypatch.setenv("FONDS_DATABASE", f"sqlite:///{home / 'fonds.db'}")
    outcome = fonds("bundle", "diff", str(home), str(tmp_path / "copy"))
    assert (outcome.code, outcome.err) == (1, "0 added, 1 removed, 0 changed\n")


def test_database_is_not_compared_with_itself(
    fonds: Fonds, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FONDS_DATABASE", f"sqlite:///{home}/../{home.name}/fonds.db")
    outcome = fonds("bundle", "diff", str(home))
    assert outcome.code == 2
    assert "both sides are the database" in outcome.err


def test_variable_that_wins_over_the_database_of_a_home_is_reported_in_one_line(
    fonds: Fonds, filled: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"FONDS_DATABASE is set, and wins over the database of {home}"
    assert said not in fonds("status", "--home", str(home)).err
    monkeypatch.setenv("FONDS_DATABASE", f"sqlite:///{filled / 'fonds.db'}")
    assert fonds("status", "--home", str(home)).err.count(said) == 1
    assert fonds("status").err == ""
