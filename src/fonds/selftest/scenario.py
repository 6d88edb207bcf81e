"""What is done to a library, step by step, and has to come out the same in the end.

Each step is what one command does, and can be repeated.

A website with a handful of PDFs, served beside the bundled upstream.
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

from fonds.codes.budget import Budget
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
from fonds.uploads.worker import BaseWorker

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
    """The bundled upstream, and the website."""
    site: Handler = _answer
    return DemoUpstream({**bundled_sites(), HOST: site})


def _answer(request: Request) -> Response:
    if request.path == "/":
        links = (
            f'<li><a href="{path}">Report of 202{n} (PDF)</a></li>'
            for n, path in enumerate(_REPORTS)
        )
        return Response(body=_PAGE.format("\n".join(links)).encode(), media_type="text/html")
    if request.path in _REPORTS:
        body = _REPORTS[request.path].read_bytes()
        return Response(body=body, media_type="application/pdf")
    return not_found()


INDEX: Final = "domains"
USER: Final = "selftest"
OUTPUT: Final = "output"
"""The folder for the files of the website."""
OPENING: Final = "open"
"""The step before all others: the library is opened, and made if there is none."""
MEMORY_MIB: Final = 8192
"""Room enough for a code to be worked on in the process that is to be killed."""
CHOSEN: Final[Mapping[str, Any]] = {
    "allow_private": True,
    "rate_factor": 0.0,
    "retry_wait": 0.01,
    "batch_records": 20,
    "embedder": "hashing:64",
}
"""Small batches, so that there is much to interrupt; no model, no politeness."""
SETTINGS: Final[Mapping[str, Any]] = {
    **{name: value for name, value in vars(Settings()).items() if name != "home"},
    **CHOSEN,
}
"""Of the library: all of them, for whatever the user has set is about another."""

_PAPER: Final = DATA / "www.whitehouse.gov/wp-content/uploads/2026/02/SAP-S880.pdf"
_MEMO: Final = """# Memorandum

## Water

Samples that exceed the limit for lead are reported within ten working days.

## Wages

The salary threshold for overtime follows 29 U.S.C. § 213.
"""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is taken in."""

    feeds: Sequence[Sequence[str]]
    """Groups of sources; those of a group run side by side."""
    papers: Mapping[str, bytes]
    """Uploads, by their names."""
    limits: CrawlLimits = field(default_factory=CrawlLimits)
    """Of what is crawled."""


def corpus_named(name: str) -> Corpus:
    """The `whole` bundled upstream, or a `small` part of it."""
    memo = {"memo.md": _MEMO.encode()}
    if name == "small":
        # One after the other, so that its durable operations come in the same order each time.
        limits = CrawlLimits(parallelism=1)
        return Corpus(feeds=[["taxonomy"], ["gao"]], papers=memo, limits=limits)
    return Corpus(feeds=[FEEDS], papers={**memo, "paper.pdf": _PAPER.read_bytes()})


def _feeds(library: Library, corpus: Corpus) -> Iterable[str]:
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    for group in corpus.feeds:
        for report in asyncio.run(library.ingest_all(group, request)):
            yield from _unsuccessful(report)


def _code(library: Library, _corpus: Corpus) -> Iterable[str]:
    request = CodeRequest(budget=Budget(memory_mib=MEMORY_MIB))
    report = asyncio.run(library.ingest_code("usc", request))
    yield from _unsuccessful(report.run)


def _unsuccessful(report: RunReport) -> Iterable[str]:
    if report.status is not RunStatus.SUCCESS:
        yield f"{report.source} ended as {report.status}: {report.error_summary}"


def _site(library: Library, corpus: Corpus) -> Iterable[str]:
    told = told_by_crawl(library)
    plan = Plan(
        websites=[WEBSITE],
        output=str(library.settings.home / OUTPUT),
        config_path="sites.json",
        advisors=advisors_of(library.settings),
        limits=corpus.limits,
        # One that came to its end is crawled anew, for the sake of what failed.
        resume=told is not None and told.crawl_end_time is None,
    )
    for report in asyncio.run(library.crawl(plan)):
        yield from _unsuccessful(report)


def told_by_crawl(library: Library) -> CrawlMetadata | None:
    """What a crawl has written down of itself."""
    path = library.settings.home / OUTPUT / METADATA
    return read_metadata(path.read_bytes(), path=METADATA) if path.exists() else None


def _uploads(library: Library, corpus: Corpus) -> Iterable[str]:
    context, settings, now = library.context, library.settings, library.seams.clock.now()
    with library.database.write() as connection:
        # The ids of uploads follow from their user's.
        user = ensure_user(connection, USER, now=now, rng=random.Random(USER))  # noqa: S311 — no secret
    for name, data in corpus.papers.items():
        claim = UploadRequest(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        job = begin_upload(context, settings, user, claim)
        if job.status is states.JobStatus.UPLOADED:
            library.blobs.put(staging_key(job), data)
            complete_upload(context, settings, job)
    return ()


def _worker(library: Library, _corpus: Corpus) -> Iterable[str]:
    with library.worker_resources() as resources:
        BaseWorker(resources, poll=0.01).drain()
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
    # Whoever had a lock was killed, and needs not be waited for.
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
"""By name and in order; each says what it could not do."""


def steps_from(first: str) -> list[str]:
    """The names of a step and of those after it; opening comes before each of them."""
    names = list(STEPS)
    return names[0 if first == OPENING else names.index(first) :]
