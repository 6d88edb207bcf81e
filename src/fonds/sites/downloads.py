"""Downloads of PDFs: each is fetched once, archived, opened, stored in the output and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, Literal
from uuid import NAMESPACE_URL, uuid5

from fonds.context import Context
from fonds.engine.readers import ReaderPool
from fonds.errors import RobotsForbiddenError
from fonds.fetch.archive import DownloadResult, FileRecord
from fonds.fetch.client import Download, Permit
from fonds.model import Archived, FetchTask, Part
from fonds.runs.concurrency import finish_in_thread
from fonds.sites.crawl_state import CrawlState
from fonds.sites.filenames import filename, original_name, slug
from fonds.sites.models import METADATA_VERSION, CrawlError, DownloadedPDF, PdfState
from fonds.sites.output import Output
from fonds.sites.pdf_opener import check_pdf
from fonds.sites.robots import PACE
from fonds.sites.website import Website
from fonds.stores.blobs import Data

_FIELDS: Final[dict[str, Literal["organization_name", "reporting_period"]]] = {
    "organization": "organization_name",
    "period": "reporting_period",
}
_MAX_IN_MEMORY: Final = 512 * 1024
"""Bytes of a PDF that stays in memory until it is stored; a longer one goes through a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _FetchedPdf:
    """A PDF as it was fetched, on its way to the output."""

    website: Website
    task: FetchTask
    part: Part
    previous: FileRecord | None
    download: Download | None
    """None if the file has not changed since the previous download."""

    @property
    def organization(self) -> str | None:
        name: str | None = self.task.params["organization"]
        return name

    @property
    def period(self) -> str | None:
        period: str | None = self.task.params["period"]
        return period


@dataclass(frozen=True, kw_only=True)
class PdfDownloader:
    """Downloads the PDFs of a crawl into its output."""

    context: Context
    output: Output
    state: CrawlState
    readers: ReaderPool
    dedupe: bool = False
    resumed: bool = False

    async def collect(
        self,
        website: Website,
        task: FetchTask,
        part: Part,
        previous: FileRecord | None,
        permit: Permit,
    ) -> DownloadResult:
        """A PDF that this crawl has not stored yet, fetched unless it has not changed."""
        if self.resumed and (stored := await asyncio.to_thread(self._stored, website, part)):
            return stored
        await finish_in_thread(self.state.moved, [part.url], PdfState.DOWNLOADING)
        download = await self.context.archive.fetch(
            source=website.info.name,
            url=part.url,
            pace=PACE,
            previous=previous,
            permit=permit,
            max_in_memory=_MAX_IN_MEMORY,
        )
        fetched = _FetchedPdf(
            website=website, task=task, part=part, previous=previous, download=download
        )
        return await finish_in_thread(self._store, fetched)

    def failed(self, website: Website, url: str, error: BaseException) -> None:
        """Record a PDF that was not stored, and why."""
        self.state.failed(url, self._crawl_error(website, error))

    def forbidden(self, website: Website, error: RobotsForbiddenError) -> None:
        """Record a PDF that is listed and not requested."""
        self.state.problem(self._crawl_error(website, error))

    def _crawl_error(self, website: Website, error: BaseException) -> CrawlError:
        return CrawlError(
            website_id=website.configuration.id,
            error_type=type(error).__name__,
            error_message=str(error) or type(error).__name__,
            timestamp=self.context.seams.clock.now(),
        )

    def _stored(self, website: Website, part: Part) -> DownloadResult | None:
        """The PDF if this crawl stored it before it was stopped, and the archive has it."""
        entry = self.state.find(part.url)
        if entry is None or entry.download_timestamp < self.state.started:
            return None
        proven = Archived(
            url=part.url,
            key="",
            sha256=entry.sha256_hash,
            size=entry.file_size_bytes,
            retrieved_at=entry.download_timestamp,
            media_type=entry.http_headers.get("Content-Type"),
        )
        archived = self.context.archive.find(website.info.name, part.path, proven)
        if archived is None:
            return None
        record = FileRecord(
            source=website.info.name,
            url=part.url,
            archived=archived,
            etag=entry.http_headers.get("ETag"),
            last_modified=entry.http_headers.get("Last-Modified"),
        )
        return DownloadResult(archived=archived, changed=False, record=record)

    def _store(self, fetched: _FetchedPdf) -> DownloadResult:
        """Archive, open, store and record a PDF."""
        website, part = fetched.website, fetched.part
        result = self.context.archive.store(
            website.info.name, part.path, fetched.download, fetched.previous
        )
        if not result.changed and self._is_in_output(part.url, result.archived.sha256):
            self.state.unchanged(part.url)
            return result
        self.state.moved([part.url], PdfState.DOWNLOADED)
        with self._content(fetched, result.archived) as content:
            check_pdf(content, self.readers)
            self.state.moved([part.url], PdfState.VALIDATED)
            path = self._path(fetched, result, content)
        self.state.stored(self._entry(fetched, result, path))
        return result

    def _is_in_output(self, url: str, sha256: str) -> bool:
        entry = self.state.find(url)
        return entry is not None and entry.sha256_hash == sha256

    @contextmanager
    def _content(self, fetched: _FetchedPdf, archived: Archived) -> Iterator[Data]:
        """The archived bytes: in memory if they still are, else in a file of this machine."""
        if fetched.download is not None and fetched.download.data is not None:
            yield fetched.download.data
            return
        if (path := self.context.blobs.local_path(archived.key)) is not None:
            yield path
            return
        folder = self.context.settings.home / "tmp"
        with NamedTemporaryFile(dir=folder, suffix=".pdf") as copy:
            for chunk in self.context.blobs.stream(archived.key):
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)

    def _path(self, fetched: _FetchedPdf, result: DownloadResult, content: Data) -> str:
        """The path in the output under which the bytes are stored, now or already."""
        sha256 = result.archived.sha256
        if self.dedupe and (path := self.state.path_of(sha256)):
            return path
        disposition = result.headers.get("Content-Disposition")
        name = filename(
            organization=fetched.organization or fetched.website.configuration.id,
            period=fetched.period,
            original=original_name(fetched.part.url, disposition),
        )
        return self.output.store(name, content, sha256)

    def _entry(self, fetched: _FetchedPdf, result: DownloadResult, path: str) -> DownloadedPDF:
        archived, url = result.archived, fetched.part.url
        website = fetched.website.configuration.id
        return DownloadedPDF(
            file_id=str(uuid5(NAMESPACE_URL, f"{self.state.crawl_id} {url}")),
            original_url=url,
            local_path=path,
            filename=path.rpartition("/")[2],
            file_size_bytes=archived.size,
            sha256_hash=archived.sha256,
            organization_name=fetched.organization,
            organization_slug=slug(fetched.organization or website),
            reporting_period=fetched.period,
            guesses=[_FIELDS[name] for name in fetched.task.params.get("guesses", ())],
            # Of this crawl, also where an archived file was confirmed by a 304.
            download_timestamp=max(archived.retrieved_at, self.state.started),
            website_id=website,
            http_status_code=result.status,
            http_headers=dict(result.headers),
            crawl_status="success",
            metadata_version=METADATA_VERSION,
        )
