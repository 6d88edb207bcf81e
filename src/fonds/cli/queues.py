"""The queues that runs fill: texts to be read, citations, vectors, hosts for the index."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Final

from fonds.cli.output import err
from fonds.errors import EmbedError
from fonds.library import Library
from fonds.operations import drain_normalization
from fonds.runs.commands import QueueName
from fonds.runs.hosts import compile_hosts
from fonds.runs.queue_status import backlogs

_CITATION_BATCH: Final = 500
"""Documents."""
_WAITING: Final[dict[QueueName, tuple[str, str]]] = {
    "normalization": ("have no text yet", "fonds normalize --drain"),
    "citations": ("have no citations yet", "fonds citations"),
    "embedding": ("have no vectors yet", "fonds embed"),
}
"""The parts that documents in a queue lack, and the commands that make them."""


async def drain_queues(library: Library) -> None:
    """Empty all queues; citations and vectors are made of texts, so texts come first."""
    await drain_normalization(library)
    await extract_in_batches(library)
    await embed_until_stopped(library)
    await asyncio.to_thread(compile_hosts, library.context)


def print_waiting(library: Library) -> bool:
    """Print what is still queued and how to continue; False if there is nothing."""
    with library.database.read() as connection:
        queues = backlogs(connection, library.seams.clock.now())
    for queue in queues:
        lack, command = _WAITING[queue.queue]
        if queue.waiting:
            err.print(f"{queue.waiting:,} documents {lack}: `{command}`", markup=False)
        if queue.given_up:
            err.print(
                f"{queue.given_up:,} documents {lack}, as they failed repeatedly: `fonds doctor`",
                markup=False,
            )
    return any(queue.waiting or queue.given_up for queue in queues)


async def extract_in_batches(library: Library) -> None:
    """Extract all queued citations in a thread; it can be stopped between batches."""
    while True:
        result = await asyncio.to_thread(library.extract_citations, limit=_CITATION_BATCH)
        if result.done + result.failed < _CITATION_BATCH:
            return


async def embed_until_stopped(library: Library) -> None:
    """Embed all queued documents in a thread; stopping waits for the current batches.

    If the model is not available this is only printed: search finds documents by their words, and
    they stay in the queue.
    """
    stop = Event()
    try:
        result = await asyncio.to_thread(library.embed, stop=stop)
    except EmbedError as error:
        err.print(f"vectors are not made yet: {error}", markup=False)
    else:
        if result.ended:
            err.print(f"vectors are not made yet: {result.ended}", markup=False)
    finally:
        stop.set()
