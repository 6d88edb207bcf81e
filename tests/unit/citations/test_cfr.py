from __future__ import annotations

import pytest

from fonds.sources.cfr import cite_appendix, cite_cfr, cite_level


def test_a_section_is_cited_with_the_year_of_its_edition() -> None:
    assert cite_cfr("40", "§ 60.112b", year=2025) == "40 C.F.R. § 60.112b (2025)."


def test_what_is_smaller_follows_its_part() -> None:
    assert cite_cfr("40", "pt. 60", "app. A", year=2025) == "40 C.F.R. pt. 60, app. A (2025)."


def test_a_whole_title_and_an_unknown_year_are_cited_without_more() -> None:
    assert cite_cfr("40", year=2025) == "40 C.F.R. (2025)."
    assert cite_cfr("40", "pt. 60", year=None) == "40 C.F.R. pt. 60."


@pytest.mark.parametrize(
    ("kind", "number", "cited"),
    [
        ("section", "60.112b", "§ 60.112b"),
        ("section", "1.401(k)-1", "§ 1.401(k)-1"),
        ("section", "4.2–4.4", "§§ 4.2–4.4"),
        ("section", "4.2 through 4.4", "§§ 4.2 through 4.4"),
        ("part", "60", "pt. 60"),
        ("part", "3, 4", "pts. 3, 4"),
        ("subpart", "Kb", "subpt. Kb"),
        ("chapter", "I", "ch. I"),
        ("subchapter", "C", "subch. C"),
        ("subtitle", "A", "subtit. A"),
    ],
)
def test_each_level_has_its_own_sign(kind: str, number: str, cited: str) -> None:
    assert cite_level(kind, number) == cited


def test_a_range_with_a_hyphen_is_one_only_if_it_is_said() -> None:
    assert cite_level("section", "1.1-1.3") == "§ 1.1-1.3"
    assert cite_level("section", "1.1-1.3", several=True) == "§§ 1.1-1.3"


@pytest.mark.parametrize(
    ("number", "cited"),
    [
        ("A", "app. A"),
        ("", "app."),
        ("A and B", "apps. A and B"),
        ("Table 1", "tbl. 1"),
        ("Supplement No. 1", "supp. No. 1"),
        ("Form X", "app. Form X"),
    ],
)
def test_what_is_appended_is_cited_by_what_it_is_called(number: str, cited: str) -> None:
    assert cite_appendix(number) == cited
