"""The bundled United States Code: what is reviewed is what is served."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
from lxml import etree

from fonds.demo.bundle import DATA
from fonds.sources.usc import BASE
from fonds.sources.usc.outline import CURRENT, linked_files, past_page

CODE = DATA / "uscode.house.gov" / "download"
TITLES = sorted(CODE.rglob("usc*.xml"))
PAST = past_page("118-250") or ""
USLM = "{http://xml.house.gov/schemas/uslm/1.0}"


def _stamp(title: Path) -> str:
    return "-".join(title.parts[-3:-1])


def _packed(title: Path) -> Path:
    return title.with_name(f"xml_{title.stem}@{_stamp(title)}.zip")


@pytest.mark.parametrize("title", TITLES, ids=_stamp)
def test_an_archive_holds_the_title_beside_it(title: Path) -> None:
    with ZipFile(_packed(title)) as archive:
        assert archive.namelist() == [title.name]
        assert archive.read(title.name) == title.read_bytes(), "run scripts/pack-demo"


def test_the_pages_link_to_every_archive_and_to_no_other() -> None:
    linked = [
        CODE / file.page.partition("!")[0]
        for page in (CURRENT, PAST)
        for file in linked_files((CODE / page).read_text("utf-8"), page, BASE)
    ]
    assert sorted(linked) == sorted(CODE.rglob("*.zip")) == sorted(map(_packed, TITLES))


def test_the_newer_edition_has_a_repealed_range_and_a_reserved_section() -> None:
    newest = etree.parse(CODE / "releasepoints" / "us" / "pl" / "119" / "36" / "usc53.xml")
    found = {
        section.findtext(f"{USLM}num"): section.get("status")
        for section in newest.iter(f"{USLM}section")
    }
    assert len(found) == 10
    assert (found["[§§ 104 to 106."], found["[§ 203."]) == ("repealed", "reserved")
