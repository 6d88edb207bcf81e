"""Every shape the CFR comes in, walked and read as a person reviewed it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import (
    Section,
    as_golden,
    outline,
    sections,
    unit_roots,
    walk_unit,
)

from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.sources.cfr import source
from fonds.sources.jurisdiction import JurisdictionAdapter

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
SHAPES = [
    ("api", "2025-01-31"),
    ("bulk", "2025-01-31"),
    ("granules", "2025"),
    ("volumes", "2025"),
    ("uslm", "2018"),
    ("pieces", "current"),
]


def read(path: Path, version: str) -> tuple[list[str], list[Section]]:
    """The only title that a folder or a file holds."""
    [root] = unit_roots(source, path, version)
    walked = walk_unit(source, root, path, version)
    return outline(walked), list(sections(source, walked, path, version))


def leaves(path: Path, version: str = "2025-01-31") -> dict[str, Section]:
    """Its leaves, by their ids below the title."""
    _, found = read(path, version)
    return {section.leaf.id.partition("/title-51/")[2]: section for section in found}


def written(folder: Path, inside: str, name: str = "title-51.xml") -> Path:
    """A title as eCFR's API serves it."""
    path = folder / name
    head = '<ECFR><DIV1 N="51" TYPE="TITLE"><HEAD>Title 51—Lighthouses</HEAD>'
    path.write_text(f"{head}{inside}</DIV1></ECFR>", encoding="utf-8")
    return path


def test_it_is_an_adapter() -> None:
    assert isinstance(source, JurisdictionAdapter)
    assert source.info.base.endswith("/")


@pytest.mark.parametrize(("shape", "version"), SHAPES)
def test_every_shape_reads_as_a_person_reviewed_it(shape: str, version: str) -> None:
    nodes, found = read(FILES / shape, version)
    lines = [json.dumps(as_golden(section), ensure_ascii=False) for section in found]
    text = "\n".join([*nodes, "", *lines, ""])
    assert_golden(text, GOLDEN / f"{shape}.txt")


@pytest.mark.parametrize(("shape", "version"), SHAPES)
def test_no_leaf_needs_mending(shape: str, version: str) -> None:
    for section in read(FILES / shape, version)[1]:
        warnings = section.normalized().warnings
        assert not [warning for warning in warnings if "footnote" not in warning]


def test_ranges_duplicates_and_reserved_sections_are_leaves_of_their_own() -> None:
    found = leaves(FILES / "api")
    group = "subtitle-A/chapter-I/subchapter-A/part-1/subpart-A/subject-group"
    assert found[f"{group}/section-1.2-1.4"].leaf.status == "reserved"
    assert found[f"{group}/section-1.2-1.4"].shard.citation_string == (
        "51 C.F.R. §§ 1.2-1.4 (2025)."
    )
    first, second = found[f"{group}~2/section-1.5"], found[f"{group}~2/section-1.5~2"]
    assert first.shard.aliases == second.shard.aliases == ("51 CFR 1.5",)
    assert "dark" not in first.normalized().markdown
    assert "dark" in second.normalized().markdown


def test_reserved_levels_that_hold_nothing_are_leaves_with_a_citation() -> None:
    found = leaves(FILES / "api")
    above = "subtitle-A/chapter-I/subchapter-A"
    for name, citation, markdown in (
        ("part-2", "51 C.F.R. pt. 2 (2025).", "# PART 2 [RESERVED]\n"),
        ("part-3-9", "51 C.F.R. pts. 3-9 (2025).", "# PARTS 3-9 [RESERVED]\n"),
        ("part-1/subpart-B", "51 C.F.R. pt. 1, subpt. B (2025).", "# Subpart B [Reserved]\n"),
    ):
        section = found[f"{above}/{name}"]
        assert section.leaf.status == "reserved"
        assert section.shard.citation_string == citation
        assert section.normalized().markdown == markdown
    assert found[f"{above}/part-2"].shard.aliases == ("51 CFR part 2",)


def test_the_first_front_of_a_part_is_what_its_citation_leads_to() -> None:
    found = leaves(FILES / "api")
    part = "subtitle-A/chapter-I/subchapter-A/part-1"
    assert found[f"{part}/front"].shard.aliases == ("51 CFR part 1",)
    assert found[f"{part}/front~2"].shard.aliases == ()
    assert found[f"{part}/front~2"].shard.citation_string == "51 C.F.R. pt. 1 (2025)."


def test_sections_that_a_note_quotes_are_part_of_its_section() -> None:
    found = leaves(FILES / "granules", "2025")
    quoting = [section for section in found.values() if section.leaf.number == "2.1"]
    assert len(quoting) == 1
    assert "at noon" in quoting[0].normalized().markdown


def test_a_section_without_an_end_tag_ends_where_the_next_part_begins() -> None:
    found = leaves(FILES / "volumes", "2025")
    part = "chapter-I/subchapter-A/part"
    assert found[f"{part}-1/section-1.1"].normalized().markdown == "§ 1.1 Wicks.\n\nTrim them.\n"
    assert found[f"{part}-2/section-2.1"].normalized().markdown.startswith("# § 2.1 Valves.")
    assert found[f"{part}-3-9"].leaf.status == "reserved"


def test_text_after_such_parts_has_no_place_and_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "CFR-2025-title51-vol1.xml"
    for lost, cause in (("<P>Lost.</P>", "text of"), ("<SECTION/>", "<SECTION>")):
        path.write_text(
            "<CFRDOC><TITLE><CHAPTER><HD SOURCE='HED'>CHAPTER I—A</HD><PART>"
            "<HD SOURCE='HED'>PART 1—B</HD><SECTION><SECTNO>§ 1.1</SECTNO><P>a</P><PART>"
            f"<HD SOURCE='HED'>PART 2—C</HD></PART></SECTION>{lost}</PART></CHAPTER></TITLE>"
            "</CFRDOC>",
            encoding="utf-8",
        )
        with pytest.raises(MalformedError, match=f"{cause}.*PART 1—B.*after parts that follow it"):
            read(path, "2025")


def test_a_granule_of_one_section_stands_in_its_part(tmp_path: Path) -> None:
    path = tmp_path / "CFR-2025-title51-vol1-sec1-1.xml"
    path.write_text(
        "<CFRGRANULE><FDSYS><CFRTITLE>51</CFRTITLE><DATE>2025-07-01</DATE><ANCESTORS>"
        '<PARENT HEADING="Title 51" SEQ="1">Lighthouses</PARENT>'
        '<PARENT HEADING="PART 1" SEQ="0">LAMPS</PARENT></ANCESTORS></FDSYS>'
        "<SECTION><SECTNO>§ 1.1</SECTNO><SUBJECT>Wicks.</SUBJECT><P>a</P></SECTION></CFRGRANULE>",
        encoding="utf-8",
    )
    nodes, _ = read(path, "2025")
    assert nodes == [
        "cfr/2025/root/title-51  Title 51—Lighthouses",
        "cfr/2025/root/title-51/part-1  PART 1—LAMPS",
        "cfr/2025/root/title-51/part-1/section-1.1  § 1.1 Wicks.",
    ]


def test_the_type_of_a_division_says_what_it_is(tmp_path: Path) -> None:
    inside = (
        '<DIV5 N="1" TYPE="PART"><HEAD>PART 1—A</HEAD><DIV7 N="Q" TYPE="SUBPART"><HEAD>Subpart Q'
        '</HEAD><DIV6 N="2" TYPE="ARTICLE"><HEAD>Article 2</HEAD><DIV8 N="1.1"><HEAD>§ 1.1 B.'
        "</HEAD></DIV8></DIV6></DIV7></DIV5>"
    )
    nodes, _ = read(written(tmp_path, inside), "2025-01-31")
    assert nodes[-1].split()[0].endswith("/part-1/subpart-Q/article-2/section-1.1")


def test_a_reserved_title_is_its_own_front(tmp_path: Path) -> None:
    path = tmp_path / "title-35.xml"
    path.write_text(
        '<ECFR><DIV1 N="35" TYPE="TITLE"><HEAD>Title 35 [Reserved]</HEAD></DIV1></ECFR>',
        encoding="utf-8",
    )
    nodes, [front] = read(path, "2025-01-31")
    assert nodes == [
        "cfr/2025-01-31/root/title-35  Title 35 [Reserved]",
        "cfr/2025-01-31/root/title-35/front  Title 35 [Reserved]",
    ]
    assert front.leaf.status == "reserved"
    assert front.shard.citation_string == "35 C.F.R. (2025)."
    assert front.normalized().markdown == "# Title 35 [Reserved]\n"


@pytest.mark.parametrize(
    ("head", "number", "citation"),
    [
        ("Appendix A-1 to Part 60—Methods", "A-1", "51 C.F.R. pt. 60, app. A-1 (2025)."),
        ("Appendix A to Subpart G of Part 1—X", "A", "51 C.F.R. pt. 1, subpt. G, app. A (2025)."),
        ("Appendixes B-C to Part 1 [Reserved]", "B-C", "51 C.F.R. pt. 1, app. B-C (2025)."),
        ("Appendices D and E to Part 1", "D and E", "51 C.F.R. pt. 1, apps. D and E (2025)."),
        ("Appendix to Part 1—X", "", "51 C.F.R. pt. 1, app. (2025)."),
        (
            "Table 3 to Subpart Kb of Part 1",
            "Table 3",
            "51 C.F.R. pt. 1, subpt. Kb, tbl. 3 (2025).",
        ),
        ("Model Forms for Keepers", "", "51 C.F.R. pt. 9, subpt. A, app. (2025)."),
    ],
)
def test_an_appendix_is_cited_by_what_it_says_it_belongs_to(
    tmp_path: Path, head: str, number: str, citation: str
) -> None:
    inside = (
        '<DIV5 N="9" TYPE="PART"><HEAD>PART 9—A</HEAD><DIV6 N="A" TYPE="SUBPART"><HEAD>Subpart A'
        f'</HEAD><DIV9 N="" TYPE="APPENDIX"><HEAD>{head}</HEAD><P>a</P></DIV9></DIV6></DIV5>'
    )
    _, [appendix] = read(written(tmp_path, inside), "2025-01-31")
    assert (appendix.leaf.kind, appendix.leaf.number) == ("appendix", number)
    assert appendix.shard.citation_string == citation


@pytest.mark.parametrize(
    ("stated", "head", "number"),
    [
        ("§ 60.112b", "§ 60.112b Rules.", "60.112b"),
        ("", "§ 60.112b Rules.", "60.112b"),
        ("", "§§ 1.1 through 1.3 [Reserved]", "1.1 through 1.3"),
        ("", "§ 5.2 To 3 keepers.", "5.2"),
        ("", "Sec. 19-8.1 Oil.", "19-8.1"),
        ("1.401(k)-1", "§ 1.401(k)-1 Plans.", "1.401(k)-1"),
        ("A&amp;amp;B", "Lamps", "A&B"),
        ("", "Only a name", ""),
    ],
)
def test_a_section_is_numbered_as_it_is_stated_or_printed(
    tmp_path: Path, stated: str, head: str, number: str
) -> None:
    inside = f'<DIV8 N="{stated}" TYPE="SECTION"><HEAD>{head}</HEAD><P>a</P></DIV8>'
    _, [section] = read(written(tmp_path, inside), "2025-01-31")
    assert section.leaf.number == number


@pytest.mark.parametrize(
    ("head", "segment"),
    [
        ("PART 1-POSTAL POLICY", "part-1"),
        ("PART 50-201—SUPPLY", "part-50-201"),
        ("PARTS 14–16 [RESERVED]", "part-14-16"),
        ("PARTS 14 and 15 [RESERVED]", "part-14-and-15"),
        ("PART 8—4-H CLUB", "part-8"),
        ("Part 3a - Lamps", "part-3a"),
        ("[RESERVED]", "part"),
    ],
)
def test_a_part_of_the_annual_edition_is_numbered_by_its_heading(
    tmp_path: Path, head: str, segment: str
) -> None:
    path = tmp_path / "CFR-2025-title51-vol1.xml"
    path.write_text(
        f"<CFRDOC><TITLE><PART><HD SOURCE='HED'>{head}</HD><SECTION><SECTNO>§ 1</SECTNO>"
        "<P>a</P></SECTION></PART></TITLE></CFRDOC>",
        encoding="utf-8",
    )
    nodes, _ = read(path, "2025")
    assert nodes[1].split()[0] == f"cfr/2025/root/title-51/{segment}"


def test_words_outside_of_any_element_are_refused_with_their_place(tmp_path: Path) -> None:
    path = written(tmp_path, '<DIV5 N="1" TYPE="PART"><HEAD>PART 1—A</HEAD>Lost words.</DIV5>')
    with pytest.raises(MalformedError, match=r"'PART 1—A': 'Lost words\.'"):
        read(path, "2025-01-31")


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b"<!DOCTYPE html><html><body>Moved</body></html>", WrongContentError, "HTML"),
        (b'{"error": "no such date"}', WrongContentError, "not XML"),
        (b"<RULE><P>a</P></RULE>", WrongContentError, "<RULE>"),
        (b"<ECFR></ECFR>", WrongContentError, "does not say which title"),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?><ECFR/>', MalformedError, "ISO-8859-1"),
        (b'<ECFR><DIV1 N="51"><HEAD>Title 51</HEAD></DIV1></ECFR', MalformedError, "well-formed"),
        (b'<!DOCTYPE E [<!ENTITY a "b">]><ECFR>&a;</ECFR>', MalformedError, "entity"),
    ],
)
def test_a_single_file_that_is_broken_says_why(
    tmp_path: Path, data: bytes, error: type[Exception], cause: str
) -> None:
    path = tmp_path / "file.xml"
    path.write_bytes(data)
    with pytest.raises(error, match=cause):
        read(path, "2025-01-31")


def test_a_title_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    data = (FILES / "bulk" / "ECFR-title51.xml").read_bytes()
    path = tmp_path / "ECFR-title51.xml"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(MalformedError, match="not well-formed"):
        read(path, "2025-01-31")


def test_a_title_without_a_section_is_suspicious(tmp_path: Path) -> None:
    path = written(tmp_path, '<DIV3 N="I" TYPE="CHAPTER"><HEAD>CHAPTER I—A</HEAD></DIV3>')
    with pytest.raises(SuspiciousYieldError, match="no section"):
        read(path, "2025-01-31")


def test_a_file_of_another_title_is_refused() -> None:
    path = FILES / "bulk"
    [root] = unit_roots(source, path, "2025-01-31")
    wrong = type(root)(kind="title", number="50", label="Title 50", pages=root.pages)
    with pytest.raises(WrongContentError, match="is of title 51, not 50"):
        walk_unit(source, wrong, path, "2025-01-31")
