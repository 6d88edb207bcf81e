"""Stand-ins: which address is really asked when a URL names an upstream."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit


def map_url(url: str, hosts: Mapping[str, str]) -> str:
    """The address to ask instead: the stand-in's base, then the path and query of the URL.

    A key is a host name, or `name:port` where one port of a host has its own stand-in.
    """
    if not hosts:
        return url
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    base = hosts.get(f"{name}:{parts.port}") or hosts.get(name)
    if base is None:
        return url
    stand_in = urlsplit(base)
    path = stand_in.path.rstrip("/") + (parts.path or "/")
    return urlunsplit((stand_in.scheme, stand_in.netloc, path, parts.query, ""))


def is_this_machine(url: str) -> bool:
    """Whether a mapped address names the loopback interface, judged without any look-up."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
