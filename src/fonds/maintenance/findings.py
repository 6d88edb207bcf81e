"""The findings of checks, and the library that is checked."""

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
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    """It works, but needs attention."""
    FAIL = "fail"
    """It does not work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check, with advice."""

    check: str
    status: Health
    found: str
    advice: str = ""
    """The next step, or an improvement that is possible."""
    group: str = ""


class OpenedLibrary(Protocol):
    """The parts of an open library."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    sources: SourceRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class MaintenanceTarget:
    """The library that is checked or pruned, and the clocks when that began."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    began: tuple[datetime, float]
    """The times of the system clock and of the monotonic clock."""
    sources: SourceRegistry = field(default_factory=SourceRegistry)

    @classmethod
    def of(cls, library: OpenedLibrary) -> Self:
        """The target for an open library."""
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
        """The current time."""
        return self.seams.clock.now()


Check = Callable[[MaintenanceTarget], Iterator[Finding]]
"""Checks one thing; an error that it raises becomes a finding."""


def ok(check: str, summary: str, advice: str = "") -> Finding:
    """A finding that all is in order."""
    return Finding(check=check, status=Health.OK, found=summary, advice=advice)


def warning(check: str, summary: str, advice: str) -> Finding:
    """A finding that needs attention."""
    return Finding(check=check, status=Health.WARN, found=summary, advice=advice)


def failure(check: str, summary: str, advice: str) -> Finding:
    """A finding that something does not work."""
    return Finding(check=check, status=Health.FAIL, found=summary, advice=advice)


def sized(count: int) -> str:
    """A number of bytes in a readable unit."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min((max(count, 1).bit_length() - 1) // 10, len(units) - 1)
    amount = count / (1 << 10 * power)
    return (
        f"{amount:.3g} {units[power]}"
        if count < 1000 << 10 * power
        else f"{amount:.0f} {units[power]}"
    )
