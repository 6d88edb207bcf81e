"""What operators look at beside sources and runs: uploads, websites, and indexes on the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, func, select

from fonds import ids
from fonds.errors import FondsError
from fonds.library import Library
from fonds.runs.overview import latest_runs
from fonds.shards.compiler import LIFETIME
from fonds.shards.index import Index, ShardListing, open_index, read_description, version_of
from fonds.sites.tables import websites
from fonds.sites.website import summaries
from fonds.stores.blobs import BlobInfo, Blobs, open_blobs
from fonds.stores.tables import upload_jobs
from fonds.uploads.states import ACTIVE
from fonds.uploads.statistics import UploadStatistics, upload_statistics

SHOWN_JOBS: Final = 20
MOST_OBJECTS: Final = 100_000
"""Of indexes, looked at for one page."""
_INDEXES: Final = "indexes/"

_job: Final = upload_jobs.c


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingUpload:
    """An upload under way."""

    job_id: UUID
    document_id: UUID
    name: str
    status: str
    arrived_at: datetime
    seconds: float
    """Since its file came."""
    retry_count: int
    next_attempt_at: datetime | None
    last_error: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadWork:
    """How uploads are doing, and which have waited longest."""

    figures: UploadStatistics
    waiting: tuple[WaitingUpload, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteHealth:
    """A website: what its last crawl saw, and how its strategy fares."""

    id: str
    name: str
    base_url: str
    enabled: bool
    source: str
    pages: int
    pdfs: int
    failed: int
    """PDFs that could not be had."""
    strategy: str | None
    """Its type; None before the first crawl."""
    state: str | None
    best: float | None
    """The best score it had on a page, up to 1."""
    last_score: float | None
    last_status: str | None
    """Of its last run."""
    last_run_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldLock:
    """A lock on a shard."""

    shard: str
    taken_at: datetime
    is_stale: bool
    """Whether its time is over, by our clock; the next compiler takes it over."""


@dataclass(kw_only=True, slots=True)
class IndexHealth:
    """An index on the object store."""

    name: str
    records: int = 0
    """In the shards, as of the last compile."""
    shards: int = 0
    bytes: int = 0
    waiting: int = 0
    """Records in the inbox."""
    compiled_at: datetime | None = None
    locks: list[HeldLock] = field(default_factory=list)
    problem: str | None = None
    """Why it cannot be read, if so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexes:
    """All indexes, as far as was looked."""

    indexes: tuple[IndexHealth, ...]
    is_complete: bool
    """False where there are so many objects that not all were counted."""


def upload_work(connection: Connection, now: datetime) -> UploadWork:
    """How uploads are doing."""
    began = func.coalesce(_job.arrived_at, _job.created_at).label("began")
    query = (
        select(
            _job.job_id,
            _job.document_id,
            _job.name,
            _job.status,
            _job.retry_count,
            _job.next_attempt_at,
            _job.last_error,
            began,
        )
        .where(_job.status.in_([status.value for status in ACTIVE]))
        .order_by(began, _job.job_id)
        .limit(SHOWN_JOBS)
    )
    waiting = [
        WaitingUpload(
            job_id=row.job_id,
            document_id=row.document_id,
            name=row.name,
            status=row.status,
            arrived_at=row.began,
            seconds=max(0.0, (now - row.began).total_seconds()),
            retry_count=row.retry_count,
            next_attempt_at=row.next_attempt_at,
            last_error=row.last_error,
        )
        for row in connection.execute(query)
    ]
    return UploadWork(figures=upload_statistics(connection, now), waiting=tuple(waiting))


def site_health(library: Library) -> list[SiteHealth]:
    """All websites."""
    known = summaries(library.database)
    with library.database.read() as connection:
        held = connection.execute(select(websites.c.id, websites.c.standing)).all()
        sources = [ids.site_source(each["id"]) for each in known]
        runs = {row.source: row for row in latest_runs(connection, sources, 1)}
    standing = {row.id: row.standing or {} for row in held}
    return [_health(each, standing.get(each["id"], {}), runs) for each in known]


def _health(
    told: Mapping[str, Any], standing: Mapping[str, Any], runs: Mapping[str, Any]
) -> SiteHealth:
    source = ids.site_source(told["id"])
    last = runs.get(source)
    scores = standing.get("scores") or ()
    return SiteHealth(
        source=source,
        strategy=standing.get("strategy", {}).get("strategy_type"),
        state=standing.get("state"),
        best=standing.get("best"),
        last_score=scores[-1] if scores else None,
        last_status=last.status if last else None,
        last_run_at=last.started_at if last else None,
        **{
            name: told[name]
            for name in ("id", "name", "base_url", "enabled", "pages", "pdfs", "failed")
        },
    )


def index_health(library: Library) -> Indexes:
    """All indexes, by one listing of the store and the data package of each."""
    blobs = open_blobs(library.settings.indexes_url, seams=library.seams)
    objects = list(islice(blobs.list(_INDEXES), MOST_OBJECTS + 1))
    by_index: dict[str, list[BlobInfo]] = {}
    for info in objects[:MOST_OBJECTS]:
        by_index.setdefault(info.key.split("/")[1], []).append(info)
    now = library.seams.clock.now()
    return Indexes(
        indexes=tuple(_measured(blobs, name, by_index[name], now) for name in sorted(by_index)),
        is_complete=len(objects) <= MOST_OBJECTS,
    )


def _measured(blobs: Blobs, name: str, objects: list[BlobInfo], now: datetime) -> IndexHealth:
    found = IndexHealth(name=name)
    try:
        index = open_index(blobs, name)
        described = version_of(blobs, index.layout.descriptor)
        entries = read_description(described.data).entries if described else {}
    except FondsError as error:
        found.problem = str(error)
        return found
    listing = ShardListing()
    for info in objects:
        if info.key.startswith(index.layout.shards):
            listing.add(index, info)
        elif info.size and index.layout.key_of(info.key) is not None:
            found.waiting += 1
    shards = [info for info in listing.shards.values() if info.size]
    found.records = sum(entry.records for entry in dict(entries).values())
    found.shards, found.bytes = len(shards), sum(info.size for info in shards)
    found.compiled_at = max((info.modified for info in shards), default=None)
    found.locks = [_lock(index, info, now) for info in listing.locks]
    return found


def _lock(index: Index, info: BlobInfo, now: datetime) -> HeldLock:
    shard = info.key.removeprefix(index.layout.shards).removesuffix(".lock")
    stale = info.modified + LIFETIME < now
    return HeldLock(shard=shard, taken_at=info.modified, is_stale=stale)
