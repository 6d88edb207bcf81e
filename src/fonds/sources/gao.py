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

import html
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import Any, Final

from sqlalchemy import Column, Index, Table, Text

from fonds import ids
from fonds.citations.forms import bluebook_month
from fonds.errors import ParseError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Body,
    Discovery,
    Document,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.normalize.registry import get_normalizer
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.formats.days import day_in_washington, is_requested, printed_day
from fonds.sources.formats.feeds import (
    FeedItem,
    check_reach,
    from_params,
    newest,
    read_feed,
    to_params,
)
from fonds.sources.formats.html import by_class, canonical_address, read_page, text_of
from fonds.sources.formats.records import child_records, child_table, listing_of, normalized_body
from fonds.stores.columns import Timestamp, document_key, owned_by, texts
from fonds.stores.tables import metadata

# The page of a product, which alone has dates, topics, Fast Facts and recommendations.

PRODUCT: Final = re.compile(r"/products/([A-Za-z0-9][A-Za-z0-9.-]*)/?(?:[?#].*)?$")
_DATE: Final = r"\s*:?\s*([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2}),\s+(\d{4})"
_PUBLISHED: Final = re.compile(rf"(?<!Publicly )Published{_DATE}")
_RELEASED: Final = re.compile(rf"Released{_DATE}")
_TOPICS: Final = ("views-field-field-topic", "views-field-field-subject-term")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommendation:
    """One line of the table of recommendations."""

    agency: str | None
    recommendation: str
    status: str | None
    comments: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductPage:
    """The facts of one product page."""

    product: str
    address: str
    title: str | None
    published: date | None
    publicly_released: date | None
    fast_facts: str | None
    topics: tuple[str, ...]
    recommendations: tuple[Recommendation, ...]


def read_product_page(data: bytes) -> ProductPage:
    """The facts of a product page; any other page is refused."""
    root = read_page(data)
    address = canonical_address(root) or ""
    match = PRODUCT.search(address)
    if match is None:
        raise WrongContentError("an HTML page that is not the page of a GAO product")
    heading = next(root.iter("h1"), None)
    info = text_of(next(by_class(root, "block-post-title-info"), None)) or ""
    return ProductPage(
        product=match[1].upper(),
        address=address,
        title=text_of(heading),
        published=_day_of(_PUBLISHED.search(info)),
        publicly_released=_day_of(_RELEASED.search(info)),
        fast_facts=text_of(next(by_class(root, "field--name-field-fast-facts-description"), None)),
        topics=tuple(dict.fromkeys(_topics(root))),
        recommendations=tuple(_recommendations(root)),
    )


def _day_of(match: re.Match[str] | None) -> date | None:
    return printed_day(" ".join(match.groups()), "%b %d %Y") if match else None


def _topics(root: Any) -> Iterator[str]:
    for name in _TOPICS:
        for field in by_class(root, name):
            for topic in field.iter("a", "span"):
                if (words := text_of(topic)) and not len(topic):
                    yield words


def _recommendations(root: Any) -> Iterator[Recommendation]:
    for section in by_class(root, "js-endpoint-recommendations"):
        for row in section.iter("tr"):
            cells = list(row.iter("td"))
            # A heading row has no such cell; a row that spans the table is a remark.
            if len(cells) > 1 and (recommendation := text_of(cells[1])):
                status, *comments = _status(cells[2:]) or [None]
                yield Recommendation(
                    agency=text_of(cells[0]),
                    recommendation=recommendation,
                    status=status,
                    comments=" ".join(filter(None, comments)) or None,
                )


def _status(cells: list[Any]) -> list[str | None]:
    """The state of a recommendation, then GAO's remarks: blocks of a cell, or the cell itself."""
    blocks = [block for cell in cells for block in (list(cell) or [cell])]
    return [text_of(block) for block in blocks]


# The tables of reports, topics and recommendations.

gao_reports: Final = Table(
    "gao_reports",
    metadata,
    document_key("gao:GAO-26-107521, documents.id."),
    Column("product", Text, nullable=False, comment="GAO-26-107521, in capitals."),
    Column("title", Text, nullable=False, comment="As the feed has it, escapes undone."),
    *texts(
        link="The product's page, as the feed names it.",
        guid="As the feed has it: a path.",
        description="What GAO found and why it did the study, as plain text.",
    ),
    Column("pub_date", Timestamp, comment="pubDate of the feed."),
    *texts(
        published="ISO day the product is dated, from its page.",
        publicly_released="ISO day it was released to the public, from its page.",
        fast_facts="The short version for the public, from its page.",
        html_url="Where the full text is, if there is one.",
        pdf_url="Where the PDF is.",
    ),
    Index("ix_gao_reports_product", "product"),
    comment="Products of the Government Accountability Office.",
)

gao_topics: Final = child_table(
    "gao_topics",
    owned_by("gao_reports", "report_id"),
    Column("topic", Text, nullable=False, comment="Topic or subject term, as GAO words it."),
    comment="What a product is about, from its page and the feed's categories.",
)

gao_recommendations: Final = child_table(
    "gao_recommendations",
    owned_by("gao_reports", "report_id"),
    *texts(
        agency="The agency it is addressed to.",
        recommendation="What GAO recommends.",
        status="Open, Closed – Implemented, …",
        comments="What GAO says on its status.",
    ),
    comment="Recommendations of a product and what became of them, from its page.",
)

TABLES: Final = (gao_reports, gao_topics, gao_recommendations)
"""Parents before children."""


# How a product of the Government Accountability Office is cited.


def cite_gao(*, product: str, title: str, published: date | None) -> str:
    """`U.S. Gov't Accountability Off., GAO-25-107521, Title (Apr. 2025).`; undated without."""
    name = f"U.S. Gov't Accountability Off., {product}, {title.rstrip('.')}"
    return f"{name} ({bluebook_month(published)})." if published else f"{name}."


# From an entry of GAO's feed, a product page and a full text to rows and a document.

NAME: Final = "gao"
PUBLISHER: Final = "U.S. Government Accountability Office"
SITE: Final = "https://www.gao.gov"
FILES: Final = "https://files.gao.gov"

# The letters behind a product's number say what it is.
_KINDS: Final = {"T": "testimony", "R": "correspondence", "SP": "special_publication"}


def product_of(item: FeedItem) -> str:
    """The number of the product an entry announces: its link's last part, in capitals."""
    for address in (item.link, item.guid):
        if match := PRODUCT.search(address or ""):
            return match[1].upper()
    raise WrongContentError(f"an entry of the feed leads to no product: {item.link or item.title}")


def gao_id(product: str) -> str:
    """`gao:GAO-25-107521`."""
    return f"gao:{product.upper()}"


def html_address(product: str) -> str:
    """The address of a product's full text; the host insists on capitals."""
    return f"{FILES}/reports/{product.upper()}/index.html"


def pdf_address(product: str) -> str:
    """The address of a product's PDF; the host insists on small letters."""
    return f"{FILES}/assets/{product.lower()}.pdf"


def record(
    item: FeedItem, *, raw: Archived, page: ProductPage | None = None, body: Body | None = None
) -> ParsedRecord:
    """The rows of a product and the document it is, as far as its files tell."""
    product = product_of(item)
    key = gao_id(product)
    title = item.title or (page.title if page else None) or product
    row = {
        "id": key,
        "product": product,
        "title": title,
        "link": item.link,
        "guid": item.guid,
        "description": item.description,
        "pub_date": item.published,
        "html_url": html_address(product) if body and body.format == "html" else None,
        "pdf_url": pdf_address(product),
        **_page_columns(page),
    }
    return ParsedRecord(
        source=NAME,
        table=gao_reports.name,
        key=key,
        payload=row,
        children=tuple(_children(key, item, page)),
        document=_document(row, _day(item, page), raw, body),
    )


def read_body(text: RawPart | None, pdf: RawPart | None) -> Body | None:
    """The full text: the HTML where there is one, since it keeps headings and tables."""
    if text is not None:
        return normalized_body(text, "html", get_normalizer("html_article_v1"), text.archived.url)
    if pdf is None:
        return None
    if not pdf.data.startswith(b"%PDF-"):
        raise WrongContentError("not a PDF, although its address says so")
    return Body(archived=pdf.archived, format="pdf")


def _page_columns(page: ProductPage | None) -> dict[str, Any]:
    return {
        "published": page.published.isoformat() if page and page.published else None,
        "publicly_released": (
            page.publicly_released.isoformat() if page and page.publicly_released else None
        ),
        "fast_facts": page.fast_facts if page else None,
    }


def _children(key: str, item: FeedItem, page: ProductPage | None) -> Iterator[ParsedRecord]:
    topics = dict.fromkeys((*(page.topics if page else ()), *item.categories))
    yield from child_records(NAME, gao_topics, key, [{"topic": topic} for topic in topics])
    recommendations = [
        asdict(recommendation) for recommendation in (page.recommendations if page else ())
    ]
    yield from child_records(NAME, gao_recommendations, key, recommendations)


def _day(item: FeedItem, page: ProductPage | None) -> date | None:
    if item.published:
        return day_in_washington(item.published)
    return (page.publicly_released or page.published) if page else None


def _document(
    row: Mapping[str, Any], day: date | None, raw: Archived, body: Body | None
) -> Document:
    product, page = row["product"], f"{SITE}/products/{row['product'].lower()}"
    return Document(
        id=row["id"],
        source=NAME,
        kind=_kind(product),
        title=row["title"],
        summary=row["description"] or row["fast_facts"],
        source_url=page,
        source_org=PUBLISHER,
        published_at=day.isoformat() if day else None,
        citation_string=cite_gao(product=product, title=row["title"], published=day),
        raw=raw,
        body=body,
        aliases=(product, page, row["pdf_url"]),
    )


def _kind(product: str) -> str:
    if product.startswith("B-"):
        return "decision"
    return _KINDS.get(product.lstrip("GAOD").lstrip("-0123456789"), "report")


FEED: Final = f"{SITE}/rss/reports.xml"


class Gao:
    """The source `gao`."""

    info = SourceInfo(
        name=NAME,
        title="GAO reports",
        summary="reports and testimonies, in full",
        organisation=PUBLISHER,
        addresses=(FEED, f"{SITE}/products/", f"{FILES}/"),
        jurisdiction="United States",
        version="1.0.0",
        # The feed holds about two weeks; its own cache lives for an hour.
        schedule="25 7-19/4 * * *",
        rate=Rate(per_second=0.5, burst=2),
        tables=TABLES,
        at_least=10,
        fetch_concurrency=2,
        published_at="pubDate of the feed, as a day in Washington",
        csl_type="report",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The products of the feed, oldest first."""
        listing = await ask(FEED, path="rss/reports.xml")
        items = read_feed(listing.data).items
        if not items:
            raise SuspiciousYieldError("GAO's feed lists no product; it always has the newest 25")
        for item in reversed(items):
            if item.published is None or is_requested(day_in_washington(item.published), state):
                yield _task(item, listing.archived)
        if (newest_key := newest(items)) and not state.backfill:
            yield Watermark(last_seen_key=newest_key)
            check_reach(items, state.last_seen_key, "GAO's feed")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """A product as its entry, page and texts tell; loose files are known by their bytes."""
        if "item" in raw.task.params:
            yield _product(raw)
        yield from _together([part for part in raw.parts if part.name == ""])

    def pdf_names(self, part: RawPart) -> frozenset[str]:
        """The PDFs of the products that the feed or a page announces."""
        try:
            items = _announced(part)
        except ParseError:
            return frozenset()
        return frozenset(f"{product.lower()}.pdf" for product in items)


source: Final = Gao()


def _task(item: FeedItem, origin: Archived) -> FetchTask:
    product, params = product_of(item), {"item": to_params(item)}
    return FetchTask(
        source=NAME,
        key=gao_id(product),
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
    item = from_params(raw.task.params["item"])
    page = raw.part("page")
    facts = read_product_page(page.data) if page else None
    if facts and facts.product != product_of(item):
        raise WrongContentError(f"the page of {product_of(item)} describes {facts.product}")
    return record(
        item,
        raw=listing_of(raw.task),
        page=facts,
        body=read_body(raw.part("text"), raw.part("pdf")),
    )


def _together(parts: list[RawPart]) -> Iterator[ParsedRecord]:
    """The products of loose files; a page and a PDF named after a product join its entry."""
    items: dict[str, tuple[FeedItem, Archived]] = {}
    pages: dict[str, ProductPage] = {}
    pdfs: dict[str, RawPart] = {}
    for part in parts:
        if part.data.startswith(b"%PDF-"):
            pdfs[_file_name(part).upper()] = part
        elif _is_page(part):
            page = read_product_page(part.data)
            pages[page.product] = page
            items = {**_announced(part), **items}
        else:
            items |= _announced(part)
    for name in sorted(pdfs.keys() - items.keys()):
        item = _titled(pdfs[name])
        # A copy may have any name.
        pdfs[product_of(item)] = pdfs[name]
        items[product_of(item)] = (item, pdfs[name].archived)
    for product, (item, archived) in items.items():
        body = read_body(None, pdfs.get(product))
        yield record(item, raw=archived, page=pages.get(product), body=body)


def _announced(part: RawPart) -> dict[str, tuple[FeedItem, Archived]]:
    """The products of a feed, or the one of a page."""
    if _is_page(part):
        page = read_product_page(part.data)
        return {page.product: (FeedItem(title=page.title, link=page.address), part.archived)}
    return {product_of(item): (item, part.archived) for item in read_feed(part.data).items}


def _is_page(part: RawPart) -> bool:
    start = part.data[:1024].lstrip().lower()
    return b"<html" in start or start.startswith(b"<!doctype html")


_PDF_TITLE: Final = re.compile(
    rb"<dc:title>\s*<rdf:Alt>\s*<rdf:li[^>]*>\s*"
    rb"((?:GAO|GGD|HEHS|NSIAD|RCED)(?:/[A-Z]+)?-[0-9]{2}-[0-9]{1,6}[A-Z]*)\s*,\s*([^<]{1,1000}?)\s*</rdf:li>"
)
_PDF_AUTHOR: Final = re.compile(
    rb"<dc:creator>\s*<rdf:Seq>\s*<rdf:li[^>]*>\s*U\.S\. Government Accountability Office"
)


def _titled(pdf: RawPart) -> FeedItem:
    """The product of a PDF by its metadata: `GAO-06-1046, GRANTS MANAGEMENT: …`."""
    title = _PDF_TITLE.search(pdf.data)
    if title is None or not _PDF_AUTHOR.search(pdf.data):
        raise WrongContentError(
            "a PDF whose metadata name no product of GAO; the feed or the product's page says what "
            "it is: name one of them with it"
        )
    product, words = (html.unescape(text.decode("utf-8", "replace")) for text in title.groups())
    return FeedItem(title=" ".join(words.split()), link=f"{SITE}/products/{product.lower()}")


def _file_name(part: RawPart) -> str:
    return PurePosixPath(part.archived.url).stem
