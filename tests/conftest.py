"""Fixtures for everything that is real: servers and publishers' files."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from fonds.sources.registry import builtin_sources
from tests.support import servers

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


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end; nobody need look through them for garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started, also after an interrupted run."""
    if not hasattr(config, "workerinput"):
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
    if servers.azurite_command() is None:
        pytest.skip("needs Azurite: npm install --prefix .tools/azurite azurite")
    return servers.azure()


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
