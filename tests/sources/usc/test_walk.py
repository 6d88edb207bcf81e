"""What a title becomes: its nodes, their texts, and how they are cited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import as_golden, outline, sections, unit_roots, walk_unit

from fonds.codes.tree import Walked
from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.sources.usc import source

HERE = Path(__file__).parent
TITLES = HERE / "files" / "titles"
SECTIONS = HERE / "files" / "sections"
HOUSE = "http://xml.house.gov/schemas/uslm/1.0"


def walked(path: Path) -> Walked:
    [root] = unit_roots(source, path, "2024")
    return walk_unit(source, root, path, "2024")


def written(folder: Path, inside: str, *, name: str = "usc91.xml") -> Path:
    """A title of its own, with something in it."""
    path = folder / name
    path.write_text(
        f'<uscDoc xmlns="{HOUSE}"><meta><docNumber>91</docNumber></meta><main><title>'
        f"<num>Title 91—</num><heading>LIGHTHOUSES</heading>{inside}</title></main></uscDoc>",
        encoding="utf-8",
    )
    return path


def ids_of(path: Path) -> list[str]:
    return [
        line.partition("  ")[0].removeprefix("usc/2024/root/") for line in outline(walked(path))
    ]


@pytest.mark.parametrize(
    "name", ["titles/usc91.xml", "titles/usc92a.xml", "titles/usc93A.xml", "sections"]
)
def test_a_title_reads_as_reviewed(name: str) -> None:
    path = HERE / "files" / name
    found = walked(path)
    assert_golden("\n".join(outline(found)) + "\n", HERE / "golden" / f"{path.stem}.txt")
    leaves = sections(source, found, path, "2024")
    lines = [json.dumps(as_golden(leaf), ensure_ascii=False) + "\n" for leaf in leaves]
    assert_golden("".join(lines), HERE / "golden" / f"{path.stem}.jsonl")


def test_the_same_title_in_the_second_uslm_reads_the_same(tmp_path: Path) -> None:
    house = (TITLES / "usc91.xml").read_text("utf-8")
    path = tmp_path / "usc91.xml"
    path.write_text(house.replace(HOUSE, "http://schemas.gpo.gov/xml/uslm"), "utf-8")
    assert outline(walked(path)) == outline(walked(TITLES / "usc91.xml"))


def test_without_a_year_in_the_version_the_files_year_is_cited() -> None:
    path = TITLES / "usc91.xml"
    [root] = unit_roots(source, path, "119-36")
    found = walk_unit(source, root, path, "119-36")
    leaf = next(sections(source, found, path, "119-36"))
    assert leaf.shard.citation_string == "91 U.S.C. (2025)."
    assert leaf.shard.published_at == "2025-03-25"


def test_notes_before_and_after_a_table_of_contents_are_two_fronts(tmp_path: Path) -> None:
    toc = "<toc><layout><tocItem>Item</tocItem></layout></toc>"
    note = "<note><p>Words.</p></note>"
    section = "<section><num>§ 1.</num></section>"
    path = written(tmp_path, f"{note}{note}{toc}{note}{section}{note}")
    assert ids_of(path) == [
        "title-91",
        "title-91/front",
        "title-91/front~2",
        "title-91/section-1",
        "title-91/front~3",
    ]
    texts = [leaf.data.decode() for leaf in sections(source, walked(path), path, "2024")]
    assert texts == [note * 2, note, section, note]


def test_a_level_without_words_of_its_own_has_no_front(tmp_path: Path) -> None:
    empty = "<note><p/></note><toc>Contents</toc><notes> — </notes>"
    assert ids_of(written(tmp_path, f"{empty}<section><num>§ 1.</num></section>")) == [
        "title-91",
        "title-91/section-1",
    ]


def test_a_heading_after_a_note_is_kept_as_text(tmp_path: Path) -> None:
    path = written(tmp_path, "<note><p>Words.</p></note><heading>LATE</heading>")
    assert [
        leaf.normalized().markdown for leaf in sections(source, walked(path), path, "2024")
    ] == ["Words.\n\n**LATE**\n"]


def test_a_number_that_is_only_an_attribute_counts(tmp_path: Path) -> None:
    inside = (
        '<section><num value="12"/></section><section><num startValue="3" endValue="5"/></section>'
    )
    assert ids_of(written(tmp_path, inside))[1:] == [
        "title-91/section-12",
        "title-91/section-3-to-5",
    ]


def test_prefixes_of_the_titles_root_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "usc91.xml"
    path.write_text(
        f'<u:uscDoc xmlns:u="{HOUSE}"><u:main><u:title><u:section><u:num>§ 1.</u:num>'
        "<u:content>Words.</u:content></u:section></u:title></u:main></u:uscDoc>",
        "utf-8",
    )
    leaf = next(sections(source, walked(path), path, "2024"))
    assert leaf.normalized().markdown == "# § 1.\n\nWords.\n"


def test_text_outside_of_any_element_is_refused_by_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "<section><num>§ 1.</num></section>stray words")
    with pytest.raises(MalformedError, match=r"usc91\.xml: .*Title 91—LIGHTHOUSES: 'stray words'"):
        walked(path)


def test_notes_outside_of_the_title_are_fronts_of_it(tmp_path: Path) -> None:
    path = tmp_path / "usc91.xml"
    path.write_text(
        f'<uscDoc xmlns="{HOUSE}"><preface>Before.</preface><main><title><num>Title 91</num>'
        "<section/></title><note>After.</note></main></uscDoc>",
        "utf-8",
    )
    leaves = list(sections(source, walked(path), path, "2024"))
    texts = [leaf.normalized().markdown for leaf in leaves if leaf.leaf.kind == "front"]
    assert texts == ["Before.\n", "After.\n"]


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "usc91.xml: the file is empty"),
        (b"<html><body>Not found</body></html>", WrongContentError, "usc91.xml: an HTML page"),
        (b"<!DOCTYPE html><html><br></html>", WrongContentError, "an HTML page instead of XML"),
        (b"Not Found", MalformedError, "usc91.xml: not well-formed"),
        (b"<rss/>", WrongContentError, "the root is <rss>"),
        (b'<uscDoc xmlns="urn:other"/>', WrongContentError, "not a title of the Code"),
        (
            f'<uscDoc xmlns="{HOUSE}"><note>Words</note></uscDoc>'.encode(),
            MalformedError,
            "outside of any title",
        ),
    ],
)
def test_what_is_no_title_is_refused_with_its_cause(
    tmp_path: Path, data: bytes, error: type[ParseError], cause: str
) -> None:
    path = tmp_path / "usc91.xml"
    path.write_bytes(data)
    (tmp_path / "usc92a.xml").write_bytes((TITLES / "usc92a.xml").read_bytes())
    root = unit_roots(source, tmp_path, "2024")[0]
    with pytest.raises(error, match=cause):
        walk_unit(source, root, tmp_path, "2024")


def test_a_title_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = (TITLES / "usc91.xml").read_bytes().rstrip()
    path = tmp_path / "usc91.xml"
    for length in range(700, len(whole), 397):
        path.write_bytes(whole[:length])
        with pytest.raises(MalformedError, match=r"usc91\.xml: not well-formed XML"):
            walked(path)


def test_another_title_in_the_place_of_one_is_refused(tmp_path: Path) -> None:
    [root] = unit_roots(source, TITLES / "usc91.xml", "2024")
    (tmp_path / "usc91.xml").write_bytes((TITLES / "usc92a.xml").read_bytes())
    with pytest.raises(WrongContentError, match="holds title 92a and not title 91"):
        walk_unit(source, root, tmp_path, "2024")


def test_a_section_file_under_any_name_is_read_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "download"
    path.write_bytes((SECTIONS / "94" / "1a-1.xml").read_bytes())
    assert outline(walked(path)) == [
        "usc/2024/root/title-94  Title 94",
        "usc/2024/root/title-94/section-1a-1  § 1a–1. Ropes",
    ]
