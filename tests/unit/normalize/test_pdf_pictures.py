from __future__ import annotations

from typing import Final

import numpy as np
import pypdfium2
import pytest
from tests.unit.normalize.written_pdf import LINE, Said, lines, written

from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.pdf.ocr.engines import RecognizedText, Recognizer
from fonds.normalize.pdf.ocr.picture import Box, Grey, grey_of
from fonds.normalize.pdf.ocr.text_lines import count_lines

TEXT: Final = lines(72, 700, *[LINE] * 8)
NOT_READ: Final = "with text was not read; to have it read, pip install 'fonds[ocr]' or install"


class Reader:
    """A recognizer that finds one line, a tenth below the upper edge."""

    def __init__(self, text: str, confidence: float = 0.9) -> None:
        self.text = text
        self.confidence = confidence
        self.shapes: list[tuple[int, ...]] = []

    def rotation(self, *_: object) -> int:
        return 0

    def read(self, picture: Grey, *_: object) -> list[RecognizedText]:
        self.shapes.append(picture.shape)
        height, width = picture.shape
        box = Box(width // 10, height // 10, width // 2, height // 10 + 40)
        return [RecognizedText(box, self.text, self.confidence)]


def raster(*texts: str) -> Grey:
    """A small picture of lines of text."""
    page = written(lines(10, 80, *texts, size=10), box="0 0 300 100")
    return grey_of(pypdfium2.PdfDocument(page)[0].render(scale=1.5, grayscale=True))


def drawn_at(picture: Grey, x: float = 72, y: float = 300, width: float = 300) -> str:
    """The picture drawn at a place of a page."""
    rows, columns = picture.shape
    size = f"{width} 0 0 {width * rows / columns} {x} {y}"
    head = f"BI /W {columns} /H {rows} /CS /G /BPC 8 /F /AHx ID"
    return f"q {size} cm {head} {picture.tobytes().hex()}> EI Q"


def read(*pages: list[Said | str], recognizer: Recognizer | None = None) -> NormalizedBody:
    return PdfNormalizer(recognizer=recognizer).to_markdown(written(*pages))


NOTICE: Final = raster("The premium is due on the first", "day of each month of the year.")


def test_a_picture_with_text_is_counted_where_it_is_not_read() -> None:
    body = read([*TEXT], [*TEXT, drawn_at(NOTICE)])
    assert [warning[:16] for warning in body.warnings] == ["page 2: a pictur"]
    assert NOT_READ in body.warnings[0]
    assert body.report
    assert body.report.pictures_not_read == (2,)


def test_a_picture_with_text_is_read_behind_the_text_of_its_page() -> None:
    reader = Reader("The premium is due.")
    body = read([*TEXT, drawn_at(NOTICE)], recognizer=reader)
    assert body.markdown.endswith("\n\nThe premium is due.\n")
    assert body.warnings == ("page 1: the text of a picture was recognized",)
    assert reader.shapes == [(417, 1250)]
    assert body.report
    assert body.report.pictures_not_read == ()
    assert [page.page for page in body.report.ocr_pages] == [1]


def test_what_a_recognizer_is_unsure_of_in_a_picture_is_left_out() -> None:
    body = read([*TEXT, drawn_at(NOTICE)], recognizer=Reader("Th3 pr", confidence=0.3))
    assert "Th3" not in body.markdown


def test_a_recognizer_that_fails_leaves_the_picture_counted() -> None:
    class Broken(Reader):
        def read(self, picture: Grey, *_: object) -> list[RecognizedText]:
            raise RuntimeError(picture.shape)

    body = read([*TEXT, drawn_at(NOTICE)], recognizer=Broken(""))
    assert body.warnings == ("page 1: a picture with text was not read; the recognizer failed",)


def test_a_logo_of_all_pages_is_counted_once() -> None:
    page: list[Said | str] = [*TEXT, drawn_at(NOTICE)]
    body = read(page, page, page)
    assert body.report
    assert body.report.pictures_not_read == (1,)


def test_a_photograph_is_no_text() -> None:
    y, x = np.mgrid[0:150, 0:450]
    photograph = (128 + 90 * np.sin(x / 31) * np.cos(y / 23)).astype(np.uint8)
    assert read([*TEXT, drawn_at(photograph)]).warnings == ()


def test_a_picture_behind_the_text_of_its_page_has_no_text_of_its_own() -> None:
    picture = raster(LINE[:50])
    line = Said(82, 380, LINE[:50])
    assert read([*TEXT, drawn_at(picture), line]).warnings == ()


def test_letters_drawn_as_shapes_are_no_text_layer() -> None:
    """Some writers draw the outlines of letters, which only a recognizer reads."""
    shapes = [
        f"{72 + 6 * column} {700 - 14 * row} 3 7 re f" for row in range(20) for column in range(70)
    ]
    body = read([*TEXT], [*shapes, Said(300, 20, "Page 2 of 2")])
    assert [warning[:36] for warning in body.warnings] == ["page 2 has no usable text layer; to "]


@pytest.mark.parametrize("turned", [False, True])
def test_lines_are_counted_in_rows_and_in_columns(*, turned: bool) -> None:
    picture = raster("The premium is due on the first", "day of each month of the year.")
    assert count_lines(np.ascontiguousarray(picture.T) if turned else picture) == 2


def test_light_letters_on_a_dark_ground_are_lines_too() -> None:
    assert count_lines(255 - raster("The premium is due on the first")) == 1


def test_nothing_has_no_lines() -> None:
    assert count_lines(np.full((100, 300), 255, dtype=np.uint8)) == 0
    assert count_lines(np.zeros((0, 0), dtype=np.uint8)) == 0
