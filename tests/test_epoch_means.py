"""What training measures: means over an epoch, which summaries have, and batches that measure nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import EarlyStop, FunctionHook, NanGuard, Stop
from sigma_kernel import Environment, every, functions as f, when
from sigma_kernel.contracts import Metric, Totals
from sigma_kernel.errors import SigmaComponentError
from sigma_kernel.graph import Node
from sigma_layers import FunctionCost, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_optimisers import GradientDescent
from sigma_run.launcher.group import main
from sigma_step.measuring import Sums, add_to_sums, means
from sigma_step.totals import expand
from sigma_store.curves import rows
from sigma_training.session.snapshot import restore

DRAW = np.random.default_rng(3)
X, NUMBERS = DRAW.normal(size=(2, 30, 3))
LABELS = DRAW.integers(0, 3, 30)
W = DRAW.uniform(0.1, 3.0, 30)
W[7:14] = 0.0  # a whole batch of seven, and more
W[20] = 0.0
STILL = 1e-14  # a learning rate that moves nothing that these tests measure


def weighted(output: Node, targets: Node) -> Totals:
    weights = f.square(targets[:, 0])
    return Totals(f.sum(weights * f.sum(f.square(output - targets), axis=1)), f.sum(weights))


def one() -> Any:
    return Input(3) + Output(3) + SoftmaxCrossEntropy()


def several() -> Any:
    scores = Input(3) + Output(3, name="scores")
    return [
        scores + SoftmaxCrossEntropy(weight=0.7, weights="own"),
        scores + SquaredDifference(targets="numbers", weight=0.2),
        scores + FunctionCost(weighted, targets="numbers", weight=2.0),
    ]


def made(network: Any = None, rate: float = STILL, shards: int = 1, folder: Path | None = None, **settings: Any) -> Any:
    sigma = Environment("means", seed=2, precision="float64", folder=folder)
    data = {"inputs": X, "targets": LABELS, "weights": W}
    if isinstance(network, list):
        data = {"inputs": X, "targets": LABELS, "own": W, "numbers": NUMBERS}
    settings = {"iterator": "sequential", "batch_size": 7, "backend": "numpy", "data": data, **settings}
    return sigma, sigma.create_trainer(
        network=network or one(), optimiser=GradientDescent(rate), operator=LocalOperator(shards=shards), **settings
    )


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("network", [one, several])
def test_the_mean_over_an_epoch_is_what_an_evaluation_of_the_same_parameters_measures(
    network: Any, shards: int
) -> None:
    sigma, trainer = made(network(), shards=shards)
    with sigma:
        trainer.fit(epochs=1)
        wanted = trainer.evaluate("training")
        published = trainer.session.state.published
    found = {name.removeprefix("training.epoch."): value for name, value in published.items() if ".epoch." in name}
    assert found.keys() == wanted.keys()
    assert len(found) == (4 if network is several else 1)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, rel=1e-9)
    apart = [value for name, value in wanted.items() if name != "loss"]
    assert wanted["loss"] == pytest.approx(sum(apart) if apart else wanted["loss"], rel=1e-12)


def test_the_mean_of_weighted_rows_is_that_of_numpy() -> None:
    sigma, trainer = made()
    with sigma:
        trainer.fit(epochs=2)
        losses = -np.log(trainer.predict(X))[np.arange(30), LABELS]
        assert sigma.summary().metrics == {"training.loss": pytest.approx(np.average(losses, weights=W), rel=1e-9)}


def test_a_summary_has_the_mean_over_the_epoch_and_criteria_the_last_batch() -> None:
    sigma, trainer = made(rate=0.1, data=(X, LABELS), metrics=["accuracy"])
    with sigma:
        trainer.fit(epochs=3)
        losses, rows = trainer.history["training.loss"][-5:], [7, 7, 7, 7, 2]
        assert trainer.session.lookup("training.loss") == losses[-1]
        summary = sigma.summary().metrics
        assert summary["training.loss"] == pytest.approx(np.average(losses, weights=rows), rel=1e-12)
        shares = trainer.history["training.accuracy"][-5:]
        assert summary["training.accuracy"] == pytest.approx(np.average(shares, weights=rows), rel=1e-12)
        assert summary.keys() == {"training.loss", "training.accuracy"}
        trainer.fit(iterations=2)  # the mean over the epoch so far
        begun = trainer.history["training.loss"][-2:].mean()
        assert sigma.summary().metrics["training.loss"] == pytest.approx(begun, rel=1e-12)


def test_hooks_read_the_mean_over_the_epoch() -> None:
    sigma, trainer = made(
        rate=0.1, data=(X, LABELS), epochs=90,
        hooks={
            "early": EarlyStop("training.epoch.loss", patience=3),
            "end": Stop(when=when("training.epoch.loss").below(0.9)),
        },
    )  # fmt: skip
    with sigma:
        trainer.fit()
        assert 0.8 < trainer.session.lookup("training.epoch.loss") < 0.9
        assert sigma.get("trainer.training.epoch.loss") == sigma.summary().metrics["training.loss"]


def test_a_file_may_read_the_mean_over_the_epoch(tmp_path: Path) -> None:
    stop = "[hooks.low]\ntype = 'stop'\nwhen = 'training.epoch.{} below 0.1'\n"
    network = "[network]\narchitecture = 'input(2) + output(2) + softmax_cross_entropy()'\n"
    for name, code in (("loss", 0), ("los", 2)):
        (tmp_path / "file.toml").write_text(
            f"format = 1\n[data]\ndataset = 'xor'\n{network}[trainer]\noptimiser = 'adam'\n{stop.format(name)}"
        )
        assert main(["check", str(tmp_path / "file.toml")]) == code


def test_means_do_not_depend_on_bursts_and_go_on_after_a_resume(tmp_path: Path) -> None:
    often = FunctionHook(lambda context: None, every=every(1, "iteration"))
    found = []
    for hooks in ({}, {"often": often}):
        sigma, trainer = made(rate=0.1, epochs=2, hooks=hooks)
        with sigma:
            trainer.fit()
            found.append(trainer.session.state.published["training.epoch.loss"])
    sigma, trainer = made(rate=0.1, epochs=2, folder=tmp_path)
    with sigma:
        trainer.fit(iterations=8)
        run = sigma.run_folder
    sigma, trainer = made(rate=0.1, epochs=2)
    with sigma:
        sigma.resume(run)
        sigma.run()
        found.append(trainer.session.state.published["training.epoch.loss"])
    assert found[0] == found[1] == found[2]


def test_a_mean_over_an_epoch_is_rounded_once() -> None:
    sigma, trainer = made(data=(X, LABELS), batch_size=1, rate=0.1)
    with sigma:
        for _ in range(5):
            trainer.fit(epochs=1)
            losses = trainer.history["training.loss"][-30:].tolist()
            assert trainer.session.lookup("training.epoch.loss") == fsum(losses) / 30


@pytest.mark.parametrize("bursts", [(1,) * 90, (90,), (7, 64, 1, 18)])
def test_sums_of_an_epoch_have_no_error_and_the_same_parts_for_any_bursts(bursts: tuple[int, ...]) -> None:
    values = DRAW.permutation([1e16, 1.0, -1e16, 2.0**-60, 0.1, 1e-300] * 15).tolist()
    weights = np.linspace(0.1, 0.7, 90)
    sums: Sums = {}
    for end, count in zip(np.cumsum(bursts), bursts, strict=True):
        part = slice(end - count, end)
        sums = add_to_sums(sums, {"a": (np.array(values[part]), 3), "b": (np.array(values[part]), weights[part])})
    products = {"a": (3 * np.array(values)).tolist(), "b": (np.array(values) * weights).tolist()}
    for name, over in (("a", [270.0]), ("b", weights.tolist())):
        exactly = sum(map(Fraction, products[name]), Fraction(0))
        assert sum(map(Fraction, sums[name][0]), Fraction(0)) == exactly
        assert means(sums, [])[name] == fsum(products[name]) / fsum(over)
        assert sums[name] == [expand(products[name]), expand(over)]


@pytest.mark.parametrize("weights", [0, 7, np.array([0.0, 0.0]), np.array([1.0, 2.0])])
def test_sums_of_an_epoch_are_the_same_text_whether_or_not_a_run_was_resumed(weights: Any) -> None:
    sums = add_to_sums({}, {"a": (np.array([0.5, 0.25]), weights)})
    assert json.dumps(sums) == json.dumps({"a": [expand(parts) for parts in sums["a"]]})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_makes_the_mean_likewise(bad: float) -> None:
    sums = add_to_sums(add_to_sums({}, {"a": (np.array([1.0, bad]), 2)}), {"a": (np.array([3.0] * 99), 2)})
    assert repr(means(sums, [])["a"]) == repr(bad)


def test_a_batch_whose_weights_are_all_0_publishes_no_loss(tmp_path: Path) -> None:
    read = []
    hooks = {
        "look": FunctionHook(
            lambda context: read.append(context.read("training.loss")), inputs=["training.loss"], every="1 iteration"
        ),
        "guard": NanGuard(every=every(1, "iteration")),
    }
    sigma, trainer = made(folder=tmp_path, hooks=hooks)
    with sigma:
        trainer.fit(iterations=2)
        assert read[1] is None
        assert sigma.find("trainer.training.loss") in ({}, {"trainer.training.loss": None})
        assert sigma.summary().metrics["training.loss"] == read[0]
        trainer.fit(iterations=3)
        losses = trainer.history["training.loss"]
        assert np.isnan(losses).tolist() == [False, True, False, False, False]
        assert losses[[0, 2, 3, 4]].tolist() == [read[0], *read[2:]]
        assert np.isfinite(trainer.history.frame()["training.loss"]).sum() == 4
        assert sigma.run_folder is not None
        parts = [row["values"]["training.loss"] for row in rows(sigma.run_folder, pytest.fail)]
    assert min(part["low"] for part in parts if part["low"] is not None) == losses[[0, 2, 3, 4]].min() > 0
    assert main(["runs", str(tmp_path)]) == 0


def test_an_unweighted_cost_is_published_beside_one_that_weighs_nothing() -> None:
    sigma, trainer = made(several())
    with sigma:
        trainer.fit(iterations=2)
        names = [f"training.cost.{cost.name}" for cost in trainer.session.setup.model.network.costs]
        cost, square, own = (trainer.history[name] for name in names)
        assert np.isnan(cost).tolist() == [False, True]
        assert np.isfinite([square, own]).all()
        assert trainer.history["training.loss"][1] == pytest.approx(square[1] + own[1])


class Odd(Metric):
    """A metric whose value is of any type."""

    def __init__(self, value: Any) -> None:
        self.of = value

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(prediction)

    def value(self, totals: np.ndarray, rows: int) -> Any:
        return self.of


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.float32(0.5), 0.5), (2, 2), (True, True), (np.array([1.0, 2.0]), [1.0, 2.0]), ([[1], [2]], [[1], [2]]),
        ("much", None), (None, None), (1j, None), ([1.0, "x"], None), ([[1.0], [2.0, 3.0]], None), ({}, None),
    ],
)  # fmt: skip
def test_training_and_evaluation_accept_the_same_values_of_metrics(value: Any, wanted: Any) -> None:
    metrics: Mapping[str, Metric] = {"odd": Odd(value)}
    sigma, trainer = made(data=(X, LABELS), metrics=metrics)
    with sigma:
        if wanted is None:
            for measure in (lambda: trainer.fit(iterations=1), lambda: trainer.evaluate("training", metrics)):
                with pytest.raises(SigmaComponentError, match=r"metric 'odd' \(.*Odd\): "):
                    measure()
            return
        trainer.fit(iterations=1)
        found = trainer.evaluate("training", metrics)["odd"], trainer.session.lookup("training.odd")
        assert [*map(repr, found)] == [repr(wanted)] * 2


def test_the_sums_of_an_earlier_checkpoint_go_on() -> None:
    sigma, trainer = made()
    with sigma:
        trainer.fit(iterations=3)
        session = trainer.session
        saved = session.snapshot()
        saved.values["sums"] = {"loss": [0.75, 3.0]}
        assert restore(saved, session.setup).sums == {"loss": [[0.75], [3.0]]}
