"""Commands that resolve citations, check quotations, and verify texts against raw files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from fonds.cli.output import (
    EXIT_FAILED,
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
from fonds.cli.session import find_owner
from fonds.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fonds.results import (
        ChunkLocator,
        DocumentSummary,
        QuoteChange,
        QuoteCheck,
        Resolution,
        Verification,
    )

MAX_QUOTE_LENGTH: Final = 4 << 20
"""Characters read from standard input."""
MAX_PRINTED_TEXT: Final = 500
"""Characters."""

_EXIT_CODES: Final = {
    "match": 0,
    "differs": EXIT_FAILED,
    "unproven": EXIT_INCOMPLETE,
    "exact": 0,
    "changed": EXIT_INCOMPLETE,
    "not_found": EXIT_FAILED,
}
_STYLES: Final = {0: "bold green", EXIT_FAILED: "bold red", EXIT_INCOMPLETE: "bold yellow"}
_SIGNS: Final = {
    "keep": ("", "", None),
    "delete": ("[-", "-]", "red"),
    "insert": ("{+", "+}", "green"),
}

AsOf = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Use the edition in force on this day, YYYY-MM-DD."),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    for command in (resolve, check_quote, verify):
        app.command()(command)


def resolve(
    context: typer.Context,
    citation: Annotated[
        str, typer.Argument(metavar="CITATION", help="A citation, an id or another name.")
    ],
    *,
    as_of: AsOf = None,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Find the document, edition and passage of a citation.

    Exits with 0 for one document, 3 for several candidates, 1 for none.

    \b
    Examples: fonds resolve "42 U.S.C. § 1396a(a)(10)"
              fonds resolve "42 USC 1396a" --as-of 2024-06-30
              fonds resolve "H.R. 1234" --json
    """
    with context.obj.library() as library:
        owner = find_owner(library, as_user)
        resolution = library.resolve(citation, as_of=day(as_of), owner=owner)
    if as_json:
        print_json(resolution)
    else:
        _print_resolution(resolution)
    exit_without_match = EXIT_INCOMPLETE if resolution.candidates else EXIT_FAILED
    raise typer.Exit(0 if resolution.found else exit_without_match)


def check_quote(
    context: typer.Context,
    quote: Annotated[
        str, typer.Argument(metavar="TEXT", help="The quoted words; - reads standard input.")
    ],
    *,
    cite: Annotated[
        str,
        typer.Option(
            metavar="CITATION", help="The document they are quoted from.", show_default=False
        ),
    ],
    as_of: AsOf = None,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Check a quotation: EXACT, CHANGED or NOT FOUND.

    White space, markup and the shapes of dashes and quotation marks are ignored. An ellipsis marks
    omitted words, brackets mark altered ones. Exits with 0 for EXACT, 3 for CHANGED (only another
    edition or an earlier version has the words), 1 for NOT FOUND.

    \b
    Examples: fonds check-quote --cite "53 U.S.C. § 103(a)" "within ten working days"
              fonds check-quote --cite "91 FR 1201" - < quotation.txt
    """
    text = sys.stdin.read(MAX_QUOTE_LENGTH) if quote == "-" else quote
    with context.obj.library() as library:
        owner = find_owner(library, as_user)
        check = library.check_quote(cite, text, as_of=day(as_of), owner=owner)
    if as_json:
        print_json(check)
    else:
        _print_check(check)
    raise typer.Exit(_EXIT_CODES[check.verdict])


def verify(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[ID|ID#N|CHUNK]", help="A document, or a passage.")
    ] = None,
    *,
    source: Annotated[str | None, typer.Option(help="Random documents of this source.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Number of random documents.")] = 20,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild a text from its raw file: MATCH, DIFFERS or UNPROVEN.

    Nothing is fetched and nothing is written. UNPROVEN means that the raw file alone is not enough,
    since the record was joined from several. Exits with 0 for MATCH, 1 for DIFFERS, 3 for UNPROVEN.

    \b
    Examples: fonds verify fr:2026-00101
              fonds verify "fr:2026-00101#3"
              fonds verify --source federal_register --sample 50
    """
    if (name is None) == (source is None):
        raise UsageError("pass either a document or passage, or --source")
    with context.obj.library() as library:
        source_name = library.sources.require(source).info.name if source is not None else None
        owner = find_owner(library, as_user)
        names = [name] if source_name is None else library.sample(source_name, sample)
        results = [library.verify(each, owner=owner) for each in names]
    if as_json:
        print_json(results if name is None else results[0])
    elif name is None:
        _print_sample(source_name or "", results)
    else:
        _print_verification(results[0])
    verdicts = {result.verdict for result in results}
    worst = next((verdict for verdict in ("differs", "unproven") if verdict in verdicts), "match")
    raise typer.Exit(_EXIT_CODES[worst])


# Resolutions ------------------------------------------------------------------------------


def _print_resolution(resolution: Resolution) -> None:
    if resolution.document is None:
        err.print(resolution.message, markup=False)
    else:
        _print_document(resolution)
    if resolution.candidates:
        out.print("candidates" if not resolution.found else "other candidates")
        print_table(
            ["id", "published", "title"], map(_document_row, resolution.candidates), prose=["title"]
        )
    if len(resolution.editions) > 1:
        out.print("editions in the library")
        print_table(
            ["id", "published", "edition"],
            [(each.id, each.published_at, each.edition) for each in resolution.editions],
        )


def _print_document(resolution: Resolution) -> None:
    document = resolution.document
    assert document is not None
    pinpoint = f" at {resolution.pinpoint}" if resolution.pinpoint else ""
    passage = f"{document.id}#{resolution.passage}" if resolution.passage is not None else None
    out.print(f"[bold]{safe(document.title)}[/bold]")
    _print_fields(
        {
            "read as": f"{resolution.target}{pinpoint}" if resolution.target else None,
            "id": document.id,
            "cite": document.citation_string,
            "page": document.url,
            "published": document.published_at,
            "edition": _edition(document),
            "passage": passage and f"{passage}{_location(resolution.locator)}",
            "withdrawn": document.gone_at and document.gone_at.isoformat(),
        }
    )
    if resolution.remark:
        err.print(resolution.remark, markup=False)


def _edition(document: DocumentSummary) -> str | None:
    newest = "" if document.is_newest else ", not the newest in the library"
    return f"{document.edition}{newest}" if document.edition else None


def _document_row(document: DocumentSummary) -> tuple[Any, ...]:
    return document.id, document.published_at, safe(document.title)


# Quotations -------------------------------------------------------------------------------


def _print_check(check: QuoteCheck) -> None:
    _print_verdict(check.verdict, check.message)
    document = check.found_in or check.document
    passage = f"{document.id}#{check.passage}" if check.passage is not None else None
    _print_fields(
        {
            "cite": document.citation_string,
            "edition": _edition(document),
            "changed in": check.changed_in if check.verdict == "changed" else None,
            "on": check.changed_at,
            "version": check.version and check.version.archive_key,
            "passage": passage and f"{passage}{_location(check.locator)}",
            "characters": f"{check.start:,} to {check.end:,}" if check.start is not None else None,
            "text": check.text and _one_line(check.text),
        }
    )
    if check.closest is not None:
        nearest = check.closest
        out.print(
            f"  {'nearest':10} {check.document.id}#{nearest.passage}{_location(nearest.locator)}"
        )
        out.print(f"  {'differs':10} {''.join(_redline(nearest.redline))}")
    if check.before_oldest:
        err.print(f"{check.as_of} is before the oldest edition in the library", markup=False)


def _redline(changes: Sequence[QuoteChange]) -> Iterable[str]:
    for number, change in enumerate(changes):
        before, after, colour = _SIGNS[change.op]
        text = escape(f"{before}{harmless(change.text)}{after}")
        yield ("" if number == 0 else " ") + (f"[{colour}]{text}[/{colour}]" if colour else text)


# Verifications ----------------------------------------------------------------------------


def _print_verification(result: Verification) -> None:
    passage = f"#{result.passage}" if result.passage is not None else ""
    _print_verdict(result.verdict, f"{result.id}{passage}")
    _print_fields(
        {
            "reason": result.reason,
            "cite": result.citation_string,
            "from": result.fetched_from or result.source_url,
            "retrieved": result.retrieved_at.isoformat(),
            "normalizer": result.normalizer,
            "chunker": result.chunker,
        }
    )
    for step in result.steps:
        out.print(f"  {step.name:10} {step.outcome}: {safe(step.says)}")


def _print_sample(source: str, results: Sequence[Verification]) -> None:
    for each in results:
        if each.verdict != "match":
            _print_verdict(each.verdict, f"{each.id}: {each.reason}")
    counts = [
        f"{sum(each.verdict == verdict for each in results):,} {word}"
        for verdict, word in (("match", "match"), ("differs", "differ"), ("unproven", "unproven"))
    ]
    out.print(f"{source}: {', '.join(counts)}")


# Lines ------------------------------------------------------------------------------------


def _print_verdict(verdict: str, message: str) -> None:
    word = verdict.upper().replace("_", " ")
    out.print(f"[{_STYLES[_EXIT_CODES[verdict]]}]{word}[/] {safe(message)}")


def _print_fields(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value:
            out.print(f"  {name:10} {safe(str(value))}")


def _location(locator: ChunkLocator | None) -> str:
    if locator is None:
        return ""
    labels = "".join(locator.enumeration)
    heading = "".join(locator.heading_path[-1:])
    page = locator.page_reference
    location = ", ".join(part for part in (heading, labels, page) if part)
    return f"  {location}" if location else ""


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_PRINTED_TEXT else f"{flat[:MAX_PRINTED_TEXT]}…"
