from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Fonds

LONG_AGO = "2000-01-01"


def test_changes_are_a_table_of_when_what_id_and_title(fonds: Fonds) -> None:
    outcome = fonds("changes", "--since", LONG_AGO, "--source", "federal_register", "--limit", "2")
    assert outcome.code == 0
    headings, *lines = outcome.out.splitlines()
    assert headings.split() == ["when", "what", "id", "title"]
    assert [line.split()[2] for line in lines] == ["added", "added"]
    assert all(line.split()[3].startswith("fr:") for line in lines)
    assert "more than 2 changes" in outcome.err


def test_changes_as_json_are_all_of_them_newest_first(fonds: Fonds) -> None:
    whole = fonds("changes", "--since", LONG_AGO, "--limit", "10000", "--json").json
    moments = [one["at"] for one in whole]
    assert moments == sorted(moments, reverse=True)
    few = fonds("changes", "--since", LONG_AGO, "--limit", "3", "--json").json
    assert few == whole[:3]


def test_changes_since_tomorrow_are_none(fonds: Fonds) -> None:
    outcome = fonds("changes", "--since", "2199-01-01T12:00", "--json")
    assert (outcome.code, outcome.json) == (0, [])
    assert "no changes" in outcome.err


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "2026-01-01T99:00", ""])
def test_day_that_is_none_is_refused(fonds: Fonds, since: str) -> None:
    assert fonds("changes", "--since", since).code == 2


def test_source_that_is_none_is_refused(fonds: Fonds) -> None:
    outcome = fonds("changes", "--since", LONG_AGO, "--source", "nope")
    assert outcome.code == 2
    assert "federal_register" in outcome.err
