"""Commands that parse files, make texts and passages, search and show documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.text import Text
from sqlalchemy import select

from fonds.chunk.chunker import Chunker
from fonds.cli.output import (
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    AsJson,
    AsUser,
    Since,
    SourceName,
    Until,
    day,
    err,
    harmless,
    out,
    print_json,
    safe,
    to_json_value,
)
from fonds.cli.session import find_owner
from fonds.engine.readers import ReaderPool
from fonds.errors import ParseError, UsageError
from fonds.library import Library
from fonds.model import Archived, FetchTask, NormalizedBody, ParsedRecord, Raw, RawPart
from fonds.normalize.registry import (
    NormalizerInput,
    get_normalizer,
    read_text,
    sniff,
    text_of_json,
)
from fonds.results import Citation, Reading, RetrievedPassage
from fonds.search.filters import require_source
from fonds.search.query import read_query
from fonds.search.snippet import highlights
from fonds.settings import Settings
from fonds.sources.base import Source
from fonds.sources.registry import SourceRegistry
from fonds.stores.documents import body_map, visible_to
from fonds.stores.passages import chunk_meta
from fonds.stores.tables import documents

if TYPE_CHECKING:
    from fonds.results import RetrievalResult


def parse(
    source: SourceName,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Raw files as served by the publisher.")
    ],
) -> None:
    """Parse raw files and print their records as JSON lines.

    Uses neither network nor library. Files that differ only in their suffix are parsed together.

    \b
    Example: fonds parse federal_register 2026-00101.json 2026-00101.xml
    """
    parser = SourceRegistry().parser(source)
    failed = False
    for _, group in groupby(sorted(files), key=lambda path: path.with_suffix("")):
        paths = list(group)
        try:
            for record in _records(parser, paths):
                sys.stdout.write(json.dumps(to_json_value(record), ensure_ascii=False) + "\n")
        except ParseError as error:
            failed = True
            names = ", ".join(str(path) for path in paths)
            err.print(f"error: {names}: {error}", style="red", markup=False)
    raise typer.Exit(EXIT_FAILED if failed else 0)


def show(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An id, or another name, e.g. 91 FR 12345.")
    ],
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print only the text.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print only the bytes that the publisher served.")
    ] = False,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Show one document.

    \b
    Examples: fonds show fr:2026-00101
              fonds show "91 FR 1201" --markdown
              fonds show "42 USC 1396a" --raw
    """
    with context.obj.library() as library:
        document = library.document(name, owner=find_owner(library, as_user))
        if raw:
            sys.stdout.buffer.write(library.raw(document))
            return
    if as_json:
        print_json({**document, "citation": Citation.of(document)})
        return
    if not markdown:
        _print_header(document)
    text = document["body_text"] or document["summary"] or ""
    sys.stdout.write((harmless(text) if sys.stdout.isatty() else text) + "\n")


class Mode(StrEnum):
    """A search mode: by words, by vectors, or by both."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY")],
    *,
    source: Annotated[list[str] | None, typer.Option(help="Only this source; repeatable.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only this kind of document; repeatable.")
    ] = None,
    org: Annotated[
        list[str] | None,
        typer.Option(help="Only organisations whose name contains this; repeatable."),
    ] = None,
    since: Since = None,
    until: Until = None,
    under: Annotated[
        str | None, typer.Option(help="Only sections below: usc/2024/root/title-42.")
    ] = None,
    edition: Annotated[
        str | None, typer.Option(help="Search this edition of a code; default: the newest.")
    ] = None,
    document: Annotated[
        str | None,
        typer.Option("--in", help="Search inside this document: an id or another name."),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="By words, by vectors, or both; default: both if there are vectors."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Skip the first N results.")] = 0,
    per_document: Annotated[
        int, typer.Option(min=1, help="Maximum number of passages of one document.")
    ] = 3,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Find passages, each with its citation.

    Quotation marks search for a phrase, a minus sign excludes a word, and source:, kind:, org:,
    title:, since:, until:, under: and edition: filter as the options do. A query that is a citation
    finds its document.

    \b
    Examples: fonds search "overtime salary threshold"
              fonds search "lead in drinking water" --source federal_register --since 2026-01-01
              fonds search '"salary threshold" -teachers kind:rule'
              fonds search "42 USC 1396a"
              fonds search "flood damage" --as maria --source uploads
              fonds search "waiting period" --as maria --in upload:0b5c9f52-…
    """
    with context.obj.library() as library:
        results = library.search(
            query,
            sources=[require_source(name, library.sources) for name in source or []],
            kinds=kind or (),
            organizations=org or (),
            since=day(since),
            until=day(until),
            under=under,
            edition=edition,
            document=document,
            mode=mode and mode.value,
            limit=limit,
            offset=offset,
            per_document=per_document,
            owner=(owner := find_owner(library, as_user)),
        )
        if not results:
            err.print(f"nothing found{_hint_if_empty(library, owner)}", markup=False)
    if as_json:
        print_json(results)
        return
    print_results(results, query, after=offset)


def print_results(results: list[RetrievalResult], query: str, *, after: int = 0) -> None:
    """Print results with title, passage, and a citation to paste."""
    terms = read_query(query).search_terms
    for number, result in enumerate(results, start=after + 1):
        citation = result.citation
        out.print(f"[bold]{number}. {safe(citation.title)}[/bold]")
        passages: Sequence[RetrievalResult | RetrievedPassage] = result.passages or [result]
        for passage in passages:
            _print_passage(passage, citation.title, terms)
        if result.more_passages:
            more = f"{result.more_passages} more with --in {result.id} or --per-document"
            out.print(f"   {safe(more)}", style="dim")
        out.print(f"   [green]{safe(citation.citation_string)}[/green]  {result.id}")
        out.print(f"   {safe(citation.url)}\n", style="dim")


def _print_passage(
    passage: RetrievalResult | RetrievedPassage, title: str, terms: Sequence[str]
) -> None:
    locator = passage.locator if isinstance(passage, RetrievedPassage) else passage.citation.locator
    if locator:
        headings = locator.heading_path
        path = " › ".join(headings[1:] if headings[:1] == [title] else headings)
        if location := ", ".join(part for part in (path, locator.page_reference) if part):
            out.print(f"   {safe(location)}", style="dim")
    out.print(Text("   ").append_text(_highlight(harmless(passage.snippet), terms)))


def _highlight(snippet: str, terms: Sequence[str]) -> Text:
    text = Text(snippet)
    for start, end in highlights(snippet, terms):
        text.stylize("bold yellow", start, end)
    return text


def _hint_if_empty(library: Library, owner: UUID | None) -> str:
    visible = select(documents.c.id).where(visible_to(owner)).limit(1)
    with library.database.read() as connection:
        if connection.scalar(visible) is not None:
            return ""
        has_uploads = connection.scalar(select(documents.c.id).limit(1)) is not None
    if has_uploads:
        return ": the library has only uploads, which their users search with `--as USER`"
    home = library.settings.home
    return f": the library in {home} is empty; fill it with `fonds bootstrap`"


def _records(source: Source, paths: list[Path]) -> Iterator[ParsedRecord]:
    task = FetchTask(source=source.info.name, key=paths[0].name, parts=())
    raw = Raw(task=task, parts=tuple(_raw_part(path) for path in paths))
    for item in source.parse(raw):
        if isinstance(item, ParsedRecord):
            yield item


def _raw_part(path: Path) -> RawPart:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    archived = Archived(
        url=path.name,
        key=path.name,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        # The date of the file, so that the same file gives the same records.
        retrieved_at=datetime.fromtimestamp(int(path.stat().st_mtime), UTC),
    )
    return RawPart(name="", archived=archived, data=data)


def _print_header(document: dict[str, Any]) -> None:
    fields = {
        "id": document["id"],
        "cite": document["citation_string"],
        "summary": document["summary"] if document["source"].startswith("site-") else None,
        "publisher": document["source_org"],
        "published": document["published_at"],
        "page": document["source_url"],
        "retrieved": document["retrieved_at"].isoformat(),
        "raw": f"{document['raw_path'] or 'not here'} (sha256 {document['raw_sha256'][:16]}…)",
        "body": document["body_raw_path"] != document["raw_path"] and document["body_raw_path"],
        "withdrawn": document["gone_at"] and document["gone_at"].isoformat(),
        "bundle": document["bundle"],
    }
    out.print(f"[bold]{safe(document['title'])}[/bold]")
    for name, value in fields.items():
        if value:
            out.print(f"  {name:10} {safe(str(value))}")
    out.print()


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    commands: tuple[Callable[..., None], ...] = (
        parse,
        show,
        search,
        normalize,
        renormalize,
        chunk,
    )
    for command in commands:
        app.command()(command)


def normalize(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]")] = None,
    *,
    format_: Annotated[
        str, typer.Option("--format", help="Name of a normalizer, e.g. uslm_v1; auto detects it.")
    ] = "auto",
    drain_queue: Annotated[bool, typer.Option("--drain", help="Convert all queued files.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes for --drain.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Convert a file to Markdown, or all queued files.

    \b
    Examples: fonds normalize report.pdf > report.md
              fonds normalize --drain --workers 2
    """
    if (file is None) != drain_queue:
        raise UsageError("pass either a file or --drain")
    if file is not None:
        _normalize_file(file, format_, context.obj.settings(), as_json=as_json)
        return
    with context.obj.library() as library:
        result = library.normalize_queued(workers=workers)
    if as_json:
        print_json(result)
    else:
        out.print(f"{result.done} converted, {result.failed} failed, {result.waiting} queued")
    raise typer.Exit(EXIT_INCOMPLETE if result.failed or result.waiting else 0)


def renormalize(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    normalizer: Annotated[
        str | None, typer.Option(help="Only texts made by this normalizer.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert texts again whose normalizer has changed.

    The raw files are read from the blob store; nothing is fetched.

    \b
    Example: fonds renormalize --normalizer fr_xml_v1
    """
    with context.obj.library() as library:
        result = library.renormalize(source=source, normalizer=normalizer)
    if as_json:
        print_json(result)
    else:
        out.print(
            f"{result.checked} were out of date, {result.changed} changed, {result.failed} failed"
        )
    raise typer.Exit(EXIT_INCOMPLETE if result.failed else 0)


def chunk(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE.md")],
    *,
    as_json: AsJson = False,
) -> None:
    """Split Markdown into passages, as loading does.

    \b
    Example: fonds chunk report.md --json
    """
    settings = context.obj.settings()
    chunker = Chunker(max_tokens=settings.chunk_tokens, overlap_tokens=settings.chunk_overlap)
    chunks = chunker.chunk(NormalizedBody(markdown=_read(file).decode("utf-8", "replace")))
    if as_json:
        print_json([{"chunk_ord": c.ordinal, "text": c.text, **chunk_meta(c)} for c in chunks])
        return
    for passage in chunks:
        headings = " › ".join(passage.heading_path)
        out.print(f"[bold]{passage.ordinal}[/bold] {passage.tokens} tokens  {safe(headings)}")
        out.print(f"{safe(passage.text)}\n")


def _normalize_file(file: Path, format_: str, settings: Settings, *, as_json: bool) -> None:
    data = _read(file)
    normalizer = get_normalizer(sniff(data) if format_ == "auto" else format_)
    work = NormalizerInput(normalizer=normalizer.name, data=data, address=None)
    with ReaderPool(
        workers=1, seconds=settings.read_seconds, memory_mib=settings.read_memory_mib
    ) as readers:
        result = text_of_json(readers.read_now(read_text, work))
    if as_json:
        reading = Reading.of(body_map(result))
        print_json({"normalizer": normalizer.label, "reading": reading, "body": result})
        return
    sys.stdout.write(result.markdown + "\n")
    reading = Reading.of(body_map(result)) or Reading()
    if reading.summary:
        err.print(reading.summary, markup=False)
    for warning in reading.warnings:
        err.print(f"warning: {warning}", markup=False)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
