from __future__ import annotations

import pytest

from fonds.sources.cgs.chapter import covers, key_of, number_of, status_of


@pytest.mark.parametrize(
    ("identifier", "line", "number"),
    [
        ("sec_12-704e", "", "12-704e"),
        ("secs_12-747_to_12-789", "", "12-747 to 12-789"),
        ("secs_12-704a_and_12-704b", "", "12-704a and 12-704b"),
        ("secs_3-1_3-2_and_3-4", "", "3-1, 3-2 and 3-4"),
        ("sec_42a-2A-101", "", "42a-2A-101"),
        ("", "Secs. 3-1, 3-2 and 3-4. Lamps.", "3-1, 3-2 and 3-4"),
        ("sec_lamps", "Sec. 3-1. Lamps.", "3-1"),
        ("sec_to_3-1", "Lamps.", None),
    ],
)
def test_numbers_come_from_the_id_or_else_from_the_print(
    identifier: str, line: str, number: str | None
) -> None:
    assert number_of(identifier, line) == number


def test_letters_go_on_after_z() -> None:
    numbers = ["12-9", "12-704", "12-704a", "12-704z", "12-704aa", "12-704bb", "12-705", "12a-1"]
    assert sorted(numbers, key=key_of) == numbers


@pytest.mark.parametrize(
    ("number", "other", "expected"),
    [
        ("20-341s to 20-341bb", "20-341z", True),
        ("20-341s to 20-341bb", "20-341cc", False),
        ("3-1 to 3-9", "3-2 to 3-4", True),
        ("3-1 and 3-9", "3-2", False),
        ("3-1 and 3-9", "3-1 to 3-9", False),
        ("3-2", "3-1 to 3-4", False),
        ("3-1 to 3-4", "3-4 to 3-6", False),
    ],
)
def test_a_range_covers_what_stands_between_its_ends(
    number: str, other: str, *, expected: bool
) -> None:
    assert covers(number, other) is expected


@pytest.mark.parametrize(
    ("line", "text", "status"),
    [
        ("Sec. 1-2. Lamps.", "Section 1-2 is repealed, effective July 1, 2012.", "repealed"),
        ("Sec. 1-2. Lamps.", "Sections 1-2 to 1-4, inclusive, are repealed.", "repealed"),
        ("Sec. 1-2. Lamps.", "Sections 1-2, 1-3 and 1-5 are obsolete.", "obsolete"),
        (
            "Sec. 1-2.",
            "Section 1-2 of the 1969 supplement to the statutes is repealed.",
            "repealed",
        ),
        ("Secs. 1-2 to 1-4.", "Reserved for future use.", "reserved"),
        ("Sec. 1-2.", "Transferred to Chapter 9, Sec. 1-3.", "transferred"),
        ("Sec. 1-2. Obsolete.", "", "obsolete"),
        ("Sec. 1-2. Reserved seats.", "Reserved seats shall be numbered.", ""),
        ("Sec. 1-2. Staff.", "Transferred employees shall keep their rank.", ""),
        ("Sec. 1-2. Lamps.", "Section 1-2 shall apply until section 1-3 is repealed.", ""),
        ("Sec. 1-2. Lamps.", "(a) Section 1-3 is repealed.", ""),
    ],
)
def test_only_what_says_so_of_itself_is_not_in_force(line: str, text: str, status: str) -> None:
    assert status_of(line, text) == status
