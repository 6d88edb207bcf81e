"""Values of form fields, put where they are drawn, and comments: all that people added to a PDF.

Each value is marked, to tell it from the words of the publisher: `☒ Group Health Plan`,
`Name: … foobar`.
"""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pypdfium2
from pypdfium2 import raw

from fonds.normalize.pdf.page import Box, FilledField, PdfComment, PdfPage, TextRun, cleaned
from fonds.normalize.pdf.xfa import XfaValues

TICKED: Final = "☒"
UNTICKED: Final = "☐"
VALUE: Final = "…"
"""In front of a text that was filled in."""
FILLED: Final = re.compile(f"[{TICKED}{UNTICKED}]|(?:^| ){VALUE} ")
"""The marks of filled fields in a line."""

_INVISIBLE: Final = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD: Final = 1 << 13
_TEXTS: Final = frozenset(
    {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
)
_TICKS: Final = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})
_COMMENTS: Final = {
    raw.FPDF_ANNOT_TEXT: "comment",
    raw.FPDF_ANNOT_STAMP: "stamp",
    raw.FPDF_ANNOT_HIGHLIGHT: "comment on a highlight",
    raw.FPDF_ANNOT_UNDERLINE: "comment on an underline",
    raw.FPDF_ANNOT_SQUIGGLY: "comment on an underline",
    raw.FPDF_ANNOT_STRIKEOUT: "comment on a deletion",
    raw.FPDF_ANNOT_CARET: "comment on an insertion",
    **dict.fromkeys(
        (
            raw.FPDF_ANNOT_LINE,
            raw.FPDF_ANNOT_SQUARE,
            raw.FPDF_ANNOT_CIRCLE,
            raw.FPDF_ANNOT_POLYGON,
            raw.FPDF_ANNOT_POLYLINE,
            raw.FPDF_ANNOT_INK,
        ),
        "comment on a drawing",
    ),
}
_MAX_ANNOTATIONS: Final = 10_000
"""Of one page; more are links of a drawing."""
_MAX_BYTES: Final = 1 << 20
_MAX_PACKET_BYTES: Final = 32 << 20
_XFA: Final = (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)

BoxOnPage = Callable[[float, float, float, float], Box]


class FormReader:
    """The annotations of an opened PDF."""

    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._document = document
        self._form: Any = None
        if document.get_formtype() != raw.FORMTYPE_NONE:
            # pypdfium2's own way prints a notice for each XFA form.
            self._settings = raw.FPDF_FORMFILLINFO(version=2)
            self._form = raw.FPDFDOC_InitFormFillEnvironment(document.raw, self._settings)
        self._xfa = XfaValues(_packets(document)) if document.get_formtype() in _XFA else None

    def close(self) -> None:
        """Give pdfium's memory back; the document must still be open."""
        if self._form:
            raw.FPDFDOC_ExitFormFillEnvironment(self._form)
            self._form = None

    def others(self) -> list[tuple[str, str]]:
        """The captions and values of an XFA form that no page draws, once all pages are read."""
        return self._xfa.others() if self._xfa else []

    def read(self, native: Any, page: PdfPage, box_on_page: BoxOnPage) -> None:
        """Add the fields and comments of a page to it."""
        count = min(raw.FPDFPage_GetAnnotCount(native.raw), _MAX_ANNOTATIONS)
        if not count:
            return
        if self._form:
            # Until then pdfium calls every box unticked.
            raw.FORM_OnAfterLoadPage(native.raw, self._form)
        for index in range(count):
            if annotation := raw.FPDFPage_GetAnnot(native.raw, index):
                self._read(annotation, page, box_on_page)
                raw.FPDFPage_CloseAnnot(annotation)
        if self._form:
            raw.FORM_OnBeforeClosePage(native.raw, self._form)

    def _read(self, annotation: Any, page: PdfPage, box_on_page: BoxOnPage) -> None:
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET:
            field = self._field(annotation, box_on_page) if self._form else None
        elif kind == raw.FPDF_ANNOT_FREETEXT:
            field = _typed(annotation, box_on_page)
        else:
            field = None
            if kind in _COMMENTS and (comment := _comment(annotation, _COMMENTS[kind])):
                page.comments.append(comment)
        if field is None:
            return
        if raw.FPDFAnnot_GetFlags(annotation) & _INVISIBLE:
            page.hidden_values += [field.text] * (not field.is_tick)
        else:
            page.fields.append(field)

    def _field(self, annotation: Any, box_on_page: BoxOnPage) -> FilledField | None:
        name = self._text(raw.FPDFAnnot_GetFormFieldName, annotation)
        in_data = self._xfa.take(name) if self._xfa else ""
        kind = raw.FPDFAnnot_GetFormFieldType(self._form, annotation)
        if kind in _TICKS:
            is_ticked = raw.FPDFAnnot_IsChecked(self._form, annotation)
            mark = TICKED if is_ticked else UNTICKED
            return FilledField(_box(annotation, box_on_page), mark, is_tick=True)
        flags = raw.FPDFAnnot_GetFormFieldFlags(self._form, annotation)
        if kind not in _TEXTS or (kind == raw.FPDF_FORMFIELD_TEXTFIELD and flags & _PASSWORD):
            return None
        value = self._text(raw.FPDFAnnot_GetFormFieldValue, annotation)
        if kind != raw.FPDF_FORMFIELD_TEXTFIELD:
            value = self._choice(annotation, value)
        return FilledField(_box(annotation, box_on_page), value or in_data)

    def _choice(self, annotation: Any, value: str) -> str:
        """The chosen options as they are shown; the value, where none of them is it, behind."""
        count = raw.FPDFAnnot_GetOptionCount(self._form, annotation)
        chosen = [
            self._text(raw.FPDFAnnot_GetOptionLabel, annotation, index)
            for index in range(count)
            if raw.FPDFAnnot_IsOptionSelected(self._form, annotation, index)
        ]
        labels = ", ".join(filter(None, chosen))
        if not value or value in chosen:
            return labels
        return f"{labels} ({value})" if labels else value

    def _text(self, function: Any, *arguments: Any) -> str:
        return _string(function, self._form, *arguments)


def _packets(document: pypdfium2.PdfDocument) -> dict[str, bytes]:
    """The parts of an XFA form, by name."""
    packets = {}
    for index in range(raw.FPDF_GetXFAPacketCount(document.raw)):
        length = raw.FPDF_GetXFAPacketName(document.raw, index, None, 0)
        name = ctypes.create_string_buffer(max(length, 1))
        raw.FPDF_GetXFAPacketName(document.raw, index, name, length)
        size = ctypes.c_ulong()
        raw.FPDF_GetXFAPacketContent(document.raw, index, None, 0, size)
        if size.value <= _MAX_PACKET_BYTES:
            content = ctypes.create_string_buffer(max(size.value, 1))
            raw.FPDF_GetXFAPacketContent(document.raw, index, content, size.value, size)
            packets[name.value.decode("utf-8", "replace")] = content.raw[: size.value]
    return packets


def _string(function: Any, *arguments: Any) -> str:
    """The UTF-16 text that a function of pdfium returns, on one line."""
    length = min(function(*arguments, None, 0), _MAX_BYTES)
    if length <= len("\0".encode("utf-16-le")):
        return ""
    buffer = (ctypes.c_ushort * (length // 2))()
    function(*arguments, buffer, length)
    text, _ = cleaned(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").replace("\r", "\n"))
    return " ".join(text.split())


def _box(annotation: Any, box_on_page: BoxOnPage) -> Box:
    rect = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rect)
    return box_on_page(rect.left, rect.bottom, rect.right, rect.top)


def _typed(annotation: Any, box_on_page: BoxOnPage) -> FilledField | None:
    """Text typed on the page, as forms without fields are filled in."""
    text = _entry(annotation, b"Contents")
    return FilledField(_box(annotation, box_on_page), text) if text else None


def _comment(annotation: Any, kind: str) -> PdfComment | None:
    text = _entry(annotation, b"Contents")
    if not text and kind == "stamp":
        text = _entry(annotation, b"Name") or _entry(annotation, b"Subj") or "without text"
    return PdfComment(kind, _entry(annotation, b"T"), text) if text else None


def _entry(annotation: Any, key: bytes) -> str:
    return _string(raw.FPDFAnnot_GetStringValue, annotation, key)


# Positions --------------------------------------------------------------------------------

_MIN_OVERLAP: Final = 0.4
_TALL: Final = 2.5
_NEAR: Final = 3.0
"""Type sizes between a label and its field."""
_SLACK: Final = 3.0
_SIZE: Final = 10.0
_WIDTH: Final = 0.5
_BLANK: Final = re.compile(r"\s*[_.·]{3,}\s*")


class _Anchor(NamedTuple):
    row: int
    run: int
    is_after: bool
    """The value follows that run, else it is before it."""
    has_own_row: bool


def insert_values(page: PdfPage) -> None:
    """Put the values of a page's fields into its rows, and forget the fields."""
    filled = [field for field in page.fields if field.text]
    page.filled += sum(field.text != UNTICKED for field in filled)
    if filled:
        page.rows = _with_values(page.rows, filled, page.fields)
    page.fields = []


def is_blank(text: str) -> bool:
    """True for a line or dots to write on."""
    return _BLANK.fullmatch(text) is not None


def breaks_line(field: FilledField, before: Box, box: Box) -> bool:
    """True if a field begins between two words that are drawn at once."""
    start = (field.box[0] + field.box[2]) / 2 if field.is_tick else field.box[0] + _SLACK
    level = (field.box[1], field.box[3])
    between = (before[0] + before[2]) / 2 < start <= (box[0] + box[2]) / 2
    return between and _overlap(level, (box[1], box[3])) > 0


def _with_values(
    rows: Sequence[list[TextRun]], filled: Iterable[FilledField], fields: Sequence[FilledField]
) -> list[list[TextRun]]:
    within: defaultdict[tuple[int, int, bool], list[TextRun]] = defaultdict(list)
    own: defaultdict[tuple[int, bool], list[list[TextRun]]] = defaultdict(list)
    for field in sorted(filled, key=lambda field: (-field.box[3], field.box[0])):
        anchor = _anchor(field, rows, fields)
        label = rows[anchor.row][anchor.run] if anchor else None
        if anchor is None or anchor.has_own_row:
            size = label.size if label and label.size else _SIZE
            key = (anchor.row, anchor.is_after) if anchor else (0, True)
            own[key].append([_value(field, _baseline(field, size), size)])
        elif label is not None:
            value = _value(field, label.y0, label.size or _SIZE)
            within[anchor.row, anchor.run, anchor.is_after].append(value)
    result: list[list[TextRun]] = []
    for at, row in enumerate(rows):
        result += own[at, False]
        if runs := [
            run for run in _row_with_values(at, row, within) if not _is_filled(run, filled)
        ]:
            result.append(runs)
        result += own[at, True]
    return result if rows else own[0, True]


def _row_with_values(
    at: int, row: Sequence[TextRun], within: defaultdict[tuple[int, int, bool], list[TextRun]]
) -> Iterator[TextRun]:
    for number, run in enumerate(row):
        before, after = within[at, number, False], within[at, number, True]
        yield from sorted(before, key=lambda value: value.x0)
        yield run
        yield from sorted(after, key=lambda value: value.x0)


def _is_filled(run: TextRun, filled: Iterable[FilledField]) -> bool:
    """True for a run that is only the line or the dots under a value."""
    return is_blank(run.text) and any(
        _same_line(field, run) and _overlap((field.box[0], field.box[2]), (run.x0, run.x1)) > 0
        for field in filled
        if not field.is_tick
    )


def _value(field: FilledField, base: float, size: float) -> TextRun:
    text = field.text if field.is_tick else f"{VALUE} {field.text}"
    x0, _, right, _ = field.box
    x1 = right if field.is_tick else min(right, x0 + _WIDTH * size * len(text))
    return TextRun(x0, base, x1, base + size, size, bold=False, text=f" {text} ")


def _baseline(field: FilledField, size: float) -> float:
    _, bottom, _, top = field.box
    return top - 1.1 * size if top - bottom > _TALL * size else (top + bottom) / 2 - 0.35 * size


def _anchor(
    field: FilledField, rows: Sequence[Sequence[TextRun]], fields: Sequence[FilledField]
) -> _Anchor | None:
    """The text that a field belongs to: at its side, above or below it."""
    runs = [
        (row, number, run)
        for row, runs in enumerate(rows)
        for number, run in enumerate(runs)
        if run.text.strip() and not run.turned
    ]
    if not runs:
        return None
    nearest = min(runs, key=lambda each: _distance(field, each[2], fields))
    row, number, run = nearest
    if _same_line(field, run):
        return _Anchor(
            row, number, is_after=_middle(run.x0, run.x1) < _start(field), has_own_row=False
        )
    return _Anchor(row, number, is_after=run.y0 > field.box[1], has_own_row=True)


def _distance(field: FilledField, run: TextRun, fields: Sequence[FilledField]) -> tuple[int, float]:
    """The rank of a text as the label of a field, lowest first: its position, then its distance."""
    size = run.size or _SIZE
    x0, y0, x1, y1 = field.box
    if _same_line(field, run):
        is_left = _middle(run.x0, run.x1) < _start(field)
        gap = max(x0 - run.x1 if is_left else run.x0 - x1, 0.0)
        if any(_is_between(field, run, other) for other in fields):
            return 4, gap
        if field.is_tick:
            return 0 if gap < _NEAR * size else 3, gap
        return (0 if gap < _NEAR * size else 2) if is_left else 3, gap
    gap = max(run.y0 - y1, y0 - run.y1, 0.0)
    if _overlap((x0, x1), (run.x0, run.x1)) <= 0:
        return 5, gap + max(run.x0 - x1, x0 - run.x1)
    return 1 if gap < 1.5 * size and not field.is_tick else 3, gap + size


def _start(field: FilledField) -> float:
    x0, _, x1, _ = field.box
    return _middle(x0, x1) if field.is_tick else x0 + _SLACK


def _middle(one: float, other: float) -> float:
    return (one + other) / 2


def _same_line(field: FilledField, run: TextRun) -> bool:
    _, y0, _, y1 = field.box
    height = min(y1 - y0, run.y1 - run.y0)
    return _overlap((y0, y1), (run.y0, run.y1)) > _MIN_OVERLAP * height


def _is_between(field: FilledField, run: TextRun, other: FilledField) -> bool:
    """True if another field on this line is nearer to the text."""
    if other is field or _overlap((field.box[1], field.box[3]), (other.box[1], other.box[3])) <= 0:
        return False
    left, right = sorted((_middle(run.x0, run.x1), _start(field)))
    return left < _start(other) < right


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])
