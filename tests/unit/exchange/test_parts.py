"""Rows are cut into files by what they are, and not by how they came."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.exchange.bundle import contents
from fonds.exchange.bundle.contents import ALIASES, FilledFile, Record, cut

LEAST, MOST = 2_000, 8_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of which some hundred rows make many."""
    monkeypatch.setattr(contents, "MIN_FILE_SIZE", LEAST)
    monkeypatch.setattr(contents, "MAX_FILE_SIZE", MOST)


def rows(numbers: range | list[int], width: int = 40) -> list[Record]:
    return [
        {"document": f"held:{number:05}", "alias": "x" * width, "edition": None}
        for number in numbers
    ]


def hashes(filled: list[FilledFile]) -> set[str]:
    return {each.part.sha256 for each in filled}


def test_all_rows_are_in_the_files_and_in_order() -> None:
    given_rows = rows(range(2000))
    filled = list(cut(ALIASES, given_rows))
    assert b"".join(each.data for each in filled).count(b"\n") == 2000
    assert sum(each.part.records for each in filled) == 2000
    assert b"".join(each.data for each in cut(ALIASES, iter(given_rows))) == b"".join(
        each.data for each in filled
    )
    assert len(filled) > 20


def test_no_file_of_several_rows_is_too_large_nor_any_but_the_last_too_small() -> None:
    long = rows(range(3), 20_000)
    many = [{"document": "held:9", "alias": f"{n:05}", "edition": None} for n in range(2000)]
    filled = list(cut(ALIASES, [*rows(range(1000)), *long, *many]))
    assert all(each.part.records == 1 or each.part.bytes <= MOST for each in filled)
    assert sum(each.part.bytes < LEAST for each in filled) <= 2  # before a long row, and the last


def test_no_row_no_file() -> None:
    assert list(cut(ALIASES, [])) == []


@settings(max_examples=25)
@given(st.integers(0, 1999))
def test_a_row_more_or_less_changes_few_files(place: int) -> None:
    whole = list(cut(ALIASES, rows(range(2000))))
    without = list(cut(ALIASES, rows([n for n in range(2000) if n != place])))
    assert 1 <= len(hashes(whole) - hashes(without)) <= 8
    assert len(whole) > 20
