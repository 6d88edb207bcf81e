"""A damaged or malicious bundle is refused, and changes nothing in a library."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.damaged_bundles import FORGER, OpenBundle, first, forged
from tests.support.demo_bundles import (
    BILL,
    KEY,
    bundle_demo,
    bundled,
    counts,
    library_at,
    load,
    retitled,
)
from tests.support.libraries.demo import demo

from fonds import ids
from fonds.errors import FondsError
from fonds.exchange.bundle.contents import ALIASES, DESCRIPTOR, DOCUMENTS, ORIGINS, PASSAGES
from fonds.exchange.bundle.statement import STATEMENT
from fonds.library import open_library


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed bundle of the demo's library with the publishers' bytes; not to be changed."""
    return bundle_demo(tmp_path_factory.mktemp("made") / "bundle")


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy of that bundle."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def flip_table(folder: Path) -> None:
    flip(first(folder, "data/documents/*"))


def flip_container(folder: Path) -> None:
    flip(first(folder, "raw/*"))


def flip_descriptor(folder: Path) -> None:
    file = folder / DESCRIPTOR
    file.write_bytes(file.read_bytes().replace(b'"records": 1', b'"records": 2', 1))


def flip_statement(folder: Path) -> None:
    file = folder / STATEMENT
    file.write_bytes(file.read_bytes().replace(b'"made_at": "2', b'"made_at": "3'))


def truncate(folder: Path) -> None:
    file = first(folder, "raw/*")
    file.write_bytes(file.read_bytes()[:-100])


def miss_a_table(folder: Path) -> None:
    first(folder, "data/passages/*").unlink()


def miss_the_bytes(folder: Path) -> None:
    shutil.rmtree(folder / "raw")


def add_a_file(folder: Path) -> None:
    (folder / "data" / "documents" / "more.jsonl").write_text("{}\n")


def forge_a_text(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        row = bundle.document(BILL, DOCUMENTS)
        row["title"] = "A Title That Nobody Gave"

    forged(folder, change, key=KEY)


def forge_a_source(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        row = bundle.document(BILL, DOCUMENTS)
        row["source"] = "federal_register"

    forged(folder, change, key=KEY)


def forge_the_bytes(folder: Path) -> None:
    forged(folder, retitled, key=KEY)


def leave_the_archive(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        entry = next(each for each in bundle.inputs if each["task"].get("parts"))
        entry["task"]["parts"][0]["file"]["key"] = "corpus/bills/../../../escaped"

    forged(folder, change)


def repeat_a_row(folder: Path) -> None:
    forged(folder, lambda bundle: bundle.rows[ALIASES].append(bundle.rows[ALIASES][0]))


def explode(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        passage = bundle.document(BILL, PASSAGES)
        nested: dict[str, Any] = {}
        for _ in range(200_000 // 8):
            nested = {"a": nested}
        passage["locator"] = {}
        bundle.rows[PASSAGES] = [passage]

    forged(folder, change)
    file = first(folder, "data/passages/*")
    with file.open("r+b") as grown:
        grown.truncate(1 << 40)  # a terabyte that needs no space on the disk


def bring_an_upload(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        for resource in (DOCUMENTS, PASSAGES, ALIASES, ORIGINS):
            for row in bundle.rows[resource]:
                if row[resource.owner] == "cbo:61234":
                    row[resource.owner] = f"upload:{ids.document_uid('x')}"

    forged(folder, change)


def lie_about_a_unit(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        entry = next(each for each in bundle.inputs if each["kind"] == "unit")
        pack = entry["task"]["packs"][0]["sha256"]
        data = bundle.files[pack].replace(b"</section>", b" and more</section>", 1)
        bundle.replace_file(pack, data)

    forged(folder, change, key=KEY)


def claim_another_passage(folder: Path) -> None:
    def change(bundle: OpenBundle) -> None:
        passage = bundle.document(BILL, PASSAGES)
        passage["id"] = str(ids.document_uid("another"))

    forged(folder, change)


DAMAGES: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "flipped byte of a table": (flip_table, "hash"),
    "flipped byte of a publisher": (flip_container, "hash"),
    "changed data package": (flip_descriptor, "own hashes"),
    "changed statement": (flip_statement, "signature"),
    "truncated": (truncate, "bytes instead of"),
    "missing table": (miss_a_table, "is missing"),
    "missing bytes": (miss_the_bytes, "is missing"),
    "extra file": (add_a_file, "does not belong"),
    "forged text": (forge_a_text, "give another title"),
    "forged source": (forge_a_source, "refused"),
    "forged bytes": (forge_the_bytes, "give another"),
    "path with ..": (leave_the_archive, "not the name of a file in the archive"),
    "repeated row": (repeat_a_row, "does not come after"),
    "bomb": (explode, "bytes instead of"),
    "upload": (bring_an_upload, "upload"),
    "unit with other sections": (lie_about_a_unit, "refused|differs|pack"),
    "passage with the id of another": (claim_another_passage, "the id that follows"),
}


@pytest.fixture(scope="module")
def loaded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a part of the demo's documents, into which a bundle is merged."""
    home = tmp_path_factory.mktemp("loaded") / "library"
    folder = tmp_path_factory.mktemp("part") / "bundle"
    with open_library(demo().home) as library:
        bundled(library, folder, sources=["cbo"])
    with library_at(home) as library:
        load(library, folder)
    return home


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_or_malicious_bundle_is_refused_and_changes_nothing(
    damage: str, tmp_path: Path, bundle: Path, loaded_home: Path
) -> None:
    change, reason = DAMAGES[damage]
    change(bundle)
    with library_at(loaded_home) as library:
        before, blobs = counts(library), {info.key for info in library.blobs.list()}
        with pytest.raises(FondsError, match=reason):
            load(library, bundle)
        assert counts(library) == before
        assert {info.key for info in library.blobs.list()} == blobs
    assert not (tmp_path / "escaped").exists()


def test_wrong_key_is_refused(bundle: Path, loaded_home: Path) -> None:
    with library_at(loaded_home) as library:
        before = counts(library)
        with pytest.raises(FondsError, match="should be signed by"):
            load(library, bundle, key=FORGER.public)
        (bundle / STATEMENT).unlink()
        shutil.rmtree(bundle / "raw")
        with pytest.raises(FondsError, match="refused"):
            load(library, bundle, key=KEY.public)
        assert counts(library) == before


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("../escaped", tarfile.REGTYPE, "no bundle contains"),
        ("/tmp/escaped", tarfile.REGTYPE, "no bundle contains"),
        ("datapackage.json", tarfile.SYMTYPE, "not an ordinary file"),
        ("statement.json", tarfile.LNKTYPE, "not an ordinary file"),
        ("notes.txt", tarfile.REGTYPE, "no bundle contains"),
    ],
)
def test_hostile_tar_archive_is_refused(
    tmp_path: Path, loaded_home: Path, name: str, kind: bytes, reason: str
) -> None:
    with tarfile.open(tmp_path / "bundle.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname = kind, 0, "/etc/passwd"
        archive.addfile(member, io.BytesIO())
    with library_at(loaded_home) as library:
        before = counts(library)
        with pytest.raises(FondsError, match=reason):
            load(library, tmp_path / "bundle.tar")
        assert counts(library) == before
    assert not (tmp_path / "escaped").exists()
