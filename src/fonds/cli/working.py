"""The command that takes uploads forward."""

from __future__ import annotations

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
) -> None:
    """Take uploads forward: parse, cut, embed, publish.

    Any number of workers share the work; one that is killed is replaced by the others within half
    a minute. SIGTERM or Ctrl-C lets the stages under way end.

    \b
    Examples: fonds worker
              fonds worker --concurrency 4
              fonds worker --drain
    """
    from fonds.uploads.worker import BaseWorker  # noqa: PLC0415 — other commands need none of it

    with (
        stoppable() as stop,
        context.obj.library() as library,
        library.workbench(stop=stop) as bench,
    ):
        err.print("working on uploads; Ctrl-C ends it" if not drain else "working on uploads")
        base = BaseWorker(bench, concurrency=concurrency)
        base.drain() if drain else base.run()
