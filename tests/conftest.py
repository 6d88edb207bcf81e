"""Which tests `make test` runs, and fixtures for what is real: servers and publishers' files.

It runs unit and source tests, and the contract suites on SQLite and a folder. `make test-all` runs
the rest: what is marked `long`, is below `system`, `web` or `simulation`, or needs another server
or publishers' files; of the last three, tests marked `smoke` are run by `make test` instead. A test
needs a server if it uses one of its fixtures or has its name as a parameter.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from fonds.sites.browser import PROGRAMS
from fonds.sources.registry import builtin_sources
from tests.support import servers
from tests.support.ray_cluster import shared_cluster

SERVER_FIXTURES: Final = {
    "postgres_url": "postgres",
    "s3_address": "s3",
    "azure_address": "azure",
    "ray_cluster": "ray",
    "chromium": "browser",
}
SERVER_PARAMETERS: Final = {name: name for name in SERVER_FIXTURES.values()} | {
    "abfs": "azure",
    "proxy": "proxy",
}
FULL_FOLDERS: Final = ("tests/system/", "tests/web/", "tests/simulation/")
ALLOWED_SECONDS: Final = 10
"""A test that takes longer is marked `long`."""

# How long an example takes says more about the machine than about what is tested.
settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a folder where its workers meet."""
    if not hasattr(config, "workerinput"):
        servers.open_run()
    builtin_sources()  # their tables refer to each other, whichever of them a test imports


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with the servers they need, and with `full` if `make test` leaves them out."""
    missing = _missing_servers()
    for item in items:
        needed = _servers_of(item)
        for name in needed:
            item.add_marker(name)
            if name in missing:
                item.add_marker(pytest.mark.skip(reason=missing[name]))
        is_slow_kind = (
            needed
            or item.nodeid.startswith(FULL_FOLDERS)
            or "corpus" in getattr(item, "fixturenames", ())
        )
        is_smoke = item.get_closest_marker("smoke") is not None
        if item.get_closest_marker("long") or (is_slow_kind and not is_smoke):
            item.add_marker("full")


def _servers_of(item: pytest.Item) -> set[str]:
    fixtures = getattr(item, "fixturenames", ())
    needed = {SERVER_FIXTURES[name] for name in fixtures if name in SERVER_FIXTURES}
    callspec = getattr(item, "callspec", None)
    for value in callspec.params.values() if callspec else ():
        if isinstance(value, str):
            words = re.split("[-_]", value)
            needed |= {SERVER_PARAMETERS[word] for word in words if word in SERVER_PARAMETERS}
    return needed | {mark.name for mark in item.iter_markers() if mark.name in SERVER_PARAMETERS}


def _missing_servers() -> dict[str, str]:
    missing = {}
    if servers.azurite_command() is None:
        missing["azure"] = "needs Azurite: scripts/install-azurite"
    if not any(map(shutil.which, PROGRAMS)):
        missing["browser"] = "needs Chromium: scripts/install-chromium"
    if not all(map(shutil.which, ("nginx", "haproxy", "caddy"))):
        missing["proxy"] = "needs nginx, HAProxy and Caddy: scripts/install-proxies"
    return missing


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through thousands of tests that stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line each why tests were skipped, and which ones lack the marker `long`."""
    skipped = Counter(_skip_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if skipped:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in skipped.most_common())
        terminalreporter.write_line(f"{skipped.total()} skipped: {reasons}")
    unmarked = [
        report.nodeid
        for report in terminalreporter.stats.get("passed", ())
        if report.duration > ALLOWED_SECONDS and not {"long", "smoke"} & report.keywords.keys()
    ]
    for test in unmarked:
        terminalreporter.write_line(f"over {ALLOWED_SECONDS} s and not marked long: {test}")


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started, also after an interrupted run."""
    if hasattr(config, "workerinput"):
        servers.leave_running()
    else:
        servers.close_run()


@pytest.fixture(scope="session", autouse=True)
def commands() -> Iterator[None]:
    """What is typed in this process finds all commands made, which takes typer most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A PostgreSQL server with pgvector, as its superuser."""
    return servers.postgres()


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """A database of the test's own, with all tables and no row."""
    with servers.postgres_database(postgres_url) as url:
        yield url


@pytest.fixture
def bare_postgres_database(postgres_url: str) -> Iterator[str]:
    """A database of the test's own, without a table."""
    with servers.postgres_database(postgres_url, is_bare=True) as url:
        yield url


@pytest.fixture
def s3_address() -> str:
    """An empty prefix in a real S3 server."""
    return servers.s3()


@pytest.fixture
def azure_address() -> str:
    """An empty prefix in Azurite."""
    return servers.azure()


@pytest.fixture(scope="session")
def ray_cluster() -> str:
    """The engine address of a Ray cluster of two nodes."""
    return shared_cluster()


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], Path]:
    """Unpacks an archive of publishers' files, once for a run, and gives its folder."""
    archives = os.environ.get("FONDS_CORPUS")
    if not archives:
        pytest.skip("needs real files: set FONDS_CORPUS to the folder with their archives")

    def unpacked(name: str) -> Path:
        target = servers.run_folder() / "corpus"
        done = target / f"{name}.done"
        with servers.locked("corpus"):
            if not done.exists():
                servers.ensure_guard()
                subprocess.run([Path(archives) / "unpack", target, name], check=True)
                done.touch()
        return target / name

    return unpacked
