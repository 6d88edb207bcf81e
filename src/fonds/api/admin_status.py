"""Status of uploads, websites and indexes, for operators."""

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

MAX_WAITING: Final = 20
MAX_OBJECTS: Final = 100_000
"""Objects of indexes listed for one page."""
_INDEXES: Final = "indexes/"

_job: Final = upload_jobs.c


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingUpload:
    """An upload in progress."""

    job_id: UUID
    document_id: UUID
    name: str
    status: str
    arrived_at: datetime
    seconds: float
    """Since its file arrived."""
    retry_count: int
    next_attempt_at: datetime | None
    last_error: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadWork:
    """Statistics of uploads, and those that have waited longest."""

    statistics: UploadStatistics
    waiting: tuple[WaitingUpload, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteHealth:
    """A website: the results of its last crawl, and the state of its strategy."""

    id: str
    name: str
    base_url: str
    enabled: bool
    source: str
    pages: int
    pdfs: int
    failed: int
    """PDFs that could not be downloaded."""
    strategy: str | None
    """The type of its strategy; None before the first crawl."""
    state: str | None
    best: float | None
    """The best score of the strategy on a page, up to 1."""
    last_score: float | None
    last_status: str | None
    """The status of its last run."""
    last_run_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LockHealth:
    """A lock on a shard."""

    shard: str
    taken_at: datetime
    is_stale: bool
    """Whether it has expired; the next compiler takes it over."""


@dataclass(kw_only=True, slots=True)
class IndexHealth:
    """An index on the object store."""

    name: str
    records: int = 0
    """Records in the shards at the last compilation."""
    shards: int = 0
    bytes: int = 0
    waiting: int = 0
    """Records in the inbox."""
    compiled_at: datetime | None = None
    locks: list[LockHealth] = field(default_factory=list)
    problem: str | None = None
    """Why the index cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexes:
    """All indexes."""

    indexes: tuple[IndexHealth, ...]
    is_complete: bool
    """False if there are too many objects to count all."""


def upload_work(connection: Connection, now: datetime) -> UploadWork:
    """Query the statistics of uploads and the oldest in progress."""
    started = func.coalesce(_job.arrived_at, _job.created_at).label("started")
    query = (
        select(
            _job.job_id,
            _job.document_id,
            _job.name,
            _job.status,
            _job.retry_count,
            _job.next_attempt_at,
            _job.last_error,
            started,
        )
        .where(_job.status.in_([status.value for status in ACTIVE]))
        .order_by(started, _job.job_id)
        .limit(MAX_WAITING)
    )
    waiting = [
        WaitingUpload(
            job_id=row.job_id,
            document_id=row.document_id,
            name=row.name,
            status=row.status,
            arrived_at=row.started,
            seconds=max(0.0, (now - row.started).total_seconds()),
            retry_count=row.retry_count,
            next_attempt_at=row.next_attempt_at,
            last_error=row.last_error,
        )
        for row in connection.execute(query)
    ]
    return UploadWork(statistics=upload_statistics(connection, now), waiting=tuple(waiting))


def site_health(library: Library) -> list[SiteHealth]:
    """Query all websites."""
    sites = summaries(library.database)
    with library.database.read() as connection:
        rows = connection.execute(select(websites.c.id, websites.c.standing)).all()
        sources = [ids.site_source(site["id"]) for site in sites]
        runs = {row.source: row for row in latest_runs(connection, sources, 1)}
    health = {row.id: row.standing or {} for row in rows}
    return [_site_health(site, health.get(site["id"], {}), runs) for site in sites]


def _site_health(
    site: Mapping[str, Any], health: Mapping[str, Any], runs: Mapping[str, Any]
) -> SiteHealth:
    source = ids.site_source(site["id"])
    last = runs.get(source)
    scores = health.get("scores") or ()
    return SiteHealth(
        source=source,
        strategy=health.get("strategy", {}).get("strategy_type"),
        state=health.get("state"),
        best=health.get("best"),
        last_score=scores[-1] if scores else None,
        last_status=last.status if last else None,
        last_run_at=last.started_at if last else None,
        **{
            name: site[name]
            for name in ("id", "name", "base_url", "enabled", "pages", "pdfs", "failed")
        },
    )


def index_health(library: Library) -> Indexes:
    """Read all indexes with one listing of the store and the description of each."""
    blobs = open_blobs(library.settings.indexes_url, seams=library.seams)
    objects = list(islice(blobs.list(_INDEXES), MAX_OBJECTS + 1))
    by_index: dict[str, list[BlobInfo]] = {}
    for info in objects[:MAX_OBJECTS]:
        by_index.setdefault(info.key.split("/")[1], []).append(info)
    now = library.seams.clock.now()
    return Indexes(
        indexes=tuple(_index_health(blobs, name, by_index[name], now) for name in sorted(by_index)),
        is_complete=len(objects) <= MAX_OBJECTS,
    )


def _index_health(blobs: Blobs, name: str, objects: list[BlobInfo], now: datetime) -> IndexHealth:
    health = IndexHealth(name=name)
    try:
        index = open_index(blobs, name)
        description = version_of(blobs, index.layout.descriptor)
        entries = read_description(description.data).entries if description else {}
    except FondsError as error:
        health.problem = str(error)
        return health
    listing = ShardListing()
    for info in objects:
        if info.key.startswith(index.layout.shards):
            listing.add(index, info)
        elif info.size and index.layout.key_of(info.key) is not None:
            health.waiting += 1
    shards = [info for info in listing.shards.values() if info.size]
    health.records = sum(entry.records for entry in dict(entries).values())
    health.shards, health.bytes = len(shards), sum(info.size for info in shards)
    health.compiled_at = max((info.modified for info in shards), default=None)
    health.locks = [_lock(index, info, now) for info in listing.locks]
    return health


def _lock(index: Index, info: BlobInfo, now: datetime) -> LockHealth:
    shard = info.key.removeprefix(index.layout.shards).removesuffix(".lock")
    stale = info.modified + LIFETIME < now
    return LockHealth(shard=shard, taken_at=info.modified, is_stale=stale)
