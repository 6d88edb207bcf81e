"""The library of the demo, whose documents are invented, contacts no real publisher."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.libraries.demo import copy_demo_library
from tests.unit.cli.conftest import Fonds, Publishers

from fonds.settings import read_settings


@pytest.fixture
def demo_library(fonds: Fonds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the library, without the substitute of the publishers."""
    assert callable(fonds)  # the fixture sets variables
    monkeypatch.delenv("FONDS_HOSTS")
    return copy_demo_library(tmp_path)


@pytest.mark.parametrize(
    "command",
    ["run federal_register", "backfill gao", "bootstrap crs", "audit crs", "code ingest usc"],
)
def test_demo_library_contacts_no_real_publisher(
    fonds: Fonds, demo_library: Path, command: str
) -> None:
    outcome = fonds(*command.split(), "--home", str(demo_library))
    assert outcome.code in {1, 2, 3}
    assert "this library contacts no publishers" in " ".join((outcome.out + outcome.err).split())


def test_demo_library_contacts_publishers_when_told_to(
    fonds: Fonds, demo_library: Path, publishers: Publishers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not read_settings({"home": demo_library}, environ={}).contact_publishers
    told = read_settings({"home": demo_library}, environ={"FONDS_CONTACT_PUBLISHERS": "1"})
    assert told.contact_publishers
    # A substitute is no publisher.
    monkeypatch.setenv("FONDS_HOSTS", publishers.upstream.hosts_variable)
    assert fonds("backfill", "legislators", "--home", str(demo_library)).code == 0


@pytest.mark.long
def test_demo_in_a_library_with_documents_leaves_its_settings(fonds: Fonds, home: Path) -> None:
    (home / "fonds.toml").write_text("retention_days = 7\n")
    fonds("demo", "--home", str(home))
    assert (home / "fonds.toml").read_text() == "retention_days = 7\n"
