"""Hosts that sources contacted, as records of the index `domains`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import structlog

from fonds.context import Context
from fonds.errors import FondsError
from fonds.shards.compiler import Compiler
from fonds.shards.inbox import put_many
from fonds.shards.index import Index, open_index
from fonds.shards.lookup import Lookup
from fonds.shards.schema import Value
from fonds.sources.base import SourceInfo
from fonds.stores.blobs import open_blobs

INDEX: Final = "domains"
INTERVAL: Final = timedelta(days=1)
"""How often the same host is recorded."""

_log: Final = structlog.get_logger(__name__)


def record_hosts(
    info: SourceInfo, context: Context, recorded: frozenset[str] = frozenset()
) -> frozenset[str]:
    """Record hosts of a source that are new, or that were recorded more than a day ago.

    Returns those that are recorded; an error of the store does not fail the run.
    """
    contacted = frozenset(context.fetcher.counts.hosts.get(info.name, ()))
    if contacted <= recorded:
        return recorded
    try:
        index = _open_index(context)
        records = _records(info, contacted - recorded, context)
        put_many(index, _due(index, records), concurrency=8)
    except FondsError as error:
        _log.warning("hosts_not_noted", source=info.name, error=str(error))
        return recorded
    return contacted


def compile_hosts(context: Context) -> None:
    """Move recorded hosts from the inbox into their shards; errors of the store are logged."""
    try:
        compiled = Compiler(_open_index(context), seams=context.seams).run()
    except FondsError as error:
        _log.warning("hosts_not_compiled", error=str(error))
    else:
        _log.info("hosts_compiled", records=compiled.records, shards=compiled.shards)


def _open_index(context: Context) -> Index:
    blobs = context.blobs
    if context.settings.indexes:
        blobs = open_blobs(context.settings.indexes, seams=context.seams)
    return open_index(blobs, INDEX)


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


def _due(index: Index, records: list[dict[str, Value]]) -> list[dict[str, Value]]:
    stored = dict(Lookup(index).find_many(str(record["domain"]) for record in records))
    return [record for record in records if _is_due(stored.get(str(record["domain"])), record)]


def _is_due(stored: Mapping[str, Any] | None, record: Mapping[str, Any]) -> bool:
    return stored is None or record["updated_at"] - stored["updated_at"] >= INTERVAL
