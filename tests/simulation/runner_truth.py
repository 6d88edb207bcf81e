"""What must always hold of a library that runs fill, and what it must be in the end."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from fonds.runs.discover import discovery_key
from fonds.runs.state import MOVES, TAKEN_OVER, RunReport, RunRequest, RunStatus
from fonds.selftest.state import HISTORY
from tests.simulation.database import SeededDatabase
from tests.simulation.office import NUMBERS, VERSIONS, Office, written
from tests.simulation.scheduler import ViolationError
from tests.simulation.store import SeededBlobs

_COUNTED: Final = ("inserted", "updated", "skipped", "error", "gone", "discovered", "fetched")


class RunnerTruth:
    """Looks at the file after each commit, past everybody who works with it."""

    def __init__(self, database: SeededDatabase, office: Office, blobs: SeededBlobs) -> None:
        self._database = database
        self._office = office
        self._blobs = blobs
        self._runs: dict[str, Any] = {}
        self._versions = {
            number: {written(number, version)["text"]: version for version in range(VERSIONS + 1)}
            for number in range(1, NUMBERS + 1)
        }

    # At any moment ------------------------------------------------------------------------

    def check(self) -> None:
        """Nothing lies."""
        self._check_runs()
        held = self._check_documents()
        self._check_watermark(held)

    def _check_runs(self) -> None:
        rows = self._database.rows(
            "SELECT id, status, finished_at, error_summary, inserted_count, error_count,"
            " updated_count, skipped_count, gone_count, discovered_count, fetched_count"
            " FROM ingestion_runs"
        )
        for row in rows:
            before = self._runs.get(row[0])
            if before is None or before == row:
                continue
            if before[1] != row[1] and RunStatus(row[1]) not in MOVES[RunStatus(before[1])]:
                raise ViolationError(f"an illegal move: {before} to {row}")
            if before[1] != RunStatus.RUNNING:
                raise ViolationError(f"a run that had ended was changed: {before} to {row}")
        self._runs = {row[0]: row for row in rows}
        going_on = [row for row in rows if row[1] == RunStatus.RUNNING]
        if len(going_on) > 1:
            raise ViolationError(f"two runs go on at once: {going_on}")
        if self._database.has_lost_answers:
            return  # a batch of which nobody knows that it is there is counted when it is repeated
        counted = sum(row[4] for row in rows)
        ((made,),) = self._database.rows("SELECT count(*) FROM documents")
        if counted != made:
            raise ViolationError(f"{counted} documents are counted, and {made} are there")

    def _check_documents(self) -> dict[int, int]:
        """Every document is a version of its note, and its bytes are where it says."""
        rows = self._database.rows(
            "SELECT d.id, d.title, d.body_text, d.raw_path, d.raw_sha256, d.citation_string,"
            " n.number, (SELECT group_concat(tag) FROM"
            " (SELECT tag FROM fake_note_tags WHERE note_id = d.id ORDER BY ord)),"
            " (SELECT count(*) FROM document_chunk_buffer c WHERE c.document_id = d.uid),"
            " (SELECT count(*) FROM document_versions v WHERE v.document_id = d.id)"
            " FROM documents d LEFT JOIN fake_notes n ON n.id = d.id"
        )
        held = {}
        for key, title, text, path, sha256, citation, number, tags, chunks, versions in rows:
            if number is None or text not in self._versions[number]:
                raise ViolationError(f"{key} reads as no version of its note: {text!r}")
            version = self._versions[number][text]
            note = written(number, version)
            if (title, tags) != (note["title"], ",".join(note["tags"]) or None):
                raise ViolationError(f"{key} mixes two versions: {title}, {tags}, {text!r}")
            stored = self._blobs.objects.get(path)
            if stored is None or hashlib.sha256(stored.data).hexdigest() != sha256:
                raise ViolationError(f"the bytes of {key} are not at {path}")
            if not citation or not chunks or not versions:
                raise ViolationError(f"{key} lacks its citation, passages or versions")
            held[number] = version
        return held

    def _check_watermark(self, held: dict[int, int]) -> None:
        """What the watermark has passed is loaded, or its failure stands."""
        for (mark,) in self._database.rows("SELECT last_seen_key FROM ingestion_source_state"):
            if mark is None:
                continue
            standing = self._standing()
            for number, version in self._office.editions[int(mark)].items():
                if held.get(number, 0) < version and f"fake:{number}" not in standing:
                    raise ViolationError(
                        f"the watermark {mark} has passed note {number}.{version}, which is not"
                        " loaded, and of which no failure stands"
                    )

    def _standing(self) -> set[str]:
        rows = self._database.rows(
            "SELECT task_key FROM ingestion_tasks WHERE stage = 'errored' AND resolved_at IS NULL"
        )
        return {key for (key,) in rows}

    # When a run has ended -----------------------------------------------------------------

    def check_report(self, report: RunReport) -> None:
        """What a run tells of itself stands in its row, and adds up."""
        assert report.run_id is not None
        if report.error_summary == TAKEN_OVER and report.status is RunStatus.FAILED:
            return  # what stands there is what is known of a run that has lost its claim
        columns = ", ".join(f"{name}_count" for name in _COUNTED)
        rows = self._database.rows(
            f"SELECT status, {columns} FROM ingestion_runs WHERE id = '{report.run_id}'"
        )
        told = (report.status.value, *(getattr(report.counts, name) for name in _COUNTED))
        if [tuple(row) for row in rows] != [told]:
            raise ViolationError(f"the report says {told}, and the row {rows}")
        ((failed,),) = self._database.rows(
            "SELECT count(*) FROM ingestion_tasks WHERE stage = 'errored'"
            f" AND run_id = '{report.run_id}'"
        )
        if bool(failed) != bool(report.counts.error):
            raise ViolationError(
                f"{report.counts.error} errors are counted, and {failed} are there"
            )

    # In the end ---------------------------------------------------------------------------

    def lacks_a_range(self) -> bool:
        """Whether a backfill is to be asked for again: no other run makes its failure good."""
        return discovery_key(RunRequest(mode="backfill")) in self._standing()

    def check_rest(self) -> None:
        """The library is what the office publishes, and no more is open than can be."""
        self.check()
        rows = self._database.rows(
            "SELECT n.number, d.body_text FROM documents d JOIN fake_notes n ON n.id = d.id"
            " WHERE d.gone_at IS NULL"
        )
        held = {number: self._versions[number][text] for number, text in rows}
        if held != self._office.current:
            raise ViolationError(f"the library has {held}, the office {self._office.current}")
        listed = {f"fake:{number}" for number in held}
        if wrong := [key for key in self._standing() if key in listed or key[:5] != "fake:"]:
            raise ViolationError(f"failures stand of what is loaded: {wrong}")
        ((found, stored),) = self._database.rows(
            "SELECT (SELECT count(*) FROM chunk_index_docsize),"
            " (SELECT count(*) FROM document_chunk_buffer)"
        )
        if found != stored:
            raise ViolationError(f"{found} passages can be found, and {stored} are there")

    def everything(self) -> dict[str, list[Any]]:
        """All rows that are not the history of runs."""
        names = self._database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: self._database.rows(f'SELECT * FROM "{name}"')
            for (name,) in names
            if name not in HISTORY and not name.startswith(("chunk_index", "sqlite_"))
        }
