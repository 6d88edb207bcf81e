"""A law of e-Gov becomes a tree of levels, articles, supplements and appendices."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import as_golden, outline, sections, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import (
    MalformedError,
    SuspiciousYieldError,
    UsageError,
    WrongContentError,
)
from fonds.sources.jp import source
from fonds.sources.jurisdiction import JurisdictionAdapter, Page, TocNode

HERE: Final = Path(__file__).parent
BULK: Final = HERE / "files" / "bulk"
ADDRESS: Final = HERE / "files" / "address"
NEW: Final = BULK / "590AC0000000007_20910401_590AC0000000031.xml"
OLD: Final = BULK / "590AC0000000007_20900401_000000000000000.xml"
VERSION: Final = "2091-04-01"

PARAGRAPH: Final = (
    '<Paragraph Num="1"><ParagraphNum/><ParagraphSentence><Sentence Num="1">{}</Sentence>'
    "</ParagraphSentence></Paragraph>"
)


class Address:
    """An origin that, as e-Gov, has no list of files; its pages are those of a folder."""

    files = None

    def __init__(self, folder: Path, version: str = "") -> None:
        self.version = version
        self._pages = LocalOrigin(folder, base=source.info.base)

    async def read(self, page: str) -> Page:
        return await self._pages.read(page)


def article(number: str, text: str, title: str = "") -> str:
    named = f"<ArticleTitle>{title}</ArticleTitle>" if title else ""
    return f'<Article Num="{number}">{named}{PARAGRAPH.format(text)}</Article>'


def law(body: str, *, title: str = "<LawTitle>試験法</LawTitle>", attributes: str = "") -> str:
    number = "<LawNum>平成五年法律第八十八号</LawNum>"
    return f'<Law Lang="ja"{attributes}>{number}<LawBody>{title}{body}</LawBody></Law>'


def write(folder: Path, text: str, name: str = "act.xml") -> Path:
    path = folder / name
    path.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', encoding="utf-8")
    return path


def walked(path: Path, version: str = VERSION) -> list[str]:
    (root,) = unit_roots(source, path, version)
    above = f"jp/{version}/root/"
    return [line.removeprefix(above) for line in outline(walk_unit(source, root, path, version))]


def ids(path: Path) -> list[str]:
    return [line.partition("  ")[0].partition("/")[2] for line in walked(path)[1:]]


def newest(path: Path) -> str:
    return asyncio.run(source.newest_version(LocalOrigin(path, base=source.info.base)))


def collect(roots: AsyncIterator[TocNode]) -> list[TocNode]:
    async def all_of() -> list[TocNode]:
        return [root async for root in roots]

    return asyncio.run(all_of())


# The tree ---------------------------------------------------------------------------------


def test_it_is_an_adapter() -> None:
    assert isinstance(source, JurisdictionAdapter)


def test_the_outline_is_the_reviewed_one() -> None:
    (root,) = unit_roots(source, BULK, VERSION)
    lines = outline(walk_unit(source, root, BULK, VERSION))
    assert_golden("\n".join([*lines, ""]), HERE / "golden" / "outline.txt")


def test_the_sections_are_the_reviewed_ones() -> None:
    (root,) = unit_roots(source, BULK, VERSION)
    tree = walk_unit(source, root, BULK, VERSION)
    lines = [
        json.dumps(as_golden(section), ensure_ascii=False)
        for section in sections(source, tree, BULK, VERSION)
    ]
    assert_golden("\n".join([*lines, ""]), HERE / "golden" / "sections.jsonl")


def test_a_law_of_paragraphs_only_is_one_provision(tmp_path: Path) -> None:
    paragraphs = PARAGRAPH.format("一つ") + PARAGRAPH.format("二つ")
    path = write(tmp_path, law(f"<MainProvision>{paragraphs}</MainProvision>"))
    (root,) = unit_roots(source, path, VERSION)
    (section,) = sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    assert section.leaf.id == f"jp/{VERSION}/root/act-平成五年法律第八十八号/provision"
    assert section.shard.citation_string == "試験法"
    assert section.normalized().markdown == "一つ\n\n二つ\n"


def test_paragraphs_between_articles_stay_where_they_stand(tmp_path: Path) -> None:
    suppl = "<SupplProvisionLabel>附　則</SupplProvisionLabel>"
    mixed = PARAGRAPH.format("前") + article("1", "条", "第一条") + PARAGRAPH.format("後")
    path = write(tmp_path, law(f"<SupplProvision>{suppl}{mixed}</SupplProvision>"))
    assert ids(path) == [
        "supplement",
        "supplement/provision",
        "supplement/article-1",
        "supplement/provision~2",
    ]


def test_a_level_without_articles_keeps_its_node(tmp_path: Path) -> None:
    deleted = '<Chapter Num="1" Delete="true"><ChapterTitle>第一章　削除</ChapterTitle></Chapter>'
    other = article("1", "条", "第一条")
    path = write(tmp_path, law(f"<MainProvision>{deleted}{other}</MainProvision>"))
    assert walked(path)[1:] == [
        "act-平成五年法律第八十八号/chapter-1  第一章 削除",
        "act-平成五年法律第八十八号/article-1  第一条",
    ]


def test_numbers_that_are_left_out_are_read_from_the_titles(tmp_path: Path) -> None:
    text = PARAGRAPH.format("条")
    loose = f"<Article><ArticleTitle>第三条之二</ArticleTitle>{text}</Article>"
    body = f"<Subpart><SubpartTitle>第二分编</SubpartTitle>{loose}</Subpart>"
    path = write(tmp_path, law(f"<MainProvision>{body}</MainProvision>"))
    assert ids(path) == ["subpart-2", "subpart-2/article-3-2"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("削除", "deleted"),
        ("删除", "deleted"),
        ("（略）", "omitted"),
        ("削除する。", ""),
        ("条", ""),
    ],
)
def test_what_is_no_more_says_so(tmp_path: Path, text: str, status: str) -> None:
    path = write(tmp_path, law(f"<MainProvision>{article('1', text, '第一条')}</MainProvision>"))
    (root,) = unit_roots(source, path, VERSION)
    (section,) = sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    assert section.leaf.status == status


def test_only_an_article_that_is_all_deleted_is(tmp_path: Path) -> None:
    both = f'<Article Num="1">{PARAGRAPH.format("削除")}{PARAGRAPH.format("残る")}</Article>'
    path = write(tmp_path, law(f"<MainProvision>{both}</MainProvision>"))
    (root,) = unit_roots(source, path, VERSION)
    (section,) = sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    assert section.leaf.status == ""


# Units and editions -----------------------------------------------------------------------


def test_the_edition_is_the_day_of_the_newest_file() -> None:
    assert newest(BULK) == "2091-04-01"
    assert newest(OLD) == "2090-04-01"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2091-04-01", NEW),
        ("2099-12-31", NEW),
        ("2091-03-31", OLD),
        ("2089-01-01", OLD),
        ("second", NEW),
    ],
)
def test_an_edition_has_the_revision_of_its_day(version: str, expected: Path) -> None:
    (root,) = unit_roots(source, BULK, version)
    assert root.pages == (expected.name,)


def test_a_file_without_a_day_needs_a_version(tmp_path: Path) -> None:
    path = write(tmp_path, law(f"<MainProvision>{article('1', '条')}</MainProvision>"))
    with pytest.raises(UsageError, match="--version"):
        newest(path)


@pytest.mark.parametrize(
    ("attributes", "number"),
    [
        (' Era="Heisei" Year="05" Num="088" LawType="Act"', "405AC0000000088"),
        (' Era="Showa" Year="21" Num="0" LawType="Constitution"', "321CONSTITUTION"),
        (' Era="Taisho" Year="9" Num="12" LawType="ImperialOrder"', "209IO0000000012"),
        (' Era="Reiwa" Year="2" Num="1" LawType="CabinetOrder"', "502CO0000000001"),
        (
            ' Era="Heisei" Year="05" Num="3" LawType="MinisterialOrdinance"',
            "平成五年法律第八十八号",
        ),
        ("", "平成五年法律第八十八号"),
    ],
)
def test_a_file_of_any_name_is_known_by_what_it_says(
    tmp_path: Path, attributes: str, number: str
) -> None:
    body = f"<MainProvision>{article('1', '条', '第一条')}</MainProvision>"
    path = write(tmp_path, law(body, attributes=attributes))
    (root,) = unit_roots(source, path, VERSION)
    assert (root.number, root.identifier) == (number, "")
    (section,) = sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    assert section.shard.source_url.startswith("https://laws.e-gov.go.jp/api/1/lawdata/%E5%B9%B3")


def test_an_answer_of_the_second_api_tells_id_and_day(tmp_path: Path) -> None:
    told = "<law_info><law_id>405AC0000000088</law_id></law_info><revision_info><law_revision_id>"
    told += "405AC0000000088_20240401_504AC0100000052</law_revision_id></revision_info>"
    inside = law(f"<MainProvision>{article('1', '条', '第一条')}</MainProvision>")
    text = f"<law_full_text>{inside}</law_full_text>"
    path = write(tmp_path, f"<law_data_response>{told}{text}</law_data_response>")
    assert newest(path) == "2024-04-01"
    assert walked(path)[1] == "act-405AC0000000088/article-1  第一条"


def test_a_law_without_title_is_called_by_its_number(tmp_path: Path) -> None:
    body = f"<MainProvision>{article('1', '条', '第一条')}</MainProvision>"
    path = write(tmp_path, law(body, title=""))
    (root,) = unit_roots(source, path, VERSION)
    (section,) = sections(source, walk_unit(source, root, path, VERSION), path, VERSION)
    assert section.shard.citation_string == "平成五年法律第八十八号第一条"


def test_a_law_that_says_nothing_of_itself_is_known_by_its_title(tmp_path: Path) -> None:
    main = (
        f"<MainProvision><LawTitle>民法典</LawTitle>{article('1', '条', '第一条')}</MainProvision>"
    )
    path = write(tmp_path, f"<Law><LawBody>{main}</LawBody></Law>")
    assert walked(path) == ["act-民法典  民法典", "act-民法典/article-1  第一条"]


def test_undated_files_of_one_law_are_told_apart_by_their_names(tmp_path: Path) -> None:
    text = law(f"<MainProvision>{article('1', '条')}</MainProvision>")
    write(tmp_path, text, "a.xml")
    write(tmp_path, text, "b.xml")
    numbers = [root.number for root in unit_roots(source, tmp_path, VERSION)]
    assert numbers == ["平成五年法律第八十八号", "平成五年法律第八十八号:b.xml"]


# At e-Gov's address -----------------------------------------------------------------------


def test_the_list_of_laws_names_the_units() -> None:
    roots = collect(source.discover_unit_roots(Address(ADDRESS, VERSION)))
    assert [(root.number, root.label, root.pages) for root in roots] == [
        (
            "105DF0000000901",
            "明治五年太政官布告第九百一号（夜燈ノ布告）（明治五年太政官布告第九百一号）",
            ("api/1/lawdata/105DF0000000901",),
        ),
        ("590AC1000000008", "油法（令和九十年法律第八号）", ("api/1/lawdata/590AC1000000008",)),
    ]


@pytest.mark.parametrize(("hour", "day"), [(14, "2024-03-31"), (15, "2024-04-01")])
def test_the_edition_of_the_address_is_the_day_in_tokyo(
    tmp_path: Path, hour: int, day: str
) -> None:
    folder = tmp_path / "api" / "1" / "lawlists"
    folder.mkdir(parents=True)
    path = folder / "2"
    path.write_bytes((ADDRESS / source.index).read_bytes())
    # The page of a file was retrieved when the file was written.
    answered = datetime(2024, 3, 31, hour, 30, tzinfo=UTC).timestamp()
    os.utime(path, (answered, answered))
    assert asyncio.run(source.newest_version(Address(tmp_path))) == day


def test_an_answer_of_the_api_is_read_as_the_law_in_it() -> None:
    root = collect(source.discover_unit_roots(Address(ADDRESS, VERSION)))[0]
    tree = walk_unit(source, root, ADDRESS, VERSION)
    (section,) = sections(source, tree, ADDRESS, VERSION)
    golden = as_golden(section)
    assert golden["citation"] == "明治五年太政官布告第九百一号（夜燈ノ布告）"
    assert golden["url"] == "https://laws.e-gov.go.jp/law/105DF0000000901"
    assert golden["markdown"] == "夜燈ヲ絶ツヘカラス\n\n油ハ菜種ヲ用ヰル事\n"
    assert golden["published_at"] == VERSION


def test_a_law_that_the_api_does_not_have_says_so() -> None:
    root = collect(source.discover_unit_roots(Address(ADDRESS, VERSION)))[1]
    with pytest.raises(WrongContentError, match="e-Gov answers 1: 指定の条件"):
        walk_unit(source, root, ADDRESS, VERSION)


@pytest.mark.parametrize(
    ("entries", "error", "message"),
    [
        ("", SuspiciousYieldError, "empty"),
        ("<LawNameListInfo><LawId>../x</LawId></LawNameListInfo>", MalformedError, "id of a law"),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(
    tmp_path: Path, entries: str, error: type[Exception], message: str
) -> None:
    folder = tmp_path / "api" / "1" / "lawlists"
    folder.mkdir(parents=True)
    write(folder, f"<DataRoot><ApplData>{entries}</ApplData></DataRoot>", "2")
    with pytest.raises(error, match=message):
        collect(source.discover_unit_roots(Address(tmp_path, VERSION)))


# Broken input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.xml", b""),
        ("a.xml", b"<!DOCTYPE html><html><body><p>moved</p></body></html>"),
        ("a.xml", b"<Gesetz/>"),
        ("a.xml", b"<Law Era='Heisei'><LawNum>x"),
        ("a.txt", b"no XML"),
    ],
)
def test_a_file_without_a_law_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(WrongContentError, match="no act is in a"):
        unit_roots(source, tmp_path / name, VERSION)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_file_gives_no_half_law(tmp_path: Path, share: float) -> None:
    data = NEW.read_bytes()
    path = tmp_path / NEW.name
    path.write_bytes(data[: int(len(data) * share)])
    (root,) = unit_roots(source, path, VERSION)
    with pytest.raises(MalformedError, match="not well-formed"):
        walk_unit(source, root, path, VERSION)


def test_a_broken_law_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "590AC0000000009_20900401.xml").write_bytes(b"")
    (tmp_path / NEW.name).write_bytes(NEW.read_bytes())
    good, broken = unit_roots(source, tmp_path, VERSION)
    assert len(walk_unit(source, good, tmp_path, VERSION).tree) > 1
    with pytest.raises(MalformedError, match="empty"):
        walk_unit(source, broken, tmp_path, VERSION)


def test_text_outside_any_provision_is_not_lost_silently(tmp_path: Path) -> None:
    chapter = '<Chapter Num="1"><ChapterTitle>第一章　総則</ChapterTitle>迷子</Chapter>'
    path = write(tmp_path, law(f"<MainProvision>{chapter}</MainProvision>"))
    with pytest.raises(MalformedError, match="第一章 総則: '迷子'"):
        walked(path)


def test_two_laws_in_one_file_are_refused(tmp_path: Path) -> None:
    one = law(f"<MainProvision>{article('1', '条')}</MainProvision>")
    path = write(tmp_path, f"<DataRoot>{one}{one}</DataRoot>")
    with pytest.raises(MalformedError, match="two laws"):
        walked(path)


def test_a_part_of_a_law_is_refused(tmp_path: Path) -> None:
    contents = f"<LawContents>{article('1', '条')}</LawContents>"
    path = write(tmp_path, f"<DataRoot><ApplData>{contents}</ApplData></DataRoot>")
    with pytest.raises(WrongContentError, match="no act"):
        unit_roots(source, path, VERSION)


def test_a_law_without_any_provision_is_suspicious(tmp_path: Path) -> None:
    path = write(tmp_path, law("<MainProvision></MainProvision>"))
    with pytest.raises(SuspiciousYieldError, match="no section"):
        walked(path)
