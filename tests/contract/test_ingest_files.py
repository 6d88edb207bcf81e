"""Files on disk are loaded as fetched ones are, whatever they are packed in."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import func, select

from fonds.errors import UsageError
from fonds.library import Library, open_library
from fonds.runs import files
from fonds.runs.archives import DiskFile
from fonds.runs.files import FilesReport
from fonds.runs.state import RunStatus
from fonds.selftest.state import rows_of
from fonds.sources.registry import SourceRegistry
from fonds.stores.tables import documents, ingestion_logs

SOURCES = Path(__file__).parents[1] / "sources"
FEEDS = sorted(SourceRegistry().feeds())


def ingest(library: Library, source: str, *paths: Path) -> FilesReport:
    return asyncio.run(library.ingest_files(source, paths))


@pytest.fixture
def bills(tmp_path: Path) -> Path:
    """A folder as people have it: files of the source, one of another, one of the system."""
    folder = tmp_path / "given"
    shutil.copytree(SOURCES / "bills/files", folder / "119")
    shutil.copy(SOURCES / "gao/files/reports.xml", folder)
    (folder / ".DS_Store").write_bytes(b"\0")
    with zipfile.ZipFile(folder / "package.zip", "w") as packed:
        packed.write(folder / "119/BILLS-118hr77ih.xml", "BILLS-118hr77ih/xml/BILLS-118hr77ih.xml")
    (folder / "119/BILLS-118hr77ih.xml").unlink()
    (folder / "empty.xml").touch()
    return folder


def zipped(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "zip", folder))


def tarred(folder: Path) -> Path:
    return Path(shutil.make_archive(str(folder), "xztar", folder))


def test_files_of_a_folder_are_loaded_and_others_are_left_aside_with_a_reason(
    library: Library, bills: Path
) -> None:
    report = ingest(library, "bills", bills)
    assert report.run.status is RunStatus.SUCCESS
    assert report.files == 6
    assert {left.name for left in report.left_aside} == {"reports.xml", "empty.xml"}
    assert all(left.reason for left in report.left_aside)
    with library.database.read() as connection:
        logged = connection.scalars(
            select(ingestion_logs.c.message).where(ingestion_logs.c.level == "warn")
        ).all()
        loaded = connection.scalar(select(func.count()).select_from(documents))
    assert sum("left aside" in line for line in logged) == 2
    assert loaded


def test_loading_the_same_files_again_writes_nothing(library: Library, bills: Path) -> None:
    first = ingest(library, "bills", bills)
    before = rows_of(library)
    again = ingest(library, "bills", bills)
    assert again.run.counts.inserted == again.run.counts.updated == 0
    assert again.run.counts.skipped == first.run.counts.inserted
    assert {left.name for left in again.left_aside} == {left.name for left in first.left_aside}
    assert rows_of(library) == before


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_gives_the_same_library_as_its_folder(
    tmp_path: Path, bills: Path, pack: Callable[[Path], Path]
) -> None:
    with open_library(tmp_path / "a") as one, open_library(tmp_path / "b") as other:
        ingest(one, "bills", bills)
        ingest(other, "bills", pack(bills))
        assert rows_of(one) == rows_of(other)


@pytest.mark.parametrize("source", FEEDS)
def test_the_fixtures_of_every_feed_are_loaded_from_their_folder(
    tmp_path: Path, source: str
) -> None:
    with open_library(tmp_path) as library:
        report = ingest(library, source, SOURCES / source / "files")
        assert report.run.counts.inserted


def test_files_that_belong_together_are_parsed_together() -> None:
    names = [
        "a/1.json",
        "a/1.xml",
        "a/10.xml",
        "b/CHRG-1.htm",
        "b/CHRG-1.mods.xml",
        "pkg/mods.xml",
        "pkg/html/x.htm",
        "pkg/pdf/x.pdf",
    ]
    groups = files.grouped([DiskFile(name, io.BytesIO) for name in names])
    assert [[file.name for file in group] for group in groups] == [
        ["a/1.json", "a/1.xml"],
        ["a/10.xml"],
        ["b/CHRG-1.htm", "b/CHRG-1.mods.xml"],
        ["pkg/html/x.htm", "pkg/mods.xml", "pkg/pdf/x.pdf"],
    ]


def test_a_pdf_joins_the_statement_that_names_it_wherever_it_is(
    library: Library, tmp_path: Path
) -> None:
    copies = tmp_path / "copies/of/2026"
    copies.mkdir(parents=True)
    (copies / "2026-02-10_HR2101.pdf").write_bytes(b"%PDF-1.4 harbor")
    (copies / "2026-02-11_s1.pdf").write_bytes(b"%PDF-1.4 another")
    report = ingest(library, "sap", SOURCES / "sap/files/47-Trump.yaml", copies)
    (left,) = report.left_aside
    assert (left.name, "name that with it" in left.reason) == ("2026-02-11_s1.pdf", True)
    assert bodies(library) == {"Harbor Dredging Transparency Act": b"%PDF-1.4 harbor"}


def test_a_pdf_joins_the_product_that_a_feed_announces_wherever_it_is(
    library: Library, tmp_path: Path
) -> None:
    archive = tmp_path / "pdfs.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("assets/gao-26-107521.pdf", b"%PDF-1.4 dredging")
    feed = SOURCES / "gao/files/reports.xml"
    assert not ingest(library, "gao", archive, feed).left_aside
    assert bodies(library) == {"T&E Plans Need Clear Schedules": b"%PDF-1.4 dredging"}


GAO_PDF = b"""%PDF-1.4
<dc:creator><rdf:Seq><rdf:li>U.S. Government Accountability Office, http://www.gao.gov</rdf:li>
<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>GAO-26-107521, HARBORS: Silt &amp; Sand</rdf:li>
"""


def test_a_pdf_of_gao_says_itself_what_it_is(library: Library, tmp_path: Path) -> None:
    (tmp_path / "copy.pdf").write_bytes(GAO_PDF)
    (tmp_path / "other.pdf").write_bytes(GAO_PDF.replace(b"U.S. Gov", b"A Gov"))
    report = ingest(library, "gao", tmp_path / "copy.pdf", tmp_path / "other.pdf")
    assert [left.name for left in report.left_aside] == ["other.pdf"]
    document = library.document("GAO-26-107521")
    assert document["title"] == "HARBORS: Silt & Sand"
    assert document["source_url"] == "https://www.gao.gov/products/gao-26-107521"
    assert library.raw(document) == GAO_PDF


def test_a_pdf_alone_replaces_no_document_of_which_more_is_known(
    library: Library, tmp_path: Path
) -> None:
    ingest(library, "gao", SOURCES / "gao/files/reports.xml")
    before = library.document("GAO-26-107521")
    (tmp_path / "copy.pdf").write_bytes(GAO_PDF)
    report = ingest(library, "gao", tmp_path / "copy.pdf")
    assert "says more of it" in report.left_aside[0].reason
    assert library.document("GAO-26-107521") == before


def bodies(library: Library) -> dict[str, bytes]:
    """The raw texts of documents that have one, by the last part of their titles."""
    with library.database.read() as connection:
        rows = connection.execute(select(documents)).all()
    found = [row._asdict() for row in rows if row.body_raw_path]
    return {re.split(r" – |: ", row["title"])[-1]: library.raw(row) for row in found}


def test_of_one_list_in_two_formats_the_richer_one_is_loaded(
    library: Library, tmp_path: Path
) -> None:
    for name in ("legislators-current.csv", "legislators-current.yaml"):
        (tmp_path / name).write_bytes(
            next(SOURCES.glob(f"legislators/files/**/{name}")).read_bytes()
        )
    report = ingest(library, "legislators", tmp_path)
    assert report.run.status is RunStatus.SUCCESS
    with library.database.read() as connection:
        archived = set(connection.scalars(select(documents.c.raw_path)))
    assert archived
    assert all(".yaml" in path for path in archived)


def test_a_source_address_that_the_format_does_not_tell_is_marked_as_a_file(
    tmp_path: Path,
) -> None:
    with open_library(tmp_path) as library:
        ingest(library, "federal_register", SOURCES / "federal_register/files")
        with library.database.read() as connection:
            addresses = set(connection.scalars(select(documents.c.source_url)))
    assert addresses
    assert all(address.startswith(("https://", "file:/")) for address in addresses)


def _inner_zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("../outside_of_inner.xml", "<x/>")
        archive.writestr("innermost.zip", b"PK")
    return content.getvalue()


INNER = _inner_zip()


def hostile_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside.xml", "<x/>")
        archive.writestr("/absolute.xml", "<x/>")
        archive.writestr("inner.zip", INNER)
        archive.writestr("bomb.xml", b"\0" * (3 << 20))
    return path


def hostile_tar(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in ("../../outside.xml", "/absolute.xml"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        inner = tarfile.TarInfo("inner.zip")
        inner.size = len(INNER)
        archive.addfile(inner, io.BytesIO(INNER))
        link = tarfile.TarInfo("link.xml")
        link.type = tarfile.SYMTYPE
        archive.addfile(link)
        bomb = tarfile.TarInfo("bomb.xml")
        bomb.size = 3 << 20
        archive.addfile(bomb, io.BytesIO(b"\0" * bomb.size))
    return path


@pytest.mark.parametrize("make", [hostile_zip, hostile_tar])
def test_a_hostile_archive_leaves_its_place_nowhere_and_is_no_bomb(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    suffix = ".zip" if make is hostile_zip else ".tar.gz"
    archive = make(tmp_path / f"hostile{suffix}")
    with open_library(tmp_path / "home", max_file_mib=1) as library:
        report = ingest(library, "bills", archive)
    assert report.run.status is RunStatus.FAILED
    reasons = {left.name.rpartition("/")[2]: left.reason for left in report.left_aside}
    assert "leads out of the archive" in reasons["outside.xml"]
    assert "leads out of the archive" in reasons["absolute.xml"]
    assert "archive within an archive" in reasons["innermost.zip"]
    assert "leads out of the archive" in reasons["outside_of_inner.xml"]
    assert not list((tmp_path / "home/tmp").rglob("*"))
    assert "larger than 1 MiB" in reasons["bomb.xml"]
    assert not list(tmp_path.rglob("outside.xml"))


@pytest.mark.parametrize("cut", [0, 1, 100, -100])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_that_was_cut_is_left_aside_from_there(
    tmp_path: Path, bills: Path, pack: Callable[[Path], Path], cut: int
) -> None:
    whole = pack(bills)
    archive = tmp_path / f"cut{''.join(whole.suffixes)}"
    archive.write_bytes(whole.read_bytes()[: cut or None] if cut else b"")
    with open_library(tmp_path / "home") as library:
        report = ingest(library, "bills", archive)
    assert any("cannot be read further" in left.reason for left in report.left_aside)


def test_a_path_that_does_not_exist_is_an_error_of_use(tmp_path: Path) -> None:
    with open_library(tmp_path) as library, pytest.raises(UsageError, match="does not exist"):
        ingest(library, "bills", tmp_path / "nowhere")
