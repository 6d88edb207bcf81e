"""Commands as a user types them, in this process, on one filled library."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
import structlog
from tests.support import servers

from fonds.cli.main import main
from fonds.demo.bundle import FEEDS, FIRST_DAY, LAST_DAY, bundled_sites
from fonds.demo.http import Handler, Request, Response
from fonds.demo.server import DemoUpstream
from fonds.library import open_library
from fonds.runs.state import RunRequest


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Fonds(Protocol):
    """Types `fonds` with these arguments."""

    def __call__(self, *arguments: str) -> Outcome: ...


class Spoiled:
    """A site that answers as it is told for some paths, and as ever for the others."""

    def __init__(self, site: Handler) -> None:
        self._site = site
        self.answers: dict[str, Response] = {}

    def __call__(self, request: Request) -> Response:
        return self.answers.get(request.path) or self._site(request)


@dataclass(frozen=True)
class Publishers:
    """The bundled upstream, each of whose sites can be spoiled."""

    upstream: DemoUpstream
    sites: dict[str, Spoiled]

    def spoil(self, host: str, path: str, response: Response) -> None:
        self.sites[host].answers[path] = response

    def mend(self) -> None:
        for site in self.sites.values():
            site.answers.clear()


@pytest.fixture(scope="session")
def serving() -> Iterator[Publishers]:
    sites = {host: Spoiled(site) for host, site in bundled_sites().items()}
    with DemoUpstream(dict(sites)) as upstream:
        yield Publishers(upstream, sites)


@pytest.fixture
def publishers(serving: Publishers) -> Iterator[Publishers]:
    yield serving
    serving.mend()


@pytest.fixture(scope="session")
def filled(serving: Publishers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with all the bundled upstream holds; for reading only."""
    home = tmp_path_factory.mktemp("filled")
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    hosts = serving.upstream.hosts
    with open_library(home, hosts=hosts, allow_private=True) as library:
        asyncio.run(library.ingest_all(FEEDS, request))
    return home


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty library of the test's own."""
    servers.sqlite_database(tmp_path / "fonds.db")
    return tmp_path


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    """A filled library of the test's own."""
    return Path(shutil.copytree(filled, tmp_path / "library"))


@pytest.fixture
def fonds(
    filled: Path,
    publishers: Publishers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Fonds]:
    """The command on the shared library, unless `--home` says otherwise."""
    monkeypatch.setenv("FONDS_HOME", str(filled))
    monkeypatch.setenv("FONDS_HOSTS", publishers.upstream.hosts_variable)
    monkeypatch.setenv("FONDS_ALLOW_PRIVATE", "1")
    monkeypatch.setenv("FONDS_RETRY_WAIT", "0.001")

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr("sys.argv", ["fonds", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        assert "Traceback" not in printed.err
        return Outcome(code=code, out=printed.out, err=printed.err)

    yield run
    structlog.reset_defaults()
