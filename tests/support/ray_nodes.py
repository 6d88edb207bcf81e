"""A Ray cluster of two nodes on loopback, kept by a process of its own.

python tests/support/ray_nodes.py HOME

SIGUSR1 kills the second node as a machine dies that is switched off, and puts a new one in its
place. SIGTERM ends the cluster.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

ADDRESS: Final = "address"
NODES: Final = "nodes"
"""Where the process writes how many nodes it has started so far."""
TRIES: Final = 3
_NODE: Final[dict[str, Any]] = {
    "num_cpus": 1,
    "node_ip_address": "127.0.0.2",
    "object_store_memory": 80 << 20,
    "include_dashboard": False,
    "dashboard_agent_listen_port": 0,  # else all clusters of this machine want the same
}
_SECOND: Final = {**_NODE, "node_ip_address": "127.0.0.3"}
_SIGNALS: Final = (signal.SIGUSR1, signal.SIGTERM)


def main(home: Path) -> None:
    """Start the nodes, leave their address in the folder, and do as signals say."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    # Where it notes the newest cluster of this machine; it makes no folder for that.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(home)}
    (home / "ray").mkdir()
    # A node that says nothing for so long is dead; nobody waits half a minute in a test.
    beats = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}
    from ray.cluster_utils import Cluster  # noqa: PLC0415 — reads these variables

    head = {**_NODE, "temp_dir": str(home), "_system_config": beats}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    _add_node(cluster)
    count = 2
    _leave(home / NODES, str(count))
    _leave(home / ADDRESS, cluster.address)
    while signal.sigwait(_SIGNALS) == signal.SIGUSR1:
        _remove_nodes(cluster)
        _add_node(cluster)
        count += 1
        _leave(home / NODES, str(count))
    cluster.shutdown()


def _add_node(cluster: Any) -> None:
    """Ray waits half a minute for a node, which is too short while the machine is very busy."""
    for _ in range(TRIES - 1):
        try:
            cluster.add_node(**_SECOND)
        except Exception:  # noqa: BLE001 — it says so by bare exceptions
            _remove_nodes(cluster)
        else:
            return
    cluster.add_node(**_SECOND)


def _remove_nodes(cluster: Any) -> None:
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node, allow_graceful=False)


def _leave(file: Path, text: str) -> None:
    making = file.with_suffix(".making")
    making.write_text(text)
    making.rename(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
