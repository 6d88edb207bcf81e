"""Ingesting a code, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import servers
from tests.support.libraries.codes import KilledError, Killer, LibraryFactory
from tests.support.libraries.notes import rows
from tests.support.upstreams.misbehaving import MisbehavingServer, Response
from tests.unit.codes.trees import (
    SHAPES,
    FakeCode,
    Item,
    Shape,
    flat,
    ingest,
    motley,
    named,
    pages_of,
    plenty,
    publish,
    toc_page,
    units,
)

from fonds.codes import execute, packs, plan
from fonds.codes.invocation import invoke
from fonds.codes.run import CodeRequest, audit_code, find_orders
from fonds.library import Library, open_library
from fonds.normalize.registry import get_normalizer
from fonds.runs.state import RunStatus
from fonds.seams import Seams
from fonds.selftest.state import rows_of
from fonds.sources.jurisdiction import TocNode
from fonds.stores.blobs import read_reference
from fonds.testing import ManualClock, Saboteur

ABOVE = "fakecode/2024/root"
TITLE = f"{ABOVE}/title-1"
PACK = "corpus/fakecode/2024/packs/1/title-1/00000"


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("empty")
    with open_library(home):
        return home


@pytest.fixture(scope="module")
def emptied_postgres(postgres_url: str) -> Iterator[str]:
    """A migrated database, which is emptied for every library."""
    with servers.postgres_database(postgres_url) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def libraries(request: pytest.FixtureRequest, tmp_path: Path, empty_home: Path) -> LibraryFactory:
    database = ""
    if request.param == "postgres":
        database = request.getfixturevalue("emptied_postgres")
    libraries = LibraryFactory(tmp_path, empty_home, database)
    libraries.renew()
    return libraries


def contents_of(library: Library) -> dict[str, Any]:
    """All rows, and the hash of every blob."""
    blobs = {
        info.key: sha256(library.blobs.get(info.key)).hexdigest()
        for info in library.blobs.list("corpus/")
    }
    return {**rows_of(library), "blobs": blobs}


# The same tables, however ---------------------------------------------------------------------


@contextmanager
def small_batches() -> Iterator[None]:
    """Limit the size of batches, so that a small tree has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BATCH_NODES", 5)
        patch.setattr(plan, "BATCH_PAGES", 3)
        for module in (packs, plan):
            patch.setattr(module, "BATCH_BYTES", 120)
        yield


@dataclass
class IngestScenario:
    """One code, ingested in several ways that must all give the same rows and blobs."""

    libraries: LibraryFactory
    unit: Item
    shape: Shape

    def __post_init__(self) -> None:
        self.folder = self.libraries.publish(self.unit, self.shape)
        containers = sum(item.text is None for _, item in named(ABOVE, self.unit))
        self.small_budget = 48 + 4 * (1 if self.shape == "one page" else containers)
        """Sub-requests for an invocation that walks or compares, and executes a batch or two."""
        with small_batches():
            self.expected = self._without_faults()

    def _without_faults(self) -> dict[str, Any]:
        self.libraries.renew()
        with self.libraries.open() as library:
            report = ingest(library, self.folder)
            assert report.run.status is RunStatus.SUCCESS
            assert report.run.counts.inserted == len(list(named(ABOVE, self.unit)))
            return contents_of(library)

    def in_small_invocations(self) -> int:
        """Returns the number of invocations."""
        self.libraries.renew()
        with small_batches(), self.libraries.open() as library:
            (report,) = ingest(library, self.folder, budget=plenty(self.small_budget)).units
            assert report.error is None
            assert report.inserted == report.nodes
            assert all(
                invocation.subrequests <= self.small_budget for invocation in report.invocations
            )
            assert contents_of(library) == self.expected
            return len(report.invocations)

    def again(self) -> None:
        """Ingest again, which must change nothing."""
        with small_batches(), self.libraries.open() as library:
            report = ingest(library, self.folder)
            assert report.run.status is RunStatus.SUCCESS
            assert report.run.counts.inserted == 0
            assert report.units[0].skipped == report.units[0].nodes
            assert contents_of(library) == self.expected

    def killed(self, operations: Sequence[int]) -> int:
        """Kill runs at the nth operation; returns how many came as far."""
        self.libraries.renew()
        kills = 0
        for operation in operations:
            killer = Killer(operation)
            with small_batches(), suppress(KilledError), self.libraries.open(killer) as library:
                ingest(library, self.folder, budget=plenty(self.small_budget))
            kills += killer.count >= operation
            self.libraries.expire_leases()
        self._finished()
        return kills

    def failing(self, operations: Sequence[int]) -> int:
        """Fail the nth operation of runs; returns how many came as far."""
        self.libraries.renew()
        failures = 0
        for operation in operations:
            saboteur = Saboteur(fail_at=operation)
            with small_batches(), suppress(OSError), self.libraries.open(saboteur) as library:
                ingest(library, self.folder)
            failures += len(saboteur.operations) >= operation
            self.libraries.expire_leases()
        self._finished()
        return failures

    def in_any_order(self, orders: Sequence[tuple[int, int]]) -> None:
        """Run invocations that start at any batch, with different budgets."""
        self.libraries.renew()
        with small_batches(), self.libraries.open() as library:
            for first, more in orders:
                invoke_from(library, self.folder, first, self.small_budget + more)
        self._finished()

    def _finished(self) -> None:
        with small_batches(), self.libraries.open() as library:
            assert ingest(library, self.folder).run.status is RunStatus.SUCCESS
            assert contents_of(library) == self.expected


def invoke_from(library: Library, folder: Path, first: int, subrequests: int) -> None:
    adapter = FakeCode()
    request = CodeRequest(version="2024", given=str(folder), budget=plenty(subrequests))

    async def run() -> None:
        async with library.open_context(tables=False) as context:
            (order,) = await find_orders(adapter, request, context)
            await invoke(replace(order, first_batch=first), adapter, context)

    asyncio.run(run())


@pytest.mark.parametrize("shape", SHAPES)
def test_small_invocations_give_the_result_of_a_large_one_and_a_second_run_changes_nothing(
    libraries: LibraryFactory, shape: Shape
) -> None:
    scenario = IngestScenario(libraries, motley(), shape)
    assert scenario.in_small_invocations() > 1
    scenario.again()


def test_run_after_kills_at_some_operations_gives_the_same_result(
    libraries: LibraryFactory,
) -> None:
    scenario = IngestScenario(libraries, motley(), "page per container")
    assert scenario.killed([31, 14, 5]) == 3


def test_failed_operation_fails_the_unit_and_the_next_run_completes_it(
    libraries: LibraryFactory,
) -> None:
    scenario = IngestScenario(libraries, motley(), "page per node")
    assert scenario.failing([24, 20, 3]) == 3


def test_batches_in_any_order_give_the_same_result(libraries: LibraryFactory) -> None:
    scenario = IngestScenario(libraries, motley(), "one page")
    scenario.in_any_order([(3, 0), (1, 30), (4, 0), (0, 0), (9, 0)])


@pytest.mark.long
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    unit=units(max_nodes=18),
    shape=st.sampled_from(SHAPES),
    operations=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    orders=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 60)), max_size=5),
)
def test_random_codes_give_the_same_result_in_all_scenarios(
    libraries: LibraryFactory,
    unit: Item,
    shape: Shape,
    operations: list[int],
    orders: list[tuple[int, int]],
) -> None:
    scenario = IngestScenario(libraries, unit, shape)
    scenario.again()
    scenario.in_small_invocations()
    scenario.killed(operations)
    scenario.failing(operations)
    scenario.in_any_order(orders)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_run_after_kills_at_every_operation_gives_the_same_result(
    libraries: LibraryFactory, shape: Shape
) -> None:
    scenario = IngestScenario(libraries, flat(9), shape)
    operations = Saboteur()
    libraries.renew()
    with small_batches(), libraries.open(operations) as library:
        ingest(library, scenario.folder, budget=plenty(scenario.small_budget))
    count = len(operations.operations)
    assert count > 15
    for operation in range(1, count + 1):
        assert scenario.killed([operation]) == 1


# What is held ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_body_of_every_leaf_is_read_by_range_byte_for_byte(
    libraries: LibraryFactory, shape: Shape
) -> None:
    unit = motley()
    with small_batches(), libraries.open() as library:
        ingest(library, libraries.publish(unit, shape))
        held = rows(library, "SELECT * FROM nodes WHERE kind <> 'root' ORDER BY position")
        assert [row["id"] for row in held] == [known for known, _ in named(ABOVE, unit)]
        for row, (known, item) in zip(held, named(ABOVE, unit), strict=True):
            if item.text is None:
                assert row["body_ref"] is None
                continue
            assert read_reference(library.blobs, row["body_ref"]) == item.data
            document = library.document(known)
            assert document["body_raw_sha256"] == sha256(item.data).hexdigest()
            assert document["body_raw_path"] == row["body_ref"]
            assert document["citation_string"] == f"Fake Code {known}"


def test_nodes_and_unit_agree_with_the_tree(libraries: LibraryFactory) -> None:
    repealed = Item(kind="section", number="2", label="§ 2", text="Gone.\n", status="repealed")
    part = Item(kind="part", number="A", label="Part A", children=(flat(1).children[0], repealed))
    unit = Item(kind="title", number="1", label="Title 1", children=(part,))
    with libraries.open() as library:
        ingest(library, libraries.publish(unit, "one page"))
        held = rows(library, "SELECT id, kind, path, unit, status FROM nodes ORDER BY position, id")
        assert held.pop(0) == {
            "id": ABOVE,
            "kind": "root",
            "path": "",
            "unit": ABOVE,
            "status": None,
        }
        assert held == [
            {"id": TITLE, "kind": "title", "path": "title-1", "unit": TITLE, "status": None},
            {
                "id": f"{TITLE}/part-A",
                "kind": "part",
                "path": "title-1/part-A",
                "unit": TITLE,
                "status": None,
            },
            {
                "id": f"{TITLE}/part-A/section-1",
                "kind": "section",
                "path": "title-1/part-A/section-1",
                "unit": TITLE,
                "status": None,
            },
            {
                "id": f"{TITLE}/part-A/section-2",
                "kind": "section",
                "path": "title-1/part-A/section-2",
                "unit": TITLE,
                "status": "repealed",
            },
        ]
        (unit_row,) = rows(library, "SELECT * FROM code_units")
        assert (unit_row["nodes"], unit_row["shards"], unit_row["state"]) == (4, 2, "complete")
        assert [hit.id for hit in library.search("keeper")] == [f"{TITLE}/part-A/section-1"]


# What goes wrong ------------------------------------------------------------------------------


def test_missing_leaf_is_reported_and_fetched_when_it_exists(libraries: LibraryFactory) -> None:
    folder = libraries.publish(flat(5), "page per node")
    page = folder / "0" / "2.txt"
    held_back = page.rename(folder / "0" / "held back")
    missing = f"{TITLE}/section-3"
    with libraries.open() as library:
        report = ingest(library, folder)
        assert report.run.status is RunStatus.PARTIAL
        assert [known for known, _ in report.units[0].failures] == [missing]
        assert missing in (report.run.error_summary or "")
        assert _states(library) == {TITLE: "partial"}
        assert _sections(library) == [f"{TITLE}/section-{n}" for n in (1, 2, 4, 5)]
        assert _audit(library) == [missing]

        held_back.rename(page)
        report = ingest(library, folder)
        assert report.run.status is RunStatus.SUCCESS
        assert report.run.counts.inserted == 1
        assert _states(library) == {TITLE: "complete"}
        assert _sections(library) == [f"{TITLE}/section-{n}" for n in range(1, 6)]
        (late,) = rows(library, f"SELECT body_ref FROM nodes WHERE id = '{missing}'")
        assert late["body_ref"].startswith(f"{PACK}.r1#")
        assert read_reference(library.blobs, late["body_ref"]) == flat(5).children[2].data
        assert _audit(library) == []
        before = contents_of(library)
        ingest(library, folder)
        assert contents_of(library) == before


def test_each_leaf_that_is_published_later_has_a_pack_of_its_own(libraries: LibraryFactory) -> None:
    folder = libraries.publish(flat(4), "page per node")
    pages = [folder / "0" / f"{n}.txt" for n in (1, 3)]
    held_back = [page.rename(page.with_suffix(".later")) for page in pages]
    with libraries.open() as library:
        ingest(library, folder)
        for page, kept in zip(pages, held_back, strict=True):
            kept.rename(page)
            ingest(library, folder)
        refs = rows(library, "SELECT body_ref FROM nodes WHERE body_ref IS NOT NULL ORDER BY id")
        packs = [row["body_ref"].partition("#")[0] for row in refs]
        assert packs == [PACK, f"{PACK}.r1", PACK, f"{PACK}.r2"]


def test_fetching_stops_when_all_requests_fail(libraries: LibraryFactory) -> None:
    with MisbehavingServer() as server, libraries.open() as library:
        pages = pages_of([flat(45)], "page per node")
        server.route("/*", lambda _request: Response(status=503))
        for name in ("index.toc", "0.toc"):
            server.serve(f"/{name}", pages[name])
        (unit,) = ingest(library, server.url("/")).units
        assert unit.error is not None
        assert len({seen.target for seen in server.requests if seen.status == 503}) < 30
        assert _sections(library) == []
        for name, data in pages.items():
            server.serve(f"/{name}", data)
        assert ingest(library, server.url("/")).run.status is RunStatus.SUCCESS
        assert len(_sections(library)) == 45


def test_many_missing_sections_do_not_prevent_the_others(libraries: LibraryFactory) -> None:
    folder = libraries.publish(flat(70), "page per node")
    for n in range(10, 40):
        (folder / "0" / f"{n}.txt").unlink()
    with libraries.open() as library:
        report = ingest(library, folder)
        assert report.run.status is RunStatus.PARTIAL
        assert len(report.units[0].failures) == 30
        assert len(_sections(library)) == 40


def test_leaf_that_cannot_be_read_has_a_node_and_no_document(libraries: LibraryFactory) -> None:
    sections = [*flat(2).children, Item(kind="section", number="3", label="§ 3", text="***\n")]
    unit = Item(kind="title", number="1", label="Title 1", children=tuple(sections))
    folder = libraries.publish(unit, "one page")
    with libraries.open() as library:
        report = ingest(library, folder)
        assert report.run.status is RunStatus.PARTIAL
        (failure,) = report.units[0].failures
        assert failure[0] == f"{TITLE}/section-3"
        assert "WrongContentError" in failure[1]
        assert len(rows(library, "SELECT 1 FROM nodes")) == 5
        (row,) = rows(library, f"SELECT status FROM nodes WHERE id = '{TITLE}/section-3'")
        assert row["status"].startswith("missing: WrongContentError: ")
        assert _sections(library) == [f"{TITLE}/section-1", f"{TITLE}/section-2"]
        before = contents_of(library)
        assert ingest(library, folder).run.counts.inserted == 0
        assert contents_of(library) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_other_bytes_under_the_same_version_are_an_error_and_change_nothing(
    libraries: LibraryFactory, shape: Shape
) -> None:
    folder = libraries.publish(flat(4), shape)
    with libraries.open() as library:
        ingest(library, folder)
        before = rows_of(library)
        packs = [info.key for info in library.blobs.list("corpus/fakecode/2024/packs/")]
        page = folder / "0.toc"
        page.write_bytes(page.read_bytes().replace(b"Title 1", b"Title I"))
        report = ingest(library, folder)
        assert report.run.status is RunStatus.FAILED
        assert (report.units[0].error or "").startswith("EditionChangedError: 0.toc")
        assert rows_of(library) == before
        assert [info.key for info in library.blobs.list("corpus/fakecode/2024/packs/")] == packs

        assert ingest(library, folder, version="2024a").run.status is RunStatus.SUCCESS


def test_unit_that_is_malformed_fails_alone(libraries: LibraryFactory) -> None:
    second = replace(flat(2), number="2")
    pages = pages_of([flat(3), second], "one page")
    folder = publish(libraries.folder / "two", {**pages, "0.toc": b"<html>Sorry</html>"})
    with libraries.open() as library:
        report = ingest(library, folder)
        assert report.run.status is RunStatus.PARTIAL
        assert [unit.error is None for unit in report.units] == [False, True]
        assert _states(library) == {f"{ABOVE}/title-2": "complete"}
        publish(folder, pages)
        assert ingest(library, folder).run.status is RunStatus.SUCCESS
        assert set(_states(library)) == {TITLE, f"{ABOVE}/title-2"}


def test_pages_whose_names_begin_with_those_of_others_are_all_kept(
    libraries: LibraryFactory,
) -> None:
    part = TocNode(kind="part", number="1", label="Part 1", pages=("code/title-1/part-1",))
    leaf = TocNode(kind="section", number="1", label="§ 1", is_leaf=True)
    title = TocNode(kind="title", number="1", label="Title 1", pages=("code/title-1",))
    pages = {
        "index.toc": toc_page([(title, None)]),
        "code/title-1": toc_page([(part, None)]),
        "code/title-1/part-1": toc_page([(leaf, b"Every keeper shall pay.\n")]),
    }
    with MisbehavingServer() as server, libraries.open() as library:
        for name, data in pages.items():
            server.serve(f"/{name}", data)
        report = ingest(library, server.url("/"))
        assert [unit.error for unit in report.units] == [None]
        assert _sections(library) == [f"{TITLE}/part-1/section-1"]


def test_leaf_may_be_all_of_a_page_of_which_others_are_parts(libraries: LibraryFactory) -> None:
    whole = TocNode(kind="front", label="Front", is_leaf=True, pages=("root",))
    cut = TocNode(kind="section", number="1", label="§ 1", is_leaf=True)
    again = TocNode(kind="section", number="2", label="§ 2", is_leaf=True, pages=("root",))
    title = TocNode(kind="title", number="1", label="Title 1", pages=("root",))
    pages = {
        "index.toc": toc_page([(title, None)]),
        "root": toc_page([(whole, None), (cut, b"Every keeper shall pay.\n"), (again, None)]),
    }
    with libraries.open() as library:
        report = ingest(library, publish(libraries.folder / "whole", pages))
        assert [unit.error for unit in report.units] == [None]
        refs = {
            row["id"].rpartition("/")[2]: read_reference(library.blobs, row["body_ref"])
            for row in rows(library, "SELECT id, body_ref FROM nodes WHERE body_ref IS NOT NULL")
        }
        assert refs == {
            "front": pages["root"],
            "section-1": b"Every keeper shall pay.\n",
            "section-2": pages["root"],
        }


def test_characters_that_databases_reject_do_not_prevent_a_section(
    libraries: LibraryFactory,
) -> None:
    odd = "1\0\ud800"
    leaf = TocNode(kind="section", number=odd, label=f"§ {odd}", identifier=odd, is_leaf=True)
    title = TocNode(kind="title", number="1", label=f"Title {odd}", pages=("root",))
    pages = {
        "index.toc": toc_page([(title, None)]),
        "root": toc_page([(leaf, b"Every keeper shall pay.\n")]),
    }
    with libraries.open() as library:
        report = ingest(library, publish(libraries.folder / "odd", pages))
        assert [unit.error for unit in report.units] == [None]
        (section,) = _sections(library)
        assert section.startswith(f"{TITLE}/section-1")


# Editions and parts ---------------------------------------------------------------------------


def test_editions_coexist_and_the_newer_is_newest_once_it_is_executed(
    libraries: LibraryFactory,
) -> None:
    old = libraries.publish(flat(3), "one page", "old")
    new = libraries.publish(flat(3, text="Every warden shall pay.\n"), "one page", "new")
    with libraries.open() as library:
        ingest(library, old, version="2024")
        assert _newest(library) == ["2024"]
        before = _of_edition(library, "2024")
    saboteur = Saboteur(fail_at=_first_pack(libraries, new))
    with libraries.open(saboteur) as library:
        report = ingest(library, new, version="2025")
        assert report.run.status is RunStatus.FAILED
        assert _newest(library) == ["2024"]
        assert len(library.search("keeper")) == 3
    with libraries.open() as library:
        ingest(library, new, version="2025")
        assert _newest(library) == ["2025"]
        assert library.search("keeper") == []
        assert len(library.search("warden")) == 3
        assert _of_edition(library, "2024") == before
        ingest(library, old, version="2023")
        ingest(library, old, version="2024")
        assert _newest(library) == ["2025"]


def _first_pack(libraries: LibraryFactory, folder: Path) -> int:
    """The number of the operation that writes the first pack of a run."""
    observer = Saboteur()
    other = replace(libraries, count=libraries.count + 1)
    other.home.mkdir(exist_ok=True)
    with open_library(other.home, seams=Seams(clock=ManualClock(), durable=observer)) as library:
        observer.operations.clear()
        ingest(library, folder, version="2025")
    places = [subject for _, subject in observer.operations]
    return next(n for n, subject in enumerate(places, 1) if "/packs/" in subject)


def test_second_edition_numbered_higher_is_newer_than_the_first(libraries: LibraryFactory) -> None:
    folder = libraries.publish(flat(1), "one page")
    with libraries.open() as library:
        for version in ("119-36", "119-4", "118-99"):
            ingest(library, folder, version=version)
            assert _newest(library) == ["119-36"]


def nested(parts: int) -> Item:
    below = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=flat(2).children)
        for n in range(1, parts + 1)
    )
    return Item(kind="title", number="1", label="Title 1", children=below)


def test_parts_ingested_one_by_one_contain_all_sections_of_the_unit(
    libraries: LibraryFactory,
) -> None:
    folder = libraries.publish(nested(3), "page per container")
    with libraries.open() as library:
        for n in (2, 1, 3):
            report = ingest(library, folder, units=(f"title-1/part-{n}",))
            assert report.run.status is RunStatus.SUCCESS
        held = {row["id"] for row in rows(library, "SELECT id FROM nodes")}
        assert held == {ABOVE, *(known for known, _ in named(ABOVE, nested(3)))}
        before = contents_of(library)
        report = ingest(library, folder, units=("title-1/part-1", "title-1/part-2"))
        assert report.run.counts.inserted == 0
        assert contents_of(library) == before


def test_unit_ingested_after_a_part_is_complete_and_newest(libraries: LibraryFactory) -> None:
    folder = libraries.publish(nested(2), "one page")
    with libraries.open() as library:
        ingest(library, folder, units=("title-1/part-2",))
        assert ingest(library, folder).run.status is RunStatus.SUCCESS
        assert len(_sections(library)) == 4
        before = contents_of(library)
        report = ingest(library, folder)
        assert report.run.counts.inserted == 0
        assert report.units[0].skipped == report.units[0].nodes
        assert contents_of(library) == before
        ingest(library, folder, units=("title-1/part-2",))
        assert contents_of(library) == before


def test_new_version_of_an_adapter_plans_again_and_keeps_documents(
    libraries: LibraryFactory,
) -> None:
    folder = libraries.publish(flat(3), "one page")
    with libraries.open() as library:
        ingest(library, folder)
        before = _of_edition(library, "2024")
        report = ingest(library, folder, adapter=FakeCode(version="2"))
        assert report.run.status is RunStatus.SUCCESS
        assert _of_edition(library, "2024") == before
        (unit,) = rows(library, "SELECT plan_key, state FROM code_units")
        assert unit == {
            "plan_key": "corpus/fakecode/2024/plans/2/title-1.jsonl",
            "state": "complete",
        }


# What the tables say --------------------------------------------------------------------------


def _sections(library: Library) -> list[str]:
    return sorted(row["id"] for row in rows(library, "SELECT id FROM documents"))


def _states(library: Library) -> dict[str, str]:
    return {row["id"]: row["state"] for row in rows(library, "SELECT id, state FROM code_units")}


def _newest(library: Library) -> list[str]:
    return [
        row["version"] for row in rows(library, "SELECT version FROM code_units WHERE is_newest")
    ]


def _of_edition(library: Library, version: str) -> list[dict[str, Any]]:
    query = "SELECT id, label, path, body_ref, position FROM nodes WHERE version = '{}' ORDER BY id"
    return rows(library, query.format(version))


def _audit(library: Library) -> Sequence[str]:
    async def run() -> list[str]:
        async with library.open_context(tables=False) as context:
            audit = audit_code(FakeCode(), context)
            return [known for scope in audit.scopes for known in scope.missing]

    return asyncio.run(run())


@pytest.mark.parametrize("subrequests", [36, 40, 44])
def test_nodes_of_a_batch_that_is_executed_again_are_counted_once(
    libraries: LibraryFactory, subrequests: int
) -> None:
    folder = libraries.publish(nested(6), "one page")
    with small_batches(), libraries.open() as library:
        ingest(library, folder, units=("title-1/part-2",))
        (report,) = ingest(library, folder, budget=plenty(subrequests)).units
        assert report.error is None
        assert len(report.invocations) > 1
        assert report.inserted + report.skipped == report.nodes


# What does not stop the rest ------------------------------------------------------------------


@dataclass
class BrokenNormalizer:
    """A normalizer that does not expect some text."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def to_markdown(self, data: bytes, *address: Any) -> Any:
        if b"quinquereme" in data:
            raise IndexError("list index out of range")
        return self.inner.to_markdown(data, *address)


@pytest.mark.parametrize("shape", ["one page", "page per node"])
def test_section_on_which_a_normalizer_breaks_fails_alone(
    libraries: LibraryFactory, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections = flat(9).children
    broken = replace(sections[4], text="Of the quinquereme.\n")
    unit = replace(flat(9), children=(*sections[:4], broken, *sections[5:]))
    folder = libraries.publish(unit, shape)
    with libraries.open() as library:
        with monkeypatch.context() as patch:
            patch.setattr(
                execute, "get_normalizer", lambda name: BrokenNormalizer(get_normalizer(name))
            )
            (report,) = ingest(library, folder).units
        [(failed, cause)] = report.failures
        assert (failed, cause) == (f"{TITLE}/section-5", "IndexError: list index out of range")
        assert len(_sections(library)) == 8
        (row,) = rows(library, f"SELECT status FROM nodes WHERE id = '{failed}'")
        assert row["status"] == f"missing: {cause}"
        (mended,) = ingest(library, folder).units
        assert (mended.inserted, mended.failures) == (1, ())
        (row,) = rows(library, f"SELECT status, body_ref FROM nodes WHERE id = '{failed}'")
        assert row["status"] is None
        assert row["body_ref"] is not None


@dataclass
class CountingNormalizer(BrokenNormalizer):
    """A normalizer that notes what it is given."""

    given: list[bytes]

    def to_markdown(self, data: bytes, *address: Any) -> Any:
        self.given.append(data)
        return self.inner.to_markdown(data, *address)


@pytest.mark.parametrize("room", [1 << 20, 100, 0])
def test_pages_are_normalized_once_if_there_is_room_for_their_texts(
    libraries: LibraryFactory, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = libraries.publish(flat(9), "page per node")
    given: list[bytes] = []
    monkeypatch.setattr(execute, "_CHECKED_CHARACTERS", room)
    monkeypatch.setattr(
        execute, "get_normalizer", lambda name: CountingNormalizer(get_normalizer(name), given)
    )
    with libraries.open() as library:
        (report,) = ingest(library, folder).units
        assert (report.failures, len(_sections(library))) == ((), 9)
        texts = len(given)
        assert len(set(given)) == 9
    kept = {1 << 20: 9, 0: 0}.get(room)
    assert texts == 18 - kept if kept is not None else 9 < texts < 18


@pytest.mark.parametrize("shape", ["one page", "page per node"])
def test_pack_that_is_gone_is_missed_by_the_audit_and_made_again(
    libraries: LibraryFactory, shape: Shape
) -> None:
    folder = libraries.publish(flat(4), shape)
    with libraries.open() as library:
        ingest(library, folder)
        before = contents_of(library)
        library.blobs.delete(PACK)
        audit = audit_code(FakeCode(), library.context)
        assert [len(scope.missing) for scope in audit.scopes] == [4]
        (report,) = ingest(library, folder).units
        assert (report.inserted, report.failures) == (0, ())
        assert contents_of(library) == before


def test_pack_that_cannot_be_made_again_is_reported_and_its_rows_stay(
    libraries: LibraryFactory,
) -> None:
    folder = libraries.publish(flat(4), "page per node")
    with small_batches(), libraries.open() as library:
        ingest(library, folder)
        before = rows(library, "SELECT * FROM nodes ORDER BY id")
        library.blobs.delete(PACK)
        page = folder / "0/0.txt"
        page.write_bytes(page.read_bytes() + b"More.\n")
        (report,) = ingest(library, folder).units
        assert report.failures
        assert all("cannot be made again" in cause for _, cause in report.failures)
        assert rows(library, "SELECT * FROM nodes ORDER BY id") == before


@pytest.mark.parametrize("shape", SHAPES)
def test_files_of_a_folder_that_no_unit_has_are_named(
    libraries: LibraryFactory, shape: Shape
) -> None:
    folder = libraries.publish(flat(3), shape)
    with libraries.open() as library:
        assert ingest(library, folder).left_aside == ()
        (folder / "1999").mkdir()
        (folder / "1999" / "old.toc").write_text("Of another year.\n")
        assert ingest(library, folder).left_aside == ("1999/old.toc",)
