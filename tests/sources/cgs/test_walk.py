from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Final

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import Section, as_golden, outline, sections, unit_roots, walk_unit

from fonds import ids
from fonds.codes.origin import LocalOrigin
from fonds.codes.tree import walk
from fonds.errors import NotFoundError, UsageError
from fonds.sources.cgs import source
from fonds.sources.jurisdiction import JurisdictionAdapter, Page

HERE: Final = Path(__file__).parent
MIRROR: Final = HERE / "files" / "mirror"
STATUTES: Final = MIRROR / "current" / "pub"
SUPPLEMENT: Final = MIRROR / "2026" / "sup"
GOLDEN: Final = HERE / "golden"


class Served:
    """The publisher: the same files, but no list of them."""

    files = None

    def __init__(self, version: str, root: Path = MIRROR) -> None:
        self.version = version
        self._folder = LocalOrigin(root, base=source.info.base, version=version)
        self.asked: list[str] = []

    async def read(self, page: str) -> Page:
        self.asked.append(page)
        return await self._folder.read(page)


def outlines(origin: Served) -> list[str]:
    async def collect() -> list[str]:
        above = ids.tree_root("cgs", origin.version)
        lines: list[str] = []
        async for root in source.discover_unit_roots(origin):
            lines += outline(await walk(source, above, root, origin))
        return lines

    return asyncio.run(collect())


def held(path: Path, version: str = "2025") -> list[Section]:
    roots = unit_roots(source, path, version)
    walked = [walk_unit(source, root, path, version) for root in roots]
    return [one for unit in walked for one in sections(source, unit, path, version)]


def tree_of(path: Path, version: str = "2025") -> list[str]:
    roots = unit_roots(source, path, version)
    return [line for root in roots for line in outline(walk_unit(source, root, path, version))]


def newest(origin: LocalOrigin | Served) -> str:
    return asyncio.run(source.newest_version(origin))


def folder(path: Path) -> LocalOrigin:
    return LocalOrigin(path, base=source.info.base)


def test_it_is_an_adapter() -> None:
    assert isinstance(source, JurisdictionAdapter)


def test_the_statutes_alone_are_as_reviewed() -> None:
    assert_golden("\n".join(tree_of(STATUTES)) + "\n", GOLDEN / "2025.txt")
    lines = (json.dumps(as_golden(one), ensure_ascii=False) for one in held(STATUTES))
    assert_golden("".join(f"{line}\n" for line in lines), GOLDEN / "2025.jsonl")


def test_the_statutes_with_their_supplement_are_as_reviewed() -> None:
    assert_golden("\n".join(tree_of(MIRROR, "2026")) + "\n", GOLDEN / "2026.txt")
    lines = (json.dumps(as_golden(one), ensure_ascii=False) for one in held(MIRROR, "2026"))
    assert_golden("".join(f"{line}\n" for line in lines), GOLDEN / "2026.jsonl")


@pytest.mark.parametrize(("version", "path"), [("2025", STATUTES), ("2026", MIRROR)])
def test_the_publisher_gives_the_same_tree_as_a_folder(version: str, path: Path) -> None:
    assert outlines(Served(version)) == tree_of(path, version)


def test_the_revision_is_walked_without_looking_at_the_supplement() -> None:
    origin = Served("2025")
    outlines(origin)
    assert "current/pub/chap_044.htm" in origin.asked
    assert not [page for page in origin.asked if page.startswith("2026/")]


def test_a_chapter_that_no_supplement_touches_is_asked_for_once() -> None:
    origin = Served("2026")
    outlines(origin)
    assert sorted(page for page in origin.asked if "chap_" in page) == [
        "2026/sup/chap_044.htm",
        "2026/sup/chap_044a.htm",
        "current/pub/chap_044.htm",
        "current/pub/chap_045l.htm",
    ]


def test_an_edition_that_is_not_served_is_refused() -> None:
    with pytest.raises(UsageError, match="serves 2025 and 2026, not '2023'"):
        outlines(Served("2023"))


def test_the_newest_edition_is_that_of_the_supplement() -> None:
    assert newest(Served("")) == "2026"
    assert newest(folder(MIRROR)) == "2026"


def test_without_the_supplement_the_newest_edition_is_the_revision(tmp_path: Path) -> None:
    assert newest(folder(STATUTES)) == "2025"
    shutil.copy(STATUTES / "chap_044.htm", tmp_path)
    assert newest(folder(tmp_path)) == "2025"


def test_pages_that_do_not_tell_their_year_want_a_version(tmp_path: Path) -> None:
    page = (STATUTES / "chap_044.htm").read_bytes().replace(b"the 2026 Supplement", b"others")
    (tmp_path / "chap_044.htm").write_bytes(page)
    with pytest.raises(UsageError, match="say --version"):
        newest(folder(tmp_path))


def test_pages_are_known_by_what_they_hold_and_not_by_their_names(tmp_path: Path) -> None:
    for number, page in enumerate((STATUTES / "chap_044.htm", SUPPLEMENT / "chap_044.htm")):
        shutil.copy(page, tmp_path / f"{number}.bin")
    (tmp_path / "provenance.json").write_text('{"url": "chap_044.htm"}')
    (tmp_path / "other.htm").write_text("<html><body><p>Not the statutes.</p></body></html>")
    whole = [line for line in tree_of(MIRROR, "2026") if "/title-3/chapter-44/" in line]
    found = [line for line in tree_of(tmp_path, "2026") if "/title-3/chapter-44/" in line]
    assert found == whole
    urls = {one.shard.source_url for one in held(tmp_path, "2026") if one.leaf.number == "3-2"}
    assert urls == {"https://www.cga.ct.gov/2026/sup/chap_044.htm#sec_3-2"}


def test_a_single_file_is_a_title_with_one_chapter() -> None:
    found = held(STATUTES / "chap_045l.htm")
    assert [one.leaf.id for one in found] == ["cgs/2025/root/title-3/chapter-45l/section-3-41"]
    assert [step.label for step in found[0].leaf.lineage] == ["Title 3", "Chapter 45l - Ferries"]


def test_a_supplement_alone_is_read_as_what_it_is() -> None:
    found = held(SUPPLEMENT / "chap_044a.htm", "2026")
    assert [one.shard.source_url for one in found] == [
        "https://www.cga.ct.gov/2026/sup/chap_044a.htm#sec_3-35"
    ]


def test_the_same_bytes_under_two_names_are_one_chapter(tmp_path: Path) -> None:
    for name in ("a.htm", "b.htm"):
        shutil.copy(STATUTES / "chap_045l.htm", tmp_path / name)
    assert len(held(tmp_path)) == 1


def test_a_title_that_is_not_linked_is_told_by_its_sections(tmp_path: Path) -> None:
    page = (STATUTES / "art_002a.htm").read_bytes().replace(b"title_42a.htm", b"#")
    (tmp_path / "page.htm").write_bytes(page)
    assert [root.number for root in unit_roots(source, tmp_path, "2025")] == ["42a"]


def test_sections_of_the_supplement_take_the_place_of_those_they_name() -> None:
    found = {one.leaf.id.rpartition("/")[2]: one for one in held(MIRROR, "2026")}
    assert "and a deputy" in found["section-3-2"].normalized().markdown
    assert found["section-3-13-to-3-15"].leaf.status == "repealed"
    assert not {"section-3-13", "section-3-14", "section-3-15"} & set(found)
    # The statutes have two versions of it; the supplement has one that replaces both.
    assert "section-3-11" in found
    assert "section-3-11~2" not in found


def test_a_section_that_only_a_range_names_stands_beside_the_range() -> None:
    numbers = [one.leaf.number for one in held(MIRROR, "2026")]
    assert numbers[numbers.index("3-3 to 3-6") + 1] == "3-4"


def test_new_sections_stand_in_the_order_of_numbers_and_in_their_part() -> None:
    found = {one.leaf.number: one.leaf.id for one in held(MIRROR, "2026")}
    numbers = list(found)
    assert numbers[numbers.index("3-9m") - 1 : numbers.index("3-9m") + 2] == [
        "3-9l",
        "3-9m",
        "3-10",
    ]
    assert "/part-II/subpart-A/" in found["3-9m"]
    assert "/part-III/" in found["3-30"]


def test_a_fragment_that_is_linked_but_not_there_is_no_section() -> None:
    assert b"#sec_3-99" in (STATUTES / "chap_044.htm").read_bytes()
    assert "3-99" not in {one.leaf.number for one in held(STATUTES)}


def test_what_is_not_in_force_says_so() -> None:
    found = held(STATUTES)
    assert {one.leaf.number: one.leaf.status for one in found if one.leaf.status} == {
        "3-3 to 3-6": "reserved",
        "3-7 and 3-8": "repealed",
        "3-12": "transferred",
        "3-15": "obsolete",
        "42a-2A-102 and 42a-2A-103": "reserved",
    }


def test_a_block_of_sections_answers_to_the_numbers_it_names() -> None:
    block = next(one for one in held(STATUTES) if one.leaf.number == "3-7 and 3-8")
    assert block.shard.citation_string == "Conn. Gen. Stat. §§ 3-7 and 3-8 (2025)."
    assert block.shard.aliases == (
        "Conn. Gen. Stat. §§ 3-7 and 3-8",
        "CGS 3-7 and 3-8",
        "Conn Gen Stat 3-7",
        "Conn Gen Stat 3-8",
    )


def test_a_listed_chapter_that_is_missing_stops_the_title(tmp_path: Path) -> None:
    for name in ("title_03.htm", "chap_045l.htm"):
        shutil.copy(STATUTES / name, tmp_path)
    with pytest.raises(NotFoundError, match=r"Chapter 44 .*no chap_044\.htm"):
        tree_of(tmp_path)
