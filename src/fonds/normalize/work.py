"""One body to be normalized, as a process gets it that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer

# pdf_oxide keeps fonts of one document for the next, and has been seen to mix them up.
READERS: Final = (
    "fonds.normalize.work",
    "fonds.normalize.pdf",
    "fonds.normalize.html",
    "fonds.normalize.docx.normalizer",
)
"""What those load who read bodies one after the other, each in a copy."""

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
