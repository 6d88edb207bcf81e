"""Letters of a page that are not in its text, and passages left out on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fonds.model import LeftOut, PageMark
from fonds.normalize.pdf.page import CHARACTERS, PdfLine, PdfPage
from fonds.normalize.pdf.running_heads import Stripped

_MAX_LOSS: Final = 0.02


def left_out_of(
    pages: Sequence[PdfPage], stripped: Sequence[Stripped], marks: Iterable[PageMark]
) -> tuple[LeftOut, ...]:
    """All passages that were left out on purpose, each with its page."""
    offsets: dict[int | None, int] = {}
    for mark in marks:
        offsets.setdefault(mark.pdf_page, mark.offset)
    return tuple(
        LeftOut(text=text, reason=reason, offset=offsets[page.number], pdf_page=page.number)
        for page, bare in zip(pages, stripped, strict=True)
        for text, reason in _passages(page, bare)
    )


def _passages(page: PdfPage, bare: Stripped) -> Iterator[tuple[str, str]]:
    for text in page.watermarks:
        yield text, "watermark"
    yield from bare.left_out
    for _, text in page.outside:
        yield text, "beyond the edges of the page"
    for text in page.hidden_values:
        yield text, "hidden field"


def loss_warnings(
    pages: Sequence[PdfPage], stripped: Sequence[Stripped], lines: Sequence[Sequence[PdfLine]]
) -> tuple[str, ...]:
    """A warning for each page that loses more than 2 % of its letters."""
    warnings = []
    for page, bare, page_lines in zip(pages, stripped, lines, strict=True):
        if page.scanned:
            continue
        loss = _loss(
            page.characters, [*_texts(page_lines), *(text for text, _ in _passages(page, bare))]
        )
        if loss > _MAX_LOSS:
            warnings.append(f"page {page.number}: {loss:.1%} of its letters are not in the text")
    return tuple(warnings)


def _texts(lines: Iterable[PdfLine]) -> Iterator[str]:
    for line in lines:
        yield line.text
        if line.table:
            yield line.table.caption or ""
            yield from line.table.notes
            for cell in line.table.cells:
                yield from cell.texts


def _loss(characters: Counter[str], texts: Iterable[str]) -> float:
    """The fraction of the letters and digits that the texts do not have as often."""
    in_text = Counter("".join(texts))
    total = lost = 0
    for character, count in characters.items():
        if character.isalnum():
            total += count
            # Ligatures are written out.
            matching = min(in_text[letter] for letter in character.translate(CHARACTERS))
            lost += max(0, count - matching)
    return lost / total if total else 0.0
