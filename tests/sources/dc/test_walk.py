"""The titles of a small D.C. Code, walked and cited."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import Section, as_golden, outline, sections, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import NotFoundError, UsageError
from fonds.sources.dc import source

HERE = Path(__file__).parent
FILES = HERE / "files"
CODE = FILES / "us" / "dc" / "council" / "code"
VERSION = "2016"


def walked_sections(path: Path = FILES) -> list[Section]:
    return [
        section
        for root in unit_roots(source, path, VERSION)
        for section in sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    ]


def labels(path: Path) -> list[str]:
    roots = unit_roots(source, path, VERSION)
    return [line for root in roots for line in outline(walk_unit(source, root, path, VERSION))]


def test_outline_is_as_reviewed() -> None:
    assert_golden("\n".join(labels(FILES)) + "\n", HERE / "golden" / "outline.txt")


def test_sections_are_as_reviewed() -> None:
    lines = [json.dumps(as_golden(one), ensure_ascii=False) for one in walked_sections()]
    assert_golden("\n".join(lines) + "\n", HERE / "golden" / "sections.jsonl")


@pytest.mark.parametrize("folder", [CODE, CODE / "titles"])
def test_every_folder_of_titles_gives_the_same_tree(folder: Path) -> None:
    assert labels(folder) == labels(FILES)


def test_folder_of_one_title_is_that_title() -> None:
    assert [root.number for root in unit_roots(source, CODE / "titles" / "29A", VERSION)] == ["29A"]
    assert labels(CODE / "titles" / "29A") == [
        "dc/2016/root/title-29A  Title 29A. Corporations. [Former title]",
        "dc/2016/root/title-29A/section-29A-101.01  § 29A-101.01",
    ]


def test_one_file_is_its_title_whatever_it_is_called(tmp_path: Path) -> None:
    index = tmp_path / "twenty-eight.xml"
    index.write_bytes((CODE / "titles" / "28" / "index.xml").read_bytes())
    assert [root.number for root in unit_roots(source, index, VERSION)] == ["28"]
    assert labels(index)[1].endswith("/subtitle-I  Subtitle I. Uniform Commercial Code.")


def test_subheading_takes_what_follows_it_up_to_the_next_of_its_level() -> None:
    lines = [line.partition("  ")[0] for line in labels(CODE / "titles" / "1")]
    below = [line.removeprefix("dc/2016/root/title-1/") for line in lines]
    assert "subtitle-VI/subdivision-A/chapter-3/section-1-301" in below
    assert "subtitle-VI/subdivision-B/chapter-4" in below
    assert "subtitle-VII/chapter-3/section-1-351" in below


def test_number_of_a_section_is_the_name_of_its_file_with_its_colon() -> None:
    assert [section.leaf.number for section in walked_sections()] == [
        *["1-101", "1-101.01", "1-121.01a", "1-122", "1-123", "", "1-301", "1-351"],
        *["28:9-101", "29A-101.01", "1-199(Perm)", "1-199(Temp)"],
    ]


def test_title_of_a_section_is_left_to_its_text_and_that_of_a_text_beside_is_its_levels() -> None:
    named = {section.leaf.number: section for section in walked_sections()}
    assert named["1-122"].shard.title == ""
    assert named["1-122"].normalized().headings[0].text == "§ 1-122. Oil [Repealed]"
    front = named[""].shard
    assert front.title == "Subchapter III. Lamps of Rock Creek."
    assert front.citation_string == "D.C. Code tit. 1, subtit. I, ch. 1, subch. III (2016)."
    assert front.source_url == "https://code.dccouncil.gov/us/dc/council/code/titles/1/chapters/1"


def test_section_is_found_by_every_form_of_its_citation() -> None:
    shard = next(one.shard for one in walked_sections() if one.leaf.number == "28:9-101")
    assert shard.citation_string == "D.C. Code § 28:9-101 (2016)."
    assert shard.source_url == f"https://code.dccouncil.gov{shard.aliases[-1]}"
    assert shard.aliases == (
        "D.C. Code § 28:9-101",
        "DC Code 28:9-101",
        "D.C. Official Code § 28:9-101",
        "/us/dc/council/code/sections/28:9-101",
    )


def test_section_whose_file_is_missing_is_listed_and_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "index.xml").write_bytes((CODE / "titles" / "29A" / "index.xml").read_bytes())
    [root] = unit_roots(source, tmp_path, VERSION)
    walked = walk_unit(source, root, tmp_path, VERSION)
    with pytest.raises(NotFoundError, match=r"sections/29A-101\.01\.xml"):
        list(sections(source, walked, tmp_path, VERSION))


def test_title_whose_index_is_missing_is_a_unit_that_cannot_be_walked(tmp_path: Path) -> None:
    (tmp_path / "index.xml").write_bytes((CODE / "index.xml").read_bytes())
    roots = unit_roots(source, tmp_path, VERSION)
    assert [root.number for root in roots] == ["1", "28", "29A", "99"]
    with pytest.raises(NotFoundError, match=r"titles/28/index\.xml"):
        walk_unit(source, roots[1], tmp_path, VERSION)


def newest(path: Path) -> str:
    return asyncio.run(source.newest_version(LocalOrigin(path, base=source.info.base)))


def test_edition_without_a_day_has_to_be_named() -> None:
    with pytest.raises(UsageError, match=r"only that D\.C\. Law 99-84 is in them\): say --version"):
        newest(FILES)
    with pytest.raises(UsageError, match="say --version"):
        newest(CODE / "titles" / "1")


def test_edition_with_a_day_is_called_by_it(tmp_path: Path) -> None:
    dated = (CODE / "index.xml").read_bytes().replace(b"0001-01-01", b"2016-03-10")
    (tmp_path / "index.xml").write_bytes(dated)
    assert newest(tmp_path) == "2016-03-10"
