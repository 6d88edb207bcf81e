"""Addresses as people give them, fit to be shown."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown(address: str) -> str:
    """An address of a store or database without what may be a secret: password and options."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address, allow_fragments=False)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{address.partition('://')[0]}://…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
