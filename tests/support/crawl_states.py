"""States of crawls, started, read and abandoned."""

from __future__ import annotations

from fonds.sites.crawl_state import CrawlState
from fonds.sites.models import CrawlMetadata, read_metadata
from fonds.sites.output import JOURNAL, METADATA, Output
from tests.support.kills.crawl_state import CLOCK, data_of, opening


def begun(output: Output) -> CrawlState:
    return CrawlState.begin(output, opening(output), CLOCK)


def text(output: Output, name: str) -> bytes:
    return b"".join(output.read(name) or ())


def metadata(output: Output) -> CrawlMetadata:
    return read_metadata(text(output, METADATA), path=METADATA)


def put_file(output: Output, number: int) -> str:
    path = f"pdfs/party_2024-q1_{number}.pdf"
    output.blobs.put(path, data_of(number))
    return path


def copied(output: Output) -> dict[str, bytes]:
    return {name: text(output, name) for name in (METADATA, JOURNAL)}


def abandoned(state: CrawlState) -> None:
    """As if its process had been killed, though the thread that folds is still there."""
    state._is_closed = True
    state._wake.set()
    state._folder.join()
    state._dispose()
