"""A library of uploads, and all around it that may go wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from sqlalchemy import insert, select, text
from tests.support.engines import InlineEngine
from tests.support.libraries.uploads import upload_library
from tests.support.uploads.files import SAID, USERS, Paper

from fonds.context import Context
from fonds.embed.base import Embedded, Purpose
from fonds.embed.client import PROBE, EmbeddingClient
from fonds.embed.hashing import HashingEmbedder
from fonds.embed.worker import ensure_current
from fonds.errors import (
    EmbedError,
    ParserError,
    RetryableEmbedError,
    RetryableParserError,
    StoreError,
)
from fonds.library import Library
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import Data, FolderBlobs
from fonds.stores.tables import upload_jobs, users
from fonds.testing import ManualClock
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload
from fonds.uploads.jobs import Job, page_of_jobs
from fonds.uploads.llamaparse import LlamaParse, ParsedText
from fonds.uploads.resources import SearchModel, WorkerResources
from fonds.uploads.states import ACTIVE
from fonds.uploads.worker import UploadWorker

SECRET: Final = "the secret of this test"
ON: Final[Mapping[str, Any]] = {
    "embedder": "hashing:32",
    "parser": "llamaparse",
    "llamaparse_key": "llx-test",
    "webhook_secrets": (SECRET,),
    "chunk_tokens": 24,
    "chunk_overlap": 4,
}
BATCH_TOKENS: Final = 50
MOST_OPERATIONS: Final = 300
"""Of one act; who needs more goes round in circles."""
PATIENCE: Final = 40
_CLEARED: Final = (
    "users, documents, document_chunk_buffer, document_vector_buffer, embedding_batches,"
    " webhook_nonces, upload_deletions"
)


class CrashError(BaseException):
    """The end of a process: nothing of ours may catch it."""


class EndlessError(BaseException):
    """Somebody goes round in circles."""


@dataclass
class Surroundings:
    """What is outside our control: crashes, what happens meanwhile, the moods of others."""

    crash_at: int | None = None
    meanwhile: Callable[[], object] | None = None
    pauses: int = 0
    """How many are let pass before that."""
    embedder: str = "fine"
    parser: str = "done"
    store: str = "fine"
    count: int = 0

    def durable(self, _operation: str, _subject: str) -> None:
        """Count an operation, and perhaps end before it."""
        self.count += 1
        if self.count > MOST_OPERATIONS:
            raise EndlessError
        if self.count == self.crash_at:
            raise CrashError

    def pause(self) -> None:
        """A moment in which others act; in no transaction, where they would have to wait."""
        self.pauses -= 1
        if self.pauses < 0 and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()


class Paused(FolderBlobs):
    """A store that takes its time."""

    def __init__(self, root: Path, seams: Seams, around: Surroundings) -> None:
        super().__init__(root, seams=seams)
        self._around = around

    def get(self, key: str) -> bytes:
        self._require_up()
        data = super().get(key)
        self._around.pause()
        return data

    def create(self, key: str, data: Data) -> str:
        self._require_up()
        self._around.pause()
        return super().create(key, data)

    def _require_up(self) -> None:
        if self._around.store == "down":
            raise StoreError("the object store answers 503")


class Moody:
    """A model that is down for a while, or refuses what it is given."""

    is_remote = False

    def __init__(self, around: Surroundings) -> None:
        self._inner = HashingEmbedder(32)
        self.model = replace(self._inner.model, batch_tokens=BATCH_TOKENS)
        self._around = around

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        self._around.pause()
        if self._around.embedder == "down":
            raise RetryableEmbedError("the model is down")
        if self._around.embedder == "refuses" and list(texts) != [PROBE]:
            raise EmbedError("the model does not like this text")
        return self._inner.embed(texts, purpose)


class Outside(LlamaParse):
    """The parser outside, without a network."""

    def __init__(self, library: Library, around: Surroundings) -> None:
        super().__init__(library.settings, library.seams)
        self._around = around

    def submit(self, *_: Any, document_id: UUID, **__: Any) -> str:
        self._around.pause()
        if self._around.parser == "down":
            raise RetryableParserError("the parser is down")
        return str(document_id)

    def fetch(self, their_id: str) -> ParsedText | None:
        self._around.pause()
        if self._around.parser == "down":
            raise RetryableParserError("the parser is down")
        if self._around.parser == "fails":
            raise ParserError("the parser could not read it")
        if self._around.parser == "works":
            return None
        return ParsedText(markdown=SAID[UUID(their_id)], parser_version="api-v1")


@dataclass(kw_only=True)
class World:
    """A library with its users, and all that surrounds it."""

    library: Library
    clock: ManualClock
    around: Surroundings
    files: FolderBlobs
    """As they are, whatever mood the store is in."""

    @property
    def context(self) -> Context:
        return self.library.context

    def resources(self) -> WorkerResources:
        """What one worker has for itself."""
        library = self.library
        resources = WorkerResources(context=self.context, engine=InlineEngine())
        generation = ensure_current(library.database, library.seams, library.settings)
        client = EmbeddingClient(Moody(self.around), library.seams, Settings(retries=1))
        resources._model = SearchModel(generation=generation, client=client)
        resources._llamaparse = Outside(library, self.around)
        return resources

    def jobs(self) -> list[Job]:
        with self.library.database.read() as connection:
            return page_of_jobs(connection, limit=1000)

    def rows(self, *columns: Any) -> list[Any]:
        with self.library.database.read() as connection:
            return list(connection.execute(select(*columns)))

    def announce(self, user: UUID, paper: Paper, name: str) -> Job:
        self.clock.move(milliseconds=1)
        sha256 = hashlib.sha256(paper.data).hexdigest()
        told = UploadRequest(name=name, size=len(paper.data), sha256=sha256)
        return begin_upload(self.context, self.library.settings, user, told)

    def complete(self, job: Job) -> Job:
        return complete_upload(self.context, self.library.settings, job)

    def pass_time(self, seconds: float) -> None:
        """Also backwards, as clocks are set; seconds that are counted never are."""
        self.clock.moment += timedelta(seconds=seconds)
        self.clock.elapsed += max(0.0, seconds)

    def drain(self, workers: Sequence[UploadWorker]) -> None:
        """Let time pass and workers work until nothing is left to do."""
        for _ in range(PATIENCE):
            self._await_all()
            for worker in workers:
                self.around.count = 0
                while worker.work_once():
                    self.around.count = 0
            if not any(job.status in ACTIVE for job in self.jobs()):
                return
        raise AssertionError("there are jobs that never end")

    def _await_all(self) -> None:
        known = self.rows(upload_jobs.c.lease_until, upload_jobs.c.next_attempt_at)
        latest = max((each for row in known for each in row if each), default=self.clock.now())
        self.pass_time(max(0.0, (latest - self.clock.now()).total_seconds()) + 31)


@contextmanager
def opened(home: Path, **on: Any) -> Iterator[World]:
    """A library without a job."""
    around, clock = Surroundings(), ManualClock()
    seams = Seams(clock=clock, rng=Random(0), durable=around.durable)
    with upload_library(home, seams=seams, **ON, **on) as library:
        library.blobs = Paused(home / "files", seams, around)
        rows = [{"id": user, "name": str(user), "created_at": clock.now()} for user in USERS]
        with library.database.write() as connection:
            if not library.database.is_sqlite:
                connection.execute(text(f"TRUNCATE {_CLEARED} CASCADE"))
            connection.execute(insert(users), rows)
        files = FolderBlobs(home / "files", seams=Seams())
        yield World(library=library, clock=clock, around=around, files=files)


Opener = Callable[[], AbstractContextManager[World]]
