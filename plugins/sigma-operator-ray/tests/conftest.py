"""One Ray cluster of three nodes on this machine, for all tests of the room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sigma_operator_ray.engine import CONNECTION

STORE = 120 * 2**20  # bytes


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a cluster, to which this process is connected."""
    from ray.cluster_utils import Cluster

    settings = {"worker_niceness": 0, "kill_worker_timeout_milliseconds": 300}
    head = {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False, "_system_config": settings}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=3, object_store_memory=STORE)
        CONNECTION.open(cluster.address, 0)
        yield cluster.address
        CONNECTION.close()
    finally:
        cluster.shutdown()
