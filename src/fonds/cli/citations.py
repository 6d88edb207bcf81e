"""Commands about citations: what cites what, and how a document is cited.

The command that says what changed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fonds.catalog.changes import MOST_CHANGES, ChangeFilter, DocumentChange, changes
from fonds.citations.export import bibtex, csl_json
from fonds.cli.output import (
    EXIT_INCOMPLETE,
    AsJson,
    AsUser,
    day,
    err,
    harmless,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.session import owner_named
from fonds.errors import UsageError
from fonds.library import Library
from fonds.runs.citations import BATCH_SIZE, Extracted, Watch
from fonds.search.filters import source_named
from fonds.sources.registry import csl_type
from fonds.stores import leases
from fonds.stores.citations import edges_from, edges_to
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_citation_queue

DocumentName = Annotated[
    str, typer.Argument(metavar="ID", help="An id, or another name, e.g. 91 FR 12345.")
]


class CitationFormat(StrEnum):
    """How `fonds cite` prints."""

    BLUEBOOK = "bluebook"
    CSL_JSON = "csl-json"
    BIBTEX = "bibtex"


def citations(
    context: typer.Context,
    *,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read so many documents at most.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the citations in documents that are new or changed, and link them.

    \b
    Examples: fonds citations
              fonds citations --limit 1000
    """
    with context.obj.library() as library, _progress(library, quiet=as_json) as watch:
        result = library.extract_citations(limit=limit, watch=watch)
    if as_json:
        print_json(result)
    else:
        out.print(said(result))
    unfinished = result.failed or result.given_up or (limit is None and result.waiting)
    raise typer.Exit(EXIT_INCOMPLETE if unfinished else 0)


def cites(
    context: typer.Context, name: DocumentName, *, as_user: AsUser = None, as_json: AsJson = False
) -> None:
    """Show what a document cites, and which of that is held.

    \b
    Examples: fonds cites fr:2026-00101
              fonds cites "91 FR 1201" --json
    """
    with context.obj.library() as library:
        owner = owner_named(library, as_user)
        document = library.document(name, owner=owner)
        with library.database.read() as connection:
            found = _by_target(edges_from(connection, document["id"], owner=owner))
        if not found:
            err.print(_why_nothing(library, document, "cites nothing that was recognised"))
    if as_json:
        print_json(found)
        return
    if found:
        print_table(
            ["target", "times", "as", "where", "held as"],
            [_cited_row(each) for each in found],
            prose=["where"],
        )


def cited_by(
    context: typer.Context,
    name: DocumentName,
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many citations.")] = 100,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Show which documents cite a document, and where.

    \b
    Examples: fonds cited-by fr:2026-00101
              fonds cited-by "Executive Order 14192" --json
    """
    with context.obj.library() as library:
        owner = owner_named(library, as_user)
        document = library.document(name, owner=owner)
        with library.database.read() as connection:
            found = _by_document(edges_to(connection, document["id"], limit, owner=owner))
        if not found:
            err.print(_why_nothing(library, document, "is cited by no document that is held"))
    if as_json:
        print_json(found)
        return
    for each in found:
        out.print(f"[bold]{safe(each['title'])}[/bold]  {each['document_id']}")
        for passage in each["passages"]:
            place = _place(passage["locator"])
            out.print(f"   {_one_line(passage['raw'])}{f'  {safe(place)}' if place else ''}")
        out.print(f"   [green]{safe(each['citation_string'])}[/green]\n")


def cite(
    context: typer.Context,
    name: DocumentName,
    *,
    format_: Annotated[
        CitationFormat, typer.Option("--format", help="Text to paste, or data for other programs.")
    ] = CitationFormat.BLUEBOOK,
    as_user: AsUser = None,
) -> None:
    """Print how a document is cited.

    \b
    Examples: fonds cite fr:2026-00101
              fonds cite fr:2026-00101 --format bibtex >> paper.bib
    """
    with context.obj.library() as library:
        document = library.document(name, owner=owner_named(library, as_user))
    if format_ is CitationFormat.CSL_JSON:
        print_json([csl_json(document, csl_type(document))])
        return
    if format_ is CitationFormat.BIBTEX:
        printed = bibtex(document, csl_type(document))
    else:
        printed = document["citation_string"]
    sys.stdout.write((harmless(printed) if sys.stdout.isatty() else printed) + "\n")


async def extract_in_steps(library: Library) -> None:
    """Read all that waits, in a thread of its own; stopping waits for a step, not for all."""
    while True:
        result = await asyncio.to_thread(library.extract_citations, limit=BATCH_SIZE)
        if result.done + result.failed < BATCH_SIZE:
            return


def said(result: Extracted) -> str:
    """What came of reading, in words."""
    words = f"{result.citations:,} citations in {result.done:,} documents"
    for number, word in (
        (result.linked, "linked"),
        (result.failed, "failed"),
        (result.waiting, "wait"),
        (result.given_up, "given up"),
    ):
        words += f", {number:,} {word}" if number else ""
    return words


@contextmanager
def _progress(library: Library, *, quiet: bool) -> Iterator[Watch | None]:
    if quiet or not err.is_terminal:
        yield None
        return
    with library.database.read() as connection:
        waiting = leases.depth(connection, ingestion_citation_queue)["waiting"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True) as display:
        line = display.add_task("citations", total=waiting)

        def draw(read: int, found: int) -> None:
            display.update(line, completed=read, description=f"{found:,} citations")

        yield draw


def _by_target(edges: Sequence[Any]) -> list[dict[str, Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for edge in edges:
        grouped[edge.target].append(edge)
    return [
        {
            "target": target,
            "kind": group[0].kind,
            "count": len(group),
            "document_id": group[0].to_document_id,
            "title": group[0].title,
            "citations": [_passage(edge) for edge in group],
        }
        for target, group in grouped.items()
    ]


def _by_document(edges: Sequence[Any]) -> list[dict[str, Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for edge in edges:
        grouped[edge.from_document_id].append(edge)
    return [
        {
            "document_id": document_id,
            "title": group[0].title,
            "published_at": group[0].published_at,
            "citation_string": group[0].citation_string,
            "count": len(group),
            "passages": [_passage(edge) for edge in group],
        }
        for document_id, group in grouped.items()
    ]


def _passage(edge: Any) -> dict[str, Any]:
    return {
        "raw": edge.raw,
        "pinpoint": edge.pinpoint,
        "start": edge.start,
        "end": edge.end,
        "locator": edge.locator,
    }


def _cited_row(each: dict[str, Any]) -> tuple[Any, ...]:
    first = each["citations"][0]
    return (
        safe(each["target"]),
        each["count"],
        _one_line(first["raw"]),
        safe(_place(first["locator"])) or None,
        each["document_id"] or "not held",
    )


def _one_line(raw: str) -> str:
    return safe(" ".join(raw.split()))


def _place(locator: dict[str, Any]) -> str:
    """The nearest heading and the page; the whole path is in the JSON."""
    heading = "".join(locator.get("heading_path", ())[-1:])
    page = f"p. {locator['page']}" if locator.get("page") else ""
    return ", ".join(part for part in (heading, page) if part)


def _why_nothing(library: Library, document: dict[str, Any], otherwise: str) -> str:
    with library.database.read() as connection:
        waiting = leases.depth(connection, ingestion_citation_queue)["waiting"]
    if waiting:
        return f"nothing yet: {waiting:,} documents wait to be read; `fonds citations` reads them"
    return f"{document['id']} {otherwise}"


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (citations, cites, cited_by, cite):
        app.command()(command)
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
        wanted = ChangeFilter(
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


def _all(database: Database, wanted: ChangeFilter, limit: int) -> tuple[list[DocumentChange], bool]:
    """As many as are wanted, page by page, and whether there are more."""
    found: list[DocumentChange] = []
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
