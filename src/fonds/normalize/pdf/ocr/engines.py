"""The recognizers of text in pictures: tesseract, rapidocr, or both."""

from __future__ import annotations

import csv
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from fonds.normalize.pdf.kanji import common_forms
from fonds.normalize.pdf.ocr.ink import joined, lines_in, side_by_side, without_scratches, words_in
from fonds.normalize.pdf.ocr.picture import Box, Grey, cut, is_vertical, turned

JAPANESE: Final = "ja"

_SECONDS: Final = 120
_MAX_SIDE: Final = 1600
_MIN_CONFIDENCE: Final = 0.5
_MIN_CELL_CONFIDENCE: Final = 0.3
_CLEAR: Final = 0.9
_MARGIN: Final = 4
_SAMPLES: Final = 6
_CLEARLY: Final = 1.1
_TALL: Final = 1.7
_COARSE: Final = 3
_SQUARE: Final = (0.65, 1.4)
_SURE: Final = 0.8
_KANA: Final = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_IDEOGRAPHS: Final = re.compile("[\u4e00-\u9fff]")
_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_IDEOGRAPHIC: Final = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_SCRIPT: Final = re.compile(r"^Script: (Japanese|Han|Hiragana|Katakana)", re.MULTILINE)
_ROTATE: Final = re.compile(r"^Rotate: (90|180|270)", re.MULTILINE)
_TESSERACT_NAMES: Final = {
    "de": "deu",
    "es": "spa",
    "fr": "fra",
    "it": "ita",
    "ja": "jpn",
    "ko": "kor",
    "nl": "nld",
    "pt": "por",
    "vi": "vie",
}
"""Tesseract's names of the languages that are not its own default."""


class RecognizedText(NamedTuple):
    """A line, or a part of one, as it was recognized."""

    box: Box
    text: str
    confidence: float
    """From 0 to 1."""
    vertical: bool = False
    """Written from the top to the bottom."""


class Recognizer(Protocol):
    """Reads the text of pictures."""

    def rotation(self, picture: Grey, language: str | None) -> int:
        """The right angles, clockwise in degrees, by which a picture must be turned to be read."""
        ...

    def read(
        self, picture: Grey, cells: Sequence[Box], language: str | None
    ) -> list[RecognizedText]:
        """The texts of an upright picture without rules; none reaches over the edge of a cell."""
        ...


class Tesseract:
    """The `tesseract` program, fed through its standard input."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._languages: frozenset[str] | None = None

    def rotation(self, picture: Grey, language: str | None) -> int:  # noqa: ARG002 — it tells by the script
        """The angle that the program's look at the script gives; 0 where it sees too little."""
        match = _ROTATE.search(self._orientation(picture))
        return int(match[1]) if match else 0

    def read(
        self, picture: Grey, cells: Sequence[Box], language: str | None
    ) -> list[RecognizedText]:
        """The words of the picture; none where the program fails."""
        name = _TESSERACT_NAMES.get(language or "", "")
        # Words in cells are far apart: as one block, rows are lines whatever their gaps.
        layout = "6" if cells else "3"
        vertical = name in {"", "jpn"} and not cells and is_vertical(picture)
        if vertical and self._has_language("jpn_vert"):
            name, layout = "jpn_vert", "5"
        chosen = ["-l", name] if name and self._has_language(name) else []
        arguments = ["stdin", "stdout", "--dpi", "300", "--psm", layout, *chosen, "tsv"]
        words = list(_words(self._output(arguments, picture), cells))
        return [word._replace(vertical=True) for word in words] if layout == "5" else words

    def language(self, picture: Grey) -> str | None:
        """The language that the picture's script tells: Japanese, or None."""
        return JAPANESE if _SCRIPT.search(self._orientation(picture)) else None

    def _orientation(self, picture: Grey) -> str:
        # Pages with few words are turned the right way up on weaker evidence than it asks for.
        options = ["--dpi", "300", "--psm", "0", "-c", "min_orientation_margin=3"]
        return self._output(["stdin", "-", *options], picture)

    def _has_language(self, name: str) -> bool:
        if self._languages is None:
            self._languages = frozenset(self._output(["--list-langs"], None).split())
        return name in self._languages

    def _output(self, arguments: Sequence[str], picture: Grey | None) -> str:
        try:
            done = subprocess.run(  # noqa: S603 — the program's own path, fixed arguments
                [self._program, *arguments],
                input=b"" if picture is None else _portable_graymap(picture),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                # Many workers run at a time; each program would take all cores for itself.
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        output = done.stdout.decode("utf-8", "replace").replace("\f", "")
        return output if not done.returncode else ""


def _words(table: str, cells: Sequence[Box]) -> Iterator[RecognizedText]:
    """The words of tesseract's table, with a space before each that follows another."""
    last: tuple[list[str], int] = ([], -1)
    before = ""
    for row in csv.reader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        if len(row) < 12 or row[0] != "5" or not row[11].strip():  # noqa: PLR2004 — columns of the program's table; 5 is a word
            continue
        x0, y0, width, height = map(int, row[6:10])
        box, text = Box(x0, y0, x0 + width, y0 + height), row[11].strip()
        line = (row[1:5], _cell_at(box, cells))
        spaced = line == last and not (_is_ideographic(before) and _is_ideographic(text[:1]))
        yield RecognizedText(box, f" {text}" if spaced else text, float(row[10]) / 100)
        last, before = line, text[-1:]


def _is_ideographic(text: str) -> bool:
    return _IDEOGRAPHIC.match(text) is not None


def _cell_at(box: Box, cells: Sequence[Box]) -> int:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    for at, cell in enumerate(cells):
        if cell.x0 <= x <= cell.x1 and cell.y0 <= y <= cell.y1:
            return at
    return -1


class RapidOcr:
    """The `rapidocr` package, which brings its models along; they are loaded when first used."""

    def __init__(self) -> None:
        self._loaded: Any = None

    @property
    def _engine(self) -> Any:
        if self._loaded is None:
            self._loaded = importlib.import_module("rapidocr").RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.max_side_len": _MAX_SIDE,
                    # Cells are short: wider pictures would be mostly paper.
                    "Rec.rec_img_shape": [3, 48, 96],
                    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        return self._loaded

    def rotation(self, picture: Grey, language: str | None) -> int:  # noqa: ARG002 — its model knows all of ours
        """The angle at which the longest lines are recognized with most confidence."""
        small = self._boxes(np.ascontiguousarray(picture[::_COARSE, ::_COARSE]))
        boxes = [Box(*(side * _COARSE for side in box)) for box in small]
        boxes.sort(key=lambda box: -max(box.width, box.height))
        tall = [box for box in boxes if _is_tall(box)]
        if 2 * len(tall) <= len(boxes):
            flat = _cuts(picture, [box for box in boxes if not _is_tall(box)])
            upright, reverse = self._certainty(flat, 0), self._certainty(flat, 180)
            return 180 if reverse > _CLEARLY * upright else 0
        columns = _cuts(picture, tall)
        upright = _CLEARLY * self._column_certainty(columns)
        to_right, to_left = self._certainty(columns, 90), self._certainty(columns, 270)
        if max(to_right, to_left) < upright:
            return 0
        return 90 if to_right > to_left else 270

    def read(
        self,
        picture: Grey,
        cells: Sequence[Box],
        language: str | None,  # noqa: ARG002 — likewise
    ) -> list[RecognizedText]:
        """The texts in the cells, line by line, and those the model detects elsewhere."""
        elsewhere = picture.copy()
        picture = picture.copy()
        for cell in cells:
            without_scratches(picture, cell)
        texts = [text for cell in cells for text in self._cell(picture, cell)]
        for cell in cells:
            elsewhere[cell.y0 : cell.y1, cell.x0 : cell.x1] = 255
        for box in _without_overlaps(self._boxes(elsewhere)):
            line = list(self._read_line(elsewhere, box, _MIN_CONFIDENCE))
            column = list(self._read_column(elsewhere, box)) if _is_tall(box) else []
            texts += column if _confidence(column) > _confidence(line) else line
        return texts

    def _cell(self, picture: Grey, cell: Box) -> Iterator[RecognizedText]:
        texts = list(self._cell_texts(picture, cell))
        # Beside a text that is clear, one that is not is a stamp or a stroke.
        clear = any(text.confidence > _CLEAR for text in texts)
        for text in texts:
            if text.confidence >= (_MIN_CONFIDENCE if clear else _MIN_CELL_CONFIDENCE):
                yield text

    def _cell_texts(self, picture: Grey, cell: Box) -> Iterator[RecognizedText]:
        for line in lines_in(picture, cell):
            if line.vertical:
                yield from self._read_column(picture, line.box)
                continue
            words = words_in(picture, line.box)
            if title := self._spaced_title(picture, line.box, words):
                yield title
                continue
            before = None
            for box in words:
                for text in self._read_line(picture, box, _MIN_CELL_CONFIDENCE):
                    yield text._replace(text=f" {text.text}") if before else text
                    before = text

    def _spaced_title(
        self, picture: Grey, line: Box, words: Sequence[Box]
    ) -> RecognizedText | None:
        """A Japanese title with letters over the width of its cell."""
        if len(words) < 2 or not all(map(_is_square, words)):  # noqa: PLR2004 — one letter is not spread
            return None
        text, confidence = self._recognized(joined([cut(picture, word) for word in words]))
        if confidence < _SURE or not all(map(_is_ideographic, text)):
            return None
        return RecognizedText(line, text, confidence)

    def _read_line(
        self, picture: Grey, box: Box, min_confidence: float
    ) -> Iterator[RecognizedText]:
        text, confidence = self._recognized(cut(picture, _with_margin(box)))
        if text and confidence >= min_confidence:
            yield RecognizedText(box, text, confidence)

    def _read_column(self, picture: Grey, box: Box) -> Iterator[RecognizedText]:
        text, confidence = self._column(cut(picture, _with_margin(box)))
        if text and confidence >= _MIN_CONFIDENCE:
            yield RecognizedText(box, text, confidence, vertical=len(text) > 1)

    def _column(self, crop: Grey) -> tuple[str, float]:
        """A line of letters one below the other, laid side by side to be read."""
        return self._recognized(side_by_side(crop))

    def _column_certainty(self, columns: Iterable[Grey]) -> float:
        return _mean([self._column(column)[1] for column in columns])

    def _certainty(self, samples: Iterable[Grey], degrees: int) -> float:
        return _mean([self._recognized(turned(sample, degrees))[1] for sample in samples])

    def _recognized(self, crop: Grey) -> tuple[str, float]:
        if not crop.size:
            return "", 0.0
        result = self._engine(crop, use_det=False, use_cls=False, use_rec=True)
        if not result.txts:
            return "", 0.0
        return common_forms(str(result.txts[0]).strip()), float(result.scores[0])

    def _boxes(self, picture: Grey) -> list[Box]:
        result = self._engine(picture, use_det=True, use_cls=False, use_rec=False)
        if result.boxes is None:
            return []
        corners = np.asarray(result.boxes)
        lows, highs = corners.min(axis=1).astype(int), corners.max(axis=1).astype(int)
        return [Box(*low, *high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]


def _without_overlaps(boxes: Sequence[Box]) -> list[Box]:
    """Parts of one column without the letters at their ends that are in two of them."""
    parts: list[Box] = []
    for box in sorted(boxes, key=lambda box: box.y0):
        above = [part.y1 for part in parts if _is_tall(box) and _are_in_one_column(part, box)]
        parts.append(Box(box.x0, max([box.y0, *above]), box.x1, box.y1))
    return [part for part in parts if part.height > 0]


def _are_in_one_column(above: Box, box: Box) -> bool:
    shared = min(above.x1, box.x1) - max(above.x0, box.x0)
    return above.y1 < box.y1 and 2 * shared > min(above.width, box.width)


def _confidence(texts: Sequence[RecognizedText]) -> float:
    return _mean([text.confidence for text in texts])


def _with_margin(box: Box) -> Box:
    return Box(box.x0 - _MARGIN, box.y0 - _MARGIN, box.x1 + _MARGIN, box.y1 + _MARGIN)


def _cuts(picture: Grey, boxes: Sequence[Box]) -> list[Grey]:
    return [cut(picture, box) for box in boxes[:_SAMPLES]]


def _is_square(box: Box) -> bool:
    return _SQUARE[0] * box.height <= box.width <= _SQUARE[1] * box.height


def _is_tall(box: Box) -> bool:
    return box.height > _TALL * box.width


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


@dataclass(slots=True)
class Recognizers:
    """Rapidocr for Japanese and for tables, tesseract for all else; each for all if it is alone."""

    tesseract: Tesseract | None = None
    rapidocr: RapidOcr | None = None

    def rotation(self, picture: Grey, language: str | None) -> int:
        """The angle that tesseract tells, which knows more scripts; else rapidocr's."""
        first = self.tesseract or self.rapidocr
        return first.rotation(picture, language) if first else 0

    def read(
        self, picture: Grey, cells: Sequence[Box], language: str | None
    ) -> list[RecognizedText]:
        """The texts of the picture; where no language is known, its script is looked at first."""
        if self.tesseract is None:
            return self.rapidocr.read(picture, cells, language) if self.rapidocr else []
        if self.rapidocr is not None:
            language = language or self.tesseract.language(picture)
            if cells or language == JAPANESE or is_vertical(picture):
                return self.rapidocr.read(picture, cells, language)
        return self.tesseract.read(picture, cells, language)


def installed_recognizer() -> Recognizer | None:
    """The recognizer of text in pictures on this machine, or None."""
    program = shutil.which("tesseract")
    tesseract = Tesseract(program) if program else None
    rapidocr = RapidOcr() if find_spec("rapidocr") and find_spec("onnxruntime") else None
    return Recognizers(tesseract, rapidocr) if tesseract or rapidocr else None


def language_of(text: str, declared: str | None) -> str | None:
    """The language of a document, by what it declares and by its letters; None if unknown."""
    if _KANA.search(text):
        return JAPANESE
    if declared:
        return declared[:2].lower()
    if _HANGUL.search(text):
        return "ko"
    return JAPANESE if _IDEOGRAPHS.search(text) else None


def _portable_graymap(picture: Grey) -> bytes:
    height, width = picture.shape
    return b"P5 %d %d 255\n" % (width, height) + picture.tobytes()
