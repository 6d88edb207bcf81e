from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest
from tests.sources.statutes import sections, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import FondsError, MalformedError, SuspiciousYieldError, WrongContentError
from fonds.sources.cgs import source
from fonds.sources.cgs.chapter import read_chapter
from fonds.sources.cgs.index import read_title, read_titles
from fonds.sources.jurisdiction import Page, TocNode

STATUTES: Final = Path(__file__).parent / "files" / "mirror" / "current" / "pub"
CHAPTER: Final = (STATUTES / "chap_044.htm").read_bytes()
APOLOGY: Final = b"<!DOCTYPE html><html><body><h1>Page not found</h1></body></html>"


def page_of(path: Path) -> Page:
    return asyncio.run(LocalOrigin(path.parent, base="", version="2025").read(path.name))


def walked(folder: Path) -> None:
    for root in unit_roots(source, folder, "2025"):
        unit = walk_unit(source, root, folder, "2025")
        assert list(sections(source, unit, folder, "2025"))


@pytest.mark.parametrize("data", [b"", APOLOGY, b"%PDF-1.7", b"<?xml version='1.0'?><a/>"])
def test_a_file_called_a_chapter_that_is_none_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "chap_044.htm").write_bytes(data)
    with pytest.raises(WrongContentError, match=r"chap_044\.htm holds no chapter"):
        walked(tmp_path)


def test_a_folder_without_pages_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(WrongContentError, match=r"such as chap_229\.htm"):
        walked(tmp_path)


def test_a_page_cut_anywhere_is_an_error_and_never_half_a_chapter(tmp_path: Path) -> None:
    page = tmp_path / "chap_044.htm"
    for length in range(0, CHAPTER.index(b"</body>"), 211):
        page.write_bytes(CHAPTER[:length])
        with pytest.raises(FondsError):
            walked(tmp_path)


def test_a_section_that_is_listed_but_missing_is_named() -> None:
    data = CHAPTER.replace(b'<span class="catchln" id="sec_3-2">', b"<span>")
    with pytest.raises(SuspiciousYieldError, match="1 only listed: sec_3-2"):
        read_chapter("chap_044.htm", data)


def test_a_section_that_is_not_listed_is_named() -> None:
    data = CHAPTER.replace(b'<a href="#sec_3-2">', b"<a>")
    with pytest.raises(SuspiciousYieldError, match="1 not listed: sec_3-2"):
        read_chapter("chap_044.htm", data)


def test_a_section_without_a_number_is_named() -> None:
    data = CHAPTER.replace(b'id="sec_3-2">Sec. 3-2.', b'id="x">Whatever.')
    with pytest.raises(MalformedError, match=r"'Whatever.* has no section number"):
        read_chapter("chap_044.htm", data)


def test_a_section_without_an_id_is_known_by_its_printed_number() -> None:
    data = CHAPTER.replace(b'"sec_3-2"', b'"keepers"').replace(b'"#sec_3-2"', b'"#keepers"')
    assert "3-2" in [item.number for item in read_chapter("x.htm", data).items]


def test_two_chapters_on_one_page_are_an_error() -> None:
    second = b'<h2 class="chap-no">CHAPTER 46</h2><p><span class="catchln" id="sec_3-14">'
    data = CHAPTER.replace(b'<p><span class="catchln" id="sec_3-14">', second)
    with pytest.raises(MalformedError, match="two chapters: 'CHAPTER 46'"):
        read_chapter("chap_044.htm", data)


def test_two_pages_of_one_chapter_that_differ_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.htm").write_bytes(CHAPTER)
    (tmp_path / "b.htm").write_bytes(CHAPTER.replace(b"at dusk", b"at noon"))
    with pytest.raises(MalformedError, match=r"b\.htm differs from another page of Chapter 44"):
        walked(tmp_path)


def test_another_chapter_under_the_address_of_one_is_an_error() -> None:
    node = TocNode(kind="chapter", number="44", label="Chapter 44", pages=("chap_044.htm",))
    pages = {"chap_044.htm": page_of(STATUTES / "chap_045l.htm")}
    with pytest.raises(WrongContentError, match="holds Chapter 45l - Ferries, not Chapter 44"):
        list(source.expand(node, pages))


def test_a_title_without_chapters_is_an_error_unless_it_is_listed_as_gone() -> None:
    pages = {"title_04c.htm": page_of(STATUTES / "title_04c.htm")}
    node = TocNode(kind="title", number="4c", label="Title 4c", pages=("title_04c.htm",))
    with pytest.raises(MalformedError, match="lists no chapter of Title 4c"):
        list(source.expand(node, pages))


def test_error_pages_instead_of_lists_are_told() -> None:
    with pytest.raises(WrongContentError, match="may have moved"):
        read_titles("titles.htm", APOLOGY)
    with pytest.raises(WrongContentError, match="may have moved"):
        read_title("title_03.htm", APOLOGY)


def test_bytes_that_are_not_what_the_page_declares_are_read_all_the_same() -> None:
    data = CHAPTER.replace(b"Harbor fees.", "Harbor fees – “café”.".encode("cp1252"))
    labels = [item.label for item in read_chapter("chap_044.htm", data).items]
    assert "Sec. 3-10. Harbor fees – “café”." in labels
