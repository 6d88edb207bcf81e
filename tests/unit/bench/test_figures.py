"""A figure compares in one direction, and says so in words."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Final

import pytest
from bench.figures import LIMIT, Figure, figure_of, number, reaching, sizes, table, tell, within

FASTER: Final = Figure(
    what="records loaded",
    ours=500.0,
    theirs=250.0,
    unit="documents/s",
    peer="bare inserts",
    better="more",
    least=0.5,
)
SLOWER: Final = replace(FASTER, ours=100.0, remark="ours also hashes")
QUICKER: Final = replace(FASTER, ours=0.5, theirs=2.0, unit="s", better="less", least=5.0)


def test_a_ratio_above_one_is_better_whichever_way_is_better() -> None:
    assert FASTER.ratio == 2
    assert SLOWER.ratio == 0.4
    assert QUICKER.ratio == 4


def test_a_bar_is_reached_or_missed() -> None:
    assert FASTER.holds
    assert SLOWER.holds is False
    assert QUICKER.holds is False
    assert replace(FASTER, least=None).holds is None


@pytest.mark.parametrize(
    ("figure", "ratio", "bar"),
    [
        (FASTER, "2 × better", "at most 2 × worse"),
        (SLOWER, "2.5 × worse", "at most 2 × worse"),
        (QUICKER, "4 × better", "at least 5 × better"),
        (replace(QUICKER, theirs=0.5, least=1.0), "as good", "no worse"),
        (replace(QUICKER, ours=0.0), "better", "at least 5 × better"),
        (replace(QUICKER, theirs=0.0, least=None), "worse", ""),
        (within("memory", 130.0, 260.0, "MiB"), "0.5 of it", "at most"),
        (reaching("recall", 0.98, 0.49), "2 of it", "at least"),
    ],
)
def test_ratio_and_bar_are_told_in_words(figure: Figure, ratio: str, bar: str) -> None:
    *_, told_ratio, told_bar, _ = figure.cells
    assert (told_ratio, told_bar) == (ratio, bar)


def test_a_limit_of_nothing_is_kept_by_nothing_alone() -> None:
    assert within("rows written", 0, 0).holds
    assert within("rows written", 1, 0).holds is False


def test_what_shrinks_stays_below_a_limit() -> None:
    assert within("exponent", -0.2, 0.1).holds


def test_a_figure_comes_back_from_its_json() -> None:
    told = json.loads(json.dumps(SLOWER.as_json()))
    assert (told["ratio"], told["holds"]) == (0.4, False)
    assert figure_of(told) == SLOWER


def test_json_has_no_infinite_ratio() -> None:
    assert replace(QUICKER, ours=0.0).as_json()["ratio"] is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1234.5, "1,234"),
        (12.34, "12.3"),
        (1.0, "1"),
        (0.01234, "0.0123"),
        (0.9996, "0.9996"),
        (-0.00009, "-0.0001"),
        (0, "0"),
    ],
)
def test_numbers_have_the_digits_that_count(value: float, told: str) -> None:
    assert number(value) == told


def test_a_table_names_benches_and_has_remarks_below() -> None:
    heading, first, second, remark = table([FASTER, SLOWER], ["load", "load"]).splitlines()
    assert heading.split()[:2] == ["bench", "what"]
    assert first.startswith("load   records loaded  500 documents/s  250 documents/s  bare inserts")
    assert second.endswith("NO")
    assert remark.strip() == "ours also hashes"


def test_sizes_are_what_a_bench_was_given() -> None:
    given = argparse.Namespace(json=True, documents=2000, small=True, text=None, largest=False)
    assert sizes(given) == "documents 2,000, small"


@pytest.mark.parametrize(("figures", "code"), [([FASTER], 0), ([FASTER, SLOWER], 1), ([], 0)])
def test_a_bench_ends_with_1_if_a_bar_is_missed(
    figures: list[Figure], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        tell(argparse.Namespace(json=True, documents=7), figures, kills=3)
    assert ended.value.code == code
    told = json.loads(capsys.readouterr().out)
    assert (told["sizes"], told["kills"]) == ("documents 7", 3)
    assert [figure_of(row) for row in told["figures"]] == figures


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tell(argparse.Namespace(json=False, documents=7), [within("memory", 1, 2)])
    assert LIMIT in capsys.readouterr().out
