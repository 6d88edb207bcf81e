from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.packages import (
    children,
    fetched,
    loose,
    loose_bytes,
    package_task,
    parsed,
    without_bodies,
)

from fonds.errors import WrongContentError
from fonds.model import FetchTask
from fonds.sources.hearings import TABLES, cite_hearings, source

FILES = Path(__file__).parent / "files"
HOUSE, SENATE = "CHRG-118hhrg50001", "CHRG-117shrg50002"
SCAN, VOLUMES = "CHRG-79jhrg70003p4", "CHRG-107shrg80004"
PDF = b"%PDF-1.7\n"


def file(name: str) -> bytes:
    return (FILES / name).read_bytes()


def task_of(package: str) -> FetchTask:
    return package_task(source, "CHRG", package)


@pytest.mark.parametrize(
    "name", [f"{HOUSE}.mods.xml", f"{SENATE}.mods.xml", f"{SCAN}.mods.xml", f"{VOLUMES}.mods.xml"]
)
def test_records_of_mods_are_as_reviewed(name: str) -> None:
    records = without_bodies(source.parse(loose(FILES / name)))
    assert_golden(json_lines(records), FILES / f"{name}.golden.jsonl")


@pytest.mark.parametrize("name", [f"{HOUSE}.htm", "hearing.json"])
def test_records_without_mods_are_as_reviewed(name: str) -> None:
    records = without_bodies(source.parse(loose(FILES / name)))
    assert_golden(json_lines(records), FILES / f"{name}.golden.jsonl")


def test_columns_of_rows_are_those_of_the_tables() -> None:
    columns = {table.name: {column.name for column in table.c} for table in TABLES}
    for path in FILES.glob("*.mods.xml"):
        for record in parsed(source, loose(path))[0]:
            for row in (record, *record.children):
                assert row.payload.keys() <= columns[row.table]


def test_a_package_with_its_text_is_one_record() -> None:
    raw = fetched(task_of(HOUSE), {"mods": file(f"{HOUSE}.mods.xml"), "html": file(f"{HOUSE}.htm")})
    [record], further = parsed(source, raw)
    assert further == []
    assert record.document is not None
    assert record.document.raw.url.endswith("/mods.xml")
    body = record.document.body
    assert body is not None
    assert body.normalized is not None
    assert "“nobody” keeps it" in body.normalized.markdown
    assert "<all>" not in body.normalized.markdown
    assert len(children(record, "hearing_witnesses")) == 2


def test_the_pdf_is_the_body_where_the_text_is_a_cover() -> None:
    files = {"mods": file(f"{SENATE}.mods.xml"), "html": file(f"{SENATE}.htm")}
    records, [further] = parsed(source, fetched(task_of(SENATE), files))
    assert records == []
    [part] = further.parts
    assert part.url == f"https://www.govinfo.gov/content/pkg/{SENATE}/pdf/{SENATE}.pdf"
    assert part.path == f"{SENATE}/pdf/{SENATE}.pdf"
    [record], _ = parsed(source, fetched(further, {"pdf": PDF}))
    assert record.key == f"chrg:{SENATE}"
    assert record.document is not None
    assert record.document.body is not None
    assert (record.document.body.format, record.document.body.normalized) == ("pdf", None)
    assert record.document.raw.url.endswith("/mods.xml")


def test_a_pdf_that_is_missing_leaves_a_record_without_body() -> None:
    files = {"mods": file(f"{SENATE}.mods.xml"), "html": file(f"{SENATE}.htm")}
    _, [further] = parsed(source, fetched(task_of(SENATE), files))
    [record], _ = parsed(source, fetched(further, {}))
    assert record.document is not None
    assert record.document.body is None


@pytest.mark.parametrize("answer", [None, "error.html"])
def test_a_scan_is_read_from_its_pdf_whatever_its_text_answers(answer: str | None) -> None:
    files = {"mods": file(f"{SCAN}.mods.xml")} | ({"html": file(answer)} if answer else {})
    records, [further] = parsed(source, fetched(task_of(SCAN), files))
    assert records == []
    assert [part.name for part in further.parts] == ["pdf"]


def test_an_offered_text_that_answers_with_the_error_page_gives_way_to_the_pdf() -> None:
    files = {"mods": file(f"{HOUSE}.mods.xml"), "html": file("error.html")}
    records, [further] = parsed(source, fetched(task_of(HOUSE), files))
    assert records == []
    assert [part.name for part in further.parts] == ["pdf"]


def test_volumes_are_documents_and_the_first_is_fetched_with_the_package() -> None:
    files = {"mods": file(f"{VOLUMES}.mods.xml"), "html": file(f"{HOUSE}.htm")}
    [record], further = parsed(source, fetched(task_of(VOLUMES), files))
    assert record.key == f"chrg:{VOLUMES}"
    assert [task.key for task in further] == [f"{VOLUMES}-vol2#html", f"{VOLUMES}-err#html"]
    assert further[0].parts[0].path == f"{VOLUMES}/html/{VOLUMES}-vol2.htm"
    [second], _ = parsed(source, fetched(further[0], {"html": file(f"{HOUSE}.htm")}))
    assert second.key == f"chrg:{VOLUMES}-vol2"
    assert len(children(second, "hearing_witnesses")) == 2


def test_a_cover_fetched_for_a_volume_asks_for_its_pdf() -> None:
    files = {"mods": file(f"{VOLUMES}.mods.xml"), "html": file(f"{HOUSE}.htm")}
    _, further = parsed(source, fetched(task_of(VOLUMES), files))
    records, [pdf] = parsed(source, fetched(further[0], {"html": file(f"{SENATE}.htm")}))
    assert records == []
    assert pdf.key == f"{VOLUMES}-vol2#pdf"


def test_the_mods_of_another_package_is_wrong_content() -> None:
    raw = fetched(task_of(HOUSE), {"mods": file(f"{SENATE}.mods.xml")})
    with pytest.raises(WrongContentError, match=f"of {HOUSE} describes {SENATE}"):
        parsed(source, raw)


def test_the_error_page_in_place_of_mods_is_wrong_content() -> None:
    with pytest.raises(WrongContentError, match="HTML"):
        parsed(source, fetched(task_of(HOUSE), {"mods": file("error.html")}))


def test_a_loose_text_joins_its_loose_mods() -> None:
    [record], _ = parsed(source, loose(FILES / f"{HOUSE}.htm", FILES / f"{HOUSE}.mods.xml"))
    assert record.document is not None
    assert record.document.body is not None
    assert len(children(record, "hearing_bills")) == 4


def test_the_day_of_a_scan_is_known_to_be_unknown() -> None:
    [record], _ = parsed(source, loose(FILES / f"{SCAN}.mods.xml"))
    assert record.payload["date_is_placeholder"] is True
    assert record.payload["held_date"] is None
    assert record.payload["held_dates"] == ["1946-12-31"]


def test_the_last_day_of_a_year_is_a_day_where_nothing_says_otherwise() -> None:
    data = file(f"{SCAN}.mods.xml").replace(b"historical", b"deposited")
    [record], _ = parsed(source, loose_bytes(data, "mods.xml"))
    assert record.payload["held_date"] == "1946-12-31"


@pytest.mark.parametrize(
    ("committees", "expected"),
    [
        (
            [("H", "Committee on X", [])],
            "T: Hearing Before the H. Comm. on X, 119th Cong. (2025).",
        ),
        (
            [("S", "Committee on X", ["Subcommittee on Y"])],
            "T: Hearing Before the Subcomm. on Y of the S. Comm. on X, 119th Cong. (2025).",
        ),
        (
            [("J", "Joint Committee on Taxation", [])],
            "T: Hearing Before the J. Comm. on Taxation, 119th Cong. (2025).",
        ),
        (
            [("J", "Joint Economic Committee", [])],
            "T: Hearing Before the J. Economic Comm., 119th Cong. (2025).",
        ),
        (
            [("H", "Committee on X", []), ("S", "Select Committee on Z", [])],
            "T: Hearing Before the H. Comm. on X and the S. Select Comm. on Z, 119th Cong. (2025).",
        ),
        (
            [("H", "House Agriculture Committee", [])],
            "T: Hearing Before the H. Comm. on Agriculture, 119th Cong. (2025).",
        ),
        (
            [("H", "House X Subcommittee on Y", [])],
            "T: Hearing Before the Subcomm. on Y of the H. Comm. on X, 119th Cong. (2025).",
        ),
        (
            [("H", "House X Committee", []), ("H", "House X Subcommittee on Y", [])],
            "T: Hearing Before the Subcomm. on Y of the H. Comm. on X, 119th Cong. (2025).",
        ),
        ([], "T: Hearing, 119th Cong. (2025)."),
    ],
)
def test_a_hearing_is_cited_by_who_held_it(
    committees: list[tuple[str | None, str, list[str]]], expected: str
) -> None:
    cited = cite_hearings(title="T.", committees=committees, congress=119, year="2025")
    assert cited == expected


def test_what_is_unknown_is_left_out_of_a_citation() -> None:
    cited = cite_hearings(title="T", committees=[], congress=None, year=None, host="Commission")
    assert cited == "T: Hearing Before the Commission."
    assert cite_hearings(title="T", committees=[], congress=118, year=None).endswith(" 118th Cong.")


def test_a_title_that_says_who_held_the_hearings_is_cut_there() -> None:
    title = "Fog signals. Part 4: hearings before the Joint Committee on Fog, 79th Congress"
    cited = cite_hearings(title=title, committees=[], congress=79, year="1946")
    assert cited == "Fog signals. Part 4: Hearing, 79th Cong. (1946)."
