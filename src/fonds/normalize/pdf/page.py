"""The text of a PDF's page: runs with their positions, in the order in which the file draws them.

A line of text, with what tells headings, columns and tables from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fonds.model import OcrPage
from fonds.normalize.pdf.grid import Rule, RuledGrid
from fonds.normalize.pdf.kanji import without_radicals
from fonds.normalize.pdf.table_model import PdfTable

WORDS: Final = re.compile(r"[^\W_]+")
CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\u200b\ufeff]")
"""Characters that no text keeps."""

CHARACTERS: Final = str.maketrans(
    {
        "\xad": "-",
        "ﬀ": "ff",
        "ﬁ": "fi",
        "ﬂ": "fl",
        "ﬃ": "ffi",
        "ﬄ": "ffl",
        "ﬅ": "st",
        "ﬆ": "st",
        # Word processors take these from fonts of symbols, at places of their own.
        "\uf0b7": "•",
        "\uf0a7": "▪",
        "\uf0d8": "‣",
        "\uf0fc": "✓",
        "\uf0a8": "□",
        "\uf06f": "□",
        "\uf0e0": "→",
    }
)
"""Letters that a font draws as one, the hyphens of a line's end, and bullets."""

_LOST: Final = re.compile(r"(?<=[^\W_])[\x01-\x08\x0e-\x1f\x7f-\x9f](?=[^\W_])")
# The parts that large brackets are built of have widely used private numbers.
_UNREADABLE: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8e5\uf8ff]")
_LETTERS_TOGETHER: Final = re.compile(r"[A-Za-zÀ-ÿ]{4,}")
_VOWELS: Final = re.compile(r"[AEIOUYaeiouyÀ-ÆÈ-ÏÒ-ÖÙ-Ýà-æè-ïò-öù-ýÿ]")
_MIN_LETTERS: Final = 60
_FEWEST_VOWELS: Final = 0.2
_EDGE: Final = 1.0


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text in one font at one place."""

    x0: float
    y0: float
    """The baseline of the letters."""
    x1: float
    y1: float
    size: float
    bold: bool
    text: str
    turned: bool = False
    """Set at an angle: margins, stamps, watermarks."""
    vertical: bool = False
    """Written from the top to the bottom, as Japanese may be."""


class Picture(NamedTuple):
    """A picture on a page."""

    box: tuple[float, float, float, float]
    """Left, bottom, right and top."""
    key: tuple[int, ...]
    """Equal for a picture that is shown again."""


Box = tuple[float, float, float, float]
"""Left, bottom, right and top, from the lower left corner of the page as a viewer shows it."""


class FilledField(NamedTuple):
    """A field of a form, or text typed on the page."""

    box: Box
    text: str
    """Empty if nothing is filled in; of a box to tick its mark."""
    is_tick: bool = False


class PdfComment(NamedTuple):
    """A comment or a stamp on a page."""

    kind: str
    author: str
    text: str


@dataclass(slots=True)
class PdfPage:
    """One page as read, before anything is put in order."""

    number: int
    """Counted from one."""
    label: str | None = None
    """As the file itself names the page."""
    width: float = 612.0
    height: float = 792.0
    left: float = 0.0
    bottom: float = 0.0
    """The lower edge of the visible page: printers leave marks outside it."""
    rotation: int = 0
    """Degrees that a viewer turns the page clockwise."""
    rows: list[list[TextRun]] = field(default_factory=list)
    """Runs of one line each, in the order of the content stream."""
    pictures: list[Picture] = field(default_factory=list)
    """Those that may have a text, which is not read yet."""
    ocr: OcrPage | None = None
    """How well the text was recognized, if it was."""
    refused_confidence: float | None = None
    """Of a text that was recognized too badly to be used."""
    scanned: bool = False
    """No usable text, but something is drawn."""
    outside: list[tuple[int, str]] = field(default_factory=list)
    """Printers' marks beyond the page's edges, which no viewer shows, and the rows before each."""
    watermarks: list[str] = field(default_factory=list)
    """Words across the text of most pages, which are not among the rows."""
    characters: Counter[str] = field(default_factory=Counter)
    """How often each one is in the text layer, as its reader gives it."""
    fields: list[FilledField] = field(default_factory=list)
    """Those whose values are not among the rows yet."""
    filled: int = 0
    """How many fields are filled in."""
    hidden_values: list[str] = field(default_factory=list)
    """Values of fields that no viewer shows."""
    comments: list[PdfComment] = field(default_factory=list)
    title: str | None = None
    """On the first page: the title in the metadata of the file."""
    unplaced: list[tuple[str, str]] = field(default_factory=list)
    """On the last page: captions and values of a form that no page draws."""
    removed: int = 0
    """Control characters left out."""
    rules: list[Rule] = field(default_factory=list)
    """Its straight strokes, and the sides of shaded boxes."""
    grids: list[RuledGrid] = field(default_factory=list)
    """The cells between these rules."""

    @property
    def run_text(self) -> str:
        """All words of its runs, from which the language is guessed."""
        return " ".join(run.text for row in self.rows for run in row)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read of it."""
        return not self.rows

    def drop_outside(self) -> None:
        """Leave out what no viewer shows."""
        rows: list[list[TextRun]] = []
        for row in self.rows:
            visible = [run for run in row if self.is_inside(run.x0, run.y0, run.x1, run.y1)]
            if len(visible) < len(row):
                hidden = "".join(run.text for run in row if run not in visible)
                self.outside.append((len(rows), hidden.strip()))
            if visible:
                rows.append(visible)
        # A file may say wrongly how large its pages are.
        if rows:
            self.rows = rows
        else:
            self.outside = []

    def is_inside(self, x0: float, y0: float, x1: float, y1: float) -> bool:
        """Whether any of that place is within the page's edges."""
        right, top = self.width + _EDGE, self.height + _EDGE
        return x1 > -_EDGE and x0 < right and y1 > -_EDGE and y0 < top


def cleaned(raw: str) -> tuple[str, int]:
    """Text without control characters, and how many there were.

    Within a word such a character is a letter that the font does not name: its place is kept.
    """
    if raw.isascii() and raw.isprintable():
        return raw, 0
    text = _LOST.sub("\ufffd", without_radicals(raw.translate(CHARACTERS)))
    removed = len(CONTROL.findall(text))
    return CONTROL.sub("", text) if removed else text, removed


def guarded(read: Callable[[], Any]) -> Any:
    """The result of a reader, or None if it fails: on broken files both raise anything."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # noqa: BLE001 — a panic of pdf_oxide is not an Exception
        return None


def unreadable(text: str) -> int:
    """The number of characters that represent nothing a reader knows."""
    return len(_UNREADABLE.findall(text))


def unmapped(fonts: Iterable[Iterable[str]]) -> int:
    """How many letters, of the texts in each font, are glyph numbers in disguise."""
    return sum(_vowelless(" ".join(texts)) for texts in fonts)


def _vowelless(text: str) -> int:
    # Formulas are vowelless too, but their letters are single.
    letters = "".join(_LETTERS_TOGETHER.findall(text))
    if len(letters) < _MIN_LETTERS or len(_VOWELS.findall(letters)) >= _FEWEST_VOWELS * len(
        letters
    ):
        return 0
    return len(letters)


NOTE_OPEN: Final = "\ue000"
NOTE_CLOSE: Final = "\ue001"
"""Around the number of a footnote in a line's text; no reader hands these characters on."""


class LinePart(NamedTuple):
    """A part of a line with a wide gap on either side."""

    x0: float
    x1: float
    text: str


@dataclass(frozen=True, slots=True)
class PdfLine:
    """One line of a column, with what tells headings from text."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    column: int = 0
    """Counts the columns and cells of a page; a new one begins above or beside the last."""
    cells: bool = False
    """Words are far apart, as in a row of a table."""
    parts: tuple[LinePart, ...] = ()
    """The parts of a line that may be cells; empty where it is one part."""
    table: PdfTable | None = None
    turned: bool = False
    """Set at an angle: margins, stamps, watermarks."""


@dataclass(slots=True)
class PdfBlock:
    """Lines that belong together, each with its page."""

    lines: list[tuple[int, PdfLine]] = field(default_factory=list)
    level: int = 0
    """Of a heading; zero is text."""
    section: str | None = None
    note: str | None = None
    """The number of a footnote that begins here."""

    @property
    def text(self) -> str:
        """All its lines, as they are."""
        return " ".join(line.text for _, line in self.lines)

    @property
    def last(self) -> PdfLine:
        """The line a next one would follow."""
        return self.lines[-1][1]
