"""What is asked for is done by the processes that a library is run with."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support import servers

from fonds.demo.bundle import bundled_sites
from fonds.demo.http import Handler, Request, Response
from fonds.demo.server import DemoUpstream
from fonds.library import Library, open_library
from fonds.runs import commands
from fonds.runs.commands import Command, Kind

PATIENCE: Final = 60.0
EXIT_STOPPED: Final = 130
SLOW: Final = "www.federalregister.gov"


class Slow:
    """A site that takes its time over every page."""

    def __init__(self, site: Handler) -> None:
        self._site = site
        self.seconds = 0.0

    def __call__(self, request: Request) -> Response:
        time.sleep(self.seconds)
        return self._site(request)


@pytest.fixture
def slow() -> Slow:
    return Slow(bundled_sites()[SLOW])


@pytest.fixture
def variables(slow: Slow, tmp_path: Path) -> Iterator[dict[str, str]]:
    servers.sqlite_database(tmp_path / "fonds.db")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FONDS_")}
    with DemoUpstream({**bundled_sites(), SLOW: slow}) as upstream:
        yield {
            **plain,
            "FONDS_HOME": str(tmp_path),
            "FONDS_HOSTS": upstream.hosts_variable,
            "FONDS_ALLOW_PRIVATE": "1",
            "FONDS_EMBEDDER": "hashing",
        }


@pytest.fixture
def library(variables: dict[str, str]) -> Iterator[Library]:
    with open_library(variables["FONDS_HOME"]) as library:
        yield library


@contextmanager
def started(variables: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(servers.fonds_command()), *arguments]
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(library: Library, command: Kind, source: str, **args: Any) -> int:
    with library.database.write() as connection:
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


def when_done(library: Library, command_id: int) -> Command:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with library.database.read() as connection:
            found = commands.get(connection, command_id)
        assert found is not None
        if found.state == "done":
            return found
        time.sleep(0.05)
    raise AssertionError("nobody has done it")


def going_on(library: Library, source: str) -> bool:
    with library.database.read() as connection:
        return commands.running(connection, source) is not None


def wait_for_run(library: Library, source: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not going_on(library, source):
        assert time.monotonic() < deadline, "it never began"
        time.sleep(0.05)


@pytest.mark.parametrize(("program", "code"), [("scheduler", EXIT_STOPPED), ("worker", 0)])
def test_process_does_what_is_asked_for_and_is_stopped_in_the_midst_of_it(
    library: Library, variables: dict[str, str], slow: Slow, program: str, code: int
) -> None:
    with started(variables, program) as process:
        asked = ask(library, "run", "legislators")
        assert (when_done(library, asked).outcome or "").startswith("success: 5 found")
        slow.seconds = 0.5
        endless = ask(library, "backfill", "federal_register", since="2026-01-12")
        wait_for_run(library, "federal_register")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == code
    with library.database.read() as connection:
        given_back = commands.get(connection, endless)
    assert given_back is not None
    assert given_back.state == "waiting"
    assert not going_on(library, "federal_register")


def test_run_in_a_terminal_is_cancelled_by_an_operator(
    library: Library, variables: dict[str, str], slow: Slow
) -> None:
    slow.seconds = 0.5
    with started(variables, "backfill", "federal_register", "--since", "2026-01-12") as process:
        wait_for_run(library, "federal_register")
        asked = ask(library, "cancel", "federal_register")
        printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 3
    assert "federal_register: cancelled" in printed
    assert when_done(library, asked).outcome == "done: the run was cancelled"
