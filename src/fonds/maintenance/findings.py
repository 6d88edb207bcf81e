"""What was looked at, how it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, Self

from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database


class Health(StrEnum):
    """How something is."""

    OK = "ok"
    WARN = "warn"
    """It works, and somebody should look."""
    FAIL = "fail"
    """It does not work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing looked at."""

    check: str
    status: Health
    found: str
    advice: str = ""
    """What to do about it, or what more there could be."""
    group: str = ""


class OpenedLibrary(Protocol):
    """What a library is made of."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    sources: SourceRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class Patient:
    """The library that is looked at, and the clocks as they were at first."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    began: tuple[datetime, float]
    """Of the clock on the wall, and of the one that never goes back."""
    sources: SourceRegistry = field(default_factory=SourceRegistry)

    @classmethod
    def of(cls, library: OpenedLibrary) -> Self:
        """A library that is open already."""
        clock = library.seams.clock
        return cls(
            settings=library.settings,
            seams=library.seams,
            database=library.database,
            blobs=library.blobs,
            sources=library.sources,
            began=(clock.now(), clock.monotonic()),
        )

    @property
    def now(self) -> datetime:
        """The moment of a look."""
        return self.seams.clock.now()


Check = Callable[[Patient], Iterator[Finding]]
"""Looks at something; whatever it raises is a finding, too."""


def fine(check: str, found: str, advice: str = "") -> Finding:
    """It is as it should be."""
    return Finding(check=check, status=Health.OK, found=found, advice=advice)


def doubtful(check: str, found: str, advice: str) -> Finding:
    """It works, and somebody should look."""
    return Finding(check=check, status=Health.WARN, found=found, advice=advice)


def broken(check: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(check=check, status=Health.FAIL, found=found, advice=advice)


def sized(count: int) -> str:
    """Bytes, for people."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min((max(count, 1).bit_length() - 1) // 10, len(units) - 1)
    amount = count / (1 << 10 * power)
    return (
        f"{amount:.3g} {units[power]}"
        if count < 1000 << 10 * power
        else f"{amount:.0f} {units[power]}"
    )
