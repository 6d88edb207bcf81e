"""Users, workers and a parser outside, who all work on the same uploads."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from structlog.testing import capture_logs

from fonds.context import Context
from fonds.embed.base import Embedded, Purpose
from fonds.embed.client import PROBE, EmbeddingClient
from fonds.embed.hashing import HashingEmbedder
from fonds.errors import (
    EmbedError,
    FondsError,
    ParserError,
    RetryableEmbedError,
    RetryableParserError,
    StoreError,
    UploadRefusedError,
    WebhookError,
)
from fonds.settings import Settings
from fonds.stores.vectors import current_generation
from fonds.uploads.intake import (
    UploadRequest,
    begin_upload,
    complete_upload,
    retry_upload,
    staging_key,
)
from fonds.uploads.jobs import Job
from fonds.uploads.llamaparse import LlamaParse, ParsedText
from fonds.uploads.resources import SearchModel, WorkerResources
from fonds.uploads.webhook import receive_webhook, sign
from fonds.uploads.worker import UploadWorker
from tests.simulation.database import SeededDatabase, make_template
from tests.simulation.jobs_truth import JobsTruth
from tests.simulation.scheduler import Process, Scheduler, ViolationError
from tests.simulation.store import SeededBlobs
from tests.simulation.threads import SeededEvent, SeededLock
from tests.simulation.world import World
from tests.support import servers
from tests.support.engines import InlineEngine
from tests.support.uploads.files import PAPERS, SAID, USERS, Paper, told_of
from tests.support.uploads.invariants import Calm, calm_run
from tests.support.uploads.world import BATCH_TOKENS, ON, SECRET

ROUNDS_TO_REST: Final = 12
HOUR: Final = 3600.0

Webhook = tuple[Mapping[str, str], bytes]


def prepare() -> None:
    """What all seeds need, made before the first."""
    make_template()
    _calm()


@cache
def _calm() -> Calm:
    with capture_logs():
        return calm_run(servers.run_folder() / f"simulation-calm-{os.getpid()}")


def simulate(scheduler: Scheduler) -> None:
    """One world, from an empty library to one in which every upload has ended."""
    world = JobsWorld(scheduler)
    senders = [world.keep(f"user{number}", world.send) for number in range(2)]
    for number in range(scheduler.rng.choice([1, 2, 2])):
        world.keep(f"worker{number}", world.work)
    world.keep("api", world.receive)
    if scheduler.rng.random() < 0.5:
        world.keep("operator", world.retry)
    for sender in senders:
        sender.join()
    scheduler.pause(scheduler.rng.uniform(0, 120))
    world.calm()
    world.come_to_rest()


class JobsWorld(World):
    """A library of uploads, and all who have to do with it."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, 1.5)
        chance = self.rng
        self.blobs = SeededBlobs(scheduler, self.weather)
        self.database = SeededDatabase(
            scheduler, self.weather, is_shared=chance.random() < 0.5, watch=self._watch
        )
        self.truth = JobsTruth(self.database, self.blobs, _calm(), chance)
        url = chance.choice(["", "https://library.example"])
        self.settings = Settings(home=self.home, public_url=url, **ON)
        self._left = {
            f"user{number}": [self._choice() for _ in range(chance.randint(1, 4))]
            for number in range(2)
        }
        self.webhooks: deque[Webhook] = deque()
        with self.database.read() as connection:
            generation = current_generation(connection)
        assert generation is not None
        self.generation = generation

    def _watch(self) -> None:
        self.truth.check()

    def _choice(self) -> tuple[Paper, str]:
        paper = self.rng.choice(PAPERS)
        return paper, self.rng.choice(paper.names)

    def context(self, process: Process) -> Context:
        """What a process works with."""
        return Context(
            settings=self.settings,
            seams=self.seams(process),
            database=self.database,
            blobs=self.blobs,
        )

    # Users --------------------------------------------------------------------------------

    def send(self, process: Process) -> bool:
        """Send what this user has left; whatever is not answered is sent again."""
        name = process.name.partition("-")[0]
        user, left = USERS[int(name[-1])], self._left[name]
        while left and not self.is_over:
            try:
                self._send(process, user, *left[0])
            except UploadRefusedError as error:
                self.scheduler.note(f"refused: {error.kind}")
            except (StoreError, SQLAlchemyError) as error:
                self.scheduler.note(f"not sent: {type(error).__name__}")
                self.scheduler.pause(self.rng.uniform(0, 10))
                continue
            left.pop(0)
            self.scheduler.pause(self.rng.uniform(0, self.rng.choice([1, 40])))
        return True

    def _send(self, process: Process, user: UUID, paper: Paper, name: str) -> None:
        context, data = self.context(process), paper.data
        claim = UploadRequest(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        job = begin_upload(context, self.settings, user, claim)
        self.scheduler.note(f"{name} is announced")
        sent = data[::-1] if self.weather.strikes(0.1) else data
        self.blobs.put(staging_key(job), sent)
        if self.weather.strikes(0.1):
            complete_upload(context, self.settings, job)  # somebody clicks twice
        complete_upload(context, self.settings, job)

    def retry(self, process: Process) -> bool:
        """Send what failed back, now and then."""
        while not self.is_over:
            self.scheduler.pause(self.rng.uniform(0, 60))
            with suppress(SQLAlchemyError, FondsError):
                self.retry_all(process)
        return True

    def retry_all(self, process: Process) -> None:
        """Send all that failed back whose file is here."""
        for job in self.truth.failed():
            retry_upload(self.context(process), job, by="operator")

    # Workers ------------------------------------------------------------------------------

    def work(self, process: Process) -> bool:
        """A real worker, with its threads and its heart, until all is over."""
        try:
            resources = self._resources(process)
        except SQLAlchemyError:
            return False
        worker = self._worker(resources, concurrency=self.rng.choice([1, 2]), poll=40.0)

        def stop() -> None:
            while not self.is_over:
                self.scheduler.pause(10)
            resources.stop.set()

        process.spawn("stopper", stop)
        worker.run()
        return True

    def _worker(self, resources: WorkerResources, **more: Any) -> UploadWorker:
        worker = UploadWorker(resources, **more)
        self.truth.owners.add(worker._owner)
        return worker

    def _resources(self, process: Process) -> WorkerResources:
        seams = self.seams(process)
        resources = WorkerResources(context=self.context(process), engine=InlineEngine())
        resources.stop = SeededEvent(self.scheduler)  # type: ignore[assignment]  # does what an Event does
        resources._lock = SeededLock(self.scheduler)  # type: ignore[assignment]  # as above
        client = EmbeddingClient(_Moody(self), seams, Settings(retries=2), stop=resources.stop)
        resources._model = SearchModel(generation=self.generation, client=client)
        resources._llamaparse = _Outside(self, seams)
        return resources

    # The parser outside -------------------------------------------------------------------

    def receive(self, process: Process) -> bool:
        """Take webhooks as they come: late, twice, and again where we did not answer."""
        while not self.is_over:
            self.scheduler.pause(self.rng.uniform(0, 20))
            if self.webhooks:
                headers, body = self.webhooks[0]
                try:
                    context = self.context(process)
                    effect = receive_webhook(context, self.settings, headers.items(), body)
                    self.scheduler.note(f"webhook {effect}")
                except WebhookError as error:
                    self.scheduler.note(f"webhook {error.kind}")
                except (StoreError, SQLAlchemyError) as error:
                    self.scheduler.note(f"webhook not taken: {type(error).__name__}")
                    continue
                self.webhooks.popleft()
        return True

    def announce(self, job: Job) -> None:
        """Have the parser outside tell of a job, perhaps more than once."""
        status = "failed" if self.weather.strikes(self.weather.refuse) else "parsed"
        name = f"msg_{self.rng.getrandbits(32)}"
        now = self.scheduler.outside.now()
        told = (sign(name, now, told_of(job, status), [SECRET]), told_of(job, status))
        self.webhooks.extend([told] * self.rng.choice([0, 1, 1, 2]))

    # The end ------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """In calm every upload ends as its file deserves, and then there is nothing more to do."""
        for _ in range(ROUNDS_TO_REST):
            self.do("last", self._drain)
            if self.truth.has_ended():
                break
            self.do("operator", self.retry_all)
            self.scheduler.pause(HOUR)
        self.truth.check_rest(self.generation)
        before = self.truth.everything()
        self.do("last", self._drain)
        after = self.truth.everything()
        if changed := [name for name in before if before[name] != after[name]]:
            raise ViolationError(f"a worker with nothing to do wrote {changed}")

    def _drain(self, process: Process) -> None:
        self._worker(self._resources(process)).drain()


class _Moody:
    """A model that is down for a while, or refuses what it is given."""

    is_remote = False

    def __init__(self, world: JobsWorld) -> None:
        self._inner = HashingEmbedder(32)
        self.model = replace(self._inner.model, batch_tokens=BATCH_TOKENS)
        self._world = world

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        weather = self._world.weather
        weather.pass_by(f"embed {len(texts)}")
        if weather.strikes(weather.refuse):
            raise RetryableEmbedError("the model is down")
        if weather.strikes(weather.refuse / 4) and list(texts) != [PROBE]:
            raise EmbedError("the model does not like this text")
        return self._inner.embed(texts, purpose)


class _Outside(LlamaParse):
    """The parser outside, without a network."""

    def __init__(self, world: JobsWorld, seams: Any) -> None:
        super().__init__(world.settings, seams)
        self._world = world

    def submit(self, *_: Any, document_id: UUID, **__: Any) -> str:
        self._pass_by("submit")
        world = self._world
        job = next(job for job in world.truth.jobs() if job.document_id == document_id)
        world.scheduler.outside.spawn("parser", partial(self._later, job))
        return str(document_id)

    def _later(self, job: Job) -> None:
        self._world.scheduler.pause(self._world.rng.uniform(0, 90))
        self._world.announce(job)

    def fetch(self, their_id: str) -> ParsedText | None:
        self._pass_by("fetch")
        weather = self._world.weather
        if weather.strikes(weather.refuse / 2):
            raise ParserError("the parser could not read it")
        if weather.strikes(0.3):
            return None
        return ParsedText(markdown=SAID[UUID(their_id)], parser_version="api-v1")

    def _pass_by(self, what: str) -> None:
        weather = self._world.weather
        weather.pass_by(f"parser: {what}")
        if weather.strikes(weather.refuse):
            raise RetryableParserError("the parser is down")
