"""Commands about vectors: making them, changing the model, and what it takes.

How embedding is told to people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fonds.cli.output import EXIT_INCOMPLETE, AsJson, err, out, print_json, print_table, safe
from fonds.cli.process import stoppable
from fonds.errors import EmbedError, UsageError
from fonds.library import Library
from fonds.stores import leases
from fonds.stores.tables import ingestion_embedding_queue
from fonds.stores.vectors import current_generation

if TYPE_CHECKING:
    from fonds.embed.migration import Migration
    from fonds.embed.status import EmbeddingPlan, EmbeddingStatus
    from fonds.embed.worker import EmbeddingReport, Watch


def said(result: EmbeddingReport) -> str:
    """What came of embedding, in words."""
    words = f"{result.embedded:,} passages embedded"
    for number, word in (
        (result.reused, "of equal text"),
        (result.done, "documents done"),
        (result.retries, "requests repeated"),
        (result.failed, "documents failed"),
        (result.waiting, "documents wait"),
        (result.given_up, "given up"),
    ):
        words += f", {number:,} {word}" if number else ""
    return words + (f", {_money(result.cost)}" if result.cost else "")


def print_migration(result: Migration, setting: str) -> None:
    """Say how far a change of the model came; `setting` is the model in the settings."""
    name = safe(f"{result.generation.name} {result.generation.version}")
    filling = result.filling
    known = f", {filling.reused:,} of equal text" if filling.reused else ""
    cost = f", {_money(filling.cost)}" if filling.cost else ""
    out.print(f"{name}: {filling.embedded:,} passages embedded{known}{cost}")
    if not result.is_filled:
        failed = f"{filling.failed:,} documents failed; " if filling.failed else ""
        err.print(f"not switched: {failed}run the same command again to go on", style="red")
        return
    _print_overlap(result)
    if result.is_searched:
        out.print(f"searched from now on: {name}")
        if result.generation.id != result.before.id:
            out.print("`fonds embed rollback` goes back")
        if setting != result.generation.embedder:
            out.print(f"set `embedder` to {safe(result.generation.embedder)}, too")
        mention_waiting(result.waiting)
    else:
        out.print(f"still searched: {safe(result.before.name)} {safe(result.before.version)}")


def print_status(status: EmbeddingStatus) -> None:
    """Show how embedding stands."""
    if status.generations:
        print_table(
            ["generation", "model", "version", "opened as", "dims", "vectors", "passages", ""],
            [
                (
                    each.id,
                    safe(each.model),
                    safe(each.version),
                    safe(each.embedder),
                    each.dims,
                    each.vectors,
                    status.passages,
                    "searched" if each.is_current else "before" if each.is_previous else "",
                )
                for each in status.generations
            ],
        )
    else:
        out.print(f"no vectors yet for {status.passages:,} passages; `fonds embed` makes them")
    lately = status.last_hour
    out.print(
        f"\n{status.waiting:,} documents wait, {status.given_up:,} given up; in the last hour"
        f" {lately['texts']:,} texts embedded, {lately['tokens']:,} tokens"
    )
    for error in status.errors:
        out.print(f"  {error['documents']:,} × {safe(error['cause'])}", style="red")
    if status.costs:
        out.print()
        print_table(
            ["source", "texts", "tokens", "requests", "retries", "cost"],
            [
                (c.name, c.texts, c.tokens, c.requests, c.retries, _money(c.cost))
                for c in status.costs
            ],
        )


def print_plan(plan: EmbeddingPlan) -> None:
    """Show what embedding will take."""
    out.print(
        f"{safe(plan.model)} {safe(plan.version)}: {plan.passages:,} passages of"
        f" {plan.documents:,} documents have no vector"
    )
    out.print(
        f"to be embedded: {plan.texts:,} texts, {plan.tokens:,} tokens,"
        f" {plan.requests:,} requests, {_money(plan.cost)}"
    )
    if plan.is_remote:
        out.print("the texts leave this machine")
    out.print(f"time: {_duration(plan.seconds)}")


def mention_waiting(waiting: int) -> None:
    """Say what is left for `fonds embed` after a switch."""
    if waiting:
        err.print(f"{waiting:,} documents wait for such vectors; `fonds embed` makes them")


def _print_overlap(result: Migration) -> None:
    overlap = result.overlap
    if result.not_compared:
        err.print(f"not compared: {result.not_compared}", markup=False)
    if overlap is None:
        return
    out.print(
        f"top {overlap.top} of {overlap.queries} questions: {overlap.mean:.0%} are found by both,"
        f" {overlap.worst:.0%} at worst"
    )
    for each in overlap.most_different:
        out.print(f"  {each.shared:4.0%}  {safe(each.query)}")


def _money(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.6f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "as the endpoint goes; the setting `embed_rate` names its limits"
    for size, word in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"about {seconds / size:.1f} {word}"
    return f"about {max(seconds, 1):.0f} s"


embed_app = typer.Typer()
plan_app = typer.Typer(help="What something will take, before it begins.", no_args_is_help=True)

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Batches at once; default: 4 to an endpoint, 1 here, what a cluster has.",
    ),
]
Model = Annotated[
    str, typer.Option(metavar="MODEL", help="As in the setting `embedder`: openai:MODEL, …")
]


def register(app: typer.Typer) -> None:
    """Add these commands to the app."""
    app.add_typer(embed_app, name="embed")
    app.command("embed-status")(embed_status)
    app.add_typer(plan_app, name="plan")


@embed_app.callback(invoke_without_command=True)
def embed(
    context: typer.Context,
    *,
    workers: Workers = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many documents at most.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the vectors of documents that are new or changed; or change the model.

    \b
    Examples: fonds embed
              fonds embed --workers 8 --limit 1000
              fonds embed migrate --to openai:text-embedding-3-small
    """
    if context.invoked_subcommand is not None:
        return
    from fonds.embed.worker import embed_waiting  # noqa: PLC0415 — other commands need no model

    with (
        context.obj.library() as library,
        stoppable() as stop,
        _progress(_waiting(library), quiet=as_json) as watch,
    ):
        result = embed_waiting(
            library.database,
            library.seams,
            library.settings,
            workers=workers,
            limit=limit,
            watch=watch,
            stop=stop,
        )
        _mention_other_model(library)
    if as_json:
        print_json(result)
    else:
        out.print(said(result))
    _say_why_it_ended(result, stop)
    unfinished = result.ended or result.failed or result.given_up
    unfinished = unfinished or (limit is None and result.waiting)
    raise typer.Exit(EXIT_INCOMPLETE if unfinished else 0)


@embed_app.command("migrate")
def migrate_(
    context: typer.Context,
    *,
    to: Model,
    queries: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Questions to compare by, one a line; default: ours."
        ),
    ] = None,
    no_switch: Annotated[
        bool, typer.Option("--no-switch", help="Fill and compare, but go on searching as before.")
    ] = False,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Make the vectors of another model beside those there are, compare, and search them.

    What is searched does not change before all vectors are made. Safe to stop and to repeat.

    \b
    Examples: fonds embed migrate --to openai:text-embedding-3-small
              fonds embed migrate --to wordllama --queries questions.txt --no-switch
    """
    from fonds.embed.migration import migrate  # noqa: PLC0415 — other commands need no numpy

    asked = None if queries is None else _questions(queries)
    with (
        context.obj.library() as library,
        stoppable() as stop,
        _progress(None, quiet=as_json) as watch,
    ):
        result = migrate(
            library.database,
            library.seams,
            library.settings,
            to,
            queries=asked,
            workers=workers,
            switching=not no_switch,
            watch=watch,
            stop=stop,
        )
    if as_json:
        print_json(result)
    else:
        print_migration(result, library.settings.embedder)
    _say_why_it_ended(result.filling, stop)
    raise typer.Exit(0 if result.is_filled else EXIT_INCOMPLETE)


@embed_app.command()
def rollback(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Search the vectors again that were searched before the last change.

    \b
    Example: fonds embed rollback
    """
    from fonds.embed.generations import roll_back  # noqa: PLC0415 — few commands need it

    with context.obj.library() as library:
        generation, waiting = roll_back(library.database, library.seams)
    if as_json:
        print_json({"generation": generation, "waiting": waiting})
        return
    out.print(f"searched from now on: {safe(generation.name)} {safe(generation.version)}")
    mention_waiting(waiting)


@embed_app.command()
def forget(
    context: typer.Context,
    generation: Annotated[
        str, typer.Argument(metavar="GENERATION", help="Its number or model; see embed-status.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Delete all vectors of a model that is not searched, and what is known of their cost.

    \b
    Example: fonds embed forget 1
    """
    from fonds.embed.generations import drop, find_generation  # noqa: PLC0415 — few commands need it

    with context.obj.library() as library:
        with library.database.read() as connection:
            found = find_generation(connection, generation)
        vectors = drop(library.database, found)
    if as_json:
        print_json({"generation": found, "vectors": vectors})
    else:
        out.print(f"forgotten: {safe(found.name)} {safe(found.version)}, {vectors:,} vectors")


def embed_status(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show which vectors there are, what waits, what failed, and what it cost.

    \b
    Example: fonds embed-status
    """
    from fonds.embed.status import embedding_status  # noqa: PLC0415 — few commands need it

    with context.obj.library() as library:
        status = embedding_status(library.database, library.seams.clock.now())
        _mention_other_model(library)
    if as_json:
        print_json(status)
    else:
        print_status(status)


@plan_app.command("embed")
def plan_embed(
    context: typer.Context,
    *,
    to: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Another model; default: the one in use."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what `fonds embed`, or a change of the model, will take; changes nothing.

    \b
    Examples: fonds plan embed
              fonds plan embed --to openai:text-embedding-3-small
    """
    from fonds.embed.status import plan_embedding  # noqa: PLC0415 — other commands need no numpy

    with context.obj.library() as library:
        plan = plan_embedding(library.database, library.seams, library.settings, to)
    if as_json:
        print_json(plan)
    else:
        print_plan(plan)


async def embed_until_stopped(library: Library) -> None:
    """Make all vectors that wait, in a thread of its own; stopping waits for the batches in flight.

    A model that does not answer is said and no more: documents are found by their words, and the
    queue keeps what is not done.
    """
    from fonds.embed.worker import embed_waiting  # noqa: PLC0415 — other commands need no model

    stop = Event()
    try:
        result = await asyncio.to_thread(
            embed_waiting, library.database, library.seams, library.settings, stop=stop
        )
    except EmbedError as error:
        err.print(f"vectors wait: {error}", markup=False)
    else:
        if result.ended:
            err.print(f"vectors wait: {result.ended}", markup=False)
    finally:
        stop.set()


@contextmanager
def _progress(documents: int | None, *, quiet: bool) -> Iterator[Watch | None]:
    if quiet or not err.is_terminal:
        yield None
        return
    counted = () if documents is None else (BarColumn(), MofNCompleteColumn())
    columns = (TextColumn("{task.description}"), *counted, TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as display:
        line = display.add_task("vectors", total=documents)

        def draw(done: int, passages: int) -> None:
            display.update(line, completed=done, description=f"{passages:,} vectors")

        yield draw


def _waiting(library: Library) -> int:
    with library.database.read() as connection:
        return leases.depth(connection, ingestion_embedding_queue)["waiting"]


def _mention_other_model(library: Library) -> None:
    with library.database.read() as connection:
        current = current_generation(connection)
    wanted = library.settings.embedder
    if current is not None and current.embedder != wanted:
        err.print(
            f"vectors are still made and searched by {current.embedder}, though the setting"
            f" `embedder` is {wanted}: change to it by `fonds embed migrate --to {wanted}`, or set"
            f" it to {current.embedder}",
            markup=False,
        )


def _say_why_it_ended(result: EmbeddingReport, stop: Event) -> None:
    if stop.is_set():
        # As what runs on an event loop ends; typer keeps a KeyboardInterrupt to itself.
        raise asyncio.CancelledError
    if result.ended:
        err.print(f"ended early: {result.ended}", style="red", markup=False)
    if result.given_up:
        err.print("`fonds embed-status` says why documents were given up")


def _questions(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8") from error
    asked = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not asked:
        raise UsageError(f"{path} holds no question")
    return asked
