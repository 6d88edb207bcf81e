"""The resources of an upload worker, and the job that one of its threads has claimed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from uuid import UUID

from fonds.context import Context
from fonds.embed.client import EmbeddingClient, breaker_recorder
from fonds.embed.worker import embedder_of, ensure_current
from fonds.engine.base import Engine
from fonds.model import NormalizedBody
from fonds.stores.vectors import Generation
from fonds.uploads.jobs import Job, JobTransition, job_transition
from fonds.uploads.llamaparse import LlamaParse


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchModel:
    """The model whose vectors are searched, with its client."""

    generation: Generation
    client: EmbeddingClient


@dataclass(kw_only=True)
class WorkerResources:
    """Shared by all threads of a worker; the model is opened when it is first needed."""

    context: Context
    engine: Engine
    """Reads files that may end the process that reads them."""
    stop: Event = field(default_factory=Event)
    """Set it to end all work soon."""
    run_id: UUID = field(init=False)
    """The run that the costs of this worker are recorded under."""
    _model: SearchModel | None = field(default=None, init=False)
    _llamaparse: LlamaParse | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self.run_id = UUID(int=self.context.seams.rng.getrandbits(128), version=4)

    @property
    def llamaparse(self) -> LlamaParse:
        """The client of LlamaParse; it needs a key."""
        with self._lock:
            self._llamaparse = self._llamaparse or LlamaParse(
                self.context.settings, self.context.seams
            )
            return self._llamaparse

    def model(self) -> SearchModel:
        """The model of the generation that is searched now."""
        database, seams = self.context.database, self.context.seams
        settings = self.context.settings
        with self._lock:
            generation = ensure_current(database, seams, settings)
            if self._model is None or self._model.generation != generation:
                embedder = embedder_of(generation, settings)
                # The embedding queue, which an idle worker may drain, has the same limits.
                endpoint = self.context.endpoints.of(embedder, seams, settings)
                recorder = breaker_recorder(database, generation.name, seams.clock)
                endpoint.breaker.on_change = recorder
                client = EmbeddingClient(
                    embedder, seams, settings, stop=self.stop, endpoint=endpoint
                )
                self._model = SearchModel(generation=generation, client=client)
            return self._model


@dataclass(kw_only=True)
class ClaimedJob:
    """A job that a worker has claimed, with the text that its steps pass on."""

    resources: WorkerResources
    job: Job
    """As it was when its last transaction ended."""
    markdown: bytes | None = field(default=None, repr=False)
    """The text as this worker stored it; None if another one did."""
    text: NormalizedBody | None = field(default=None, repr=False)
    """The text, once it has been checked."""

    @property
    def context(self) -> Context:
        """The context of the library."""
        return self.resources.context

    @contextmanager
    def transition(self) -> Iterator[JobTransition]:
        """The transaction that ends a step."""
        with job_transition(self.context, self.job) as transition:
            yield transition
        self.job = transition.job
