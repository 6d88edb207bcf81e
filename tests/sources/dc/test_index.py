"""Indexes in every shape, sound and broken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.sources.statutes import outline, sections, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.codes.tree import Walked
from fonds.errors import (
    MalformedError,
    NotFoundError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.sources.dc import source
from fonds.sources.jurisdiction import TocNode

FILES = Path(__file__).parent / "files"
VERSION = "2016"
NAMESPACES = (
    'xmlns="https://code.dccouncil.us/schemas/dc-library" '
    'xmlns:xi="http://www.w3.org/2001/XInclude"'
)
TITLE = "<prefix>Title</prefix><num>5</num><heading>Boats.</heading>"
UNIT = TocNode(kind="title", number="5", label="Title 5", pages=("index.xml",))


def index(inside: str) -> str:
    return f"<?xml version='1.0' encoding='utf-8'?><container {NAMESPACES}>{inside}</container>"


def walked(folder: Path, text: str) -> Walked:
    (folder / "index.xml").write_text(text, encoding="utf-8")
    return walk_unit(source, UNIT, folder, VERSION)


def lines(folder: Path, inside: str) -> list[str]:
    found = outline(walked(folder, index(TITLE + inside)))
    return [line.removeprefix("dc/2016/root/title-5") for line in found]


def include(number: str) -> str:
    return f'<xi:include href="./sections/{number}.xml"/>'


def test_subheading_without_a_level_is_a_level_of_its_own(tmp_path: Path) -> None:
    inside = "<subheading>Old Provisions.</subheading>" + include("5-1")
    assert lines(tmp_path, inside + "<subheading>Part of it.</subheading>" + include("5-2"))[
        1:
    ] == [
        "/subheading  Old Provisions.",
        "/subheading/section-5-1  § 5-1",
        "/subheading~2  Part of it.",
        "/subheading~2/section-5-2  § 5-2",
    ]


@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ("Subtitle II-A. Service.", "subtitle-II-A"),
        ("Subtitle IIIA. Meters.", "subtitle-IIIA"),
        ("Subtitle B-ii. Hearing.", "subtitle-B-ii"),
        ("Unit 3", "unit-3"),
        ("Division V — Trade.", "division-V"),
        ("Chapter X-rays of boats.", "subheading"),
    ],
)
def test_subheading_says_its_level_and_number(tmp_path: Path, text: str, segment: str) -> None:
    found = lines(tmp_path, f"<subheading>{text}</subheading>{include('5-1')}")
    assert found[1] == f"/{segment}  {text}"


def test_subheading_of_another_level_replaces_one_that_has_something(tmp_path: Path) -> None:
    inside = "<subheading>Unit A. Sails.</subheading>" + include("5-1")
    found = lines(tmp_path, inside + "<subheading>Subtitle I. Oars.</subheading>" + include("5-2"))
    assert found[-1] == "/subtitle-I/section-5-2  § 5-2"


def test_section_listed_twice_is_there_twice(tmp_path: Path) -> None:
    assert lines(tmp_path, include("5-1") * 2)[1:] == [
        "/section-5-1  § 5-1",
        "/section-5-1~2  § 5-1",
    ]


def test_texts_between_sections_are_leaves_where_they_stand(tmp_path: Path) -> None:
    inside = (
        f"<text>Before.</text>{include('5-1')}<!-- x --><text>Be<em>tween</em>.</text>"
        f"<para><num>(a)</num><text>More.</text></para>{include('5-2')}<toc><text>No.</text></toc>"
    )
    assert [line.partition("  ")[0] for line in lines(tmp_path, inside)[1:]] == [
        "/front",
        "/section-5-1",
        "/front~2",
        "/section-5-2",
    ]
    put_sections(tmp_path, "5-1", "5-2")
    found = sections(source, walked(tmp_path, index(TITLE + inside)), tmp_path, VERSION)
    fronts = [section for section in found if section.leaf.kind == "front"]
    assert [front.normalized().markdown for front in fronts] == [
        "Before.\n",
        "Be*tween*.\n\n(a) More.\n",
    ]


def put_sections(folder: Path, *numbers: str) -> None:
    (folder / "sections").mkdir()
    for number in numbers:
        text = f"<section {NAMESPACES}><num>{number}</num><heading>A boat.</heading></section>"
        (folder / "sections" / f"{number}.xml").write_text(text, encoding="utf-8")


def test_section_in_the_index_itself_is_a_leaf_with_its_status(tmp_path: Path) -> None:
    inside = (
        "<section><num>§ 5-7.</num><reason>Repealed</reason><heading>Of <em>oars</em>.</heading>"
        "<text>Repealed.</text><para><num>(a)</num></para></section>"
    )
    tree = walked(tmp_path, index(TITLE + inside))
    assert outline(tree)[1] == "dc/2016/root/title-5/section-5-7  § 5-7. Of oars."
    [section] = sections(source, tree, tmp_path, VERSION)
    assert section.leaf.status == "repealed"
    assert section.normalized().markdown == "# § 5-7. Of *oars*. [Repealed]\n\nRepealed.\n\n(a)\n"


@pytest.mark.parametrize(
    ("href", "cause"),
    [
        ("../../../../../../../secret.xml", "leads out of the publisher's files"),
        ("..%2F..%2Fsecret.xml", "leads out of the publisher's files"),
        ("/etc/passwd.xml", "not the path of a file"),
        ("./old.zip%21a.xml", "not the path of a file"),
        ("https://example.org/5-1.xml", "not the path of a file"),
        ("./sections/5-1.xml#xpointer(x)", "not the path of a file"),
        ("", "not the path of a file"),
        ("./chapters/1/index.xml", "not a section"),
        ("./sections/5-1.jpeg", "not a section"),
        (".", "not a section"),
    ],
)
def test_include_that_leads_to_no_section_stops_the_title(
    tmp_path: Path, href: str, cause: str
) -> None:
    with pytest.raises(MalformedError, match=cause) as raised:
        lines(tmp_path, f'<xi:include href="{href}"/>')
    assert str(raised.value).startswith("index.xml: ")


@pytest.mark.parametrize(
    ("inside", "cause"),
    [
        ("loose words", "'loose words' is between the elements"),
        ("<section><heading>Nameless.</heading></section>", "a section without a number"),
        ("<xi:include/>", "includes None"),
    ],
)
def test_what_cannot_be_placed_stops_the_title(tmp_path: Path, inside: str, cause: str) -> None:
    with pytest.raises(MalformedError, match=cause):
        lines(tmp_path, include("5-1") + inside)


@pytest.mark.parametrize(
    ("text", "error", "cause"),
    [
        ("", MalformedError, "index.xml: the file is empty"),
        ("<!DOCTYPE html><html></html>", WrongContentError, "index.xml: an HTML page"),
        (index(TITLE + include("5-1"))[:-30], MalformedError, "index.xml: not well-formed XML"),
        (f"<library {NAMESPACES}/>", WrongContentError, "the root element is <library>"),
        (index(TITLE.replace("5", "6")), WrongContentError, "'Title 6. Boats.', not of Title 5"),
        (index(TITLE.replace("Title", "Chapter")), WrongContentError, "not of Title 5"),
        (index(TITLE), SuspiciousYieldError, "has no section"),
    ],
)
def test_broken_index_is_named_with_its_cause(
    tmp_path: Path, text: str, error: type[Exception], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        walked(tmp_path, text)


# The list of titles -----------------------------------------------------------------------


class Published(LocalOrigin):
    """Files behind an address: what there is, only the publisher knows."""

    files = None


def published_roots(folder: Path) -> list[TocNode]:
    origin = Published(folder, base=source.info.base, version=VERSION)

    async def collect() -> list[TocNode]:
        return [root async for root in source.discover_unit_roots(origin)]

    return asyncio.run(collect())


def test_at_an_address_the_list_of_titles_is_asked_for() -> None:
    roots = published_roots(FILES)
    assert [(root.number, root.pages) for root in roots] == [
        ("1", ("us/dc/council/code/titles/1/index.xml",)),
        ("28", ("us/dc/council/code/titles/28/index.xml",)),
        ("29A", ("us/dc/council/code/titles/29A/index.xml",)),
        ("99", ("us/dc/council/code/titles/99/index.xml",)),
    ]


def test_an_address_without_the_list_has_no_code(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"us/dc/council/code/index\.xml"):
        published_roots(tmp_path)


CODE = f'<document {NAMESPACES} id="D.C. Code">'


@pytest.mark.parametrize(
    ("text", "error", "cause"),
    [
        ("", MalformedError, "index.xml: the file is empty"),
        ("<html><body>Moved</body></html>", WrongContentError, "index.xml: an HTML page"),
        (CODE, MalformedError, "index.xml: not well-formed XML"),
        (f"{CODE}</document>", SuspiciousYieldError, "lists no title"),
        (f"{CODE}{include('5-1')}</document>", MalformedError, "which is not the index of a title"),
        (f'{CODE}<xi:include href="/a"/></document>', MalformedError, "not the path of a file"),
        (CODE.replace("Code", "Law 9") + "</document>", WrongContentError, "not the list of"),
    ],
)
def test_broken_list_is_named_with_its_cause(
    tmp_path: Path, text: str, error: type[Exception], cause: str
) -> None:
    folder = tmp_path / "us" / "dc" / "council" / "code"
    folder.mkdir(parents=True)
    (folder / "index.xml").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=cause):
        published_roots(tmp_path)


@pytest.mark.parametrize("name", ["index.xml", "5-1.xml", "notes.txt"])
def test_folder_without_an_index_of_the_code_says_what_was_expected(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(f"<section {NAMESPACES}><num>5-1</num></section>")
    with pytest.raises(WrongContentError, match="expected a folder with us/dc/council/code"):
        unit_roots(source, tmp_path, VERSION)


def test_broken_file_among_the_indexes_is_named(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "index.xml").write_text(index(TITLE)[:-5])
    with pytest.raises(MalformedError, match=r"5/index\.xml: not well-formed XML"):
        unit_roots(source, tmp_path, VERSION)


def test_titles_without_a_list_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in ("10", "29A", "29", "9"):
        (tmp_path / number).mkdir()
        text = index(TITLE.replace("5", number))
        (tmp_path / number / "index.xml").write_text(text, encoding="utf-8")
    roots = unit_roots(source, tmp_path, VERSION)
    assert [root.number for root in roots] == ["9", "10", "29", "29A"]
