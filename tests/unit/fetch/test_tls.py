"""Over TLS: certificates are checked, and connections are reused."""

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
from fonds.fetch.client import Fetcher
from fonds.fetch.rates import Pace
from fonds.fetch.transport import HttpTransport
from fonds.seams import Seams
from fonds.settings import Settings

BODY = b"the text of the law"


def certificate(folder: Path, name: str) -> Path:
    """A certificate that signs itself, with its key."""
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
class TlsServer:
    """A server that speaks TLS, and counts connections and requests."""

    certificate: Path
    connections: int = 0
    requests: int = 0
    port: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

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
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n"
                writer.write(head.encode() + BODY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def trusting(file: Path) -> HttpTransport:
    """A transport that trusts this certificate."""
    return HttpTransport(allow_private=True, tls=ssl.create_default_context(cafile=str(file)))


async def fetched(
    server: TlsServer,
    settings: Settings,
    folder: Path,
    transport: HttpTransport | None = None,
    count: int = 1,
) -> list[bytes]:
    async with (
        server.open() as address,
        Fetcher(settings, seams=Seams(), folder=folder, transport=transport) as fetcher,
    ):
        bodies = []
        for number in range(count):
            pace = Pace(per_second=1)
            download = await fetcher.download(f"{address}/{number}", source="s", pace=pace)
            assert download is not None
            bodies.append(download.file.read_bytes())
        return bodies


def test_one_connection_serves_several_requests(
    tmp_path: Path, settings: Settings, folder: Path
) -> None:
    server = TlsServer(certificate(tmp_path, "localhost"))
    bodies = asyncio.run(fetched(server, settings, folder, trusting(server.certificate), count=3))
    assert bodies == [BODY] * 3
    assert (server.connections, server.requests) == (1, 3)


def test_a_certificate_that_no_authority_signed_is_refused(
    tmp_path: Path, settings: Settings, folder: Path
) -> None:
    server = TlsServer(certificate(tmp_path, "localhost"))
    with pytest.raises(ConnectionFailedError, match="certificate"):
        asyncio.run(fetched(server, replace(settings, retries=1), folder))
    assert server.requests == 0


def test_a_certificate_of_another_host_is_refused(
    tmp_path: Path, settings: Settings, folder: Path
) -> None:
    server = TlsServer(certificate(tmp_path, "elsewhere.example"))
    once = replace(settings, retries=1)
    with pytest.raises(ConnectionFailedError, match="localhost"):
        asyncio.run(fetched(server, once, folder, trusting(server.certificate)))
    assert server.requests == 0


def test_certificates_are_checked_for_the_name_and_not_for_the_address(
    tmp_path: Path, settings: Settings, folder: Path
) -> None:
    server = TlsServer(certificate(tmp_path, "a.example"))
    context = ssl.create_default_context(cafile=str(server.certificate))

    async def look_up(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    async def run() -> bytes:
        transport = HttpTransport(allow_private=True, look_up=look_up, tls=context)
        async with (
            server.open(),
            Fetcher(settings, seams=Seams(), folder=folder, transport=transport) as fetcher,
        ):
            url = f"https://a.example:{server.port}/"
            download = await fetcher.download(url, source="s", pace=Pace(per_second=1))
            assert download is not None
            return download.read()

    assert asyncio.run(run()) == BODY
