"""How German federal law is cited."""

from __future__ import annotations

import pytest

from fonds.sources.de import cite_provision, provision


@pytest.mark.parametrize(
    ("kind", "number", "act", "citation"),
    [
        ("section", "433", "BGB", "§ 433 BGB"),
        ("section", "92 bis 98", "BGB", "§§ 92 bis 98 BGB"),
        ("section", "1 u. 2", "ZPO", "§§ 1 u. 2 ZPO"),
        ("article", "1", "GG", "Art. 1 GG"),
        ("annex", "1", "BImSchV 1 2010", "Anlage 1 BImSchV 1 2010"),
        ("annex", "", "XG", "Anlage XG"),
        ("anhang", "EV", "GG", "Anhang EV GG"),
        ("eingangsformel", "", "GG", "Eingangsformel GG"),
    ],
)
def test_a_provision_is_cited_before_its_act(
    kind: str, number: str, act: str, citation: str
) -> None:
    assert cite_provision(kind=kind, number=number, act=act) == citation


def test_a_section_of_an_article_is_cited_with_it() -> None:
    cited = cite_provision(kind="section", number="34", act="BGBEG", article="229")
    assert cited == "Art. 229 § 34 BGBEG"


def test_other_provisions_are_cited_without_an_article() -> None:
    assert provision(kind="annex", number="2", article="229") == "Anlage 2"
