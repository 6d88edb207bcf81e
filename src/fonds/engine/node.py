"""What a node of a cluster does: hand items to a process of its own, under their limits."""

from __future__ import annotations

import pickle
from functools import cache
from typing import NamedTuple

from fonds.engine.local import LocalEngine
from fonds.errors import FondsError


class Limits(NamedTuple):
    """What an item may use; the fields of a `LocalEngine`."""

    memory_mib: int
    seconds: float
    fresh: tuple[str, ...]
    worn: str


def answer(limits: Limits, parcel: bytes) -> tuple[bytes | None, FondsError | None]:
    """The result of a function for an item, both packed; or what went wrong."""
    (outcome,) = _engine(limits).run(open_parcel, [parcel])
    return outcome.result, outcome.error


def open_parcel(parcel: bytes) -> bytes:
    """Do what a parcel asks for; nothing in it is looked at before."""
    function, item = pickle.loads(parcel)  # noqa: S301 — packed by the engine's owner
    return pickle.dumps(function(item))


@cache
def _engine(limits: Limits) -> LocalEngine:
    """One for each kind of work; it stays for the next item, and ends with this process."""
    return LocalEngine(workers=1, **limits._asdict())
