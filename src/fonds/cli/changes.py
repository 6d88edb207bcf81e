"""The command that says what changed."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Annotated

import typer

from fonds.catalog.changes import MOST_CHANGES, Change, Wanted, changes
from fonds.cli.options import AsJson, AsUser, day
from fonds.cli.output import err, print_json, print_table, safe
from fonds.cli.session import owner_named
from fonds.errors import UsageError
from fonds.search.filters import source_named
from fonds.stores.database import Database


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command("changes")(show_changes)


def show_changes(
    context: typer.Context,
    *,
    since: Annotated[
        str, typer.Option(metavar="DATE", help="A day, or a moment of UTC: 2026-01-31T12:00.")
    ],
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    under: Annotated[
        str | None,
        typer.Option(help="Only below: usc/119-36/root/title-42, or usc/title-42 in all editions."),
    ] = None,
    reprints: Annotated[
        bool,
        typer.Option("--reprints", help="With sections that only came again, in another edition."),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 100,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Show what was added, changed and withdrawn, the newest first.

    \b
    Examples: fonds changes --since 2026-01-31
              fonds changes --since 2026-01-31 --source federal_register
              fonds changes --since 2026-01-01 --under usc/title-42 --json
    """
    with context.obj.library() as library:
        wanted = Wanted(
            since=_moment(since),
            source=source_named(source) if source else None,
            under=under,
            owner=owner_named(library, as_user),
            newest_first=True,
            reprints=reprints,
        )
        found, goes_on = _all(library.database, wanted, limit)
    if as_json:
        print_json(found)
    elif found:
        print_table(
            ["when", "what", "id", "title"],
            [(one.at, one.what, safe(one.id), safe(one.title)) for one in found],
            prose=["title"],
        )
    if not found:
        err.print("nothing changed")
    elif goes_on:
        err.print(f"there are more than these {len(found):,}; --limit shows more")


def _all(database: Database, wanted: Wanted, limit: int) -> tuple[list[Change], bool]:
    """As many as are wanted, page by page, and whether there are more."""
    found: list[Change] = []
    cursor = None
    while len(found) < limit:
        at_once = min(limit - len(found), MOST_CHANGES)
        page = changes(database, wanted, limit=at_once, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found, False
    return found, True


def _moment(text: str) -> datetime:
    """A day begins at midnight in UTC; a moment without a zone is one of UTC."""
    if "T" not in text and " " not in text:
        known = day(text)
        if known is None:
            raise UsageError("--since takes a day such as 2026-01-31")
        return datetime.combine(known, time(), UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a day or a moment such as 2026-01-31T12:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
