from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pdf_oxide
import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq
from tests.unit.normalize.written_pdf import LINE, PICTURE, Said, lines, paragraph, written

from fonds.errors import (
    EncryptedError,
    MalformedError,
    NoTextError,
    ParseError,
    WrongContentError,
)
from fonds.model import NormalizedBody, OcrPage, ReadingReport
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.pdf.running_heads import page_labels
from fonds.normalize.registry import Normalizer

PLAIN = PdfNormalizer(recognizer=None)


def read(*pages: Iterable[Said | str], **how: Any) -> NormalizedBody:
    return PLAIN.to_markdown(written(*pages, **how))


def test_it_is_a_normalizer() -> None:
    assert isinstance(PLAIN, Normalizer)
    assert (PLAIN.label, PLAIN.accepts_format) == ("pdf_v1@3.0.0", "pdf")


def test_lines_of_a_paragraph_become_one_and_a_gap_begins_another() -> None:
    body = read(lines(72, 700, LINE, "under this part.") + lines(72, 650, "The record is public."))
    assert body.markdown == f"{LINE} under this part.\n\nThe record is public.\n"


def test_two_columns_are_read_one_after_the_other() -> None:
    title = [Said(72, 740, "A title over both columns of this page, set rather large", 16)]
    body = read(title + paragraph(72, 700, "left") + paragraph(320, 700, "right"))
    words = re.findall(r"(?:left|right)\d", body.markdown)
    assert words == [f"left{n}" for n in range(8)] + [f"right{n}" for n in range(8)]
    assert body.headings[0].text.startswith("A title over both columns")


def test_a_full_width_line_ends_the_columns_above_it() -> None:
    across = [Said(72, 560, f"ACROSS {LINE} and every one that it refused, too")]
    below = paragraph(72, 520, "third") + paragraph(320, 520, "fourth")
    body = read(paragraph(72, 700, "first") + paragraph(320, 700, "second") + across + below)
    found = re.findall(r"first0|second0|ACROSS|third0|fourth0", body.markdown)
    assert found == ["first0", "second0", "ACROSS", "third0", "fourth0"]


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("They met the require-", "ments of the part.", "the requirements of"),
        ("It is a well-", "known rule, and a well-known one.", "a well-known rule"),
        ("Rules on import- and on ex-", "port duties were made.", "import- and on export duties"),
        ("For two-", "and three-year terms.", "two- and three-year"),
        ("As in the Smith-", "Jones report.", "the Smith-Jones report"),
    ],
)
def test_hyphens_at_line_ends(before: str, after: str, joined: str) -> None:
    assert joined in read(lines(72, 700, before, after)).markdown


def test_a_word_hyphenated_over_a_page_is_rejoined_and_the_page_marked_inside_it() -> None:
    body = read(lines(72, 400, f"{LINE} and the appli-"), lines(72, 700, "cants it heard."))
    assert "and the applicants it heard." in body.markdown
    assert [page.page for page in body.pages] == ["1", "2"]
    assert body.markdown[body.pages[1].offset :].startswith("cants it heard.")


def seen(markdown: str) -> str:
    return re.sub(r"<!--.*?-->", "", markdown)


def heads_and_feet(number: int) -> list[Said]:
    return [
        Said(72, 760, "Manual of the Harbour Board"),
        Said(300, 30, str(number)),
        *lines(72, 650, f"{LINE}.", f"What page {number} says stands on no other one."),
    ]


def test_running_heads_and_page_numbers_leave_the_text_and_name_the_pages() -> None:
    body = read(*(heads_and_feet(number) for number in range(17, 22)))
    assert "Harbour Board" not in seen(body.markdown)
    assert [page.page for page in body.pages] == ["17", "18", "19", "20", "21"]
    for mark in body.pages:
        assert f"What page {mark.page} says" in body.markdown[mark.offset :]
    assert body.markdown.count("What page") == 5


def test_no_head_stands_inside_a_word_that_the_page_cuts() -> None:
    pages = [heads_and_feet(number) for number in range(17, 22)]
    pages[1] = [*pages[1][:2], *lines(72, 400, f"{LINE} and the appli-")]
    pages[2] = [*pages[2][:2], *lines(72, 650, "cants it heard.")]
    body = read(*pages)
    assert "and the applicants<!-- " in body.markdown
    assert "and the applicants it heard." in seen(body.markdown)


def test_a_line_that_also_stands_inside_a_page_is_no_running_head() -> None:
    page = [Said(72, 760, "This clause is for the record only."), *lines(72, 650, LINE)]
    inside = [*page, Said(72, 500, "This clause is for the record only.")]
    body = read(page, inside, page, page)
    assert body.markdown.count("This clause is for the record only.") == 5


def test_page_labels_of_the_file_name_pages_that_print_no_number() -> None:
    labels = "/PageLabels << /Nums [0 << /S /r >> 2 << /S /D >>] >>"
    body = read(*([Said(72, 600, f"{LINE} {name}.")] for name in "abc"), extra=labels)
    assert [page.page for page in body.pages] == ["i", "ii", "1"]
    assert [page.pdf_page for page in body.pages] == [1, 2, 3]


def test_a_page_that_prints_no_number_is_counted_with_its_neighbours_only() -> None:
    cover = [Said(72, 600, f"{LINE} of the cover.")]
    pages = [heads_and_feet(number) for number in range(1, 9)]
    pages[3] = [Said(72, 600, f"{LINE} of a whole page.")]
    body = read(cover, *pages)
    assert [mark.page for mark in body.pages] == [None, *map(str, range(1, 9))]
    assert [mark.pdf_page for mark in body.pages] == list(range(1, 10))


@pytest.mark.parametrize(
    ("printed", "declared", "names"),
    [
        ([None, None], [None, None], ["1", "2"]),
        ([None, "1", "2"], ["1", "2", "3"], [None, "1", "2"]),
        (["1", None, None, "4"], [None] * 4, ["1", "2", "3", "4"]),
        (["1", None, "7"], [None] * 3, ["1", None, "7"]),
        (["x", None, "1"], [None, "xi", "1"], ["x", "xi", "1"]),
    ],
)
def test_names_of_pages(
    printed: list[str | None], declared: list[str | None], names: list[str | None]
) -> None:
    assert page_labels(printed, declared) == names


def test_headings_are_told_by_size() -> None:
    page = [
        Said(72, 740, "Harbour Rules", 20),
        Said(72, 700, "Part I Moorings", 14),
        *lines(72, 670, f"{LINE} and", "every one that it refused.", "It is public."),
    ]
    headings = read(page).headings
    assert [(h.level, h.text, h.section) for h in headings] == [
        (1, "Harbour Rules", None),
        (2, "Part I Moorings", "Part I"),
    ]


def test_a_size_that_much_of_the_text_is_set_in_makes_no_headings() -> None:
    small = lines(72, 400, *[f"{LINE} {n}" for n in range(8)], size=8)
    large = [Said(72, 720 - 40 * n, f"Rule {n} is set in larger type.", 12) for n in range(8)]
    assert read([*large, *small]).headings == ()


def test_section_headings_set_only_in_bold_carry_their_label() -> None:
    page = [
        Said(72, 740, "§ 60.112b Standard for vessels.", bold=True),
        *lines(72, 720, f"{LINE} and", "every one that it refused."),
        Said(72, 660, "§ 60.113b Testing.", bold=True),
        Said(170, 660, "The operator shall test each vessel."),
    ]
    body = read(page)
    assert [(h.text, h.section) for h in body.headings] == [
        ("§ 60.112b Standard for vessels.", "§ 60.112b"),
        ("§ 60.113b Testing.", "§ 60.113b"),
    ]
    for heading in body.headings:
        assert body.markdown[heading.offset :].startswith(f"# {heading.text}\n")
    assert "\n\nThe operator shall test each vessel.\n" in body.markdown


def test_enumerations_keep_their_own_labels() -> None:
    page = lines(72, 700, "(a) The first.", "(b) The second.", "(ii) A third.", "4. The fourth.")
    labelled = ["(a) The first.", "(b) The second.", "(ii) A third.", "4\\. The fourth.\n"]
    assert read(page).markdown.split("\n\n") == labelled


def test_footnotes_stay_linked_and_numbers_that_begin_anew_stay_apart() -> None:
    def page(word: str) -> list[Said]:
        return [
            *lines(72, 700, f"{LINE} {word}", "and the rule it made"),
            Said(161, 692, "1", 6),
            Said(72, 150, "1", 5),
            Said(77, 148, f"Note of the {word} page.", 7),
        ]

    markdown = read(page("first"), page("second")).markdown
    assert "the rule it made[^1]" in markdown
    assert "\n\n[^1]: Note of the first page.\n" in markdown
    assert "the rule it made[^1-2]" in markdown
    assert "\n\n[^1-2]: Note of the second page.\n" in markdown


def test_a_small_number_without_a_note_stays_what_it_is() -> None:
    page = [Said(72, 700, "The limit for CO"), Said(142, 702, "2 ", 6), Said(147, 700, "is low.")]
    assert read(page).markdown == "The limit for CO2 is low.\n"


def ruled_table(rows: Sequence[tuple[str, ...]]) -> list[Said | str]:
    """A grid with rules, its cells 120 wide and 20 high."""
    right, bottom = 72 + 120 * len(rows[0]), 700 - 20 * len(rows)
    across = [f"72 {y} m {right} {y} l S" for y in range(bottom, 701, 20)]
    down = [f"{x} 700 m {x} {bottom} l S" for x in range(72, right + 1, 120)]
    cells = [
        Said(78 + 120 * column, 686 - 20 * row, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    return [*across, *down, *cells]


def test_a_sound_table_is_a_pipe_table() -> None:
    rows = [("Vessel", "Fee", "Term"), ("Barge", "12 a|b", "1 year"), ("Tug", "30", "2 years")]
    body = read([*ruled_table(rows), Said(72, 600, f"{LINE}.")])
    assert body.markdown.startswith(
        "| Vessel | Fee | Term |\n| --- | --- | --- |\n"
        "| Barge | 12 a\\|b | 1 year |\n| Tug | 30 | 2 years |\n\n"
    )


def test_what_markdown_would_read_as_markup_is_escaped() -> None:
    assert read([Said(72, 700, "# 5 of the *rules*")]).markdown == "\\# 5 of the \\*rules\\*\n"


# What is no PDF, or a bad one --------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b"\0" * 64, MalformedError, "empty"),
        (b"<!DOCTYPE html><title>Sorry</title>", WrongContentError, "web page"),
        (b"PK\x03\x04 a spreadsheet", WrongContentError, "does not begin with %PDF"),
        (b"%PDF-1.7\nnothing else", MalformedError, "damaged or cut off"),
        (written([PICTURE]), NoTextError, r"pictures.*pip install 'fonds\[ocr\]'"),
        (written([]), NoTextError, "blank"),
        (written([], box="0 0 0 0"), NoTextError, "blank"),
    ],
)
def test_what_gives_no_text_is_a_named_error(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        PLAIN.to_markdown(data)


def test_a_password_is_named_as_the_cause() -> None:
    document = pdf_oxide.PdfDocument.from_bytes(written([Said(72, 700, LINE)]))
    with pytest.raises(EncryptedError, match="password"):
        PLAIN.to_markdown(document.to_bytes_encrypted("secret", "owner"))


def test_a_file_encrypted_without_a_password_is_read() -> None:
    document = pdf_oxide.PdfDocument.from_bytes(written([Said(72, 700, LINE)]))
    assert LINE in PLAIN.to_markdown(document.to_bytes_encrypted("", "owner")).markdown


def test_text_on_a_page_without_size_is_read() -> None:
    assert LINE in read([Said(72, 700, LINE)], box="0 0 0 0").markdown


def test_attachments_are_named_as_not_read() -> None:
    document = pdf_oxide.PdfDocument.from_bytes(written([Said(72, 700, LINE)]))
    document.embed_file("notes.txt", b"attached")
    body = PLAIN.to_markdown(document.to_bytes())
    assert body.warnings == ("1 attached files are not read",)


@settings(max_examples=40)
@given(st.data())
def test_damaged_files_give_text_or_a_named_error(data: st.DataObject) -> None:
    whole = bytearray(written(lines(72, 700, LINE, LINE), paragraph(72, 700, "second")))
    for _ in range(data.draw(st.integers(1, 12))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    for damaged in (bytes(whole), bytes(whole[:cut])):
        try:
            body = PLAIN.to_markdown(damaged)
        except ParseError as error:
            assert str(error)  # noqa: PT017 — either outcome is right, another exception is not
        else:
            assert body.markdown


# Real files --------------------------------------------------------------------------------


def test_real_files_give_text_or_a_named_error(corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/pdf").rglob("*.pdf"))
    assert files
    for file in files:
        try:
            body = PLAIN.to_markdown(file.read_bytes())
        except ParseError as error:
            assert "PDF" in str(error)  # noqa: PT017 — either outcome is right
            continue
        assert body.markdown.strip(), file
        for heading in body.headings:
            assert body.markdown[heading.offset :].startswith("#" * heading.level + " "), file


def test_real_files_keep_the_words_pdfium_reads_in_its_order(corpus: Callable[[str], Path]) -> None:
    files = sorted((corpus("sites/pdf") / "gov").glob("*.pdf"))
    assert files
    shares = {file.name: share_kept(file) for file in files}
    assert {name: share for name, share in shares.items() if share < 0.98} == {}


def share_kept(file: Path) -> float:
    """The share of pdfium's words that are in the body in the same order, heads and feet too."""
    try:
        body = PLAIN.to_markdown(file.read_bytes())
    except NoTextError:
        return 1.0
    document = pypdfium2.PdfDocument(file)
    texts = [page.get_textpage().get_text_range() for page in document]
    joined = re.sub("\ufffe|-\r\n(?=[a-z])", "", "\n".join(texts))
    ours = body.markdown
    for artifact in sorted(body.artifacts, key=lambda artifact: -artifact.offset):
        at = artifact.offset
        ours = f"{ours[:at]}\n{artifact.content}\n{ours[at:]}"
    theirs, kept = (re.findall(r"[^\W_]+", text.lower()) for text in (joined, ours))
    return LCSseq.similarity(theirs, kept) / max(len(theirs), 1)


def test_the_report_counts_pages_and_tables() -> None:
    cells = [
        Said(x, y, text)
        for y, row in ((700, "Year Amount"), (684, "2024 1,200"), (668, "2025 1,300"))
        for x, text in zip((72, 300), row.split(), strict=True)
    ]
    report = read(cells, [Said(72, 700, LINE)]).report
    assert report == ReadingReport(pages=2, tables=1)
    assert report.mean_confidence is None


def test_the_mean_confidence_is_over_letters_not_pages() -> None:
    pages = (
        OcrPage(page=1, confidence=0.5, letters=100),
        OcrPage(page=3, confidence=0.9, letters=300),
    )
    assert ReadingReport(ocr_pages=pages).mean_confidence == pytest.approx(0.8)
