"""A cluster that loses machines and gets others: every item has its result, and nobody is told."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ray_cluster import PROCESSORS, RayCluster, own_cluster
from tests.unit.engine import chores

from fonds.engine.base import Engine
from fonds.engine.opening import open_engine
from fonds.engine.ray import TRIES
from fonds.errors import SettingsError, WorkerDiedError

pytestmark = pytest.mark.long

ITEMS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with own_cluster("lost") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def engine(cluster: RayCluster) -> Iterator[Engine]:
    with open_engine(cluster.address, memory_mib=512, seconds=60) as engine:
        yield engine


def test_items_of_a_lost_node_are_given_to_others_and_the_next_node_is_used(
    cluster: RayCluster, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    results = []
    for outcome in engine.run(chores.double_slowly, range(ITEMS)):
        results.append(outcome.unwrap())
        if len(results) == 4:
            cluster.replace_node()
    assert sorted(results) == [2 * number for number in range(ITEMS)]
    cluster.await_nodes(3)
    while engine.workers < PROCESSORS:
        list(engine.run(chores.double, [1]))
    assert capfd.readouterr().out == ""


def test_an_item_that_takes_every_node_with_it_is_given_up(engine: Engine, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    outcomes = {o.index: o for o in engine.run(chores.end_the_node, [str(tried)])}
    assert isinstance(outcomes[0].error, WorkerDiedError)
    assert len(tried.read_text()) == TRIES


def test_a_process_joins_one_cluster(engine: Engine) -> None:
    assert engine.workers
    with pytest.raises(SettingsError, match="already works with the cluster"):
        open_engine("ray")


def test_a_process_that_joins_a_cluster_is_still_asked_to_end_in_its_own_way(
    engine: Engine,
) -> None:
    assert engine.workers
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
