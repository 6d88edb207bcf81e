from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Fonds

from fonds.library import open_library
from fonds.runs import audit as audits
from fonds.runs import commands
from fonds.runs.commands import Kind


def ask(home: Path, command: Kind, source: str | None, **args: Any) -> int:
    with open_library(home) as library, library.database.write() as connection:
        now = library.seams.clock.now()
        return commands.submit(
            connection,
            command,
            source,
            args,
            registry=library.sources,
            requested_by="maria",
            now=now,
        )


def test_commands_are_shown_with_who_asked_and_what_came_of_it(fonds: Fonds, empty: Path) -> None:
    ask(empty, "run", "legislators")
    ask(empty, "drain", None, queue="citations")
    home = ["--home", str(empty)]
    assert fonds("worker", "--drain", *home).code == 0
    ask(empty, "audit", "legislators")
    outcome = fonds("commands", *home)
    assert outcome.code == 0
    audit, drain, run = outcome.out.splitlines()[1:]
    assert (audit.split()[1:3], audit.split()[6]) == (["audit", "legislators"], "waiting")
    assert "citations" in drain
    assert "done     success:" in drain
    assert "maria" in run
    assert "success: 5 found, 5 fetched, 22 new" in run
    assert len(fonds("commands", "--open", *home).out.splitlines()) == 2
    rows = fonds("commands", "--source", "legislators", "--json", *home).json
    assert [(row["command"], row["state"]) for row in rows] == [
        ("audit", "waiting"),
        ("run", "done"),
    ]
    assert rows[1]["run_id"]


def test_worker_leaves_commands_to_others_if_told_so(fonds: Fonds, empty: Path) -> None:
    ask(empty, "run", "legislators")
    home = ["--home", str(empty)]
    assert fonds("worker", "--drain", "--no-commands", *home).code == 0
    (row,) = fonds("commands", "--json", *home).json
    assert row["state"] == "waiting"


def test_no_commands_are_said_to_be_none(fonds: Fonds, empty: Path) -> None:
    outcome = fonds("commands", "--home", str(empty))
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "no commands\n"


def test_commands_of_no_source_are_a_usage_error(fonds: Fonds) -> None:
    assert fonds("commands", "--source", "nosuch").code == 2


@pytest.mark.parametrize("limit", ["0", "1001"])
def test_as_many_are_shown_as_is_sensible(fonds: Fonds, limit: str) -> None:
    assert fonds("commands", "--limit", limit).code == 2


def test_audit_is_kept(fonds: Fonds, home: Path) -> None:
    assert fonds("audit", "legislators", "--home", str(home)).code in {0, 3}
    with open_library(home) as library, library.database.read() as connection:
        (kept,) = audits.latest(connection)
    assert (kept.source, kept.requested_by) == ("legislators", "local")
