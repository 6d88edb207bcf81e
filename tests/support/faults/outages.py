"""Servers of a library that are stopped for some seconds while commands work.

A round makes a library by `backfill`, `code ingest`, `crawl` and `worker`, with `serve` running all
the time. Each of them, and the server, is disturbed once: PostgreSQL or the object store is stopped
at a random moment, and started again. The library must be the one of an undisturbed round.

`scripts/try-outages` runs rounds from a shell.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol
from uuid import uuid4

import httpx
import psutil
import psycopg
from psycopg import sql
from tests.support import servers
from tests.support.libraries.demo import FONDS
from tests.support.polling import wait_until
from tests.support.upstreams.codes import FolderServer, write_usc_title

from fonds.demo.bundle import DATA, FIRST_DAY, LAST_DAY

AWAY_SECONDS: Final = (16.0, 20.0)
"""The least and most that a server is stopped."""
PATIENCE: Final = 240.0
REPORTS: Final = 6
SECTIONS: Final = 300
UPLOADS: Final = 4
COPIES: Final = 6
"""Of each notice and report of the upstream, so that a run takes some seconds."""
USER: Final = "outages"


class Stoppable(Protocol):
    """A server that can be stopped and started again with all that it has stored."""

    name: str

    def stop(self) -> None:
        """Stop it, as an operator or a failing machine does."""
        ...

    def start(self) -> None:
        """Start it again."""
        ...


class StoppablePostgres:
    """A PostgreSQL of its own."""

    name = "postgres"

    def __init__(self, home: Path, chance: random.Random) -> None:
        home.mkdir()
        self._server = servers.make_postgres(home)
        self._chance = chance
        self._server.ensure_postgres_running()

    @property
    def url(self) -> str:
        """Of its superuser's database."""
        return str(self._server.get_uri(driver="psycopg"))

    def new_database(self) -> str:
        """A database without a table."""
        name = f"outages_{uuid4().hex}"
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url.replace("/postgres?", f"/{name}?")

    def stop(self) -> None:
        """End all sessions; now and then without finishing what they do."""
        process = psutil.Process(self._server.get_pid())
        process.send_signal(self._chance.choice([signal.SIGINT, signal.SIGINT, signal.SIGQUIT]))
        process.wait(PATIENCE)

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        self._server.ensure_postgres_running()


class StoppableStore:
    """A SeaweedFS of its own."""

    name = "store"

    def __init__(self, home: Path, chance: random.Random) -> None:
        home.mkdir()
        self._home = home
        self._command, self._endpoint = servers.s3_command(home)
        self._log = home / "log"
        self._chance = chance
        self.start()
        wait_until(lambda: servers.takes_objects(self._endpoint), seconds=PATIENCE)

    def new_address(self) -> str:
        """An empty prefix."""
        return servers.s3_address_at(self._endpoint)

    def stop(self) -> None:
        """Stop it; now and then without finishing what it does."""
        if self._chance.random() < 0.5:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(PATIENCE)
        servers.remove_sockets(json.loads((self._home / "ports.json").read_text()))

    def start(self) -> None:
        """Start it; it takes objects some seconds later."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, start_new_session=True
            )


@contextmanager
def stoppable_servers(
    folder: Path, chance: random.Random
) -> Iterator[tuple[StoppablePostgres, StoppableStore]]:
    """Both servers, stopped at the end."""
    with ExitStack() as stack:
        postgres = StoppablePostgres(folder / "postgres", chance)
        stack.callback(postgres.stop)
        store = StoppableStore(folder / "store", chance)
        stack.callback(store.stop)
        yield postgres, store


@dataclass(frozen=True, kw_only=True)
class Outage:
    """One time that a server was away while a command worked."""

    command: str
    server: str
    after: float
    """Seconds after the start of the command."""
    away: float
    took: float
    """Seconds of the command."""
    code: int
    says: tuple[str, ...]
    """Its lines about the outage."""

    def __str__(self) -> str:
        outcome = f"exit {self.code} after {self.took:.1f} s; {' | '.join(self.says) or 'silent'}"
        when = f"{self.server} away at {self.after:.1f} s for {self.away:.1f} s"
        return f"{self.command}: {when}: {outcome}"


@dataclass(kw_only=True)
class Round:
    """The commands that make a library, each disturbed once by one of the servers."""

    folder: Path
    settings: Mapping[str, str]
    chance: random.Random
    servers: Sequence[Stoppable] = ()
    """None: an undisturbed round."""
    durations: dict[str, float] = field(default_factory=dict)
    """Seconds of each command in an undisturbed round."""
    outages: list[Outage] = field(default_factory=list)
    _token: str = ""

    def run(self, *commands: str) -> str:
        """Make the library, and return the hash over its content; `commands` are disturbed."""
        self.folder.mkdir()
        steps = self._steps()
        self._fonds("init")
        with self._serving() as address:
            for name, arguments in steps.items():
                if name == "worker":
                    self._upload(address)
                if name in commands and self.servers:
                    self._disturbed(name, arguments)
                else:
                    begun = time.monotonic()
                    self._fonds(*arguments)
                    self.durations[name] = time.monotonic() - begun
                if name == "worker":
                    jobs = json.loads(self._fonds("jobs", "--json", "--server", address))
                    statuses = [job["status"] for job in jobs]
                    assert statuses == ["complete"] * UPLOADS, statuses
            if "serve" in commands and self.servers:
                self._disturb_server(address)
        self._fonds("normalize", "--drain")
        self._fonds("citations")
        output = self._fonds("bundle", "create", "--json", "--to", str(self.folder / "bundle"))
        made = json.loads(output)
        assert not any(made["waiting"].values()), made
        return str(made["root"])

    def _steps(self) -> dict[str, Sequence[str]]:
        title = self.folder.parent / "usc91.xml"
        days = ["--since", FIRST_DAY.isoformat(), "--until", LAST_DAY.isoformat()]
        sites = str(self.folder.parent / "sites.json")
        return {
            "run": ["backfill", "federal_register", *days],
            "code ingest": ["code", "ingest", "usc", "--from", str(title), "--version", "2024"],
            "crawl": ["crawl", sites, "--output", str(self.folder / "files")],
            "worker": ["worker", "--drain"],
        }

    # Commands -----------------------------------------------------------------------------

    @property
    def _environment(self) -> dict[str, str]:
        inherited = {name: v for name, v in os.environ.items() if not name.startswith("FONDS_")}
        settings = {**self.settings, "token": self._token}
        return inherited | {f"FONDS_{name.upper()}": v for name, v in settings.items()}

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [str(FONDS), "--home", str(self.folder / "home"), *arguments]

    def _fonds(self, *arguments: str) -> str:
        done = subprocess.run(
            self._command(arguments),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stderr}{done.stdout}"
        return done.stdout

    def _disturbed(self, name: str, arguments: Sequence[str]) -> None:
        server = self.chance.choice(self.servers)
        after = self.chance.uniform(0.0, self.durations.get(name, 5.0))
        log = self.folder / f"{name.replace(' ', '-')}.log"
        begun = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(arguments), env=self._environment, stdout=output, stderr=output
            )
        try:
            away = self._take_away(server, after)
            code = process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
        lines = log.read_text(errors="replace").splitlines()
        outage = Outage(
            command=name,
            server=server.name,
            after=after,
            away=away,
            took=time.monotonic() - begun,
            code=code,
            says=tuple(line for line in lines if re.search("waiting up to|responds again", line)),
        )
        self.outages.append(outage)
        assert code == 0, f"{outage}\n" + "\n".join(lines[-40:])

    def _take_away(self, server: Stoppable, after: float) -> float:
        """Stop a server after some seconds, and start it again after some more."""
        time.sleep(after)
        stopped = time.monotonic()
        server.stop()
        time.sleep(max(0.0, self.chance.uniform(*AWAY_SECONDS) - (time.monotonic() - stopped)))
        server.start()
        return time.monotonic() - stopped

    # The server ---------------------------------------------------------------------------

    @contextmanager
    def _serving(self) -> Iterator[str]:
        log = self.folder / "serve.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(["serve", "--port", "0"]),
                env=self._environment,
                stdout=output,
                stderr=output,
            )

        def address() -> str | None:
            match = re.search(r"serving (http://\S+?)[;\s]", log.read_text(errors="replace"))
            return match[1] if match else None

        try:
            wait_until(lambda: address() or process.poll() is not None)
            served = address()
            assert served, log.read_text(errors="replace")
            yield served
            assert process.poll() is None, log.read_text(errors="replace")
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def _disturb_server(self, address: str) -> None:
        """Ask all the time: every answer comes soon, is 200 or 503, and in the end 200 again."""
        server = self.servers[0]  # it searches in the database
        statuses: list[int] = []
        slowest = 0.0
        begun = time.monotonic()
        outage = Thread(target=self._take_away, args=(server, 0.5))
        outage.start()
        while outage.is_alive():
            asked = time.monotonic()
            answer = httpx.get(f"{address}/api/search?q=notice", timeout=30)
            slowest = max(slowest, time.monotonic() - asked)
            statuses.append(answer.status_code)
            if answer.status_code != HTTPStatus.OK:
                assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE, answer.text
                assert int(answer.headers["Retry-After"]) > 0
            time.sleep(0.1)
        outage.join()
        assert HTTPStatus.SERVICE_UNAVAILABLE in statuses
        wait_until(lambda: httpx.get(f"{address}/api/search?q=notice").is_success, seconds=30)
        took = time.monotonic() - begun
        self.outages.append(
            Outage(
                command="serve",
                server=server.name,
                after=0.5,
                away=took,
                took=took,
                code=0,
                says=(f"{len(statuses)} answers, the slowest after {slowest:.1f} s",),
            )
        )

    def _upload(self, address: str) -> None:
        files = [str(path) for path in sorted(self.folder.parent.glob("upload-*.txt"))]
        self._token = self._fonds("token", "create", USER).strip()
        self._fonds("upload", "--no-wait", "--server", address, *files)


# What the commands read -------------------------------------------------------------------


@contextmanager
def upstreams(folder: Path) -> Iterator[str]:
    """What the commands of a round read, in a folder and on loopback; the value of FONDS_HOSTS."""
    write_usc_title(folder / "usc91.xml", sections=SECTIONS, words=120)
    for number in range(UPLOADS):
        text = "\n\n".join(f"Paragraph {line} of upload {number}." for line in range(200))
        (folder / f"upload-{number}.txt").write_text(text)
    site = folder / "site"
    site.mkdir()
    reports = sorted(DATA.rglob("*.pdf"))[:REPORTS]
    links = []
    for number, path in enumerate(reports):
        (site / f"report-{number}.pdf").write_bytes(path.read_bytes())
        links.append(f'<p><a href="report-{number}.pdf">Report of 202{number}</a></p>')
    page = '<!DOCTYPE html>\n<html lang="en"><title>Reports</title>\n<h1>Reports</h1>\n{}\n'
    (site / "index.html").write_text(page.format("\n".join(links)))
    command = [sys.executable, "-m", "tests.support.upstreams.copies", "--times", str(COPIES)]
    with (
        FolderServer(site) as website,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        address = website.url("/index.html")
        configured = {"id": "reports", "name": "Annual Reports", "base_url": address}
        sites = {"version": "1.0", "websites": [configured]}
        (folder / "sites.json").write_text(json.dumps(sites))
        try:
            yield process.stdout.readline().strip().removeprefix("FONDS_HOSTS=")
        finally:
            process.terminate()


COMMANDS: Final = ("run", "code ingest", "crawl", "worker", "serve")


def try_outages(
    folder: Path,
    disturbed: Sequence[Sequence[str]],
    *,
    seed: int,
    report: Callable[[str], Any] = lambda _: None,
) -> list[Outage]:
    """Make a library undisturbed, and again in rounds with outages; all must be the same."""
    chance = random.Random(seed)
    outages: list[Outage] = []
    with upstreams(folder) as hosts, stoppable_servers(folder, chance) as (postgres, store):
        basis = {"hosts": hosts, "allow_private": "1", "rate_factor": "0", "retry_wait": "0.05"}

        def new_round(name: str, *stopped: Stoppable) -> Round:
            stores = {"database": postgres.new_database(), "blobs": store.new_address()}
            return Round(
                folder=folder / name, settings=basis | stores, chance=chance, servers=stopped
            )

        undisturbed = new_round("undisturbed")
        expected = undisturbed.run()
        report(f"undisturbed: {expected[:12]}, {undisturbed.durations}")
        for number, commands in enumerate(disturbed, 1):
            again = new_round(f"round-{number}", postgres, store)
            again.durations = dict(undisturbed.durations)
            try:
                root = again.run(*commands)
            finally:
                outages += again.outages
                for outage in again.outages:
                    report(str(outage))
            assert root == expected, f"round {number} made another library"
            report(f"round {number}: {root[:12]}, as undisturbed")
    return outages
