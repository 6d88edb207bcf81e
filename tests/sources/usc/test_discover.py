"""Which titles there are, and which edition they are: from the publisher's pages, or from files."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest
from tests.sources.statutes import outline, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import NotFoundError, UsageError, WrongContentError
from fonds.model import Archived
from fonds.sources.jurisdiction import JurisdictionAdapter, Origin, TocNode
from fonds.sources.usc import source
from fonds.sources.usc.outline import read_head

FILES = Path(__file__).parent / "files"
PAST = "releasepoints/us/pl/116/344not283/usc-rp@116-344not283.htm"
NOW = datetime(2025, 8, 20, tzinfo=UTC)


@dataclass(frozen=True)
class ServedPage:
    """A page as an address serves it."""

    name: str
    data: bytes

    @property
    def archived(self) -> Archived:
        return Archived(url=self.name, key="", sha256="", size=len(self.data), retrieved_at=NOW)

    def read(self) -> bytes:
        return self.data

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.data)


@dataclass(frozen=True)
class Served:
    """An address with a few pages."""

    pages: Mapping[str, bytes]
    version: str = ""
    files: None = None

    async def read(self, page: str) -> ServedPage:
        if page not in self.pages:
            raise NotFoundError(page)
        return ServedPage(page, self.pages[page])


def served(version: str = "") -> Served:
    current = (FILES / "download.shtml").read_bytes()
    past = (FILES / "usc-rp.htm").read_bytes()
    return Served({"download.shtml": current, PAST: past}, version)


def roots(origin: Origin) -> list[TocNode]:
    async def collect() -> list[TocNode]:
        return [root async for root in source.discover_unit_roots(origin)]

    return asyncio.run(collect())


def newest(origin: Origin) -> str:
    return asyncio.run(source.newest_version(origin))


def local(path: Path) -> LocalOrigin:
    return LocalOrigin(path, base=source.info.base)


def test_it_is_an_adapter() -> None:
    assert isinstance(source, JurisdictionAdapter)
    assert source.info.base.endswith("/")


def test_the_publishers_page_lists_each_title_once_and_none_that_is_reserved() -> None:
    folder = "releasepoints/us/pl/119/36"
    assert [(root.number, root.label, root.pages) for root in roots(served("119-36"))] == [
        ("1", "Title 1", (f"{folder}/xml_usc01@119-36.zip!usc01.xml",)),
        ("5", "Title 5", (f"{folder}/xml_usc05@119-36.zip!usc05.xml",)),
        ("5a", "Title 5 Appendix", (f"{folder}/xml_usc05a@119-36.zip!*.xml",)),
        ("54", "Title 54", (f"{folder}/xml_usc54@119-36.zip!usc54.xml",)),
    ]
    assert newest(served()) == "119-36"


def test_a_release_point_of_the_past_has_a_page_of_its_own() -> None:
    folder = "releasepoints/us/pl/116/344not283"
    assert [root.pages for root in roots(served("116-344not283"))] == [
        (f"{folder}/xml_usc01@116-344not283.zip!usc01.xml",),
        (f"{folder}/xml_usc02@116-344not283.zip!usc02.xml",),
    ]


def test_an_edition_of_another_name_is_what_the_publisher_serves_now() -> None:
    assert roots(served("2025")) == roots(served("119-36"))


def test_a_release_point_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"pl/90/1/usc-rp@90-1\.htm"):
        roots(served("90-1"))


def test_a_page_without_links_is_refused() -> None:
    with pytest.raises(WrongContentError, match="links to no title"):
        newest(Served({"download.shtml": b"<html>Back soon</html>"}))


def test_a_folder_of_titles_is_known_by_its_bytes() -> None:
    found = unit_roots(source, FILES / "titles", "2024")
    assert [(root.number, root.label) for root in found] == [
        ("91", "Title 91"),
        ("92a", "Title 92 Appendix"),
        ("93a", "Title 93 Appendix"),
    ]
    assert newest(local(FILES / "titles")) == "119-36"


def test_an_archive_as_downloaded_is_a_title(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "xml_usc91@119-36.zip", "w") as archive:
        archive.write(FILES / "titles" / "usc91.xml", "usc91.xml")
    [root] = unit_roots(source, tmp_path, "2024")
    assert newest(local(tmp_path)) == "119-36"
    there = walk_unit(source, root, tmp_path, "2024")
    [plain] = unit_roots(source, FILES / "titles" / "usc91.xml", "2024")
    assert outline(there) == outline(walk_unit(source, plain, FILES / "titles", "2024"))
    (tmp_path / "usc91.xml").write_bytes((FILES / "titles" / "usc91.xml").read_bytes())
    assert [each.pages for each in unit_roots(source, tmp_path, "2024")] == [("usc91.xml",)]


def test_sections_of_a_folder_come_in_the_order_of_the_code() -> None:
    [root] = unit_roots(source, FILES / "sections", "2024")
    tree = walk_unit(source, root, FILES / "sections", "2024").tree
    leaves = [node for node in tree.in_reading_order() if tree.is_leaf(node)]
    assert [(tree.segment(node), tree.page(node)) for node in leaves] == [
        ("section-1", "94/1.xml"),
        ("section-1~2", "94/1_2.xml"),
        ("section-1a-1", "94/1a-1.xml"),
        ("section-1b", "94/1b.xml"),
        ("section-1aa", "94/1aa.xml"),
        ("section-2", "94/2.xml"),
        ("section-10", "94/10.xml"),
    ]


def test_only_the_first_of_a_folders_sections_is_read_by_the_walk() -> None:
    [root] = unit_roots(source, FILES / "sections", "2024")
    assert list(walk_unit(source, root, FILES / "sections", "2024").pages) == ["94/1.xml"]


def test_files_that_do_not_tell_their_edition_want_it_said() -> None:
    with pytest.raises(UsageError, match="do not tell; say --version"):
        newest(local(FILES / "sections"))


def test_files_of_two_editions_want_it_said(tmp_path: Path) -> None:
    title = (FILES / "titles" / "usc91.xml").read_bytes()
    (tmp_path / "usc91.xml").write_bytes(title)
    other = title.replace(b">91<", b">90<").replace(b"119-36", b"119-102not101")
    (tmp_path / "usc90.xml").write_bytes(other)
    with pytest.raises(UsageError, match=r"are of 119-102not101, 119-36; say --version"):
        newest(local(tmp_path))


def test_the_edition_may_be_in_the_name_of_the_file_only(tmp_path: Path) -> None:
    title = (FILES / "titles" / "usc91.xml").read_bytes()
    path = tmp_path / "xml_usc91@119-73not60.xml"
    path.write_bytes(title.replace(b"Online@119-36", b"Online"))
    assert newest(local(path)) == "119-73not60"


def test_a_title_that_is_there_twice_is_refused_by_both_names(tmp_path: Path) -> None:
    for folder in ("2023", "2024"):
        (tmp_path / folder).mkdir()
        title = (FILES / "titles" / "usc91.xml").read_bytes()
        (tmp_path / folder / "usc91.xml").write_bytes(title)
    with pytest.raises(UsageError, match=r"2023/usc91\.xml and again in 2024/usc91\.xml"):
        unit_roots(source, tmp_path, "2024")


def test_a_folder_with_nothing_of_the_code_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text("<rss/>")
    (tmp_path / "notes.txt").write_text("words")
    with pytest.raises(WrongContentError, match=r"expected titles .* \(usc42\.xml"):
        unit_roots(source, tmp_path, "2024")


class Counted(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        return piece


def test_of_a_long_title_only_the_beginning_is_read_to_know_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = (FILES / "titles" / "usc91.xml").read_bytes()
    data = data.replace(b"</main>", b"<note><p>x</p></note>" * 50_000 + b"</main>")
    stream = Counted(data)
    monkeypatch.setattr(ServedPage, "open", lambda _page: stream)
    assert read_head(ServedPage("usc91.xml", b"")).root == "uscDoc"
    assert stream.taken < len(data) / 4
