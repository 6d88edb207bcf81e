"""One body to be normalized, as a process gets it that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer

READERS: Final = (
    "fonds.normalize.work",
    "fonds.normalize.pdf",
    "fonds.normalize.html",
    "fonds.normalize.docx.normalizer",
)
"""What those load who read bodies one after the other."""
WORN: Final = "fonds.normalize.work:is_worn"
"""What tells them when to begin afresh."""

APART: Final = frozenset({"pdf_v1", "docx_v1"})
"""Native code reads PDFs, and a hostile one may end the process it is read in; a small Word file
may unpack to more than there is memory for. Neither is read in a process that is still needed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One body to be normalized."""

    normalizer: str
    data: bytes
    address: str | None
    """Where the bytes came from, which completes the links of a page."""


def make_text(work: Work) -> NormalizedBody:
    """Normalize one body."""
    return get_normalizer(work.normalizer).to_markdown(work.data, work.address)


def is_worn() -> bool:
    """Whether this process has read something that may show in what it reads next."""
    # pdf_oxide keeps fonts of one document for the next, and has been seen to mix them up.
    from fonds.normalize.pdf.document import Pdf  # noqa: PLC0415 — few processes read PDFs

    return Pdf.has_asked_the_other_reader
