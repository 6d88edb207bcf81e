"""What a run promises, on every database."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import DatabaseError
from tests.support.libraries.notes import NoteOffice, ingest, note_library, renewed, rows
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response

from fonds.errors import SourceBusyError, StoreFullError
from fonds.library import Library
from fonds.model import Discovery, FetchTask, KeyListing, Listing, ParsedRecord, Raw, SourceState
from fonds.runs.active_run import drop_old_history, mark_dead_runs_failed
from fonds.runs.audit import AuditRange, audit_source
from fonds.runs.locks import lock_source
from fonds.runs.reparse import reparse_source
from fonds.runs.state import MOVES, Run, RunReport, RunRequest, RunStatus
from fonds.runs.tasks import resolve
from fonds.seams import Seams, SystemClock
from fonds.selftest.state import rows_of
from fonds.sources.base import Ask
from fonds.stores.leases import claim_name
from fonds.stores.tables import ingestion_runs
from fonds.testing import FakeSource, ManualClock, note


class SourceWithoutCitation(FakeSource):
    """A source one of whose documents the database rejects."""

    def __init__(self, document_id: str) -> None:
        super().__init__()
        self._document_id = document_id

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        for record in super().parse(raw):
            assert isinstance(record, ParsedRecord)
            assert record.document is not None
            if record.key == self._document_id:
                yield replace(record, document=replace(record.document, citation_string=""))
            else:
                yield record


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 12)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice, clock: ManualClock
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    seams = Seams(clock=clock)
    with note_library(tmp_path, office.server, seams=seams, database=address) as library:
        yield library


def test_first_run_loads_everything_with_provenance_and_citation(library: Library) -> None:
    report = ingest(library)
    assert report.status is RunStatus.SUCCESS
    assert (report.counts.discovered, report.counts.inserted) == (12, 12)
    document = library.document("fake:7")
    assert document["citation_string"] == "Note No. 7 (2026)."
    assert document["source_org"] == "The Note Office"
    assert document["raw_path"] == "corpus/fake/notes/7.json"
    assert library.blobs.get(document["body_raw_path"]).startswith(b'{"number": 7')


def test_second_run_asks_conditionally_and_writes_nothing(
    library: Library, office: NoteOffice
) -> None:
    ingest(library)
    before = rows_of(library)
    office.server.requests.clear()
    report = ingest(library)
    assert report.counts.skipped == 12
    assert [seen.status for seen in office.server.requests] == [304]
    assert rows_of(library) == before


def test_recheck_asks_for_every_item_and_still_writes_nothing(
    library: Library, office: NoteOffice
) -> None:
    ingest(library)
    before = rows_of(library)
    office.server.requests.clear()
    ingest(library, recheck=True)
    assert {seen.status for seen in office.server.requests} == {304}
    assert len(office.server.requests) == 13
    assert rows_of(library) == before


def test_item_is_asked_for_again_after_a_week_although_its_listing_is_unchanged(
    library: Library, office: NoteOffice, clock: ManualClock
) -> None:
    ingest(library)
    office._serve("/notes/4.json", note(4, text="# Matter\n\nSilently mended."))
    assert ingest(library).counts.updated == 0
    clock.move(days=8)
    assert ingest(library).counts.updated == 1
    assert "mended" in library.document("fake:4")["body_text"]


def test_changed_item_updates_rows_children_passages_and_words(
    library: Library, office: NoteOffice
) -> None:
    ingest(library)
    office.change(3, title="A new title", text="# Matter\n\nNothing but trout.", tags=["x", "y"])
    report = ingest(library)
    assert (report.counts.updated, report.counts.skipped) == (1, 11)
    assert [hit.id for hit in library.search("trout")] == ["fake:3"]
    assert library.search('"text of note 3"') == []
    assert rows(
        library, "SELECT tag FROM fake_note_tags WHERE note_id = 'fake:3' ORDER BY ord"
    ) == [
        {"tag": "x"},
        {"tag": "y"},
    ]
    versions = rows(library, "SELECT * FROM document_versions WHERE document_id = 'fake:3'")
    assert len(versions) == 2
    office.change(3, title="A new title", text="# Matter\n\nNothing but trout.", tags=[])
    ingest(library, recheck=True)
    assert rows(library, "SELECT 1 FROM fake_note_tags WHERE note_id = 'fake:3'") == []


def test_changed_file_is_kept_beside_the_old_one(library: Library, office: NoteOffice) -> None:
    ingest(library)
    old = library.document("fake:3")
    office.change(3, title="Another", text="# Matter\n\nOther words.")
    ingest(library)
    new = library.document("fake:3")
    assert new["raw_path"] == f"{old['raw_path']}@{new['raw_sha256'][:8]}"
    assert library.blobs.get(old["raw_path"]) != library.blobs.get(new["raw_path"])


def test_failed_task_is_recorded_with_stage_and_cause_and_the_rest_is_loaded(
    library: Library, office: NoteOffice
) -> None:
    office.break_note(5, b"{not json")
    report = ingest(library)
    assert report.status is RunStatus.PARTIAL
    assert (report.counts.inserted, report.counts.error) == (11, 1)
    (failure,) = rows(library, "SELECT * FROM ingestion_tasks WHERE stage = 'errored'")
    assert failure["task_key"] == "fake:5"
    assert failure["error_stage"] == "parse"
    assert failure["error_type"] == "MalformedError"
    assert "not JSON" in failure["error"]


def test_next_run_makes_a_failure_good(library: Library, office: NoteOffice) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    office.publish()
    report = ingest(library)
    assert report.status is RunStatus.SUCCESS
    assert report.counts.inserted == 1
    assert not _standing(library)


def test_file_that_could_not_be_parsed_is_not_downloaded_again(
    library: Library, office: NoteOffice
) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    office.server.requests.clear()
    ingest(library)
    assert [seen.status for seen in office.server.requests if "/5" in seen.target] == [304]


def test_file_of_a_record_that_the_database_rejects_is_not_downloaded_again(
    library: Library, office: NoteOffice
) -> None:
    source = SourceWithoutCitation("fake:5")
    ingest(library, source)
    office.server.requests.clear()
    assert ingest(library, source).status is RunStatus.PARTIAL
    assert [seen.status for seen in office.server.requests if "/5" in seen.target] == [304]


def test_tasks_have_the_time_at_which_their_first_file_was_requested(
    library: Library, office: NoteOffice, clock: ManualClock
) -> None:
    office.break_note(5, b"{not json")

    def slow(_request: Request) -> Response:
        clock.move(seconds=1)
        return Response(json.dumps(office.notes[4]).encode(), content_type="application/json")

    office.server.route("/notes/4.json", slow)
    ingest(library)
    times = {
        row["task_key"]: (row["started_at"], row["finished_at"])
        for row in rows(library, "SELECT * FROM ingestion_tasks")
    }
    assert times["fake:4"][0] < times["fake:4"][1]
    assert all(started <= finished for started, finished in times.values())


def test_tasks_that_a_file_names_are_counted_as_discovered(library: Library) -> None:
    class Chain(FakeSource):
        """Its list has the first note, and each note names the next one."""

        async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
            async for item in super().discover(state, ask):
                self.tasks = getattr(self, "tasks", [])
                if isinstance(item, FetchTask):
                    self.tasks.append(item)
            yield self.tasks[0]

        def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
            yield from super().parse(raw)
            yield from self.tasks[self.tasks.index(raw.task) + 1 :][:1]

    counts = ingest(library, Chain()).counts
    assert (counts.discovered, counts.fetched) == (12, 12)


class Keyed(FakeSource):
    """Its list is complete for one prefix of keys instead of for days."""

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        async for item in super().discover(state, ask):
            if isinstance(item, Listing):
                yield KeyListing(prefix="fake:", task_keys=item.task_keys)
            else:
                yield item


def test_a_document_that_a_list_of_keys_lacks_is_withdrawn_until_it_is_back(
    library: Library, office: NoteOffice
) -> None:
    ingest(library, Keyed())
    office.withdraw(3)
    assert ingest(library, Keyed()).counts.gone == 1
    gone = "SELECT id FROM documents WHERE gone_at IS NOT NULL"
    assert [row["id"] for row in rows(library, gone)] == ["fake:3"]
    office.change(3)
    ingest(library, Keyed())
    assert not list(rows(library, gone))


def test_a_list_of_keys_that_shrank_sharply_withdraws_nothing(
    library: Library, office: NoteOffice
) -> None:
    ingest(library, Keyed())
    office.withdraw(*range(1, 9))
    report = ingest(library, Keyed())
    assert (report.status, report.counts.gone) == (RunStatus.PARTIAL, 0)
    assert "the listing fake: shrank: 8 of 12" in (report.error_summary or "")


def test_a_key_belongs_to_the_listed_one_that_it_continues() -> None:
    listing = KeyListing(prefix="bill:119-hr-", task_keys=frozenset({"bill:119-hr-1"}))
    assert all(map(listing.has, ("bill:119-hr-1", "bill:119-hr-1-ih", "bill:119-hr-1#html")))
    assert not any(map(listing.has, ("bill:119-hr-12", "bill:119-hr-12-ih", "bill:119-hr")))


def test_archived_files_are_parsed_again_without_a_request(
    library: Library, office: NoteOffice
) -> None:
    class Shouting(FakeSource):
        def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
            for record in super().parse(raw):
                assert isinstance(record, ParsedRecord)
                assert record.document is not None
                title = record.document.title.upper()
                yield replace(record, document=replace(record.document, title=title))

    ingest(library)
    asked = _inputs_of(library)
    office.server.requests.clear()
    report = asyncio.run(_reparse(library, Shouting()))
    assert report.status is RunStatus.SUCCESS
    assert (report.counts.parsed, report.counts.updated) == (12, 12)
    assert library.document("fake:7")["title"] == library.document("fake:7")["title"].upper()
    assert office.server.requests == []
    again = asyncio.run(_reparse(library, Shouting()))
    assert (again.counts.updated, again.counts.skipped) == (0, 12)
    assert _inputs_of(library) == asked


def test_archived_file_that_is_lost_fails_alone(library: Library) -> None:
    ingest(library)
    library.blobs.delete("corpus/fake/notes/5.json")
    report = asyncio.run(_reparse(library, FakeSource()))
    assert report.status is RunStatus.PARTIAL
    assert (report.counts.error, report.counts.skipped) == (1, 11)


async def _reparse(library: Library, source: FakeSource) -> RunReport:
    async with library.open_context() as context:
        return await reparse_source(source, context)


def _inputs_of(library: Library) -> list[tuple[str, object]]:
    """When the publisher was last asked for each item."""
    found = rows(library, "SELECT * FROM ingestion_inputs ORDER BY task_key")
    return [(row["task_key"], row["validated_at"]) for row in found]


@pytest.mark.parametrize("fingerprints", [True, False])
def test_failure_after_a_success_is_made_good_by_finding_the_item_unchanged(
    library: Library, office: NoteOffice, *, fingerprints: bool
) -> None:
    source = FakeSource(fingerprints=fingerprints)
    ingest(library, source)
    office.server.route("/notes/5.json", lambda _request: Response(b"", status=503))
    assert ingest(library, source, recheck=True).status is RunStatus.PARTIAL
    office.publish()
    assert ingest(library, source).status is RunStatus.SUCCESS
    assert not _standing(library)


def test_failure_is_retried_although_the_listing_names_it_no_more(
    library: Library, office: NoteOffice
) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    office.publish()
    office._serve("/list.json", {"notes": []})
    report = ingest(library, FakeSource(), accept_loss=True)
    assert report.counts.inserted == 1


def test_repeated_failure_counts_its_attempts_in_one_standing_row(
    library: Library, office: NoteOffice
) -> None:
    office.break_note(5, b"{not json")
    for _ in range(3):
        ingest(library)
    (standing,) = _standing(library)
    assert standing["attempts"] == 3


def test_dismissed_failure_is_forgotten(library: Library, office: NoteOffice) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    with library.database.write() as connection:
        assert resolve(connection, "fake", ["fake:5"], library.seams.clock.now()) == 1
    assert not _standing(library)


def test_watermark_stands_only_when_discovery_reached_it(
    library: Library, office: NoteOffice
) -> None:
    office.server.serve("/list.json", b"<html>sorry</html>", "text/html")
    report = ingest(library)
    assert report.status is RunStatus.FAILED
    assert rows(library, "SELECT last_seen_key FROM ingestion_source_state") == [
        {"last_seen_key": None}
    ]
    office.publish()
    ingest(library)
    assert rows(library, "SELECT last_seen_key FROM ingestion_source_state") == [
        {"last_seen_key": "2026-03-10"}
    ]


def test_withdrawn_document_is_marked_and_not_deleted(library: Library, office: NoteOffice) -> None:
    ingest(library)
    office.withdraw(2)
    report = ingest(library)
    assert report.counts.gone == 1
    assert library.document("fake:2")["gone_at"] is not None
    assert "fake:2" not in {hit.id for hit in library.search("note", limit=50)}


def test_document_that_comes_back_is_no_longer_gone(library: Library, office: NoteOffice) -> None:
    ingest(library)
    office.withdraw(2)
    ingest(library)
    office.change(2)
    ingest(library)
    assert library.document("fake:2")["gone_at"] is None


def test_list_that_shrinks_marks_nothing_as_gone(library: Library, office: NoteOffice) -> None:
    ingest(library)
    office.withdraw(1, 2, 3, 4, 5, 6, 7)
    report = ingest(library)
    assert report.status is RunStatus.PARTIAL
    assert report.counts.gone == 0
    assert "--accept-loss" in (report.error_summary or "")
    assert ingest(library, accept_loss=True).counts.gone == 7


def test_empty_feed_is_never_a_success(library: Library, office: NoteOffice) -> None:
    office._serve("/list.json", {"notes": []})
    report = ingest(library, FakeSource(at_least=1))
    assert report.status is RunStatus.FAILED
    assert "at least 1" in (report.error_summary or "")


def test_one_key_for_two_records_is_an_error(library: Library) -> None:
    class Doubling(FakeSource):
        def parse(self, raw):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 — as above
            yield from super().parse(raw)
            yield from super().parse(raw)

    report = ingest(library, Doubling())
    assert report.status is RunStatus.FAILED
    assert "two records with the key" in (report.error_summary or "")


def test_record_the_database_refuses_fails_alone(library: Library) -> None:
    report = ingest(library, SourceWithoutCitation("fake:6"))
    assert report.status is RunStatus.PARTIAL
    assert report.counts.inserted == 11
    (failure,) = _standing(library)
    assert (failure["task_key"], failure["error_stage"]) == ("fake:6", "load")


def test_record_with_a_value_of_another_type_fails_alone(
    library: Library, office: NoteOffice
) -> None:
    office.notes[6] = {**note(6), "number": "six"}
    office.publish()
    assert ingest(library).counts.inserted == 11
    (failure,) = _standing(library)
    assert (failure["task_key"], failure["error_stage"]) == ("fake:6", "parse")
    assert "fake_notes.number does not take the str 'six'" in str(failure["error"])


def test_text_that_cannot_be_stored_fails_alone(library: Library, office: NoteOffice) -> None:
    office.change(6, title="half a pair: \ud800")
    report = ingest(library)
    assert (report.status, report.counts.inserted) == (RunStatus.PARTIAL, 11)
    (failure,) = _standing(library)
    assert (failure["task_key"], failure["error_stage"]) == ("fake:6", "load")


@pytest.fixture(params=["sqlite", "postgres"])
def timed_library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice
) -> Iterator[Library]:
    """A library whose leases expire."""
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    with note_library(tmp_path, office.server, database=address) as library:
        yield library


def test_source_is_not_run_twice_at_once(timed_library: Library) -> None:
    clock, home = timed_library.seams.clock, timed_library.settings.home
    with (
        lock_source(timed_library.database, home, "fake", clock) as lock,
        renewed(lock),
        pytest.raises(SourceBusyError, match="another process"),
    ):
        ingest(timed_library)


@pytest.mark.parametrize("timed_library", ["postgres"], indirect=True)
def test_a_start_waits_for_the_claim_of_a_run_that_died_instead_of_refusing(
    timed_library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    now = timed_library.seams.clock.now()
    with timed_library.database.write() as connection:
        claim_name(connection, "ingest-fake", "gone:1:x", now, now + timedelta(seconds=2))
    assert ingest(timed_library).status is RunStatus.SUCCESS
    assert "waiting until the last run of fake, at gone, is over" in "".join(capsys.readouterr())
    assert rows(timed_library, "SELECT 1 FROM ingestion_leases") == []


def test_dead_run_is_buried_and_a_living_one_is_not(library: Library) -> None:
    def start() -> Run:
        run = Run(
            source="fake",
            request=RunRequest(),
            database=library.database,
            clock=library.seams.clock,
        )
        run.start()
        return run

    async def bury() -> int:
        async with library.open_context() as context:
            return mark_dead_runs_failed(context)

    start()
    with lock_source(library.database, library.settings.home, "fake", library.seams.clock):
        assert asyncio.run(bury()) == 0
    assert asyncio.run(bury()) == 1
    (run,) = rows(library, "SELECT status, error_summary FROM ingestion_runs")
    assert run["status"] == "failed"
    assert "without finishing" in run["error_summary"]


def test_database_allows_exactly_the_moves_of_the_table(library: Library) -> None:
    for status, target in permutations(RunStatus, 2):
        run = Run(
            source="fake",
            request=RunRequest(),
            database=library.database,
            clock=library.seams.clock,
        )
        run.start()
        if status is not RunStatus.RUNNING:
            run.finish(status)
        if target in MOVES[status]:
            run.finish(target)
        else:
            with pytest.raises(DatabaseError, match="finished run"):
                _set_status(library, run, target)


def test_document_without_citation_is_refused_by_the_database(library: Library) -> None:
    ingest(library)
    with pytest.raises(DatabaseError), library.database.write() as connection:
        connection.execute(text("UPDATE documents SET citation_string = ''"))


def test_history_past_retention_goes_but_standing_failures_stay(
    library: Library, office: NoteOffice, clock: ManualClock
) -> None:
    office.break_note(5, b"{not json")
    ingest(library)
    clock.move(days=40)

    async def clean() -> int:
        async with library.open_context() as context:
            return drop_old_history(context)

    asyncio.run(clean())
    tasks = rows(library, "SELECT task_key FROM ingestion_tasks")
    assert tasks == [{"task_key": "fake:5"}]
    assert rows(library, "SELECT 1 FROM ingestion_logs") == []
    assert len(rows(library, "SELECT 1 FROM ingestion_runs")) == 1


def test_audit_names_what_is_missing(library: Library, office: NoteOffice) -> None:
    office.break_note(5, b"{not json")
    ingest(library)

    async def audit() -> object:
        async with library.open_context() as context:
            return await audit_source(FakeSource(), context, AuditRange())

    found = asyncio.run(audit())
    assert found.expected == 12  # type: ignore[attr-defined]
    assert found.scopes[0].missing == ("fake:5",)  # type: ignore[attr-defined]


def test_loads_ask_for_vectors_from_the_first_day(library: Library, office: NoteOffice) -> None:
    ingest(library)
    assert len(rows(library, "SELECT 1 FROM ingestion_embedding_queue")) == 12
    office.change(3, text="# Matter\n\nChanged.", title="Changed")
    ingest(library)
    queued = rows(
        library, "SELECT record_id, input_sha FROM ingestion_embedding_queue ORDER BY record_id"
    )
    assert len(queued) == 12


def test_recorded_run_replays_without_a_server_to_the_same_library(
    tmp_path: Path, library: Library, office: NoteOffice
) -> None:
    recording = tmp_path / "run.warc.gz"
    asyncio.run(library.ingest(FakeSource(), RunRequest(), record=recording))
    first = rows_of(library)
    office.server.route("/list.json", lambda _request: Response(b"", status=500))
    with note_library(
        tmp_path / "again", office.server, seams=Seams(clock=SystemClock())
    ) as replayed:
        report = asyncio.run(replayed.ingest(FakeSource(), RunRequest(), replay=recording))
        assert report.status is RunStatus.SUCCESS
        assert rows_of(replayed) == first


def _set_status(library: Library, run: Run, status: RunStatus) -> None:
    ended = None if status is RunStatus.RUNNING else library.seams.clock.now()
    mine = update(ingestion_runs).where(ingestion_runs.c.id == run.id)
    with library.database.write() as connection:
        connection.execute(mine.values(status=status, finished_at=ended))


def _standing(library: Library) -> list[dict[str, object]]:
    return rows(
        library,
        "SELECT * FROM ingestion_tasks WHERE stage = 'errored' AND resolved_at IS NULL",
    )


def test_a_full_blob_store_ends_the_run_as_failed_and_counts_no_attempt_of_a_task(
    tmp_path: Path, office: NoteOffice
) -> None:
    is_full = True

    def store(operation: str, subject: str) -> None:
        if is_full and operation.startswith("blob.") and "/notes/" in subject:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), subject)

    with note_library(tmp_path, office.server, seams=Seams(durable=store)) as library:
        with pytest.raises(StoreFullError, match="the disk is full"):
            ingest(library)
        (run,) = rows(library, "SELECT status, error_summary FROM ingestion_runs")
        assert run["status"] == "failed"
        assert "the disk is full" in run["error_summary"]
        assert rows(library, "SELECT 1 FROM ingestion_tasks WHERE stage = 'errored'") == []
        is_full = False
        assert ingest(library).counts.inserted == 12
