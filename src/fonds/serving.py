"""Who can reach a server that listens at an address, and whether that is wanted."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from fonds.errors import SettingsError


def require_safe(host: str, *, names: Sequence[str], has_token: bool) -> None:
    """Refuse to be reached from outside if nobody has a token, or under names nobody gave."""
    if not is_exposed(host, names):
        return
    if not has_token:
        raise SettingsError(
            f"{', '.join([host, *names])} can be reached from other machines, and nobody has a "
            "token yet: make one with `fonds token create USER`, or leave --host at 127.0.0.1 and "
            "--allow-host away"
        )
    if is_any(host) and not names:
        raise SettingsError(
            f"{host} stands for every address of this machine: say with --allow-host under which "
            "names clients reach it"
        )


def is_exposed(host: str, names: Sequence[str]) -> bool:
    """Whether others than this machine reach a server, so that each must say who it is."""
    # What has a name outside is reached through another server that listens for it.
    return not is_loopback(host) or bool(names)


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
