"""Which files make up an edition, and what eCFR's own list of titles says."""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest
from tests.sources.statutes import unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import MalformedError, NotFoundError, UsageError, WrongContentError
from fonds.model import Archived
from fonds.sources.cfr import source
from fonds.sources.jurisdiction import TocNode

FILES = Path(__file__).parent / "files"
INDEX = "api/versioner/v1/titles.json"


@dataclass(frozen=True)
class Served:
    """A page at an address."""

    name: str
    data: bytes

    @property
    def archived(self) -> Archived:
        now = datetime(2025, 2, 1, tzinfo=UTC)
        return Archived(url=self.name, key="", sha256="", size=len(self.data), retrieved_at=now)

    def read(self) -> bytes:
        return self.data

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.data)


@dataclass(frozen=True)
class Site:
    """An address that serves some pages."""

    pages: Mapping[str, bytes]
    version: str = ""
    files: None = None

    async def read(self, page: str) -> Served:
        if page not in self.pages:
            raise NotFoundError(page)
        return Served(page, self.pages[page])


def at_address(index: bytes, version: str) -> list[TocNode]:
    async def collect() -> list[TocNode]:
        site = Site({INDEX: index}, version)
        return [root async for root in source.discover_unit_roots(site)]

    return asyncio.run(collect())


def newest(path: Path) -> str:
    origin = LocalOrigin(path, base=source.info.base)
    return asyncio.run(source.newest_version(origin))


def pages(path: Path, version: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(root.number, root.pages) for root in unit_roots(source, path, version)]


@pytest.fixture
def index() -> bytes:
    return (FILES / "api" / INDEX).read_bytes()


def test_the_newest_version_is_the_latest_day_of_any_title(index: bytes) -> None:
    assert asyncio.run(source.newest_version(Site({INDEX: index}))) == "2025-01-31"


def test_titles_are_asked_for_as_of_a_day_that_ecfr_has(index: bytes) -> None:
    base = "api/versioner/v1/full"
    found = at_address(index, "2025-01-31")
    assert [root.label for root in found] == ["Title 51—Lighthouses", "Title 52—Harbors"]
    assert [root.pages for root in found] == [
        (f"{base}/2025-01-31/title-51.xml",),
        (f"{base}/2025-01-29/title-52.xml",),
    ]
    assert [root.pages for root in at_address(index, "2020-05-04")] == [
        (f"{base}/2020-05-04/title-51.xml",),
        (f"{base}/2020-05-04/title-52.xml",),
    ]


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"<html></html>", WrongContentError, "HTML"),
        (b"{", MalformedError, "not JSON"),
        (b"{}", WrongContentError, "no list of titles"),
        (b'{"titles": [{"number": 1, "reserved": true}]}', WrongContentError, "not reserved"),
        (b'{"titles": [{"number": 1, "name": "A"}]}', UsageError, "title 1"),
    ],
)
def test_a_list_of_titles_that_is_none_says_why(
    data: bytes, error: type[Exception], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        at_address(data, "2025-01-31")


def test_the_version_of_files_is_their_day_or_the_year_of_the_edition() -> None:
    assert newest(FILES / "api") == "2025-01-31"
    assert newest(FILES / "granules") == "2025"
    assert newest(FILES / "volumes") == "2025"
    assert newest(FILES / "bulk" / "ECFR-title51.xml") == "2022-12-29"


def test_files_that_tell_no_day_ask_for_one() -> None:
    with pytest.raises(UsageError, match="--version"):
        newest(FILES / "pieces")


def test_the_edition_asked_for_is_picked_among_several(tmp_path: Path) -> None:
    assert pages(FILES / "granules", "2019") == [("51", ("CFR-2019-title51-vol1-part10.xml",))]
    with pytest.raises(UsageError, match=r"2019, 2025; say one.*--version 2025"):
        pages(FILES / "granules", "2020")
    shutil.copy(FILES / "granules" / "CFR-2019-title51-vol1-part10.xml", tmp_path)
    assert len(pages(tmp_path, "my own name for it")) == 1


def test_an_edition_is_told_by_the_bytes_where_the_name_does_not(tmp_path: Path) -> None:
    shutil.copy(FILES / "granules" / "CFR-2019-title51-vol1-part10.xml", tmp_path / "part.xml")
    assert newest(tmp_path) == "2019"
    shutil.copy(FILES / "volumes" / "CFR-2025-title51-vol1.xml", tmp_path / "part.xml")
    assert newest(tmp_path) == "2023"


def test_parts_stand_in_the_order_of_their_numbers() -> None:
    [(_, found)] = pages(FILES / "granules", "2025")
    assert [name.rpartition("part")[2] for name in found] == ["2.xml", "10.xml"]


def test_parts_are_left_out_where_their_volumes_are_there(tmp_path: Path) -> None:
    for folder in ("granules", "volumes"):
        shutil.copytree(FILES / folder, tmp_path, dirs_exist_ok=True)
    [(_, found)] = pages(tmp_path, "2025")
    assert found == ("CFR-2025-title51-vol1.xml", "CFR-2025-title51-vol2.xml")


def test_volumes_without_a_number_stand_in_the_order_of_their_parts(tmp_path: Path) -> None:
    for name, parts in (("a.xml", "Parts 10 to End"), ("b.xml", "Parts 1 to 9")):
        (tmp_path / name).write_text(
            "<CFRDOC><FMTR><TITLEPG><TITLENUM>Title 51</TITLENUM>"
            f"<PARTS>{parts}</PARTS></TITLEPG></FMTR><TITLE/></CFRDOC>",
            encoding="utf-8",
        )
    assert pages(tmp_path, "2025") == [("51", ("b.xml", "a.xml"))]


def test_two_files_of_the_same_title_are_one_too_many(tmp_path: Path) -> None:
    for name in ("one.xml", "two.xml"):
        shutil.copy(FILES / "bulk" / "ECFR-title51.xml", tmp_path / name)
    with pytest.raises(UsageError, match=r"one\.xml and two\.xml contain the same"):
        pages(tmp_path, "2025-01-31")


def test_titles_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = (FILES / "bulk" / "ECFR-title51.xml").read_text(encoding="utf-8")
    for title in (10, 9):
        text = data.replace("\n51</IDNO>", f"\n{title}</IDNO>")
        (tmp_path / f"a{title}.xml").write_text(text, encoding="utf-8")
    assert [title for title, _ in pages(tmp_path, "2025-01-31")] == ["9", "10"]


def test_a_broken_file_fails_the_title_that_its_name_tells_and_no_other(tmp_path: Path) -> None:
    shutil.copy(FILES / "bulk" / "ECFR-title51.xml", tmp_path)
    (tmp_path / "ECFR-title7.xml").write_bytes(b"<html>Moved</html>")
    (tmp_path / "notes.xml").write_bytes(b"<notes/>")
    (tmp_path / "README").write_bytes(b"")
    broken, sound = unit_roots(source, tmp_path, "2025-01-31")
    assert (broken.number, sound.number) == ("7", "51")
    with pytest.raises(WrongContentError, match="HTML"):
        walk_unit(source, broken, tmp_path, "2025-01-31")


def test_a_folder_without_the_cfr_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.xml").write_bytes(b"<notes/>")
    (tmp_path / "other.txt").write_bytes(b"")
    for ask in (lambda: pages(tmp_path, "2025"), lambda: newest(tmp_path)):
        with pytest.raises(WrongContentError, match=r"title-40\.xml"):
            ask()
