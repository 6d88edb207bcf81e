"""Reports and testimonies of the Government Accountability Office.

Quirks of the publisher:
- The feed has the 25 newest products and nothing older, and no other list answers a program:
  a run that comes too late for the feed says so. There is no second way to count, so there is
  no audit, and a backfill reaches no further back than the feed.
- Texts are escaped twice (`T&amp;amp;E`), and a guid is a path, not an address.
- Pages of www.gao.gov answer 403 to programs. They alone have topics, Fast Facts and the table of
  recommendations; where one is served, it is read.
- files.gao.gov answers 403 for what it does not have, and for the wrong case: full texts want the
  number in capitals, PDFs in small letters; PDFs come as application/octet-stream.
  So a refusal means that there is none, and the entry of the feed is a record all the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import PurePosixPath
from typing import Final

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.families.feeds import (
    WASHINGTON,
    FeedItem,
    check_reach,
    from_params,
    newest,
    read_feed,
    to_params,
)
from fonds.sources.gao.page import ProductPage, read_product_page
from fonds.sources.gao.records import (
    NAME,
    PUBLISHER,
    SITE,
    html_address,
    pdf_address,
    product_of,
    read_body,
    record,
)
from fonds.sources.gao.tables import TABLES

FEED: Final = f"{SITE}/rss/reports.xml"


class Gao:
    """The source `gao`."""

    info = SourceInfo(
        name=NAME,
        title="GAO reports",
        organisation=PUBLISHER,
        jurisdiction="United States",
        version="1.0.0",
        # The feed holds about two weeks; its own cache lives for an hour.
        schedule="25 7-19/4 * * *",
        rate=Rate(per_second=0.5, burst=2),
        tables=TABLES,
        at_least=10,
        fetch_concurrency=2,
        published_at="pubDate of the feed, as a day in Washington",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The products of the feed, oldest first."""
        answer = await ask(FEED, path="rss/reports.xml")
        items = read_feed(answer.data).items
        if not items:
            raise SuspiciousYieldError("GAO's feed lists no product; it always has the newest 25")
        for item in reversed(items):
            if _is_asked_for(item, state):
                yield _task(item, answer.archived)
        if (last_seen := newest(items)) and not state.backfill:
            yield Watermark(last_seen_key=last_seen)
            check_reach(items, state.last_seen_key, "GAO's feed")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """A product as its entry, page and texts tell; loose files are known by their bytes."""
        if "item" in raw.task.params:
            yield _product(raw)
        yield from _together([part for part in raw.parts if part.name == ""])


source: Final = Gao()


def _is_asked_for(item: FeedItem, state: SourceState) -> bool:
    if not state.backfill or item.published is None:
        return True
    day = item.published.astimezone(WASHINGTON).date()
    return (state.since is None or state.since <= day) and (
        state.until is None or day <= state.until
    )


def _task(item: FeedItem, origin: Archived) -> FetchTask:
    product, params = product_of(item), {"item": to_params(item)}
    return FetchTask(
        source=NAME,
        key=ids.gao_id(product),
        parts=tuple(_parts(product)),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


def _parts(product: str) -> Iterator[Part]:
    name = product.lower()
    for part, address, path in (
        ("page", f"{SITE}/products/{name}", f"products/{name}.html"),
        ("text", html_address(product), f"bodies/raw/{name}.html"),
        ("pdf", pdf_address(product), f"bodies/raw/{name}.pdf"),
    ):
        yield Part(name=part, url=address, path=path, optional=True, refusable=True)


def _product(raw: Raw) -> ParsedRecord:
    if raw.task.origin is None:
        raise MalformedError(f"{raw.task.key}: no archived feed says what it is")
    item = from_params(raw.task.params["item"])
    page = raw.part("page")
    facts = read_product_page(page.data) if page else None
    if facts and facts.product != product_of(item):
        raise WrongContentError(f"the page of {product_of(item)} describes {facts.product}")
    return record(
        item,
        raw=raw.task.origin,
        page=facts,
        body=read_body(raw.part("text"), raw.part("pdf")),
    )


def _together(parts: list[RawPart]) -> Iterator[ParsedRecord]:
    """The products of loose files; a page and a PDF named after a product join its entry."""
    items: dict[str, tuple[FeedItem, Archived]] = {}
    pages: dict[str, ProductPage] = {}
    pdfs: dict[str, RawPart] = {}
    for part in parts:
        start = part.data[:1024].lstrip().lower()
        if start.startswith(b"%pdf-"):
            pdfs[_file_name(part).upper()] = part
        elif b"<html" in start or start.startswith(b"<!doctype html"):
            page = read_product_page(part.data)
            pages[page.product] = page
            items.setdefault(
                page.product, (FeedItem(title=page.title, link=page.address), part.archived)
            )
        else:
            items |= {
                product_of(item): (item, part.archived) for item in read_feed(part.data).items
            }
    if alone := pdfs.keys() - items.keys():
        raise WrongContentError(
            f"the PDF of a product ({min(alone)}); what it is, is said by the feed or by the "
            "product's page: name one of them with it"
        )
    for product, (item, archived) in items.items():
        body = read_body(None, pdfs.get(product))
        yield record(item, raw=archived, page=pages.get(product), body=body)


def _file_name(part: RawPart) -> str:
    return PurePosixPath(part.archived.url).stem
