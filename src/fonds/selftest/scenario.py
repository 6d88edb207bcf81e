"""The steps of the selftest, and its upstream: the bundled one and a small website.

Each step does the work of one command, and can be repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import select

from fonds.codes.run import CodeRequest
from fonds.demo.bundle import DATA, FEEDS, FIRST_DAY, LAST_DAY, bundled_sites
from fonds.demo.http import Handler, Request, Response, not_found
from fonds.demo.server import DemoUpstream
from fonds.library import Library
from fonds.runs.state import RunReport, RunRequest, RunStatus
from fonds.settings import Settings
from fonds.shards.compiler import Compiler
from fonds.shards.index import open_index
from fonds.sites.models import CrawlMetadata, WebsiteConfiguration, read_metadata
from fonds.sites.output import METADATA
from fonds.sites.session import CrawlLimits, Plan
from fonds.sites.strategy_manager import advisors_of
from fonds.stores.tables import upload_jobs
from fonds.uploads import states
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.users import ensure_user
from fonds.uploads.worker import UploadWorker

HOST: Final = "reports.example"
WEBSITE: Final = WebsiteConfiguration(
    id="reports", name="The Report Office", base_url=f"https://{HOST}/"
)
_REPORTS: Final = {
    f"/files/report-{number}.pdf": path
    for number, path in enumerate(sorted((DATA / "raw.githubusercontent.com").rglob("*.pdf")), 1)
}
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><title>Reports</title></head>
<body><main><h1>Annual reports</h1><ul>
{}
</ul></main></body></html>
"""


def upstream() -> DemoUpstream:
    """The bundled upstream with the website."""
    site: Handler = _respond
    return DemoUpstream({**bundled_sites(), HOST: site})


def _respond(request: Request) -> Response:
    if request.path == "/":
        links = (
            f'<li><a href="{path}">Report of 202{n} (PDF)</a></li>'
            for n, path in enumerate(_REPORTS)
        )
        return Response(body=_PAGE.format("\n".join(links)).encode(), media_type="text/html")
    if request.path in _REPORTS:
        content = _REPORTS[request.path].read_bytes()
        return Response(body=content, media_type="application/pdf")
    return not_found()


INDEX: Final = "domains"
USER: Final = "selftest"
OUTPUT: Final = "output"
"""The folder for the files of the website."""
OPENING: Final = "open"
"""The first step, which opens or creates the library."""
OVERRIDES: Final[Mapping[str, Any]] = {
    "allow_private": True,
    "rate_factor": 0.0,
    "retry_wait": 0.01,
    "batch_records": 20,
    "embedder": "hashing:64",
}
"""Small batches for more interruptions; no model, no rate limits."""
SETTINGS: Final[Mapping[str, Any]] = {
    **{name: value for name, value in vars(Settings()).items() if name != "home"},
    **OVERRIDES,
}
"""All settings of the library, independent of those of the user."""

_PAPER: Final = DATA / "www.whitehouse.gov/wp-content/uploads/2026/02/SAP-S880.pdf"
_MEMO: Final = """# Memorandum

## Water

Samples that exceed the limit for lead are reported within ten working days.

## Wages

The salary threshold for overtime follows 29 U.S.C. § 213.
"""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The content of the library."""

    feeds: Sequence[Sequence[str]]
    """Groups of sources; those of a group run concurrently."""
    papers: Mapping[str, bytes]
    """Uploads by name."""
    limits: CrawlLimits = field(default_factory=CrawlLimits)
    """Limits of the crawl."""


def corpus_by_name(name: str) -> Corpus:
    """The `whole` bundled upstream, or a `small` part of it."""
    memo = {"memo.md": _MEMO.encode()}
    if name == "small":
        # Sequentially, so that the order of durable operations is always the same.
        limits = CrawlLimits(parallelism=1)
        return Corpus(feeds=[["taxonomy"], ["gao"]], papers=memo, limits=limits)
    return Corpus(feeds=[FEEDS], papers={**memo, "paper.pdf": _PAPER.read_bytes()})


def _feeds(library: Library, corpus: Corpus) -> Iterable[str]:
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    for group in corpus.feeds:
        for report in asyncio.run(library.ingest_all(group, request)):
            yield from _unsuccessful(report)


def _code(library: Library, _corpus: Corpus) -> Iterable[str]:
    report = asyncio.run(library.ingest_code("usc", CodeRequest()))
    yield from _unsuccessful(report.run)


def _unsuccessful(report: RunReport) -> Iterable[str]:
    if report.status is not RunStatus.SUCCESS:
        yield f"{report.source} ended as {report.status}: {report.error_summary}"


def _site(library: Library, corpus: Corpus) -> Iterable[str]:
    metadata = crawl_metadata(library)
    plan = Plan(
        websites=[WEBSITE],
        output=str(library.settings.home / OUTPUT),
        config_path="sites.json",
        advisors=advisors_of(library.settings),
        limits=corpus.limits,
        # A finished crawl is repeated, to retry what failed.
        resume=metadata is not None and metadata.crawl_end_time is None,
    )
    for report in asyncio.run(library.crawl(plan)):
        yield from _unsuccessful(report)


def crawl_metadata(library: Library) -> CrawlMetadata | None:
    """The metadata file of the crawl."""
    path = library.settings.home / OUTPUT / METADATA
    return read_metadata(path.read_bytes(), path=METADATA) if path.exists() else None


def _uploads(library: Library, corpus: Corpus) -> Iterable[str]:
    context, settings, now = library.context, library.settings, library.seams.clock.now()
    with library.database.write() as connection:
        # The ids of uploads depend on that of the user.
        user = ensure_user(connection, USER, now=now, rng=random.Random(USER))  # noqa: S311 — no secret
    for name, data in corpus.papers.items():
        file = UploadRequest(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        job = begin_upload(context, settings, user, file)
        if job.status is states.JobStatus.UPLOADED:
            library.blobs.put(staging_key(job), data)
            complete_upload(context, settings, job)
    return ()


def _worker(library: Library, _corpus: Corpus) -> Iterable[str]:
    with library.worker_resources() as resources:
        UploadWorker(resources, poll=0.01).drain()
    table = upload_jobs.c
    unfinished = select(table.name, table.status).where(table.status != states.JobStatus.COMPLETE)
    with library.database.read() as connection:
        yield from (f"{name} is {status}" for name, status in connection.execute(unfinished))


def _normalize(library: Library, _corpus: Corpus) -> Iterable[str]:
    yield from _unfinished(library.normalize_queued(workers=1))


def _citations(library: Library, _corpus: Corpus) -> Iterable[str]:
    yield from _unfinished(library.extract_citations())


def _vectors(library: Library, _corpus: Corpus) -> Iterable[str]:
    yield from _unfinished(library.embed())


def _unfinished(report: Any) -> Iterable[str]:
    if report.failed or report.waiting or report.given_up:
        yield str(report)


def _index(library: Library, _corpus: Corpus) -> Iterable[str]:
    index = open_index(library.blobs, INDEX)
    # Locks belong to killed processes and are replaced at once.
    compiled = Compiler(index, seams=library.seams, lifetime=timedelta()).run()
    if compiled.busy or compiled.failed or compiled.damaged:
        yield str(compiled)


STEPS: Final[dict[str, Callable[[Library, Corpus], Iterable[str]]]] = {
    "feeds": _feeds,
    "code": _code,
    "site": _site,
    "uploads": _uploads,
    "worker": _worker,
    "normalize": _normalize,
    "citations": _citations,
    "vectors": _vectors,
    "index": _index,
}
"""The steps by name, in order; each yields its errors."""


def steps_from(first: str) -> list[str]:
    """The names of a step and of those after it, without the opening step."""
    names = list(STEPS)
    return names[0 if first == OPENING else names.index(first) :]
