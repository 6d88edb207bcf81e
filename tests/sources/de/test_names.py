"""Kinds, numbers, states and addresses out of the publisher's names."""

from __future__ import annotations

import pytest

from fonds.sources.de import Name, address_of, of_division, of_norm, slug_of, status_of


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("Buch 2", "buch", "2"),
        ("Kapitel 2a", "kapitel", "2a"),
        ("Teil III", "teil", "III"),
        ("Teil 1 Allgemeine Vorschriften", "teil", "1"),
        ("Unterabschnitt A", "unterabschnitt", "A"),
        ("1. Unterabschnitt", "unterabschnitt", "1"),
        ("Erster Abschnitt", "abschnitt", "Erster"),
        ("Allgemeiner Teil", "teil", "Allgemeiner"),
        ("IV a.", "gliederung", "IV a"),
        ("2b.", "gliederung", "2b"),
        ("a)", "gliederung", "a"),
        ("Art 229", "article", "229"),
        ("Gemeinsame Vorschriften", "gliederung", "Gemeinsame Vorschriften"),
        ("Teilung der Beute", "gliederung", "Teilung der Beute"),
        ("Sehr " * 20 + "lange Worte", "gliederung", "030"),
    ],
)
def test_divisions_are_known_by_level_and_number(name: str, kind: str, number: str) -> None:
    assert of_division(name, "010030") == Name(kind, number)


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("§ 433", "section", "433"),
        ("§ 31a", "section", "31a"),
        ("(XXXX) §§ 140b bis 140d", "section", "140b bis 140d"),
        ("(XXXX)§§ 1 und 2", "section", "1 und 2"),
        ("Art 1", "article", "1"),
        ("Artikel 12a", "article", "12a"),
        ("Art. 3", "article", "3"),
        ("Anlage", "annex", ""),
        ("Anlage 1", "annex", "1"),
        ("Anlage 2 (zu § 3)", "annex", "2"),
        ("Anlage I Kap II A", "annex", "I Kap II A"),
        ("Anhang EV", "anhang", "EV"),
        ("Anhang", "anhang", ""),
        ("Muster 3", "muster", "3"),
        ("Präambel", "präambel", ""),
        ("Artenschutzliste", "artenschutzliste", ""),
        ("1.", "norm", "1."),
        ("", "norm", ""),
    ],
)
def test_norms_are_known_by_kind_and_number(name: str, kind: str, number: str) -> None:
    assert of_norm(name) == Name(kind, number)


@pytest.mark.parametrize(
    ("name", "title", "beginning", "status"),
    [
        ("§ 1", "Kauf", "Der Käufer zahlt.", ""),
        ("§ 1", "(weggefallen)", "", "repealed"),
        ("§ 1", "", "(weggefallen)", "repealed"),
        ("§ 1", "", "(aufgehoben)", "repealed"),
        ("§ 1", "", "Die Ansprüche sind weggefallen.", ""),
        ("(XXXX) §§ 1 bis 3", "", "-", "repealed"),
        ("Art 2", "", "(gegenstandslos)", "obsolete"),
        ("§ 9", "(bedingt zukünftig in Kraft)", "", "not in force"),
    ],
)
def test_state_is_told_by_title_or_by_a_short_text(
    name: str, title: str, beginning: str, status: str
) -> None:
    assert status_of(name, title, beginning) == status


@pytest.mark.parametrize(
    ("page", "abbreviation", "slug"),
    [
        ("gesetze/bgb/bgb.xml", "BGB", "bgb"),
        ("bgb/xml.zip!*.xml", "BGB", "bgb"),
        ("downloads/BJNR001950896.xml", "BGB", "bgb"),
        ("BJNR.xml", "BImSchV 1 2010", "bimschv_1_2010"),
        ("BJNR.xml", "1-DM-GoldmünzG", "1-dm-goldm_nzg"),
        ("lost.xml", "", "lost"),
    ],
)
def test_folder_of_an_act(page: str, abbreviation: str, slug: str) -> None:
    assert slug_of(page, abbreviation) == slug


@pytest.mark.parametrize(
    ("norm", "article", "address"),
    [
        (Name("section", "433"), "", "bgb/__433.html"),
        (Name("article", "12a"), "", "bgb/art_12a.html"),
        (Name("annex", "1"), "", "bgb/anlage_1.html"),
        (Name("section", "34"), "229", "bgb/art_229__34.html"),
        (Name("section", "92 bis 98"), "", "bgb/"),
        (Name("front", ""), "", "bgb/"),
    ],
)
def test_address_of_a_norm(norm: Name, article: str, address: str) -> None:
    assert address_of("bgb", norm, article) == f"https://www.gesetze-im-internet.de/{address}"
