from __future__ import annotations

import pytest

from fonds.errors import SuspiciousYieldError
from fonds.runs.guards import check_loss, check_yield


@pytest.mark.parametrize(
    ("before", "missing"),
    [(0, 0), (5, 5), (12, 5), (100, 20), (1000, 200), (10, -3)],
)
def test_what_publishers_withdraw_in_one_go_is_believed(before: int, missing: int) -> None:
    check_loss("the list", before, missing)


@pytest.mark.parametrize(("before", "missing"), [(6, 6), (12, 7), (100, 21), (1000, 1000)])
def test_list_that_lost_more_is_refused_and_says_how_to_insist(before: int, missing: int) -> None:
    with pytest.raises(SuspiciousYieldError, match=f"{missing} of {before} .*--accept-loss"):
        check_loss("the list", before, missing)


def test_yield_below_what_a_source_can_have_is_refused() -> None:
    check_yield("legislators", 500, 500)
    with pytest.raises(SuspiciousYieldError, match=r"legislators gave 499 .* at least 500"):
        check_yield("legislators", 499, 500)


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(SuspiciousYieldError, match="gave 0 records"):
        check_yield("fake", 0, 1)
