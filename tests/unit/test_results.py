from __future__ import annotations

import pytest

from fonds.results import ChunkLocator


@pytest.mark.parametrize(
    ("page", "pdf_page", "reference"),
    [
        ("12", 14, "p. 12 (PDF page 14)"),
        ("xii", 12, "p. xii (PDF page 12)"),
        ("12", 12, "p. 12"),
        ("14203", None, "p. 14203"),
        (None, 1, "PDF page 1"),
        (None, None, ""),
    ],
)
def test_a_citation_says_which_number_of_a_page_it_means(
    page: str | None, pdf_page: int | None, reference: str
) -> None:
    assert ChunkLocator(page=page, pdf_page=pdf_page).page_reference == reference
