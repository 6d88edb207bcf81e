from __future__ import annotations

import pytest

from fonds.sources.dc import cite_dc, cite_dc_part, dc_forms


@pytest.mark.parametrize(
    ("number", "version", "citation"),
    [
        ("47-1801.04", "2016", "D.C. Code § 47-1801.04 (2016)."),
        ("28:9-101", "2016-03-10", "D.C. Code § 28:9-101 (2016)."),
        ("1-101", "current", "D.C. Code § 1-101 (current)."),
        ("1-101", "", "D.C. Code § 1-101."),
    ],
)
def test_section_is_cited_with_the_year_of_its_edition(
    number: str, version: str, citation: str
) -> None:
    assert cite_dc(number=number, version=version) == citation


def test_what_is_no_section_is_cited_by_its_levels() -> None:
    levels = [("title", "9"), ("subtitle", "II"), ("subheading", ""), ("unit", "A")]
    assert cite_dc_part(levels=levels, version="2016") == (
        "D.C. Code tit. 9, subtit. II, unit A (2016)."
    )


def test_forms_of_a_citation_are_without_the_year() -> None:
    assert dc_forms("1-101") == (
        "D.C. Code § 1-101",
        "DC Code 1-101",
        "D.C. Official Code § 1-101",
    )
