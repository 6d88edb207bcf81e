"""Files on disk are loaded as fetched ones are, whatever they are packed in."""

from __future__ import annotations

import asyncio
import io
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
    groups = files.grouped([files.DiskFile(name, io.BytesIO) for name in names])
    assert [[file.name for file in group] for group in groups] == [
        ["a/1.json", "a/1.xml"],
        ["a/10.xml"],
        ["b/CHRG-1.htm", "b/CHRG-1.mods.xml"],
        ["pkg/html/x.htm", "pkg/mods.xml", "pkg/pdf/x.pdf"],
    ]


def test_a_source_address_that_the_format_does_not_tell_is_marked_as_a_file(
    tmp_path: Path,
) -> None:
    with open_library(tmp_path) as library:
        ingest(library, "federal_register", SOURCES / "federal_register/files")
        with library.database.read() as connection:
            addresses = set(connection.scalars(select(documents.c.source_url)))
    assert addresses
    assert all(address.startswith(("https://", "file:/")) for address in addresses)


def hostile_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside.xml", "<x/>")
        archive.writestr("/absolute.xml", "<x/>")
        archive.writestr("inner.zip", b"PK")
        archive.writestr("bomb.xml", b"\0" * (3 << 20))
    return path


def hostile_tar(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in ("../../outside.xml", "/absolute.xml", "inner.zip"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
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
    assert "archive within an archive" in reasons["inner.zip"]
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
