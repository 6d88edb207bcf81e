"""Users, two workers and the parser outside, who act in any order while anything goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.libraries.passages import problems
from tests.support.uploads.files import BY_NAME, BY_SHA, USERS, Paper, told_of
from tests.support.uploads.invariants import Calm, require_truth
from tests.support.uploads.world import SECRET, CrashError, Opener

from fonds import ids
from fonds.embed.worker import ensure_current
from fonds.errors import (
    FondsError,
    LeaseLostError,
    StoreError,
    UploadRefusedError,
    UsageError,
    WebhookError,
)
from fonds.settings import Settings
from fonds.uploads.deletion import SWEEP_FOR, delete_upload, finish_deletions
from fonds.uploads.intake import expire_uploads, retry_upload, staging_key
from fonds.uploads.jobs import Job, claim, job_of
from fonds.uploads.resources import ClaimedJob
from fonds.uploads.stages import STEPS
from fonds.uploads.states import ACTIVE, ENDED, FAILURES, JobStatus
from fonds.uploads.webhook import ID_HEADER, NONCE_LIFETIME, receive_webhook, sign
from fonds.uploads.worker import LEASE, UploadWorker

some = st.integers(0, 1000)
uploads = st.tuples(st.sampled_from([0, 1]), st.sampled_from(sorted(BY_NAME)))
crashes = st.one_of(st.none(), st.integers(1, 6))
late_crashes = st.one_of(st.none(), st.integers(1, 30))
waits = st.sampled_from([0, 4, 13, 31])
meantimes = st.sampled_from(["takeover", "takeover", "answered", "refused", "restarted", "deleted"])
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
        self._workers = [UploadWorker(self.world.resources()) for _ in range(2)]
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
            self._workers = [UploadWorker(self.world.resources()) for _ in range(2)]
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

    def _announce(self, user: UUID, paper: Paper, name: str) -> Job | None:
        """None while a deletion of the same file, which was interrupted, removes its files."""
        try:
            job = self.world.announce(user, paper, name)
        except UploadRefusedError as error:
            if error.kind != "being-deleted":
                raise
            return None
        self.handles.append(job)
        return job

    def _send(self, user: int, name: str) -> None:
        job = self._announce(USERS[user], BY_NAME[name], name)
        if job is None:
            return
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
        job = self._announce(user, paper, paper.names[number % len(paper.names)])
        if job is None:
            return
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
            if error.kind not in {"not-there", "size-mismatch", "hash-mismatch", "unknown-job"}:
                raise
        except StoreError:
            if self.around.store != "down":
                raise

    def _rename(self, job: Job) -> None:
        """The job is given up while its file is looked at, and begins again by another name."""
        self.world.pass_time(3601)
        expire_uploads(self.world.context)
        paper = BY_SHA[job.raw_sha256]
        self._announce(job.user_id, paper, paper.names[-1])

    @rule(number=some, crash=crashes)
    def ask_again(self, number: int, crash: int | None) -> None:
        told = self._handle(number)
        self._act(lambda: self._complete(told), crash)
        job = self._now(told)
        if job is None:
            with pytest.raises(UploadRefusedError, match="deleted"):
                retry_upload(self.world.context, told, by="tester")
            return
        if job.status in FAILURES:
            self._act(lambda: retry_upload(self.world.context, job, by="tester"), crash)
            return
        with pytest.raises(UsageError):
            retry_upload(self.world.context, job, by="tester")

    def _now(self, told: Job) -> Job | None:
        with self.world.library.database.read() as connection:
            return job_of(connection, told.document_id)

    @rule(number=some, crash=crashes)
    def delete(self, number: int, crash: int | None) -> None:
        told = self._handle(number)
        self._act(lambda: self._delete(told), crash)

    def _delete(self, told: Job) -> None:
        before = self._now(told)
        has_deleted = delete_upload(self.world.context, told.user_id, told.document_id, by="tester")
        assert has_deleted or before is None
        assert self._now(told) is None

    def _delete_active(self) -> None:
        active = [job for job in self.world.jobs() if job.status in ACTIVE]
        for job in active[:1]:
            self._delete(job)

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
        claimed = ClaimedJob(resources=worker._resources, job=job)
        try:
            STEPS[job.status](claimed)
        except LeaseLostError:
            return
        except FondsError as error:
            worker._handle_error(job, error)
            return
        job = claimed.job
        if job.lease_owner is not None and job.status not in ENDED:
            self._held[which] = job

    def _meanwhile(self, what: str, which: int) -> Callable[[], object]:
        def takeover() -> None:
            self.world.pass_time(31)
            self._workers[1 - which].work_once()

        def restarted() -> None:
            for job in self._answer_all("failed"):
                retry_upload(self.world.context, job, by="tester")

        return {
            "takeover": takeover,
            "answered": lambda: self._answer_all("parsed"),
            "refused": lambda: self._answer_all("failed"),
            "restarted": restarted,
            "deleted": self._delete_active,
        }[what]

    # The parser outside

    def _answer_all(self, status: str) -> list[Job]:
        waiting = [job for job in self.world.jobs() if job.parser == "llamaparse"]
        waiting = [job for job in waiting if job.status is JobStatus.PARSE_QUEUED]
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
            end = receive_webhook(self.world.context, settings, headers.items(), body)
        except WebhookError as error:
            return error.kind
        except StoreError:
            return self.around.store
        self._received[headers[ID_HEADER]] = now
        self._latest = max(self._latest, now)
        return end

    @rule(number=some, status=st.sampled_from(["parsed", "parsed", "failed"]), crash=crashes)
    def webhook(self, number: int, status: str, crash: int | None) -> None:
        told = self._handle(number)
        job = self._now(told)
        is_waiting = job is not None and job.status is JobStatus.PARSE_QUEUED
        expected = "taken" if is_waiting else "ignored"
        if job is None or job.parser == "local":
            expected = "unknown-job"
        job = job or told
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
        if received is not None and self._latest - received <= NONCE_LIFETIME:
            is_deleted = end == "unknown-job"  # which is looked at before
            assert is_deleted or end in {"replayed", "stale"}
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
        expire_uploads(self.world.context)
        finish_deletions(self.world.context)

    # What must always hold

    @invariant()
    def nothing_lies(self) -> None:
        require_truth(self.world, self._calm)

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
            assert job.status in {*ENDED, JobStatus.UPLOADED}
            assert job.lease_owner is None
            if job.status in FAILURES:
                retry_upload(world.context, job, by="tester")
        world.drain(self._workers)
        self.nothing_lies()
        for job in world.jobs():
            assert job.status is self._expected_end(job)
        generation = ensure_current(world.library.database, world.library.seams, Settings())
        assert problems(world.library.database, generation) == []
        for user in USERS:
            self._check_search(user)
        world.pass_time(SWEEP_FOR.total_seconds())
        finish_deletions(world.context)
        self._check_files()

    def _check_files(self) -> None:
        """No file stays of an upload that was deleted, but a text that another one shares."""
        jobs = self.world.jobs()
        document_ids = {str(job.document_id) for job in jobs}
        shared = {job.parsed_path for job in jobs}
        for folder in ("raw/", "parsed/"):
            for info in self.world.files.list(folder):
                document_id = info.key.rpartition("/")[2].partition(".")[0]
                assert document_id in document_ids or info.key in shared

    def _expected_end(self, job: Job) -> JobStatus:
        if job.arrived_at is None:
            return JobStatus.UPLOADED
        wordless = BY_SHA[job.raw_sha256].wordless
        return JobStatus.FAILED_PARSE if wordless else JobStatus.COMPLETE

    def _check_search(self, user: UUID) -> None:
        jobs = [job for job in self.world.jobs() if job.user_id == user]
        own = {ids.upload_id(job.document_id) for job in jobs if job.status is JobStatus.COMPLETE}
        hits = self.world.library.search("insured part nothing below", owner=user, limit=200)
        assert {hit.id for hit in hits} == own
