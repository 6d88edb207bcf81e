"""What a run works with, handed to it whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fonds.chunk.splitter import Chunker
from fonds.fetch.archive import Archive
from fonds.runs.locks import FileClaim, LeaseClaim
from fonds.runs.state import Counts, Run
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sources.base import Source
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database

Progress = Callable[[str, Counts], None]
"""Told (source, counts) as a run goes on."""


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Everything outside the run itself."""

    settings: Settings
    seams: Seams
    database: Database
    blobs: Blobs
    archive: Archive
    chunker: Chunker
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class Job:
    """One source, one run, one workplace."""

    source: Source
    run: Run
    claim: FileClaim | LeaseClaim
    workplace: Workplace
