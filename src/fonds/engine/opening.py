"""Engines by their address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fonds.engine.base import MEMORY_MIB, SECONDS, Engine
from fonds.engine.local import LocalEngine
from fonds.errors import SettingsError

LOCAL: Final = "local"
_RAY: Final = "ray"
_FORMS: Final = "local, ray (the cluster this machine belongs to) or ray:HOST:PORT"


def open_engine(
    address: str,
    *,
    workers: int | None = None,
    memory_mib: int = MEMORY_MIB,
    seconds: float = SECONDS,
    preload: Sequence[str] = (),
    should_recycle: str = "",
    is_isolated: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Engine:
    """The engine of an address, with limits for each item.

    `is_isolated` is for items that are files of others; their results are plain data. `variables`
    are added to the environment of the processes.
    `workers` is for this machine, whose processors it counts otherwise; a cluster uses what it has.
    """
    limits: dict[str, Any] = {
        "memory_mib": memory_mib,
        "seconds": seconds,
        "preload": preload,
        "should_recycle": should_recycle,
        "is_isolated": is_isolated,
        "variables": variables or {},
    }
    kind, _, rest = address.partition(":")
    if address == LOCAL:
        return LocalEngine(**limits) if workers is None else LocalEngine(workers=workers, **limits)
    if kind != _RAY or rest.startswith("/") or address == "ray:":
        raise SettingsError(f"the engine {address!r} is not one of: {_FORMS}")
    from fonds.engine.ray import RayEngine  # noqa: PLC0415 — ray is optional

    return RayEngine(address=rest, **limits) if rest else RayEngine(**limits)
