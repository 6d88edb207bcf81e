from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.legislators.reviewed import everything, published, raw_of, raw_part

from fonds.errors import ParseError, WrongContentError
from fonds.model import Raw
from fonds.sources.committees import source


def counted(raw: Raw) -> Counter[str]:
    return Counter(record.table for record in everything(source.parse(raw)))


def lines(path: Path, pattern: str) -> int:
    return len(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def folder(corpus: Callable[[str], Path]) -> Path:
    return corpus("federal/committees")


def test_every_file_gives_records_or_says_why_not(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        part = raw_part(path.read_bytes(), file=path.name)
        try:
            keys = [record.key for record in everything(source.parse(raw_of(part)))]
        except ParseError:
            continue
        assert keys, path
        assert len(keys) == len(set(keys)), path


@pytest.mark.parametrize("edition", ["yaml", "yaml_later"])
def test_committees_are_as_many_as_the_current_list_has_lines_for(
    folder: Path, edition: str
) -> None:
    path = folder / edition / "committees-current.yaml"
    assert counted(published(path))["committees"] == lines(path, r"^[ -]+thomas_id: ") > 200


def test_names_and_congresses_are_as_many_as_the_historical_list_has_lines_for(
    folder: Path,
) -> None:
    path = folder / "yaml" / "committees-historical.yaml"
    found = counted(published(path))
    assert found["committees"] == lines(path, r"^[ -]+thomas_id: ") > 500
    assert found["committee_names"] == lines(path, r"^ +'?\d+'?: ")
    assert found["committee_congresses"] == lines(path, r"^ +- \d+$")


def test_both_lists_together_lose_nothing_of_either(folder: Path) -> None:
    lists = [folder / "yaml" / f"committees-{when}.yaml" for when in ("historical", "current")]
    together = source.parse(published(*lists))
    apart = [record.key for path in lists for record in everything(source.parse(published(path)))]
    assert {record.key for record in everything(together)} == set(apart)


def test_members_are_as_many_as_the_yaml_has_lines_for(folder: Path) -> None:
    path = folder / "yaml" / "committee-membership-current.yaml"
    assert counted(published(path))["committee_members"] == lines(path, r"^  bioguide: ") > 3000


def test_lists_of_members_of_the_api_are_refused_as_such(folder: Path) -> None:
    path = folder / "congress_gov_api" / "member-adb521.json"
    part = raw_part(path.read_bytes(), file=path.name)
    with pytest.raises(WrongContentError, match="members, pagination"):
        list(source.parse(raw_of(part)))
