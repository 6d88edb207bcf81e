"""How each kind of source is run and audited: feeds, codes and websites."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from fonds.codes.run import CodeReport, audit_code, run_code
from fonds.context import Context
from fonds.pipeline import run_source
from fonds.runs.audit import Audit, AuditRange, audit_source
from fonds.runs.state import RunReport, RunRequest
from fonds.sources.base import Registered, Source
from fonds.sources.jurisdiction import JurisdictionAdapter
from fonds.sources.registry import SourceRegistry


class Runner(Protocol):
    """Runs one source, and compares it with its publisher."""

    async def run(self, request: RunRequest, context: Context) -> RunReport:
        """Bring the source up to date, or fill the range of the request."""
        ...

    async def audit(self, dates: AuditRange, context: Context) -> Audit:
        """Compare what the publisher lists with the documents in the library."""
        ...


def runner_of(source: Registered, registry: SourceRegistry) -> Runner:
    """The runner for a source, by its kind."""
    if source.info.name in registry.websites:
        from fonds.website_runner import WebsiteRunner  # noqa: PLC0415 — takes 140 ms

        return WebsiteRunner(source.info.name)
    if isinstance(source, JurisdictionAdapter):
        return CodeRunner(source)
    assert isinstance(source, Source), f"{source.info.name} is neither a feed nor a code"
    return FeedRunner(source)


@dataclass(frozen=True)
class FeedRunner:
    """Runs a feed, which lists its documents by date or number."""

    feed: Source

    async def run(self, request: RunRequest, context: Context) -> RunReport:
        """Discover, fetch, parse and load."""
        return await run_source(self.feed, request, context)

    async def audit(self, dates: AuditRange, context: Context) -> Audit:
        """Count the publisher's documents in another way than runs do."""
        return await audit_source(self.feed, context, dates)


@dataclass(frozen=True)
class CodeRunner:
    """Runs a code, which is planned as a tree and executed unit by unit."""

    code: JurisdictionAdapter

    async def run(self, request: RunRequest, context: Context) -> RunReport:
        """Ingest the edition that the options of the request name, or the newest."""
        return (await self.run_units(request, context)).run

    async def run_units(self, request: RunRequest, context: Context) -> CodeReport:
        """As `run`, with a report on each unit."""
        return await run_code(self.code, request, context)

    async def audit(self, dates: AuditRange, context: Context) -> Audit:  # noqa: ARG002 — editions have no range
        """Look for every planned section of every edition."""
        return await asyncio.to_thread(audit_code, self.code, context)
