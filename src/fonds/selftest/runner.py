"""The selftest: runs cases concurrently, each in its own library, and fills the report."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from fonds.errors import StoreError
from fonds.selftest.cases import all_faults, all_operations, lineages
from fonds.selftest.child import ForkServer
from fonds.selftest.report import (
    SMALL,
    WHOLE,
    Case,
    SelftestReport,
    Violation,
    describe,
    select_cases,
)
from fonds.selftest.scenario import OPENING, STEPS, upstream
from fonds.selftest.scratch import ScratchLibrary, Undisturbed

CHILD: Final = "fonds.selftest.child"
WORKERS: Final = min(os.cpu_count() or 1, 4) + 1
"""Concurrent cases; some of them wait."""

_START_HOUR: Final = timedelta(hours=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelftestPlan:
    """The cases to run."""

    kills: int = 0
    exhaustive: bool = False
    sample: int | None = None
    """The number of durable operations to try; None for all."""
    faults: int = 0
    """The number of cases of each fault that can occur anywhere."""
    only: Sequence[str] = ()
    """Names of cases or their first words; empty for all."""
    keep: bool = False
    """Whether to keep libraries without violations."""


def selftest(
    plan: SelftestPlan,
    folder: Path,
    *,
    seed: int,
    watch: Callable[[SelftestReport], None] = lambda _report: None,
    workers: int = WORKERS,
    child: str = CHILD,
) -> SelftestReport:
    """Run the selftest in a folder; libraries without violations are deleted.

    `child` is the module of the processes that work on the libraries.
    """
    started = time.monotonic()
    report = SelftestReport(seed=seed)
    with ExitStack() as stack:
        served = stack.enter_context(upstream())
        pool = stack.enter_context(ThreadPoolExecutor(workers, "fonds-selftest"))
        # Closed before the pool, so that threads waiting for a process end.
        fork_server = stack.enter_context(ForkServer(child))
        _CaseRunner(folder, report, served.hosts, fork_server, watch).run(plan, pool)
    report.seconds = time.monotonic() - started
    return report


class _CaseRunner:
    def __init__(
        self,
        folder: Path,
        report: SelftestReport,
        hosts: Mapping[str, str],
        fork_server: ForkServer,
        watch: Callable[[SelftestReport], None],
    ) -> None:
        self._folder = folder
        self._report = report
        self._hosts = hosts
        self._watch = watch
        self._fork_server = fork_server
        self._undisturbed: Mapping[str, Undisturbed] = {}
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        # All processes see the same day, since they start early on the next one.
        self._later = (midnight + _START_HOUR - now).total_seconds()

    def run(self, plan: SelftestPlan, pool: Executor) -> None:
        corpora = [WHOLE] * bool(plan.kills or plan.faults)
        corpora += [SMALL] * bool(plan.exhaustive or plan.faults)
        self._undisturbed = dict(
            zip(corpora, pool.map(self._run_undisturbed, corpora), strict=True)
        )
        cases = list(self._cases(plan))
        self._run_all(pool, select_cases(cases, plan.only) if plan.only else cases, keep=plan.keep)
        if plan.kills and not plan.only:
            self._add_kills(plan, pool)

    def _add_kills(self, plan: SelftestPlan, pool: Executor) -> None:
        """Add cases for processes that ended before they could be killed."""
        report = self._report
        seed = report.seed + plan.kills
        while (left := plan.kills - report.total("chaos", "before", "during")) > 0:
            if report.violations:
                return
            more = list(lineages(left, seed, self._undisturbed[WHOLE].operations))
            self._run_all(pool, more, keep=plan.keep)
            seed += len(more)

    def _cases(self, plan: SelftestPlan) -> Iterator[Case]:
        seed = self._report.seed
        if plan.faults:
            small = self._undisturbed[SMALL].operations
            yield from all_faults(seed, small, rounds=plan.faults)
        if plan.exhaustive:
            small = self._undisturbed[SMALL].operations
            yield from all_operations(small, sample=plan.sample, seed=seed)
        if plan.kills:
            yield from lineages(plan.kills, seed, self._undisturbed[WHOLE].operations)

    def _run_all(self, pool: Executor, cases: Iterable[Case], *, keep: bool) -> None:
        futures = [pool.submit(self._run_case, case, keep=keep) for case in cases]
        self._report.planned += len(futures)
        for future in as_completed(futures):
            future.result()
            self._report.tried += 1
            self._watch(self._report)

    def _run_case(self, case: Case, *, keep: bool) -> None:
        scratch = self._scratch_library(case.name, case.corpus, self._undisturbed[case.corpus])
        try:
            problems = list(case.run(scratch, self._report))
        except StoreError as error:  # the library cannot be read
            problems = [str(error)]
        if problems:
            self._report.add(
                Violation(
                    case=case.name,
                    says=problems,
                    history=scratch.history,
                    replay=f"fonds selftest {case.replay}",
                    folder=str(scratch.folder),
                )
            )
        elif not keep:
            shutil.rmtree(scratch.folder)

    def _run_undisturbed(self, corpus: str) -> Undisturbed:
        empty = Undisturbed(state={}, operations={})
        scratch = self._scratch_library(f"undisturbed {corpus}", corpus, empty)
        operations: dict[str, int] = {}
        before: dict[str, Path] = {}
        for step in (OPENING, *STEPS):
            if corpus == SMALL:
                before[step] = scratch.copied(step)
            run = scratch.run_steps(steps=[step] if step in STEPS else (), after=0)
            if run.code:
                raise StoreError(
                    f"the undisturbed library failed: {describe(run)}; see {scratch.folder}"
                )
            operations[step] = run.ended[step]
        return Undisturbed(state=scratch.state(), operations=operations, before=before)

    def _scratch_library(self, name: str, corpus: str, undisturbed: Undisturbed) -> ScratchLibrary:
        folder = self._folder / name.replace(" ", "-")
        folder.mkdir(parents=True)
        return ScratchLibrary(
            folder, self._fork_server, self._hosts, corpus, self._later, undisturbed
        )
