"""The address of the client that sent a request, and the traces of proxies in between.

A proxy that the setting `trusted_proxies` names is trusted to append the address it was reached
from to `X-Forwarded-For` or `Forwarded`. Entries before that were sent by the client itself and
may be invented: the last one that is not of a trusted proxy counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from starlette.requests import HTTPConnection

from fonds.errors import SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PROXY_HEADERS: Final = frozenset({"forwarded", "via", "x-real-ip"})
PROXY_PREFIX: Final = "x-forwarded-"
IPV6_PREFIX_LENGTH: Final = 64
"""One client usually has a whole network of this size."""

_FOR: Final = re.compile(r'(?:^|;)\s*for\s*=\s*("[^"]*"|[^;\s]*)', re.IGNORECASE)
_PORT: Final = re.compile(r"^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$")


def parse_networks(names: Sequence[str]) -> tuple[Network, ...]:
    """The networks of the setting `trusted_proxies`; an address is a network of one."""
    try:
        return tuple(ip_network(name) for name in names)
    except ValueError as error:
        raise SettingsError(
            f"FONDS_TRUSTED_PROXIES is wrong: {error}; list addresses and networks such as "
            "127.0.0.1,10.0.0.0/8"
        ) from error


def parse_address(text: str) -> Address | None:
    """An address, with or without a port; None if it is not one."""
    text = text.strip().strip('"').strip()
    if match := _PORT.match(text):
        text = match[1] or match[2] or ""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def proxy_trace(request: HTTPConnection) -> str | None:
    """The header, or the version of HTTP, that shows that a request came through a proxy."""
    for name in request.headers.keys():  # noqa: SIM118 — its iterator has no type
        if name in PROXY_HEADERS or name.startswith(PROXY_PREFIX):
            return name
    # Programs and browsers speak 1.1; nginx speaks 1.0 unless configured otherwise.
    return "HTTP/1.0" if request.scope.get("http_version") == "1.0" else None


class ClientAddresses:
    """Finds the addresses of clients behind trusted proxies."""

    def __init__(self, trusted: Sequence[Network]) -> None:
        self._trusted = trusted

    def of(self, request: HTTPConnection) -> str:
        """The text by which limits count a client; IPv6 clients are counted by network."""
        peer = parse_address(request.client.host) if request.client else None
        if peer is None:
            return request.client.host if request.client else ""
        address = self._forwarded(request) if self._is_trusted(peer) else None
        return _limit_key(address or peer)

    def are_hidden(self, request: HTTPConnection) -> bool:
        """True if a proxy forwarded a request without an address of its client to trust."""
        if proxy_trace(request) is None:
            return False
        peer = parse_address(request.client.host) if request.client else None
        return peer is None or not self._is_trusted(peer) or self._forwarded(request) is None

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)

    def _forwarded(self, request: HTTPConnection) -> Address | None:
        headers = request.headers
        lists = [
            [
                entry.strip()
                for value in headers.getlist("x-forwarded-for")
                for entry in _split(value)
            ],
            [_for(entry) for value in headers.getlist("forwarded") for entry in _split(value)],
        ]
        clients = {self._last_untrusted(entries) for entries in lists if entries}
        # A proxy sets one of the headers and passes the other on as the client sent it.
        return clients.pop() if len(clients) == 1 else None

    def _last_untrusted(self, entries: Iterable[str]) -> Address | None:
        address = None
        for entry in reversed(list(entries)):
            address = parse_address(entry)
            if address is None or not self._is_trusted(address):
                break
        return address


def _split(value: str) -> list[str]:
    return [entry for entry in value.split(",") if entry.strip()]


def _for(entry: str) -> str:
    match = _FOR.search(entry)
    return match[1] if match else ""


def _limit_key(address: Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((int(address), IPV6_PREFIX_LENGTH), strict=False))
