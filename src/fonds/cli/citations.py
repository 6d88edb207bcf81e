"""Commands about citations, and the command that lists changes."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fonds.catalog.changes import MAX_CHANGES, ChangeFilter, DocumentChange, changes, utc_time
from fonds.citations.export import bibtex, csl_json
from fonds.cli.output import (
    EXIT_INCOMPLETE,
    AsJson,
    AsUser,
    err,
    harmless,
    out,
    print_json,
    print_table,
    safe,
)
from fonds.cli.session import find_owner
from fonds.errors import UsageError
from fonds.library import Library
from fonds.results import page_reference
from fonds.runs.citations import Extracted, Watch
from fonds.search.filters import require_source
from fonds.stores import leases
from fonds.stores.citations import edges_from, edges_to
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_citation_queue

DocumentName = Annotated[
    str, typer.Argument(metavar="ID", help="An id, or another name, e.g. 91 FR 12345.")
]


class CitationFormat(StrEnum):
    """A format of `fonds cite`."""

    BLUEBOOK = "bluebook"
    CSL_JSON = "csl-json"
    BIBTEX = "bibtex"


def citations(
    context: typer.Context,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of documents.")] = None,
    as_json: AsJson = False,
) -> None:
    """Extract the citations of new and changed documents.

    Each citation is linked to the cited document, if it is in the library.

    \b
    Examples: fonds citations
              fonds citations --limit 1000
    """
    with context.obj.library() as library, _progress(library, quiet=as_json) as watch:
        result = library.extract_citations(limit=limit, watch=watch)
    if as_json:
        print_json(result)
    else:
        out.print(summarize(result))
    unfinished = result.failed or result.given_up or (limit is None and result.waiting)
    raise typer.Exit(EXIT_INCOMPLETE if unfinished else 0)


def cites(
    context: typer.Context, name: DocumentName, *, as_user: AsUser = None, as_json: AsJson = False
) -> None:
    """List what a document cites.

    Cited documents that are in the library are listed with their id.

    \b
    Examples: fonds cites fr:2026-00101
              fonds cites "91 FR 1201" --json
    """
    with context.obj.library() as library:
        owner = find_owner(library, as_user)
        document = library.document(name, owner=owner)
        with library.database.read() as connection:
            targets = _by_target(edges_from(connection, document["id"], owner=owner))
        if not targets:
            err.print(_explain_none(library, document, "has no recognised citations"))
    if as_json:
        print_json(targets)
        return
    if targets:
        print_table(
            ["target", "times", "as", "where", "in library as"],
            [_target_row(target) for target in targets],
            prose=["where"],
        )


def cited_by(
    context: typer.Context,
    name: DocumentName,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of citations.")] = 100,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """List the documents that cite a document, and where.

    \b
    Examples: fonds cited-by fr:2026-00101
              fonds cited-by "Executive Order 14192" --json
    """
    with context.obj.library() as library:
        owner = find_owner(library, as_user)
        document = library.document(name, owner=owner)
        with library.database.read() as connection:
            citing = _by_document(edges_to(connection, document["id"], limit, owner=owner))
        if not citing:
            err.print(
                _explain_none(library, document, "is not cited by any document in the library")
            )
    if as_json:
        print_json(citing)
        return
    for citer in citing:
        out.print(f"[bold]{safe(citer['title'])}[/bold]  {citer['document_id']}")
        for passage in citer["passages"]:
            location = _location(passage["locator"])
            out.print(f"   {_one_line(passage['raw'])}{f'  {safe(location)}' if location else ''}")
        out.print(f"   [green]{safe(citer['citation_string'])}[/green]\n")


def cite(
    context: typer.Context,
    name: DocumentName,
    *,
    format_: Annotated[
        CitationFormat,
        typer.Option("--format", help="Text to paste, or a record for other programs."),
    ] = CitationFormat.BLUEBOOK,
    as_user: AsUser = None,
) -> None:
    """Print how a document is cited.

    \b
    Examples: fonds cite fr:2026-00101
              fonds cite fr:2026-00101 --format bibtex >> paper.bib
    """
    with context.obj.library() as library:
        document = library.document(name, owner=find_owner(library, as_user))
    if format_ is CitationFormat.CSL_JSON:
        print_json([csl_json(document, library.sources.csl_type(document))])
        return
    if format_ is CitationFormat.BIBTEX:
        text = bibtex(document, library.sources.csl_type(document))
    else:
        text = document["citation_string"]
    sys.stdout.write((harmless(text) if sys.stdout.isatty() else text) + "\n")


def summarize(result: Extracted) -> str:
    """The result of an extraction in one line."""
    summary = f"{result.citations:,} citations in {result.done:,} documents"
    for number, label in (
        (result.linked, "linked"),
        (result.failed, "failed"),
        (result.waiting, "queued"),
        (result.given_up, "given up"),
    ):
        summary += f", {number:,} {label}" if number else ""
    return summary


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

        def draw(documents: int, citations: int) -> None:
            display.update(line, completed=documents, description=f"{citations:,} citations")

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


def _target_row(target: dict[str, Any]) -> tuple[Any, ...]:
    first = target["citations"][0]
    return (
        safe(target["target"]),
        target["count"],
        _one_line(first["raw"]),
        safe(_location(first["locator"])) or None,
        target["document_id"] or "not in the library",
    )


def _one_line(raw: str) -> str:
    return safe(" ".join(raw.split()))


def _location(locator: dict[str, Any]) -> str:
    """The nearest heading and the page; the JSON output has the whole path."""
    heading = "".join(locator.get("heading_path", ())[-1:])
    page = page_reference(locator.get("page"), locator.get("pdf_page"))
    return ", ".join(part for part in (heading, page) if part)


def _explain_none(library: Library, document: dict[str, Any], otherwise: str) -> str:
    with library.database.read() as connection:
        waiting = leases.depth(connection, ingestion_citation_queue)["waiting"]
    if waiting:
        return f"none yet: {waiting:,} documents are queued; process them with `fonds citations`"
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
        str, typer.Option(metavar="DATE", help="A day, or a time in UTC: 2026-01-31T12:00.")
    ],
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    under: Annotated[
        str | None,
        typer.Option(help="Only below: usc/119-36/root/title-42, or usc/title-42 in all editions."),
    ] = None,
    reprints: Annotated[
        bool,
        typer.Option("--reprints", help="Include sections repeated unchanged in a newer edition."),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number.")] = 100,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """List what was added, changed and withdrawn, newest first.

    \b
    Examples: fonds changes --since 2026-01-31
              fonds changes --since 2026-01-31 --source federal_register
              fonds changes --since 2026-01-01 --under usc/title-42 --json
    """
    with context.obj.library() as library:
        filters = ChangeFilter(
            since=_timestamp(since),
            source=require_source(source, library.sources) if source else None,
            under=under,
            owner=find_owner(library, as_user),
            newest_first=True,
            reprints=reprints,
        )
        listed, has_more = _read_changes(library.database, filters, limit)
    if as_json:
        print_json(listed)
    elif listed:
        print_table(
            ["when", "what", "id", "title"],
            [(change.at, change.what, safe(change.id), safe(change.title)) for change in listed],
            prose=["title"],
        )
    if not listed:
        err.print("no changes")
    elif has_more:
        err.print(f"more than {len(listed):,} changes; raise --limit to list more")


def _read_changes(
    database: Database, filters: ChangeFilter, limit: int
) -> tuple[list[DocumentChange], bool]:
    """Up to `limit` changes, page by page, and whether there are more."""
    listed: list[DocumentChange] = []
    cursor = None
    while len(listed) < limit:
        page_size = min(limit - len(listed), MAX_CHANGES)
        page = changes(database, filters, limit=page_size, cursor=cursor)
        listed += page.items
        cursor = page.next_cursor
        if cursor is None:
            return listed, False
    return listed, True


def _timestamp(text: str) -> datetime:
    try:
        return utc_time(datetime.fromisoformat(text))
    except ValueError:
        raise UsageError(f"{text!r} is not a day or time such as 2026-01-31T12:00") from None
