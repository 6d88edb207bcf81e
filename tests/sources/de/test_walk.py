"""Acts of gesetze-im-internet.de, from files to documents."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Final

import pytest
from tests.sources.golden import assert_golden
from tests.sources.statutes import as_golden, outline, sections, unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.errors import (
    DuplicateKeyError,
    FondsError,
    MalformedError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.sources.de import source
from fonds.sources.jurisdiction import JurisdictionAdapter, TocNode

HERE: Final = Path(__file__).parent
FILES: Final = HERE / "files"
ACT: Final = FILES / "gesetze" / "hafeng_2011" / "hafeng_2011.xml"
VERSION: Final = "2024-05-17"


class AtAddress(LocalOrigin):
    """The same files, without a list of them."""

    @property
    def files(self) -> None:
        return None


def unit(path: Path, number: str) -> TocNode:
    return next(root for root in unit_roots(source, path, VERSION) if root.number == number)


def lines(path: Path, number: str) -> list[str]:
    return outline(walk_unit(source, unit(path, number), path, VERSION))


def write(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def an_act(*norms: str, abbreviation: str = "XG") -> str:
    first = f"<norm><metadaten><jurabk>{abbreviation}</jurabk><langue>X</langue></metadaten></norm>"
    return f'<dokumente builddate="20200102030405">{first}{"".join(norms)}</dokumente>'


def a_norm(name: str, text: str = "Text.") -> str:
    return (
        f"<norm><metadaten><jurabk>XG</jurabk><enbez>{name}</enbez></metadaten><textdaten>"
        f"<text><Content><P>{text}</P></Content></text></textdaten></norm>"
    )


def a_division(key: str, name: str) -> str:
    return (
        "<norm><metadaten><jurabk>XG</jurabk><gliederungseinheit>"
        f"<gliederungskennzahl>{key}</gliederungskennzahl><gliederungsbez>{name}</gliederungsbez>"
        "</gliederungseinheit></metadaten></norm>"
    )


def test_is_an_adapter_of_a_code() -> None:
    assert isinstance(source, JurisdictionAdapter)


@pytest.mark.parametrize("number", ["hafeng_2011", "hafengeg"])
def test_acts_become_documents_as_reviewed(number: str) -> None:
    walked = walk_unit(source, unit(FILES, number), FILES, VERSION)
    found = [as_golden(section) for section in sections(source, walked, FILES, VERSION)]
    documents = [json.dumps(document, ensure_ascii=False) for document in found]
    text = "\n".join([*outline(walked), "", *documents, ""])
    assert_golden(text, HERE / "golden" / f"{number}.txt")


def test_the_newest_file_gives_the_edition() -> None:
    origin = LocalOrigin(FILES, base=source.info.base)
    assert asyncio.run(source.newest_version(origin)) == "2024-05-17"


def test_each_act_is_dated_by_its_own_file() -> None:
    walked = walk_unit(source, unit(FILES, "hafengeg"), FILES, VERSION)
    assert walked.published_at == "2023-01-02"


def test_a_single_file_is_an_edition_of_one_act() -> None:
    (root,) = unit_roots(source, ACT, VERSION)
    assert root.number == "h_feng_2011"  # as the publisher replaces letters it does not use
    assert lines(ACT, "h_feng_2011")


def test_the_site_is_read_by_its_list(tmp_path: Path) -> None:
    write(tmp_path, "gii-toc.xml", (FILES / "gii-toc.xml").read_bytes())
    (tmp_path / "hafeng_2011").mkdir()
    with zipfile.ZipFile(tmp_path / "hafeng_2011" / "xml.zip", "w") as archive:
        archive.write(ACT, "BJNR000010011.xml")
    origin = AtAddress(tmp_path, base=source.info.base)

    async def listed() -> list[TocNode]:
        return [root async for root in source.discover_unit_roots(origin)]

    roots = asyncio.run(listed())
    assert [(root.number, root.pages) for root in roots] == [
        ("hafeng_2011", ("hafeng_2011/xml.zip!*.xml",)),
        ("hafengeg", ("hafengeg/xml.zip!*.xml",)),
    ]
    from_site = outline(walk_unit(source, roots[0], tmp_path, VERSION))
    assert from_site == lines(FILES, "hafeng_2011")
    fetched = asyncio.run(origin.read("gii-toc.xml")).archived.retrieved_at
    assert asyncio.run(source.newest_version(origin)) == fetched.date().isoformat()


def test_a_folder_of_archives_is_read_like_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "hafeng_2011").mkdir()
    with zipfile.ZipFile(tmp_path / "hafeng_2011" / "xml.zip", "w") as archive:
        archive.write(ACT, "BJNR000010011.xml")
    (root,) = unit_roots(source, tmp_path, VERSION)
    assert root.number == "hafeng_2011"


@pytest.mark.parametrize(
    ("index", "error", "cause"),
    [
        ("<items/>", SuspiciousYieldError, "lists no act"),
        ("<html><body>Wartung</body></html>", WrongContentError, "HTML"),
        (
            "<items><item><title>X</title><link>http://elsewhere.example/x.pdf</link></item></items>",
            MalformedError,
            "leads to no act",
        ),
    ],
)
def test_a_list_that_is_none_says_why(
    tmp_path: Path, index: str, error: type[FondsError], cause: str
) -> None:
    write(tmp_path, "gii-toc.xml", index)
    origin = LocalOrigin(tmp_path, base=source.info.base)
    page = asyncio.run(origin.read("gii-toc.xml"))
    with pytest.raises(error, match=cause):
        list(source.listed(page))


def test_divisions_follow_their_keys_also_where_levels_are_skipped(tmp_path: Path) -> None:
    act = an_act(
        a_division("010", "Buch 1"),
        a_division("010020010", "Titel 1"),
        a_norm("§ 1"),
        a_division("010020010", "Titel 1"),
        a_norm("§ 2"),
        a_division("010030", "Kapitel 3"),
        a_norm("§ 3"),
        a_division("020", "Buch 2"),
        a_division("020", "Buch 2a"),
        a_norm("§ 4"),
    )
    path = write(tmp_path, "xg/xg.xml", act).parents[1]
    assert [line.split()[0].removeprefix(f"de/{VERSION}/root/") for line in lines(path, "xg")] == [
        "act-xg",
        "act-xg/buch-1",
        "act-xg/buch-1/titel-1",
        "act-xg/buch-1/titel-1/section-1",
        "act-xg/buch-1/titel-1/section-2",
        "act-xg/buch-1/kapitel-3",
        "act-xg/buch-1/kapitel-3/section-3",
        "act-xg/buch-2",
        "act-xg/buch-2a",
        "act-xg/buch-2a/section-4",
    ]


def test_a_division_without_key_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "xg.xml", an_act(a_division("", "Buch 1"), a_norm("§ 1")))
    with pytest.raises(MalformedError, match="'Buch 1' has no key"):
        lines(tmp_path, "xg")


def test_an_act_that_is_only_announced_fails_alone(tmp_path: Path) -> None:
    write(tmp_path, "a/a.xml", an_act(abbreviation="A"))
    write(tmp_path, "b/b.xml", an_act(a_norm("§ 1"), abbreviation="B"))
    with pytest.raises(SuspiciousYieldError, match="act-a has no section"):
        lines(tmp_path, "a")
    assert lines(tmp_path, "b")


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (ACT.read_bytes()[:5000], MalformedError, "not well-formed"),
        (ACT.read_bytes()[:300], MalformedError, "before its <metadaten>"),
        (b"<html><body><p>Nicht gefunden</p></body></html>", WrongContentError, "HTML page"),
        (b"", MalformedError, "empty"),
        (an_act(abbreviation="").encode(), MalformedError, "no abbreviation"),
    ],
)
def test_a_broken_act_fails_alone_and_says_why(
    tmp_path: Path, data: bytes, error: type[FondsError], cause: str
) -> None:
    write(tmp_path, "broken/broken.xml", data)
    write(tmp_path, "xg/xg.xml", an_act(a_norm("§ 1")))
    assert {root.number for root in unit_roots(source, tmp_path, VERSION)} == {"broken", "xg"}
    with pytest.raises(error, match=cause):
        lines(tmp_path, "broken")
    assert lines(tmp_path, "xg")


def test_a_folder_without_acts_says_what_was_expected(tmp_path: Path) -> None:
    write(tmp_path, "readme.txt", "no act")
    write(tmp_path, "gii-toc.xml", "<items/>")
    with pytest.raises(WrongContentError, match="expected XML that begins with <dokumente>"):
        unit_roots(source, tmp_path, VERSION)


def test_one_act_in_two_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "one/BJNR1.xml", an_act(a_norm("§ 1")))
    write(tmp_path, "two/BJNR1.xml", an_act(a_norm("§ 1")))
    with pytest.raises(DuplicateKeyError, match=r"one/BJNR1\.xml and two/BJNR1\.xml"):
        unit_roots(source, tmp_path, VERSION)
