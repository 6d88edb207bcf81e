"""An opened PDF: pdfium reads its text, and pdf_oxide what pdfium cannot.

The text layer as pdfium reads it: words in the order they are drawn, with their places.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import pdf_oxide
import pypdfium2 as pdfium
from pypdfium2 import raw

from fonds.errors import EncryptedError, MalformedError, ParseError, WrongContentError
from fonds.normalize.pdf.forms import FormReader, breaks_line, insert_values, is_blank
from fonds.normalize.pdf.grid import RuledGrid
from fonds.normalize.pdf.images import pictures_of
from fonds.normalize.pdf.page import (
    WORDS,
    Box,
    PdfPage,
    TextRun,
    cleaned,
    guarded,
    unmapped,
    unreadable,
)
from fonds.normalize.pdf.paths import Drawing, drawing_of

# Where a line ends in a hyphen, pdfium writes a non-character and goes on.
_LINE: Final = re.compile("[^\r\n\ufffe\x02]+[\ufffe\x02]?")
_HYPHEN_ENDS: Final = ("\ufffe", "\x02")
_BLANKS: Final = " \t\xa0\u3000\ufffe\x02"
# A number behind a word may be a footnote's, of another size.
_WORD: Final = re.compile(r"\S+?(?=\d{1,3}(?:\s|$))|\S+")
# Fields lie over the lines or dots that show where to write.
_FORM_WORD: Final = re.compile(r"([_.])\1+|(?:(?!([_.])\2)\S)+")
_BOLD: Final = re.compile(r"bold|black|heavy|demi(?!-?light)|(?:^|[-,])(?:bd|bf)\b", re.IGNORECASE)
_BOLD_TEX: Final = re.compile(r"\b(?:CMBX|CMB|SFBX|LMRoman\d+-Bold|ecbx)\d*", re.IGNORECASE)
_FORCE_BOLD: Final = 1 << 18
_NAME_LENGTH: Final = 256
_TURNED: Final = 0.1
_CLOSE: Final = 0.5
_UPRIGHT: Final = 1.7
_AT_WALL: Final = 1.5
_TOUCHING: Final = 0.3
_WORDS: Final = re.compile(r"\S+")
_LOOSE: Final = 0.66
"""Width of a letter, to the height of its line, above which words may be far apart."""
_GAP: Final = 1.15
_GAPS: Final = 1.7
_NUMBERS: Final = re.compile(r"[-–(+$€£¥]*\d[\d.,]*[)%*]*")
_NUMBER_GAP: Final = 0.75
"""The narrowest gap between two numbers, which follow each other in no sentence."""
_TIMES: Final = 2.0
_BASIC_PLANE: Final = 0xFFFF


_Wall = tuple[float, float, float]
"""The side of a cell: its distance from the left, its bottom and its top."""


class _Style(NamedTuple):
    font: int
    nominal: float
    """The size as the font is asked for, before the page is scaled."""
    size: float
    bold: bool
    turned: bool
    base: float

    def suits(self, font: int, nominal: float, bottom: float) -> bool:
        """Whether letters of that font are on this line, neither raised nor lowered."""
        level = -0.3 * self.size < bottom - self.base < 0.1 * self.size
        return level and not self.turned and (font, nominal) == (self.font, self.nominal)


class NativeText:
    """One page's text; `rows` gives it once, before `close`."""

    def __init__(self, native: Any, page: PdfPage) -> None:
        self._textpage = native.get_textpage()
        self._raw = self._textpage.raw
        self._page = page
        self._size = native.get_size()
        self.text = str(self._textpage.get_text_range())
        self._astral = _astral_positions(self.text)
        self._same_counts = self._textpage.count_chars() == len(self.text)
        self._numbers = [ctypes.c_double() for _ in range(4)]
        self._references = [ctypes.byref(number) for number in self._numbers]
        self._matrix = raw.FS_MATRIX()
        self._bold: dict[int, bool] = {}
        self._breaks: set[int] = set()
        """The starts of words before which a run ends, for a field begins there."""
        self.walls: list[_Wall] = []
        """The upright sides of cells, from the left: no run goes through one."""
        self.fonts: dict[int, list[str]] = {}
        """The text in each font."""

    def close(self) -> None:
        """Give pdfium's memory back."""
        self._textpage.close()

    def rows(self) -> list[list[TextRun]]:
        """The runs of each line, in the order of the content stream."""
        return [row for line in _LINE.finditer(self.text) if (row := self._row(line))]

    def _row(self, line: re.Match[str]) -> list[TextRun]:
        words = line[0].strip(_BLANKS)
        if not words:
            return []
        start = line.start() + line[0].index(words)
        end = start + len(words)
        boxes = self._boxes(*self._range(start, end))
        if boxes and not any(self._page.is_inside(*box) for box in boxes):
            return [TextRun(*boxes[0], size=0.0, bold=False, text=self._cleaned(words))]
        groups = [(start, end, self._object(self._index(start)))]
        if len(boxes) > 1 or self._page.fields:
            groups = self._groups(start, end)
        if len(boxes) != len(groups):
            boxes = [self._box(first, last) for first, last, _ in groups]
        groups, boxes = self._at_gaps(groups, boxes)
        if self.walls:
            groups, boxes = self._between_walls(groups, boxes)
        row = self._runs(groups, boxes)
        if row and line[0].endswith(_HYPHEN_ENDS):
            row[-1] = replace(row[-1], text=row[-1].text + "-")
        return row

    def _groups(self, start: int, end: int) -> list[tuple[int, int, Any]]:
        """The words of a line that the file draws at once, together."""
        groups: list[tuple[int, int, Any]] = []
        last = None
        words = _FORM_WORD if self._page.fields else _WORD
        for word in words.finditer(self.text, start, end):
            drawn = self._object(self._index(word.start()))
            address = _address(drawn)
            if address == last and not self._is_break(word):
                groups[-1] = (groups[-1][0], word.end(), drawn)
            else:
                groups.append((*word.span(), drawn))
            last = address
        return groups

    def _is_break(self, word: re.Match[str]) -> bool:
        """True if a field of a form, or a line to write on, begins or ends before this word."""
        if not self._page.fields:
            return False
        start = len(self.text[: word.start()].rstrip())
        before, box = self._box(start - 1, start), self._box(*word.span())
        is_break = is_blank(word[0]) or is_blank(self.text[start - 3 : start])
        is_break |= any(breaks_line(field, before, box) for field in self._page.fields)
        if is_break:
            self._breaks.add(word.start())
        return is_break

    def _runs(self, groups: list[tuple[int, int, Any]], boxes: list[Box]) -> list[TextRun]:
        """One run for each group, or for those in one type that follow each other closely."""
        merged: list[tuple[int, int, _Style, Box]] = []
        for (start, end, drawn), box in zip(groups, boxes, strict=True):
            first, _, last, before = merged[-1] if merged else (0, 0, None, box)
            style = self._style(self._index(start), drawn, box[1], last)
            is_close = style is last and 0 <= box[0] - before[2] < _CLOSE * style.size
            is_divided = start in self._breaks or self._wall_in(
                ((before[0] + before[2]) / 2, *box[1:])
            )
            if is_close and not is_divided:
                merged[-1] = (first, end, style, (before[0], before[1], box[2], before[3]))
            else:
                merged.append((start, end, style, box))
        runs = [self._run(*one) for one in merged]
        return [run for run in runs if run.text]

    def _at_gaps(
        self, groups: list[tuple[int, int, Any]], boxes: list[Box]
    ) -> tuple[list[tuple[int, int, Any]], list[Box]]:
        """Groups of words, divided at gaps: a file may draw a row of a table at once."""
        divided: list[tuple[int, int, Any]] = []
        divided_boxes: list[Box] = []
        for (start, end, drawn), box in zip(groups, boxes, strict=True):
            height = box[3] - box[1]
            cuts: list[int] = []
            if box[2] - box[0] > _LOOSE * height * (end - start):
                cuts = self._cuts(start, end, height)
            if not cuts:
                divided.append((start, end, drawn))
                divided_boxes.append(box)
                continue
            for first, after in pairwise([start, *cuts, end]):
                last = first + len(self.text[first:after].rstrip(_BLANKS))
                divided.append((first, last, drawn))
                divided_boxes.append(self._box(first, last))
        return divided, divided_boxes

    def _cuts(self, start: int, end: int, height: float) -> list[int]:
        """The starts of words that are far from the one before."""
        words = [match.span() for match in _WORDS.finditer(self.text, start, end)]
        gaps = [
            self._letter(after)[0] - self._letter(last - 1)[2]
            for (_, last), (after, _) in pairwise(words)
        ]
        if not gaps:
            return []
        # Where all words are far apart, each is a cell; where letters are, none is.
        usual = min(gaps)
        widest = _GAP * height if usual > _GAPS * height else max(_GAP * height, _TIMES * usual)
        numbers = [bool(_NUMBERS.fullmatch(self.text, *word)) for word in words]
        return [
            words[at][0]
            for at, gap in enumerate(gaps, 1)
            if gap > (_NUMBER_GAP * height if numbers[at - 1] and numbers[at] else widest)
        ]

    def _letter(self, at: int) -> Box:
        """The extent of one letter."""
        x0, x1, y0, y1 = self._numbers
        left, right, bottom, top = self._references
        raw.FPDFText_GetCharBox(self._raw, self._index(at), left, right, bottom, top)
        return self.box_on_page(x0.value, y0.value, x1.value, y1.value)

    def _wall_in(self, box: Box) -> bool:
        """The side of a cell is within this box."""
        x0, y0, x1, y1 = box
        middle = (y0 + y1) / 2
        first = bisect_left(self.walls, (x0 + _AT_WALL,))
        last = bisect_left(self.walls, (x1 - _AT_WALL,))
        return any(bottom < middle < top for _, bottom, top in self.walls[first:last])

    def _between_walls(
        self, groups: list[tuple[int, int, Any]], boxes: list[Box]
    ) -> tuple[list[tuple[int, int, Any]], list[Box]]:
        """Groups of words, divided where the side of a cell goes through."""
        divided: list[tuple[tuple[int, int, Any], Box]] = []
        for group, box in zip(groups, boxes, strict=True):
            if not self._wall_in(box):
                divided.append((group, box))
                continue
            for start, end, word_box in self._words_or_letters(*group[:2]):
                last = divided[-1] if divided else None
                if (
                    last
                    and last[0][1] > group[0]
                    and not self._wall_in((last[1][2] - _AT_WALL, *word_box[1:]))
                ):
                    divided[-1] = ((last[0][0], end, group[2]), _around(last[1], word_box))
                else:
                    divided.append(((start, end, group[2]), word_box))
        return [group for group, _ in divided], [box for _, box in divided]

    def _words_or_letters(self, start: int, end: int) -> Iterator[tuple[int, int, Box]]:
        """The words of a group, and the letters of those that fill several cells."""
        for word in re.finditer(r"\S+", self.text[start:end]):
            first, last = start + word.start(), start + word.end()
            box = self._box(first, last)
            letters = []
            if self._wall_in(box):
                letters = [(at, at + 1, self._letter(at)) for at in range(first, last)]
            if letters and self._are_separate(word[0], [letter for _, _, letter in letters]):
                yield from letters
            else:
                yield first, last, box

    def _are_separate(self, word: str, letters: Sequence[Box]) -> bool:
        """Letters are in boxes of their own; a digit may touch the side of its box."""
        if word.isdecimal():
            letters = [
                (x0 + _TOUCHING * (x1 - x0), y0, x1 - _TOUCHING * (x1 - x0), y1)
                for x0, y0, x1, y1 in letters
            ]
        return not any(map(self._wall_in, letters))

    def _cleaned(self, words: str) -> str:
        text, removed = cleaned(words)
        self._page.removed += removed
        return text

    def _run(self, start: int, end: int, style: _Style, box: Box) -> TextRun:
        text = self._cleaned(self.text[start:end])
        self.fonts.setdefault(style.font, []).append(text)
        if text and start and self.text[start - 1].isspace():
            text = f" {text}"
        x0, y0, x1, y1 = box
        # Letters of one line are nowhere that high.
        vertical = not style.turned and y1 - y0 > _UPRIGHT * max(style.size, x1 - x0)
        if not (style.turned or vertical):
            y0, y1 = style.base, style.base + style.size
        return TextRun(x0, y0, x1, y1, style.size, style.bold, text, style.turned, vertical)

    def _index(self, at: int) -> int:
        """The number pdfium gives a character: it counts some that represent nothing."""
        if self._same_counts:
            return at
        at += bisect_left(self._astral, at)
        return int(raw.FPDFText_GetCharIndexFromTextIndex(self._raw, at))

    def _object(self, index: int) -> Any:
        return raw.FPDFText_GetTextObject(self._raw, index)

    def _range(self, start: int, end: int) -> tuple[int, int]:
        """The first of pdfium's characters, and how many there are."""
        first = self._index(start)
        return first, self._index(end - 1) - first + 1

    def _boxes(self, index: int, count: int) -> list[Box]:
        """One for each object that draws some of these characters."""
        left, top, right, bottom = self._numbers
        boxes = []
        for number in range(raw.FPDFText_CountRects(self._raw, index, count)):
            raw.FPDFText_GetRect(self._raw, number, *self._references)
            boxes.append(self.box_on_page(left.value, bottom.value, right.value, top.value))
        return boxes

    def _box(self, start: int, end: int) -> Box:
        index, count = self._range(start, end)
        boxes = self._boxes(index, count)
        if not boxes:
            return 0.0, 0.0, 0.0, 0.0
        lefts, bottoms, rights, tops = zip(*boxes, strict=True)
        return min(lefts), min(bottoms), max(rights), max(tops)

    def box_on_page(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """A box in the coordinates of the file as a viewer shows it."""
        if not self._page.rotation:
            left, bottom = self._page.left, self._page.bottom
            return x0 - left, y0 - bottom, x1 - left, y1 - bottom
        (x0, y0), (x1, y1) = self._on_page(x0, y0), self._on_page(x1, y1)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def _on_page(self, x: float, y: float) -> tuple[float, float]:
        """A place as a viewer shows it: from the lower left corner of the turned page."""
        x, y = x - self._page.left, y - self._page.bottom
        width, height = self._size
        match self._page.rotation:
            case 90:
                return y, height - x
            case 180:
                return width - x, height - y
            case 270:
                return width - y, x
        return x, y

    def _style(self, index: int, drawn: Any, bottom: float, last: _Style | None) -> _Style:
        font = raw.FPDFTextObj_GetFont(drawn) if drawn else None
        address = _address(font) if font else 0
        nominal = raw.FPDFText_GetFontSize(self._raw, index)
        if last is not None and last.suits(address, nominal, bottom):
            return last
        matrix = self._matrix
        if not raw.FPDFText_GetMatrix(self._raw, index, matrix):
            return _Style(address, nominal, nominal, bold=False, turned=False, base=bottom)
        a, b = matrix.a, matrix.b
        for _ in range(self._page.rotation // 90):
            a, b = b, -a
        turned = a <= 0 or abs(b) > _TURNED * a
        size = abs(nominal) * ((matrix.c**2 + matrix.d**2) ** 0.5 or 1.0)
        base = self._on_page(matrix.e, matrix.f)[1]
        # A type's own letters may be laid out anywhere around the point they are drawn at.
        if not bottom - size < base < bottom + size:
            base = bottom
        bold = font is not None and self._is_bold(drawn, font)
        return _Style(address, nominal, size, bold, turned, base)

    def _is_bold(self, drawn: Any, font: Any) -> bool:
        # Some writers make a font bold by drawing the outlines of its letters as well.
        if raw.FPDFTextObj_GetTextRenderMode(drawn) == raw.FPDF_TEXTRENDERMODE_FILL_STROKE:
            return True
        address = _address(font)
        if address not in self._bold:
            self._bold[address] = bool(font) and _bold_font(font)
        return self._bold[address]


def _astral_positions(text: str) -> list[int]:
    """The positions of characters that pdfium counts as two."""
    if max(text, default="") <= chr(_BASIC_PLANE):
        return []
    return [at for at, character in enumerate(text) if ord(character) > _BASIC_PLANE]


def _bold_font(font: Any) -> bool:
    buffer = ctypes.create_string_buffer(_NAME_LENGTH)
    raw.FPDFFont_GetBaseFontName(font, buffer, _NAME_LENGTH)
    name = buffer.value.decode("utf-8", "replace")
    if _BOLD.search(name) or _BOLD_TEX.search(name):
        return True
    return bool(raw.FPDFFont_GetFlags(font) & _FORCE_BOLD)


def _address(pointer: Any) -> int:
    return ctypes.c_void_p.from_buffer(pointer).value or 0


pdf_oxide.disable_logging()

_HTML: Final = re.compile(rb"^\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_MAX_PAGES: Final = 50_000
_MAX_SIDE: Final = 200_000.0
_MAX_PIXELS: Final = 50_000_000
_FEW_CHARACTERS: Final = 24
_GARBAGE: Final = 0.3
_MORE: Final = 1.05
_LANGUAGE_LENGTH: Final = 64
_DOUBTFUL: Final = 0.05


@dataclass(frozen=True, slots=True)
class _PageText:
    """A page's words as one reader gives them."""

    text: str
    unmapped: int
    """Letters in fonts that do not say which letters they are."""

    @property
    def letters(self) -> int:
        """How many are letters or digits."""
        return sum(map(len, WORDS.findall(self.text)))

    @property
    def few(self) -> bool:
        """Whether it may not be text at all, but numbers and names stamped on a picture."""
        return len("".join(self.text.split())) < _FEW_CHARACTERS or not WORDS.search(self.text)

    @property
    def garbage_ratio(self) -> float:
        """The fraction of characters that are not readable letters."""
        if not self.text:
            return 0.0
        return (unreadable(self.text) + self.unmapped) / len(self.text)


class Pdf:
    """An opened file; every failure of either reader is an answer or a `ParseError`."""

    has_used_oxide = False
    """Whether any file of this process was given to it."""

    def __init__(self, data: bytes) -> None:
        _refuse(data)
        self._data = data
        self._pdfium, garbage_ratio = _open_pdfium(data)
        self._second: Any = None
        self._used_oxide = False
        if isinstance(garbage_ratio, ParseError) and not self._readable():
            raise garbage_ratio
        pages = len(self._pdfium) if self._pdfium is not None else self._oxide_pages()
        if pages == 0:
            raise MalformedError(f"this PDF cannot be read: {garbage_ratio or 'it has no pages'}")
        if pages > _MAX_PAGES:
            raise MalformedError(f"this PDF claims {pages} pages; at most {_MAX_PAGES} are read")
        self.page_count = pages
        self._forms = FormReader(self._pdfium) if self._pdfium is not None else None

    def close(self) -> None:
        """Give the readers' memory back."""
        if self._forms is not None:
            self._forms.close()
        if self._pdfium is not None:
            self._pdfium.close()

    def page(self, index: int) -> PdfPage:
        """The content of a page, counted from zero."""
        page = PdfPage(number=index + 1)
        native = guarded(lambda: self._pdfium[index]) if self._pdfium is not None else None
        try:
            self._measure(page, native)
            self._read(page, native)
        finally:
            if native is not None:
                native.close()
        return page

    def unplaced_values(self) -> list[tuple[str, str]]:
        """The captions and values of a form that no page draws, once all pages are read."""
        return (guarded(self._forms.others) or []) if self._forms is not None else []

    def render(self, index: int, scale: float) -> Any:
        """The page as a grey bitmap of pdfium, or None where it cannot be drawn."""
        if self._pdfium is None:
            return None

        def render() -> Any:
            page = self._pdfium[index]
            width, height = page.get_size()
            return page.render(
                scale=min(scale, (_MAX_PIXELS / (width * height)) ** 0.5), grayscale=True
            )

        return guarded(render)

    @property
    def language(self) -> str | None:
        """The language the file declares."""
        buffer = (ctypes.c_ushort * _LANGUAGE_LENGTH)()

        def read() -> int:
            length = _LANGUAGE_LENGTH * 2
            return int(pdfium.raw.FPDFCatalog_GetLanguage(self._pdfium, buffer, length))

        length = (guarded(read) or 0) if self._pdfium is not None else 0
        return bytes(buffer)[: max(length - 2, 0)].decode("utf-16-le", "replace") or None

    @property
    def title(self) -> str | None:
        """The title in the file's metadata."""
        if self._pdfium is None:
            return None
        title = guarded(lambda: self._pdfium.get_metadata_value("Title")) or ""
        return cleaned(title)[0] or None

    def remarks(self) -> list[str]:
        """Warnings of contents that are not pages and are not read."""
        remarks = []
        if self._pdfium is not None:
            if attached := guarded(self._pdfium.count_attachments):
                remarks.append(f"{attached} attached files are not read")
            if guarded(self._pdfium.get_formtype) == pdfium.raw.FORMTYPE_XFA_FULL:
                remarks.append(
                    "this PDF is an XFA form: a viewer may show other pages than those read; the "
                    "values of its form are read"
                )
        return remarks

    @property
    def _oxide(self) -> Any:
        """The other reader, opened when first asked: most files need it for nothing."""
        if not self._used_oxide:
            self._used_oxide = Pdf.has_used_oxide = True
            self._second = guarded(lambda: pdf_oxide.PdfDocument.from_bytes(self._data))
        return self._second

    def _readable(self) -> bool:
        """Whether the other reader finds text: it knows ciphers that pdfium does not."""
        pages = min(self._oxide_pages(), 5)
        return any(guarded(partial(self._oxide.extract_spans, at)) for at in range(pages))

    def _oxide_pages(self) -> int:
        return guarded(lambda: int(self._oxide.page_count())) or 0

    def _measure(self, page: PdfPage, native: Any) -> None:
        if native is not None:
            width, height = native.get_size()
            page.left, page.bottom = native.get_bbox()[:2]
            page.rotation = native.get_rotation()
            page.label = guarded(lambda: self._pdfium.get_page_label(page.number - 1)) or None
        else:
            box = guarded(lambda: self._oxide.page_media_box(page.number - 1)) or (0, 0, 0, 0)
            width, height = box[2] - box[0], box[3] - box[1]
        if 0 < width < _MAX_SIDE and 0 < height < _MAX_SIDE:
            page.width, page.height = width, height

    def _read(self, page: PdfPage, native: Any) -> None:
        words = None
        if native is not None:
            words = guarded(lambda: _native_text(page, native, self._forms))
        if words is None or words.garbage_ratio > _DOUBTFUL or not WORDS.search(words.text):
            words = self._fallback_if_better(page, words or _PageText("", 0))
        page.characters = Counter(words.text)
        garbage = words.garbage_ratio > _GARBAGE
        page.scanned = garbage or (words.few and _has_image(native))
        # A few words on a picture may be its caption: they stay, unless more can be read.
        if garbage or not WORDS.search(words.text):
            page.rows = []
        page.drop_outside()
        if not page.scanned:
            insert_values(page)

    def _fallback_if_better(self, page: PdfPage, words: _PageText) -> _PageText:
        """The words of the other reader, where it can make more of the fonts than pdfium."""
        spans = guarded(lambda: self._oxide.extract_spans(page.number - 1)) or ()
        fonts: dict[str, list[str]] = {}
        for span in spans:
            fonts.setdefault(span.font_name, []).append(span.text)
        other = _PageText(" ".join(span.text for span in spans), unmapped(fonts.values()))
        if other.letters <= _MORE * words.letters or other.garbage_ratio > words.garbage_ratio:
            return words
        page.rows = _span_rows(page, spans)
        return other


def _native_text(page: PdfPage, native: Any, forms: FormReader | None) -> _PageText:
    text = NativeText(native, page)
    try:
        if forms is not None:
            forms.read(native, page, text.box_on_page)
        drawing = guarded(lambda: drawing_of(native, text.box_on_page)) or Drawing([], [])
        page.rules, page.grids = drawing.rules_and_grids()
        text.walls = _walls(page.grids)
        page.rows = text.rows()
        page.pictures = guarded(lambda: pictures_of(native, text.box_on_page)) or []
    finally:
        text.close()
    return _PageText(text.text, unmapped(text.fonts.values()))


def _walls(grids: Iterable[RuledGrid]) -> list[_Wall]:
    """Both sides of all cells, from the left."""
    walls = set()
    for grid in grids:
        for cell in grid.cells:
            x0, y0, x1, y1 = grid.box_of(cell)
            walls |= {(x0, y0, y1), (x1, y0, y1)}
    return sorted(walls)


def _around(one: Box, other: Box) -> Box:
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _span_rows(page: PdfPage, spans: Any) -> list[list[TextRun]]:
    rows = []
    ordered = sorted(spans, key=lambda span: span.sequence)
    for _, line in groupby(ordered, key=lambda span: round(span.bbox[1])):
        rows.append([run for span in line if (run := _span_run(page, span)).text])
    return [row for row in rows if row]


def _span_run(page: PdfPage, span: Any) -> TextRun:
    x, y, width, height = span.bbox
    x, y = x - page.left, y - page.bottom
    text, _ = cleaned(span.text)
    turned = span.page_bbox != span.bbox
    size = span.font_size or height
    return TextRun(x, y, x + width, y + height, size, span.is_bold, text, turned=turned)


def _refuse(data: bytes) -> None:
    if not data.strip(b"\0 \r\n\t"):
        raise MalformedError("this PDF is empty; fetch it again")
    if _HTML.match(data[:1024]):
        raise WrongContentError("this is a web page, not a PDF; look at what the address answers")
    if b"%PDF" not in data[:4096] and b" obj" not in data[:65536]:
        raise WrongContentError("this is not a PDF: it does not begin with %PDF")


def _open_pdfium(data: bytes) -> tuple[Any, str | ParseError]:
    try:
        document = pdfium.PdfDocument(data)
        len(document)
    except pdfium.PdfiumError as error:
        reason = str(error)
        if "password" in reason.lower():
            return None, EncryptedError(
                "this PDF is encrypted and opens only with a password; ask its publisher for an "
                "open copy"
            )
        return None, "neither reader finds a document in it; it is damaged or cut off"
    return document, ""


def _has_image(native: Any) -> bool:
    kind = pdfium.raw.FPDF_PAGEOBJ_IMAGE

    def image() -> Any:
        return next(iter(native.get_objects(filter=[kind], max_depth=3)), None)

    return native is not None and guarded(image) is not None


def should_recycle() -> bool:
    """Whether this process has read something that may show in what it reads next."""
    # pdf_oxide keeps fonts of one document for the next, and has been seen to mix them up.
    return Pdf.has_used_oxide
