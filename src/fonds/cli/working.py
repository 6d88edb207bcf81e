"""The command that takes uploads forward."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from fonds.cli.output import err
from fonds.cli.stopping import stoppable


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(worker)


def worker(
    context: typer.Context,
    *,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Jobs worked on at once by this process.")
    ] = 2,
    drain: Annotated[
        bool, typer.Option("--drain", help="End when nothing is left that can be done now.")
    ] = False,
    commands: Annotated[
        bool, typer.Option(help="Also do what operators ask for, while no upload is under way.")
    ] = True,
) -> None:
    """Take uploads forward: parse, cut, embed, publish; and do what operators ask for.

    Any number of workers share the work; one that is killed is replaced by the others within half
    a minute. SIGTERM or Ctrl-C lets the stages under way end. A worker that is idle takes up
    commands of the admin pages and the API, such as a run of a source, one after the other.

    \b
    Examples: fonds worker
              fonds worker --concurrency 4
              fonds worker --drain
              fonds worker --no-commands
    """
    from fonds.cli.commanding import dispatcher  # noqa: PLC0415 — likewise
    from fonds.uploads.worker import BaseWorker  # noqa: PLC0415 — other commands need none of it

    with (
        stoppable() as stop,
        context.obj.library() as library,
        library.workbench(stop=stop) as bench,
    ):
        err.print("working on uploads; Ctrl-C ends it" if not drain else "working on uploads")
        base = BaseWorker(bench, concurrency=concurrency)
        if drain:
            base.drain()
            if commands:
                asyncio.run(dispatcher(library).drain(stop.is_set))
        elif commands:
            asked = dispatcher(library, may_begin=lambda: base.is_idle)
            with ThreadPoolExecutor(1, "fonds-commands") as beside:
                done = beside.submit(lambda: asyncio.run(asked.serve(stop.is_set)))
                try:
                    base.run()
                finally:
                    stop.set()
            done.result()
        else:
            base.run()
