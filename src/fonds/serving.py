"""Servers: checks before one listens at an address that other machines can reach, its websites."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import FondsError, SettingsError
from fonds.library import Library

LINK_MINUTES: Final = 10
"""How long after its start a server accepts the link that it prints for logging in."""

WEBSITE_SECONDS: Final = 10.0
"""Between looks for websites that another process has crawled."""


@contextmanager
def following_websites(library: Library, seconds: float = WEBSITE_SECONDS) -> Iterator[None]:
    """Keep the websites of a library up to date while a server runs."""
    stop = Event()

    def follow() -> None:
        while not stop.wait(seconds):
            with suppress(SQLAlchemyError, FondsError):  # the next look may succeed
                library.reload_websites()

    thread = Thread(target=follow, name="fonds-websites", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=1)


def require_safe(host: str, *, names: Sequence[str], has_token: bool) -> None:
    """Raise if other machines can reach a server that has no token, or no host names."""
    if not is_exposed(host, names):
        return
    if not has_token:
        raise SettingsError(
            f"{', '.join([host, *names])} can be reached from other machines, but there is no "
            "token: create one with `fonds token create USER`, or listen at 127.0.0.1 without "
            "--allow-host"
        )
    if is_any(host) and not names:
        raise SettingsError(
            f"{host} is every address of this machine: set --allow-host to the names under which "
            "clients reach it"
        )


def is_exposed(host: str, names: Sequence[str]) -> bool:
    """Whether other machines can reach a server, so that clients must authenticate."""
    # A server with a public name is reached through a proxy.
    return not is_loopback(host) or bool(names)


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any(host: str) -> bool:
    """Whether an address means all addresses of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
