"""Commands that embed passages, change the model, and estimate the cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fonds.cli.output import EXIT_INCOMPLETE, AsJson, err, out, print_json, print_table, safe
from fonds.cli.process import stoppable
from fonds.embed.generations import drop, find_generation, renew_damaged_vectors, roll_back
from fonds.embed.migration import Migration, migrate
from fonds.embed.status import EmbeddingPlan, EmbeddingStatus, embedding_status, plan_embedding
from fonds.embed.worker import EmbeddingReport, Watch, embed_waiting
from fonds.errors import UsageError
from fonds.library import Library
from fonds.stores import leases
from fonds.stores.tables import ingestion_embedding_queue
from fonds.stores.vectors import current_generation


def summarize(result: EmbeddingReport) -> str:
    """The result of embedding in one line."""
    summary = f"{result.embedded:,} passages embedded"
    for number, label in (
        (result.reused, "vectors of equal text reused"),
        (result.done, "documents done"),
        (result.retries, "requests retried"),
        (result.failed, "documents failed"),
        (result.waiting, "documents queued"),
        (result.given_up, "given up"),
    ):
        summary += f", {number:,} {label}" if number else ""
    return summary + (f", {_money(result.cost)}" if result.cost else "")


def print_migration(result: Migration, setting: str) -> None:
    """Print the result of a change of the model; `setting` is the model in the settings."""
    name = safe(f"{result.generation.name} {result.generation.version}")
    filling = result.filling
    reused = f", {filling.reused:,} vectors of equal text reused" if filling.reused else ""
    cost = f", {_money(filling.cost)}" if filling.cost else ""
    out.print(f"{name}: {filling.embedded:,} passages embedded{reused}{cost}")
    if not result.is_filled:
        failed = f"{filling.failed:,} documents failed; " if filling.failed else ""
        err.print(f"not switched: {failed}run the same command again to continue", style="red")
        return
    _print_overlap(result)
    if result.is_searched:
        out.print(f"search now uses {name}")
        if result.generation.id != result.before.id:
            out.print("return to the previous model with `fonds embed rollback`")
        if setting != result.generation.embedder:
            out.print(f"now set `embedder` to {safe(result.generation.embedder)}")
        mention_waiting(result.waiting)
    else:
        out.print(f"search still uses {safe(result.before.name)} {safe(result.before.version)}")


def print_status(status: EmbeddingStatus) -> None:
    """Print the state of embedding."""
    if status.generations:
        print_table(
            ["generation", "model", "version", "embedder", "dims", "vectors", "passages", ""],
            [
                (
                    generation.id,
                    safe(generation.model),
                    safe(generation.version),
                    safe(generation.embedder),
                    generation.dims,
                    generation.vectors,
                    status.passages,
                    _use(generation),
                )
                for generation in status.generations
            ],
        )
    else:
        out.print(f"no vectors yet for {status.passages:,} passages; make them with `fonds embed`")
    last_hour = status.last_hour
    out.print(
        f"\n{status.waiting:,} documents queued, {status.given_up:,} given up; in the last hour"
        f" {last_hour['texts']:,} texts embedded, {last_hour['tokens']:,} tokens"
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


def _use(generation: Any) -> str:
    if generation.is_current:
        return "in use"
    return "previous" if generation.is_previous else ""


def print_plan(plan: EmbeddingPlan) -> None:
    """Print an estimate."""
    out.print(
        f"{safe(plan.model)} {safe(plan.version)}: {plan.passages:,} passages of"
        f" {plan.documents:,} documents have no vector"
    )
    out.print(
        f"to be embedded: {plan.texts:,} texts, {plan.tokens:,} tokens,"
        f" {plan.requests:,} requests, {_money(plan.cost)}"
    )
    if plan.is_remote:
        out.print("the texts are sent to another machine")
    out.print(f"time: {_duration(plan.seconds)}")


def mention_waiting(waiting: int) -> None:
    """Print how many documents have no vectors of the model in use."""
    if waiting:
        err.print(f"{waiting:,} documents have no vectors of it yet; make them with `fonds embed`")


def _print_overlap(result: Migration) -> None:
    overlap = result.overlap
    if result.not_compared:
        err.print(f"not compared: {result.not_compared}", markup=False)
    if overlap is None:
        return
    out.print(
        f"top {overlap.top} results of {overlap.queries} queries: {overlap.mean:.0%} are found by"
        f" both models, {overlap.worst:.0%} at worst"
    )
    for query in overlap.most_different:
        out.print(f"  {query.shared:4.0%}  {safe(query.query)}")


def _money(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.6f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "depends on the endpoint; set its limits with `embed_rate`"
    for size, word in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"about {seconds / size:.1f} {word}"
    return f"about {max(seconds, 1):.0f} s"


embed_app = typer.Typer()
plan_app = typer.Typer(
    help="Estimate what a command will take before it starts.", no_args_is_help=True
)

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Concurrent batches; default: 4 for an endpoint, 1 on this machine, all of a cluster.",
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
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of documents.")] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare all vectors with their hashes first; renew damaged."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Embed new and changed documents, or change the model.

    \b
    Examples: fonds embed
              fonds embed --workers 8 --limit 1000
              fonds embed migrate --to openai:text-embedding-3-small
    """
    if context.invoked_subcommand is not None:
        return
    if check:
        with context.obj.library() as library:
            damaged = renew_damaged_vectors(library.database, library.seams)
        err.print(f"{damaged:,} damaged vectors removed, to be made again")
    with (
        context.obj.library() as library,
        stoppable(None) as stop,
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
        out.print(summarize(result))
    _print_end(result, stop)
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
            exists=True,
            dir_okay=False,
            help="Queries to compare results by, one per line; default: built-in ones.",
        ),
    ] = None,
    no_switch: Annotated[
        bool,
        typer.Option(
            "--no-switch", help="Embed and compare, but keep searching with the current model."
        ),
    ] = False,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Embed all passages with another model, compare results, and switch search to it.

    Search uses the current model until all vectors are made. Safe to stop and to repeat.

    \b
    Examples: fonds embed migrate --to openai:text-embedding-3-small
              fonds embed migrate --to wordllama --queries questions.txt --no-switch
    """
    comparison = None if queries is None else _read_queries(queries)
    with (
        context.obj.library() as library,
        stoppable(None) as stop,
        _progress(None, quiet=as_json) as watch,
    ):
        result = migrate(
            library.database,
            library.seams,
            library.settings,
            to,
            queries=comparison,
            workers=workers,
            switching=not no_switch,
            watch=watch,
            stop=stop,
        )
    if as_json:
        print_json(result)
    else:
        print_migration(result, library.settings.embedder)
    _print_end(result.filling, stop)
    raise typer.Exit(0 if result.is_filled else EXIT_INCOMPLETE)


@embed_app.command()
def rollback(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Switch search to the previous model.

    \b
    Example: fonds embed rollback
    """
    with context.obj.library() as library:
        generation, waiting = roll_back(library.database, library.seams)
    if as_json:
        print_json({"generation": generation, "waiting": waiting})
        return
    out.print(f"search now uses {safe(generation.name)} {safe(generation.version)}")
    mention_waiting(waiting)


@embed_app.command()
def forget(
    context: typer.Context,
    generation: Annotated[
        str,
        typer.Argument(metavar="GENERATION", help="Number or model, as listed by embed-status."),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Delete the vectors and costs of a model that search does not use.

    \b
    Example: fonds embed forget 1
    """
    with context.obj.library() as library:
        with library.database.read() as connection:
            selected = find_generation(connection, generation)
        vectors = drop(library.database, selected)
    if as_json:
        print_json({"generation": selected, "vectors": vectors})
    else:
        out.print(f"deleted: {safe(selected.name)} {safe(selected.version)}, {vectors:,} vectors")


def embed_status(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show vectors, queue, failures and costs of embedding.

    \b
    Example: fonds embed-status
    """
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
        typer.Option(metavar="MODEL", help="Another model; default: the current one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate texts, tokens, requests, cost and time of embedding; changes nothing.

    \b
    Examples: fonds plan embed
              fonds plan embed --to openai:text-embedding-3-small
    """
    with context.obj.library() as library:
        plan = plan_embedding(library.database, library.seams, library.settings, to)
    if as_json:
        print_json(plan)
    else:
        print_plan(plan)


@contextmanager
def _progress(documents: int | None, *, quiet: bool) -> Iterator[Watch | None]:
    if quiet or not err.is_terminal:
        yield None
        return
    bar = () if documents is None else (BarColumn(), MofNCompleteColumn())
    columns = (TextColumn("{task.description}"), *bar, TimeElapsedColumn())
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
    setting = library.settings.embedder
    if current is not None and current.embedder != setting:
        err.print(
            f"vectors are made and searched by {current.embedder}, but the setting `embedder` is"
            f" {setting}: switch with `fonds embed migrate --to {setting}`, or set it to"
            f" {current.embedder}",
            markup=False,
        )


def _print_end(result: EmbeddingReport, stop: Event) -> None:
    if stop.is_set():
        # The exit code is that of other stopped commands; typer would catch a KeyboardInterrupt.
        raise asyncio.CancelledError
    if result.ended:
        err.print(f"ended early: {result.ended}", style="red", markup=False)
    if result.given_up:
        err.print("`fonds embed-status` lists the errors of documents that were given up")


def _read_queries(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a text file in UTF-8") from error
    queries = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not queries:
        raise UsageError(f"{path} contains no queries")
    return queries
