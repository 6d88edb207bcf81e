"""Clusters of two nodes for the tests: one that all share, and others to be damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import servers
from tests.support.polling import wait_until

PROCESSORS: Final = 2
"""Of both nodes together."""


@dataclass(frozen=True)
class RayCluster:
    """A cluster with nodes to be lost."""

    address: str
    """As the setting `engine` wants it."""
    home: Path
    process: subprocess.Popen[bytes]

    @property
    def started(self) -> int:
        """How many nodes there have been."""
        return int((self.home / "nodes").read_text())

    def replace_node(self) -> None:
        """Switch one machine off; another will join soon."""
        self.process.send_signal(signal.SIGUSR1)

    def await_nodes(self, count: int) -> None:
        """Wait until so many have been started."""
        wait_until(lambda: self.started >= count)


def shared_cluster() -> str:
    """The engine of a cluster that stays for the whole run."""
    return servers._shared("ray", lambda home: _start("ray", home).address)


@contextmanager
def own_cluster(name: str) -> Iterator[RayCluster]:
    """A cluster for one test, which may lose nodes."""
    servers.ensure_guard()
    # The tests of a module may be spread over processes; a socket below must have a short name.
    name += os.environ.get("PYTEST_XDIST_WORKER", "")
    home = servers.run_folder() / name
    home.mkdir()
    cluster = _start(name, home)
    try:
        yield cluster
    finally:
        cluster.process.terminate()
        cluster.process.wait(servers.PATIENCE)


def _start(name: str, home: Path) -> RayCluster:
    # Ray gives its head half a minute, which is too short while the machine is very busy.
    for _ in range(2):
        with suppress(servers.ServerFailedError):
            return _try(name, home)
        shutil.rmtree(home)
        home.mkdir()
    return _try(name, home)


def _try(name: str, home: Path) -> RayCluster:
    command = [sys.executable, "-P", str(Path(__file__).with_name("ray_nodes.py")), str(home)]
    process = servers._launch(name, command)
    servers._record(name, process.pid, signal.SIGTERM)  # it has nodes to stop
    file = home / "address"
    try:
        address = servers._wait_for(
            name, process, lambda: file.read_text() if file.exists() else None
        )
    except servers.ServerFailedError:
        process.terminate()
        process.wait(servers.PATIENCE)
        raise
    return RayCluster(address=f"ray:{address}", home=home, process=process)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def environment() -> dict[str, str]:
    """For processes that import what tests import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
