"""Commands that get SIGINT or SIGTERM at random moments, and what they make in the end.

Each kind of command works on a library until it is stopped, is started again and stopped again, and
is left alone at last: its library must be that of one that was never disturbed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Final
from urllib.request import urlopen
from uuid import UUID

import psutil
from sqlalchemy import insert, select
from tests.support import servers
from tests.support.libraries.uploads import send
from tests.support.polling import wait_until
from tests.zoo import serve
from tests.zoo.large import large

from fonds.demo.server import DemoUpstream
from fonds.library import Library, open_library
from fonds.runs import commands
from fonds.seams import Seams
from fonds.selftest.state import differences, rows_of
from fonds.stores.tables import upload_jobs, users
from fonds.testing import ManualClock
from fonds.uploads.states import ENDED

KINDS: Final = ("crawl", "run", "serve", "worker", "scheduler")
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
MAX_SECONDS: Final = 60.0
"""After which a command that was stopped is killed, and the try fails."""
_PDFS: Final = 150
_USER: Final = UUID(int=7, version=4)
_STOPPED: Final = frozenset({0, 130, -signal.SIGINT, -signal.SIGTERM})
"""Exit codes of stopped commands; the last two of those that had not begun."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One signal, and how long the command took to end with all its processes."""

    kind: str
    number: signal.Signals
    after: float
    """Seconds after the start of the command."""
    seconds: float
    code: int


@dataclass(kw_only=True)
class Scenario(ABC):
    """A command on a library of its own."""

    home: Path
    variables: Mapping[str, str]
    idle_seconds: ClassVar[float] = 0.0
    """How long the command is left alone at most, where it is never complete."""

    @property
    @abstractmethod
    def arguments(self) -> list[str]:
        """The arguments of the command."""

    def fill(self) -> None:
        """Make the library."""
        with self.library():
            pass

    @contextmanager
    def library(self) -> Iterator[Library]:
        """The library, opened here."""
        with open_library(self.home, embedder="hashing:32") as library:
            yield library

    def start(self) -> subprocess.Popen[bytes]:
        """Start the command."""
        command = [sys.executable, "-m", "fonds", *self.arguments]
        streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=dict(self.variables), cwd=self.home, **streams)

    def is_complete(self) -> bool:
        """Whether there is nothing left to do."""
        return False

    def finish(self) -> None:
        """Let the command end by itself."""
        assert self.start().wait(MAX_SECONDS * 4) == 0

    def state(self) -> dict[str, list[str]]:
        """What must be as if there had been no signal."""
        with self.library() as library:
            return dict(rows_of(library))


class Run(Scenario):
    """`fonds backfill`, which runs a source as `fonds run` does."""

    @property
    def arguments(self) -> list[str]:
        return ["backfill", "federal_register", "--since", "2026-01-01", "--until", "2026-02-28"]


class Crawl(Scenario):
    """`fonds crawl --resume`."""

    @property
    def arguments(self) -> list[str]:
        is_begun = (self.home / "output/metadata.json").exists()
        resume = ["--resume"] if is_begun else []
        return ["crawl", "sites.json", "--output", "output", "--parallelism", "8", *resume]

    def fill(self) -> None:
        """Make the library, and the configuration of the crawl."""
        super().fill()
        website = {"id": "registry", "name": "Registry", "base_url": self.variables["SITE"]}
        configuration = {"version": "1.0", "websites": [website]}
        (self.home / "sites.json").write_text(json.dumps(configuration))

    def state(self) -> dict[str, list[str]]:
        """The library, and the files with what `metadata.json` says of each."""
        metadata = json.loads((self.home / "output/metadata.json").read_text())
        entries = [
            f"{entry['filename']} {entry['sha256_hash']} {entry['original_url']}"
            for entry in metadata["downloaded_files"]
        ]
        sizes = [f"{file.name} {file.stat().st_size}" for file in self.home.glob("output/pdfs/*")]
        return {**super().state(), "entries": sorted(entries), "files": sorted(sizes)}


class Serve(Scenario):
    """`fonds serve`, with its worker, while clients send requests and half of one."""

    idle_seconds: ClassVar[float] = 20.0

    @property
    def arguments(self) -> list[str]:
        return ["serve", "--port", self.variables["PORT"]]

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server and its clients."""
        process = super().start()
        Thread(target=self._visit, args=(process,), daemon=True).start()
        return process

    def _visit(self, process: subprocess.Popen[bytes]) -> None:
        port = int(self.variables["PORT"])
        half = None
        while process.poll() is None:
            with suppress(OSError):
                half = half or socket.create_connection(("127.0.0.1", port), timeout=5)
                half.send(b"GET / HTTP/1.1\r\n")
                with urlopen(f"http://127.0.0.1:{port}/?q=policy", timeout=5) as response:
                    response.read()
        if half is not None:
            half.close()

    def finish(self) -> None:
        """Leave the server: it has nothing to finish."""

    def state(self) -> dict[str, list[str]]:
        """The library, without what each server stores of itself."""
        return {name: rows for name, rows in super().state().items() if name != "server_values"}


class Worker(Scenario):
    """`fonds worker`, on uploads."""

    @property
    def arguments(self) -> list[str]:
        return ["worker"]

    def fill(self) -> None:
        """Make the library with uploads of a fixed moment, which their citations contain."""
        seams = Seams(clock=ManualClock())
        with open_library(self.home, seams=seams, embedder="hashing:32") as library:
            row = {"id": _USER, "name": "maria", "created_at": seams.clock.now()}
            with library.database.write() as connection:
                connection.execute(insert(users).values(row))
            for number in range(12):
                parts = [f"## Part {part}\n\n" + f"Policy {number}. " * 400 for part in range(40)]
                send(library, _USER, "\n\n".join(parts).encode(), f"policy-{number}.md")

    def is_complete(self) -> bool:
        """Whether all jobs have ended."""
        with self.library() as library, library.database.read() as connection:
            return set(connection.scalars(select(upload_jobs.c.status))) <= ENDED

    def finish(self) -> None:
        """Work until all jobs have ended; those of a killed worker wait for its lease."""
        self._work_until(self.is_complete)

    def _work_until(self, is_complete: Callable[[], bool]) -> None:
        process = self.start()
        try:
            wait_until(is_complete, seconds=MAX_SECONDS * 4)
            process.send_signal(signal.SIGTERM)
            process.wait(MAX_SECONDS)
        finally:
            process.kill()


class Scheduler(Worker):
    """`fonds scheduler`, while it executes a command of an operator."""

    @property
    def arguments(self) -> list[str]:
        return ["scheduler"]

    def fill(self) -> None:
        """Make the library, and request a run."""
        with self.library() as library, library.database.write() as connection:
            commands.submit(
                connection,
                "backfill",
                "federal_register",
                {"since": "2026-01-01", "until": "2026-02-28"},
                registry=library.sources,
                requested_by="maria",
                now=library.seams.clock.now(),
            )

    def is_complete(self) -> bool:
        """Whether no command is open."""
        with self.library() as library, library.database.read() as connection:
            return not commands.listing(connection, limit=1, is_open=True)


_SCENARIOS: Final[Mapping[str, type[Scenario]]] = {
    "crawl": Crawl,
    "run": Run,
    "serve": Serve,
    "worker": Worker,
    "scheduler": Scheduler,
}


class SignalError(AssertionError):
    """A command that did not end, or a library that is not as an undisturbed one."""


@dataclass(kw_only=True)
class SignalTries:
    """Libraries in one folder, and the servers that their commands request."""

    folder: Path
    seed: int = 0
    report: Callable[[str], None] = lambda _line: None
    attempts: list[Attempt] = field(default_factory=list)
    _variables: dict[str, str] = field(default_factory=dict)
    _libraries: int = 0

    def run(self, kinds: Sequence[str], each: int, *, libraries: int = 2) -> list[Attempt]:
        """Send so many signals to each kind of command, divided among some libraries."""
        chance = random.Random(self.seed)
        # A background job of a shell ignores SIGINT, and so would its children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ExitStack() as stack:
            self._serve(stack)
            for kind in kinds:
                expected, longest = self._undisturbed(kind)
                remaining = each
                while remaining:
                    count = min(remaining, -(-each // libraries))
                    remaining -= self._disturbed(kind, count, longest, expected, chance)
        return self.attempts

    def _serve(self, stack: ExitStack) -> None:
        upstream = stack.enter_context(DemoUpstream())
        site = large(1 + _PDFS // 10, _PDFS, 20_000)
        zoo = stack.enter_context(serve([site]))
        plain = {name: text for name, text in os.environ.items() if not name.startswith("FONDS_")}
        self._variables = {
            **plain,
            "FONDS_HOSTS": upstream.hosts_variable,
            "FONDS_ALLOW_PRIVATE": "1",
            "FONDS_EMBEDDER": "hashing:32",
            "FONDS_RATE_FACTOR": "0",
            "SITE": zoo.start(site),
        }

    def _scenario(self, kind: str) -> Scenario:
        self._libraries += 1
        home = self.folder / f"{kind}-{self._libraries}"
        home.mkdir(parents=True)
        [port] = servers.free_ports(1)
        variables = {**self._variables, "FONDS_HOME": str(home), "PORT": str(port)}
        scenario = _SCENARIOS[kind](home=home, variables=variables)
        scenario.fill()
        return scenario

    def _undisturbed(self, kind: str) -> tuple[dict[str, list[str]], float]:
        """The state of a library that was left alone, and the seconds until it was complete."""
        scenario = self._scenario(kind)
        begun = time.monotonic()
        scenario.finish()
        longest = max(2.0, scenario.idle_seconds, time.monotonic() - begun)
        return scenario.state(), longest

    def _disturbed(
        self,
        kind: str,
        count: int,
        longest: float,
        expected: Mapping[str, Sequence[str]],
        chance: random.Random,
    ) -> int:
        """Send signals to the commands on one library until it is complete; how many were sent."""
        scenario, sent = self._scenario(kind), 0
        while sent < count and not scenario.is_complete():
            process = scenario.start()
            # Later ones come near its end: the command continues where it was stopped.
            after = chance.uniform(0.0, 0.6 * longest)
            with suppress(subprocess.TimeoutExpired):
                process.wait(after)
                if process.returncode:
                    raise SignalError(f"{kind} ended with {process.returncode} by itself")
                break
            self._send(kind, process, chance.choice(SIGNALS), after)
            sent += 1
        scenario.finish()
        if lines := list(differences(expected, scenario.state())):
            raise SignalError(f"the library of {kind} differs:\n" + "\n".join(lines))
        self.report(f"{kind}: {sent} signals, and the library is that of an undisturbed one")
        return sent

    def _send(
        self, kind: str, process: subprocess.Popen[bytes], number: signal.Signals, after: float
    ) -> None:
        family = [psutil.Process(process.pid)]
        with suppress(psutil.NoSuchProcess):
            family += family[0].children(recursive=True)
        begun = time.monotonic()
        process.send_signal(number)
        try:
            process.wait(MAX_SECONDS)
            wait_until(lambda: not _alive(family), seconds=MAX_SECONDS)
        except (subprocess.TimeoutExpired, AssertionError) as error:
            process.kill()
            raise SignalError(f"{kind} did not end after {number.name}: {error}") from error
        seconds = time.monotonic() - begun
        attempt = Attempt(
            kind=kind, number=number, after=after, seconds=seconds, code=process.returncode
        )
        self.attempts.append(attempt)
        self.report(
            f"{kind}: {number.name} after {after:.1f} s, ended in {seconds:.2f} s"
            f" with {process.returncode}"
        )
        if process.returncode not in _STOPPED:
            raise SignalError(f"{kind} ended with {process.returncode} after {number.name}")


def _alive(family: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [each for each in family if each.is_running() and _state_of(each) != "zombie"]


def _state_of(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return "zombie"
