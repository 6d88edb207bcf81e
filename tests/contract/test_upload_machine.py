"""The job machine under crashes, two workers, strange webhooks and a clock that jumps."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import event, insert, select, text, update
from tests.shelf import problems
from tests.uploading import now_of, upload_library

from fonds import ids
from fonds.embed.base import Embedded, Purpose
from fonds.embed.calls import PROBE, Calls
from fonds.embed.current import ensure_current
from fonds.embed.hashing import HashingEmbedder
from fonds.engine.local import LocalEngine
from fonds.errors import (
    EmbedError,
    FondsError,
    LeaseLostError,
    ParserError,
    RetryableEmbedError,
    RetryableParserError,
    StoreError,
    UploadRefusedError,
    UsageError,
    WebhookError,
)
from fonds.library import Library
from fonds.runs.shelf import Shelf
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.blobs import Data, FolderBlobs
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    documents,
    upload_errors,
    upload_events,
    upload_jobs,
    users,
)
from fonds.testing import ManualClock
from fonds.uploads.intake import (
    Claim,
    begin_upload,
    complete_upload,
    expire_uploads,
    retry_upload,
    staging_key,
)
from fonds.uploads.jobs import Job, claim, page_of_jobs
from fonds.uploads.llamaparse import Fetched, LlamaParse
from fonds.uploads.reception import receive_webhook
from fonds.uploads.stages import STEPS
from fonds.uploads.states import ENDED, FAILURES, MOVES, WORKED_ON, Status, stage_of
from fonds.uploads.webhook import ID_HEADER, KEPT, sign
from fonds.uploads.workbench import Model, Workbench
from fonds.uploads.worker import LEASE, BaseWorker

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
USERS: Final = (UUID(int=1, version=4), UUID(int=2, version=4))
CUT: Final = (
    Status.CHUNKS_STORED,
    Status.EMBEDDING_QUEUED,
    Status.EMBEDDING_IN_PROGRESS,
    Status.EMBEDDINGS_STORED,
    Status.COMPLETE,
    Status.FAILED_EMBEDDING,
)
"""Where a job stands that has passages."""
_CLEARED: Final = (
    "users, documents, document_chunk_buffer, document_vector_buffer, embedding_batches,"
    " webhook_nonces"
)


# Files --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paper:
    """A file as somebody may upload it, and what it says."""

    names: tuple[str, ...]
    data: bytes
    said: str = ""
    """What the parser outside reads in it."""
    wordless: bool = False


def _long(word: str) -> str:
    parts = [f"## {word} {n}\n\n" + f"The {word} of part {n} is insured. " * 5 for n in range(3)]
    return f"# About {word}\n\n" + "\n\n".join(parts) + "\n"


PAPERS: Final = (
    Paper(("cover.md", "cover.txt"), _long("cover").encode()),
    Paper(("copy.md",), _long("cover").replace("\n", "\r\n").encode()),
    Paper(("stars.md",), b"***\n\n***\n", wordless=True),
    Paper(("title.md",), b"# Nothing below\n"),
    Paper(("scan.pdf",), b"%PDF-1.7 one scan", said=_long("water")),
    Paper(("again.pdf",), b"%PDF-1.7 another scan", said=_long("water")),
)
BY_NAME: Final = {paper.names[0]: paper for paper in PAPERS}
BY_SHA: Final = {hashlib.sha256(paper.data).hexdigest(): paper for paper in PAPERS}
SAID: Final = {ids.upload_uid(user, sha): BY_SHA[sha].said for user in USERS for sha in BY_SHA}


def passages_of(library: Library) -> dict[UUID, list[Any]]:
    """The passages of each document, in their order."""
    chunk = document_chunk_buffer.c
    query = select(chunk.document_id, chunk.chunk_id, chunk.chunk_ord, chunk.text, chunk.meta)
    held: dict[UUID, list[Any]] = defaultdict(list)
    with library.database.read() as connection:
        for row in connection.execute(query.order_by(chunk.chunk_ord)):
            held[row.document_id].append((row.chunk_id, row.chunk_ord, row.text, row.meta))
    return held


def vectors_of(library: Library) -> dict[UUID, dict[UUID, str]]:
    """The vectors of each document, by their passage."""
    vector = document_vector_buffer.c
    held: dict[UUID, dict[UUID, str]] = defaultdict(dict)
    with library.database.read() as connection:
        for row in connection.execute(
            select(vector.document_id, vector.chunk_id, vector.vector_sha)
        ):
            assert row.chunk_id not in held[row.document_id]
            held[row.document_id][row.chunk_id] = row.vector_sha
    return held


# What surrounds the machine -----------------------------------------------------------------


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

    def fetch(self, their_id: str) -> Fetched | None:
        self._around.pause()
        if self._around.parser == "down":
            raise RetryableParserError("the parser is down")
        if self._around.parser == "fails":
            raise ParserError("the parser could not read it")
        if self._around.parser == "works":
            return None
        return Fetched(markdown=SAID[UUID(their_id)], parser_version="api-v1")


@dataclass(kw_only=True)
class World:
    """A library with its users, and all that surrounds it."""

    library: Library
    clock: ManualClock
    around: Surroundings
    files: FolderBlobs
    """As they are, whatever mood the store is in."""

    @property
    def shelf(self) -> Shelf:
        return self.library.shelf()

    def bench(self) -> Workbench:
        """What one worker has for itself."""
        library = self.library
        bench = Workbench(shelf=self.shelf, settings=library.settings, engine=LocalEngine())
        generation = ensure_current(library.database, library.seams, library.settings)
        calls = Calls(Moody(self.around), library.seams, Settings(retries=1))
        bench._model = Model(generation=generation, calls=calls)
        bench._llamaparse = Outside(library, self.around)
        return bench

    def jobs(self) -> list[Job]:
        with self.library.database.read() as connection:
            return page_of_jobs(connection, limit=1000)

    def rows(self, *columns: Any) -> list[Any]:
        with self.library.database.read() as connection:
            return list(connection.execute(select(*columns)))

    def announce(self, user: UUID, paper: Paper, name: str) -> Job:
        self.clock.move(milliseconds=1)
        sha256 = hashlib.sha256(paper.data).hexdigest()
        told = Claim(name=name, size=len(paper.data), sha256=sha256)
        return begin_upload(self.shelf, self.library.settings, user, told)

    def complete(self, job: Job) -> Job:
        return complete_upload(self.shelf, self.library.settings, job)

    def pass_time(self, seconds: float) -> None:
        """Also backwards, as clocks are set; seconds that are counted never are."""
        self.clock.moment += timedelta(seconds=seconds)
        self.clock.elapsed += max(0.0, seconds)

    def drain(self, workers: Sequence[BaseWorker]) -> None:
        """Let time pass and workers work until nothing is left to do."""
        for _ in range(PATIENCE):
            self._await_all()
            for worker in workers:
                self.around.count = 0
                while worker.work_once():
                    self.around.count = 0
            if not any(job.status in WORKED_ON for job in self.jobs()):
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
    seams = Seams(clock=clock, chance=Random(0), durable=around.durable)
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
Calm = Mapping[tuple[UUID, str], tuple[list[Any], dict[UUID, str]]]
"""Passages and vectors by document and name of its file, where nobody disturbs anything."""


def told_of(job: Job, status: str, **changes: Any) -> bytes:
    content = SAID[job.document_id].encode()
    artifact = {
        "type": "markdown",
        "content": content.decode(),
        "sha256": changes.pop("sha256", hashlib.sha256(content).hexdigest()),
        "bytes": len(content),
    }
    told = {"job_id": str(job.job_id), "document_id": str(job.document_id), "status": status}
    rest: dict[str, Any] = {"error": "it could not be read outside"}
    if status == "parsed":
        meta = {"parser_name": "llamaparse", "parser_version": "1"}
        rest = {"artifacts": [artifact], "meta": meta}
    return json.dumps(told | rest | changes).encode()


# The machine --------------------------------------------------------------------------------

some = st.integers(0, 1000)
uploads = st.tuples(st.sampled_from([0, 1]), st.sampled_from(sorted(BY_NAME)))
crashes = st.one_of(st.none(), st.integers(1, 6))
late_crashes = st.one_of(st.none(), st.integers(1, 30))
waits = st.sampled_from([0, 4, 13, 31])
meantimes = st.sampled_from(["takeover", "takeover", "answered", "refused", "restarted"])
pauses = st.integers(0, 6)
jumps = st.sampled_from([1, 3, 6, 12, 31, 61, 301, 3601, -1, -31, -301, -3601])


class UploadMachine(RuleBasedStateMachine):
    """Users, two workers and the parser outside act in any order, and anything may go wrong."""

    def __init__(self, opener: Opener, calm: Calm) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.world = self._stack.enter_context(opener())
        self.around = self.world.around
        self._calm = calm
        self._workers = [BaseWorker(self.world.bench()) for _ in range(2)]
        self._held: dict[int, Job] = {}
        self.handles: list[Job] = []
        """Jobs as their users were told of them, which may be long ago."""
        self._webhooks: list[tuple[dict[str, str], bytes]] = []
        self._received: dict[str, datetime] = {}
        """When a webhook was handled, by its id."""
        self._latest = self.world.clock.now()
        """That any webhook was handled at: what is old by then may be forgotten."""

    def _handle(self, number: int) -> Job:
        return self.handles[number % len(self.handles)]

    def _act(
        self,
        act: Callable[[], object],
        crash: int | None = None,
        meanwhile: Callable[[], object] | None = None,
        pauses: int = 0,
    ) -> None:
        """Do something; a crash takes both workers with it, and leaves their leases behind."""
        around = self.around
        around.count, around.crash_at = 0, crash
        around.meanwhile, around.pauses = meanwhile, pauses
        try:
            act()
        except CrashError:
            around.crash_at = around.meanwhile = None
            self._held.clear()
            self._workers = [BaseWorker(self.world.bench()) for _ in range(2)]
        finally:
            around.crash_at = around.meanwhile = None

    # Users

    @initialize(sent=st.lists(uploads, min_size=4, max_size=9, unique=True))
    def begin(self, sent: list[tuple[int, str]]) -> None:
        for user, name in sent:
            self._send(user, name)

    @rule(sent=uploads, crash=crashes)
    def send(self, sent: tuple[int, str], crash: int | None) -> None:
        self._act(lambda: self._send(*sent), crash)

    def _send(self, user: int, name: str) -> None:
        job = self.world.announce(USERS[user], BY_NAME[name], name)
        self.handles.append(job)
        self.world.files.put(staging_key(job), BY_NAME[name].data)
        self._complete(job)

    @rule(
        upload=uploads,
        number=some,
        what=st.sampled_from(["nothing", "right", "wrong", "short", "long"]),
        crash=crashes,
        meanwhile=st.sampled_from([None, "twice", "renamed"]),
    )
    def send_oddly(
        self,
        upload: tuple[int, str],
        number: int,
        what: str,
        crash: int | None,
        meanwhile: str | None,
    ) -> None:
        user, paper = USERS[upload[0]], BY_NAME[upload[1]]
        job = self.world.announce(user, paper, paper.names[number % len(paper.names)])
        self.handles.append(job)
        data = paper.data
        came = {"right": data, "wrong": data[::-1], "short": data[:-1], "long": data + b"."}
        if what in came:
            self.world.files.put(staging_key(job), came[what])
        acts = {"twice": lambda: self._complete(job), "renamed": lambda: self._rename(job)}
        self._act(lambda: self._complete(job), crash, acts.get(meanwhile or ""))

    def _complete(self, job: Job) -> None:
        try:
            self.world.complete(job)
        except UploadRefusedError as error:
            if error.kind not in {"not-there", "size-mismatch", "hash-mismatch"}:
                raise
        except StoreError:
            if self.around.store != "down":
                raise

    def _rename(self, job: Job) -> None:
        """The job is given up while its file is looked at, and begins again by another name."""
        self.world.pass_time(3601)
        expire_uploads(self.world.shelf)
        paper = BY_SHA[job.raw_sha256]
        self.handles.append(self.world.announce(job.user_id, paper, paper.names[-1]))

    @rule(number=some, crash=crashes)
    def ask_again(self, number: int, crash: int | None) -> None:
        told = self._handle(number)
        self._act(lambda: self._complete(told), crash)
        job = now_of(self.world.library, told)
        if job.status in FAILURES:
            self._act(lambda: retry_upload(self.world.shelf, job, by="tester"), crash)
            return
        with pytest.raises(UsageError):
            retry_upload(self.world.shelf, job, by="tester")

    # Workers

    # Rules of each of them: in an example some rules are left out, and somebody has to work.

    @rule(wait=waits, crash=late_crashes)
    def one_works(self, wait: int, crash: int | None) -> None:
        self.world.pass_time(wait)
        self._act(lambda: self._work(0), crash)

    @rule(wait=waits, crash=late_crashes)
    def two_works(self, wait: int, crash: int | None) -> None:
        self.world.pass_time(wait)
        self._act(lambda: self._work(1), crash)

    @rule(wait=waits, meanwhile=meantimes, pauses=pauses)
    def one_works_slowly(self, wait: int, meanwhile: str, pauses: int) -> None:
        self.world.pass_time(wait)
        self._act(lambda: self._work(0), None, self._meanwhile(meanwhile, 0), pauses)

    @rule(wait=waits, meanwhile=meantimes, pauses=pauses)
    def two_works_slowly(self, wait: int, meanwhile: str, pauses: int) -> None:
        self.world.pass_time(wait)
        self._act(lambda: self._work(1), None, self._meanwhile(meanwhile, 1), pauses)

    def _work(self, which: int) -> None:
        for _ in range(2):
            self._workers[which].work_once()

    @rule(count=st.integers(1, 9))
    def one_steps(self, count: int) -> None:
        self._steps(0, count)

    @rule(count=st.integers(1, 9))
    def two_steps(self, count: int) -> None:
        self._steps(1, count)

    def _steps(self, which: int, count: int) -> None:
        """Some steps, perhaps with a job that is not ours any more; the next rule goes on."""
        for _ in range(count):
            if which not in self._held:
                self._take(which)
            if which in self._held:
                self._act(lambda: self._step(which))

    def _take(self, which: int) -> None:
        owner, now = self._workers[which]._owner, self.world.clock.now()
        with self.world.library.database.write() as connection:
            job = claim(connection, owner, now, LEASE)
        if job is not None:
            self._held[which] = job

    def _step(self, which: int) -> None:
        """What a worker does with a job, but only for one step."""
        job, worker = self._held.pop(which), self._workers[which]
        try:
            job = STEPS[job.status](worker._bench, job)
        except LeaseLostError:
            return
        except FondsError as error:
            worker._settle(job, error)
            return
        if job.lease_owner is not None and job.status not in ENDED:
            self._held[which] = job

    def _meanwhile(self, what: str, which: int) -> Callable[[], object]:
        def takeover() -> None:
            self.world.pass_time(31)
            self._workers[1 - which].work_once()

        def restarted() -> None:
            for job in self._answer_all("failed"):
                retry_upload(self.world.shelf, job, by="tester")

        return {
            "takeover": takeover,
            "answered": lambda: self._answer_all("parsed"),
            "refused": lambda: self._answer_all("failed"),
            "restarted": restarted,
        }[what]

    # The parser outside

    def _answer_all(self, status: str) -> list[Job]:
        waiting = [job for job in self.world.jobs() if job.parser == "llamaparse"]
        waiting = [job for job in waiting if job.status is Status.PARSE_QUEUED]
        for job in waiting:
            assert self._deliver(told_of(job, status)) in {"taken", "down"}
        return waiting

    def _deliver(self, body: bytes, secret: str = SECRET) -> str:
        name, now = f"msg_{len(self._webhooks)}", self.world.clock.now()
        headers = sign(name, now, body, [secret])
        self._webhooks.append((headers, body))
        return self._receive(headers, body)

    def _receive(self, headers: Mapping[str, str], body: bytes) -> str:
        now = self.world.clock.now()
        try:
            settings = self.world.library.settings
            end = receive_webhook(self.world.shelf, settings, headers.items(), body)
        except WebhookError as error:
            return error.kind
        except StoreError:
            return self.around.store
        self._received[headers[ID_HEADER]] = now
        self._latest = max(self._latest, now)
        return end

    @rule(number=some, status=st.sampled_from(["parsed", "parsed", "failed"]), crash=crashes)
    def webhook(self, number: int, status: str, crash: int | None) -> None:
        job = now_of(self.world.library, self._handle(number))
        expected = "taken" if job.status is Status.PARSE_QUEUED else "ignored"
        expected = "unknown-job" if job.parser == "local" else expected
        ends: list[str] = []
        self._act(lambda: ends.append(self._deliver(told_of(job, status))), crash)
        assert ends in ([], [expected], ["down"])

    @rule(number=some, how=st.sampled_from(["forged", "other job", "hash"]))
    def strange_webhook(self, number: int, how: str) -> None:
        job = self._handle(number)
        before = self.world.jobs()
        if how == "forged":
            assert self._deliver(told_of(job, "parsed"), "a guess") == "bad-signature"
        elif how == "hash":
            assert self._deliver(told_of(job, "parsed", sha256="0" * 64)) == "hash-mismatch"
        else:
            other = replace(job, job_id=UUID(int=number))
            assert self._deliver(told_of(other, "parsed")) == "unknown-job"
        assert self.world.jobs() == before

    @precondition(lambda self: self._webhooks)
    @rule(number=some)
    def replay(self, number: int) -> None:
        headers, body = self._webhooks[number % len(self._webhooks)]
        received = self._received.get(headers[ID_HEADER])
        before = self.world.jobs()
        end = self._receive(headers, body)
        if received is not None and self._latest - received <= KEPT:
            assert end in {"replayed", "stale"}
            assert self.world.jobs() == before

    # Time and moods

    @rule(
        seconds=jumps,
        embedder=st.sampled_from(["fine", "fine", "fine", "down", "refuses"]),
        parser=st.sampled_from(["done", "done", "done", "works", "down", "fails"]),
        store=st.sampled_from(["fine", "fine", "fine", "down"]),
    )
    def change_weather(self, seconds: int, embedder: str, parser: str, store: str) -> None:
        self.world.pass_time(seconds)
        self.around.embedder, self.around.parser, self.around.store = embedder, parser, store
        expire_uploads(self.world.shelf)

    # What must always hold

    @invariant()
    def nothing_lies(self) -> None:
        jobs = self.world.jobs()
        self._check_moves(jobs)
        self._check_texts(jobs)
        self._check_passages({job.document_id: job for job in jobs})
        complete = [job.document_id for job in jobs if job.status is Status.COMPLETE]
        found = sorted(row.id for row in self.world.rows(documents.c.id))
        assert found == sorted(map(ids.upload_id, complete))
        for job in jobs:
            if job.status in FAILURES:
                assert job.last_error is not None
                assert job.last_error["stage"] == stage_of(job.status)
                assert job.last_error["type"]
                assert job.last_error["message"].strip()
            if job.status in ENDED or job.status is Status.UPLOADED:
                assert job.lease_owner is None

    def _check_moves(self, jobs: Sequence[Job]) -> None:
        """Every job came by legal moves to where it stands, and each failure was noted."""
        made, error = upload_events.c, upload_errors.c
        moves = sorted(self.world.rows(made.id, made.job_id, made.from_status, made.to_status))
        for job in jobs:
            own = [move for move in moves if move.job_id == job.job_id]
            path = [Status(move.to_status) for move in own]
            assert [move.from_status for move in own] == [None, *path[:-1]]
            assert (path[0], path[-1]) == (Status.UPLOADED, job.status)
            assert all(after in MOVES[before] for before, after in pairwise(path))
        noted = sum(row.is_final for row in self.world.rows(error.id, error.is_final))
        assert noted == sum(move.to_status in FAILURES for move in moves)

    def _check_texts(self, jobs: Sequence[Job]) -> None:
        """Files and texts are where jobs say."""
        blobs = self.world.files
        for job in jobs:
            if job.arrived_at is not None:
                assert blobs.get(job.raw_path) == BY_SHA[job.raw_sha256].data
            if job.parsed_path is not None and job.status not in {*FAILURES, Status.PARSE_QUEUED}:
                parsed = blobs.get(job.parsed_path)
                assert hashlib.sha256(parsed).hexdigest() == job.parsed_sha256

    def _check_passages(self, jobs: Mapping[UUID, Job]) -> None:
        """Passages and vectors are those of a calm run, and only of jobs that are so far."""
        passages, vectors = passages_of(self.world.library), vectors_of(self.world.library)
        assert set(passages) == {key for key, job in jobs.items() if job.status in CUT}
        assert set(vectors) <= set(passages)
        for document_id, held in passages.items():
            job = jobs[document_id]
            cut, embedded = self._calm[document_id, job.name]
            assert held == cut
            assert vectors[document_id].items() <= embedded.items()
            self._check_progress(job, len(vectors[document_id]), len(cut))

    def _check_progress(self, job: Job, vectors: int, passages: int) -> None:
        assert job.progress is not None
        assert job.progress["chunks_total"] == passages
        if job.status in {Status.EMBEDDINGS_STORED, Status.COMPLETE}:
            assert vectors == passages
        if job.status is Status.EMBEDDING_IN_PROGRESS:
            assert job.progress["embeds_done"] == vectors > 0
        if job.status is Status.CHUNKS_STORED and not job.reprocessed:
            assert vectors == 0

    # The end

    def teardown(self) -> None:
        with self._stack:
            if sys.exc_info()[0] is None:  # else there is something to report already
                self._come_to_rest()

    def _come_to_rest(self) -> None:
        world = self.world
        self.around.embedder, self.around.parser, self.around.store = "fine", "done", "fine"
        world.drain(self._workers)
        self.nothing_lies()
        for job in world.jobs():
            assert job.status in {*ENDED, Status.UPLOADED}
            assert job.lease_owner is None
            if job.status in FAILURES:
                retry_upload(world.shelf, job, by="tester")
        world.drain(self._workers)
        self.nothing_lies()
        for job in world.jobs():
            assert job.status is self._expected_end(job)
        generation = ensure_current(world.library.database, world.library.seams, Settings())
        assert problems(world.library.database, generation) == []
        for user in USERS:
            self._check_search(user)

    def _expected_end(self, job: Job) -> Status:
        if job.arrived_at is None:
            return Status.UPLOADED
        wordless = BY_SHA[job.raw_sha256].wordless
        return Status.FAILED_PARSE if wordless else Status.COMPLETE

    def _check_search(self, user: UUID) -> None:
        jobs = [job for job in self.world.jobs() if job.user_id == user]
        own = {ids.upload_id(job.document_id) for job in jobs if job.status is Status.COMPLETE}
        hits = self.world.library.search("insured part nothing below", owner=user, limit=200)
        assert {hit.id for hit in hits} == own


# The tests ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Every file under every name, with nothing in its way."""
    found: dict[tuple[UUID, str], tuple[list[Any], dict[UUID, str]]] = {}
    for place in (0, -1):
        with opened(tmp_path_factory.mktemp("calm")) as world:
            for user in USERS:
                for paper in PAPERS:
                    job = world.announce(user, paper, paper.names[place])
                    world.files.put(staging_key(job), paper.data)
                    world.complete(job)
            world.drain([BaseWorker(world.bench())])
            passages, vectors = passages_of(world.library), vectors_of(world.library)
            for job in world.jobs():
                key = job.document_id
                found[key, job.name] = (passages[key], vectors[key])
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    on: dict[str, Any] = {}
    if request.param == "postgres":
        on = {"database": request.getfixturevalue("postgres_database")}

    @contextmanager
    def fresh() -> Iterator[World]:
        home = tmp_path / "library"
        with opened(home, **on) as world:
            yield world
        shutil.rmtree(home)

    return fresh


def _run(opener: Opener, calm: Calm, **how: Any) -> None:
    checks = list(HealthCheck)
    given = settings(deadline=None, suppress_health_check=checks, database=None, **how)
    machine: Any = lambda: UploadMachine(opener, calm)  # noqa: E731 — typed as a class there
    run_state_machine_as_test(machine, settings=given)


def test_no_job_gets_stuck_or_lies_whatever_happens(opener: Opener, calm: Calm) -> None:
    _run(opener, calm, max_examples=12, stateful_step_count=25, derandomize=True)


def test_retry_of_a_job_that_has_all_its_vectors_publishes_it(opener: Opener) -> None:
    with opener() as world:
        worker = BaseWorker(world.bench())
        job = _carried(world, worker, Status.EMBEDDINGS_STORED)
        worker._settle(job, ParserError("something broke just before the end"))
        assert now_of(world.library, job).status is Status.FAILED_EMBEDDING
        retry_upload(world.shelf, job, by="tester")
        world.drain([worker])
        assert now_of(world.library, job).status is Status.COMPLETE


def _carried(world: World, worker: BaseWorker, status: Status) -> Job:
    """A job that a worker has taken so far, and holds."""
    job = world.announce(USERS[0], PAPERS[0], PAPERS[0].names[0])
    world.files.put(staging_key(job), PAPERS[0].data)
    world.complete(job)
    with world.library.database.write() as connection:
        held = claim(connection, worker._owner, world.clock.now(), LEASE)
    assert held is not None
    while held.status is not status:
        held = STEPS[held.status](worker._bench, held)
    return held


def test_file_that_is_announced_by_another_name_while_it_is_looked_at_is_not_lost(
    opener: Opener,
) -> None:
    with opener() as world:
        paper, user = PAPERS[0], USERS[0]
        job = world.announce(user, paper, "cover.md")
        world.files.put(staging_key(job), paper.data)

        def renamed() -> None:
            world.pass_time(3601)
            expire_uploads(world.shelf)
            world.announce(user, paper, "cover.txt")

        world.around.meanwhile = renamed
        world.complete(job)
        held = now_of(world.library, job)
        if held.status is Status.UPLOADED:
            world.files.put(staging_key(held), paper.data)
            world.complete(held)
        world.drain([BaseWorker(world.bench())])
        assert now_of(world.library, job).status is Status.COMPLETE


def test_worker_outlives_a_takeover_while_it_notes_an_error(
    postgres_database: str, tmp_path: Path
) -> None:
    with opened(tmp_path, database=postgres_database) as world:
        worker = BaseWorker(world.bench())
        job = _carried(world, worker, Status.PARSED)
        engine = world.library.database.engine

        def stolen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("INSERT INTO upload_errors"):
                with engine.connect() as connection, connection.begin():
                    connection.execute(update(upload_jobs).values(lease_owner="another"))

        event.listen(engine, "before_cursor_execute", stolen)
        worker._settle(job, ParserError("too late to tell"))
        held = now_of(world.library, job)
        assert (held.status, held.lease_owner) == (Status.PARSED, "another")
        assert world.rows(upload_errors.c.id) == []


@pytest.mark.long
def test_no_job_gets_stuck_or_lies_whatever_happens_for_long(opener: Opener, calm: Calm) -> None:
    _run(opener, calm, max_examples=60, stateful_step_count=60, print_blob=True)
