"""The library: database, blobs and settings, opened together; every interface uses one.

Imports of what only some methods need are in these methods where that makes other commands start
at least 30 ms faster: reading takes neither runners nor a client, and running does not search.
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

from sqlalchemy import func, select, type_coerce

from fonds.context import Context, Progress, ignore_progress
from fonds.engine.base import Engine
from fonds.errors import FondsError, UnknownDocumentError
from fonds.runs.concurrency import in_order
from fonds.runs.state import RunReport, RunRequest
from fonds.schema import ensure_plugin_tables, require_current, require_library
from fonds.seams import Seams
from fonds.search.filters import Filters
from fonds.settings import Settings, read_settings
from fonds.sites.tables import websites
from fonds.sources.base import Registered
from fonds.sources.registry import SourceRegistry, builtin_sources, plugin_sources
from fonds.stores.blobs import open_blobs, read_reference
from fonds.stores.columns import Json
from fonds.stores.database import open_database, sqlite_file
from fonds.stores.documents import visible_to
from fonds.stores.permissions import make_private_folder
from fonds.stores.tables import code_units, document_aliases, documents, upload_jobs
from fonds.stores.usage_lock import UsageLock

if TYPE_CHECKING:
    from threading import Event
    from uuid import UUID

    from fonds.codes.run import CodeReport, CodeRequest
    from fonds.embed.worker import EmbeddingReport, Watch
    from fonds.fetch.transport import Transport
    from fonds.results import QuoteCheck, Resolution, RetrievalResult, SearchPage, Verification
    from fonds.runs.citations import Extracted
    from fonds.runs.citations import Watch as CitationWatch
    from fonds.runs.files import FilesReport
    from fonds.runs.normalization import Drained, Renormalized
    from fonds.search.retrieve import Mode, QueryEmbedder
    from fonds.sites.cluster import PartOrder
    from fonds.sites.session import CrawlWatch, Plan
    from fonds.source_runners import Runner
    from fonds.uploads.resources import WorkerResources

CONCURRENT_SOURCES: Final = 4
"""Sources that run at the same time; more would only wait for the one writer of the database."""
_LONG_COLUMNS: Final = frozenset({"body_text", "body_map"})


class Library:
    """A database of documents with their raw files, and the operations on it."""

    def __init__(self, settings: Settings, *, seams: Seams | None = None) -> None:
        self.settings = settings
        self.seams = replace(seams or Seams(), outage_seconds=settings.outage_seconds)
        self.database = open_database(
            settings.database_url, seams=self.seams, cache_mib=settings.sqlite_cache_mib
        )
        self.blobs = open_blobs(
            settings.blobs_url,
            seams=self.seams,
            public_endpoint=settings.blobs_public_endpoint,
        )
        self.sources = SourceRegistry()
        self._websites_state: tuple[Any, ...] = (0, None)
        self._usage = _usage_lock(settings)

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
        """Run one source; `record` and `replay` name a WARC file for its HTTP exchanges."""
        runner = self._runner(source)
        async with self.open_context(progress=progress, record=record, replay=replay) as context:
            return await runner.run(request, context)

    async def reparse(
        self, source: str, *, accept_loss: bool = False, progress: Progress | None = None
    ) -> RunReport:
        """Parse the archived files of one feed again, after its parser has changed."""
        from fonds.runs.reparse import reparse_source  # noqa: PLC0415 — reading starts 30 ms faster

        feed = self.sources.parser(source)
        async with self.open_context(progress=progress) as context:
            return await reparse_source(feed, context, accept_loss=accept_loss)

    async def ingest_files(
        self, source: str, paths: Sequence[Path], *, progress: Progress | None = None
    ) -> FilesReport:
        """Load files of one feed from folders, files, zip and tar archives; nothing is fetched."""
        from fonds.runs.files import run_files  # noqa: PLC0415 — reading starts 30 ms faster

        parser = self.sources.parser(source)
        async with self.open_context(progress=progress) as context:
            return await run_files(parser, paths, context)

    async def ingest_code(
        self,
        name: str,
        request: CodeRequest,
        *,
        progress: Progress | None = None,
    ) -> CodeReport:
        """Bring an edition of a code up to date; with a budget, in invocations that keep to it."""
        from fonds.source_runners import CodeRunner  # noqa: PLC0415 — reading starts 30 ms faster

        runner = CodeRunner(self.sources.code(name))
        run = RunRequest(mode="manual", options=request.as_options())
        async with self.open_context(progress=progress, tables=False) as context:
            return await runner.run_units(run, context)

    async def crawl(
        self,
        plan: Plan,
        *,
        watch: CrawlWatch | None = None,
        progress: Progress | None = None,
        waits: bool = False,
    ) -> list[RunReport]:
        """Crawl websites for their PDFs, several at a time; each is a run of its own.

        An output has one crawl at a time: one that `waits` starts when another has ended.
        """
        from fonds.website_runner import crawl  # noqa: PLC0415 — takes 140 ms

        request = RunRequest(mode="manual")
        async with self.open_context(progress=progress, tables=False) as context:
            reports = await crawl(
                plan, request, context, watch=watch, waits=waits, crawl_part=crawl_part
            )
        self.reload_websites()
        return reports

    async def ingest_all(
        self,
        sources: Iterable[str],
        request: RunRequest,
        *,
        without: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> list[RunReport]:
        """Run sources, each after those it depends on, independent ones at the same time.

        Those of `without` are not run, even if others depend on them.

        A source that cannot start (its key is missing, another process is running it) is reported
        as failed, and the others continue.
        """
        async with self.open_context(progress=progress) as context:

            async def run(name: str) -> RunReport:
                try:
                    return await self._runner(name).run(request, context)
                except FondsError as error:
                    return RunReport.refused(name, error)

            graph = self.sources.dependency_graph(sources, without=without)
            reports = await in_order(graph, run, concurrency=CONCURRENT_SOURCES)
        return [reports[name] for name in graph]

    def _runner(self, source: str | Registered) -> Runner:
        from fonds.source_runners import runner_of  # noqa: PLC0415 — reading starts 30 ms faster

        source = self.require_source(source) if isinstance(source, str) else source
        return runner_of(source, self.sources)

    def require_source(self, name: str) -> Registered:
        """The source of that name, also a website that another process has crawled meanwhile."""
        if name not in self.sources:
            self.reload_websites()
        return self.sources.require(name)

    def reload_websites(self) -> None:
        """Read the websites, which are sources too, from the database if they have changed."""
        columns = websites.c
        with self.database.read() as connection:
            state = connection.execute(
                select(func.count(columns.id), func.max(columns.updated_at))
            ).one()
        if tuple(state) == self._websites_state:
            return
        from fonds.sites.website import read_websites  # noqa: PLC0415 — takes 70 ms

        self.sources.set_websites(read_websites(self.database))
        self._websites_state = tuple(state)

    @cached_property
    def context(self) -> Context:
        """The context of work that fetches nothing."""
        return Context(
            settings=self.settings,
            seams=self.seams,
            database=self.database,
            blobs=self.blobs,
            sources=self.sources,
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
        """The context of runs: it reports progress, and its client is closed at the end."""
        if tables:
            builtin_sources()  # they declare tables that refer to each other
        settings, seams, transport = self._recording(record, replay)
        opened = replace(
            self.context,
            settings=settings,
            seams=seams,
            progress=progress or ignore_progress,
            transport=transport,
        )
        async with opened as context:
            yield context

    def _recording(
        self, record: Path | None, replay: Path | None
    ) -> tuple[Settings, Seams, Transport | None]:
        """A transport that records to a WARC file, or replays one at its recorded time."""
        if record is None and replay is None:
            return self.settings, self.seams, None
        from fonds.fetch.recording import open_recording  # noqa: PLC0415 — takes 130 ms

        return open_recording(self.settings, self.seams, record=record, replay=replay)

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
        document: str | None = None,
        mode: Mode | None = None,
        limit: int = 10,
        offset: int = 0,
        per_document: int = 3,
        owner: UUID | None = None,
    ) -> list[RetrievalResult]:
        """The best documents for a query, with citations; of codes the newest edition.

        Each result has up to `per_document` passages. With `document`, an id or another name, the
        results are the best passages of that document. Words and vectors are both used if there
        are vectors, unless `mode` is `lexical`, `semantic` or `hybrid`. `owner`, here and below, is
        the user whose uploads are visible next to public documents.
        """
        filters = Filters(
            sources=tuple(sources),
            kinds=tuple(kinds),
            organizations=tuple(organizations),
            since=_day(since),
            until=_day(until),
            under=under,
            edition=edition,
            owner=owner,
            document=document,
        )
        page = self.look(
            query, filters, mode=mode, limit=limit, offset=offset, per_document=per_document
        )
        return page.results

    def look(
        self,
        query: str,
        filters: Filters,
        *,
        mode: Mode | None = None,
        limit: int = 10,
        offset: int = 0,
        per_document: int = 3,
    ) -> SearchPage:
        """As `search`, with facets of the best documents and their counts."""
        from fonds.search.retrieve import search  # noqa: PLC0415 — takes 90 ms

        if filters.document is not None:
            row = self.document(filters.document, owner=filters.owner, with_text=False)
            filters = replace(filters, document=row["id"])
        return search(
            self.database,
            self.sources,
            query,
            filters,
            limit=limit,
            offset=offset,
            per_document=per_document,
            query_vector=self._query_embedder.query_vector(query, mode),
            by_words=mode != "semantic",
        )

    def resolve(
        self, citation: str, *, as_of: date | str | None = None, owner: UUID | None = None
    ) -> Resolution:
        """The document or passage of a citation, an id or an alias, in the edition of a day."""
        from fonds.search.resolve import resolve  # noqa: PLC0415 — as above

        return resolve(self.database, citation, as_of=_day(as_of), owner=owner)

    def check_quote(
        self,
        cite: str,
        text: str,
        *,
        as_of: date | str | None = None,
        owner: UUID | None = None,
    ) -> QuoteCheck:
        """Check a quotation against the cited document: exact, changed since, or not found."""
        from fonds.search.check_quote import check_quote  # noqa: PLC0415 — as above

        return check_quote(self.context, cite, text, as_of=_day(as_of), owner=owner)

    def verify(
        self, name: str, *, owner: UUID | None = None, max_bytes: int | None = None
    ) -> Verification:
        """Derive a document or passage again from the archived bytes, and compare each step."""
        from fonds.runs.verify import verify  # noqa: PLC0415 — takes 50 ms

        return verify(self.context, name, owner=owner, max_bytes=max_bytes)

    def sample(self, source: str, count: int) -> list[str]:
        """The ids of random public documents of a source."""
        from fonds.runs.verify import sample  # noqa: PLC0415 — as `verify`

        return sample(self.context, source, count)

    @cached_property
    def _query_embedder(self) -> QueryEmbedder:
        from fonds.search.retrieve import QueryEmbedder  # noqa: PLC0415 — as above

        return QueryEmbedder(self.database, self.settings)

    def normalize_queued(self, *, workers: int = 2) -> Drained:
        """Normalize the queued texts, in processes of their own."""
        from fonds.runs.normalization import drain  # noqa: PLC0415 — imports all patterns of citations

        with self.readers(workers) as engine:
            return drain(self.context, engine)

    def readers(self, workers: int | None = None) -> Engine:
        """Processes that read documents, here or on the cluster of the settings."""
        return self.context.open_readers(workers)

    def renormalize(
        self, *, source: str | None = None, normalizer: str | None = None
    ) -> Renormalized:
        """Normalize texts again that another version of a normalizer made; nothing is fetched."""
        from fonds.runs.normalization import renormalize  # noqa: PLC0415 — as above

        return renormalize(self.context, source=source, normalizer=normalizer)

    def extract_citations(
        self, *, limit: int | None = None, watch: CitationWatch | None = None
    ) -> Extracted:
        """Extract the citations of new and changed documents, and link them to documents."""
        from fonds.runs.citations import drain  # noqa: PLC0415 — compiles many patterns

        return drain(self.database, self.seams, limit=limit, watch=watch)

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
            endpoints=self.context.endpoints,
        )

    @contextmanager
    def worker_resources(self, *, stop: Event | None = None) -> Iterator[WorkerResources]:
        """The resources of an upload worker; `stop` ends its work soon."""
        from fonds.uploads.resources import WorkerResources  # noqa: PLC0415 — takes 20 ms

        with self.readers() as engine:
            resources = WorkerResources(context=self.context, engine=engine)
            resources.stop = stop or resources.stop
            yield resources

    def document(
        self, name: str, *, owner: UUID | None = None, with_text: bool = True
    ) -> dict[str, Any]:
        """A document by its id or an alias; of an upload, also `file_name` and `reading`."""
        columns: list[Any] = [
            column for column in documents.c if with_text or column.name not in _LONG_COLUMNS
        ]
        columns += [
            type_coerce(documents.c.body_map["reading"], Json).label("reading"),
            upload_jobs.c.name.label("file_name"),
        ]
        by_alias = select(document_aliases.c.document_id).where(document_aliases.c.alias == name)
        matches = (documents.c.id == name) | documents.c.id.in_(by_alias)
        query = select(*columns).where(visible_to(owner), matches)
        query = query.outerjoin(upload_jobs, upload_jobs.c.document_id == documents.c.uid)
        with self.database.read() as connection:
            rows = [row._asdict() for row in connection.execute(query.order_by(documents.c.id))]
            exact = [row for row in rows if row["id"] == name]
            if exact:
                return exact[0]
            units = {row["unit"] for row in rows} - {None}
            editions = select(code_units.c.id).where(code_units.c.id.in_(units))
            newest = set(connection.scalars(editions.where(code_units.c.is_newest)))
        current = [row for row in rows if row["unit"] is None or row["unit"] in newest]
        for candidates in (current, rows):
            if len(candidates) == 1:
                return candidates[0]
        if rows:
            names = ", ".join(row["id"] for row in rows)
            raise UnknownDocumentError(f"{name!r} is the name of several documents: {names}")
        raise UnknownDocumentError(f"the library has no document {name!r}")

    def raw(self, document: Mapping[str, Any]) -> bytes:
        """The bytes of a document's text as published; of a section, only its own are read."""
        return read_reference(self.blobs, document["body_raw_path"] or document["raw_path"])

    def close(self) -> None:
        """Close the database and release its connections; end the reader processes."""
        if "context" in self.__dict__:
            self.context.close_readers()
        self.database.close()
        if self._usage is not None:
            self._usage.close()


@contextmanager
def open_library(
    home: str | Path | None = None,
    *,
    create: bool = True,
    seams: Seams | None = None,
    **overrides: Any,
) -> Iterator[Library]:
    """Open the library in a folder.

    If there is none, it is created, or `MissingLibraryError` is raised if `create` is false.
    """
    settings = read_settings({"home": home and Path(home), **overrides})
    if not create:
        require_library(settings)
    make_private_folder(settings.home)
    library = Library(settings, seams=seams)
    try:
        require_current(library.database)
        for source in plugin_sources().values():
            ensure_plugin_tables(library.database, source.info.name, source.info.tables)
        library.reload_websites()
        yield library
    finally:
        library.close()


def _usage_lock(settings: Settings) -> UsageLock | None:
    """Keep others from replacing the database as long as it is open."""
    file = sqlite_file(settings.database_url)
    return UsageLock(file, exclusive=False) if file is not None else None


def crawl_part(order: PartOrder) -> list[RunReport]:
    """Crawl the websites of one host on a machine of a cluster."""
    plan, settings = order.unpacked()
    library = Library(settings)
    try:
        return asyncio.run(library.crawl(plan))
    finally:
        library.close()


def _day(value: date | str | None) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) else value
