"""Over TLS: certificates are checked, and connections are kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fonds.errors import ConnectionFailedError
from fonds.fetch import connections
from fonds.fetch.client import Fetcher
from fonds.fetch.rates import Pace
from fonds.seams import Seams
from fonds.settings import Settings

BODY = b"the text of the law"


def certificate(folder: Path, name: str) -> Path:
    """A certificate that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@dataclass
class Office:
    """A server that speaks TLS, and counts who comes."""

    certificate: Path
    connections: int = 0
    requests: int = 0
    port: int = 0
    _talks: set[asyncio.StreamWriter] = field(default_factory=set)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield f"https://localhost:{self.port}"
        finally:
            server.close()
            for writer in self._talks:
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._talks.add(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n"
                writer.write(head.encode() + BODY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for localhost that we believe."""
    file = certificate(tmp_path, "localhost")
    context = ssl.create_default_context(cafile=str(file))
    monkeypatch.setattr(connections, "_tls", lambda: context)
    return file


async def fetched(office: Office, settings: Settings, folder: Path, count: int = 1) -> list[bytes]:
    async with (
        office.open() as address,
        Fetcher(settings, seams=Seams(), folder=folder) as fetcher,
    ):
        bodies = []
        for number in range(count):
            pace = Pace(per_second=1)
            download = await fetcher.download(f"{address}/{number}", source="s", pace=pace)
            assert download is not None
            bodies.append(download.file.read_bytes())
        return bodies


def test_one_connection_serves_several_requests(
    trusted: Path, settings: Settings, folder: Path
) -> None:
    office = Office(trusted)
    assert asyncio.run(fetched(office, settings, folder, count=3)) == [BODY] * 3
    assert (office.connections, office.requests) == (1, 3)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, settings: Settings, folder: Path
) -> None:
    office = Office(certificate(tmp_path, "localhost"))
    with pytest.raises(ConnectionFailedError, match="certificate"):
        asyncio.run(fetched(office, replace(settings, retries=1), folder))
    assert office.requests == 0


def test_a_certificate_of_another_host_is_refused(
    tmp_path: Path, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, "elsewhere.example")
    context = ssl.create_default_context(cafile=str(file))
    monkeypatch.setattr(connections, "_tls", lambda: context)
    office = Office(file)
    with pytest.raises(ConnectionFailedError, match="localhost"):
        asyncio.run(fetched(office, replace(settings, retries=1), folder))
    assert office.requests == 0
