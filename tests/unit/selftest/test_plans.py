"""Where libraries are struck: decided by a seed, and by what an undisturbed one did."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from fonds.errors import UsageError
from fonds.selftest.cases import (
    MAX_KILLS,
    MAX_KILLS_BY_STEP,
    all_faults,
    all_operations,
    lineages,
    plan,
)
from fonds.selftest.report import describe, select_cases
from fonds.selftest.scratch import ProcessRun
from fonds.stores.leases import MAX_ATTEMPTS
from fonds.uploads.worker import MAX_TAKEOVERS

OPERATIONS = {"open": 1, "feeds": 600, "code": 18, "worker": 13, "index": 122, "vectors": 0}


@pytest.mark.parametrize("seed", range(20))
def test_every_planned_kill_is_at_an_operation_that_there_is(seed: int) -> None:
    for fault in plan(random.Random(seed), OPERATIONS):
        assert 1 <= fault.at <= OPERATIONS[fault.step]


def test_all_of_a_step_is_in_danger() -> None:
    faults = [fault for seed in range(400) for fault in plan(random.Random(seed), OPERATIONS)]
    at = Counter(fault.at for fault in faults if fault.step == "code")
    assert set(at) == set(range(1, 19))
    moments = Counter(fault.delay is None for fault in faults)
    assert min(moments.values()) > len(faults) / 3


def test_no_step_is_killed_so_often_that_its_work_is_given_up() -> None:
    assert max(
        MAX_KILLS, *(n for step, n in MAX_KILLS_BY_STEP.items() if step != "feeds"), 0
    ) < min(MAX_ATTEMPTS, MAX_TAKEOVERS)


@pytest.mark.parametrize("kills", [1, 20, 137])
def test_lineages_have_as_many_kills_as_are_wanted(kills: int) -> None:
    cases = list(lineages(kills, 5, OPERATIONS))
    assert sum(int(case.replay.split()[1]) for case in cases) == kills
    assert len({case.name for case in cases}) == len(cases)


def test_a_lineage_is_replayed_by_the_command_it_names() -> None:
    third = list(islice(lineages(100, 5, OPERATIONS), 3))[2]
    _, kills, _, seed = third.replay.split()
    (again,) = lineages(int(kills), int(seed), OPERATIONS)
    assert again.name == third.name
    assert again.run.keywords == third.run.keywords  # type: ignore[attr-defined]  # a partial


def test_every_operation_is_killed_once_and_failed_once() -> None:
    names = [case.name for case in all_operations({"open": 1, "code": 2})]
    assert sorted(names) == [
        "fail code 1",
        "fail code 2",
        "fail open 1",
        "kill code 1",
        "kill code 2",
        "kill open 1",
    ]


def test_a_sample_of_operations_follows_from_its_seed() -> None:
    names = [case.name for case in all_operations(OPERATIONS, sample=7, seed=3)]
    assert len(names) == 14
    assert names == [case.name for case in all_operations(OPERATIONS, sample=7, seed=3)]
    assert names != [case.name for case in all_operations(OPERATIONS, sample=7, seed=4)]


def test_cases_are_chosen_by_their_names_or_the_words_these_begin_with() -> None:
    cases = all_operations({"code": 12, "index": 3})
    assert [case.name for case in select_cases(cases, ["kill code 1"])] == ["kill code 1"]
    several = select_cases(cases, ["fail index", "fail index 2", "kill code 12"])
    assert [case.name for case in several] == [
        "fail index 1",
        "fail index 2",
        "fail index 3",
        "kill code 12",
    ]


def test_a_case_that_is_not_there_is_refused_with_some_that_are() -> None:
    with pytest.raises(UsageError, match="no case 'kill feeds 1'; some are: kill code 1, fail"):
        select_cases(all_operations({"code": 12}), ["kill feeds 1"])


def test_what_happened_to_a_process_is_told_with_what_it_said() -> None:
    fault = {"step": "code", "at": 3, "how": "fail", "delay": None}
    injected = {"injected": fault, "operation": "blob.put", "subject": "a.zip"}
    run = ProcessRun(
        code=3, ended={}, injected=injected, errors=["usc ended as failed", "and more"]
    )
    assert describe(run) == (
        "fail blob.put a.zip, number 3 of code; errors: usc ended as failed; and more"
    )
    assert describe(ProcessRun(code=0, ended={}, injected=None, errors=[])) == "ended with code 0"


def test_faults_have_names_of_their_own() -> None:
    names = [case.name for case in all_faults(8, OPERATIONS, rounds=3)]
    assert len(set(names)) == len(names) == 4 + 6 * 3
