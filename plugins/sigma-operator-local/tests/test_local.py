"""The local operator, with and without shards."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import every, when
from sigma_kernel.contracts import HookContext, Monitor, Operator, Program, Step, View
from sigma_kernel.errors import SigmaConfigError, SigmaWarning
from sigma_operator_local import LocalOperator
from sigma_operator_local.mergers import Sum
from sigma_store.curves import rows
from sigma_testing import (
    Do,
    MonitorSuite,
    Note,
    NullBackend,
    OperatorSuite,
    Slow,
    small_environment,
    state_bytes,
)


class TestWholeBatches(OperatorSuite):
    def make(self) -> Operator:
        return LocalOperator()


class TestShards(OperatorSuite):
    def make(self) -> Operator:
        return LocalOperator(shards=3, workers=2)


class Workers(Monitor):
    """Read each worker's loss, and the values of local hooks, until all are there; then stop the run."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.one: Any = None

    def watch(self, view: View) -> None:
        while not view.wait(0.001):
            halved = dict(view.find("trainer.workers.*.halved"))
            if len(halved) == 2 and not self.found and None not in halved.values():
                self.found = [halved, dict(view.find("trainer.workers.*.training.loss"))]
                self.one = view.get("trainer.workers.1.halved")
                view.send("stop")


class TestMonitorOfWorkers(MonitorSuite):
    def make(self) -> Monitor:
        return Workers()

    def operator(self) -> Operator:
        return LocalOperator(shards=3, workers=2)


class TestSingleIterations(OperatorSuite):
    def make(self) -> Operator:
        return LocalOperator(burst_seconds=1e-9)


def _trained(operator: Operator) -> dict[str, bytes]:
    with small_environment(operator) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
        return state_bytes(sigma.trainer("trainer"))


@pytest.mark.parametrize("shards", [2, 3, 4])
def test_any_number_of_workers_gives_the_same_bits(shards: int) -> None:
    found = [_trained(LocalOperator(shards=shards, workers=workers)) for workers in (1, 2, shards)]
    assert found[0] == found[1] == found[2]


def test_workers_without_a_shard_are_warned_of_with_the_remedy() -> None:
    with pytest.warns(SigmaWarning, match=r"3 workers share 2 parts of each batch, .* Set shards = 3"):
        LocalOperator(workers=3, shards=2)


def test_training_on_shards_equals_training_on_whole_batches() -> None:
    whole, cut = _trained(LocalOperator()), _trained(LocalOperator(shards=3))
    name = "network.layers.weights"
    np.testing.assert_allclose(np.frombuffer(whole[name], "f4"), np.frombuffer(cut[name], "f4"), rtol=1e-5)
    assert whole["random.iteration"] == cut["random.iteration"]


def test_bursts_of_any_length_give_the_same_bits() -> None:
    assert _trained(LocalOperator(burst_seconds=1e-9)) == _trained(LocalOperator(burst_seconds=10.0))


def test_there_are_at_most_as_many_shards_as_rows() -> None:
    assert _trained(LocalOperator(shards=50)) == _trained(LocalOperator(shards=5))


def test_a_local_hook_runs_once_for_each_worker_in_its_scope() -> None:
    class Local(Note):
        @property
        def reads(self) -> list[str]:
            return ["training.loss"]

        def fire(self, context: HookContext) -> None:
            self.fired.append((context.moment.iteration, context.read("training.loss")))

    hook = Local([], every=every(1, "epoch"), scope="local")
    with small_environment(LocalOperator(shards=2, workers=2), hooks={"local": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        published = sigma.trainer("trainer").session.state.published
    assert [loss for _, loss in hook.fired] == [published[f"workers.{i}.training.loss"] for i in range(2)]
    assert hook.fired[0][1] != hook.fired[1][1]


def _halved(context: HookContext) -> None:
    context.publish("halved", context.read("training.loss") / 2)


def test_values_of_local_hooks_can_be_read_under_their_worker(tmp_path: Path) -> None:
    read: list[Any] = []
    met: list[int] = []
    hooks = {
        "above": Do(does=lambda context: met.append(1), when=when("workers.*.halved", "any").above(-1.0)),
        "all": Do(does=lambda context: read.append(context.read("workers.*.halved")), reads=["workers.*.halved"]),
        "halve": Do(does=_halved, scope="local", reads=["training.loss"], writes=["halved"], priority=-1000),
        "one": Do(does=lambda context: read.append(context.read("workers.1.halved")), reads=["workers.1.halved"]),
    }
    with small_environment(LocalOperator(shards=2, workers=2), hooks=hooks) as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=2)
        losses = [sigma.get(f"trainer.workers.{worker}.training.loss") for worker in range(2)]
        halved = {f"trainer.workers.{worker}.halved": loss / 2 for worker, loss in enumerate(losses)}
        assert sigma.find("**.halved") == sigma.find("trainer.workers.*.halved") == halved
        assert sigma.get("trainer.workers.1.halved") == halved["trainer.workers.1.halved"]
        assert sigma.run_folder is not None
        kept = [*rows(sigma.run_folder, pytest.fail)]
    assert read[-2:] == [{name.removeprefix("trainer."): value for name, value in halved.items()}, losses[1] / 2]
    measured = {name: value["last"] for row in kept for name, value in row["values"].items()}
    assert [measured[f"workers.{worker}.halved"] for worker in range(2)] == list(halved.values())
    assert losses[0] != losses[1]
    assert len(met) == 2


def test_a_monitor_can_read_the_local_values_of_each_worker() -> None:
    monitor = Workers()
    hooks = {"halve": Do(does=_halved, scope="local", reads=["training.loss"], writes=["halved"])}
    with small_environment(LocalOperator(shards=2, workers=2), hooks=hooks) as sigma:
        sigma.monitors["it"] = monitor
        sigma.run()  # until the monitor has read
        last = sigma.get("trainer.workers.1.halved")
    halved, losses = monitor.found
    assert sorted(halved) == ["trainer.workers.0.halved", "trainer.workers.1.halved"]
    assert sorted(losses) == ["trainer.workers.0.training.loss", "trainer.workers.1.training.loss"]
    assert all(isinstance(value, float) for value in (*halved.values(), *losses.values(), monitor.one, last))


def test_a_global_hook_that_reads_a_local_value_without_its_scope_is_refused() -> None:
    halve = Do(does=_halved, scope="local", reads=["training.loss"], writes=["halved"])
    hooks = {"halve": halve, "one": Do(does=lambda context: None, reads=["halved"])}
    with (
        small_environment(LocalOperator(shards=2, workers=2), hooks=hooks) as sigma,
        pytest.raises(SigmaConfigError, match=r"hooks.one: reads 'halved', which nothing here publishes"),
    ):
        sigma.prepare()


def test_a_pause_waits_for_one_burst_at_most() -> None:
    with small_environment(LocalOperator(burst_seconds=0.05), hooks={"slow": Slow()}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=3)
        assert trainer.session.moment.iteration == 3


@pytest.mark.parametrize("settings", [{"workers": 0}, {"shards": 0}, {"burst_seconds": 0.0}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SigmaConfigError, match=next(iter(settings))):
        LocalOperator(**settings)  # type: ignore[arg-type]


class Watched(NullBackend):
    """Notes in which threads steps are compiled."""

    def __init__(self) -> None:
        self.threads: list[int | None] = []

    def compile(self, step: Step, in_place: bool = True) -> Program:
        self.threads.append(threading.get_ident())
        return super().compile(step, in_place)


@pytest.mark.parametrize("shards", [2, 3, 40])
def test_the_steps_of_shards_of_another_batch_size_are_compiled_in_the_thread_that_sets_it(shards: int) -> None:
    backend, began, sent = Watched(), threading.Event(), threading.Event()
    wait = Do(every=every(1, "iteration"), does=lambda context: [began.set(), sent.wait(30)])
    operator = LocalOperator(shards=shards, workers=2)
    alone = {"splits": ["training"]}  # held-out rows would be measured at the end of the epoch, by a step of their own
    with small_environment(operator, backend=backend, hooks={"wait": wait}, batch_size=1, **alone) as sigma:
        training = threading.Thread(target=sigma.run)
        training.start()
        assert began.wait(30)
        before = len(backend.threads)
        sender = threading.Thread(target=lambda: sigma.set("trainer.batch_size", 9))  # 23 rows: the last batch has 5
        sender.start()
        sent.set()
        sender.join(30)
        while sigma.get("trainer.data.batch_size") != 9:  # from the next epoch on
            assert training.is_alive()
            time.sleep(0.001)
        sigma.stop()
        training.join(30)
    assert {*backend.threads[before:]} == ({sender.ident} if shards < 9 else set())  # of single rows, it is known


def test_another_merger_takes_part_in_the_result() -> None:
    class Louder(Sum):
        def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
            return 2.0 * super().merge(parts, weights, address)

    assert _trained(LocalOperator(shards=2)) != _trained(LocalOperator(shards=2, merger=Louder()))
