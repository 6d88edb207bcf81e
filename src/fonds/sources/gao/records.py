"""From an entry of GAO's feed, a product page and a full text to rows and a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.gao import cite_gao
from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord, RawPart
from fonds.normalize.registry import get_normalizer
from fonds.sources.families.feeds import WASHINGTON, FeedItem
from fonds.sources.gao import tables
from fonds.sources.gao.page import PRODUCT, ProductPage

NAME: Final = "gao"
PUBLISHER: Final = "U.S. Government Accountability Office"
SITE: Final = "https://www.gao.gov"
FILES: Final = "https://files.gao.gov"

# The letters behind a product's number say what it is.
_KINDS: Final = {"T": "testimony", "R": "correspondence", "SP": "special_publication"}


def product_of(item: FeedItem) -> str:
    """The number of the product an entry announces: its link's last part, in capitals."""
    for address in (item.link, item.guid):
        if found := PRODUCT.search(address or ""):
            return found[1].upper()
    raise WrongContentError(f"an entry of the feed leads to no product: {item.link or item.title}")


def html_address(product: str) -> str:
    """Where the full text of a product is; the host insists on capitals."""
    return f"{FILES}/reports/{product.upper()}/index.html"


def pdf_address(product: str) -> str:
    """Where the PDF of a product is; the host insists on small letters."""
    return f"{FILES}/assets/{product.lower()}.pdf"


def record(
    item: FeedItem, *, raw: Archived, page: ProductPage | None = None, body: Body | None = None
) -> ParsedRecord:
    """The rows of a product and the document it is, as far as its files tell."""
    product = product_of(item)
    key = ids.gao_id(product)
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
        table=tables.gao_reports.name,
        key=key,
        payload=row,
        children=tuple(_children(key, item, page)),
        document=_document(row, _day(item, page), raw, body),
    )


def read_body(text: RawPart | None, pdf: RawPart | None) -> Body | None:
    """The full text: the HTML where there is one, since it keeps headings and tables."""
    if text is not None:
        normalizer = get_normalizer("html_article_v1")
        return Body(
            archived=text.archived,
            format="html",
            normalizer=normalizer.label,
            normalized=normalizer.to_markdown(text.data, text.archived.url),
        )
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
    yield from _below(tables.gao_topics.name, key, [{"topic": topic} for topic in topics])
    recommendations = [asdict(one) for one in (page.recommendations if page else ())]
    yield from _below(tables.gao_recommendations.name, key, recommendations)


def _below(table: str, key: str, rows: list[dict[str, Any]]) -> Iterator[ParsedRecord]:
    for place, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=NAME,
            table=table,
            key=f"{key}#{table}/{place}",
            payload={"report_id": key, "ord": place, **row},
        )


def _day(item: FeedItem, page: ProductPage | None) -> date | None:
    if item.published:
        return item.published.astimezone(WASHINGTON).date()
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
