"""The script that writes revisions, on a copy of the folder that they are in."""

from __future__ import annotations

import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Column, Table, Text

from fonds import schema
from fonds.schema import HEAD
from fonds.stores.columns import Identity, Timestamp
from fonds.stores.tables import metadata

SCRIPT: Final = Path(__file__).resolve().parents[3] / "scripts" / "make-migration"
NEXT: Final = f"{int(HEAD) + 1:04d}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the module that names the newest revision, and of the revisions."""
    module = tmp_path / "schema.py"
    shutil.copyfile(schema.__file__, module)
    shutil.copytree(str(schema.MIGRATIONS), tmp_path / "migrations")
    monkeypatch.setattr(schema, "__file__", str(module))
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path / "migrations")
    return tmp_path


@pytest.fixture
def harbours() -> Iterator[Table]:
    table = Table(
        "harbours",
        metadata,
        Column("id", Identity, primary_key=True, comment="Of the harbour."),
        Column("opened_at", Timestamp, nullable=False, index=True),
        Column("name", Text),
    )
    yield table
    metadata.remove(table)


@pytest.mark.usefixtures("harbours")
def test_revision_makes_what_is_declared_and_becomes_the_newest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "Add harbours"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    source = (folder / "migrations" / "versions" / f"{NEXT}_add_harbours.py").read_text("utf-8")
    for line in (
        f'revision = "{NEXT}"\ndown_revision = "{HEAD}"\n',
        'sa.Column("id", Identity(), nullable=False, comment="Of the harbour.")',
        'sa.Column("opened_at", Timestamp(), nullable=False)',
        'op.create_index(op.f("ix_harbours_opened_at"), "harbours", ["opened_at"], unique=False)',
        "from fonds.stores.columns import Identity, Timestamp\n",
    ):
        assert line in source
    assert source.count("op.create_table(") == 1
    assert f'HEAD: Final = "{NEXT}"' in (folder / "schema.py").read_text("utf-8")


def test_no_revision_is_written_where_declarations_and_revisions_agree(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in (folder / "migrations" / "versions").glob("*.py"))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "Change nothing"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert sorted(path.name for path in (folder / "migrations" / "versions").glob("*.py")) == before
    assert f'HEAD: Final = "{HEAD}"' in (folder / "schema.py").read_text("utf-8")
    assert "no revision is written" in capsys.readouterr().out
