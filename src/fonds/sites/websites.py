"""The websites that a library knows, and the strategies that work on them."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, func, select, update

from fonds.errors import UsageError
from fonds.seams import Clock
from fonds.sites.advice.strategy import Standing
from fonds.sites.models import PdfState, WebsiteConfiguration
from fonds.sites.source import Website
from fonds.sites.tables import site_addresses, websites
from fonds.stores.database import Database, upsert

FAILURES: Final = 20
"""The last ones, that are shown of a website."""


def remember(
    database: Database,
    configuration: WebsiteConfiguration,
    output: str,
    clock: Clock,
    *,
    rendered: bool = False,
) -> None:
    """Keep a website as it is configured now; its strategy stays, unless its address changed."""
    row = configuration.model_dump() | {
        "output": output,
        "rendered": rendered,
        "updated_at": clock.now(),
    }
    with database.write() as connection:
        held = websites.c.id == configuration.id
        address = connection.scalar(select(websites.c.base_url).where(held))
        if address is not None and address != configuration.base_url:
            connection.execute(update(websites).where(held).values(standing=None))
        upsert(connection, websites, [row])


def known_websites(database: Database) -> list[Website]:
    """All websites, by their ids."""
    with database.read() as connection:
        rows = connection.execute(select(websites).order_by(websites.c.id)).all()
    return [Website(_configuration(row)) for row in rows]


class Known(NamedTuple):
    """A website, and how it was crawled the last time."""

    website: Website
    output: str | None
    """Where its files went."""
    rendered: bool
    """Whether a browser rendered its pages."""


def get_website(database: Database, name: str) -> Known:
    """A website by its id."""
    with database.read() as connection:
        row = connection.execute(select(websites).where(websites.c.id == name)).one_or_none()
    if row is None:
        raise UsageError(f"the library knows no website {name!r}: `fonds site list` names them")
    return Known(Website(_configuration(row)), row.output, row.rendered)


def read_standing(database: Database, name: str) -> Standing | None:
    """The strategy in use on a website."""
    with database.read() as connection:
        held = connection.scalar(select(websites.c.standing).where(websites.c.id == name))
    return Standing.from_json(json.dumps(held)) if held else None


def write_standing(database: Database, name: str, standing: Standing | None, clock: Clock) -> None:
    """Keep the strategy in use on a website, or forget it."""
    values = {"standing": standing and json.loads(standing.to_json()), "updated_at": clock.now()}
    with database.write() as connection:
        connection.execute(update(websites).where(websites.c.id == name).values(values))


def _configuration(row: Row[Any]) -> WebsiteConfiguration:
    names = WebsiteConfiguration.model_fields
    return WebsiteConfiguration(**{name: getattr(row, name) for name in names})


def summaries(database: Database) -> list[dict[str, Any]]:
    """Each website, and how many pages and PDFs its last crawl saw."""
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
    """One website: its addresses by state, and what failed last."""
    website, output, rendered = get_website(database, name)
    table = site_addresses.c
    failed = select(table.url, table.kind, table.error, table.updated_at).where(
        table.website_id == name, table.error.is_not(None)
    )
    with database.read() as connection:
        counts = _counts(connection, name)
        failures = connection.execute(failed.order_by(table.updated_at.desc()).limit(FAILURES))
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
    """How many addresses there are of each website and kind, by state."""
    table = site_addresses.c
    query = select(table.website_id, table.kind, table.state, func.count().label("number"))
    if name is not None:
        query = query.where(table.website_id == name)
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for row in connection.execute(query.group_by(table.website_id, table.kind, table.state)):
        counts.setdefault((row.website_id, row.kind), {})[row.state] = row.number
    return counts
