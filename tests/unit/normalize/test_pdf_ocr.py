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
from fonds.normalize.pdf.ocr.engines import (
    RapidOcr,
    RecognizedText,
    Recognizers,
    Tesseract,
    language_of,
)
from fonds.normalize.pdf.ocr.picture import Box, Grey

PLAIN = PdfNormalizer(recognizer=None)
ADVICE = (
    "page 2 has no usable text layer; to have it read, pip install 'fonds[ocr]' "
    "or install tesseract"
)
JAPANESE = Path(__file__).parent / "fixtures" / "pdf" / "japanese_scan.pdf"
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
    body = PdfNormalizer(recognizer=Reader("Paid: 3,000", confidence=0.4)).to_markdown(
        written([PICTURE])
    )
    assert body.markdown == "Paid: 3,000\n"
    assert body.uncertain == (UncertainText(start=0, end=11, confidence=0.4),)


def test_marks_move_headings_and_pages_back_to_their_place() -> None:
    pages = ([PICTURE], [Said(72, 700, "Annex", size=20, bold=True), *lines(72, 660, LINE, LINE)])
    reader = Reader("A line of the first page.", confidence=0.4)
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
    bitmap = drawn.render(scale=150 / 72, grayscale=True)
    rows = bytes(bitmap.buffer)
    picture = b"".join(
        rows[start : start + bitmap.width]
        for start in range(0, bitmap.stride * bitmap.height, bitmap.stride)
    )
    data = picture.hex() + ">"
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
    size = f"/Width {bitmap.width} /Height {bitmap.height}"
    image = f"<< /Subtype /Image {size} /ColorSpace /DeviceGray /BitsPerComponent 8"
    content = "q 612 0 0 792 0 0 cm /I Do Q"
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
