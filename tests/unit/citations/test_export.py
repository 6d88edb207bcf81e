from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fonds.citations.export import bibtex, csl_json
from fonds.sources.registry import SourceRegistry, builtin_sources

# The types and the variables of the CSL 1.0.2 schema that we use.
CSL_FIELDS = {
    *("id", "type", "title", "author", "publisher", "URL", "note", "abstract", "issued"),
    "accessed",
}
CSL_TYPES = {
    *("bill", "document", "hearing", "legislation", "periodical", "regulation", "report"),
    "webpage",
}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "id": "fr:2026-00101",
        "source": "federal_register",
        "kind": "rule",
        "title": "Overtime",
        "summary": "Raises the threshold.",
        "source_org": "Labor Department",
        "source_url": "https://www.federalregister.gov/d/2026-00101",
        "published_at": "2026-03-04",
        "retrieved_at": datetime(2026, 3, 10, 12, tzinfo=UTC),
        "citation_string": "91 Fed. Reg. 1201 (Mar. 4, 2026).",
        **changes,
    }


def test_csl_item_has_only_fields_of_the_schema() -> None:
    item = csl_json(document(), "regulation")
    assert set(item) <= CSL_FIELDS
    assert item["type"] == "regulation"
    assert item["issued"] == {"date-parts": [[2026, 3, 4]]}
    assert item["accessed"] == {"date-parts": [[2026, 3, 10]]}
    assert item["author"] == [{"literal": "Labor Department"}]


def test_csl_item_leaves_out_what_is_unknown() -> None:
    item = csl_json(document(summary=None, published_at=None), "regulation")
    assert {"abstract", "issued"}.isdisjoint(item)


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("federal_register", "proposed_rule", "regulation"),
        ("federal_register", "notice", "document"),
        ("bills", "bill", "bill"),
        ("public_laws", "public_law", "legislation"),
        ("gao", "report", "report"),
        ("hearings", "hearing", "hearing"),
        ("legislators", "legislator", "webpage"),
        ("plugin", "thing", "document"),
    ],
)
def test_type_follows_source_and_kind(source: str, kind: str, expected: str) -> None:
    assert SourceRegistry().csl_type({"source": source, "kind": kind}) == expected


def test_types_that_sources_state_are_in_the_schema() -> None:
    infos = [source.info for source in builtin_sources().values()]
    assert {info.csl_type for info in infos} <= CSL_TYPES
    assert {csl_type for info in infos for csl_type in info.csl_types.values()} <= CSL_TYPES


@pytest.mark.parametrize(
    ("published_at", "parts"), [("2026", [2026]), ("2026-03", [2026, 3]), ("soon", None)]
)
def test_date_is_as_exact_as_it_is_known(published_at: str, parts: list[int] | None) -> None:
    issued = csl_json(document(published_at=published_at), "regulation").get("issued")
    assert issued == (parts and {"date-parts": [parts]})


def test_bibtex_entry_as_a_whole() -> None:
    assert bibtex(document(), "regulation").splitlines() == [
        "@misc{fr:2026-00101,",
        "  title = {{Overtime}},",
        "  author = {{Labor Department}},",
        "  organization = {Labor Department},",
        "  year = {2026},",
        "  month = mar,",
        "  url = {https://www.federalregister.gov/d/2026-00101},",
        "  note = {91 Fed. Reg. 1201 (Mar. 4, 2026).},",
        "}",
    ]


def test_report_is_a_techreport_of_its_institution() -> None:
    entry = bibtex(document(published_at=None), "report")
    assert entry.startswith("@techreport{")
    assert "institution = {Labor Department}" in entry
    assert "year" not in entry


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("Wages & Hours: 100% of #1_2 for $5", r"Wages \& Hours: 100\% of \#1\_2 for \$5"),
        ("A } b { c", r"A \textbraceright{} b \textbraceleft{} c"),
        ("~x^2\\y", r"\textasciitilde{}x\textasciicircum{}2\textbackslash{}y"),
        ("§ 12 – Niñez “é”", "§ 12 – Niñez “é”"),
        ("two\nlines", "two lines"),
    ],
)
def test_special_characters_are_escaped(title: str, written: str) -> None:
    entry = bibtex(document(title=title), "regulation")
    assert f"title = {{{{{written}}}}}," in entry
    assert entry.count("{") == entry.count("}")


def test_address_keeps_its_signs_but_no_braces() -> None:
    entry = bibtex(document(source_url="https://x.example/a?b={c}&d=%20#e_f"), "regulation")
    assert "url = {https://x.example/a?b=%7Bc%7D&d=%20#e_f}," in entry


def test_key_holds_nothing_that_bibtex_would_stumble_over() -> None:
    entry = bibtex(document(id="vote:house/119-1/362, {x} é"), "regulation")
    assert entry.startswith("@misc{vote:house/119-1/362-x-,")
