"""A crawl that records its state, to be killed; see fonds/selftest/child.py."""

from __future__ import annotations

import hashlib
import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID, uuid5

from fonds.errors import StoreError
from fonds.seams import Seams, SystemClock
from fonds.selftest.child import serve
from fonds.sites.crawl_state import CrawlState
from fonds.sites.journal import Downloaded
from fonds.sites.models import METADATA_VERSION, CrawlError, CrawlMetadata, DownloadedPDF, PdfState
from fonds.sites.output import Output, open_output
from fonds.testing import Saboteur

CRAWL: Final = UUID("660e9500-f39c-41d4-b826-556655440000")
WEBSITES: Final = 3
CLOCK: Final = SystemClock()


# A crawl ------------------------------------------------------------------------------------


def url_of(number: int) -> str:
    """The address of one of its PDFs."""
    return f"https://reports.example/{number}.pdf"


def fails(number: int) -> bool:
    """Whether a PDF cannot be had."""
    return number % 5 == 4


def data_of(number: int) -> bytes:
    """What stands in a PDF; two of them are the same."""
    return b"%%PDF-1.7 report %d\n" % (number // 2 * 2) * 50


def opening(output: Output, *, crawl_id: UUID = CRAWL) -> CrawlMetadata:
    """A crawl that begins now."""
    return CrawlMetadata(
        crawl_id=str(crawl_id),
        crawl_start_time=CLOCK.now(),
        total_websites=WEBSITES,
        websites_crawled=0,
        websites_failed=0,
        total_pdfs_discovered=0,
        total_pdfs_downloaded=0,
        total_pdfs_failed=0,
        total_bytes_downloaded=0,
        parallelism=2,
        output_folder=output.address,
        storage_backend=output.backend,
        config_file_path="websites.json",
        downloaded_files=[],
        errors=[],
        metadata_version=METADATA_VERSION,
    )


def entry(number: int, path: str = "", **changes: Any) -> DownloadedPDF:
    """What is noted of a PDF."""
    data = data_of(number)
    path = path or f"pdfs/party_2024-q1_{number}.pdf"
    told = {
        "file_id": str(uuid5(CRAWL, url_of(number))),
        "original_url": url_of(number),
        "local_path": path,
        "filename": path.rpartition("/")[2],
        "file_size_bytes": len(data),
        "sha256_hash": hashlib.sha256(data).hexdigest(),
        "organization_name": "自由民主党",
        "organization_slug": "party",
        "reporting_period": "2024-Q1",
        "download_timestamp": CLOCK.now(),
        "website_id": f"site-{number % WEBSITES}",
        "http_status_code": 200,
        "http_headers": {"Content-Type": "application/pdf"},
        "crawl_status": "success",
        "metadata_version": METADATA_VERSION,
    }
    return DownloadedPDF.model_validate(told | changes)


def downloaded(state: CrawlState, *pdfs: DownloadedPDF) -> None:
    """Record PDFs that are in the output."""
    state.record(Downloaded(at=CLOCK.now(), totals=state.totals, pdfs=pdfs))


def error_of(number: int) -> CrawlError:
    """Why a PDF cannot be had."""
    return CrawlError(
        website_id=f"site-{number % WEBSITES}",
        error_type="NotFoundError",
        error_message="404",
        timestamp=CLOCK.now() - timedelta(seconds=1),
    )


def crawl(*, address: str, files: int, kill_at: int | None = None, noted: str) -> None:
    """Go on with the crawl, or begin it, and write down what was acknowledged."""
    output = open_output(address, seams=Seams(durable=Saboteur(kill_at=kill_at)))
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        try:
            state = CrawlState.resume(output, CLOCK, scratch=scratch)
        except StoreError:
            state = CrawlState.begin(output, opening(output), CLOCK, scratch=scratch)
        with Path(noted).open("ab", buffering=0) as acknowledged:
            _fetch(state, output, files, scratch, acknowledged)
        for number in range(WEBSITES):
            state.website(f"site-{number}", "failed" if number == 0 else "crawled")
        state.close(CLOCK.now())


def _fetch(state: CrawlState, output: Output, files: int, scratch: Path, acknowledged: Any) -> None:
    state.discovered("site-0", *(url_of(number) for number in range(files)))
    for number in range(files):
        url = url_of(number)
        if state.find(url):
            continue
        state.moved([url], PdfState.DOWNLOADING)
        if fails(number):
            state.failed(url, error_of(number))
        else:
            file = scratch / f"{number}.pdf"
            file.write_bytes(data_of(number))
            sha256 = hashlib.sha256(data_of(number)).hexdigest()
            path = output.store("party_2024-q1_report.pdf", file, sha256)
            downloaded(state, entry(number, path))
        acknowledged.write(b"%d\n" % number)
        if number % 4 == 3:
            state.fold()


def some_seconds(seed: int, most: float) -> float:
    """How long a crawl may live."""
    return random.Random(seed).uniform(0, most)


if __name__ == "__main__":
    serve({crawl.__name__: crawl})
