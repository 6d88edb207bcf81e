"""How sections, rules and levels of the United States Code are cited."""

from __future__ import annotations

import pytest

from fonds.sources.usc import cite_usc, edition_year, rules_name, section_numbers


@pytest.mark.parametrize(
    ("title", "number", "expected"),
    [
        ("42", "1396a", "42 U.S.C. § 1396a (2024)."),
        ("42", "1396r-8", "42 U.S.C. § 1396r-8 (2024)."),
        ("18", "202 to 204", "18 U.S.C. §§ 202–204 (2024)."),
        ("24", "1, 2", "24 U.S.C. §§ 1, 2 (2024)."),
        ("24", "1 and 2", "24 U.S.C. §§ 1, 2 (2024)."),
        ("30", "451 to 460, 471 to 483", "30 U.S.C. §§ 451–460, 471–483 (2024)."),
        ("45", "228a to 228c-1", "45 U.S.C. §§ 228a to 228c-1 (2024)."),
        ("5a", "3", "5 U.S.C. app. § 3 (2024)."),
        ("18a", "1201 to 1203", "18 U.S.C. app. §§ 1201–1203 (2024)."),
    ],
)
def test_a_section_is_cited_by_its_number(title: str, number: str, expected: str) -> None:
    assert cite_usc(title=title, number=number, year="2024") == expected


def test_a_section_is_cited_without_the_levels_above_it() -> None:
    cited = cite_usc(title="42", number="1396a", levels=[("chapter", "7")], year="2024")
    assert cited == "42 U.S.C. § 1396a (2024)."


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([], "42 U.S.C. (2024)."),
        ([("chapter", "7")], "42 U.S.C. ch. 7 (2024)."),
        ([("chapter", "7"), ("subchapter", "XIX")], "42 U.S.C. ch. 7, subch. XIX (2024)."),
        ([("part", "I"), ("chapter", "1035 to 1047")], "42 U.S.C. pt. I, chs. 1035–1047 (2024)."),
        ([("level", ""), ("compiledact", "")], "42 U.S.C. (2024)."),
    ],
)
def test_a_level_is_cited_by_the_way_down_to_it(
    levels: list[tuple[str, str]], expected: str
) -> None:
    assert cite_usc(title="42", levels=levels, year="2024") == expected


def test_a_rule_of_a_known_set_has_a_name_of_its_own() -> None:
    rules = rules_name(["FEDERAL RULES OF CRIMINAL PROCEDURE"])
    cited = cite_usc(title="18a", number="11", rules=rules, is_rule=True, year="2024")
    assert cited == "Fed. R. Crim. P. 11 (2024)."
    assert cite_usc(title="18a", rules=rules, year="2024") == "Fed. R. Crim. P. (2024)."


def test_a_rule_of_another_set_is_a_rule_of_the_appendix() -> None:
    assert rules_name(["RULES OF THE SUPREME COURT OF THE UNITED STATES"]) == ""
    assert rules_name([]) == ""
    cited = cite_usc(title="28a", number="10", is_rule=True, year="2024")
    assert cited == "28 U.S.C. app. r. 10 (2024)."


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("FEDERAL RULES OF CIVIL PROCEDURE", "Fed. R. Civ. P."),
        ("FEDERAL RULES OF APPELLATE PROCEDURE", "Fed. R. App. P."),
        ("FEDERAL RULES OF BANKRUPTCY PROCEDURE", "Fed. R. Bankr. P."),
        ("FEDERAL RULES OF EVIDENCE", "Fed. R. Evid."),
        ("FEDERAL RULES OF CONDUCT", ""),
    ],
)
def test_rules_are_known_by_their_heading(heading: str, expected: str) -> None:
    assert rules_name([heading]) == expected


def test_a_reorganization_plan_is_cited_by_number_and_year() -> None:
    levels = [("reorganizationplans", ""), ("reorganizationplan", "II of 1939")]
    cited = cite_usc(title="5a", levels=levels, year="2024")
    assert cited == "5 U.S.C. app. Reorg. Plan No. II of 1939 (2024)."


@pytest.mark.parametrize(
    ("version", "published_at", "expected"),
    [
        ("2024", "2019-03-04", "2024"),
        ("2024-06-01", None, "2024"),
        ("119-36", "2025-03-25", "2025"),
        ("119-36", None, "119-36"),
        ("116-344not283", None, "116-344not283"),
        ("20241", None, "20241"),
    ],
)
def test_the_year_is_that_of_the_edition_or_of_the_file(
    version: str, published_at: str | None, expected: str
) -> None:
    assert edition_year(version, published_at) == expected


def test_a_list_names_all_its_sections_and_a_range_its_first_and_last() -> None:
    assert section_numbers("1, 2 and 2a") == ["1", "2", "2a"]
    assert section_numbers("451 to 460, 471") == ["451", "460", "471"]
    assert section_numbers("") == []
