"""Reading pages that are only pictures, with whichever recognizer this machine has."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from importlib.util import find_spec
from typing import Any, Protocol

RENDER_SCALE = 200 / 72
"""Two hundred dots an inch: what recognizers are trained on, and quick enough."""

_SECONDS = 120


class Recognizer(Protocol):
    """Turns a grey bitmap of pdfium into lines of text."""

    def read(self, bitmap: Any) -> str:
        """The text of the picture, a line each; empty where none is found."""
        ...


class Tesseract:
    """The `tesseract` program, fed through its standard input."""

    def __init__(self, program: str) -> None:
        self._program = program

    def read(self, bitmap: Any) -> str:
        """The text of the picture, a line each; empty where the program fails."""
        try:
            done = subprocess.run(  # noqa: S603 — the program's own path, fixed arguments
                [self._program, "stdin", "stdout", "--psm", "1"],
                input=_portable_graymap(bitmap),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return (
            done.stdout.decode("utf-8", "replace").replace("\f", "") if not done.returncode else ""
        )


class RapidOcr:
    """The `rapidocr` package, which brings its models along."""

    def __init__(self) -> None:
        self._engine = importlib.import_module("rapidocr").RapidOCR()

    def read(self, bitmap: Any) -> str:
        """The text of the picture, a line each."""
        found = self._engine(bitmap.to_numpy())
        return "\n".join(found.txts or ())


def installed_recognizer() -> Recognizer | None:
    """The recognizer this machine has, or None."""
    if program := shutil.which("tesseract"):
        return Tesseract(program)
    return RapidOcr() if find_spec("rapidocr") else None


def _portable_graymap(bitmap: Any) -> bytes:
    rows = bytes(bitmap.buffer)
    if bitmap.stride != bitmap.width:
        starts = range(0, bitmap.stride * bitmap.height, bitmap.stride)
        rows = b"".join(rows[start : start + bitmap.width] for start in starts)
    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + rows
