"""Invocations in processes of their own, the kernel holding each to its memory.

The child reads its order from the pipe it is given, and answers with one line of JSON. The pipe
stays open as long as its parent lives: a child whose parent was killed ends at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from fonds.codes.budget import MIB, Budget, resident
from fonds.codes.invocation import InvocationReport, UnitOrder, invoke
from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.engine.reach import on_the_way, require_here
from fonds.errors import FondsError, ItemMemoryError, UnitTooLargeError, WorkerDiedError
from fonds.runs.context import Workplace
from fonds.settings import Settings
from fonds.sources.jurisdiction import JurisdictionAdapter, Span, TocNode

CHILD: Final = "fonds.cli.invocation"
MEMORY_MIB: Final = 4096
"""What an engine allows an invocation; its own budget is what holds it."""
SECONDS: Final = 6 * 3600.0
"""Likewise: a thousand requests may be slow ones."""
_ROOM: Final = 16 * MIB
"""What walking, or looking what exists, adds to this process."""
_LISTS: Final = ("pages", "optional_pages", "leaf_pages")
# One arena, since freed memory of one is no use to another; and what is freed is given back.
_LEAN: Final = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_MMAP_THRESHOLD_": "131072",
}


@contextmanager
def open_invoker(
    adapter: JurisdictionAdapter, workplace: Workplace, *, apart: bool = False
) -> Iterator[Invoker]:
    """What runs the invocations of a code: this process, unless there is a cluster."""
    address = workplace.settings.engine
    if address == LOCAL:
        yield Invoker(adapter, workplace, apart=apart)
        return
    with open_engine(address, memory_mib=MEMORY_MIB, seconds=SECONDS) as engine:
        yield Invoker(adapter, workplace, engine=engine)


class Invoker:
    """Runs invocations in this process while it is small enough, and else in one of their own.

    With an engine, each runs there, and several units may be worked on side by side.
    """

    def __init__(
        self,
        adapter: JurisdictionAdapter,
        workplace: Workplace,
        *,
        apart: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self._adapter = adapter
        self._workplace = workplace
        self._apart = apart
        self._engine = engine
        self.at_once = engine.workers if engine else 1
        """How many units are worked on side by side."""
        self._outgrown = ""
        """The unit that this process has no room for any more."""

    async def __call__(self, order: UnitOrder) -> InvocationReport:
        """One invocation."""
        if self._engine is not None:
            return await asyncio.to_thread(self._elsewhere, self._engine, order)
        has_room = resident() + _ROOM <= order.budget.memory_mib * MIB
        if self._apart or order.id == self._outgrown or not has_room:
            return await invoke_apart(order, self._workplace.settings)
        try:
            report = await invoke(order, self._adapter, self._workplace)
        except UnitTooLargeError:
            # Beside all else that this process holds; a fresh one may have room for it.
            self._outgrown = order.id
            return await invoke_apart(order, self._workplace.settings)
        if report.progress.next_batch == order.first_batch:
            self._outgrown = order.id
        return _within(report, order.budget)

    def _elsewhere(self, engine: Engine, order: UnitOrder) -> InvocationReport:
        settings = on_the_way(self._workplace.settings)
        # Each invocation keeps to the rate by itself; together they are one visitor.
        shared = replace(settings, rate_factor=settings.rate_factor / self.at_once)
        (outcome,) = engine.run(invoke_order, [(order, shared)])
        report: InvocationReport = outcome.unwrap()
        return report


def invoke_order(item: tuple[UnitOrder, Settings]) -> InvocationReport:
    """One invocation on a machine of a cluster."""
    order, settings = item
    require_here(settings)
    return asyncio.run(invoke_apart(order, settings))


async def invoke_apart(order: UnitOrder, settings: Settings) -> InvocationReport:
    """One invocation in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        CHILD,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **_LEAN, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(_order_to_json(order, settings)).encode() + b"\n")
        await child.stdin.drain()
        answer = await child.stdout.read()
        code = await child.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            child.kill()
        raise
    return _read_answer(answer, code, order.budget)


def _read_answer(answer: bytes, code: int, budget: Budget) -> InvocationReport:
    if not answer:
        raise WorkerDiedError(
            f"the invocation's process ended without an answer (exit code {code})"
        )
    told = json.loads(answer)
    if "error" in told:
        raise _revived(told)
    return _within(InvocationReport.from_json(told), budget)


def _within(report: InvocationReport, budget: Budget) -> InvocationReport:
    """The report, unless memory passed the limit without anybody noticing before."""
    if report.peak_mib > budget.memory_mib:
        raise ItemMemoryError(
            f"an invocation took {report.peak_mib} MiB, more than the {budget.memory_mib} allowed"
        )
    return report


def _revived(told: dict[str, Any]) -> FondsError:
    import fonds.errors  # noqa: PLC0415 — by name, as the child told it

    kind = getattr(fonds.errors, told["error"], None)
    if isinstance(kind, type) and issubclass(kind, FondsError):
        return kind(told["message"])
    return FondsError(f"{told['error']}: {told['message']}")


def _order_to_json(order: UnitOrder, settings: Settings) -> dict[str, Any]:
    chosen = {entry.name: getattr(settings, entry.name) for entry in fields(Settings)}
    plain = {name: str(v) if isinstance(v, Path) else v for name, v in chosen.items()}
    return {"order": asdict(order), "settings": {**plain, "hosts": dict(settings.hosts)}}


def read_order(line: bytes) -> tuple[UnitOrder, dict[str, Any]]:
    """The order that a child was given, and its settings."""
    told = json.loads(line)
    order = told["order"]
    span = order["root"]["span"]
    lists = {name: tuple(order["root"][name]) for name in _LISTS}
    root = TocNode(**{**order["root"], **lists, "span": Span(**span) if span else None})
    budget = Budget(**order["budget"])
    known = UnitOrder(**{**order, "root": root, "budget": budget, "only": tuple(order["only"])})
    return known, told["settings"]
