"""Fetching a PDF: once, checked, archived, stored under its name, and noted at each step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from fonds.errors import RobotsForbiddenError
from fonds.fetch.archive import KnownFile, Obtained
from fonds.fetch.rates import Pace
from fonds.model import Archived, FetchTask, Part
from fonds.runs.context import Workplace
from fonds.sites.ledger import Ledger
from fonds.sites.models import METADATA_VERSION, CrawlError, DownloadedPDF, PdfState
from fonds.sites.names import filename, original_name, slug
from fonds.sites.opening import Opener
from fonds.sites.output import Output
from fonds.sites.robots import FORBIDDEN
from fonds.sites.source import Website

OK: Final = 200


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Where the PDFs of a crawl go."""

    workplace: Workplace
    output: Output
    ledger: Ledger
    opener: Opener
    dedupe: bool = False
    resumed: bool = False

    async def collect(
        self, website: Website, task: FetchTask, part: Part, known: KnownFile | None, pace: Pace
    ) -> Obtained:
        """A PDF that this crawl has not had yet, fetched unless it has not changed."""
        if self.resumed and (had := await asyncio.to_thread(self._had, website, part)):
            return had
        self.ledger.state(part.url, PdfState.DOWNLOADING)
        obtained = await self.workplace.archive.obtain(
            source=website.info.name, url=part.url, path=part.path, pace=pace, known=known
        )
        await asyncio.to_thread(self._receive, website, task, part.url, obtained)
        return obtained

    def discovered(self, website: Website, urls: Sequence[str]) -> None:
        """Note what there is to be fetched."""
        self.ledger.discovered(website.configuration.id, *urls)

    def failed(self, website: Website, url: str, error: BaseException) -> None:
        """Note what was not fetched, and why."""
        self.ledger.failed(url, self.told(website, error))

    def forbidden(self, website: Website, url: str) -> None:
        """Note what is listed and not asked for."""
        self.ledger.trouble(self.told(website, RobotsForbiddenError(f"{url}: {FORBIDDEN}")))

    def told(self, website: Website, error: BaseException) -> CrawlError:
        """An error as the metadata has it."""
        return CrawlError(
            website_id=website.configuration.id,
            error_type=type(error).__name__,
            error_message=str(error) or type(error).__name__,
            timestamp=self.workplace.seams.clock.now(),
        )

    def _had(self, website: Website, part: Part) -> Obtained | None:
        """What this crawl fetched before it was stopped, if the archive holds it."""
        entry = self.ledger.find(part.url)
        if entry is None or entry.download_timestamp < self.ledger.started:
            return None
        told = Archived(
            url=part.url,
            key="",
            sha256=entry.sha256_hash,
            size=entry.file_size_bytes,
            retrieved_at=entry.download_timestamp,
            media_type=entry.http_headers.get("Content-Type"),
        )
        held = self.workplace.archive.find(website.info.name, part.path, told)
        if held is None:
            return None
        validators = (entry.http_headers.get(name) for name in ("ETag", "Last-Modified"))
        etag, last_modified = validators
        known = KnownFile(
            source=website.info.name,
            url=part.url,
            archived=held,
            etag=etag,
            last_modified=last_modified,
        )
        return Obtained(archived=held, changed=False, known=known)

    def _receive(self, website: Website, task: FetchTask, url: str, obtained: Obtained) -> None:
        archived = obtained.archived
        entry = self.ledger.find(url)
        if entry is not None and entry.sha256_hash == archived.sha256 and not obtained.changed:
            self.ledger.unchanged(url)
            return
        self.ledger.state(url, PdfState.DOWNLOADED)
        with self._file(archived) as file:
            self.opener.check(file)
            self.ledger.state(url, PdfState.VALIDATED)
            name = self._name(website, task, url, obtained)
            path = self._stored_before(archived.sha256) or self.output.place(
                name, file, archived.sha256
            )
        self.ledger.state(url, PdfState.STORED)
        self.ledger.downloaded(self._entry(website, task, url, obtained, path))

    def _stored_before(self, sha256: str) -> str | None:
        return self.ledger.path_of(sha256) if self.dedupe else None

    @contextmanager
    def _file(self, archived: Archived) -> Iterator[Path]:
        """An archived file on this machine."""
        if (held := self.workplace.blobs.local_path(archived.key)) is not None:
            yield held
            return
        folder = self.workplace.settings.home / "tmp"
        with NamedTemporaryFile(dir=folder, suffix=".pdf") as copy:
            for chunk in self.workplace.blobs.stream(archived.key):
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)

    def _name(self, website: Website, task: FetchTask, url: str, obtained: Obtained) -> str:
        disposition = obtained.headers.get("Content-Disposition")
        return filename(
            organization=task.params["organization"] or website.configuration.id,
            period=task.params["period"],
            original=original_name(url, disposition),
        )

    def _entry(
        self, website: Website, task: FetchTask, url: str, obtained: Obtained, path: str
    ) -> DownloadedPDF:
        archived, organization = obtained.archived, task.params["organization"]
        headers = dict(obtained.headers)
        return DownloadedPDF(
            file_id=str(uuid5(NAMESPACE_URL, f"{self.ledger.crawl_id} {url}")),
            original_url=url,
            local_path=path,
            filename=path.rpartition("/")[2],
            file_size_bytes=archived.size,
            sha256_hash=archived.sha256,
            organization_name=organization,
            organization_slug=slug(organization or website.configuration.id),
            reporting_period=task.params["period"],
            download_timestamp=self._moment(archived),
            website_id=website.configuration.id,
            http_status_code=OK,
            http_headers=headers,
            crawl_status="success",
            metadata_version=METADATA_VERSION,
        )

    def _moment(self, archived: Archived) -> datetime:
        """When this crawl got it, be it from the archive after a 304."""
        return max(archived.retrieved_at, self.ledger.started)
