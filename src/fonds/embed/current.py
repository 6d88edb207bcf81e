"""The generation that is searched: its model, and bringing it up to date."""

from __future__ import annotations

from threading import Event

from fonds.embed.apart import at_work
from fonds.embed.base import Embedder
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder
from fonds.embed.worker import EmbeddingReport, Watch, drain
from fonds.errors import ModelMissingError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.vectors import Generation, current_generation


def embed_waiting(
    database: Database,
    seams: Seams,
    settings: Settings,
    *,
    workers: int | None = None,
    limit: int | None = None,
    watch: Watch | None = None,
    stop: Event | None = None,
) -> EmbeddingReport:
    """Make the vectors of documents that wait, by the model whose generation is searched.

    A library without any gets its first generation, of the model in the settings.
    """
    generation = ensure_current(database, seams, settings)
    embedder = embedder_of(generation, settings)
    with at_work(generation.embedder, embedder, settings, workers) as (asked, at_once):
        return drain(
            database,
            seams,
            asked,
            generation,
            settings=settings,
            workers=at_once,
            limit=limit,
            watch=watch,
            stop=stop,
        )


def ensure_current(database: Database, seams: Seams, settings: Settings) -> Generation:
    """The generation that is searched; the first one of a library is made by the settings."""
    with database.read() as connection:
        generation = current_generation(connection)
    if generation is not None:
        return generation
    ensure_generation(
        database, seams, open_embedder(settings.embedder, settings), settings.embedder
    )
    with database.read() as connection:
        generation = current_generation(connection)  # another process may have been first
    assert generation is not None
    return generation


def embedder_of(generation: Generation, settings: Settings) -> Embedder:
    """The very model that made a generation; its vectors cannot be compared with another's."""
    embedder = open_embedder(generation.embedder, settings)
    model = embedder.model
    if (model.name, model.version) != (generation.name, generation.version):
        raise ModelMissingError(
            f"the vectors were made by {generation.name} {generation.version}, but"
            f" {generation.embedder} is {model.name} {model.version} here: run"
            f" `fonds embed migrate --to {generation.embedder}`, or bring the former back"
        )
    return embedder
