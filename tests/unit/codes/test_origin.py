"""Files of an edition in a folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from fonds.codes.origin import EditionFolder
from fonds.errors import NotFoundError


@pytest.fixture
def edition(tmp_path: Path) -> EditionFolder:
    folder = tmp_path / "edition"
    (folder / "title-1" / "chapter-2").mkdir(parents=True)
    for name in ("readme.txt", "title-1/b.xml", "title-1/a.xml", "title-1/chapter-2/1.xml"):
        (folder / name).write_text(name)
    (folder / "gone.xml").symlink_to(folder / "nothing")
    os.mkfifo(folder / "pipe.xml")
    (tmp_path / "outside.xml").write_text("outside")
    return EditionFolder(folder, base="https://code.example/")


def _read(edition: EditionFolder, path: str) -> str:
    download, _ = asyncio.run(edition.download(path))
    return download.file.read_text()


def test_all_files_below_a_folder_are_listed_in_order(edition: EditionFolder) -> None:
    names = ["readme.txt", "title-1/a.xml", "title-1/b.xml", "title-1/chapter-2/1.xml"]
    assert edition.files == names
    assert [_read(edition, name) for name in names] == names


@pytest.mark.parametrize(
    "path",
    [
        "missing.xml",
        "../outside.xml",
        "title-1/../../outside.xml",
        "title-1/../readme.txt",
        "/etc/hostname",
        "./readme.txt",
        "title-1//a.xml",
        "title-1",
        "gone.xml",
        "pipe.xml",
        "",
        "a\0b",
        "a" * 5000,
    ],
)
def test_names_that_are_not_listed_are_not_read(edition: EditionFolder, path: str) -> None:
    with pytest.raises(NotFoundError):
        _read(edition, path)


def test_one_file_has_its_own_name_only(tmp_path: Path) -> None:
    file = tmp_path / "usc09.xml"
    file.write_text("nine")
    edition = EditionFolder(file, base="https://code.example/")
    assert edition.files == ["usc09.xml"]
    assert _read(edition, "usc09.xml") == "nine"
    with pytest.raises(NotFoundError):
        _read(edition, "../usc09.xml")
