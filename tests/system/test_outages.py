"""PostgreSQL and the object store are stopped and started again while commands work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.faults.outages import COMMANDS, try_outages
from tests.support.libraries.demo import FONDS
from tests.support.polling import wait_until


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.s3
def test_short_outages_end_no_command_and_the_library_is_that_of_an_undisturbed_run(
    tmp_path: Path,
) -> None:
    outages = try_outages(tmp_path, [COMMANDS, ["run"]], seed=int(os.environ.get("SEED", "3")))
    assert len(outages) == len(COMMANDS) + 1
    assert any("waiting up to" in line for outage in outages for line in outage.says)


def _start(
    tmp_path: Path, *arguments: str, **settings: str
) -> tuple[subprocess.Popen[bytes], Path]:
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("FONDS_")}
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [FONDS, "--home", tmp_path / "home", *arguments],
            env=inherited | {f"FONDS_{name.upper()}": value for name, value in settings.items()},
            stdout=output,
            stderr=output,
        )
    return process, log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "arguments", [["run", "gao"], ["worker"], ["scheduler"], ["code", "ingest", "usc"]]
)
def test_a_command_that_waits_for_its_database_ends_within_five_seconds_of_a_signal(
    tmp_path: Path, arguments: list[str], number: signal.Signals
) -> None:
    database = "postgresql://nobody@127.0.0.1:1/nothing"
    process, log = _start(tmp_path, *arguments, database=database)
    try:
        wait_until(lambda: b"waiting up to 300 seconds for the database" in log.read_bytes())
        process.send_signal(number)
        process.wait(5)
    finally:
        process.kill()
        process.wait()
    assert re.search(rb"Traceback", log.read_bytes()) is None
