"""Commands about bodies: bytes to Markdown, Markdown to passages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fonds.chunk.splitter import Chunker
from fonds.cli.options import EXIT_INCOMPLETE, AsJson
from fonds.cli.output import err, out, print_json, safe
from fonds.errors import UsageError
from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer, sniff
from fonds.normalize.work import Work
from fonds.runs.shelf import make_text_apart
from fonds.stores.passages import chunk_meta


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (normalize, renormalize, chunk):
        app.command()(command)


def normalize(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]")] = None,
    *,
    format_: Annotated[
        str, typer.Option("--format", help="A normalizer's name, e.g. uslm_v1; auto looks.")
    ] = "auto",
    drain_queue: Annotated[
        bool, typer.Option("--drain", help="Normalize what waits in the queue.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes for --drain.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Turn a file into Markdown, or drain the queue of bodies that wait for it.

    \b
    Examples: fonds normalize report.pdf > report.md
              fonds normalize --drain --workers 2
    """
    if (file is None) != drain_queue:
        raise UsageError("name a file, or use --drain")
    if file is not None:
        _normalize_file(file, format_, as_json=as_json)
        return
    with context.obj.library() as library:
        result = library.normalize_queued(workers=workers)
    if as_json:
        print_json(result)
    else:
        out.print(f"{result.done} normalized, {result.failed} failed, {result.waiting} wait")
    raise typer.Exit(EXIT_INCOMPLETE if result.failed or result.waiting else 0)


def renormalize(
    context: typer.Context,
    *,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    normalizer: Annotated[str | None, typer.Option(help="Only bodies made by this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the text of bodies anew whose normalizer has changed; nothing is fetched.

    \b
    Example: fonds renormalize --normalizer fr_xml_v1
    """
    with context.obj.library() as library:
        result = library.renormalize(source=source, normalizer=normalizer)
    if as_json:
        print_json(result)
    else:
        out.print(
            f"{result.checked} were stale, {result.changed} have other words, "
            f"{result.failed} failed"
        )
    raise typer.Exit(EXIT_INCOMPLETE if result.failed else 0)


def chunk(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE.md")],
    *,
    as_json: AsJson = False,
) -> None:
    """Cut Markdown into passages, as loading does.

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
        place = " › ".join(passage.heading_path)
        out.print(f"[bold]{passage.ordinal}[/bold] {passage.tokens} tokens  {safe(place)}")
        out.print(f"{safe(passage.text)}\n")


def _normalize_file(file: Path, format_: str, *, as_json: bool) -> None:
    data = _read(file)
    normalizer = get_normalizer(sniff(data) if format_ == "auto" else format_)
    body = make_text_apart(Work(normalizer=normalizer.name, data=data, address=None))
    if as_json:
        print_json({"normalizer": normalizer.label, "body": body})
        return
    sys.stdout.write(body.markdown + "\n")
    for warning in body.warnings:
        err.print(f"warning: {warning}", markup=False)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
