"""Striking at durable operations, and leaving a note of it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from fonds.selftest.faults import JUMP, FaultInjector, FaultLog, InjectedFault, JumpingClock


def intruder(
    folder: Path, *faults: InjectedFault, clock: JumpingClock | None = None
) -> FaultInjector:
    notes = FaultLog(folder / "notes")
    return FaultInjector(faults, notes, folder / "wal", clock or JumpingClock())


def test_operations_are_counted_step_by_step(tmp_path: Path) -> None:
    watch = intruder(tmp_path)
    watch.enter_step("feeds")
    watch("blob.put", "a")
    watch("commit", "sqlite")
    assert watch.count == 2
    watch.enter_step("code")
    assert watch.count == 0


def test_one_operation_fails_and_is_noted(tmp_path: Path) -> None:
    watch = intruder(tmp_path, InjectedFault(step="code", at=2, how="fail", errno=errno.EIO))
    for step in ("feeds", "code"):
        watch.enter_step(step)
        watch("blob.put", "a")
    with pytest.raises(OSError, match="b") as failed:
        watch("blob.rename", "b")
    assert failed.value.errno == errno.EIO
    watch("blob.put", "c")
    (note,) = FaultLog(tmp_path / "notes").read()
    assert (note["operation"], note["subject"], note["injected"]["at"]) == ("blob.rename", "b", 2)


def test_a_lasting_fault_fails_all_that_comes_after_it(tmp_path: Path) -> None:
    fault = InjectedFault(step="code", at=1, how="fail", errno=errno.ENOSPC, lasting=60)
    watch = intruder(tmp_path, fault)
    watch.enter_step("code")
    with pytest.raises(OSError, match="a"):
        watch("blob.put", "a")
    watch.enter_step("index")
    with pytest.raises(OperationalError, match="No space left"):
        watch("commit", "sqlite")
    assert len(FaultLog(tmp_path / "notes").read()) == 1


def test_the_clock_jumps_back_when_told_to(tmp_path: Path) -> None:
    clock = JumpingClock()
    watch = intruder(tmp_path, InjectedFault(step="code", at=1, how="jump"), clock=clock)
    before = clock.now()
    watch.enter_step("code")
    watch("commit", "sqlite")
    assert before - JUMP <= clock.now() < before - JUMP / 2
