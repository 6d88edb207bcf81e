"""The same content gives the same bundle, byte for byte, whatever happened on the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import warnings
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, update
from tests.support import servers
from tests.support.libraries.demo import demo
from tests.support.libraries.documents import hold, hold_edition
from tests.support.upstreams.federal_register import serve_synthetic

from fonds.codes.run import CodeRequest
from fonds.demo.bundle import FEEDS, FIRST_DAY, LAST_DAY
from fonds.demo.server import DemoUpstream
from fonds.errors import BundleError, StoreError, UsageError
from fonds.exchange.bundle import contents
from fonds.exchange.bundle.contents import DESCRIPTOR, read_package
from fonds.exchange.bundle.create import Created, create
from fonds.exchange.bundle.diff import Difference, bundle_rows, differences, library_rows
from fonds.exchange.bundle.verify import verify
from fonds.exchange.snapshot import snapshot
from fonds.library import Library, open_library
from fonds.runs.state import RunRequest, RunStatus
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, open_blobs
from fonds.stores.tables import (
    documents,
    ingestion_citation_queue,
    ingestion_normalization_queue,
    nodes,
)
from fonds.testing import ManualClock, Saboteur

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it brings along
    import frictionless

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}


def at(folder: Path) -> Blobs:
    return open_blobs(str(folder), seams=Seams())


def files(blobs: Blobs) -> dict[str, bytes]:
    return {info.key: blobs.get(info.key) for info in blobs.list()}


def bundle(library: Library, blobs: Blobs, **given: Any) -> Created:
    return create(library.database, blobs, where="here", **given)


def against(library: Library, blobs: Blobs) -> list[Difference]:
    package = read_package(blobs, "here")
    with snapshot(library.database) as held:
        sides = bundle_rows(blobs, package), library_rows(held, package.sources)
        return list(differences(*sides))


# The same, whatever happened --------------------------------------------------------------


@pytest.fixture(scope="module")
def of_demo(tmp_path_factory: pytest.TempPathFactory) -> Blobs:
    """The bundle of the library that `make demo` makes, which is in SQLite and a folder."""
    blobs = at(tmp_path_factory.mktemp("bundle"))
    with open_library(demo().home) as library:
        made = bundle(library, blobs)
    assert made.records["documents"] > 100
    assert min(made.records.values()) > 0
    assert not any(made.waiting.values())
    return blobs


def test_sources_in_another_order_on_other_stores_and_twice_give_the_same_bytes(
    tmp_path: Path, postgres_database: str, s3_address: str, of_demo: Blobs
) -> None:
    settings: dict[str, Any] = {"database": postgres_database, "blobs": s3_address}
    with DemoUpstream() as upstream, ExitStack() as stack:
        given = {**settings, "hosts": upstream.hosts, "allow_private": True, "batch_records": 7}
        library = stack.enter_context(open_library(tmp_path, **given))
        ingest(library)
        bundles = open_blobs(servers.s3(), seams=Seams())
        bundle(library, bundles)
        assert files(bundles) == files(of_demo)
        ingest(library)
        assert bundle(library, bundles).written == 0


def ingest(library: Library) -> None:
    assert asyncio.run(library.ingest_code("usc", CodeRequest())).run.status is RunStatus.SUCCESS
    request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
    for name in sorted(FEEDS, reverse=True):
        assert asyncio.run(library.ingest(name, request)).status is RunStatus.SUCCESS
    library.normalize_queued()
    library.extract_citations()


@pytest.mark.long
def test_a_library_that_was_killed_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    homes = [tmp_path / "here", tmp_path / "ailleurs, très loin"]
    with serve_synthetic(60, words=80, per_day=10) as upstream:
        assert ingested(homes[0], upstream.hosts, {}) == 0
        assert ingested(homes[1], upstream.hosts, {}, kill_at=60) == -signal.SIGKILL
        assert ingested(homes[1], upstream.hosts, ELSEWHERE) == 0
    told = [bundled(homes[0], {}), bundled(homes[1], ELSEWHERE)]
    assert told[0]["records"]["documents"] > 60
    assert told[0]["root"] == told[1]["root"]
    assert files(at(homes[0] / "bundle")) == files(at(homes[1] / "bundle"))


def ingested(
    home: Path, hosts: dict[str, str], environ: dict[str, str], kill_at: int | None = None
) -> int:
    """The exit code of a process; with variables of its own it is one made from scratch."""
    python = Path(sys.executable) if environ else servers.forked_python()
    command = [str(python), "-m", "tests.support.kills.ingest", str(home), json.dumps(hosts)]
    command += [str(kill_at)] if kill_at else []
    ended = subprocess.run(command, env={**os.environ, **environ}, cwd=ROOT, check=False)
    return ended.returncode


def bundled(home: Path, environ: dict[str, str]) -> Any:
    """What the command tells of its bundle."""
    fonds = Path(sys.executable).parent / "fonds" if environ else servers.fonds_command()
    env = {**os.environ, **environ}
    at_home = [str(fonds), "--home", str(home)]
    subprocess.run([*at_home, "citations"], env=env, check=True, capture_output=True)
    command = [*at_home, "bundle", "create", "--json"]
    return json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)


def test_the_bundle_of_the_demo_is_sound_and_other_tools_read_it(of_demo: Blobs) -> None:
    found = verify(of_demo, "here")
    assert [str(problem) for problem in found.problems] == []
    folder = of_demo.local_path(DESCRIPTOR)
    assert folder is not None
    report: Any = frictionless.validate(str(folder))
    assert report.flatten(["type", "message"]) == []
    rows = {task.name: task.stats["rows"] for task in report.tasks}
    assert rows == found.records


# What goes in, and what does not ----------------------------------------------------------


@pytest.fixture
def held(library: Library) -> Library:
    for number in (10, 9, 2):
        hold(library, f"held:{number}", f"# Note\n\nAbout {number}.\n\nSee 90 FR {number}.")
    hold(library, "held:none", aliases=("90 FR 2",))
    hold_edition(library, "2024", "5", "The fifth section.", published="2024-01-01")
    library.extract_citations()
    return library


def test_documents_come_in_the_order_of_their_characters(held: Library, tmp_path: Path) -> None:
    hold(held, "held:Ä", "Umlaut.")
    hold(held, "held:\U0001f98a", "A fox.")
    hold(held, "held:｡", "A stop at half width.")
    blobs = at(tmp_path / "bundle")
    bundle(held, blobs)
    ids = [json.loads(line)["id"] for line in lines(blobs, "documents")]
    assert ids == sorted(ids)
    assert ids[-1] == "held:\U0001f98a"  # the other way about where UTF-16 is compared
    assert verify(blobs, "here").count == 0


def lines(blobs: Blobs, table: str) -> list[bytes]:
    found = [blobs.get(info.key) for info in blobs.list(f"data/{table}/")]
    return b"".join(found).splitlines()


def test_uploads_are_in_no_bundle_and_no_bundle_tells_of_them(
    held: Library, tmp_path: Path
) -> None:
    bundle(held, at(tmp_path / "before"))
    owner: UUID = uuid4()
    hold(
        held,
        f"upload:{uuid4()}",
        "Nobody may know of this. See 90 FR 9.",
        owner=owner,
        source="uploads",
        aliases=("90 FR 10",),  # which a public document cites
    )
    held.extract_citations()
    bundle(held, at(tmp_path / "after"))
    assert files(at(tmp_path / "after")) == files(at(tmp_path / "before"))


def test_when_and_from_where_is_no_content_but_being_gone_is(
    held: Library, clock: ManualClock, tmp_path: Path
) -> None:
    blobs = at(tmp_path / "bundle")
    bundle(held, blobs)
    later = clock.now() + timedelta(hours=1)
    with held.database.write() as connection:
        moved = {"retrieved_at": later, "updated_at": later, "raw_path": "x", "task_key": "x"}
        connection.execute(update(documents).values(moved))
        connection.execute(update(nodes).values(created_at=5, body_ref="another"))
    assert against(held, blobs) == []
    with held.database.write() as connection:
        of_it = documents.c.id == "held:9"
        connection.execute(update(documents).where(of_it).values(gone_at=clock.now()))
    (told,) = against(held, blobs)
    assert (told.id, told.fields) == ("held:9", ("is_gone",))


def test_the_same_content_of_other_bytes_has_another_root_and_says_why(
    held: Library, tmp_path: Path
) -> None:
    blobs = at(tmp_path / "bundle")
    before = bundle(held, blobs)
    with held.database.write() as connection:
        of_it = documents.c.id == "held:9"
        connection.execute(update(documents).where(of_it).values(raw_sha256="f" * 64))
    (told,) = against(held, blobs)
    assert (told.id, told.fields) == ("held:9", ("origins",))
    after = bundle(held, blobs)
    assert (after.content, after.root == before.root) == (before.content, False)


def test_a_source_alone_does_not_depend_on_what_else_is_held(held: Library, tmp_path: Path) -> None:
    bundle(held, at(tmp_path / "before"), sources=["held"])
    hold(held, "other:1", "Cited before it was there.", source="other", aliases=("90 FR 9",))
    held.extract_citations()
    made = bundle(held, at(tmp_path / "after"), sources=["held"])
    assert made.records["documents"] == 4
    assert made.records["editions"] == 0
    assert files(at(tmp_path / "after")) == files(at(tmp_path / "before"))
    assert against(held, at(tmp_path / "after")) == []


def test_a_source_of_which_nothing_is_public_is_refused(held: Library, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no public document of gao"):
        bundle(held, at(tmp_path / "bundle"), sources=["held", "gao"])
    assert files(at(tmp_path / "bundle")) == {}


def test_what_still_waits_is_told(held: Library, clock: ManualClock, tmp_path: Path) -> None:
    def waits(name: str, attempts: int) -> dict[str, Any]:
        told = {"table_name": "documents", "record_id": name, "input_sha": "x"}
        return {**told, "enqueued_at": clock.now(), "attempts": attempts}

    with held.database.write() as connection:
        connection.execute(
            ingestion_citation_queue.insert(), [waits("held:2", 0), waits("held:9", 5)]
        )
        raw = {"raw_path": "x", "raw_format": "pdf"}
        connection.execute(ingestion_normalization_queue.insert(), {**waits("held:10", 1), **raw})
    made = bundle(held, at(tmp_path / "bundle"))
    assert made.waiting == {"texts": 1, "citations": 1}


# Writing it -------------------------------------------------------------------------------


def test_a_second_bundle_writes_nothing(held: Library, tmp_path: Path) -> None:
    first = bundle(held, at(tmp_path / "bundle"))
    saboteur = Saboteur()
    again = bundle(held, open_blobs(str(tmp_path / "bundle"), seams=Seams(durable=saboteur)))
    assert saboteur.operations == []
    assert (again.root, again.written, first.written) == (first.root, 0, first.files + 1)


@pytest.fixture
def many(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library whose bundle has many files."""
    monkeypatch.setattr(contents, "MIN_FILE_SIZE", 2_000)
    monkeypatch.setattr(contents, "MAX_FILE_SIZE", 6_000)
    for number in range(40):
        hold(library, f"held:{number:02}", f"# Note\n\n{'A word or two. ' * 20}")
    library.extract_citations()
    return library


def test_a_change_writes_a_few_files_and_removes_what_they_replace(
    many: Library, tmp_path: Path
) -> None:
    blobs = at(tmp_path / "bundle")
    first = bundle(many, blobs)
    hold(many, "held:20", "Other words.")
    second = bundle(many, blobs)
    assert first.files > 10
    assert 3 <= second.written <= 10
    assert second.removed > 0
    assert len(files(blobs)) == second.files + 1
    assert verify(blobs, "here").count == 0


def test_wherever_it_is_interrupted_a_sound_bundle_stands_there_and_the_next_one_is_whole(
    many: Library, tmp_path: Path
) -> None:
    old = bundle(many, at(tmp_path / "bundle"))
    hold(many, "held:20", "Other words.")
    saboteur = Saboteur()
    new = bundle(many, open_blobs(str(tmp_path / "whole"), seams=Seams(durable=saboteur)))
    roots = set()
    for place in range(1, 60):
        interrupted = open_blobs(
            str(tmp_path / "bundle"), seams=Seams(durable=Saboteur(fail_at=place))
        )
        try:
            bundle(many, interrupted)
            break
        except StoreError:
            pass
        found = verify(at(tmp_path / "bundle"), "here")
        assert found.count == 0
        roots.add(found.root)
    assert roots == {old.root, new.root}
    assert files(at(tmp_path / "bundle")) == files(at(tmp_path / "whole"))


def test_what_is_no_bundle_is_not_overwritten(held: Library, tmp_path: Path) -> None:
    blobs = at(tmp_path / "bundle")
    blobs.put(DESCRIPTOR, b'{"name": "mine"}')
    with pytest.raises(BundleError, match="not one of a bundle"):
        bundle(held, blobs)
    assert files(blobs) == {DESCRIPTOR: b'{"name": "mine"}'}


def test_a_library_that_changes_meanwhile_is_seen_as_it_was(held: Library, tmp_path: Path) -> None:
    expected = bundle(held, at(tmp_path / "before")).root
    with snapshot(held.database) as moment:
        side = library_rows(moment, None)
        runs = {name: side(resource) for name, resource in named().items()}
        next(runs["documents"])
        with held.database.write() as other:
            other.execute(delete(ingestion_citation_queue))
        hold(held, "held:new", "It was not there.")
        passages = [run.read() for run in runs["passages"]]
    assert b"held:new" not in b"".join(passages)
    assert bundle(held, at(tmp_path / "after")).root != expected


def named() -> dict[str, Any]:
    from fonds.exchange.bundle.contents import RESOURCES  # noqa: PLC0415

    return {resource.name: resource for resource in RESOURCES}


@pytest.fixture
def azure(azure_address: str) -> Blobs:
    return open_blobs(azure_address, seams=Seams())


def test_a_bundle_on_azure_is_the_one_in_a_folder(
    held: Library, tmp_path: Path, azure: Blobs
) -> None:
    bundle(held, at(tmp_path / "bundle"))
    bundle(held, azure)
    assert files(azure) == files(at(tmp_path / "bundle"))
    assert verify(azure, "here").count == 0
