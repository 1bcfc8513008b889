"""Where workers are placed on a cluster of three nodes, of 2, 3 and 3 processors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from sigma_kernel.contracts import GroupEvent, PingOrder, StartOrder, WorkerFailed, WorkerLost
from sigma_operator_ray import RayOperator, placement
from sigma_operator_ray.engine import PENDING, call, end_actor, wait_for
from sigma_operator_ray.transport import RayTransport
from sigma_testing.transports.toy import ToyBlueprint

PATIENCE = 60.0
RUNNING = list[RayTransport]()


@contextmanager
def start(operator: RayOperator, folder: Path) -> Iterator[RayTransport]:
    transport = operator.connect()
    transport.start(ToyBlueprint(str(folder)), operator.workers)
    RUNNING.append(transport)
    try:
        transport.send([StartOrder(worker) for worker in range(operator.workers)])
        yield transport
    finally:
        RUNNING.remove(transport)
        transport.close()


def ping_workers() -> None:
    """Keep all workers, which end if they hear nothing for 5 s."""
    for transport in RUNNING:
        transport.send([PingOrder(worker) for worker in transport.actors])


def find_node(transport: RayTransport, worker: int) -> str:
    """Return the node of a worker, once it has been placed."""
    reference, deadline = call(transport.actors[worker], "locate"), time.monotonic() + PATIENCE
    while (place := wait_for(reference, 0.2)) is PENDING:
        assert time.monotonic() < deadline, "waited too long"
        ping_workers()
    return str(place[0])


def until(transport: RayTransport, holds: Callable[[list[GroupEvent]], bool]) -> list[GroupEvent]:
    events, deadline = list[GroupEvent](), time.monotonic() + PATIENCE
    while not holds(events):
        assert time.monotonic() < deadline, "waited too long"
        ping_workers()
        events += transport.events(0.1)
    return events


def free_processors() -> float:
    import ray

    return float(ray.available_resources().get("CPU", 0.0))


def wait_for_processors() -> None:
    deadline = time.monotonic() + PATIENCE
    while free_processors() < 8.0:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


@pytest.fixture
def operator(address: str) -> RayOperator:
    return RayOperator(address=address, workers=3, shards=3, at_least=3)


def test_workers_are_packed_or_spread_and_a_lost_one_is_replaced_in_its_place(
    operator: RayOperator, tmp_path: Path
) -> None:
    with start(operator, tmp_path) as transport:
        assert len({find_node(transport, worker) for worker in range(3)}) == 1
    wait_for_processors()
    with start(evolve(operator, placement="spread"), tmp_path) as transport:
        nodes = [find_node(transport, worker) for worker in range(3)]
        assert len({*nodes}) == 3
        end_actor(transport.actors[1])
        until(transport, lambda events: any(isinstance(event, WorkerLost) for event in events))
        transport.send([StartOrder(3)])
        assert find_node(transport, 3) == nodes[1]
        transport.send([StartOrder(4)])  # beyond those that are reserved together
        find_node(transport, 4)
    wait_for_processors()  # all are given back


def test_a_full_cluster_is_waited_for_and_that_is_said(
    operator: RayOperator, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SAY_AFTER", 0.2)
    with start(evolve(operator, workers=7, shards=7, at_least=7), tmp_path) as others:
        find_node(others, 6)
        with start(evolve(operator, place_within=0.5), tmp_path) as transport:
            [failure, *_] = until(transport, bool)
            assert isinstance(failure, WorkerFailed)
            assert failure.traceback == (
                "operator 'ray': the cluster has no room yet for what at_least = 3 reserves together: 3 CPU. It has"
                " waited for 0.5 s. Lower at_least, cpus or gpus, raise place_within, or add nodes."
            )
        capsys.readouterr()
        with start(operator, tmp_path) as transport:
            until(transport, lambda events: "It waits up to 600 s" in capsys.readouterr().err)
            others.close()
            assert {find_node(transport, worker) for worker in range(3)}


def test_a_run_that_has_its_places_goes_on_beyond_the_time_for_them(
    operator: RayOperator, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SAY_AFTER", 0.1)
    with start(evolve(operator, place_within=0.5), tmp_path) as transport:
        assert find_node(transport, 2)
        time.sleep(0.6)
        ping_workers()
        events = [event for _ in range(5) for event in transport.events(0.1)]
    assert not [event for event in events if isinstance(event, (WorkerFailed, WorkerLost))]
    assert "no room" not in capsys.readouterr().err


def test_workers_that_reserve_nothing_have_no_group(operator: RayOperator, tmp_path: Path) -> None:
    wait_for_processors()
    with start(evolve(operator, cpus=0.0), tmp_path) as transport:
        assert find_node(transport, 2)
        assert free_processors() == 8.0
