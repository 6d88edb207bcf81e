"""Citations as people type them."""

from __future__ import annotations

import pytest

from fonds.search.lookup import CitedTarget, read_citation


@pytest.mark.parametrize(
    ("typed", "target", "pinpoint"),
    [
        ("42 U.S.C. § 1396a(a)(10)", "42 USC 1396a", "(a)(10)"),
        ("42 usc 1396a", "42 USC 1396a", None),
        ("89 FR 12345, 12350", "89 FR 12345", "12350"),
        ("H.R. 1234", "HR 1234", None),
        ("hr 1234", "HR 1234", None),
        ("HR 2024", "HR 2024", None),
        ("s 567", "S 567", None),
        ("h.j. res. 5", "HJRES 5", None),
        ("H.R. 1234, 119th Cong.", "119 HR 1234", None),
        ("r48481", "R48481", None),
        ("conn. gen. stat. § 12-704e", "Conn Gen Stat 12-704e", None),
        ("d.c. code 47-1801.04", "DC Code 47-1801.04", None),
        ("P.L. 119-21, § 101(b)", "PL 119-21", "§ 101(b)"),
        ("Pub. L. 119-21, sec. 2", "PL 119-21", "§ 2"),
        ("gao-25-107521", "GAO-25-107521", None),
    ],
)
def test_typed_citation_is_understood(typed: str, target: str, pinpoint: str | None) -> None:
    (reading,) = read_citation(typed)
    assert (reading.target, reading.pinpoint) == (target, pinpoint)


def test_year_and_congress_are_noticed() -> None:
    assert read_citation("42 U.S.C. § 1396a (2018).")[0].year == "2018"
    assert read_citation("42 U.S.C. § 1396a (West 2018)")[0].year == "2018"
    assert read_citation("42 U.S.C. § 1396a")[0].year is None
    assert CitedTarget("bill", "HR 5").has_no_congress
    assert not CitedTarget("bill", "119 HR 5").has_no_congress
    assert not CitedTarget("crs", "R48481").has_no_congress


def test_list_gives_each_citation() -> None:
    assert [one.target for one in read_citation("5 U.S.C. §§ 552, 552a")] == [
        "5 USC 552",
        "5 USC 552a",
    ]


@pytest.mark.parametrize("typed", ["", "lead in tap water", "S", "119", "§", "x" * 5000, "(a)(1)"])
def test_other_words_are_no_citation(typed: str) -> None:
    assert read_citation(typed) == []
