"""What `fonds demo` does: the whole flow on a small bundled upstream."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from sqlalchemy import func, select

from fonds.cli.citing import said
from fonds.cli.output import out, print_table
from fonds.cli.progress import progress_display
from fonds.cli.read import print_results
from fonds.cli.reports import exit_code, print_reports
from fonds.cli.session import Session
from fonds.codes.run import CodeRequest
from fonds.demo.bundle import FIRST_DAY, LAST_DAY
from fonds.demo.upstream import DemoUpstream
from fonds.library import Library
from fonds.runs.state import RunReport, RunRequest
from fonds.sources.registry import all_feeds
from fonds.stores.tables import document_chunk_buffer, documents

CODE: Final = "usc"
QUESTIONS: Final = (
    "overtime salary threshold",
    "how much lead may drinking water contain?",
    "how soon must a request for a record be answered?",
)


def demonstrate(session: Session) -> int:
    """Serve, ingest, search; gives the exit code."""
    with DemoUpstream() as upstream:
        overrides = {"hosts": upstream.hosts, "allow_private": True}
        with session.library(**overrides) as library:
            reports = asyncio.run(_ingest(library))
            print_reports(reports)
            queued = library.normalize_queued()
            out.print(f"PDFs: {queued.done} read")
            out.print(f"citations: {said(library.extract_citations())}")
            vectors = library.embed()
            out.print(f"vectors: {vectors.embedded:,} passages embedded, {vectors.reused:,} reused")
            _print_holdings(library)
            for question in QUESTIONS:
                out.print(f"\n$ fonds search {question!r}\n", style="bold", markup=False)
                print_results(library.search(question, limit=2), question)
            home = library.settings.home
    out.print("ask it something yourself:")
    out.print(f'{sys.argv[0]} --home {home} search "wildfire smoke"', markup=False)
    out.print("or open it in a browser:")
    out.print(f"{sys.argv[0]} --home {home} serve", markup=False)
    return exit_code(reports)


async def _ingest(library: Library) -> list[RunReport]:
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    with progress_display(quiet=False) as progress:
        reports = await library.ingest_all(all_feeds(), request, progress=progress)
        code = await library.ingest_code(CODE, CodeRequest(), progress=progress)
    return [*reports, code.run]


def _print_holdings(library: Library) -> None:
    query = (
        select(
            documents.c.source,
            documents.c.kind,
            func.count(documents.c.id.distinct()),
            func.count(document_chunk_buffer.c.id),
        )
        .join(document_chunk_buffer, document_chunk_buffer.c.document_id == documents.c.uid)
        .group_by(documents.c.source, documents.c.kind)
        .order_by(documents.c.source, documents.c.kind)
    )
    with library.database.read() as connection:
        rows = [tuple(row) for row in connection.execute(query)]
    out.print()
    print_table(["source", "kind", "documents", "passages"], rows)
