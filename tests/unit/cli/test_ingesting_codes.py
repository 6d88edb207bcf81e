"""`fonds ingest` of codes: folders, several files, zip and tar archives give the same library."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.unit.cli.conftest import Fonds

from fonds.codes import edition_files
from fonds.library import open_library
from fonds.selftest.state import rows_of

SOURCES: Final = Path(__file__).parents[2] / "sources"
FOLDERS: Final = {
    "usc": "usc/files/titles",
    "cfr": "cfr/files/volumes",
    "cgs": "cgs/files/mirror",
    "dc": "dc/files",
    "de": "de/files",
    "jp": "jp/files/bulk",
}
VERSIONS: Final = {"cgs": ["--version", "2025"], "dc": ["--version", "2016"]}


def zipped(folder: Path, target: Path) -> list[Path]:
    return [Path(shutil.make_archive(str(target / "edition"), "zip", folder))]


def tarred_in_a_folder(folder: Path, target: Path) -> list[Path]:
    """As repositories are packed: with one folder around all."""
    inner = shutil.copytree(folder, target / "copy" / "code-main")
    return [Path(shutil.make_archive(str(target / "edition"), "xztar", inner.parent))]


def one_by_one(folder: Path, _target: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("code", "pack"),
    [
        pytest.param("usc", zipped),
        *(
            pytest.param(code, pack, marks=pytest.mark.long)
            for code in FOLDERS
            for pack in (zipped, tarred_in_a_folder, one_by_one)
            if (code, pack) != ("usc", zipped) and (pack is not one_by_one or code == "usc")
        ),
    ],
)
def test_a_code_gives_the_same_library_however_it_is_packed(
    fonds: Fonds,
    tmp_path: Path,
    code: str,
    pack: Callable[[Path, Path], list[Path]],
) -> None:
    folder = SOURCES / FOLDERS[code]
    states = []
    packed = pack(folder, tmp_path)
    for number, paths in enumerate(([folder], packed, packed)):
        home = tmp_path / f"library-{min(number, 1)}"
        more = [*VERSIONS.get(code, []), "--home", str(home), "--json"]
        outcome = fonds("ingest", code, "--from", *map(str, paths), *more)
        assert outcome.code == 0, outcome.err
        counts = outcome.json["run"]["counts"]
        assert bool(counts["inserted"]) == (number < 2)
        assert not list((home / "tmp").rglob("*"))
        with open_library(home) as library:
            states.append(rows_of(library))
    assert states[0]["documents"]
    assert states[0] == states[1] == states[2]


def hostile(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in ("../../outside.xml", "/absolute.xml"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("link.xml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def test_a_hostile_archive_of_a_code_leaves_its_place_nowhere(fonds: Fonds, tmp_path: Path) -> None:
    home = tmp_path / "a/b/home"
    archive = hostile(tmp_path / "hostile.tar.gz")
    outcome = fonds("ingest", "usc", "--from", str(archive), "--home", str(home))
    assert outcome.code == 1
    assert "left aside: ../../outside.xml: its name leads out of the archive" in outcome.err
    assert "left aside: link.xml: it is a link or a device" in outcome.err
    assert not list(tmp_path.rglob("outside.xml"))


def test_a_bomb_and_a_damaged_archive_of_a_code_are_refused(
    fonds: Fonds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edition_files, "MIN_UNPACKED_BYTES", 1000)
    monkeypatch.setattr(edition_files, "MAX_RATIO", 1)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(2):
            archive.writestr(f"usc{number}.xml", b" " * 10_000)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bomb.read_bytes()[:100])
    reasons = {bomb: "has more than", cut: "cannot be read further"}
    for path, reason in reasons.items():
        outcome = fonds("ingest", "usc", "--from", str(path), "--home", str(tmp_path / "home"))
        assert (outcome.code, reason in outcome.err) == (1, True)
    assert not list((tmp_path / "home/tmp").rglob("*"))
