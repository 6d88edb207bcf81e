"""A website as a source: each of its PDFs is a document.

The websites of a library, and the strategies in use on them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, func, select, update

from fonds import ids
from fonds.errors import MalformedError, UsageError
from fonds.model import Body, Discovery, Document, FetchTask, ParsedRecord, Part, Raw, SourceState
from fonds.seams import Clock
from fonds.sites.filenames import original_name
from fonds.sites.frontier import Listed
from fonds.sites.models import PdfState, WebsiteConfiguration
from fonds.sites.strategy import StrategyHealth
from fonds.sites.tables import TABLES, site_addresses, site_files, websites
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.stores.database import Database, repeatable, upsert

VERSION: Final = "1.0.0"
SCHEDULES: Final = {
    "daily": "15 2 * * *",
    "weekly": "15 2 * * 0",
    "monthly": "15 2 1 * *",
    "quarterly": "15 2 1 1,4,7,10 *",
    "yearly": "15 2 1 1 *",
}
"""When a website with this `crawl_frequency` is crawled by the scheduler."""

PDF: Final = "pdf"
_MIN_TITLE: Final = 6


@dataclass(frozen=True, slots=True)
class Website:
    """The source `site-<id>`: what its PDFs become. Its pages are crawled in a session."""

    configuration: WebsiteConfiguration
    info: SourceInfo = field(init=False)

    def __post_init__(self) -> None:
        info = SourceInfo(
            name=ids.site_source(self.configuration.id),
            title=self.configuration.name,
            organisation=self.configuration.name,
            version=VERSION,
            schedule=_schedule_of(self.configuration),
            rate=Rate(per_second=2.0),
            tables=TABLES,
            published_at="not available: pages seldom state when a report was published",
        )
        object.__setattr__(self, "info", info)

    def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:  # noqa: ARG002 — as of any source
        """Raise UsageError: the PDFs of a website are listed by a crawl session."""
        raise UsageError(f"{self.info.name} is a website. Crawl it with `fonds crawl`.")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The document of a PDF."""
        if raw.part(PDF) is None:
            raise MalformedError(f"{raw.task.key} was fetched without its PDF")
        yield self._record(raw)

    def task_of(self, listed: Listed) -> FetchTask:
        """The task of a PDF on a page."""
        key = ids.site_file_id(self.configuration.id, listed.url)
        path = f"pdfs/{key.rpartition('/')[2]}.pdf"
        params: dict[str, Any] = {
            "text": listed.text,
            "organization": listed.organization,
            "period": listed.period,
            "found_on": listed.found_on,
            **({"guesses": list(listed.guesses)} if listed.guesses else {}),
        }
        return FetchTask(
            source=self.info.name,
            key=key,
            parts=(Part(name=PDF, url=listed.url, path=path),),
            params=params,
            origin=listed.origin,
        )

    def _record(self, raw: Raw) -> ParsedRecord:
        pdf, params = raw.parts[0].archived, raw.task.params
        title, is_guess = title_of(pdf.url, params)
        guesses = [*params.get("guesses", ()), *(["title"] if is_guess else [])]
        payload = {
            "id": raw.task.key,
            "website_id": self.configuration.id,
            "url": pdf.url,
            "found_on": params.get("found_on"),
            "link_text": params.get("text"),
            "organization": params.get("organization"),
            "period": params.get("period"),
            "guesses": " ".join(guesses) or None,
            "sha256": pdf.sha256,
            "size": pdf.size,
        }
        return ParsedRecord(
            source=self.info.name,
            table=site_files.name,
            key=raw.task.key,
            payload=payload,
            document=self._document(raw, title, guesses),
        )

    def _document(self, raw: Raw, title: str, guesses: Sequence[str]) -> Document:
        pdf, params = raw.parts[0].archived, raw.task.params
        office = self.configuration.name
        fields = {name: params.get(name) for name in ("organization", "period")}
        sure = {name: text for name, text in fields.items() if name not in guesses}
        cited_title = None if "title" in guesses else title
        parts = (sure.get("organization"), cited_title, sure.get("period"), office, pdf.url)
        return Document(
            id=raw.task.key,
            source=self.info.name,
            kind="report",
            title=title,
            summary=_summary_of({name: fields[name] for name in fields if name in guesses}),
            source_url=pdf.url,
            source_org=office,
            citation_string=", ".join(dict.fromkeys(filter(None, parts))),
            raw=pdf,
            body=Body(archived=pdf, format="pdf"),
        )


def _schedule_of(website: WebsiteConfiguration) -> str | None:
    frequency = (website.crawl_frequency or "").lower()
    return SCHEDULES.get(frequency) if website.enabled else None


def _summary_of(guesses: Mapping[str, str | None]) -> str | None:
    """The guesses about a report, called so; they are in no citation."""
    fields = [f"{name} {text}" for name, text in guesses.items() if text]
    return f"Guessed from the website, not stated by it: {', '.join(fields)}." if fields else None


def title_of(url: str, params: Mapping[str, Any]) -> tuple[str, bool]:
    """The title of a PDF, and whether it is a guess.

    It is the text of its link if that is informative; else its file name, which is called so.
    """
    text = str(params.get("text") or "").strip()
    is_informative = len(text) >= _MIN_TITLE and not text.lower().startswith(("http", "pdf"))
    return (text, False) if is_informative else (f"{original_name(url)} (file name)", True)


MAX_FAILURES: Final = 20
"""The last failures of a website, which are displayed."""


@repeatable
def save_website(
    database: Database,
    configuration: WebsiteConfiguration,
    output: str,
    clock: Clock,
    *,
    rendered: bool = False,
) -> None:
    """Store a website as it is configured; its strategy stays, unless its address changed."""
    row = configuration.model_dump() | {
        "output": output,
        "rendered": rendered,
        "updated_at": clock.now(),
    }
    with database.write() as connection:
        is_website = websites.c.id == configuration.id
        address = connection.scalar(select(websites.c.base_url).where(is_website))
        if address is not None and address != configuration.base_url:
            connection.execute(update(websites).where(is_website).values(standing=None))
        upsert(connection, websites, [row])


@repeatable
def read_websites(database: Database) -> list[Website]:
    """All websites, by their ids."""
    with database.read() as connection:
        rows = connection.execute(select(websites).order_by(websites.c.id)).all()
    return [Website(_configuration(row)) for row in rows]


class StoredWebsite(NamedTuple):
    """A website, and how it was crawled last."""

    website: Website
    output: str | None
    """The address of its output."""
    rendered: bool
    """Whether a browser rendered its pages."""


def get_website(database: Database, name: str) -> StoredWebsite:
    """A website by its id."""
    with database.read() as connection:
        row = connection.execute(select(websites).where(websites.c.id == name)).one_or_none()
    if row is None:
        raise UsageError(f"The library has no website {name!r}. `fonds site list` lists them.")
    return StoredWebsite(Website(_configuration(row)), row.output, row.rendered)


@repeatable
def read_health(database: Database, name: str) -> StrategyHealth | None:
    """The strategy in use on a website."""
    with database.read() as connection:
        fields = connection.scalar(select(websites.c.standing).where(websites.c.id == name))
    return StrategyHealth.from_json(json.dumps(fields)) if fields else None


@repeatable
def write_health(
    database: Database, name: str, health: StrategyHealth | None, clock: Clock
) -> None:
    """Store the strategy in use on a website, or delete it."""
    values = {"standing": health and json.loads(health.to_json()), "updated_at": clock.now()}
    with database.write() as connection:
        connection.execute(update(websites).where(websites.c.id == name).values(values))


def _configuration(row: Row[Any]) -> WebsiteConfiguration:
    names = WebsiteConfiguration.model_fields
    return WebsiteConfiguration(**{name: getattr(row, name) for name in names})


def summaries(database: Database) -> list[dict[str, Any]]:
    """Each website, with the numbers of pages and PDFs of its last crawl."""
    with database.read() as connection:
        rows = connection.execute(select(websites).order_by(websites.c.id)).all()
        counts = _counts(connection)
    return [
        {
            "id": row.id,
            "name": row.name,
            "base_url": row.base_url,
            "enabled": row.enabled,
            "pages": sum(counts.get((row.id, "page"), {}).values()),
            "pdfs": sum(counts.get((row.id, "pdf"), {}).values()),
            "failed": counts.get((row.id, "pdf"), {}).get(PdfState.FAILED, 0),
            "strategy_state": row.standing and row.standing["state"],
        }
        for row in rows
    ]


def details(database: Database, name: str) -> dict[str, Any]:
    """One website: its addresses by state, and its last failures."""
    website, output, rendered = get_website(database, name)
    table = site_addresses.c
    failed = select(table.url, table.kind, table.error, table.updated_at).where(
        table.website_id == name, table.error.is_not(None)
    )
    with database.read() as connection:
        counts = _counts(connection, name)
        failures = connection.execute(failed.order_by(table.updated_at.desc()).limit(MAX_FAILURES))
        return {
            **website.configuration.model_dump(),
            "source": website.info.name,
            "output": output,
            "rendered": rendered,
            "pages": counts.get((name, "page"), {}),
            "pdfs": counts.get((name, "pdf"), {}),
            "failures": [row._asdict() for row in failures],
        }


def _counts(
    connection: Connection, name: str | None = None
) -> dict[tuple[str, str], dict[str, int]]:
    """The number of addresses of each website and kind, by state."""
    table = site_addresses.c
    query = select(table.website_id, table.kind, table.state, func.count().label("number"))
    if name is not None:
        query = query.where(table.website_id == name)
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for row in connection.execute(query.group_by(table.website_id, table.kind, table.state)):
        counts.setdefault((row.website_id, row.kind), {})[row.state] = row.number
    return counts
