"""One Ray cluster of three nodes on this machine, for all tests of the room.

The suite of transports and the tests of whole instances take minutes: they run with ``SIGMA_LONG=1`` or
``SIGMA_DAILY=1``, as in ``tox -e long``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigma_operator_ray.engine import CONNECTION

WHOLE = any(map(os.environ.get, ("SIGMA_LONG", "SIGMA_DAILY")))
LONG = () if WHOLE else ("test_instance.py", "test_transport.py")
HERE = Path(__file__).parent
STORE = 120 * 2**20  # bytes


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.parent == HERE and item.path.name in LONG]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


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
