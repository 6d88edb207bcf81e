from __future__ import annotations

import pytest

from fonds.citations.extract import extract
from fonds.sources.cgs import cgs_sections, cite_cgs, cite_cgs_notes


@pytest.mark.parametrize(
    ("section", "citation"),
    [
        ("12-704e", "Conn. Gen. Stat. § 12-704e (2025)."),
        ("42a-2A-101", "Conn. Gen. Stat. § 42a-2A-101 (2025)."),
        ("12-747 to 12-789", "Conn. Gen. Stat. §§ 12-747 to 12-789 (2025)."),
        ("12-704a and 12-704b", "Conn. Gen. Stat. §§ 12-704a and 12-704b (2025)."),
        ("3-1, 3-2 and 3-4", "Conn. Gen. Stat. §§ 3-1, 3-2 and 3-4 (2025)."),
    ],
)
def test_sections_are_cited_with_one_sign_or_two(section: str, citation: str) -> None:
    assert cite_cgs(section=section, edition="2025") == citation


def test_notes_of_a_chapter_are_cited_without_its_title() -> None:
    levels = {"title": "53a", "chapter": "952", "part": "I", "subpart": "A"}
    assert cite_cgs_notes(levels=levels, edition="2026") == (
        "Conn. Gen. Stat. ch. 952, pt. I, subpt. A (2026)."
    )


def test_articles_are_cited_with_their_title() -> None:
    levels = {"title": "42a", "article": "2A"}
    assert cite_cgs_notes(levels=levels, edition="2025") == (
        "Conn. Gen. Stat. tit. 42a, art. 2A (2025)."
    )
    assert cite_cgs_notes(levels={"title": "13"}, edition="2025") == (
        "Conn. Gen. Stat. tit. 13 (2025)."
    )


def test_what_we_write_is_what_we_recognize() -> None:
    found = extract(f"As {cgs_sections('12-704e')} says.")
    assert [one.target for one in found] == ["Conn Gen Stat 12-704e"]
