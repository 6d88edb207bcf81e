"""Commands that prove: what a citation leads to, whether words stand there, what made them."""

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
from fonds.cli.session import owner_named
from fonds.errors import UsageError
from fonds.sources.registry import get_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fonds.results import (
        ChunkLocator,
        HeldDocument,
        QuoteChange,
        QuoteCheck,
        Resolution,
        Verification,
    )

LONGEST_QUOTE: Final = 4 << 20
"""Characters read from standard input."""
SHOWN: Final = 500

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
    typer.Option(metavar="DATE", help="Of several editions the one of this day, YYYY-MM-DD."),
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
    """Find the document, edition and passage that a citation leads to.

    Exits with 0 if it is one document, 3 if it may be several, 1 if there is none.

    \b
    Examples: fonds resolve "42 U.S.C. § 1396a(a)(10)"
              fonds resolve "42 USC 1396a" --as-of 2024-06-30
              fonds resolve "H.R. 1234" --json
    """
    with context.obj.library() as library:
        owner = owner_named(library, as_user)
        answer = library.resolve(citation, as_of=day(as_of), owner=owner)
    if as_json:
        print_json(answer)
    else:
        _print_resolution(answer)
    several = EXIT_INCOMPLETE if answer.candidates else EXIT_FAILED
    raise typer.Exit(0 if answer.found else several)


def check_quote(
    context: typer.Context,
    quote: Annotated[
        str, typer.Argument(metavar="TEXT", help="The words quoted; - reads standard input.")
    ],
    *,
    cite: Annotated[
        str, typer.Option(metavar="CITATION", help="What they are quoted from.", show_default=False)
    ],
    as_of: AsOf = None,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Check whether words stand in what is cited: EXACT, CHANGED or NOT FOUND.

    White space, markup and the shapes of dashes and quotation marks make no difference. An ellipsis
    stands for words left out, brackets for words altered. Exits with 0 if exact, 3 if only another
    edition or an earlier version has the words, 1 if none has.

    \b
    Examples: fonds check-quote --cite "53 U.S.C. § 103(a)" "within ten working days"
              fonds check-quote --cite "91 FR 1201" - < quotation.txt
    """
    text = sys.stdin.read(LONGEST_QUOTE) if quote == "-" else quote
    with context.obj.library() as library:
        owner = owner_named(library, as_user)
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
    source: Annotated[str | None, typer.Option(help="Some documents of this source.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="How many, by chance.")] = 20,
    as_user: AsUser = None,
    as_json: AsJson = False,
) -> None:
    """Make a text or passage again from the archived bytes: MATCH, DIFFERS or UNPROVEN.

    Nothing is fetched and nothing is written. UNPROVEN is what the archived file alone cannot tell:
    a record that was joined from several. Exits with 0 for MATCH, 1 for DIFFERS, 3 for UNPROVEN.

    \b
    Examples: fonds verify fr:2026-00101
              fonds verify "fr:2026-00101#3"
              fonds verify --source federal_register --sample 50
    """
    if (name is None) == (source is None):
        raise UsageError("name a document or a passage, or a --source")
    with context.obj.library() as library:
        known = get_source(source).info.name if source is not None else None
        owner = owner_named(library, as_user)
        names = [name] if known is None else library.sample(known, sample)
        checked = [library.verify(each, owner=owner) for each in names]
    if as_json:
        print_json(checked if name is None else checked[0])
    elif name is None:
        _print_sample(known or "", checked)
    else:
        _print_verification(checked[0])
    verdicts = {each.verdict for each in checked}
    worst = next((each for each in ("differs", "unproven") if each in verdicts), "match")
    raise typer.Exit(_EXIT_CODES[worst])


# Resolutions ------------------------------------------------------------------------------


def _print_resolution(answer: Resolution) -> None:
    if answer.document is None:
        err.print(answer.message, markup=False)
    else:
        _print_document(answer)
    if answer.candidates:
        out.print("may be" if not answer.found else "others")
        print_table(
            ["id", "published", "title"], map(_held_row, answer.candidates), prose=["title"]
        )
    if len(answer.editions) > 1:
        out.print("editions held")
        print_table(
            ["id", "published", "edition"],
            [(one.id, one.published_at, one.edition) for one in answer.editions],
        )


def _print_document(answer: Resolution) -> None:
    document = answer.document
    assert document is not None
    pinpoint = f" at {answer.pinpoint}" if answer.pinpoint else ""
    passage = f"{document.id}#{answer.passage}" if answer.passage is not None else None
    out.print(f"[bold]{safe(document.title)}[/bold]")
    _print_facts(
        {
            "read as": f"{answer.target}{pinpoint}" if answer.target else None,
            "id": document.id,
            "cite": document.citation_string,
            "page": document.url,
            "published": document.published_at,
            "edition": _edition(document),
            "passage": passage and f"{passage}{_place(answer.locator)}",
            "withdrawn": document.gone_at and document.gone_at.isoformat(),
        }
    )
    if answer.remark:
        err.print(answer.remark, markup=False)


def _edition(document: HeldDocument) -> str | None:
    newest = "" if document.is_newest else ", not the newest held"
    return f"{document.edition}{newest}" if document.edition else None


def _held_row(document: HeldDocument) -> tuple[Any, ...]:
    return document.id, document.published_at, safe(document.title)


# Quotations -------------------------------------------------------------------------------


def _print_check(check: QuoteCheck) -> None:
    _print_verdict(check.verdict, check.message)
    found = check.found_in or check.document
    passage = f"{found.id}#{check.passage}" if check.passage is not None else None
    _print_facts(
        {
            "cite": found.citation_string,
            "edition": _edition(found),
            "changed in": check.changed_in if check.verdict == "changed" else None,
            "on": check.changed_at,
            "version": check.version and check.version.archive_key,
            "passage": passage and f"{passage}{_place(check.locator)}",
            "characters": f"{check.start:,} to {check.end:,}" if check.start is not None else None,
            "text": check.text and _on_one_line(check.text),
        }
    )
    if check.closest is not None:
        nearest = check.closest
        out.print(
            f"  {'nearest':10} {check.document.id}#{nearest.passage}{_place(nearest.locator)}"
        )
        out.print(f"  {'differs':10} {''.join(_shown(nearest.redline))}")
    if check.before_oldest:
        err.print(f"{check.as_of} is before the oldest edition held", markup=False)


def _shown(redline: Sequence[QuoteChange]) -> Iterable[str]:
    for place, change in enumerate(redline):
        before, after, colour = _SIGNS[change.op]
        shown = escape(f"{before}{harmless(change.text)}{after}")
        yield ("" if place == 0 else " ") + (f"[{colour}]{shown}[/{colour}]" if colour else shown)


# Proofs -----------------------------------------------------------------------------------


def _print_verification(checked: Verification) -> None:
    passage = f"#{checked.passage}" if checked.passage is not None else ""
    _print_verdict(checked.verdict, f"{checked.id}{passage}")
    _print_facts(
        {
            "reason": checked.reason,
            "cite": checked.citation_string,
            "from": checked.fetched_from or checked.source_url,
            "retrieved": checked.retrieved_at.isoformat(),
            "normalizer": checked.normalizer,
            "chunker": checked.chunker,
        }
    )
    for step in checked.steps:
        out.print(f"  {step.name:10} {step.outcome}: {safe(step.says)}")


def _print_sample(source: str, checked: Sequence[Verification]) -> None:
    for each in checked:
        if each.verdict != "match":
            _print_verdict(each.verdict, f"{each.id}: {each.reason}")
    counts = [
        f"{sum(each.verdict == verdict for each in checked):,} {word}"
        for verdict, word in (("match", "match"), ("differs", "differ"), ("unproven", "unproven"))
    ]
    out.print(f"{source}: {', '.join(counts)}")


# Lines ------------------------------------------------------------------------------------


def _print_verdict(verdict: str, message: str) -> None:
    word = verdict.upper().replace("_", " ")
    out.print(f"[{_STYLES[_EXIT_CODES[verdict]]}]{word}[/] {safe(message)}")


def _print_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if value:
            out.print(f"  {name:10} {safe(str(value))}")


def _place(locator: ChunkLocator | None) -> str:
    if locator is None:
        return ""
    labels = "".join(locator.enumeration)
    heading = "".join(locator.heading_path[-1:])
    page = f"p. {locator.page}" if locator.page else ""
    place = ", ".join(part for part in (heading, labels, page) if part)
    return f"  {place}" if place else ""


def _on_one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else f"{flat[:SHOWN]}…"
