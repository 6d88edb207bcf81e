"""Where a question goes: an http or https address, taken apart.

Nearly all addresses are written plainly, and are taken apart by one pattern. All others (names in
other scripts, spaces, dots that lead upwards) are left to httpx, which is loaded only then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = r"(?:[a-z0-9-]++\.)*+[a-z][a-z0-9-]*+"
_BYTE: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_TEXT: Final = r"(?:[A-Za-z0-9_.~!$&()*+,;=:@/-]++|%[0-9A-F]{2})*+"
_PLAIN: Final = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_NAME}|{_BYTE}(?:\.{_BYTE}){{3}})"
    rf"(?::(?P<port>[1-9][0-9]{{0,4}}))?(?P<target>/{_TEXT}(?:\?{_TEXT})?)?"
)
# Dots that may lead upwards, and names of other scripts in their disguise.
_UNPLAIN: Final = re.compile(r"/\.|://[^/]*xn--")
_MOST: Final = 65535


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The parts of an address that a connection needs."""

    url: str
    """As it may be written down and compared; it may hold secrets."""
    scheme: str
    host: str
    """As it is looked up: in ASCII."""
    name: str
    """As people write the host."""
    port: int
    target: bytes
    """Path and query, as a server is asked for them."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """What one connection leads to."""
        return self.scheme, self.host, self.port

    @property
    def netloc(self) -> str:
        """As the header `Host` has it: without the port that goes without saying."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def read_address(url: str) -> Address:
    """An address, taken apart; ValueError if nobody can be asked there."""
    found = _PLAIN.fullmatch(url)
    if found is None or _UNPLAIN.search(url):
        return _any(url)
    scheme, host = found["scheme"], found["host"]
    port = int(found["port"] or PORTS[scheme])
    if port > _MOST or (found["port"] and port == PORTS[scheme]):
        return _any(url)
    target = found["target"]
    return Address(
        url=url,
        scheme=scheme,
        host=host,
        name=host,
        port=port,
        target=(target or "/").encode("ascii"),
    )


def _any(url: str) -> Address:
    import httpx  # noqa: PLC0415 — takes a while, and few addresses need it

    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from error
    # httpx lets pass some hosts and ports that others stumble over.
    split = urlsplit(url)
    if parts.scheme not in PORTS or not split.hostname or split.port == 0:
        raise ValueError("it is no http or https address")
    return Address(
        url=str(parts),
        scheme=parts.scheme,
        host=parts.raw_host.decode("ascii"),
        name=parts.host,
        port=parts.port or PORTS[parts.scheme],
        target=parts.raw_path,
    )
