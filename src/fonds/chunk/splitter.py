"""The chunker: a body in, passages with their places out."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from fonds.chunk.headings import Sections, read_outline
from fonds.chunk.packing import SMALLEST_CAP, Packer
from fonds.chunk.tokens import count
from fonds.errors import SettingsError
from fonds.model import Chunk, NormalizedBody

CHUNKER_NAME: Final = "headings"
CHUNKER_VERSION: Final = "1.0.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunker:
    """Cuts a body at its headings, and a section that is too long at its natural joints."""

    max_tokens: int = 512
    """No passage has more (cl100k_base)."""
    overlap_tokens: int = 64
    """Repeated at most of the passage before it in the same section."""

    def __post_init__(self) -> None:
        if self.max_tokens < SMALLEST_CAP:
            raise SettingsError(
                f"chunk_tokens is {self.max_tokens}; it must be at least {SMALLEST_CAP}."
            )
        if not 0 <= self.overlap_tokens <= self.max_tokens // 2:
            raise SettingsError(
                f"chunk_overlap is {self.overlap_tokens}; it must lie between 0 and half of "
                f"chunk_tokens ({self.max_tokens // 2})."
            )

    def chunk(self, body: NormalizedBody) -> list[Chunk]:
        """The passages of a body in order; between them they hold all its text."""
        outline = read_outline(body.markdown)
        packer = Packer(body.markdown, outline, self.max_tokens, self.overlap_tokens)
        labels = {heading.offset: heading.section for heading in body.headings}
        page_starts = [mark.offset for mark in body.pages]
        chunks: list[Chunk] = []
        for section in Sections(body.markdown, outline, labels):
            for passage in packer.passages(section.start, section.end):
                page = bisect_right(page_starts, passage.start)
                chunks.append(
                    Chunk(
                        ordinal=len(chunks),
                        text=body.markdown[passage.start : passage.end],
                        start=passage.start,
                        end=passage.end,
                        tokens=passage.tokens,
                        heading_path=(*body.above, *section.heading_path),
                        section=section.label,
                        page=body.pages[page - 1].page if page else None,
                        enumeration=passage.enumeration,
                        lead_ins=passage.lead_ins,
                    )
                )
        return chunks


def whole_document_chunk(
    title: str, summary: str | None = None, *, is_stopgap: bool = False
) -> Chunk:
    """The one passage of a document without a body: its title and its summary.

    Of a stopgap, which the document's text will replace, `tokens` is only a bound: counting them
    takes the vocabulary, of 50 MiB, and no token is shorter than a byte.
    """
    text = "\n\n".join(part.strip() for part in (title, summary or "") if part.strip())
    tokens = len(text.encode(errors="surrogatepass")) if is_stopgap else count(text)
    return Chunk(ordinal=0, text=text, start=0, end=len(text), tokens=tokens)
