"""Every host that a source touched, noted in the index `domains`.

What a run loaded is not fetched again by the next: so its hosts are noted before each batch, and
those that gave nothing when the run ends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import structlog

from fonds.context import Context
from fonds.errors import FondsError
from fonds.runs.state import RunRequest
from fonds.sources.base import SourceInfo
from fonds.stores.blobs import open_blobs

if TYPE_CHECKING:
    from fonds.shards.index import Index
    from fonds.shards.schema import Value

INDEX: Final = "domains"
FRESH: Final = timedelta(days=1)
"""A host that is known is noted again after so long."""

_log: Final = structlog.get_logger(__name__)

P = ParamSpec("P")
S = TypeVar("S", bound=Any)
T = TypeVar("T")

_Run = Callable[Concatenate[S, RunRequest, Context, P], Awaitable[T]]


def notes_hosts(run: _Run[S, P, T]) -> _Run[S, P, T]:
    """Have a run note the hosts it touched when it ends, however it ends."""

    # mypy takes the named arguments of the wrapper for others than those of the run.
    @wraps(run)
    async def noting(
        source: S, request: RunRequest, context: Context, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await run(source, request, context, *args, **kwargs)
        finally:
            await asyncio.to_thread(note_hosts, source.info, context)
            context.fetcher.counts.hosts.pop(source.info.name, None)

    return noting  # type: ignore[return-value]


def note_hosts(
    info: SourceInfo, context: Context, noted: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Write the hosts of a source that are new, or not noted for a day, in one batch.

    Gives those that are noted by now. A store that refuses is no reason for a run to fail.
    """
    asked = frozenset(context.fetcher.counts.hosts.get(info.name, ()))
    if asked <= noted:
        return noted
    from fonds.shards.inbox import put_many  # noqa: PLC0415 — needed only when there are new hosts
    from fonds.shards.index import open_index  # noqa: PLC0415 — as above

    try:
        blobs = context.blobs
        if context.settings.indexes:
            blobs = open_blobs(context.settings.indexes, seams=context.seams)
        index = open_index(blobs, INDEX)
        records = _records(info, asked - noted, context)
        put_many(index, _worth_noting(index, records), at_once=8)
    except FondsError as error:
        _log.warning("hosts_not_noted", source=info.name, error=str(error))
        return noted
    return asked


def _records(info: SourceInfo, hosts: Iterable[str], context: Context) -> list[dict[str, Value]]:
    now = context.seams.clock.now()
    number = re.match(r"\d+", info.version)
    return [
        {
            "domain": host,
            "company_name": info.organisation,
            "scraper_version": int(number[0]) if number else None,
            "updated_at": now,
        }
        for host in sorted(hosts)
    ]


def _worth_noting(index: Index, records: list[dict[str, Value]]) -> list[dict[str, Value]]:
    from fonds.shards.lookup import Lookup  # noqa: PLC0415 — as above

    held = dict(Lookup(index).find_many(str(record["domain"]) for record in records))
    return [record for record in records if not _is_fresh(held.get(str(record["domain"])), record)]


def _is_fresh(held: Mapping[str, Any] | None, record: Mapping[str, Any]) -> bool:
    return held is not None and record["updated_at"] - held["updated_at"] < FRESH
