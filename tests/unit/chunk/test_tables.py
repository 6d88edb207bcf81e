"""Passages cut from tables keep caption and header beside their text."""

from __future__ import annotations

import pytest
from tests.unit.normalize.written_docx import paragraph, table, word_file

from fonds.chunk.chunker import Chunker
from fonds.chunk.tables import MAX_HEADER_LENGTH
from fonds.model import Chunk, NormalizedBody
from fonds.normalize.registry import get_normalizer

ROWS = "\n".join(f"| Benefit number {n} of the plan | {n},100 | {n},200 |" for n in range(1, 60))


def _chunks(markdown: str) -> list[Chunk]:
    chunks = Chunker(max_tokens=200, overlap_tokens=40).chunk(NormalizedBody(markdown=markdown))
    assert all(markdown[each.start : each.end] == each.text for each in chunks)
    return chunks


def _table(header: str, rows: str = ROWS) -> str:
    columns = header.split("\n", 1)[0].count("|") - 1
    first, _, others = header.partition("\n")
    delimiter = "|" + " --- |" * columns
    return "\n".join(filter(None, [first, delimiter, others, rows]))


def test_passage_inside_a_table_has_its_caption_and_header() -> None:
    first, *others = _chunks(f"Table 3. Limits\n\n{_table('| Benefit | Gold | Silver |')}")
    assert first.lead_ins == ()
    assert len(others) > 2
    assert {each.lead_ins for each in others} == {("Table 3. Limits", "Benefit | Gold | Silver")}


def test_header_goes_on_up_to_the_first_row_of_figures() -> None:
    header = "| Benefit | Amount | Amount |\n| | 2015 | 2014 |"
    last = _chunks(_table(header))[-1]
    assert last.lead_ins == ("Benefit | Amount", "2015 | 2014")


def test_rows_of_words_below_the_header_are_no_header() -> None:
    rows = "\n".join(f"| Benefit number {n} | is paid in full |" for n in range(60))
    last = _chunks(_table("| Benefit | Payment |", rows))[-1]
    assert last.lead_ins == ("Benefit | Payment",)


def test_first_row_is_the_header_where_none_is_marked() -> None:
    rows = "\n".join(f"| Benefit number {n} | is paid in full |" for n in range(60))
    last = _chunks(_table("| | |", f"| Benefit | Payment |\n{rows}"))[-1]
    assert last.lead_ins == ("Benefit | Payment",)


def test_text_behind_a_table_has_none_of_it() -> None:
    sentence = "Words that follow a table are none of its rows, and have no header. " * 40
    last = _chunks(f"{_table('| Benefit | Gold | Silver |')}\n\n{sentence}")[-1]
    assert last.text.startswith("Words")
    assert last.lead_ins == ()


def test_piece_of_a_row_has_caption_and_header() -> None:
    row = f"| {'word ' * 400}| 1 | 2 |"
    chunks = _chunks(f"Limits in dollars\n\n{_table('| Benefit | Gold | Silver |', row)}")
    inside = [each for each in chunks if each.text.startswith("word")]
    assert inside
    assert all(each.lead_ins == ("Limits in dollars", "Benefit | Gold | Silver") for each in inside)


def test_caption_is_a_sentence_that_announces_the_table() -> None:
    prose = "A long paragraph says much about the plan, and nothing about the table. " * 4
    announced = f"{prose}The limits are as follows:\n\n{_table('| Benefit | Gold | Silver |')}"
    assert _chunks(announced)[-1].lead_ins[0] == "The limits are as follows:"
    unannounced = f"{prose}\n\n{_table('| Benefit | Gold | Silver |')}"
    assert _chunks(unannounced)[-1].lead_ins == ("Benefit | Gold | Silver",)


def test_page_mark_between_caption_and_table_is_passed_over() -> None:
    text = f"Table 3. Limits\n\n<!-- Page 4 -->\n\n{_table('| Benefit | Gold | Silver |')}"
    assert _chunks(text)[-1].lead_ins[0] == "Table 3. Limits"


def test_code_is_no_table() -> None:
    code = "\n".join(f"line {n} | of code | and more" for n in range(200))
    assert all(not each.lead_ins for each in _chunks(f"```\n{code}\n```"))


def test_marks_and_repeated_cells_are_left_out_of_a_header() -> None:
    header = "| **Benefit** | Gold plan | Gold plan | A \\| B |"
    rows = "\n".join(f"| Benefit number {n} | {n} | {n} | {n} |" for n in range(60))
    assert _chunks(_table(header, rows))[-1].lead_ins == ("Benefit | Gold plan | A | B",)


def test_header_of_paragraphs_is_shortened() -> None:
    long = "word " * 120
    last = _chunks(_table(f"| {long}| Gold | Silver |"))[-1]
    assert last.lead_ins[-1].endswith("…")
    assert len(last.lead_ins[-1]) <= MAX_HEADER_LENGTH + 1


def test_header_of_a_list_follows_the_introductions_of_its_list() -> None:
    table = _table("| Benefit | Gold | Silver |")
    text = f"The plan pays:\n\n(a) these limits:\n\n{table}\n\n(b) nothing else."
    inside = next(each for each in _chunks(text) if each.text.startswith("| Benefit number"))
    assert inside.lead_ins[0] == "The plan pays:"
    assert inside.lead_ins[-1] == "Benefit | Gold | Silver"


CELLS = [(f"Benefit number {n} of the plan", f"{n},100", f"{n},200") for n in range(1, 60)]
HTML_ROWS = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in CELLS)
HTML_TABLE = (
    "<caption>Table 3. Limits</caption><thead><tr><th>Benefit</th><th>Gold</th><th>Silver</th></tr>"
    f"</thead><tbody>{HTML_ROWS}</tbody>"
)
FILES = {
    "html_v1": f"<html><body><h1>Plan</h1><table>{HTML_TABLE}</table></body></html>".encode(),
    "docx_v1": word_file(
        paragraph("Table 3. Limits") + table(("Benefit", "Gold", "Silver"), *CELLS)
    ),
    "uslm_v1": (
        '<lawDoc xmlns="http://schemas.gpo.gov/xml/uslm"><main><section><num>1</num><content>'
        f'<table xmlns="http://www.w3.org/1999/xhtml">{HTML_TABLE}</table>'
        "</content></section></main></lawDoc>"
    ).encode(),
}


@pytest.mark.parametrize("normalizer", FILES)
def test_tables_of_other_formats_keep_caption_and_header(normalizer: str) -> None:
    body = get_normalizer(normalizer).to_markdown(FILES[normalizer])
    first, *others = _chunks(body.markdown)
    assert "Benefit number 1 " in first.text
    assert {each.lead_ins for each in others} == {("Table 3. Limits", "Benefit | Gold | Silver")}
