"""What is exported is what is held, with its types, in every format."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest
from sqlalchemy import insert, select
from tests.support.libraries.demo import demo
from tests.support.libraries.documents import hold
from tests.support.libraries.uploads import make_user

from fonds.errors import StoreError, UsageError
from fonds.exchange.export import DESCRIPTOR, ExportResult, Format, export
from fonds.library import Library, open_library
from fonds.seams import Seams
from fonds.sources.lda_filings.tables import lda_filings
from fonds.stores.blobs import Blobs, open_blobs
from fonds.stores.tables import documents
from fonds.testing import Saboteur

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it brings along
    import frictionless

FORMATS: tuple[Format, ...] = ("csv", "parquet", "jsonl")
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "＝1", "＠x"]
HARMLESS = ["a=1", " =1", "1", "", 'words, "quoted"\nand\r\nbroken ünïcode 🦊 \u2028', "\\N"]


def at(folder: Path) -> Blobs:
    return open_blobs(str(folder), seams=Seams())


def exported(library: Library, folder: Path, kind: Format, **given: Any) -> ExportResult:
    return export(library.database, at(folder), kind, where="here", **given)


def read(folder: Path, table: str, kind: Format) -> list[dict[str, Any]]:
    """The rows of a file, as a program that knows nothing of us reads them."""
    path = folder / f"{table}.{kind}"
    if kind == "csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if kind == "jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        told = connection.execute("DESCRIBE FROM read_parquet(?)", [str(path)]).fetchall()
        columns = ", ".join(
            f'"{name}"::VARCHAR' if "TIME" in kind else f'"{name}"' for name, kind, *_ in told
        )
        rows = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [str(path)]).fetchall()
        return [dict(zip([name for name, *_ in told], row, strict=True)) for row in rows]


def types(folder: Path, table: str) -> dict[str, str]:
    with duckdb.connect() as connection:
        file = str(folder / f"{table}.parquet")
        return {
            name: kind
            for name, kind, *_ in connection.execute(
                "DESCRIBE FROM read_parquet(?)", [file]
            ).fetchall()
        }


@pytest.fixture(scope="module")
def of_demo(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Format, Path]:
    """The demo's library in every format."""
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in FORMATS}
    with open_library(demo().home) as library:
        for kind, folder in folders.items():
            exported(library, folder, kind)
    return folders


@pytest.mark.parametrize("kind", FORMATS)
def test_every_row_of_every_table_is_there(of_demo: Mapping[Format, Path], kind: Format) -> None:
    package = json.loads((of_demo[kind] / DESCRIPTOR).read_text())
    tables = {each["name"]: each for each in package["resources"]}
    assert {"documents", "passages", "citations", "nodes", "bills", "fr_documents"} <= set(tables)
    with open_library(demo().home) as library, library.database.read() as connection:
        for name in ("documents", "bills", "bill_actions", "nodes"):
            (count,) = connection.exec_driver_sql(f"SELECT count(*) FROM {name}").one()
            assert len(read(of_demo[kind], name, kind)) == tables[name]["rows"] == count
    held = {path.name for path in of_demo[kind].glob(f"*.{kind}")}
    assert held == {each["path"] for each in package["resources"]}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_other_tools_find_the_data_package_valid(
    of_demo: Mapping[Format, Path], kind: Format
) -> None:
    report: Any = frictionless.validate(str(of_demo[kind] / DESCRIPTOR))
    assert report.flatten(["type", "message"]) == []
    assert sum(task.stats["rows"] for task in report.tasks) > 1000


def test_other_tools_find_the_data_package_of_parquet_files_valid(
    of_demo: Mapping[Format, Path],
) -> None:
    told = json.loads((of_demo["parquet"] / DESCRIPTOR).read_text())
    assert list(frictionless.Package.metadata_validate(told)) == []


def test_the_tool_finds_a_file_that_was_changed(of_demo: Mapping[Format, Path]) -> None:
    path = of_demo["csv"] / "bills.csv"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"bill:119", b"bill:118", 1))
    try:
        report: Any = frictionless.validate(str(of_demo["csv"] / DESCRIPTOR))
        assert "hash-count" in {kind for (kind,) in report.flatten(["type"])}
    finally:
        path.write_bytes(before)


def test_types_are_kept_in_parquet(of_demo: Mapping[Format, Path]) -> None:
    found = types(of_demo["parquet"], "documents")
    assert found["retrieved_at"] == "TIMESTAMP WITH TIME ZONE"
    assert found["uid"] == "UUID"
    assert found["body_map"] == "JSON"
    assert found["citation_string"] == "VARCHAR"
    assert types(of_demo["parquet"], "passages")["chunk_ord"] == "BIGINT"
    assert types(of_demo["parquet"], "lda_filings")["income"] == "DECIMAL(16,2)"
    assert types(of_demo["parquet"], "legislator_offices")["latitude"] == "DOUBLE"
    assert types(of_demo["parquet"], "fr_documents")["significant"] == "BOOLEAN"


def test_json_is_a_tree_in_lines_and_has_the_type_of_all_its_values(
    of_demo: Mapping[Format, Path],
) -> None:
    (first, *_) = read(of_demo["jsonl"], "passages", "jsonl")
    assert isinstance(first["meta"]["locator"]["heading_path"], list)
    package = json.loads((of_demo["jsonl"] / DESCRIPTOR).read_text())
    tables = {each["name"]: each["schema"]["fields"] for each in package["resources"]}
    kinds = {
        (name, field["name"]): field["type"] for name, some in tables.items() for field in some
    }
    assert kinds["passages", "meta"] == "object"
    assert kinds["bill_text_versions", "formats"] in {"array", "object"}
    assert kinds["documents", "retrieved_at"] == "datetime"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one, beside the library."""
    return tmp_path / "export"


@pytest.fixture
def held(library: Library) -> Library:
    for number, text in enumerate([*FORMULAS, *HARMLESS]):
        hold(library, f"held:{number:02}", "Some words.", title=text)
    return library


@pytest.mark.parametrize("kind", FORMATS)
def test_values_come_back_as_they_were(held: Library, folder: Path, kind: Format) -> None:
    with held.database.write() as connection:
        row = {"id": "held:00", "income": 1234567.89, "filing_year": 2026}
        values = {column.name: row.get(column.name) for column in lda_filings.c}
        needed = {c.name: "x" for c in lda_filings.c if not c.nullable and c.name not in row}
        connection.execute(insert(lda_filings).values({**values, **needed}))
    exported(held, folder, kind)
    (filing,) = read(folder, "lda_filings", kind)
    assert Decimal(str(filing["income"])) == Decimal("1234567.89")
    assert int(filing["filing_year"]) == 2026
    assert not filing["expenses"]
    found = {row["id"]: row for row in read(folder, "documents", kind)}
    with held.database.read() as connection:
        for one in connection.execute(select(documents)):
            told = found[one.id]
            assert UUID(str(told["uid"])) == one.uid
            assert moment(told["retrieved_at"]) == one.retrieved_at
            if kind != "csv":
                assert told["title"] == one.title


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("+00", "+00:00")).astimezone(UTC)


def test_no_cell_of_a_sheet_is_a_formula_and_none_is_lost(held: Library, folder: Path) -> None:
    exported(held, folder, "csv")
    titles = [row["title"] for row in read(folder, "documents", "csv")]
    dangerous = tuple("=+-@\t\r\n＝＋－＠")
    assert not any(title.startswith(dangerous) for title in titles)
    unmarked = [title.removeprefix("'") for title in titles]
    assert sorted(unmarked) == sorted([*FORMULAS, *HARMLESS])


def test_a_negative_number_stays_a_number(held: Library, folder: Path) -> None:
    with held.database.write() as connection:
        needed = {c.name: "x" for c in lda_filings.c if not c.nullable}
        row = {**needed, "id": "held:00", "income": -5.5, "filing_year": -1}
        connection.execute(insert(lda_filings).values(row))
    exported(held, folder, "csv")
    (filing,) = read(folder, "lda_filings", "csv")
    assert (float(filing["income"]), filing["filing_year"]) == (-5.5, "-1")


# Who sees what ----------------------------------------------------------------------------


@pytest.fixture
def shared(library: Library) -> tuple[Library, UUID]:
    anna = make_user(library, "anna")
    hold(library, "held:1", "See 90 FR 55.")
    hold(
        library,
        f"upload:{UUID(int=7)}",
        "A secret of Anna's.",
        owner=anna,
        source="uploads",
        aliases=("90 FR 55",),
    )
    library.extract_citations()
    return library, anna


@pytest.mark.parametrize("kind", FORMATS)
def test_nobody_sees_what_somebody_uploaded_but_they_themselves(
    shared: tuple[Library, UUID], folder: Path, kind: Format
) -> None:
    library, anna = shared
    marks = {"upload:", str(UUID(int=7)), "secret"}
    for owner, sees in ((None, False), (make_user(library, "bert"), False), (anna, True)):
        exported(library, folder, kind, owner=owner)
        package = json.loads((folder / DESCRIPTOR).read_text())
        names = [each["name"] for each in package["resources"]]
        told = repr([read(folder, name, kind) for name in names])
        assert {mark in told for mark in marks} == {sees}


def test_a_source_alone_has_its_own_tables(folder: Path) -> None:
    with open_library(demo().home) as library:
        done = exported(library, folder, "jsonl", sources=["crs"])
    assert set(done.rows) == {
        "documents",
        "passages",
        "document_aliases",
        "document_versions",
        "citations",
        "crs_reports",
        "crs_versions",
        "crs_topics",
    }
    assert {row["source"] for row in read(folder, "documents", "jsonl")} == {"crs"}


# Writing it -------------------------------------------------------------------------------


def test_an_export_replaces_an_earlier_one_and_nothing_else(held: Library, folder: Path) -> None:
    blobs = at(folder)
    blobs.put("notes.txt", b"mine")
    exported(held, folder, "csv")
    exported(held, folder, "parquet")
    names = {info.key.rpartition(".")[2] for info in blobs.list()}
    assert names == {"parquet", "json", "txt"}


@pytest.mark.parametrize("data", [b"{}", b"[", b"5", b'{"name": "fonds-bundle"}'])
def test_what_is_no_export_is_not_overwritten(held: Library, folder: Path, data: bytes) -> None:
    blobs = at(folder)
    blobs.put(DESCRIPTOR, data)
    with pytest.raises(UsageError, match="not one of an export"):
        exported(held, folder, "csv")
    assert [info.key for info in blobs.list()] == [DESCRIPTOR]


def test_an_empty_library_is_not_exported(library: Library, folder: Path) -> None:
    with pytest.raises(UsageError, match="no document"):
        exported(library, folder, "csv")


def test_a_data_package_is_there_only_while_it_is_true(held: Library, folder: Path) -> None:
    exported(held, folder, "csv")
    for place in range(1, 40):
        blobs = open_blobs(str(folder), seams=Seams(durable=Saboteur(fail_at=place)))
        try:
            export(held.database, blobs, "jsonl", where="here")
            break
        except StoreError:
            pass
        if (folder / DESCRIPTOR).exists():
            report: Any = frictionless.validate(str(folder / DESCRIPTOR))
            assert report.valid
    assert place > 5
    report = frictionless.validate(str(folder / DESCRIPTOR))
    assert report.valid


def test_an_export_to_an_object_store_is_the_one_in_a_folder(
    held: Library, folder: Path, s3_address: str
) -> None:
    exported(held, folder, "jsonl")
    remote = open_blobs(s3_address, seams=Seams())
    export(held.database, remote, "jsonl", where="here")
    for name in ("documents.jsonl", "passages.jsonl"):
        here = sorted((folder / name).read_bytes().splitlines())
        assert sorted(remote.get(name).splitlines()) == here
    assert json.loads(remote.get(DESCRIPTOR))["name"] == "fonds-export"


def test_a_folder_whose_name_is_a_pattern_is_written_to(held: Library, folder: Path) -> None:
    odd = folder / "it's [mine]*"
    done = exported(held, odd, "csv", scratch=odd / "tmp")
    assert done.rows["documents"] == len(read(odd, "documents", "csv"))
