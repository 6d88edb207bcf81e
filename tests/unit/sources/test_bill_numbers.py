from __future__ import annotations

from datetime import date

import pytest

from fonds.sources.formats.congress import (
    BillNumber,
    committee_id,
    congress_of,
    find_bill_numbers,
    first_day_of,
    leading_bill_number,
    legislator_id,
    read_bill_code,
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("S. 4429, Connected Vehicle Act of 2026", ["s4429"]),
        ("H.R. 21 – Harbors", ["hr21"]),
        ("H R 22", ["hr22"]),
        ("HR1625", ["hr1625"]),
        ("H.J. Res. 38, H.J.Res. 36, S.J. Res. 7", ["hjres38", "hjres36", "sjres7"]),
        ("H. Con. Res. 108 and S.Con.Res. 2", ["hconres108", "sconres2"]),
        ("H.Res. 5, S. Res. 616 and H.R. Res. 6", ["hres5", "sres616", "hres6"]),
        ("Senate Amendments to H.R. 1424 and H.R. 1424", ["hr1424"]),
        ("Public Law 110-50", []),
        ("347 U.S. 483; Class 5; S. 12-3", []),
    ],
)
def test_bills_are_found_as_they_are_written(text: str, codes: list[str]) -> None:
    assert [bill.code for bill in find_bill_numbers(text)] == codes


def test_only_what_a_text_begins_with_leads_it() -> None:
    assert leading_bill_number("H.J. Res. 41, Tides") == BillNumber("hjres", 41)
    assert leading_bill_number("Effects of H.R. 1") is None


def test_codes_are_read_or_refused() -> None:
    assert read_bill_code(" HJRes41 ") == BillNumber("hjres", 41)
    assert read_bill_code("hr") is None
    assert read_bill_code("treaty5") is None


def test_a_bill_is_written_as_citations_write_it() -> None:
    assert BillNumber("hr", 2101).printed == "H.R. 2101"
    assert BillNumber("hr", 2101).document_id(119) == "bill:119-hr-2101"


@pytest.mark.parametrize(
    ("day", "congress"),
    [
        (date(2025, 1, 2), 118),
        (date(2025, 1, 3), 119),
        (date(2026, 1, 1), 119),
        (date(2026, 12, 31), 119),
        (date(2027, 1, 3), 120),
    ],
)
def test_a_congress_begins_on_the_third_of_january(day: date, congress: int) -> None:
    assert congress_of(day) == congress
    assert first_day_of(congress) <= day < first_day_of(congress + 1)


def test_people_and_committees_are_called_by_their_codes() -> None:
    assert legislator_id("C000127") == "legislator:C000127"
    assert committee_id("SSAF13") == "committee:SSAF13"
