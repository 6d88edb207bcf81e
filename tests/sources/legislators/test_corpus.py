from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.legislators.reviewed import everything, raw_of, raw_part

from fonds.errors import ParseError
from fonds.sources.legislators import source


def counted(path: Path) -> Counter[str]:
    part = raw_part(path.read_bytes(), file=path.name)
    return Counter(record.table for record in everything(source.parse(raw_of(part))))


def lines(path: Path, pattern: str) -> int:
    return len(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def folder(corpus: Callable[[str], Path]) -> Path:
    return corpus("federal/legislators")


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


def test_people_and_terms_are_as_many_as_the_yaml_has_lines_for(folder: Path) -> None:
    path = folder / "yaml_later" / "legislators-current.yaml"
    found = counted(path)
    assert found["legislators"] == lines(path, r"^    bioguide: ") > 500
    assert found["legislator_terms"] == lines(path, r"^  - type: (?:sen|rep)$")
    assert found["legislator_family"] == lines(path, r"^    relation: ")


def test_people_and_terms_are_as_many_as_the_json_has_lines_for(folder: Path) -> None:
    path = folder / "gh_pages" / "legislators-current.json"
    found = counted(path)
    assert found["legislators"] == lines(path, r'"bioguide": ') > 500
    assert found["legislator_terms"] == lines(path, r'"type": "(?:sen|rep)"')


def test_people_are_as_many_as_the_csv_has_rows(folder: Path) -> None:
    path = folder / "gh_pages" / "legislators-current.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = sum(1 for _ in csv.reader(file)) - 1
    assert counted(path)["legislators"] == rows > 500


def test_executives_are_as_many_as_the_json_has_lines_for(folder: Path) -> None:
    path = folder / "gh_pages" / "executive.json"
    found = counted(path)
    assert found["executives"] == lines(path, r'"govtrack": ') > 70
    assert found["executive_terms"] == lines(path, r'"type": "(?:vice)?prez"')


def test_accounts_and_offices_are_as_many_as_the_yaml_has_lines_for(folder: Path) -> None:
    accounts = folder / "yaml" / "legislators-social-media.yaml"
    offices = folder / "yaml" / "legislators-district-offices.yaml"
    assert counted(accounts)["legislator_social_media"] == lines(accounts, r"^  social:$") > 500
    assert counted(offices)["legislator_offices"] == lines(offices, r"^  - id: ") > 1000
