"""The library: database, blobs and settings, opened together; every interface uses one.

What only some of its methods need is imported by them: to read a document takes neither the sources
nor a client, and a command that reads starts a quarter faster without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from fonds.context import Context, Progress, ignore_progress
from fonds.errors import FondsError, UnknownDocumentError
from fonds.runs.concurrency import in_order
from fonds.runs.state import RunReport, RunRequest
from fonds.schema import ensure_plugin_tables, require_current
from fonds.seams import Clock, Seams
from fonds.settings import Settings, read_settings
from fonds.sites.tables import websites
from fonds.sources.base import Registered
from fonds.sources.registry import (
    adopt,
    builtin_sources,
    dependency_graph,
    get_code,
    get_source,
    plugin_sources,
)
from fonds.stores.blobs import open_blobs, read_reference
from fonds.stores.database import Database, open_database
from fonds.stores.documents import visible_to
from fonds.stores.tables import code_units, document_aliases, documents

if TYPE_CHECKING:
    from threading import Event
    from uuid import UUID

    from fonds.codes.run import CodeReport, CodeRequest
    from fonds.embed.worker import EmbeddingReport, Watch
    from fonds.engine.base import Engine
    from fonds.fetch.transport import Transport
    from fonds.results import QuoteCheck, Resolution, RetrievalResult, SearchPage, Verification
    from fonds.runs import citations
    from fonds.runs.normalization import Drained, Renormalized
    from fonds.search.filters import Filters
    from fonds.search.retrieve import Mode, Understanding
    from fonds.sites.cluster import PartOrder
    from fonds.sites.session import CrawlSession, CrawlWatch, Plan
    from fonds.sites.website import Website
    from fonds.uploads.resources import WorkerResources

WEBSITE: Final = "site-"
"""How the names of those sources begin that are websites."""
SIDE_BY_SIDE: Final = 4
"""Sources that run at once; more would only wait for the one writer of the database."""


class Library:
    """Everything fonds keeps, and what can be done with it."""

    def __init__(self, settings: Settings, *, seams: Seams | None = None) -> None:
        self.settings = settings
        self.seams = seams or Seams()
        self.database = open_database(
            settings.database_url, seams=self.seams, cache_mib=settings.sqlite_cache_mib
        )
        self.blobs = open_blobs(settings.blobs_url, seams=self.seams)

    def run(
        self,
        source: str,
        *,
        since: date | str | None = None,
        until: date | str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> RunReport:
        """Bring a source up to date, or fill a range of it when one is given."""
        bounded = since is not None or until is not None or bool(options)
        request = RunRequest(
            mode="backfill" if bounded else "manual",
            since=_day(since),
            until=_day(until),
            options=options,
        )
        return asyncio.run(self.ingest(source, request, progress=progress))

    async def ingest(
        self,
        source: str | Registered,
        request: RunRequest,
        *,
        progress: Progress | None = None,
        record: Path | None = None,
        replay: Path | None = None,
    ) -> RunReport:
        """Run one source, recording its exchanges to a WARC file or answering them from one."""
        if isinstance(source, str) and source.startswith(WEBSITE):
            return await self._crawl_again(source.removeprefix(WEBSITE), progress)
        async with self.open_context(progress=progress, record=record, replay=replay) as context:
            known = get_source(source) if isinstance(source, str) else source
            return await _run(known, request, context)

    async def ingest_code(
        self,
        name: str,
        request: CodeRequest,
        *,
        apart: bool = False,
        progress: Progress | None = None,
    ) -> CodeReport:
        """Bring an edition of a code up to date, in invocations that keep to the budget.

        `apart` gives each of them a process of its own, held to its memory by the kernel.
        """
        from fonds.codes.invocation import open_invoker  # noqa: PLC0415 — few commands need it
        from fonds.codes.run import CodeReport, run_code  # noqa: PLC0415 — as above

        adapter = get_code(name)
        async with self.open_context(progress=progress, tables=False) as context:
            run = RunRequest(mode="manual", options=request.as_options())
            try:
                with open_invoker(adapter, context, apart=apart) as invoker:
                    at_once = invoker.at_once
                    return await run_code(adapter, run, context, invoker, at_once=at_once)
            except asyncio.CancelledError:
                return CodeReport(run=_cancelled(name, context))

    async def crawl(
        self,
        plan: Plan,
        *,
        watch: CrawlWatch | None = None,
        progress: Progress | None = None,
        waits: bool = False,
    ) -> list[RunReport]:
        """Crawl websites for their PDFs, several side by side; each is a run of its own.

        An output has one crawl at a time: one that `waits` begins when another has ended.
        """
        from fonds.sites.output import turn_at  # noqa: PLC0415 — as above
        from fonds.sites.session import open_session  # noqa: PLC0415 — few commands need it

        part = plan.part.name if plan.part else ""
        async with (
            self.open_context(progress=progress, tables=False) as context,
            turn_at(plan.output, context, waits=waits, part=part),
            open_session(plan, context, watch=watch) as session,
        ):
            waiting = [website.info.name for website in session.websites()]
            reports = await _crawled(session, context)
        adopt(_websites(self.database))
        return [reports[name] for name in waiting]

    async def _crawl_again(self, website: str, progress: Progress | None) -> RunReport:
        from fonds.sites.session import plan_again  # noqa: PLC0415 — few commands need it

        plan = plan_again(self.database, website, self.settings)
        (report,) = await self.crawl(plan, progress=progress, waits=True)
        return report

    async def ingest_all(
        self, sources: Iterable[str], request: RunRequest, *, progress: Progress | None = None
    ) -> list[RunReport]:
        """Run sources, each after those it depends on, independent ones side by side.

        A source that cannot even begin (its key is missing, another run of it is going on) is
        reported as such, and the others go on.
        """
        async with self.open_context(progress=progress) as context:

            async def run(name: str) -> RunReport:
                try:
                    return await _run(get_source(name), request, context)
                except FondsError as error:
                    return RunReport.refused(name, error)

            graph = dependency_graph(sources)
            reports = await in_order(graph, run, at_once=SIDE_BY_SIDE)
        return [reports[name] for name in graph]

    @cached_property
    def context(self) -> Context:
        """Shared by everything that works on the library and fetches nothing."""
        return Context(
            settings=self.settings, seams=self.seams, database=self.database, blobs=self.blobs
        )

    @asynccontextmanager
    async def open_context(
        self,
        *,
        progress: Progress | None = None,
        record: Path | None = None,
        replay: Path | None = None,
        tables: bool = True,
    ) -> AsyncIterator[Context]:
        """The context of runs: with progress, and a client that is closed at the end."""
        if tables:
            builtin_sources()  # tables refer to each other: a run must know them all
        settings, seams, transport = self._exchanges(record, replay)
        opened = replace(
            self.context,
            settings=settings,
            seams=seams,
            progress=progress or ignore_progress,
            transport=transport,
        )
        async with opened as context:
            yield context

    def _exchanges(
        self, record: Path | None, replay: Path | None
    ) -> tuple[Settings, Seams, Transport | None]:
        """A transport that records to a WARC file or replays one, at its recorded time."""
        if record is None and replay is None:
            return self.settings, self.seams, None
        from fonds.fetch import recording  # noqa: PLC0415 — few runs need it
        from fonds.fetch.transport import HttpTransport  # noqa: PLC0415 — as above

        here = replace(self.settings, engine="local")  # what passes elsewhere is not seen
        if replay is not None:
            replayed = recording.ReplayTransport(replay)
            return recording.without_waits(here), self._at(replayed.clock), replayed
        assert record is not None
        network = HttpTransport(allow_private=here.allow_private, hosts=here.hosts)
        clock = self.seams.clock
        return here, self.seams, recording.RecordingTransport(network, record, clock=clock)

    def search(
        self,
        query: str,
        *,
        sources: Sequence[str] = (),
        kinds: Sequence[str] = (),
        organizations: Sequence[str] = (),
        since: date | str | None = None,
        until: date | str | None = None,
        under: str | None = None,
        edition: str | None = None,
        mode: Mode | None = None,
        limit: int = 10,
        offset: int = 0,
        owner: UUID | None = None,
    ) -> list[RetrievalResult]:
        """The best passages for a question, each with its citation; of codes the newest edition.

        Words and vectors decide together, as far as there are vectors; `mode` insists on
        `lexical`, `semantic` or `hybrid`. `owner`, here and below, is the user whose uploads may
        be seen beside what is public.
        """
        from fonds.search.filters import Filters  # noqa: PLC0415 — ingesting needs none of these
        from fonds.search.retrieve import search  # noqa: PLC0415 — as above

        filters = Filters(
            sources=tuple(sources),
            kinds=tuple(kinds),
            organizations=tuple(organizations),
            since=_day(since),
            until=_day(until),
            under=under,
            edition=edition,
            owner=owner,
        )
        return search(
            self.database,
            query,
            filters,
            limit=limit,
            offset=offset,
            meaning=self._understanding.meaning(query, mode),
            by_words=mode != "semantic",
        )

    def look(
        self,
        query: str,
        filters: Filters,
        *,
        mode: Mode | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> SearchPage:
        """What `search` finds, with what the best documents could be filtered by, and counts."""
        from fonds.search.retrieve import look  # noqa: PLC0415 — ingesting needs none

        return look(
            self.database,
            query,
            filters,
            limit=limit,
            offset=offset,
            meaning=self._understanding.meaning(query, mode),
            by_words=mode != "semantic",
        )

    def resolve(
        self, citation: str, *, as_of: date | str | None = None, owner: UUID | None = None
    ) -> Resolution:
        """What a citation, an id or another name leads to, in the edition of a day."""
        from fonds.search.resolve import resolve  # noqa: PLC0415 — ingesting needs none

        return resolve(self.database, citation, as_of=_day(as_of), owner=owner)

    def check_quote(
        self,
        cite: str,
        text: str,
        *,
        as_of: date | str | None = None,
        owner: UUID | None = None,
    ) -> QuoteCheck:
        """Whether words stand in what a citation leads to: exactly, changed since, or not."""
        from fonds.search.check_quote import check_quote  # noqa: PLC0415 — ingesting needs none

        return check_quote(self.context, cite, text, as_of=_day(as_of), owner=owner)

    def verify(self, name: str, *, owner: UUID | None = None) -> Verification:
        """Make a document or passage again from the archived bytes, and compare each link."""
        from fonds.runs.verify import verify  # noqa: PLC0415 — ingesting needs none

        return verify(self.context, name, owner=owner)

    def sample(self, source: str, count: int) -> list[str]:
        """Ids of some public documents of a source, by chance."""
        from fonds.runs.verify import sample  # noqa: PLC0415 — as above

        return sample(self.context, source, count)

    @cached_property
    def _understanding(self) -> Understanding:
        from fonds.search.retrieve import Understanding  # noqa: PLC0415 — ingesting needs none

        return Understanding(self.database, self.settings)

    def normalize_queued(self, *, workers: int = 2) -> Drained:
        """Make the texts that wait in the normalization queue, in processes of their own."""
        from fonds.runs.normalization import drain  # noqa: PLC0415 — few commands need it

        with self.readers(workers) as engine:
            return drain(self.context, engine)

    def readers(self, workers: int | None = None) -> Engine:
        """Processes that read documents, here or on the cluster of the settings."""
        from fonds.engine.opening import open_engine  # noqa: PLC0415 — few commands need it
        from fonds.normalize.registry import READERS, WORN  # noqa: PLC0415 — as above

        return open_engine(self.settings.engine, workers=workers, fresh=READERS, worn=WORN)

    def renormalize(
        self, *, source: str | None = None, normalizer: str | None = None
    ) -> Renormalized:
        """Make texts anew that an older normalizer made; nothing is fetched."""
        from fonds.runs.normalization import renormalize  # noqa: PLC0415 — few commands need it

        return renormalize(self.context, source=source, normalizer=normalizer)

    def extract_citations(
        self, *, limit: int | None = None, watch: citations.Watch | None = None
    ) -> citations.Extracted:
        """Find the citations in documents that are new or changed, and link them to documents."""
        from fonds.runs import citations  # noqa: PLC0415 — few commands need it

        return citations.drain(self.database, self.seams, limit=limit, watch=watch)

    def embed(
        self,
        *,
        workers: int | None = None,
        limit: int | None = None,
        watch: Watch | None = None,
        stop: Event | None = None,
    ) -> EmbeddingReport:
        """Make the vectors of documents that are new or changed."""
        from fonds.embed.worker import embed_waiting  # noqa: PLC0415 — models take long to import

        return embed_waiting(
            self.database,
            self.seams,
            self.settings,
            workers=workers,
            limit=limit,
            watch=watch,
            stop=stop,
        )

    @contextmanager
    def worker_resources(self, *, stop: Event | None = None) -> Iterator[WorkerResources]:
        """What a worker on uploads works with; `stop` ends it soon."""
        from fonds.uploads.resources import WorkerResources  # noqa: PLC0415 — few commands need it

        with self.readers() as engine:
            resources = WorkerResources(context=self.context, engine=engine)
            resources.stop = stop or resources.stop
            yield resources

    def document(
        self, name: str, *, owner: UUID | None = None, with_text: bool = True
    ) -> dict[str, Any]:
        """A document by its id or any other name it goes by."""
        columns = [each for each in documents.c if with_text or each.name not in _LONG]
        by_alias = select(document_aliases.c.document_id).where(document_aliases.c.alias == name)
        named = (documents.c.id == name) | documents.c.id.in_(by_alias)
        query = select(*columns).where(visible_to(owner), named)
        with self.database.read() as connection:
            found = [row._asdict() for row in connection.execute(query.order_by(documents.c.id))]
            exact = [row for row in found if row["id"] == name]
            if exact:
                return exact[0]
            units = {row["unit"] for row in found} - {None}
            of_them = select(code_units.c.id).where(code_units.c.id.in_(units))
            newest = set(connection.scalars(of_them.where(code_units.c.is_newest)))
        current = [row for row in found if row["unit"] is None or row["unit"] in newest]
        for best in (current, found):
            if len(best) == 1:
                return best[0]
        if found:
            names = ", ".join(row["id"] for row in found)
            raise UnknownDocumentError(f"{name!r} is the name of several documents: {names}")
        raise UnknownDocumentError(f"the library has no document {name!r}")

    def raw(self, document: Mapping[str, Any]) -> bytes:
        """The bytes a document's text was made from; of a section, only its own are read."""
        return read_reference(self.blobs, document["body_raw_path"] or document["raw_path"])

    def _at(self, clock: Clock) -> Seams:
        return replace(self.seams, clock=clock)

    def close(self) -> None:
        """Close the database and release its connections."""
        self.database.close()


@contextmanager
def open_library(
    home: str | Path | None = None, *, seams: Seams | None = None, **overrides: Any
) -> Iterator[Library]:
    """Open the library in a folder, creating it if there is none."""
    settings = read_settings({"home": home and Path(home), **overrides})
    settings.home.mkdir(parents=True, exist_ok=True)
    library = Library(settings, seams=seams)
    try:
        require_current(library.database)
        for source in plugin_sources().values():
            ensure_plugin_tables(library.database, source.info.name, source.info.tables)
        adopt(_websites(library.database))
        yield library
    finally:
        library.close()


def _websites(database: Database) -> list[Website]:
    with database.read() as connection:
        if connection.scalar(select(websites.c.id).limit(1)) is None:
            return []
    from fonds.sites.website import known_websites  # noqa: PLC0415 — few libraries need it

    return known_websites(database)


async def _run(source: Registered, request: RunRequest, context: Context) -> RunReport:
    from fonds.pipeline import run_source  # noqa: PLC0415 — reading needs none of it

    try:
        return await run_source(source, request, context)
    except asyncio.CancelledError:
        return _cancelled(source.info.name, context)


async def _crawled(session: CrawlSession, context: Context) -> dict[str, RunReport]:
    """The websites of a crawl, here or on a cluster; what came of each source."""
    from fonds.sites.output import AFTER_A_KILL, patiently  # noqa: PLC0415 — few commands need it

    if context.settings.engine != "local":
        from fonds.sites.cluster import crawl_apart, divide  # noqa: PLC0415 — as above

        if orders := divide(session):
            return await crawl_apart(orders, crawl_part, session)
    plan = session.plan
    waiting = {website.info.name: website for website in session.websites()}
    # A part may come again while the claims of the machine that was lost with it stand.
    patience = AFTER_A_KILL if plan.part else 0.0

    async def run(name: str) -> RunReport:
        try:
            request = RunRequest(mode="manual")
            report = await patiently(lambda: _run(waiting[name], request, context), patience)
        except FondsError as error:
            report = RunReport.refused(name, error)
        await waiting[name].finish(report)
        return report

    graph: dict[str, set[str]] = {name: set() for name in waiting}
    return await in_order(graph, run, at_once=plan.limits.parallelism)


def crawl_part(order: PartOrder) -> list[RunReport]:
    """Crawl the websites of one host on a machine of a cluster."""
    plan, settings = order.unpacked()
    library = Library(settings)
    try:
        return asyncio.run(library.crawl(plan))
    finally:
        library.close()


def _cancelled(source: str, context: Context) -> RunReport:
    """The report of a run that a command has ended; whoever asks this task to stop has none."""
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise asyncio.CancelledError
    from fonds.runs.overview import last_report  # noqa: PLC0415 — few runs are cancelled

    return last_report(context.database, source)


_LONG: Final = frozenset({"body_text", "body_map"})


def _day(value: date | str | None) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) else value
