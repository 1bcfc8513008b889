"""Whole trainers on a cluster, against the bits of `local`; workers that are killed meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel import Environment, SigmaConfigError
from sigma_kernel.contracts import GroupOperator, StartOrder
from sigma_operator_ray import RayOperator, transport as transport_module
from sigma_operator_ray.engine import ActorOptions, end_actor
from sigma_operator_ray.transport import RayTransport
from sigma_run import config
from sigma_testing import GroupTrainingSuite
from sigma_testing.transports.driving import read_events, remember_transports
from sigma_testing.transports.toy import ToyBlueprint

PATIENCE = 100.0
TEXT = """
format = 1
[run]
name = "small"
seed = 3
backend = "numpy"
[data]
dataset = "{data}"
batch_size = {batch}
[network]
architecture = '{network}'
[trainer]
epochs = {epochs}
operator = {{ type = "local", shards = 4 }}
[trainer.optimiser]
type = "adam"
"""
IRIS = {
    "data": "iris", "batch": 37, "epochs": 3,
    "network": 'input(4) + dense(8, activation="tanh") + output(3) + softmax_cross_entropy()',
}  # fmt: skip
DIGITS = {
    "data": "digits", "batch": 100, "epochs": 8,
    "network": 'input(8, 8) + flatten() + dense(200, activation="relu") + dropout(0.2) + output(10)'
    " + softmax_cross_entropy()",
}  # fmt: skip
CASES = {"iris": IRIS, "digits": DIGITS}


def build(case: str, operator: RayOperator | None = None, folder: Path | None = None) -> Environment:
    environment = config.build(config.load(TEXT.format(**CASES[case])), folder=folder)
    if operator is not None:
        environment.trainer("trainer").operator = operator
    return environment


def train(case: str, operator: RayOperator | None = None) -> str | None:
    with build(case, operator) as environment:
        return environment.run(progress=False).parameters_sha256


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


def find_process(actor: Any) -> int:
    import ray

    return int(ray.get(actor.__ray_call__.remote(lambda worker: os.getpid())))


class TestTraining(GroupTrainingSuite):
    backend = "numpy"

    @pytest.fixture(autouse=True)
    def _connect(self, address: str) -> None:
        self.address = address

    def make(self) -> GroupOperator:
        return RayOperator(address=self.address, cpus=0.5)


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[RayTransport]:
    """The transports that are made meanwhile."""
    return remember_transports(RayOperator, monkeypatch)


def test_workers_that_are_killed_change_no_bits(
    address: str, transports: list[RayTransport], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    operator = RayOperator(address=address, cpus=0.5, shards=4, workers=3, burst_seconds=0.02)
    with build("digits", operator, tmp_path) as environment:
        handle = environment.run_async(progress=False)
        until(lambda: environment.get("trainer.iteration") > 10)
        transport = transports[0]
        end_actor(transport.actors[1])
        until(lambda: 3 in transport.actors and 1 not in transport.actors)  # another one is started
        os.kill(find_process(transport.actors[0]), signal.SIGKILL)
        assert handle.wait(PATIENCE)
        assert handle.result().parameters_sha256 == train("digits")
        lost = read_events(environment.run_folder, "lost")
    assert [(row["worker"], row["text"]) for row in lost] == [
        (1, "it was ended by ray.kill"),
        (0, "its process has ended without a word, as by SIGKILL"),
    ]
    assert "raylet" not in capfd.readouterr().out


def test_what_ray_says_of_workers_is_not_printed_by_a_connection_of_ours(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from ray._private.worker import print_to_stdstream

    message = {"lines": ["(raylet) A worker died."], "pid": "raylet", "is_err": False}
    print_to_stdstream(message, ignore_prefix=False)
    assert capsys.readouterr().out == ""


def test_a_cluster_without_room_for_the_least_workers_is_refused(address: str) -> None:
    with pytest.raises(
        SigmaConfigError, match=r"at least 2 workers need 200 CPUs, and the cluster has 8. Lower at_least"
    ):
        train("iris", RayOperator(address=address, cpus=100.0, shards=4, workers=3, at_least=2))
    with pytest.raises(SigmaConfigError, match=r"need 1 GPUs, and the cluster has 0"):
        train("iris", RayOperator(address=address, gpus=1.0))


@pytest.mark.parametrize("install", [False, True])
def test_plugins_are_installed_on_request(
    install: bool, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = list[list[str]]()

    def remember(kind: type, options: ActorOptions, number: int, *given: Any) -> None:
        packages.append([*options.packages])
        raise KeyError

    monkeypatch.setattr(transport_module, "start_actor", remember)
    monkeypatch.setattr(ToyBlueprint, "plugins", {"sigma-layers": "0.1.0", "sigma-data": "0.2.0"})
    transport = RayOperator(address=address, install=install).connect()
    transport.start(ToyBlueprint(str(tmp_path)), 1)
    with pytest.raises(KeyError):
        transport.send([StartOrder(0)])
    transport.close()
    transport.close()
    assert packages == [["sigma-layers==0.1.0", "sigma-data==0.2.0"] if install else []]


def test_what_cannot_be_pickled_is_refused_before_anything_starts() -> None:
    transport = RayOperator(address="nowhere").connect()
    with pytest.raises(SigmaConfigError, match=r"what is trained cannot be sent to workers.*Define its classes"):
        transport.start(lambda: 0, 1)  # type: ignore[arg-type]
    transport.close()
