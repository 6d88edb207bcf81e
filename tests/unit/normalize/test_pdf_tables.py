"""Tables of PDFs: between rules, by alignment, and over pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.unit.normalize.written_pdf import LINE, Said, written

from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer, page_tables
from fonds.normalize.pdf.page import PdfLine


def read(*pages: Iterable[Said | str]) -> NormalizedBody:
    return PdfNormalizer(recognizer=None).to_markdown(written(*pages))


def tables(*pages: Iterable[Said | str]) -> str:
    rows = [line for line in read(*pages).markdown.splitlines() if line.startswith("|")]
    return "\n".join(row for row in rows if not row.startswith("| ---"))


def stroke(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"{x0} {y0} m {x1} {y1} l S"


def ruled(
    lefts: Sequence[float], tops: Sequence[float], rows: Sequence[Sequence[str]]
) -> list[Said | str]:
    """A table with all rules; each text is set at the lower left of its cell."""
    page: list[Said | str] = [stroke(lefts[0], y, lefts[-1], y) for y in tops]
    page += [stroke(x, tops[-1], x, tops[0]) for x in lefts]
    for bottom, row in zip(tops[1:], rows, strict=False):
        page += [Said(x + 3, bottom + 5, text) for x, text in zip(lefts, row, strict=False) if text]
    return page


def test_merged_cells_are_repeated_over_the_rows_and_columns_they_span() -> None:
    page: list[Said | str] = [
        *(stroke(72, y, 372, y) for y in (700, 680, 640)),
        *(stroke(172, y, 372, y) for y in (660,)),
        *(stroke(x, 640, x, 700) for x in (72, 172, 372)),
        stroke(272, 640, 272, 680),
        *(Said(75, 686, "Plan"), Said(175, 686, "Limits of each plan")),
        *(Said(75, 655, "Platinum"), Said(175, 665, "Annual limit"), Said(275, 665, "2,300")),
        *(Said(175, 645, "Daily limit"), Said(275, 645, "90")),
    ]
    assert tables(page) == (
        "| Plan | Limits of each plan | Limits of each plan |\n"
        "| Platinum | Annual limit | 2,300 |\n"
        "| Platinum | Daily limit | 90 |"
    )


def test_boxes_for_digits_are_a_number() -> None:
    lefts = [72, 200, *(212 + 12 * n for n in range(7))]
    rows = [
        ["Donations", "", *"137628"],
        ["Loans", *"9137628"],
        ["Sales", "", "", "", *"4250"],
    ]
    page = ruled(lefts, [700, 680, 660, 640], rows)
    assert tables(page) == "| Donations | 137628 |\n| Loans | 9137628 |\n| Sales | 4250 |"


def test_dashed_and_shaded_cells_are_cells() -> None:
    dashes = [f"150 {y} 0.4 1.5 re f" for y in range(640, 700, 4)]
    page: list[Said | str] = [
        "0.8 g 72 680 200 20 re f 0 g",
        *(stroke(72, y, 272, y) for y in (680, 660, 640)),
        *(stroke(x, 640, x, 700) for x in (72, 272)),
        *dashes,
        *(Said(75, 686, "Fund"), Said(155, 686, "Pays")),
        *(Said(75, 666, "North"), Said(155, 666, "twice")),
        *(Said(75, 646, "South"), Said(155, 646, "once")),
    ]
    assert tables(page) == "| Fund | Pays |\n| North | twice |\n| South | once |"


def test_a_frame_around_sentences_is_no_table() -> None:
    page = [
        *ruled([72, 400], [700, 640, 600], []),
        Said(75, 680, LINE),
        Said(75, 610, f"{LINE}."),
    ]
    assert tables(page) == ""


def test_a_table_whose_rules_are_only_a_frame_is_read_by_its_lines() -> None:
    page: list[Said | str] = [
        *(stroke(72, y, 472, y) for y in (700, 680, 580)),
        *(stroke(x, 580, x, 700) for x in (72, 272, 472)),
    ]
    for left in (75, 275):
        page += [Said(left, 685, "Age"), Said(left + 100, 685, "Persons")]
    for row in range(7):
        y = 668 - 12 * row
        page += [Said(75, y, f"{row} years"), Said(175, y, f"3,53{row},692")]
        page += [Said(275, y, f"4{row} years"), Said(375, y, f"2,46{row},083")]
    rows = tables(page).splitlines()
    assert rows[0] == "| Age | Persons | Age | Persons |"
    assert rows[1] == "| 0 years | 3,530,692 | 40 years | 2,460,083 |"
    assert len(rows) == 8


def test_clauses_beside_their_numbers_are_no_table() -> None:
    clauses = ["Cataract", "Hernia", "Fissure in anus", "Gout", "Calculus", "Dental treatment"]
    page: list[Said | str] = []
    for at, clause in enumerate(clauses):
        label = "or" if at == 3 else f"{'abcdef'[at]})"
        page += [Said(72, 700 - 14 * at, label), Said(110, 700 - 14 * at, clause)]
        page += [Said(300, 700 - 14 * at, f"{at + 7}."), Said(340, 700 - 14 * at, clause)]
    assert tables(page) == ""


def test_the_lines_of_a_chart_are_no_table() -> None:
    page = ruled(
        [72, 172, 272, 372], [700, 660, 620, 580], [["30", "40", ""], ["20", "", "35"], ["10"]]
    )
    assert tables(page) == ""


def test_years_are_above_the_figures_of_a_table_without_rules() -> None:
    page = [
        *(Said(200 + 60 * n, 700, year) for n, year in enumerate(("2015", "2014", "2013"))),
        *(
            Said(72, 686, "Fees"),
            Said(200, 686, "310"),
            Said(260, 686, "290"),
            Said(320, 686, "288"),
        ),
        *(Said(72, 672, "Fines"), Said(200, 672, "12"), Said(260, 672, "9"), Said(320, 672, "14")),
        *(Said(72, 658, "Gifts"), Said(200, 658, "1"), Said(260, 658, "–"), Said(320, 658, "3")),
    ]
    assert tables(page) == (
        "| | 2015 | 2014 | 2013 |\n| Fees | 310 | 290 | 288 |\n"
        "| Fines | 12 | 9 | 14 |\n| Gifts | 1 | – | 3 |"
    )


def test_a_row_that_the_file_draws_at_once_is_divided_at_its_gaps() -> None:
    rows = (
        ("Fees", "310", "290"),
        ("Fines", "12", "9"),
        ("Gifts", "10", "36"),
        ("Sum", "332", "335"),
    )
    page = [
        f"BT /F1 10 Tf 1 0 0 1 72 {700 - 14 * n} Tm [({a}) {-7000 + 560 * len(a)} ({b}) "
        f"{-5000 + 560 * len(b)} ({c})] TJ ET"
        for n, (a, b, c) in enumerate(rows)
    ]
    assert tables(page) == "\n".join(f"| {a} | {b} | {c} |" for a, b, c in rows)


def test_text_after_a_table_is_not_part_of_it() -> None:
    rows = [["Fund", "Pays"], ["North", "twice"], ["South", "once"]]
    body = read([*ruled([72, 172, 272], [700, 680, 660, 640], rows), Said(72, 620, f"{LINE}.")])
    assert body.markdown.endswith(f"| South | once |\n\n{LINE}.\n")


def test_a_table_that_goes_on_over_pages_is_one() -> None:
    first = ruled(
        [72, 172, 272], [120, 100, 80, 60], [["Fund", "Pays"], ["North", "2"], ["South", "1"]]
    )
    second = ruled([72, 172, 272], [740, 720, 700], [["East", "3"], ["West", "4"]])
    body = read([Said(72, 300, f"{LINE}."), *first], [*second, Said(72, 400, f"{LINE}.")])
    assert body.report is not None
    assert body.report.tables == 1
    assert "| South | 1 |\n| East | 3 |\n| West | 4 |\n\n" in body.markdown
    assert body.markdown[body.pages[1].offset :].startswith("| East | 3 |")
    assert [mark.pdf_page for mark in body.pages] == [1, 2]


def test_columns_of_prose_are_no_table() -> None:
    page = [
        Said(40 + 190 * column, 700 - 12 * n, f"the council of port {n} heard the masters")
        for column in range(3)
        for n in range(8)
    ]
    assert tables(page) == ""


def test_contents_without_dots_are_no_table() -> None:
    titles = ("Moorings", "Fees", "Appeals", "Records", "Index")
    page = [
        part
        for n, title in enumerate(titles)
        for part in (Said(72, 700 - 14 * n, title), Said(400, 700 - 14 * n, str(3 * n + 1)))
    ]
    assert tables(page) == ""


def test_letter_of_a_font_that_is_like_the_mark_of_a_table_stays_text() -> None:
    line = PdfLine(text="one \ue7ff two", x0=72, x1=300, y=700, size=10, bold=False)
    parts = page_tables._divided(line, [])
    assert [part.text for part in parts] == ["one", "\ue7ff", "two"]
