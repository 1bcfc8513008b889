"""Averaging: each shard trains a replica, with slots of its own, and replicas are averaged at the end of each round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

import sigma_ml as sm
from sigma_kernel import Environment, SigmaAddressError, SigmaConfigError, SigmaTrainingError, every, functions as f
from sigma_kernel.contracts import Slot
from sigma_operator_local import LocalOperator
from sigma_operator_processes import ProcessesOperator
from sigma_optimisers import Momentum
from sigma_testing import Do
from sigma_testing.transports.threads import ThreadOperator, kill_at_random
from sigma_training.group.merging import LocalExchange
from sigma_training.session.progress import Phase

TEXT = """format = 1
[run]
name = "averaged"
seed = 4
[data]
dataset = "iris"
batch_size = 18
[network]
architecture = '''
input(4) + dense(6, activation="tanh") + dropout(0.2) + batch_norm() + output(3) + softmax_cross_entropy()
'''
[trainer]
epochs = 6
metrics = { top = "accuracy" }
[trainer.optimiser]
type = "adam"
learning_rate = 0.02
[trainer.optimiser.schedules.learning_rate]
type = "cosine"
total = "6 epochs"
"""


def environment(operator: Any, *sets: str, folder: Path | None = None) -> Environment:
    sigma = sm.from_file(TEXT, *sets, folder=folder)
    sigma.trainer("trainer").operator = operator
    return sigma


def local(**settings: Any) -> LocalOperator:
    return LocalOperator(**{"shards": 3, "mode": "averaging", "every": 3, **settings})


def threads(**settings: Any) -> ThreadOperator:
    return ThreadOperator(**{"shards": 3, "mode": "averaging", "every": 3, **settings})


def train(operator: Any, *sets: str) -> tuple[str | None, dict[str, Any]]:
    sigma = environment(operator, *sets)
    summary = sigma.run(progress=False)
    return summary.parameters_sha256, {n: x for n, x in summary.metrics.items() if n.startswith("training.")}


# -- against NumPy -----------------------------------------------------------------------------------------------------
ROWS, BATCH, EVERY, RATE, MOMENTUM = 50, 12, 2, 0.1, 0.9  # the last batch has 2 rows, fewer than shards
DRAW = np.random.default_rng(3)
INPUTS = DRAW.normal(size=(ROWS, 3)).astype("float64")
TARGETS = DRAW.normal(size=(ROWS, 1)).astype("float64")


def federated(start: np.ndarray, shards: int, epochs: int) -> np.ndarray:
    """Return the weights of a linear model after federated averaging of weights and velocities."""
    weights, velocity = start.copy(), np.zeros_like(start)
    batches = [range(first, min(first + BATCH, ROWS)) for first in range(0, ROWS, BATCH)]
    rounds = [batches[:2], batches[2:4], batches[4:]]
    for rows_of_round in rounds * epochs:
        ends = []
        for number in range(min(shards, len(rows_of_round[0]))):
            own, speed = weights.copy(), velocity.copy()
            for rows in rows_of_round:
                part = np.array_split(np.array(rows), min(shards, len(rows)))[number]
                slope = 2 * INPUTS[part].T @ (INPUTS[part] @ own - TARGETS[part]) / len(part)
                speed = MOMENTUM * speed - RATE * slope
                own += speed
            ends.append((len(part) / len(rows), own, speed))
        weights = sum(share * own for share, own, _ in ends)
        velocity = sum(share * speed for share, _, speed in ends)
    return weights


@pytest.mark.parametrize("shards", [2, 5])
def test_replicas_are_averaged_as_in_numpy(shards: int) -> None:
    sigma = Environment("linear", seed=1)
    trainer = sigma.create_trainer(
        "trainer", data=(INPUTS, TARGETS), network="input(3) + output(1, bias=false) + squared_difference()",
        optimiser={"type": "momentum", "learning_rate": RATE, "momentum": MOMENTUM}, batch_size=BATCH,
        iterator="sequential", precision="float64", operator=local(shards=shards, every=EVERY, workers=2),
    )  # fmt: skip
    start = trainer.session.host("network.layers.1-output.weights")
    trainer.fit(epochs=3, progress=False)
    found = trainer.session.host("network.layers.1-output.weights")
    np.testing.assert_allclose(found, federated(start, shards, 3), rtol=1e-9)


# -- who computes ------------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_bits_do_not_depend_on_workers_operators_or_bursts() -> None:
    wanted = train(local())
    operators = [local(workers=2, burst_seconds=1e-9), threads(), threads(workers=3), ProcessesOperator(
        shards=3, workers=2, mode="averaging", every=3
    )]  # fmt: skip
    assert [train(operator) for operator in operators] == [wanted] * 4
    others = [train(LocalOperator(shards=3)), train(local(every=4)), train(local(shards=2))]
    assert len({bits for bits, _ in (wanted, *others)}) == 4


@pytest.mark.parametrize("sets", [["run.precision=mixed"], ["run.precision=float64"], ["data.batch_size=37"]])
def test_precisions_and_remainders_have_the_bits_of_local(sets: list[str]) -> None:
    assert train(threads(workers=2), *sets) == train(local(), *sets)


@pytest.mark.long
def test_deaths_change_no_bits_and_a_replay_needs_no_workers(tmp_path: Path) -> None:
    sets = ["trainer.epochs=25"]
    wanted, _ = train(local(), *sets)
    operator = threads(workers=3, burst_seconds=0.005)
    sigma = environment(operator, *sets, folder=tmp_path)
    with kill_at_random(operator, 2, 0.5) as killed:
        assert sigma.run(progress=False).parameters_sha256 == wanted
    assert killed
    summary, differences = environment(threads(), *sets).replay(sigma.run_folder, progress=False)
    assert (summary.parameters_sha256, differences) == (wanted, {})


@pytest.mark.parametrize("operator", [local(), threads(workers=2)], ids=["local", "threads"])
def test_a_run_that_was_stopped_within_an_epoch_is_resumed_to_the_same_bits(operator: Any, tmp_path: Path) -> None:
    wanted, _ = train(local())
    sigma = environment(operator, folder=tmp_path)
    trainer = sigma.trainer("trainer")
    stop = Do(does=lambda context: context.command("stop"), every=every(11, "iteration"), ends=True)
    trainer.hooks = {**trainer.hooks, "halt": stop}
    assert sigma.run(progress=False).iterations == 13  # 11 is within the second round of the second epoch
    later = environment(local())
    later.resume(sigma.run_folder)
    assert later.run(progress=False).parameters_sha256 == wanted


# -- rounds ------------------------------------------------------------------------------------------------------------
def test_hooks_and_goals_act_at_the_ends_of_rounds() -> None:
    seen: list[int] = []
    length = environment(local()).trainer("trainer").session.setup.feed.iterations_per_epoch
    trainer = environment(local(every=4)).trainer("trainer")
    trainer.hooks = {"note": Do(does=lambda c: seen.append(c.moment.iteration), every=every(1, "iteration"))}
    trainer.fit(epochs=2, progress=False)
    assert seen[0] == 4
    assert {length, 2 * length, length + 4} <= {*seen}
    assert 1 not in seen
    trainer.fit(iterations=1, progress=False)
    assert trainer.session.moment.iteration == 2 * length + 4


def test_watching_and_two_fits_change_no_bits() -> None:
    def weights(watched: bool, *fits: int) -> bytes:
        trainer = environment(local()).trainer("trainer")
        trainer.hooks = {"note": Do(does=lambda context: None, every=every(1, "iteration"))} if watched else {}
        for epochs in fits:
            trainer.fit(epochs=epochs, progress=False)
        return bytes(trainer.session.host("network.layers.1-dense.weights"))

    assert weights(True, 3) == weights(False, 3) == weights(False, 1, 2)


def test_the_length_of_rounds_is_set_live_and_replayed(tmp_path: Path) -> None:
    def make(operator: Any) -> Environment:
        sigma = environment(operator, folder=tmp_path)
        trainer = sigma.trainer("trainer")
        command = {"pattern": "operator.every", "value": 2}
        change = Do(does=lambda context: context.command("set", **command), every=every(2, "epoch"))
        trainer.hooks = {**trainer.hooks, "change": change}
        return sigma

    sigma = make(threads(workers=2))
    bits = sigma.run(progress=False).parameters_sha256
    assert sigma.get("trainer.operator.every") == 2
    assert bits == make(local()).run(progress=False).parameters_sha256 != train(local())[0]
    summary, differences = make(local()).replay(sigma.run_folder, progress=False)
    assert (summary.parameters_sha256, differences) == (bits, {})
    with pytest.raises(SigmaAddressError, match=r"operator.every: must be a whole number, at least 1"):
        sigma.set("trainer.operator.every", 0)


def test_what_is_frozen_stays_to_the_bit() -> None:
    sigma = environment(local())
    trainer = sigma.trainer("trainer")
    before = trainer.session.host("network.layers.1-dense.weights")
    sigma.set("trainer.optimiser.1-dense.weights.frozen", True)
    trainer.fit(epochs=2, progress=False)
    np.testing.assert_array_equal(trainer.session.host("network.layers.1-dense.weights"), before)


def test_replicas_send_only_what_an_update_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[int]()

    def add(exchange: Any, offset: int, parts: Any, count: int) -> Any:
        sent.append(sum(vector.size for vector in parts[0].vectors.values()))
        return summed(exchange, offset, parts, count)

    summed = LocalExchange.sum
    monkeypatch.setattr(LocalExchange, "sum", add)
    sigma = environment(local(), "data.preprocessors=['normalise']")
    sigma.set("trainer.optimiser.1-dense.weights.frozen", True)
    trainer = sigma.trainer("trainer")
    trainer.fit(iterations=3, progress=False)
    assert any(name.startswith("data.preprocessors.") for name in trainer.session.state.arrays)
    tuned, means = 6 + (6 + 6) + (6 * 3 + 3), 6 + 6  # biases, a batch norm, the output layer; what the norm averages
    assert sent == [3 * tuned + means]  # Adam has two slots


def test_a_network_that_is_frozen_whole_is_measured() -> None:
    def losses(operator: Any) -> tuple[bytes, Any]:
        sigma = environment(operator, "network.architecture='input(4) + output(3) + softmax_cross_entropy()'")
        sigma.set("trainer.optimiser.frozen", True)
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1, progress=False)
        return trainer.session.host("network.layers.1-output.weights").tobytes(), trainer.registry.get("training.loss")

    assert losses(threads(workers=2)) == losses(local())


def test_a_loss_that_is_not_finite_ends_the_run_with_the_state_after_an_earlier_round(tmp_path: Path) -> None:
    def explode(context: Any) -> None:
        context.command("set", pattern="network.layers.4-output.weights", value=3e38)

    sigma = environment(local(), folder=tmp_path)
    trainer = sigma.trainer("trainer")
    trainer.hooks = {**trainer.hooks, "explode": Do(does=explode, every=every(1, "epoch"))}
    with pytest.raises(SigmaTrainingError, match=r"the loss is \S+ at iteration \d+"):
        sigma.run(progress=False)
    assert trainer.session.progress.phase is Phase.FAILED
    assert sigma.run_folder is not None
    [saved] = sigma.run_folder.glob("checkpoints/trainer/*")
    assert int(saved.name) in (0, 3, 6, 7)  # the end of a round before it: the newest that was kept, by the clock


@define(eq=False)
class Extremes(Momentum):
    """Momentum with the least gradient so far, and a slot that stays as it begins."""

    def slots(self, parameter: Any) -> dict[str, Slot]:
        return {"velocity": Slot(), "least": Slot(np.inf), "none": Slot(-np.inf)}

    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        new, after = super().update(gradient, parameter, slots, step, hyper)
        return new, {**after, "least": f.minimum(slots["least"], gradient), "none": slots["none"]}


def test_slots_that_begin_at_infinity_are_averaged_once_they_are_finite() -> None:
    def slots(operator: Any, iterations: int) -> tuple[np.ndarray, np.ndarray]:
        trainer = environment(operator).trainer("trainer")
        trainer.optimiser = Extremes(learning_rate=0.01)
        trainer.fit(iterations=iterations, progress=False)
        host = trainer.session.host
        return host("optimiser.slots.4-output.biases.least"), host("optimiser.slots.4-output.biases.none")

    least, none = slots(local(every=1), 1)
    np.testing.assert_allclose(least, slots(LocalOperator(shards=3), 1)[0], atol=1e-6)  # the mean of all gradients
    np.testing.assert_array_equal(none, -np.inf)
    later, none = slots(local(), 12)
    assert (later < least).all()
    np.testing.assert_array_equal(none, -np.inf)
    np.testing.assert_array_equal(later, slots(threads(workers=2), 12)[0])


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_a_mean_of_one_replica_and_a_merger_are_refused() -> None:
    for operator in (LocalOperator, ThreadOperator):
        with pytest.raises(SigmaConfigError, match=r"shards = 1 train one replica, .* Set shards = 2 or more"):
            operator(mode="averaging")
    with pytest.raises(SigmaConfigError, match=r"merger: replicas are averaged, and their gradients are not merged"):
        LocalOperator(shards=2, mode="averaging", merger="mean")  # type: ignore[arg-type]
    with pytest.raises(SigmaConfigError, match="mode"):
        LocalOperator(shards=2, mode="sometimes")


def test_a_hook_that_observes_iterations_is_refused() -> None:
    sigma = environment(local())
    trainer = sigma.trainer("trainer")
    trainer.hooks = {"look": Do(reads=["gradients.1-dense.weights"])}
    with pytest.raises(SigmaConfigError, match=r"hooks.look: observes an iteration, .* set mode = 'synchronous'"):
        sigma.prepare()
