"""PDF files as Markdown: columns in reading order, heads and feet as page marks."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

from fonds.errors import NoTextError
from fonds.model import BaseNormalizer, NormalizedBody, ReadingReport
from fonds.normalize.markdown import MarkdownWriter, html_comment
from fonds.normalize.pdf.blocks import Joiner, blocks_of, note_names
from fonds.normalize.pdf.document import Pdf
from fonds.normalize.pdf.forms import VALUE, insert_values
from fonds.normalize.pdf.kanji import common_forms, other_forms
from fonds.normalize.pdf.layout import lines_of
from fonds.normalize.pdf.losses import left_out_of, loss_warnings
from fonds.normalize.pdf.marks import without_marks
from fonds.normalize.pdf.ocr.engines import Recognizer, installed_recognizer
from fonds.normalize.pdf.page import NOTE_CLOSE, NOTE_OPEN, PdfBlock, PdfPage
from fonds.normalize.pdf.page_tables import with_joined_tables, with_tables
from fonds.normalize.pdf.running_heads import Stripped, page_labels, without_running_heads
from fonds.normalize.pdf.scans import OCR_ADVICE, read_scans
from fonds.normalize.pdf.table_model import PdfTable
from fonds.normalize.pdf.watermarks import remove_watermarks

_NOTE: Final = re.compile(f"{NOTE_OPEN}(.+?){NOTE_CLOSE}")
_NOTE_LABEL: Final = re.compile(rf"(?:{NOTE_OPEN})?(?:\d{{1,3}}|[*†‡])(?:{NOTE_CLOSE})?\s*[.)]?\s*")
# pdfium keeps state of its own for the whole process.
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(frozen=True)
class PdfNormalizer(BaseNormalizer):
    """The normalizer `pdf_v1`."""

    name = "pdf_v1"
    version = "3.0.0"
    accepts_format = "pdf"
    recognizer: Recognizer | None = field(default_factory=installed_recognizer)
    """Reads pages without text; None leaves them out, with a warning each."""

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:  # noqa: ARG002 — a PDF is one document
        """The whole file as Markdown, or a `ParseError` that names the cause."""
        with _ONE_AT_A_TIME:
            pages, warnings = _read(data, self.recognizer)
        remove_watermarks(pages)
        read = [lines_of(page) for page in pages]
        stripped = without_running_heads(read, [page.height for page in pages])
        lines = [
            with_tables(page, before, after.lines)
            for page, before, after in zip(pages, read, stripped, strict=True)
        ]
        labels = page_labels([page.number for page in stripped], [page.label for page in pages])
        blocks = with_joined_tables(blocks_of(lines))
        margin_texts = _margin_texts(pages, stripped)
        writer = _PdfWriter(Joiner(lines), labels, margin_texts, note_names(blocks))
        for block in blocks:
            writer.write(block)
        warnings += loss_warnings(pages, stripped, lines)
        body = writer.finish(warnings, pages)
        if any(page.ocr for page in pages):
            body = without_marks(body)
        return replace(
            body,
            report=_report(pages, blocks),
            left_out=left_out_of(pages, stripped, body.pages),
        )


def _report(pages: Sequence[PdfPage], blocks: Sequence[PdfBlock]) -> ReadingReport:
    return ReadingReport(
        title=pages[0].title,
        pages=len(pages),
        fields=sum(page.filled for page in pages),
        tables=sum(block.lines[0][1].table is not None for block in blocks),
        ocr_pages=tuple(page.ocr for page in pages if page.ocr),
        pictures_not_read=tuple(page.number for page in pages for _ in page.pictures),
    )


def _margin_texts(pages: Sequence[PdfPage], stripped: Sequence[Stripped]) -> list[str]:
    """The text in the margins before each page's text, and behind the last page's."""
    between = [""] * (len(pages) + 1)
    for at, (page, bare) in enumerate(zip(pages, stripped, strict=True)):
        before = [
            *page.watermarks,
            *bare.before,
            *(text for rows, text in page.outside if not rows),
        ]
        after = [*(text for rows, text in page.outside if rows), *bare.after]
        between[at] = " ".join([between[at], *before]).strip()
        between[at + 1] = " ".join(after)
    return between


def _read(data: bytes, recognizer: Recognizer | None) -> tuple[list[PdfPage], tuple[str, ...]]:
    pdf = Pdf(data)
    try:
        pages = [pdf.page(index) for index in range(pdf.page_count)]
        warnings = [*pdf.remarks(), *read_scans(pdf, pages, recognizer)]
        for page in pages:
            insert_values(page)
        pages[-1].unplaced = pdf.unplaced_values()
        pages[0].title = pdf.title
    finally:
        pdf.close()
    warnings += filter(None, map(_about_kanji, pages))
    if removed := sum(page.removed for page in pages):
        warnings.append(f"{removed} control characters removed")
    if not any(map(_has_text, pages)) and not pages[-1].unplaced:
        raise NoTextError(_about_nothing(pages, recognizer))
    return pages, tuple(warnings)


def _has_text(page: PdfPage) -> bool:
    return bool(page.ocr or page.filled or not (page.is_empty or page.scanned))


def _about_kanji(page: PdfPage) -> str:
    letters = "" if page.ocr else other_forms(page.run_text)
    return letters and (
        f"page {page.number}: its text layer has {', '.join(letters)}, where Japanese print "
        f"usually has {', '.join(common_forms(letters))}"
    )


def _about_nothing(pages: Sequence[PdfPage], recognizer: Recognizer | None) -> str:
    scanned = sum(page.scanned for page in pages)
    if not scanned:
        return f"this PDF contains no text: all of its pages ({len(pages)}) are blank or unreadable"
    advice = OCR_ADVICE if recognizer is None else "no text was recognized in them"
    return (
        f"this PDF contains no usable text: {scanned} of its {len(pages)} pages are pictures, or "
        f"their fonts do not say which letters they are; {advice}"
    )


class _PdfWriter:
    """Writes blocks, and where the page changes a mark, and unseen what is printed there."""

    def __init__(
        self,
        joiner: Joiner,
        labels: Sequence[str | None],
        margin_texts: Sequence[str],
        notes: Mapping[tuple[int, str], str],
    ) -> None:
        self._writer = MarkdownWriter()
        self._joiner = joiner
        self._labels = labels
        self._margin_texts = list(margin_texts)
        self._page = -1
        self._notes = notes

    def finish(self, warnings: tuple[str, ...], pages: Sequence[PdfPage]) -> NormalizedBody:
        self._start_page_before_block(len(self._labels) - 1)
        self._comment_block(self._margin_texts[-1])
        self._values([value for page in pages for value in page.unplaced])
        self._comments(pages)
        return self._writer.finish(warnings)

    def _values(self, values: Sequence[tuple[str, str]]) -> None:
        if values:
            self._heading("Values of the form")
        for caption, value in values:
            self._item(f"{caption}: {VALUE} {value}" if caption else value)

    def _comments(self, pages: Sequence[PdfPage]) -> None:
        if any(page.comments for page in pages):
            self._heading("Comments and stamps")
        for at, page in enumerate(pages):
            label = self._labels[at]
            where = f"Page {label}" if label else f"PDF page {page.number}"
            for comment in page.comments:
                self._writer.page(label, page.number)
                author = f" by {comment.author}" if comment.author else ""
                self._item(f"{where}, {comment.kind}{author}: {comment.text}")

    def _heading(self, text: str) -> None:
        self._writer.begin(level=1)
        self._writer.text(text)
        self._writer.end()

    def _item(self, text: str) -> None:
        outer = self._writer.indent("  ", first="- ")
        self._writer.begin()
        self._writer.text(text)
        self._writer.outdent(outer)

    def write(self, block: PdfBlock) -> None:
        page, line = block.lines[0]
        self._start_page_before_block(page)
        if line.table:
            self._table(line.table)
            return
        self._writer.begin(level=block.level, section=block.section)
        if block.note:
            self._writer.markup(f"[^{self._notes[page, block.note]}]: ")
        self._lines(block)
        self._writer.end()

    def _lines(self, block: PdfBlock) -> None:
        texts = [line.text for _, line in block.lines]
        if block.note:
            texts[0] = _NOTE_LABEL.sub("", texts[0], count=1)
        self._texts(texts, [page for page, _ in block.lines])
        self._writer.no_space()

    def _texts(self, texts: Sequence[str], pages: Sequence[int] = ()) -> None:
        """Lines put together; those of a table's cell are all on one page."""
        pending = ""
        for at, (text, after) in enumerate(zip_longest(texts, texts[1:], fillvalue="")):
            end, between = self._joiner.joined(text, after)
            if pages and pages[at] > self._page:
                pending, end = self._over_page(pending, end, pages[at])
            self._text(pending + end)
            pending = between

    def _over_page(self, pending: str, text: str, page: int) -> tuple[str, str]:
        """Turn the page; no comment comes between the halves of a word that the page cut."""
        if self._page >= 0 and not pending and any(self._margin_texts[self._page + 1 : page + 1]):
            rest, _, text = text.partition(" ")
            self._text(rest)
            pending = " " if text else ""
        self._start_page(page)
        return pending, text

    def _text(self, text: str) -> None:
        parts = _NOTE.split(text)
        for at, part in enumerate(parts):
            if at % 2:
                self._reference(part)
            else:
                self._writer.text(part)

    def _reference(self, text: str) -> None:
        number = text.strip()
        # A note may begin on the page after its reference, where the foot is full.
        note = self._notes.get((self._page, number)) or self._notes.get((self._page + 1, number))
        if note:
            self._writer.no_space()
            self._writer.markup(f"[^{note}]")
        else:
            self._writer.text(text)

    def _start_page_before_block(self, page: int) -> None:
        while self._page < page:
            self._page += 1
            self._writer.page(self._labels[self._page], self._page + 1)
            self._comment_block(self._margin_texts[self._page])

    def _comment_block(self, text: str) -> None:
        if text:
            self._writer.begin()
            self._writer.markup(html_comment(text))
            self._writer.end()

    def _start_page(self, page: int) -> None:
        while self._page < page:
            self._page += 1
            self._writer.page(self._labels[self._page], self._page + 1)
            if text := self._margin_texts[self._page]:
                self._writer.markup(html_comment(text))

    def _table(self, table: PdfTable) -> None:
        self._writer.begin()
        self._writer.in_table = True
        page_starts = dict(table.pages)
        for at, row in enumerate(table.repeated()):
            if at:
                self._writer.line()
            if at in page_starts:
                self._start_page_in_table()
            self._row(row)
            if not at:
                self._writer.line()
                self._writer.markup("|" + " --- |" * len(row))
        self._writer.in_table = False
        self._writer.end()

    def _start_page_in_table(self) -> None:
        """No comment may come between two rows: it follows the table."""
        self._page += 1
        self._writer.page(self._labels[self._page], self._page + 1)
        before, after = self._margin_texts[self._page : self._page + 2]
        self._margin_texts[self._page + 1] = f"{before} {after}".strip()

    def _row(self, row: Sequence[tuple[str, ...]]) -> None:
        self._writer.markup("|")
        for cell in row:
            self._writer.cell()
            self._writer.markup(" ")
            self._texts(cell)
            self._writer.markup(" |" if cell else "|")
