"""Reading pages that are only pictures, with whichever recognizers this machine has."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, Protocol

RENDER_SCALE: Final = 300 / 72
"""Three hundred dots an inch, which recognizers are trained on."""

JAPANESE: Final = "ja"

_SECONDS: Final = 120
# Pages with few words are turned the right way up on weaker evidence than tesseract asks for.
_UPSIDE_DOWN: Final = ("--dpi", "300", "-c", "min_orientation_margin=3")
_KANA: Final = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_IDEOGRAPHS: Final = re.compile("[\u4e00-\u9fff]")
_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_SCRIPT: Final = re.compile(r"^Script: (Japanese|Han|Hiragana|Katakana)", re.MULTILINE)
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


class Recognizer(Protocol):
    """Turns a grey bitmap of pdfium into lines of text."""

    def read(self, bitmap: Any, language: str | None) -> str:
        """The text of the picture, a line each; empty where none is found."""
        ...


class Tesseract:
    """The `tesseract` program, fed through its standard input."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._languages: frozenset[str] | None = None

    def read(self, bitmap: Any, language: str | None) -> str:
        """The text of the picture, a line each; empty where the program fails."""
        name = _TESSERACT_NAMES.get(language or "", "")
        chosen = ["-l", name] if name and self._has_language(name) else []
        return self._output(["stdin", "stdout", "--psm", "1", *_UPSIDE_DOWN, *chosen], bitmap)

    def language(self, bitmap: Any) -> str | None:
        """The language that the picture's script tells: Japanese, or None."""
        return (
            JAPANESE if _SCRIPT.search(self._output(["stdin", "-", "--psm", "0"], bitmap)) else None
        )

    def _has_language(self, name: str) -> bool:
        if self._languages is None:
            self._languages = frozenset(self._output(["--list-langs"], None).split())
        return name in self._languages

    def _output(self, arguments: Sequence[str], bitmap: Any) -> str:
        try:
            done = subprocess.run(  # noqa: S603 — the program's own path, fixed arguments
                [self._program, *arguments],
                input=b"" if bitmap is None else _portable_graymap(bitmap),
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


class RapidOcr:
    """The `rapidocr` package, which brings its models along; they are loaded when first used."""

    def __init__(self) -> None:
        self._engine: Any = None

    def read(self, bitmap: Any, language: str | None) -> str:  # noqa: ARG002 — its model knows all of ours
        """The text of the picture, a line each."""
        if self._engine is None:
            self._engine = importlib.import_module("rapidocr").RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        result = self._engine(bitmap.to_numpy())
        texts = list(result.txts or ())
        if result.boxes is not None and _vertical(result.boxes):
            texts = [text for _, text in sorted(zip(map(_right, result.boxes), texts, strict=True))]
        return "\n".join(texts)


@dataclass(slots=True)
class Recognizers:
    """Tesseract for most pages, rapidocr for Japanese ones, and each for all where it is alone."""

    tesseract: Tesseract | None = None
    rapidocr: RapidOcr | None = None

    def read(self, bitmap: Any, language: str | None) -> str:
        """The text of the picture; where no language is known, its script is looked at first."""
        if self.tesseract is None:
            return self.rapidocr.read(bitmap, language) if self.rapidocr else ""
        language = language or self.tesseract.language(bitmap)
        if language == JAPANESE and self.rapidocr is not None:
            return self.rapidocr.read(bitmap, language)
        return self.tesseract.read(bitmap, language)


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


def _vertical(boxes: Sequence[Any]) -> bool:
    """Whether most lines run from the top to the bottom, as in a traditional Japanese book."""
    tall = sum(_side(box, 1) > 2 * _side(box, 0) for box in boxes)
    return 2 * tall > len(boxes)


def _side(box: Any, axis: int) -> float:
    return float(max(corner[axis] for corner in box) - min(corner[axis] for corner in box))


def _right(box: Any) -> float:
    return -float(max(corner[0] for corner in box))


def _portable_graymap(bitmap: Any) -> bytes:
    rows = bytes(bitmap.buffer)
    if bitmap.stride != bitmap.width:
        starts = range(0, bitmap.stride * bitmap.height, bitmap.stride)
        rows = b"".join(rows[start : start + bitmap.width] for start in starts)
    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + rows
