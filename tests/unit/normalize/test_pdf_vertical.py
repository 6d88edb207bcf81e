from __future__ import annotations

import pytest
from tests.unit.normalize.written_pdf import assembled

from fonds.normalize.pdf import PdfNormalizer

COLUMNS = [
    "収支報告書の要旨を公表する件",
    "第一条この告示は公布の日から施行する。ただし、",
    "第三条の規定は、六月を超えない範囲内で施行する",
    "。第二条総務大臣は、要旨を公表しなければならない",
]
FONT = (
    "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 /CIDSystemInfo << /Registry "
    "(Adobe) /Ordering (Japan1) /Supplement 2 >> /FontDescriptor 5 0 R /DW 1000 >>"
)
DESCRIPTOR = (
    "<< /Type /FontDescriptor /FontName /HeiseiMin-W3 /Flags 4 /FontBBox [0 -120 1000 880] "
    "/ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 880 /StemV 90 >>"
)


def japanese(*drawn: tuple[float, float, str], encoding: str = "UniJIS-UCS2-H") -> bytes:
    """A page with Japanese texts at places of it, 12 points high."""
    content = "\n".join(
        f"BT /F1 12 Tf {x} {y} Td <{text.encode('utf-16-be').hex()}> Tj ET" for x, y, text in drawn
    )
    return assembled(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [6 0 R] /Count 1 >>",
            (
                f"<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /{encoding} "
                "/DescendantFonts [4 0 R] >>"
            ),
            FONT,
            DESCRIPTOR,
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 7 0 R "
                "/Resources << /Font << /F1 3 0 R >> >> >>"
            ),
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    )


def letters(x: float, y: float, text: str) -> list[tuple[float, float, str]]:
    """Each letter below the last."""
    return [(x, y - 12 * at, letter) for at, letter in enumerate(text)]


def text_of(data: bytes) -> str:
    markdown = PdfNormalizer(recognizer=None).to_markdown(data).markdown
    return "".join(markdown.split())


def placed() -> list[list[tuple[float, float, str]]]:
    return [letters(500 - 24 * at, 700, column) for at, column in enumerate(COLUMNS)]


def test_columns_of_a_vertical_font_are_read_from_the_right() -> None:
    drawn = [(500 - 24 * at, 700, column) for at, column in enumerate(COLUMNS)]
    assert text_of(japanese(*drawn, encoding="UniJIS-UCS2-V")) == "".join(COLUMNS)


def test_columns_drawn_letter_by_letter_are_read_from_the_right() -> None:
    drawn = [letter for column in placed() for letter in column]
    assert text_of(japanese(*drawn)) == "".join(COLUMNS)


def test_columns_drawn_from_the_left_are_read_from_the_right() -> None:
    drawn = [letter for column in reversed(placed()) for letter in column]
    assert text_of(japanese(*drawn)) == "".join(COLUMNS)


def test_letters_drawn_row_by_row_are_read_in_columns() -> None:
    rows = max(map(len, COLUMNS))
    drawn = [column[row] for row in range(rows) for column in placed() if row < len(column)]
    assert text_of(japanese(*drawn)) == "".join(COLUMNS)


def test_tiers_of_columns_are_read_from_the_top() -> None:
    tiers = [
        (500 - 24 * at, y, column)
        for y, columns in ((700, COLUMNS[:2]), (300, COLUMNS[2:]))
        for at, column in enumerate(columns)
    ]
    assert text_of(japanese(*tiers[::-1], encoding="UniJIS-UCS2-V")) == "".join(COLUMNS)


def test_a_column_continues_its_paragraph() -> None:
    drawn = [(500 - 24 * at, 700, column) for at, column in enumerate(COLUMNS[1:3])]
    body = PdfNormalizer(recognizer=None).to_markdown(japanese(*drawn, encoding="UniJIS-UCS2-V"))
    assert body.markdown == "".join(COLUMNS[1:3]) + "\n"


def test_forms_that_japanese_print_does_not_use_are_a_warning() -> None:
    body = PdfNormalizer(recognizer=None).to_markdown(japanese((72, 700, "三田優德は税を納めた。")))
    assert body.warnings == ("page 1: its text layer has 德, where Japanese print usually has 徳",)
    assert "優德" in body.markdown


def test_letters_for_parts_of_letters_become_letters() -> None:
    body = PdfNormalizer(recognizer=None).to_markdown(japanese((72, 700, "⾦額と⽇付を⼊れる。")))
    assert body.markdown == "金額と日付を入れる。\n"


@pytest.mark.parametrize("gap", [13, 24])
def test_level_lines_stay_in_their_order(gap: float) -> None:
    drawn = [(72, 700 - gap * at, column) for at, column in enumerate(COLUMNS)]
    assert text_of(japanese(*drawn)) == "".join(COLUMNS)
