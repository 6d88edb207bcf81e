"""Processes that do commands, or a run, to be killed and cancelled (fonds.selftest.child)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fonds.library import open_library
from fonds.operations import CommandResult, Dispatcher
from fonds.runs.commands import KINDS, Command
from fonds.runs.state import RunRequest
from fonds.schema import ensure_plugin_tables
from fonds.seams import Seams
from fonds.selftest.child import serve
from fonds.stores.database import open_database
from fonds.testing import FAKE_HOST, FakeSource, LaterClock


def dispatch(*, address: str, noted: str, seconds: float, hours: int = 0) -> None:
    """Do all commands that are to be had: note each down, and take some time over it."""
    clock = LaterClock(hours=hours)
    database = open_database(address, seams=Seams(clock=clock))

    with Path(noted).open("a", buffering=1) as file:

        async def note(command: Command) -> CommandResult:
            file.write(f"{command.id}\n")
            await asyncio.sleep(seconds)
            return CommandResult(outcome="success: noted")

        handlers = dict.fromkeys(KINDS, note)
        asyncio.run(Dispatcher(database, clock, handlers, poll=0.02).drain())
    database.close()


def run_notes(*, home: str, address: str, upstream: str) -> None:
    """A run of the fake source that must be cancelled by somebody."""
    given: dict[str, Any] = {"database": address} if address else {}
    hosts = {FAKE_HOST: upstream}
    with open_library(home, hosts=hosts, allow_private=True, timeout=60.0, **given) as library:
        ensure_plugin_tables(library.database, "fake", FakeSource().info.tables)
        report = asyncio.run(library.ingest(FakeSource(), RunRequest()))
    if report.status != "cancelled":
        raise AssertionError(report)


if __name__ == "__main__":
    serve({work.__name__: work for work in (dispatch, run_notes)})
