"""Machines that run one source side by side, while its publisher changes it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from fonds.context import Context
from fonds.errors import FondsError, SourceBusyError
from fonds.fetch.client import Fetcher
from fonds.pipeline import run_source
from fonds.runs.active_run import drop_old_history, mark_dead_runs_failed
from fonds.runs.state import Mode, RunReport, RunRequest, RunStatus
from fonds.settings import Settings
from tests.simulation.database import SeededDatabase, make_template
from tests.simulation.loop import run_seeded
from tests.simulation.office import NoteSource, Office, OfficeTransport
from tests.simulation.runner_truth import RunnerTruth
from tests.simulation.scheduler import Process, Scheduler, ViolationError
from tests.simulation.store import SeededBlobs
from tests.simulation.world import World

HARSHNESS: Final = 2.0
"""A run does few things, and much is to go wrong."""
RUNS_TO_REST: Final = 8
"""A task that is listed no more is tried in five runs, and then given up."""


def prepare() -> None:
    """What all seeds need, made before the first."""
    make_template()


def simulate(scheduler: Scheduler) -> None:
    """One world, from an empty library to one that agrees with its upstream."""
    world = RunnerWorld(scheduler)
    machines = [world.keep(f"machine{number}", world.work) for number in range(2)]
    world.keep("office", world.revise)
    if scheduler.rng.random() < 0.3:
        world.keep("janitor", world.tidy)
    for machine in machines:
        machine.join()
    world.calm()
    world.come_to_rest()


class RunnerWorld(World):
    """An office, a library, and those who bring it up to date."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, HARSHNESS)
        chance = self.rng
        self.office = Office(scheduler, self.weather)
        self.blobs = SeededBlobs(scheduler, self.weather)
        self.database = SeededDatabase(
            scheduler, self.weather, is_shared=chance.random() < 0.5, watch=self._watch
        )
        self.truth = RunnerTruth(self.database, self.office, self.blobs)
        self.source = NoteSource(fingerprints=chance.random() < 0.7)
        self._settings = Settings(
            home=self.home,
            timeout=5.0,
            retries=2,
            retry_wait_max=4.0,
            batch_records=chance.choice([1, 2, 500]),
            chunk_tokens=64,
            chunk_overlap=8,
        )
        self._left = {f"machine{number}": chance.randint(1, 2) for number in range(2)}

    def _watch(self) -> None:
        self.truth.check()

    # What processes do --------------------------------------------------------------------

    def work(self, process: Process) -> bool:
        """Run the source as often as this machine is to."""
        name = process.name.partition("-")[0]
        patience = 60.0
        while self._left[name]:
            if run_seeded(self.scheduler, self._attempt(process)):
                self._left[name] -= 1
                self.scheduler.pause(self.rng.uniform(0, self.rng.choice([1, 30, 90])))
            else:
                patience *= 2
                self.scheduler.pause(self.rng.uniform(0, patience))
        return True

    async def _attempt(self, process: Process) -> bool:
        """Whether there was a run, however it ended."""
        running = asyncio.ensure_future(self.run(process, self._request()))
        try:
            if self.weather.strikes(0.1):
                await asyncio.wait([running], timeout=self.rng.uniform(0, 20))
                running.cancel()
            report = await running
        except asyncio.CancelledError:
            self.scheduler.note("the run was stopped")
        except SourceBusyError:
            self.scheduler.note("another has it")
            return False
        except (FondsError, SQLAlchemyError) as error:
            self.scheduler.note(f"no run: {type(error).__name__}: {error}".partition("\n")[0])
        else:
            self.scheduler.note(f"run ended: {report.status} {report.counts}")
            self.truth.check_report(report)
        return True

    def _request(self) -> RunRequest:
        return self.rng.choice(
            [
                RunRequest(),
                RunRequest(),
                RunRequest(recheck=True),
                RunRequest(mode="backfill"),
                RunRequest(mode="manual", accept_loss=True),
            ]
        )

    async def run(self, process: Process, request: RunRequest) -> RunReport:
        """One run, by the real runner."""
        seams = self.seams(process)
        transport = OfficeTransport(self.office, self.scheduler, self.weather)
        folder = self.home / "bodies"
        opened = Fetcher(self._settings, seams=seams, folder=folder, transport=transport)
        async with opened as fetcher:
            return await run_source(self.source, request, self._context(process, fetcher))

    def _context(self, process: Process, fetcher: Fetcher) -> Context:
        context = Context(
            settings=self._settings,
            seams=self.seams(process),
            database=self.database,
            blobs=self.blobs,
        )
        context.__dict__["fetcher"] = fetcher
        return context

    def revise(self, _process: Process) -> bool:
        """Publish something else now and then."""
        for _ in range(self.rng.randint(0, 4)):
            self.scheduler.pause(self.rng.uniform(0, 60))
            self.scheduler.note(self.office.revise())
        return True

    def tidy(self, process: Process) -> bool:
        """What a scheduler does every day, and rather often here."""
        folder = self.home / "bodies"
        fetcher = Fetcher(self._settings, seams=self.seams(process), folder=folder)
        context = self._context(process, fetcher)
        while not self.is_over:
            with suppress(SQLAlchemyError):
                buried = mark_dead_runs_failed(context)
                dropped = drop_old_history(context)
                self.scheduler.note(f"buried {buried}, dropped {dropped}")
            self.scheduler.pause(self.rng.uniform(0, 60))
        return True

    # The end ------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """In calm the library agrees with the office, and then there is nothing more to do."""
        if self.truth.lacks_a_range():
            self._last_run("backfill")
        for _ in range(RUNS_TO_REST):
            if self._last_run().status is RunStatus.SUCCESS:
                break
        else:
            raise ViolationError("no run succeeds, though nothing goes wrong")
        self.truth.check_rest()
        before = self.truth.everything()
        report = self._last_run()
        self.truth.check_rest()
        after = self.truth.everything()
        if changed := [name for name in before if before[name] != after[name]]:
            raise ViolationError(f"a run with nothing to do wrote {changed}: {report}")

    def _last_run(self, mode: Mode = "incremental") -> RunReport:
        reports: list[RunReport] = []

        def run(process: Process) -> None:
            request = RunRequest(mode=mode, accept_loss=True)
            reports.append(run_seeded(self.scheduler, self.run(process, request)))

        self.do("last", run)
        (report,) = reports
        self.scheduler.note(f"run ended: {report.status} {report.counts}")
        return report
