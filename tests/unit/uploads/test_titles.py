"""The title of an upload."""

from __future__ import annotations

import pytest

from fonds.model import NormalizedBody, ReadingReport
from fonds.uploads.titles import MAX_TITLE_LENGTH, title_of


def _title(markdown: str, stated: str | None = None, name: str = "scan_0012.pdf") -> str:
    report = ReadingReport(title=stated, pages=1) if stated is not None else None
    return title_of(NormalizedBody(markdown=markdown, report=report), name)


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("National Parivar  Mediclaim Plus", "National Parivar Mediclaim Plus"),
        ("Microsoft Word - Group Health Policy.doc", "Group Health Policy"),
        ("モデル就業規則（R4.11版）", "モデル就業規則（R4.11版）"),
        ("PDF/UA form example", "PDF/UA form example"),
    ],
)
def test_title_of_the_metadata_is_taken(stated: str, title: str) -> None:
    assert _title("# Heading of the text\n\nWords.", stated) == title


@pytest.mark.parametrize(
    "stated",
    ["", "untitled", "Document1", "(anonymous)", "scan_of_the policy", "<4D6963726F> <736F6674>"],
)
def test_title_that_a_program_made_up_is_passed_over(stated: str) -> None:
    assert _title("# **Heading** of the text\n\nWords.", stated) == "Heading of the text"


def test_first_heading_with_words_is_the_title_without_metadata() -> None:
    assert _title("# 12\n\n## Flood policy\n\nWords.") == "Flood policy"


def test_file_name_is_the_title_of_a_text_without_headings() -> None:
    assert _title("Words and more words.") == "scan_0012.pdf"


def test_long_title_is_shortened() -> None:
    title = _title("# " + "word " * 100)
    assert title.endswith("…")
    assert len(title) <= MAX_TITLE_LENGTH + 1
