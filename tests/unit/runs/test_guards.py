from __future__ import annotations

from dataclasses import replace

import pytest

from fonds.errors import MissingKeyError, SuspiciousYieldError
from fonds.runs.discover import check_loss, check_yield, require_key
from fonds.settings import Settings
from fonds.sources.base import Key
from fonds.testing import FakeSource

KEY = Key(setting="data_gov_key", signup="https://api.data.gov/signup/")
INFO = replace(FakeSource().info, key=KEY)


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
    with pytest.raises(SuspiciousYieldError, match=r"legislators yielded 499 .* at least 500"):
        check_yield("legislators", 499, 500)


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(SuspiciousYieldError, match="yielded 0 records"):
        check_yield("fake", 0, 1)


def test_a_missing_key_is_named_with_where_to_set_and_get_it() -> None:
    with pytest.raises(MissingKeyError) as caught:
        require_key(INFO, Settings())
    for word in ("fake", "data_gov_key", "FONDS_DATA_GOV_KEY", "https://api.data.gov/signup/"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        (KEY, Settings(data_gov_key="d4ta")),
        (replace(KEY, required=False), Settings()),
        (None, Settings()),
    ],
)
def test_a_source_that_has_or_needs_no_key_is_let_through(
    key: Key | None, settings: Settings
) -> None:
    require_key(replace(INFO, key=key), settings)
