"""Who can reach a server that listens at an address, and whether that is wanted."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from fonds.errors import SettingsError


def require_safe(host: str, *, token: str, names: Sequence[str]) -> None:
    """Refuse to be reached from outside without a token, or under names nobody gave."""
    if is_loopback(host):
        return
    if not token:
        raise SettingsError(
            f"{host} can be reached from other machines: set a token first, as mcp_token in "
            "fonds.toml or as FONDS_MCP_TOKEN, or leave --host at 127.0.0.1"
        )
    if is_any(host) and not names:
        raise SettingsError(
            f"{host} stands for every address of this machine: say with --allow-host under which "
            "names clients reach it"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any(host: str) -> bool:
    """Whether it stands for every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
