"""Damaged files: records or a named error, never anything else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from fonds.demo.bundle import DATA
from fonds.errors import ParseError
from fonds.model import Archived, FetchTask, Raw, RawPart
from fonds.sources.registry import get_source

FILES = {
    "legislators": sorted(DATA.glob("unitedstates.github.io/**/legislators-*.yaml")),
    "committees": sorted(DATA.glob("unitedstates.github.io/**/committee*.yaml")),
    "federal_register": sorted(DATA.glob("www.federalregister.gov/**/*.xml"))[:8]
    + sorted(DATA.glob("www.federalregister.gov/**/*.json"))[:8],
}


@pytest.mark.parametrize("source", FILES)
def test_damaged_files_give_records_or_a_named_error(source: str) -> None:
    _try_damaged(source, random.Random(source), rounds=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("source", FILES)
def test_very_many_damaged_files_give_records_or_a_named_error(source: str, seed: int) -> None:
    _try_damaged(source, random.Random(f"{source}{seed}"), rounds=600)


def _try_damaged(source: str, chance: random.Random, *, rounds: int) -> None:
    parse = get_source(source).parse
    for path, data in _damaged(source, chance, rounds):
        try:
            for record in parse(_raw(source, path, data)):
                assert record.key
        except ParseError as error:
            assert str(error), path  # noqa: PT017 — either outcome is right


def _damaged(source: str, chance: random.Random, rounds: int) -> Iterator[tuple[Path, bytes]]:
    for _ in range(rounds):
        path = chance.choice(FILES[source])
        data = bytearray(path.read_bytes()[:200_000])
        for _ in range(chance.choice((1, 1, 3, 20))):
            place = chance.randrange(len(data))
            match chance.randrange(5):
                case 0:
                    data[place] ^= 1 << chance.randrange(8)
                case 1:
                    del data[place : place + chance.randint(1, 50)]
                case 2:
                    data[place:place] = chance.choice((b"<", b"&#0;", b"\0", b"]]>", b"- ", b'"'))
                case 3:
                    del data[place:]
                case _:
                    other = chance.randrange(len(data))
                    data[place:place] = data[other : other + 200]
            if not data:
                break
        yield path, bytes(data)


def _raw(source: str, path: Path, data: bytes) -> Raw:
    archived = Archived(
        url=path.name,
        key=path.name,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        retrieved_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    task = FetchTask(source=source, key=path.name, parts=())
    return Raw(task=task, parts=(RawPart(name="", archived=archived, data=data),))
