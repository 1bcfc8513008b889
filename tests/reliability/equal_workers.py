"""Train networks by 1, 2, 3, 4 and 8 workers of each operator; compare the parameters with those without workers.

python tests/reliability/equal_workers.py [processes] [ray]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from attrs import evolve

from sigma_kernel.contracts import GroupOperator
from sigma_operator_processes import ProcessesOperator
from sigma_run import config
from sigma_testing.transports.training import CASES, write_case

SHARDS = 8
WORKERS = (1, 2, 3, 4, 8)
STORE = 120 * 2**20  # bytes


@contextmanager
def processes() -> Iterator[GroupOperator]:
    """Yield the operator `processes`."""
    yield ProcessesOperator()


@contextmanager
def ray() -> Iterator[GroupOperator]:
    """Yield the operator `ray` on a cluster of three nodes of this machine."""
    from ray.cluster_utils import Cluster

    from sigma_operator_ray import RayOperator

    head = {"num_cpus": 3, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=3, object_store_memory=STORE)
        yield RayOperator(address=cluster.address)
    finally:
        cluster.shutdown()


OPERATORS = {"processes": processes, "ray": ray}


def train(case: str, operator: GroupOperator | None, workers: int = 1) -> str | None:
    """Return the hash of the parameters; without an operator, those of `local`."""
    with config.build(config.load(write_case(case, "numpy", SHARDS))) as environment:
        if operator is not None:
            environment.trainer("trainer").operator = evolve(operator, workers=workers, shards=SHARDS)
        return environment.run(progress=False).parameters_sha256


def compare(names: list[str]) -> tuple[int, int]:
    """Print a line for each case and operator; return how many runs had the same parameters, of how many."""
    equal = count = 0
    wanted = {case: train(case, None) for case in CASES}
    for name in names:
        with ExitStack() as stack:
            operator = stack.enter_context(OPERATORS[name]())
            for case in CASES:
                same = [train(case, operator, workers) == wanted[case] for workers in WORKERS]
                equal, count = equal + sum(same), count + len(same)
                print(f"{name}, {case}: {sum(same)} of {len(same)} equal", flush=True)
    return equal, count


if __name__ == "__main__":
    equal, count = compare(sys.argv[1:] or [*OPERATORS])
    print(f"{equal} of {count} equal")
    sys.exit(equal < count)
