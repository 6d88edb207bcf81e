"""No private addresses: the guard judges the very address that is then connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from fonds.errors import ForbiddenAddressError
from fonds.fetch.sockets import Dialer, Sockets, Stream

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port in, addresses out, in the order to try them."""

# Ranges that the standard library's predicates leave out, or did in some versions.
_MORE_FORBIDDEN: Final = (
    ("shared (carrier-grade NAT)", IPv4Network("100.64.0.0/10")),
    ("special-purpose", IPv4Network("192.0.0.0/24")),
    ("6to4 relay", IPv4Network("192.88.99.0/24")),
    ("benchmarking", IPv4Network("198.18.0.0/15")),
    ("local NAT64", IPv6Network("64:ff9b:1::/48")),
    ("discard-only", IPv6Network("100::/64")),
    ("documentation", IPv6Network("3fff::/20")),
    ("site-local", IPv6Network("fec0::/10")),
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = IPv6Network("::/96")
_MOST_ADDRESSES_TRIED: Final = 4


def why_forbidden(address: Address) -> str | None:
    """What kind of non-public address this is, or None if anybody may be asked there."""
    inner = list(_embedded(address)) if isinstance(address, IPv6Address) else []
    if inner:
        reasons = (why_forbidden(each) for each in inner)
        return next((reason for reason in reasons if reason), None)
    checks = {
        "unspecified": address.is_unspecified,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "private": address.is_private,
        "reserved": address.is_reserved,
    }
    named = next((name for name, holds in checks.items() if holds), None)
    return named or next((name for name, net in _MORE_FORBIDDEN if address in net), None)


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """IPv4 addresses that a gateway would be led to by this IPv6 address."""
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo
    elif address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system's resolver orders them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """Connects only to addresses it has judged itself.

    The name is looked up once, all its addresses are judged, and the connection goes to one of
    them by number, so a name that changes its address in between (DNS rebinding) gains nothing.
    TLS and the `Host` header keep the name.
    """

    def __init__(
        self, *, allow_private: bool, resolve: Resolve = resolve, dialer: Dialer | None = None
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._dialer = dialer or Sockets()

    async def connect(self, host: str, port: int, patience: float | None) -> Stream:
        """Connect to the first address of the host that answers."""
        addresses = await self._checked(host, port, patience)
        each = patience / len(addresses) if patience else None
        trouble: OSError | None = None
        for address in addresses:
            try:
                return await self._dialer.connect(address, port, each)
            except OSError as error:
                trouble = trouble or error
        raise trouble or ConnectionError(f"{host} has no address")

    async def _checked(self, host: str, port: int, patience: float | None) -> list[str]:
        addresses = await self._looked_up(host, port, patience)
        if not self._allow_private:
            for address in addresses:
                _judge(host, address)
        return addresses[:_MOST_ADDRESSES_TRIED]

    async def _looked_up(self, host: str, port: int, patience: float | None) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        try:
            return await asyncio.wait_for(self._resolve(host, port), patience)
        except TimeoutError as error:
            raise TimeoutError(f"looking up {host} took too long") from error
        except (OSError, UnicodeError) as error:
            raise ConnectionError(f"{host} cannot be looked up: {error}") from error


def _judge(host: str, address: str) -> None:
    reason = why_forbidden(ip_address(address))
    if reason:
        raise ForbiddenAddressError(
            f"{host} is at {address}, a {reason} address, and is not asked; "
            "set FONDS_ALLOW_PRIVATE=1 if it should be"
        )
