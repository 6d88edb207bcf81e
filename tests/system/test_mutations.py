"""Damaged files: records or a named error, never anything else."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.faults.damage import damaged

from fonds.demo.bundle import DATA
from fonds.errors import ParseError
from fonds.model import Archived, FetchTask, Raw, RawPart
from fonds.sources.registry import SourceRegistry

FIXTURES = Path(__file__).parents[1] / "sources"
FILES = {
    **{
        name: sorted(path for path in (FIXTURES / name / "files").iterdir() if path.is_file())
        for name in SourceRegistry().feeds()
    },
    "legislators": sorted(DATA.glob("unitedstates.github.io/**/legislators-*.yaml")),
    "committees": sorted(DATA.glob("unitedstates.github.io/**/committee*.yaml")),
    "federal_register": sorted(DATA.glob("www.federalregister.gov/**/*.xml"))[:8]
    + sorted(DATA.glob("www.federalregister.gov/**/*.json"))[:8],
}


@pytest.mark.smoke
@pytest.mark.parametrize("source", FILES)
def test_damaged_files_give_records_or_a_named_error(source: str) -> None:
    _try_damaged(source, random.Random(source), rounds=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("source", FILES)
def test_very_many_damaged_files_give_records_or_a_named_error(source: str, seed: int) -> None:
    _try_damaged(source, random.Random(f"{source}{seed}"), rounds=600)


def _try_damaged(source: str, chance: random.Random, *, rounds: int) -> None:
    parse = SourceRegistry().parser(source).parse
    files = [(path.name, path.read_bytes()[:200_000]) for path in FILES[source]]
    for item in damaged(files, chance, rounds):
        try:
            for record in parse(_raw(source, item.name.partition(" ")[0], item.data)):
                assert record.key
        except ParseError as error:
            assert str(error), item.name  # noqa: PT017 — either outcome is right


def _raw(source: str, name: str, data: bytes) -> Raw:
    archived = Archived(
        url=name,
        key=name,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    task = FetchTask(source=source, key=name, parts=())
    return Raw(task=task, parts=(RawPart(name="", archived=archived, data=data),))
