"""Every sub-request of an invocation is counted in the budget of that invocation."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import event
from tests.support.libraries.notes import FAST
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response
from tests.unit.codes.trees import (
    FakeCode,
    Item,
    Shape,
    flat,
    ingest,
    named,
    pages_of,
    plenty,
    publish,
)

from fonds.codes.budget import MIB, Budget, Meter, memory_in_use
from fonds.codes.invocation import InvocationReport, UnitOrder, invoke
from fonds.codes.run import CodePlan, CodeRequest, find_orders, plan_code
from fonds.context import Context
from fonds.errors import BudgetSpentError
from fonds.library import Library, open_library
from fonds.seams import Expense, charged_to, spend
from fonds.stores.blobs import Blobs

# The meter ----------------------------------------------------------------------------------


def test_meter_rejects_a_call_beyond_the_limit_and_does_not_count_it() -> None:
    meter = Meter(Budget(subrequests=3))
    for expense in ("http", "database", "blob"):
        meter.charge(expense)
    for _ in range(2):
        with pytest.raises(BudgetSpentError, match="3 sub-requests"):
            meter.charge("blob")
    assert (meter.subrequests, meter.left) == (3, 0)
    assert meter.usage == {"http": 1, "database": 1, "blob": 1}


def test_meter_rejects_work_that_needs_more_than_is_left() -> None:
    meter = Meter(Budget(subrequests=10, memory_mib=1 << 20))
    meter.require(subrequests=10)
    meter.charge("http")
    with pytest.raises(BudgetSpentError, match="10 more"):
        meter.require(subrequests=10)
    assert meter.subrequests == 1


def test_meter_rejects_memory_beyond_the_limit() -> None:
    allowed = memory_in_use() // MIB + 50
    meter = Meter(Budget(memory_mib=allowed))
    meter.require(memory=MIB)
    with pytest.raises(BudgetSpentError, match=f"{allowed} MiB"):
        meter.require(memory=500 * MIB)


def test_concurrent_charges_never_exceed_the_limit() -> None:
    meter = Meter(Budget(subrequests=500))

    def charge(_: int) -> bool:
        try:
            meter.charge("blob")
        except BudgetSpentError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(charge, range(2000)))
    assert granted == meter.subrequests == 500


_HELD_AND_LET_GO = """
import mmap
from fonds.codes.budget import MIB, memory_in_use, peak_memory, reset_peak

with mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as ballast:
    for page in range(0, 64 * MIB, mmap.PAGESIZE):
        ballast[page] = 1
    high = peak_memory()
    assert high >= memory_in_use() - MIB, (high, memory_in_use())
    assert high >= 64 * MIB, high
can_reset = reset_peak()
assert not can_reset or peak_memory() < high - 32 * MIB, (peak_memory(), high)
"""


def test_peak_is_no_less_than_what_is_held_and_can_be_measured_anew() -> None:
    # In a process of its own, with pages of its own: what an allocator or another test's
    # threads keep says nothing about the measure.
    subprocess.run([sys.executable, "-c", _HELD_AND_LET_GO], check=True)


# Who pays -----------------------------------------------------------------------------------


def test_nothing_is_charged_outside_of_a_budget() -> None:
    meter = Meter(Budget(subrequests=1))
    with charged_to(meter.charge):
        pass
    spend("http")
    assert meter.subrequests == 0


def test_outer_budget_is_charged_again_after_an_inner_one() -> None:
    outer, inner = Meter(Budget()), Meter(Budget())
    with charged_to(outer.charge):
        spend("http")
        with charged_to(inner.charge):
            spend("blob")
        spend("http")
    assert (outer.usage, inner.usage) == ({"http": 2}, {"blob": 1})


def test_concurrent_contexts_are_charged_separately_in_threads_too() -> None:
    async def work(meter: Meter, expense: Expense, times: int) -> None:
        with charged_to(meter.charge):
            for _ in range(times):
                await asyncio.sleep(0)
                spend(expense)
                await asyncio.to_thread(spend, expense)
                await asyncio.gather(asyncio.to_thread(spend, expense), _spend_later(expense))

    async def both() -> None:
        await asyncio.gather(work(meters[0], "http", 10), work(meters[1], "blob", 20))
        spend("database")

    meters = Meter(Budget()), Meter(Budget())
    asyncio.run(both())
    assert [meter.usage for meter in meters] == [{"http": 40}, {"blob": 80}]


async def _spend_later(expense: Expense) -> None:
    await asyncio.sleep(0)
    spend(expense)


def test_other_threads_are_not_charged() -> None:
    meter = Meter(Budget())
    with charged_to(meter.charge):
        other = threading.Thread(target=spend, args=("http",))
        other.start()
        other.join()
    assert meter.subrequests == 0


# Every sub-request of an invocation ---------------------------------------------------------


@dataclass
class CountingBlobs:
    """A store that counts its operations."""

    inner: Blobs
    asked: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        act: Callable[..., Any] = getattr(self.inner, name)

        def counted(*args: Any, **named: Any) -> Any:
            self.asked[name] += 1
            return act(*args, **named)

        return counted


@dataclass
class CountingEngine:
    """What SQLite itself is given: every statement, the ends of transactions among them."""

    library: Library
    statements: int = 0

    def __enter__(self) -> Self:
        event.listen(self.library.database.engine, "checkout", self._trace)
        return self

    def __exit__(self, *_error: object) -> None:
        event.remove(self.library.database.engine, "checkout", self._trace)

    def _trace(self, connection: Any, *_pool: Any) -> None:
        connection.set_trace_callback(self._execute)

    def _execute(self, statement: str) -> None:
        # SQLite marks those of triggers, and most of the full-text index, as comments.
        is_internal = statement.startswith("--") or "chunk_index_config" in statement
        self.statements += not is_internal


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("empty")
    with open_library(home):
        return home


@pytest.fixture(params=["folder", "memory://"])
def library(request: pytest.FixtureRequest, tmp_path: Path, empty_home: Path) -> Iterator[Library]:
    shutil.copytree(empty_home, tmp_path / "home")
    blobs = request.param if "://" in request.param else None
    options: dict[str, Any] = {"blobs": blobs, "allow_private": True, **FAST}
    with open_library(tmp_path / "home", **options) as library:
        yield library


@dataclass
class Counted:
    report: InvocationReport
    blobs: Counter[str]
    statements: int


def invoke_counted(library: Library, given: str, *, subrequests: int = 100_000) -> Counted:
    """One invocation, and what others saw of it."""
    adapter, blobs = FakeCode(), CountingBlobs(library.blobs)
    request = CodeRequest(version="2024", given=given, budget=plenty(subrequests))

    async def run() -> Counted:
        async with library.open_context(tables=False) as plain:
            (order,) = await find_orders(adapter, request, plain)
            with CountingEngine(library) as engine:
                report = await invoke(order, adapter, _watched(plain, blobs))
            return Counted(report, blobs.asked, engine.statements)

    return asyncio.run(run())


def _watched(context: Context, blobs: CountingBlobs) -> Context:
    return context.with_stores(context.database, blobs)


def nested(leaves: int) -> Item:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=flat(leaves).children)
        for n in range(3)
    )
    return Item(kind="title", number="1", label="Title 1", children=parts)


@pytest.mark.parametrize("shape", ["one page", "page per container", "page per node"])
def test_every_blob_operation_of_an_invocation_is_counted(
    library: Library, tmp_path: Path, shape: Shape
) -> None:
    folder = publish(tmp_path / "site", pages_of([nested(5)], shape))
    for _ in range(2):
        counted = invoke_counted(library, str(folder))
        assert counted.report.is_done
        assert counted.report.blobs == counted.blobs.total() > 1
        assert counted.report.http == 0


@pytest.mark.parametrize("shape", ["one page", "page per node"])
def test_every_statement_that_sqlite_is_given_is_counted(
    library: Library, tmp_path: Path, shape: Shape
) -> None:
    folder = publish(tmp_path / "site", pages_of([nested(90)], shape))
    for _ in range(2):
        counted = invoke_counted(library, str(folder))
        assert counted.report.database == counted.statements > 0


def test_every_request_of_an_invocation_is_counted(library: Library) -> None:
    with MisbehavingServer() as server:
        pages = pages_of([nested(5)], "page per node")
        for name, data in pages.items():
            server.serve(f"/{name}", data)
        for name in ("0/1/0.txt", "0/1/1.txt"):
            server.route(f"/{name}", _moody(pages[name]))
        for _ in range(2):
            server.requests.clear()
            counted = invoke_counted(library, server.url("/"))
            assert counted.report.is_done
            discovery = len(server.seen("/index.toc"))
            assert counted.report.http == len(server.requests) - discovery > 0


def _moody(data: bytes) -> Callable[[Request], Response]:
    """Fails at first: the repetition is a request too."""
    return lambda request: Response(data, status=503 if request.count == 1 else 200)


@pytest.mark.parametrize("shape", ["one page", "page per node"])
@pytest.mark.parametrize("subrequests", [60, 90, 130])
def test_no_invocation_exceeds_its_budget_and_together_they_finish(
    library: Library, tmp_path: Path, shape: Shape, subrequests: int
) -> None:
    folder = publish(tmp_path / "site", pages_of([nested(5)], shape))
    report = ingest(library, folder, budget=plenty(subrequests))
    (unit,) = report.units
    assert unit.error is None
    assert unit.inserted == unit.nodes == 19
    assert all(one.subrequests <= subrequests for one in unit.invocations)
    assert [one.is_done for one in unit.invocations] == [
        *[False] * (len(unit.invocations) - 1),
        True,
    ]


def test_unit_that_fits_into_a_budget_fits_into_it_again(library: Library, tmp_path: Path) -> None:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=flat(1).children)
        for n in range(25)
    )
    unit = Item(kind="title", number="1", label="Title 1", children=parts)
    folder = publish(tmp_path / "site", pages_of([unit], "page per container"))
    for _ in range(2):
        (report,) = ingest(library, folder, budget=plenty(70)).units
        assert report.error is None
        assert report.inserted + report.skipped == 51


def test_unit_that_cannot_be_walked_within_the_budget_fails_with_advice(
    library: Library, tmp_path: Path
) -> None:
    folder = publish(tmp_path / "site", pages_of([nested(5)], "page per container"))
    (unit,) = ingest(library, folder, budget=plenty(3)).units
    assert unit.error is not None
    assert unit.error.startswith("UnitTooLargeError: ")
    assert "--unit title-1/" in unit.error


def test_unit_that_cannot_be_walked_within_the_budget_is_divided(
    library: Library, tmp_path: Path
) -> None:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=nested(2).children)
        for n in range(6)
    )
    unit = Item(kind="title", number="1", label="Title 1", children=parts)
    folder = publish(tmp_path / "site", pages_of([unit], "page per container"))
    (divided,) = ingest(library, folder, budget=plenty(50)).units
    assert divided.error is None
    assert divided.parts == tuple(f"title-1/part-{n}" for n in range(6))
    assert all(one.subrequests <= 50 for one in divided.invocations)
    with library.database.read() as connection:
        known = set(connection.exec_driver_sql("SELECT id FROM nodes").scalars())
    root = "fakecode/2024/root"
    assert known == {root, *(node_id for node_id, _ in named(root, unit))}
    (again,) = ingest(library, folder, budget=plenty(50)).units
    assert (again.error, again.inserted) == (None, 0)


def test_plan_shows_the_parts_that_a_unit_too_large_for_the_budget_is_divided_into(
    library: Library, tmp_path: Path
) -> None:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=nested(2).children)
        for n in range(60)
    )
    unit = Item(kind="title", number="1", label="Title 1", children=parts)
    folder = publish(tmp_path / "site", pages_of([unit], "page per container"))
    request = CodeRequest(version="2024", given=str(folder))

    async def planned(subrequests: int) -> CodePlan:
        async with library.open_context(tables=False) as context:
            orders = await find_orders(FakeCode(), request, context)
            return await plan_code(orders, FakeCode(), context, plenty(subrequests))

    title = "fakecode/2024/root/title-1"
    divided = asyncio.run(planned(50))
    assert [plan.id for plan in divided.plans] == [f"{title}/part-{n}" for n in range(60)]
    assert (divided.parts, divided.failures) == ({title: 60}, [])
    whole = asyncio.run(planned(1000))
    assert ([plan.id for plan in whole.plans], whole.parts) == ([title], {})
    too_small = asyncio.run(planned(2))
    assert (too_small.plans, too_small.parts) == ([], {})
    [(failed, error)] = too_small.failures
    assert failed == title
    assert "cannot be walked in one invocation" in error


def test_batch_that_no_invocation_can_finish_fails_with_advice(
    library: Library, tmp_path: Path
) -> None:
    folder = publish(tmp_path / "site", pages_of([flat(45)], "page per node"))
    (unit,) = ingest(library, folder, budget=plenty(50)).units
    assert unit.error is not None
    assert "--budget" in unit.error


def test_order_has_the_unit_and_id_of_its_root(library: Library, tmp_path: Path) -> None:
    folder = publish(tmp_path / "site", pages_of([nested(2)], "one page"))
    adapter = FakeCode()
    request = CodeRequest(version="2024", given=str(folder), units=("title-1/part-2",))

    async def run() -> list[UnitOrder]:
        async with library.open_context(tables=False) as context:
            return await find_orders(adapter, request, context)

    (order,) = asyncio.run(run())
    assert (order.unit, order.id) == ("title-1/part-2", "fakecode/2024/root/title-1/part-2")
