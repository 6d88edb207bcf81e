"""The simulation finds bugs: each of these was put in on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, update

from fonds.model import Watermark
from fonds.runs import load
from fonds.runs.locks import LeaseLock
from fonds.runs.state import Run
from fonds.shards import compiler, manifest
from fonds.shards.compiler import Locks, ShardLock
from fonds.shards.inbox import forget
from fonds.shards.index import Index
from fonds.stores.tables import upload_jobs
from fonds.uploads import jobs, worker
from fonds.uploads.jobs import claim
from tests.simulation.seeds import Outcome, run_seed

SOON = 200


def _first_failure(subject: str) -> Outcome:
    for seed in range(SOON):
        outcome = run_seed(subject, seed)
        if outcome.error is not None:
            return outcome
    pytest.fail(f"no seed of {subject} up to {SOON} finds it")


def _hurried_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watermarks are written before the tasks that they cover."""
    write = load.BatchWriter.write

    def hurried(self: load.BatchWriter, entries: Sequence[load.Entry]) -> None:
        marks = [entry for entry in entries if isinstance(entry, Watermark)]
        write(self, marks)
        write(self, [entry for entry in entries if not isinstance(entry, Watermark)])

    monkeypatch.setattr(load.BatchWriter, "write", hurried)


def _unconfirmed_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lost the lease of a source writes all the same."""
    monkeypatch.setattr(LeaseLock, "confirm", lambda _self, _connection: None)


def _silent_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are counted, and not recorded."""
    monkeypatch.setattr(load, "record_failures", lambda *_, **__: None)


def _counts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are not written with the rows that they count."""
    save = Run.save
    monkeypatch.setattr(Run, "save", lambda self, connection, _more=None: save(self, connection))


def _emptied_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records leave the inbox before the shard that holds them is written."""
    compile_shard = compiler._Compilation.compile

    def hasty(self: compiler._Compilation, shard: str, paths: Sequence[str]) -> compiler.Compiled:
        items, _ = self._read_items(paths)
        for item in items:
            forget(self.index, item)
        with monkeypatch.context() as patch:
            patch.setattr(compiler._Compilation, "_read_items", lambda *_: (items, []))
            return compile_shard(self, shard, paths)

    monkeypatch.setattr(compiler._Compilation, "compile", hasty)


def _blind_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler overwrites whatever stands where its shard goes."""

    def blind(index: Index, shard: str, data: bytes, **_: Any) -> None:
        index.blobs.put(index.layout.shard(shard), data)
        entry = manifest.ManifestEntry(manifest.entry_of(data), None)
        noted = manifest.read_entry(index, shard)
        manifest.write_entry(index, shard, entry, after=noted)

    monkeypatch.setattr(compiler, "write_shard", blind)
    monkeypatch.setattr(
        Locks, "take", lambda self, shard: ShardLock(self.index.layout.lock(shard), "mine")
    )


def _ignored_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker moves a job without checking its lease and its status."""

    def anyhow(columns: frozenset[str], *, is_claimed: bool) -> Any:  # noqa: ARG001 — the bug
        job = upload_jobs.c
        values = {name: bindparam(f"new_{name}", type_=job[name].type) for name in columns}
        return update(upload_jobs).where(job.job_id == bindparam("of")).values(values)

    monkeypatch.setattr(jobs, "_update", anyhow)


def _eternal_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose worker died is never taken over."""

    def for_good(connection: Connection, owner: str, now: datetime, _lease: timedelta) -> Any:
        return claim(connection, owner, now, timedelta(days=365))

    monkeypatch.setattr(worker, "claim", for_good)
    monkeypatch.setattr(worker, "renew", lambda *_: None)


@pytest.mark.parametrize(
    ("subject", "break_it", "told"),
    [
        ("runner", _hurried_watermark, "the watermark"),
        ("runner", _unconfirmed_claim, "a run that had ended was changed"),
        ("runner", _silent_failures, "no failure stands"),
        ("runner", _counts_apart, "are counted, and"),
        ("shards", _emptied_inbox, "is lost"),
        ("shards", _blind_writes, "is lost|found damage"),
        ("jobs", _ignored_lease, "moved .* held"),
        ("jobs", _eternal_lease, "though nothing goes wrong"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_bug_is_found(
    subject: str,
    break_it: Callable[[pytest.MonkeyPatch], None],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    assert re.search(told, str(_first_failure(subject).error))
