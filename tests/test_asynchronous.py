"""Asynchronous training: workers go on while gradients are on their way, and each shard is applied once."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigma_ml as sm
from sigma_kernel import (
    Environment,
    SigmaAddressError,
    SigmaCheckpointError,
    SigmaConfigError,
    SigmaTrainingError,
    every,
)
from sigma_operator_local import LocalOperator
from sigma_operator_processes import ProcessesOperator
from sigma_testing import Do
from sigma_testing.transports.driving import read_events
from sigma_testing.transports.threads import ThreadChannel, ThreadOperator, kill_at_random
from sigma_training.group.asynchronous import SumWindow, read_ages, write_ages

SHARDS, STALENESS = 3, 4
TEXT = """format = 1
[run]
name = "late"
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
[trainer.optimiser]
type = "adam"
learning_rate = 0.02
"""
NOTE = "the run is not reproducible: in the mode 'asynchronous'"


def threads(**settings: Any) -> ThreadOperator:
    own = {"shards": SHARDS, "workers": SHARDS, "mode": "asynchronous", "staleness": STALENESS, **settings}
    return ThreadOperator(**own)


def environment(operator: Any, *sets: str, folder: Path | None = None) -> Environment:
    sigma = sm.from_file(TEXT, *sets, folder=folder)
    sigma.trainer("trainer").operator = operator
    return sigma


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sums take longer than gradients, each worker's its own time."""
    summed = ThreadChannel.sum

    def add(channel: ThreadChannel, order: Any, *arguments: Any) -> Any:
        time.sleep(0.001 + 0.002 * (channel.worker % 2))
        return summed(channel, order, *arguments)

    monkeypatch.setattr(ThreadChannel, "sum", add)


def ages_of(run: Path | None) -> dict[int, list[list[int]]]:
    """Return the ages of the bursts of a run, by the iteration before them; the last row counts."""
    rows = read_events(run, "ages")
    return {row["iteration"]: [[int(age, 16) for age in word] for word in row["ages"].split()] for row in rows}


# -- against NumPy -----------------------------------------------------------------------------------------------------
ROWS, BATCH, RATE, MOMENTUM = 50, 12, 0.02, 0.5  # the last batch has 2 rows, fewer than shards
DRAW = np.random.default_rng(3)
INPUTS = DRAW.normal(size=(ROWS, 3))
TARGETS = INPUTS @ DRAW.normal(size=(3, 1)) + 0.1 * DRAW.normal(size=(ROWS, 1))


def linear(operator: Any, epochs: int, folder: Path, **settings: Any) -> tuple[np.ndarray, np.ndarray, Path | None]:
    """Return the weights of a linear model before and after training, and the folder of the run."""
    sigma = Environment("linear", seed=1, folder=folder)
    trainer = sigma.create_trainer(
        "trainer", data=(INPUTS, TARGETS), network="input(3) + output(1, bias=false) + squared_difference()",
        optimiser={"type": "momentum", "learning_rate": RATE, "momentum": MOMENTUM}, batch_size=BATCH, epochs=epochs,
        iterator="sequential", precision="float64", operator=operator, **settings,
    )  # fmt: skip
    start = trainer.session.host("network.layers.1-output.weights")
    with sigma:
        sigma.run(progress=False)
    return start, trainer.session.host("network.layers.1-output.weights"), sigma.run_folder


def delayed_descent(start: np.ndarray, epochs: int, bursts: dict[int, list[list[int]]]) -> np.ndarray:
    """Return the weights after momentum descent by gradients that lack as many updates as their ages say."""
    ages = {begin + i: row for begin, burst in bursts.items() for i, row in enumerate(burst)}
    past, velocity = [start], np.zeros_like(start)
    batches = [np.arange(first, min(first + BATCH, ROWS)) for first in range(0, ROWS, BATCH)]
    for n in range(epochs * len(batches)):
        rows = batches[n % len(batches)]
        parts = np.array_split(rows, min(SHARDS, len(rows)))
        gradient = np.zeros_like(start)
        for part, age in zip(parts, ages.get(n, [0] * len(parts)), strict=True):
            gradient += 2 * INPUTS[part].T @ (INPUTS[part] @ past[n - age] - TARGETS[part]) / len(rows)
        velocity = MOMENTUM * velocity - RATE * gradient
        past.append(past[-1] + velocity)
    return past[-1]


@pytest.mark.long_cases("deaths")
@pytest.mark.parametrize("case", ["calm", "deaths", "losses that are not finite"])
def test_each_shard_is_applied_once_with_its_age_as_in_numpy(
    case: str, slow: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, settings = threads(), dict[str, Any]()
    if case == "losses that are not finite":  # each ends its burst, and others have computed beyond it
        row = (np.arange(ROWS) == 20)[:, None]
        monkeypatch.setitem(globals(), "INPUTS", np.where(row, 0.0, INPUTS))
        monkeypatch.setitem(globals(), "TARGETS", np.where(row, 1e160, TARGETS))  # its square overflows
        settings["hooks"] = {"guard": {"type": "nan_guard", "then": "continue"}}
    with kill_at_random(operator, 5, 0.15) if case == "deaths" else nullcontext([0]) as killed:
        start, found, run = linear(operator, 40, tmp_path, **settings)
    assert killed
    bursts = ages_of(run)
    np.testing.assert_allclose(found, delayed_descent(start, 40, bursts), rtol=1e-9)
    ages = {age for burst in bursts.values() for row in burst for age in row}
    assert ages > {0}
    assert max(ages) <= STALENESS


def test_training_converges_to_the_least_squares(slow: None, tmp_path: Path) -> None:
    solution = np.linalg.lstsq(INPUTS[:48], TARGETS[:48], rcond=None)[0]
    settings = {"last_batch": "drop", "batch_size": 48}
    sigma = Environment("linear", seed=1, folder=tmp_path)
    trainer = sigma.create_trainer(
        "trainer", data=(INPUTS[:48], TARGETS[:48]), network="input(3) + output(1, bias=false) + squared_difference()",
        optimiser={"type": "gradient_descent", "learning_rate": 0.05}, precision="float64", operator=threads(),
        **settings,
    )  # fmt: skip
    trainer.fit(epochs=300, progress=False)
    np.testing.assert_allclose(trainer.session.host("network.layers.1-output.weights"), solution, atol=1e-6)


# -- one run, and its journal ------------------------------------------------------------------------------------------
def test_a_replay_repeats_a_run_to_the_bit_whoever_died(slow: None, tmp_path: Path) -> None:
    operator = threads(burst_seconds=2.0)  # several iterations each, on a busy machine too
    sigma = environment(operator, folder=tmp_path)
    with kill_at_random(operator, 3, 0.3), sigma:
        summary = sigma.run(progress=False)
    assert ages_of(sigma.run_folder)
    again, differences = environment(threads()).replay(sigma.run_folder, progress=False)
    assert differences == {}
    assert (again.parameters_sha256, again.metrics) == (summary.parameters_sha256, summary.metrics)


def test_a_run_resumes_with_other_workers_and_repeats_what_was_not_saved(slow: None, tmp_path: Path) -> None:
    sigma = environment(threads(), folder=tmp_path)
    trainer = sigma.trainer("trainer")
    trainer.hooks = {**trainer.hooks, "saver": {"type": "checkpoint", "every": "2 epochs"}}
    with sigma:
        summary = sigma.run(progress=False)
    assert sigma.run_folder is not None
    newest = sorted(sigma.run_folder.glob("checkpoints/trainer/*"), key=lambda path: int(path.name))
    for path in newest[1:]:
        shutil.rmtree(path)  # as if the run had died before they were written
    later = environment(threads(workers=2))
    later.trainer("trainer").hooks = trainer.hooks
    later.resume(sigma.run_folder)
    again = later.run(progress=False)
    assert again.parameters_sha256 == summary.parameters_sha256


def test_one_worker_alone_has_the_bits_of_synchronous_training() -> None:
    hashes = [
        environment(operator).run(progress=False).parameters_sha256
        for operator in (threads(workers=1), LocalOperator(shards=SHARDS))
    ]
    assert hashes[0] == hashes[1]


def test_the_staleness_is_set_live(slow: None, tmp_path: Path) -> None:
    sigma = environment(threads(), folder=tmp_path)
    trainer = sigma.trainer("trainer")
    change = Do(
        does=lambda context: context.command("set", pattern="operator.staleness", value=1), every=every(3, "epoch")
    )
    trainer.hooks = {**trainer.hooks, "change": change}
    with sigma:
        sigma.run(progress=False)
        assert sigma.get("trainer.operator.staleness") == 1
        with pytest.raises(SigmaAddressError, match=r"operator.staleness: must be a whole number, at least 1"):
            sigma.set("trainer.operator.staleness", 0)
    later = [age for at, burst in ages_of(sigma.run_folder).items() if at >= 27 for row in burst for age in row]
    assert max(later) == 1


def test_layer_state_takes_each_change_once(slow: None, tmp_path: Path) -> None:
    """A batch norm averages what it sees; a change that came late would otherwise undo others, or count twice."""

    def mean(operator: Any, epochs: int) -> tuple[np.ndarray, Path | None]:
        sets = [f"trainer.epochs={epochs}", "trainer.optimiser.learning_rate=1e-12"]
        with environment(operator, *sets, folder=tmp_path) as sigma:
            sigma.run(progress=False)
            return sigma.trainer("trainer").session.host("network.layers.3-batch_norm.mean"), sigma.run_folder

    (early, run), (late, _) = mean(threads(), 2), mean(threads(), 30)
    assert ages_of(run)
    local = LocalOperator(shards=SHARDS)
    assert np.linalg.norm(early) > 0.8 * np.linalg.norm(mean(local, 2)[0])  # no change is undone
    np.testing.assert_allclose(late, mean(local, 30)[0], atol=0.1)


def test_a_loss_that_is_not_finite_ends_the_run_with_an_earlier_state(slow: None, tmp_path: Path) -> None:
    def explode(context: Any) -> None:
        context.command("set", pattern="network.layers.4-output.weights", value=3e38)

    sigma = environment(threads(), folder=tmp_path)
    trainer = sigma.trainer("trainer")
    trainer.hooks = {**trainer.hooks, "explode": Do(does=explode, every=every(2, "epoch"))}
    with pytest.raises(SigmaTrainingError, match=r"the loss is \S+ at iteration \d+"):
        sigma.run(progress=False)
    assert sigma.run_folder is not None
    assert list(sigma.run_folder.glob("checkpoints/trainer/*"))


@pytest.mark.long
def test_processes_train_asynchronously(tmp_path: Path) -> None:
    operator = ProcessesOperator(shards=4, workers=2, mode="asynchronous", staleness=2)
    sigma = environment(operator, folder=tmp_path)
    with sigma:
        summary = sigma.run(progress=False)
    replayed = environment(ProcessesOperator(shards=4, mode="asynchronous", staleness=2))
    again, differences = replayed.replay(sigma.run_folder, progress=False)
    assert (again.parameters_sha256, differences) == (summary.parameters_sha256, {})


# -- what a user reads -------------------------------------------------------------------------------------------------
def test_a_run_says_everywhere_that_it_is_not_reproducible(sigma: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    line = 'operator = { type = "processes", shards = 2, workers = 2, mode = "asynchronous" }'
    Path("late.toml").write_text(TEXT.replace("epochs = 6", f"epochs = 2\n{line}"))
    code, _, error = sigma("check", "late.toml")
    assert code == 0
    assert f"note: {NOTE}" in error
    assert json.loads(sigma("check", "late.toml", "--json")[1])["notes"][0].startswith(NOTE)
    assert NOTE in sigma("explain", "late.toml")[1]
    code, out, error = sigma("run", "late.toml", "--json")
    assert code == 0
    assert f"note: {NOTE}" in error
    summary = json.loads(out)
    assert summary["advice"][-1].startswith(NOTE)
    [manifest, *_] = Path(summary["folder"]).glob("checkpoints/trainer/*/manifest.json")
    assert '"reproducible": false' in manifest.read_text()
    code, _, error = sigma("replay", summary["folder"], "--check")
    assert code == 0
    assert f"note: {NOTE}" in error
    assert "replay is identical" in error


def test_a_synchronous_run_is_reproducible(tmp_path: Path) -> None:
    with environment(threads(mode="synchronous"), folder=tmp_path) as sigma:
        assert not any(NOTE in text for text in sigma.run(progress=False).advice)
    assert sigma.run_folder is not None
    [manifest, *_] = sigma.run_folder.glob("checkpoints/trainer/*/manifest.json")
    assert "reproducible" not in manifest.read_text()


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_settings_without_a_meaning_are_refused() -> None:
    with pytest.raises(SigmaConfigError, match=r"shards = 1 leave nothing to wait for.* Set shards = 2 or more"):
        threads(shards=1, workers=1)
    with pytest.raises(SigmaConfigError, match=r"LocalOperator.mode: .* Use an operator for several processes"):
        LocalOperator(shards=2, mode="asynchronous")
    for staleness in (0, 16):
        with pytest.raises(SigmaConfigError, match="staleness: must be"):
            threads(staleness=staleness)


def test_state_that_is_carried_from_batch_to_batch_is_refused() -> None:
    data = [
        "data.dataset='adding'",
        "data.rows=92",
        "data.steps=9",
        "data.iterator='sequential'",
        "data.last_batch='drop'",
    ]
    network = "network.architecture='input(none, 2) + lstm(5, carried=18) + output(1) + squared_difference()'"
    with pytest.raises(
        SigmaConfigError, match=r"trainer.operator: .* is carried .* Leave out `carried`, or set mode ="
    ):
        environment(threads(), network, *data).prepare()


def test_ages_that_are_none_are_refused() -> None:
    ages = [[0, 0], [1, 0], [2, 1]]
    assert write_ages(ages) == "00 10 21"
    assert read_ages("00 10 21", 2) == ages
    assert write_ages([[0, 0], [0, 0]]) == ""
    for text in ("", "00 1", "00 x0", "10", "00 20"):
        with pytest.raises(SigmaCheckpointError, match="are no ages of the gradients of 2 shards"):
            read_ages(text, 2)


# -- how far ahead -----------------------------------------------------------------------------------------------------
def test_a_worker_computes_ahead_as_far_as_the_staleness() -> None:
    window = SumWindow(end=5, staleness=2)
    assert [window.compute() for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]
    assert window.waits
    window.take()
    assert window.compute() == (3, 2)
    window.take()
    window.close()  # a worker that has taken one sum less may have computed iteration 3
    assert window.end == 4
    assert window.waits
    window.take()
    window.take()
    assert window.is_over
