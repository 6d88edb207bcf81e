"""Fetching a PDF: once, checked, archived, stored under its name, and noted at each step.

Whether a file is a PDF that opens, found out in a process that it cannot take with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from fonds.context import Context
from fonds.engine.local import LocalEngine
from fonds.errors import (
    EngineError,
    FondsError,
    RobotsForbiddenError,
    StoreError,
    WrongContentError,
)
from fonds.fetch.archive import DownloadResult, FileRecord, StoreRequest
from fonds.fetch.client import Download
from fonds.fetch.rates import Pace
from fonds.model import Archived, FetchTask, Part
from fonds.sites.crawl_state import CrawlState
from fonds.sites.filenames import filename, original_name, slug
from fonds.sites.models import METADATA_VERSION, CrawlError, DownloadedPDF, PdfState
from fonds.sites.output import Output
from fonds.sites.plain import is_plain_pdf
from fonds.sites.robots import FORBIDDEN
from fonds.sites.together import Together
from fonds.sites.website import Website
from fonds.stores.blobs import Data

_HEAD = 1024


class PdfOpener:
    """Opens PDFs: the plain ones here, all others one after another in a process of their own."""

    def __init__(self) -> None:
        self._engine = LocalEngine(workers=1, memory_mib=512, seconds=30.0)
        self._one_at_a_time = Lock()

    def check(self, file: Path) -> None:
        """Raise WrongContentError unless this is a PDF that opens, with or without a password."""
        for trouble in self.troubles([file]):
            if trouble is not None:
                raise trouble

    def troubles(self, files: Sequence[Data]) -> list[FondsError | None]:
        """Of each file, why it is no PDF that opens, or None if it is one."""
        found = [_foreign(file) for file in files]
        unsure = [at for at, file in enumerate(files) if not found[at] and not is_plain_pdf(file)]
        with self._one_at_a_time, ExitStack() as written:
            opened = self._opened([written.enter_context(_in_file(files[at])) for at in unsure])
        for at, trouble in zip(unsure, opened, strict=True):
            found[at] = trouble
        return found

    def _opened(self, files: list[str]) -> list[FondsError | None]:
        """All at once; if one of them takes the process with it, each alone."""
        if len(files) > 1:
            outcome = next(iter(self._engine.run(open_pdfs, [files])))
            if outcome.error is None:
                return [_unopened(reason) for reason in outcome.result or ()]
        return [self._alone(file) for file in files]

    def _alone(self, file: str) -> FondsError | None:
        outcome = next(iter(self._engine.run(open_pdf, [file])))
        if outcome.error is not None and not isinstance(outcome.error, EngineError):
            return outcome.error
        return _unopened(outcome.error or outcome.result)

    def close(self) -> None:
        """End the process, when it has answered."""
        with self._one_at_a_time:
            self._engine.close()


@contextmanager
def _in_file(data: Data) -> Iterator[str]:
    if isinstance(data, Path):
        yield str(data)
        return
    with NamedTemporaryFile(suffix=".pdf") as file:
        file.write(data)
        file.flush()
        yield file.name


def _foreign(file: Data) -> FondsError | None:
    try:
        refuse_others(file[:_HEAD] if isinstance(file, bytes) else _head(file))
    except (WrongContentError, StoreError) as error:
        return error
    return None


def _head(file: Path) -> bytes:
    try:
        with file.open("rb", buffering=0) as opened:
            return opened.read(_HEAD)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error


def _unopened(reason: object) -> WrongContentError | None:
    told = f"the file cannot be opened as a PDF: {reason}"
    return None if reason is None else WrongContentError(told)


def refuse_others(head: bytes) -> None:
    """Raise for what cannot be a PDF, and say what it looks like."""
    if not head:
        raise WrongContentError("the file is empty")
    if b"%PDF-" not in head:
        is_page = head.lstrip()[:1] == b"<"
        raise WrongContentError(
            "a web page was served instead of a PDF" if is_page else "the file is no PDF"
        )


def open_pdfs(files: Sequence[str]) -> list[str | None]:
    """The same as `open_pdf` says, of several."""
    return [open_pdf(file) for file in files]


def open_pdf(file: str) -> str | None:
    """Why a PDF does not open, or None if it does."""
    import pypdfium2 as pdfium  # noqa: PLC0415 — for the process that opens files, alone
    from pypdfium2 import raw  # noqa: PLC0415 — as above

    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            return None
        return str(error)
    try:
        return None if len(document) else "it has no pages"
    finally:
        document.close()


OK: Final = 200
HELD: Final = 512 * 1024
"""Bytes of a PDF that stays in memory until it is stored; a longer one goes through a file."""


@dataclass(kw_only=True, slots=True)
class _DownloadedPdf:
    """A PDF on its way from the fetcher to the output."""

    website: Website
    task: FetchTask
    part: Part
    known: FileRecord | None
    download: Download | None
    obtained: DownloadResult = field(init=False)
    data: Data = field(init=False)
    path: str = field(init=False)
    error: Exception | None = None
    is_stored: bool = False
    """By an earlier crawl, with the same bytes."""

    @property
    def store_request(self) -> StoreRequest:
        return StoreRequest(
            source=self.website.info.name,
            path=self.part.path,
            download=self.download,
            previous=self.known,
        )

    @property
    def organization(self) -> str | None:
        name: str | None = self.task.params["organization"]
        return name

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """What goes wrong with one is no matter of the others."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 — it is raised where the file was asked for
            self.error = error


@dataclass(frozen=True, kw_only=True)
class PdfDownloader:
    """Where the PDFs of a crawl go."""

    context: Context
    output: Output
    ledger: CrawlState
    opener: PdfOpener
    dedupe: bool = False
    resumed: bool = False
    _begun: list[str] = field(default_factory=list, init=False, repr=False)
    _receiving: Together[_DownloadedPdf, DownloadResult] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_receiving", Together(self._receive))

    async def collect(
        self, website: Website, task: FetchTask, part: Part, known: FileRecord | None, pace: Pace
    ) -> DownloadResult:
        """A PDF that this crawl has not had yet, fetched unless it has not changed."""
        if self.resumed and (had := await asyncio.to_thread(self._had, website, part)):
            return had
        self._begin(part.url)
        download = await self.context.archive.fetch(
            source=website.info.name, url=part.url, pace=pace, previous=known, max_in_memory=HELD
        )
        arrival = _DownloadedPdf(
            website=website, task=task, part=part, known=known, download=download
        )
        return await self._receiving.do(arrival)

    def _begin(self, url: str) -> None:
        """Note a download together with those that begin in the same moment."""
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._note_begun)
        self._begun.append(url)

    def _note_begun(self) -> None:
        urls = list(self._begun)
        self._begun.clear()
        self.ledger.moved(urls, PdfState.DOWNLOADING)

    async def finish(self) -> None:
        """Store and note what has been fetched; to be called before anything is closed."""
        await self._receiving.finish()

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
            timestamp=self.context.seams.clock.now(),
        )

    def _had(self, website: Website, part: Part) -> DownloadResult | None:
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
        held = self.context.archive.find(website.info.name, part.path, told)
        if held is None:
            return None
        validators = (entry.http_headers.get(name) for name in ("ETag", "Last-Modified"))
        etag, last_modified = validators
        known = FileRecord(
            source=website.info.name,
            url=part.url,
            archived=held,
            etag=etag,
            last_modified=last_modified,
        )
        return DownloadResult(archived=held, changed=False, record=known)

    def _receive(self, arrivals: Sequence[_DownloadedPdf]) -> list[DownloadResult | Exception]:
        """Archive, check, store and note what came in at the same time, step by step."""
        self._archive(arrivals)
        new = _fine(arrivals)
        self.ledger.moved((each.part.url for each in new), PdfState.DOWNLOADED)
        with ExitStack() as files:
            for each in new:
                with each.trouble():
                    each.data = files.enter_context(self._data(each))
            self._check(_fine(new))
            new = _fine(new)
            self.ledger.moved((each.part.url for each in new), PdfState.VALIDATED)
            self._place(new)
        self.ledger.stored([self._entry(each) for each in _fine(new)])
        return [each.error or each.obtained for each in arrivals]

    def _archive(self, arrivals: Sequence[_DownloadedPdf]) -> None:
        taken = self.context.archive.store_all([each.store_request for each in arrivals])
        for each, outcome in zip(arrivals, taken, strict=True):
            if isinstance(outcome, Exception):
                each.error = outcome
                continue
            each.obtained = outcome
            with each.trouble():
                self._recognise(each)

    def _recognise(self, arrival: _DownloadedPdf) -> None:
        """What an earlier crawl stored and has not changed is noted, and left where it is."""
        if arrival.obtained.changed:
            return
        entry = self.ledger.find(arrival.part.url)
        if entry is not None and entry.sha256_hash == arrival.obtained.archived.sha256:
            arrival.is_stored = True
            self.ledger.unchanged(arrival.part.url)

    def _check(self, arrivals: Sequence[_DownloadedPdf]) -> None:
        troubles = self.opener.troubles([each.data for each in arrivals])
        for each, trouble in zip(arrivals, troubles, strict=True):
            each.error = trouble

    def _place(self, arrivals: Sequence[_DownloadedPdf]) -> None:
        new = []
        for each in arrivals:
            with each.trouble():
                sha256 = each.obtained.archived.sha256
                if path := self._stored_before(sha256):
                    each.path = path
                else:
                    new.append((each, (self._name(each), each.data, sha256)))
        placed = self.output.place_all([told for _, told in new])
        for (each, _), outcome in zip(new, placed, strict=True):
            if isinstance(outcome, str):
                each.path = outcome
            else:
                each.error = outcome

    def _stored_before(self, sha256: str) -> str | None:
        return self.ledger.path_of(sha256) if self.dedupe else None

    @contextmanager
    def _data(self, arrival: _DownloadedPdf) -> Iterator[Data]:
        """What was archived: in memory, if it still is there, or in a file of this machine."""
        archived, download = arrival.obtained.archived, arrival.download
        if download is not None and download.data is not None:
            yield download.data
            return
        if (held := self.context.blobs.local_path(archived.key)) is not None:
            yield held
            return
        folder = self.context.settings.home / "tmp"
        with NamedTemporaryFile(dir=folder, suffix=".pdf") as copy:
            for chunk in self.context.blobs.stream(archived.key):
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)

    def _name(self, arrival: _DownloadedPdf) -> str:
        disposition = arrival.obtained.headers.get("Content-Disposition")
        return filename(
            organization=arrival.organization or arrival.website.configuration.id,
            period=arrival.task.params["period"],
            original=original_name(arrival.part.url, disposition),
        )

    def _entry(self, arrival: _DownloadedPdf) -> DownloadedPDF:
        archived, url = arrival.obtained.archived, arrival.part.url
        website = arrival.website.configuration.id
        return DownloadedPDF(
            file_id=str(uuid5(NAMESPACE_URL, f"{self.ledger.crawl_id} {url}")),
            original_url=url,
            local_path=arrival.path,
            filename=arrival.path.rpartition("/")[2],
            file_size_bytes=archived.size,
            sha256_hash=archived.sha256,
            organization_name=arrival.organization,
            organization_slug=slug(arrival.organization or website),
            reporting_period=arrival.task.params["period"],
            download_timestamp=self._moment(archived),
            website_id=website,
            http_status_code=OK,
            http_headers=dict(arrival.obtained.headers),
            crawl_status="success",
            metadata_version=METADATA_VERSION,
        )

    def _moment(self, archived: Archived) -> datetime:
        """When this crawl got it, be it from the archive after a 304."""
        return max(archived.retrieved_at, self.ledger.started)


def _fine(arrivals: Sequence[_DownloadedPdf]) -> list[_DownloadedPdf]:
    """Those that something is still to be done about."""
    return [each for each in arrivals if each.error is None and not each.is_stored]
