"""The selftest: cases, each in a library of its own, some at a time; then the report."""

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
from fonds.selftest.cases import all_faults, every_operation, lineages
from fonds.selftest.child import Nursery
from fonds.selftest.report import SMALL, WHOLE, Case, SelftestReport, Violation, named, told
from fonds.selftest.scenario import OPENING, STEPS, upstream
from fonds.selftest.scratch import ScratchLibrary, Undisturbed

CHILD: Final = "fonds.selftest.child"
WORKERS: Final = min(os.cpu_count() or 1, 4) + 1
"""Cases at a time; some of them wait."""

_EARLY: Final = timedelta(hours=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class SelftestPlan:
    """How much is to be tried."""

    kills: int = 0
    exhaustive: bool = False
    sample: int | None = None
    """Of the durable operations, how many; None is all."""
    faults: int = 0
    """How often those are tried that may hit anywhere."""
    only: Sequence[str] = ()
    """Names of cases, or words with which names begin; none is all."""
    keep: bool = False
    """Whether libraries are kept that came out well."""


def selftest(
    wanted: SelftestPlan,
    folder: Path,
    *,
    seed: int,
    watch: Callable[[SelftestReport], None] = lambda _report: None,
    workers: int = WORKERS,
    child: str = CHILD,
) -> SelftestReport:
    """Try all that is wanted in a folder; what came out well is removed from it.

    `child` is the module whose processes work on the libraries.
    """
    began = time.monotonic()
    report = SelftestReport(seed=seed)
    with ExitStack() as stack:
        served = stack.enter_context(upstream())
        pool = stack.enter_context(ThreadPoolExecutor(workers, "fonds-selftest"))
        # Left before the pool: who waits there for a process learns that it is gone.
        nursery = stack.enter_context(Nursery(child))
        _Trial(folder, report, served.hosts, nursery, watch).run(wanted, pool)
    report.seconds = time.monotonic() - began
    return report


class _Trial:
    def __init__(
        self,
        folder: Path,
        report: SelftestReport,
        hosts: Mapping[str, str],
        nursery: Nursery,
        watch: Callable[[SelftestReport], None],
    ) -> None:
        self._folder = folder
        self._report = report
        self._hosts = hosts
        self._watch = watch
        self._nursery = nursery
        self._undisturbed: Mapping[str, Undisturbed] = {}
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        # All begins early the next day, so that none of it is done on another.
        self._later = (midnight + _EARLY - now).total_seconds()

    def run(self, wanted: SelftestPlan, pool: Executor) -> None:
        corpora = [WHOLE] * bool(wanted.kills or wanted.faults)
        corpora += [SMALL] * bool(wanted.exhaustive or wanted.faults)
        self._undisturbed = dict(zip(corpora, pool.map(self._leave_alone, corpora), strict=True))
        cases = list(self._cases(wanted))
        self._try_all(pool, named(cases, wanted.only) if wanted.only else cases, keep=wanted.keep)
        if wanted.kills and not wanted.only:
            self._make_up(wanted, pool)

    def _make_up(self, wanted: SelftestPlan, pool: Executor) -> None:
        """Try more for those processes that were done before they could be killed."""
        report = self._report
        seed = report.seed + wanted.kills
        while (left := wanted.kills - report.total("chaos", "before", "during")) > 0:
            if report.violations:
                return
            more = list(lineages(left, seed, self._undisturbed[WHOLE].operations))
            self._try_all(pool, more, keep=wanted.keep)
            seed += len(more)

    def _cases(self, wanted: SelftestPlan) -> Iterator[Case]:
        seed = self._report.seed
        if wanted.faults:
            small = self._undisturbed[SMALL].operations
            yield from all_faults(seed, small, rounds=wanted.faults)
        if wanted.exhaustive:
            small = self._undisturbed[SMALL].operations
            yield from every_operation(small, sample=wanted.sample, seed=seed)
        if wanted.kills:
            yield from lineages(wanted.kills, seed, self._undisturbed[WHOLE].operations)

    def _try_all(self, pool: Executor, cases: Iterable[Case], *, keep: bool) -> None:
        trying = [pool.submit(self._try, case, keep=keep) for case in cases]
        self._report.planned += len(trying)
        for each in as_completed(trying):
            each.result()
            self._report.tried += 1
            self._watch(self._report)

    def _try(self, case: Case, *, keep: bool) -> None:
        place = self._place(case.name, case.corpus, self._undisturbed[case.corpus])
        try:
            wrong = list(case.run(place, self._report))
        except StoreError as error:  # it cannot even be looked at
            wrong = [str(error)]
        if wrong:
            self._report.add(
                Violation(
                    case=case.name,
                    says=wrong,
                    history=place.history,
                    replay=f"fonds selftest {case.replay}",
                    folder=str(place.folder),
                )
            )
        elif not keep:
            shutil.rmtree(place.folder)

    def _leave_alone(self, corpus: str) -> Undisturbed:
        nothing = Undisturbed(state={}, operations={})
        place = self._place(f"undisturbed {corpus}", corpus, nothing)
        operations: dict[str, int] = {}
        before: dict[str, Path] = {}
        for step in (OPENING, *STEPS):
            if corpus == SMALL:
                before[step] = place.copied(step)
            life = place.live(steps=[step] if step in STEPS else (), after=0)
            if life.code:
                raise StoreError(f"nobody disturbed it, and yet {told(life)}; see {place.folder}")
            operations[step] = life.ended[step]
        return Undisturbed(state=place.state(), operations=operations, before=before)

    def _place(self, name: str, corpus: str, undisturbed: Undisturbed) -> ScratchLibrary:
        folder = self._folder / name.replace(" ", "-")
        folder.mkdir(parents=True)
        return ScratchLibrary(folder, self._nursery, self._hosts, corpus, self._later, undisturbed)
