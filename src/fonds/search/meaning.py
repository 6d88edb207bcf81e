"""Questions as the model of the searched generation sees them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Literal

import structlog

from fonds.errors import EmbedError, UsageError
from fonds.search.candidates import Meaning
from fonds.search.query import read_query
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.vectors import Generation, current_generation

if TYPE_CHECKING:
    from fonds.embed.base import Embedder

Mode = Literal["lexical", "semantic", "hybrid"]

_log = structlog.get_logger("fonds.search")


class Understanding:
    """Holds the model open between questions; may be asked from several threads."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._opening = Lock()
        self._opened: tuple[Generation, Embedder] | None = None

    def meaning(self, query: str, mode: Mode | None) -> Meaning | None:
        """The question's vector; None where words alone are to decide.

        Without a mode, vectors are used if there are any and their model answers; a mode that needs
        them insists.
        """
        if mode == "lexical":
            return None
        text = read_query(query).text
        with self._database.read() as connection:
            generation = current_generation(connection)
        if generation is None and mode is not None:
            raise UsageError(f"mode {mode} needs vectors, and there are none: `fonds embed` first")
        if generation is None or not text:
            return None
        try:
            return Meaning(generation=generation, vector=self._vector(generation, text))
        except EmbedError as error:
            if mode is not None:
                raise
            _log.warning("vectors left out", cause=str(error))
            return None

    def _vector(self, generation: Generation, text: str) -> bytes:
        from fonds.embed.overlap import query_vectors  # noqa: PLC0415 — models take long to import

        (vector,) = query_vectors(self._embedder(generation), [text])
        return vector

    def _embedder(self, generation: Generation) -> Embedder:
        from fonds.embed.current import embedder_of  # noqa: PLC0415 — models take long to import

        with self._opening:
            if self._opened is None or self._opened[0] != generation:
                self._opened = (generation, embedder_of(generation, self._settings))
            return self._opened[1]
