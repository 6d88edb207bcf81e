from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pypdfium2
import pytest
from tests.unit.normalize.written_pdf import LINE, PICTURE, Said, assembled, lines, written

from fonds.errors import NoTextError
from fonds.model import NormalizedBody, OcrPage, UncertainText
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.pdf.ocr import RENDER_SCALE
from fonds.normalize.pdf.ocr.engines import (
    RapidOcr,
    RecognizedText,
    Recognizers,
    Tesseract,
    language_of,
)
from fonds.normalize.pdf.ocr.picture import Box, Grey, grey_of, straightened, turned
from fonds.seams import limited_to

PLAIN = PdfNormalizer(recognizer=None)
ADVICE = (
    "page 2 has no usable text layer; to have it read, pip install 'fonds[ocr]' "
    "or install tesseract"
)
FIXTURES = Path(__file__).parent / "fixtures" / "pdf"
JAPANESE = FIXTURES / "japanese_scan.pdf"
VERTICAL = FIXTURES / "vertical_scan.pdf"
RULED = FIXTURES / "ruled_scan.pdf"
JAPANESE_SAYS = (
    "日本国憲法は、昭和二十二年五月三日に施行された。国会は、衆議院及び参議院の両議院で構成される。"
)


def read(*pages: Iterable[Said | str]) -> NormalizedBody:
    return PLAIN.to_markdown(written(*pages))


class Reader:
    """A recognizer that says what it is told to, line by line, and keeps what it saw."""

    def __init__(self, text: str, *, confidence: float = 1.0, degrees: int = 0) -> None:
        self.text = text
        self.confidence = confidence
        self.degrees = degrees
        self.seen: list[tuple[int, int, str | None]] = []

    def rotation(self, picture: Grey, language: str | None) -> int:
        self.seen.append((picture.shape[1], picture.shape[0], language))
        return self.degrees

    def read(self, *_: object) -> list[RecognizedText]:
        if self.text == "fails":
            raise RuntimeError("the model is missing")
        return [
            RecognizedText(Box(300, 300 + 50 * n, 2100, 340 + 50 * n), line, self.confidence)
            for n, line in enumerate(self.text.splitlines())
        ]


def test_a_scanned_page_among_others_is_a_warning() -> None:
    body = read([Said(72, 700, LINE)], [PICTURE])
    assert body.warnings == (ADVICE,)
    assert [page.page for page in body.pages] == ["1", "2"]


def test_a_few_stray_characters_on_a_picture_are_no_text_layer() -> None:
    body = read([Said(72, 700, LINE)], [PICTURE, Said(72, 700, "x 1")])
    assert body.warnings == (ADVICE,)


def test_a_recognizer_reads_scanned_pages() -> None:
    reader = Reader("The recog-\nnized text.\n")
    body = PdfNormalizer(recognizer=reader).to_markdown(written([PICTURE]))
    assert body.markdown == "The recognized text.\n"
    assert "recognized from the picture" in body.warnings[0]
    assert reader.seen == [(2550, 3301, None)]


@pytest.mark.parametrize("text", ["", "fails"])
def test_a_recognizer_that_finds_nothing_or_fails_leaves_no_text(text: str) -> None:
    with pytest.raises(NoTextError, match="no text was recognized"):
        PdfNormalizer(recognizer=Reader(text)).to_markdown(written([PICTURE]))


def test_what_is_read_with_little_confidence_is_listed_with_its_place() -> None:
    body = PdfNormalizer(recognizer=Reader("Paid: 3,000", confidence=0.6)).to_markdown(
        written([PICTURE])
    )
    assert body.markdown == "Paid: 3,000\n"
    assert body.uncertain == (UncertainText(start=0, end=11, confidence=0.6),)


def test_pages_for_which_no_time_is_left_are_named_and_the_others_kept() -> None:
    with limited_to(0):
        body = PdfNormalizer(recognizer=Reader("Recognized.")).to_markdown(
            written([PICTURE], [Said(72, 700, LINE)])
        )
    assert body.markdown == f"{LINE}\n"
    assert body.warnings == (
        (
            "page 1 has no usable text layer; recognizing the pages before took the time that one "
            "file may take (setting read_seconds)"
        ),
    )


def test_marks_move_headings_and_pages_back_to_their_place() -> None:
    pages = ([PICTURE], [Said(72, 700, "Annex", size=20, bold=True), *lines(72, 660, LINE, LINE)])
    reader = Reader("A line of the first page.", confidence=0.6)
    body = PdfNormalizer(recognizer=reader).to_markdown(written(*pages))
    assert [body.markdown[mark.offset :][:6] for mark in body.pages] == ["A line", "# Anne"]
    assert [body.markdown[heading.offset :][:7] for heading in body.headings] == ["# Annex"]


def test_a_page_that_lies_on_its_side_is_turned_before_it_is_read() -> None:
    reader = Reader("Upright.", degrees=90)
    body = PdfNormalizer(recognizer=reader).to_markdown(written([PICTURE]))
    assert body.markdown == "Upright.\n"


def program(folder: Path, script: str) -> str:
    """A program that stands in for tesseract."""
    path = folder / "tesseract"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_tesseract_gets_a_grey_picture_and_one_thread(tmp_path: Path) -> None:
    row = r"5\t1\t1\t1\t1\t1\t300\t300\t900\t40\t96.5\t$OMP_THREAD_LIMIT:$size\n"
    script = f'size="$(head -n 1 | tr " " -)"; printf "{row}"; cat >/dev/null'
    tesseract = Tesseract(program(tmp_path, script))
    body = PdfNormalizer(recognizer=tesseract).to_markdown(written([PICTURE]))
    assert body.markdown == "1:P5-2550-3301-255\n"
    assert body.report
    assert body.report.ocr_pages == (OcrPage(page=1, confidence=0.965, letters=18),)


@pytest.mark.parametrize("script", ["echo broken; exit 1", "cat >/dev/null"])
def test_a_tesseract_that_fails_has_read_nothing(tmp_path: Path, script: str) -> None:
    tesseract = Tesseract(program(tmp_path, script))
    with pytest.raises(NoTextError, match="no text was recognized"):
        PdfNormalizer(recognizer=tesseract).to_markdown(written([PICTURE]))


def test_fonts_that_do_not_say_their_letters_make_a_page_a_picture() -> None:
    shifted = "".join(chr(ord(c) + 3) for c in LINE.lower() if c.isalpha())
    with pytest.raises(NoTextError, match=r"pip install 'fonds\[ocr\]'"):
        read(lines(72, 700, shifted, shifted, shifted))


@pytest.mark.parametrize(
    ("text", "declared", "language"),
    [
        ("Section 1", None, None),
        ("Section 1", "en-US", "en"),
        ("第一条 この法律は", None, "ja"),
        ("第一条 この法律は", "en", "ja"),
        ("第一條", None, "ja"),
        ("第一條", "zh-TW", "zh"),
        ("제1조", None, "ko"),
    ],
)
def test_the_language_is_told_by_letters_and_by_what_the_file_declares(
    text: str, declared: str | None, language: str | None
) -> None:
    assert language_of(text, declared) == language


def test_the_language_a_file_declares_reaches_the_recognizer() -> None:
    reader = Reader("Gelesen.")
    PdfNormalizer(recognizer=reader).to_markdown(written([PICTURE], extra="/Lang (de-DE)"))
    assert [language for _, _, language in reader.seen] == ["de"]


def test_words_on_a_picture_stay_where_nothing_more_is_read() -> None:
    body = read([Said(72, 700, LINE)], [PICTURE, Said(72, 700, "Annex 3")])
    assert body.markdown == f"{LINE}\n\nAnnex 3\n"
    assert body.warnings == (ADVICE,)


# The real engines --------------------------------------------------------------------------


def scanned(*texts: str) -> bytes:
    """A page of large type as a scanner leaves it: one picture."""
    drawn = pypdfium2.PdfDocument(written(lines(72, 700, *texts, size=14)))[0]
    return picture_page(grey_of(drawn.render(scale=150 / 72, grayscale=True)), dots=150)


def picture_page(picture: Grey, *, dots: int = 300) -> bytes:
    """A page that is one picture."""
    height, width = picture.shape
    data = picture.tobytes().hex() + ">"
    across, up = width * 72 / dots, height * 72 / dots
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {across} {up}]"
    size = f"/Width {width} /Height {height}"
    image = f"<< /Subtype /Image {size} /ColorSpace /DeviceGray /BitsPerComponent 8"
    content = f"q {across} 0 0 {up} 0 0 cm /I Do Q"
    return assembled(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"{page} /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            f"{image} /Filter /ASCIIHexDecode /Length {len(data)} >>\nstream\n{data}\nendstream",
        ]
    )


def tesseract() -> Tesseract:
    program = shutil.which("tesseract")
    if program is None:
        pytest.skip("needs the program tesseract: apt-get install tesseract-ocr")
    return Tesseract(program)


def rapidocr() -> RapidOcr:
    if find_spec("rapidocr") is None or find_spec("onnxruntime") is None:
        pytest.skip("needs rapidocr: pip install 'fonds[ocr]'")
    return RapidOcr()


def test_tesseract_reads_a_scanned_page() -> None:
    body = PdfNormalizer(recognizer=Recognizers(tesseract=tesseract())).to_markdown(
        scanned("The board shall keep a record of", "each permit it has granted.")
    )
    assert body.markdown == "The board shall keep a record of each permit it has granted.\n"
    assert "recognized from the picture" in body.warnings[0]


@pytest.mark.long
def test_rapidocr_alone_reads_japanese() -> None:
    body = PdfNormalizer(recognizer=Recognizers(rapidocr=rapidocr())).to_markdown(
        JAPANESE.read_bytes()
    )
    assert body.markdown == f"{JAPANESE_SAYS}\n"


def test_a_picture_with_japanese_script_goes_to_rapidocr() -> None:
    class Seen(RapidOcr):
        def read(
            self, picture: Grey, cells: Sequence[Box], language: str | None
        ) -> list[RecognizedText]:
            text = f"{picture.shape[1]} wide, {language}, {len(cells)} cells"
            return [RecognizedText(Box(300, 300, 2000, 340), text, 1.0)]

    recognizer = Recognizers(tesseract=tesseract(), rapidocr=Seen())
    body = PdfNormalizer(recognizer=recognizer).to_markdown(JAPANESE.read_bytes())
    assert body.markdown == "2550 wide, ja, 0 cells\n"


RULED_SAYS = """\
| 寄附者の氏名 | 金額 | 年月日 | 住所 |
| --- | --- | --- | --- |
| 溝田 徳子 | 300,000 | 5 1 18 | 甲県乙市本町1-3-12-702 |
| 溝田 徳子 | 250,000 | 5 11 24 | 甲県乙市本町1-3-12-702 |
| 三沢 優 | 30,000 | 5 2 7 | 甲県丙町大字北4-6 |
| 株式会社みどり | 1,200,000 | 5 10 25 | 甲県乙市中央2-5-1 |
| この頁の小計 | 1,780,000 | | |
"""
VERTICAL_SAYS = (
    "収支報告書の要旨を公表する件第一条この告示は、令和六年二月三日から施行する。ただし、第三条の"
    "規定は、公布の日から起算して六月を超えない範囲内で施行する。"
)


def picture_of(path: Path) -> Grey:
    bitmap = pypdfium2.PdfDocument(path)[0].render(scale=RENDER_SCALE, grayscale=True)
    return grey_of(bitmap)


def test_each_cell_of_a_ruled_scan_is_read_alone() -> None:
    body = PdfNormalizer(recognizer=Recognizers(rapidocr=rapidocr())).to_markdown(
        RULED.read_bytes()
    )
    assert body.markdown.endswith(RULED_SAYS)
    assert body.report
    assert body.report.tables == 1
    assert (body.report.mean_confidence or 0) > 0.9
    assert body.report.pictures_not_read == ()


@pytest.mark.long
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_scan_that_lies_on_its_side_or_head_is_read_upright(degrees: int) -> None:
    picture = turned(picture_of(RULED), degrees)
    body = PdfNormalizer(recognizer=Recognizers(rapidocr=rapidocr())).to_markdown(
        picture_page(picture)
    )
    assert body.markdown.endswith(RULED_SAYS)


@pytest.mark.long
def test_a_scan_that_leans_is_read_level() -> None:
    picture = straightened(picture_of(RULED), -0.03)
    body = PdfNormalizer(recognizer=Recognizers(rapidocr=rapidocr())).to_markdown(
        picture_page(picture)
    )
    rows = [line for line in RULED_SAYS.splitlines() if "甲県" in line]
    assert sum(row in body.markdown for row in rows) >= len(rows) - 1


@pytest.mark.long
def test_a_scan_in_columns_is_read_from_the_right() -> None:
    body = PdfNormalizer(recognizer=Recognizers(rapidocr=rapidocr())).to_markdown(
        VERTICAL.read_bytes()
    )
    assert body.markdown == f"{VERTICAL_SAYS}\n\n総務大臣三沢徳子\n"


def test_a_text_that_makes_no_sense_is_left_out_with_the_reason() -> None:
    recognizer = Reader("qwrt zxcv", confidence=0.2)
    body = PdfNormalizer(recognizer=recognizer).to_markdown(
        written([PICTURE], [Said(72, 700, LINE)])
    )
    assert body.markdown == f"{LINE}\n"
    assert body.warnings == (
        (
            "page 1 has no usable text layer; its text was recognized with so little confidence "
            "(0.20) that it is left out"
        ),
    )
