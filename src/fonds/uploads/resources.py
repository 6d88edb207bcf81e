"""What an upload worker needs beside the context: LlamaParse and the model for vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING
from uuid import UUID

from fonds.context import Context
from fonds.embed.client import Calls, noted
from fonds.stores.vectors import Generation
from fonds.uploads.llamaparse import LlamaParse

if TYPE_CHECKING:
    from fonds.engine.base import Engine


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchModel:
    """The model whose vectors are searched, with its client."""

    generation: Generation
    calls: Calls


@dataclass(kw_only=True)
class WorkerResources:
    """Shared by all threads of a worker; the model is opened when it is first needed."""

    context: Context
    engine: Engine
    """Where files are read that may end the process that reads them."""
    stop: Event = field(default_factory=Event)
    """Set it to end all work soon."""
    run_id: UUID = field(init=False)
    """Under which the costs of this worker are recorded."""
    _model: SearchModel | None = field(default=None, init=False)
    _llamaparse: LlamaParse | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self.run_id = UUID(int=self.context.seams.chance.getrandbits(128), version=4)

    @property
    def llamaparse(self) -> LlamaParse:
        """The client of LlamaParse; it needs a key."""
        with self._lock:
            self._llamaparse = self._llamaparse or LlamaParse(
                self.context.settings, self.context.seams
            )
            return self._llamaparse

    @property
    def opened_model(self) -> SearchModel | None:
        """The model that was used last; another may have been chosen since."""
        return self._model

    def model(self) -> SearchModel:
        """The model of the generation that is searched now."""
        from fonds.embed.worker import (  # noqa: PLC0415 — models take long to import
            embedder_of,
            ensure_current,
        )

        database, seams = self.context.database, self.context.seams
        settings = self.context.settings
        with self._lock:
            generation = ensure_current(database, seams, settings)
            if self._model is None or self._model.generation != generation:
                embedder = embedder_of(generation, settings)
                restraint = Calls.restraint_of(embedder, seams, settings)
                restraint.breaker.tell = noted(database, generation.name, seams.clock)
                calls = Calls(embedder, seams, settings, stop=self.stop, restraint=restraint)
                self._model = SearchModel(generation=generation, calls=calls)
            return self._model
