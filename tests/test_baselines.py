"""The summary of a run has baselines beside its metrics, and says if the network is no better."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays, Tabular
from sigma_data.class_weights import ClassWeighted
from sigma_hooks import Accuracy, Evaluate
from sigma_kernel import Environment, Metric, functions as f
from sigma_layers import (
    BinaryCrossEntropy,
    Dense,
    Embedding,
    Flatten,
    FunctionCost,
    Input,
    Output,
    SoftmaxCrossEntropy,
    SquaredDifference,
)
from sigma_run.launcher.group import main
from sigma_training.baselines import measuring
from sigma_training.baselines.advice import compare_baselines

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(120, 4)).astype("float32")
NUMBERS = (X @ np.array([[3.0], [0.0], [-2.0], [1.0]]) + 100).astype("float32")
KINDS = (X[:, 0] > 0.5).astype("int32") + (X[:, 1] > 0.5)
TEST = slice(90, 120)


def halves(**sections: Any) -> dict[str, Any]:
    return {
        "training": {name: values[:90] for name, values in sections.items()},
        "validation": {name: values[90:] for name, values in sections.items()},
    }


def summary_of(network: Any, data: Any, folder: Path, epochs: int = 1, **settings: Any) -> Any:
    with Environment("run", seed=0, folder=folder) as sigma:
        about = {"backend": "numpy", "optimiser": "adam", "batch_size": 30, "epochs": epochs, **settings}
        sigma.create_trainer(network=network, data=data, **about)
        return sigma.run()


def test_classes_have_the_majority_and_a_linear_model(tmp_path: Path) -> None:
    summary = summary_of(
        Input(4) + Dense(4) + Output(3) + SoftmaxCrossEntropy(),
        halves(inputs=X, targets=KINDS),
        tmp_path,
        hooks={"score": Accuracy(on="validation")},
    )
    shares = np.bincount(KINDS[:90]) / 90
    majority, linear = summary.baselines["majority"], summary.baselines["linear"]
    assert majority["validation.loss"] == pytest.approx(-np.log(shares[KINDS[TEST]]).mean(), rel=1e-5)
    assert majority["validation.accuracy"] == pytest.approx((KINDS[TEST] == shares.argmax()).mean())
    assert linear["validation.accuracy"] > majority["validation.accuracy"]
    assert linear.keys() == majority.keys() <= summary.metrics.keys()
    (text,) = summary.advice
    assert text.startswith(f"validation.accuracy is {summary.metrics['validation.accuracy']:.4g}, no better than ")
    assert "of a linear model" in text
    written = json.loads((Path(summary.folder) / "summary.json").read_text())
    assert written["baselines"] == summary.baselines
    assert written["advice"] == summary.advice


def test_numbers_have_the_mean_in_their_units(tmp_path: Path) -> None:
    summary = summary_of(
        Input(4) + Dense(4, activation="tanh") + Output(1) + SquaredDifference(),
        halves(inputs=X, targets=NUMBERS),
        tmp_path,
        preprocessors={"target": {"type": "standardise", "section": "targets"}},
        hooks={"score": Evaluate(metrics={"error": "mean_absolute_error", "fit": "r_squared"})},
    )
    error = np.abs(NUMBERS[TEST] - NUMBERS[:90].mean()).mean()
    assert summary.baselines["mean"]["validation.error"] == pytest.approx(error, rel=1e-5)
    assert summary.baselines["mean"]["validation.loss"] == pytest.approx(
        np.mean((NUMBERS[TEST] - NUMBERS[:90].mean()) ** 2) / NUMBERS[:90].var(), rel=1e-4
    )
    assert summary.baselines["linear"]["validation.error"] < 1e-3
    assert summary.baselines["linear"]["validation.fit"] == pytest.approx(1.0)
    assert "validation.error is" in summary.advice[0]
    assert "no better than" in summary.advice[0]


def test_a_network_that_is_better_is_not_told_so(tmp_path: Path) -> None:
    targets = X[:, 0] * X[:, 1]  # no linear model can
    network = Input(4) + 2 * Dense(32, activation="tanh") + Output(1) + SquaredDifference()
    optimiser = {"type": "adam", "learning_rate": 0.02}
    summary = summary_of(network, halves(inputs=X, targets=targets), tmp_path, 80, optimiser=optimiser)
    assert summary.baselines.keys() == {"mean", "linear"}
    assert summary.advice == []
    assert "advice" not in summary.to_dict()


@pytest.mark.parametrize(
    ("value", "direction", "baselines", "text"),
    [
        (1.0, "higher", {"majority": 0.5, "linear": 1.0}, "m is 1, and so is that of a linear model, so that the data"),
        (0.0, "lower", {"mean": 2.0, "linear": 0.0}, "m is 0, and so is that of a linear model, so that the data need"),
        (
            1.0,
            "higher",
            {"majority": 1.0},
            "and so is that of the baseline 'majority', which does not look at the inputs,",
        ),
        (0.9, "higher", {"majority": 0.5, "linear": 0.9}, "m is 0.9, no better than 0.9 of a linear model"),
        (1.0, "lower", {"mean": 1.0}, "m is 1, no better than 1 of the baseline 'mean'"),
        (0.5, "higher", {"majority": 0.5}, "m is 0.5, no better than 0.5 of the baseline 'majority'"),
        (1.0, "higher", {"majority": 0.5, "linear": 0.9}, None),
    ],
)
def test_a_perfect_score_that_a_baseline_has_too_is_no_fault(
    value: float, direction: str, baselines: dict[str, float], text: str | None
) -> None:
    told = [*compare_baselines({"v.m": value}, {k: {"v.m": x} for k, x in baselines.items()}, lambda _: direction)]
    assert len(told) == (text is not None)
    assert all(text in sentence for sentence in told if text)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_of_more_rows_than_are_read_targets_are_still_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    targets = KINDS if kind == "classes" else NUMBERS[:, 0]
    names = [f"x{i}" for i in range(4)]
    rows = [",".join([*names, "y"]), *(",".join(map(str, (*x, y))) for x, y in zip(X, targets, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    cost = Output(3) + SoftmaxCrossEntropy() if kind == "classes" else Output(1) + SquaredDifference()
    found = []
    for about, most in (({}, 2**27), ({"block_rows": 16, "cache": tmp_path / "cache"}, 120 * 2 * 4)):
        monkeypatch.setattr(measuring, "LARGEST", most)
        data = Tabular(tmp_path / "t.csv", "y", targets=kind, seed=0, **about)
        hooks = {"score": Evaluate(on="validation")}
        found.append(summary_of(Input(4) + cost, data, tmp_path / str(most), hooks=hooks).baselines)
    name = "majority" if kind == "classes" else "mean"
    assert found[0].keys() == {name, "linear"}
    assert found[1] == {name: found[0][name]}
    monkeypatch.setattr(measuring, "LARGEST", 120)
    assert summary_of(Input(4) + cost, data, tmp_path / "none", hooks=hooks).baselines == {}


def test_a_network_that_has_learned_nothing_is_told_the_remedy(tmp_path: Path) -> None:
    noise = RANDOM.integers(0, 2, 120).astype("int32")
    summary = summary_of(
        Input(4) + Output(2) + SoftmaxCrossEntropy(),
        halves(inputs=X, targets=np.where(np.arange(120) % 5 == 0, noise, 1)),
        tmp_path,
        optimiser={"type": "gradient_descent", "learning_rate": 0.0},
        hooks={"score": Accuracy(on="validation")},
    )
    assert "of the baseline 'majority', which does not look at the inputs. Check that" in summary.advice[0]


def test_baselines_change_no_bits_and_can_be_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "digits", "--epochs", "2", "--set", "run.backend=numpy"]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "(majority 2.30" in said
    assert "  note: validation.accuracy is" in said
    assert main([*command, "--set", "trainer.baselines=false"]) == 0
    said = capsys.readouterr().err
    assert "majority" not in said
    assert "note:" not in said
    with_, without = (json.loads((run / "summary.json").read_text()) for run in sorted(Path("runs").iterdir()))
    first, second = sorted(Path("runs").iterdir())
    assert "baselines" not in without
    for name in ("parameters_sha256", "metrics", "iterations"):
        assert with_[name] == without[name]
    states = [next(run.rglob("state.safetensors")).read_bytes() for run in (first, second)]
    assert states[0] == states[1]
    assert "baselines = false" in (second / "config.toml").read_text()
    assert "baselines" not in (first / "config.toml").read_text()


def test_without_a_run_folder_nothing_is_measured() -> None:
    with Environment("run", seed=0) as sigma:
        trainer = sigma.create_trainer(
            network=Input(4) + Output(3) + SoftmaxCrossEntropy(), data=halves(inputs=X, targets=KINDS), optimiser="adam"
        )
        trainer.fit(epochs=1)
        assert sigma.summary().baselines == {}


def test_several_outputs_have_their_own_and_rows_their_weights(tmp_path: Path) -> None:
    trunk = Input(4) + Dense(5)
    size = Output(1, name="size") + SquaredDifference(targets="size", weight=0.5)
    trunk.link(size)
    kind = trunk + Output(3, name="kind") + SoftmaxCrossEntropy(targets="kind")
    weights = RANDOM.uniform(0.1, 2, 120).astype("float32")
    summary = summary_of(
        [kind, size],
        halves(inputs=X, kind=KINDS, size=NUMBERS, weights=weights),
        tmp_path,
        hooks={"score": Evaluate(metrics={"kind.hit": "accuracy", "size.error": "mean_absolute_error"})},
    )
    constant = summary.baselines["constant"]
    mean = np.average(NUMBERS[:90, 0], weights=weights[:90])
    assert constant["validation.size.error"] == pytest.approx(np.abs(NUMBERS[TEST] - mean).mean(), rel=1e-4)
    shares = np.bincount(KINDS[:90], weights[:90]) / weights[:90].sum()
    kinds = np.average(-np.log(shares[KINDS[TEST]]), weights=weights[TEST])
    sizes = np.average((NUMBERS[TEST, 0] - mean) ** 2, weights=weights[TEST])
    assert constant["validation.loss"] == pytest.approx(kinds + 0.5 * sizes, rel=1e-4)
    assert summary.baselines["linear"]["validation.size.error"] < 0.01


def test_live_weights_of_costs_are_those_of_the_run(tmp_path: Path) -> None:
    with Environment("run", seed=0, folder=tmp_path) as sigma:
        network = Input(4) + Output(1) + SquaredDifference(name="cost", weight=2.0)
        data = halves(inputs=X, targets=NUMBERS)
        trainer = sigma.create_trainer(network=network, data=data, backend="numpy", optimiser="adam", epochs=1)
        trainer.prepare()
        sigma.set("trainer.network.layers.cost.weight", 0.5)
        summary = sigma.run()
    error = np.mean((NUMBERS[TEST] - NUMBERS[:90].mean()) ** 2)
    assert summary.baselines["mean"]["validation.loss"] == pytest.approx(0.5 * error, rel=1e-4)


def test_they_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[Any]()
    monkeypatch.setattr("sigma_training.lifecycle.measure_baselines", lambda session: calls.append(session) or {})
    with Environment("run", seed=0, folder=tmp_path) as sigma:
        trainer = sigma.create_trainer(
            network=Input(4) + Output(3) + SoftmaxCrossEntropy(), data=halves(inputs=X, targets=KINDS), optimiser="adam"
        )
        trainer.fit(epochs=1)
        trainer.fit(epochs=1)
    assert calls == [trainer.session]


class Distance(Metric):
    """The distance of predictions from another section than the targets."""

    section = "inputs"
    better = "lower"

    def totals(self, prediction: Any, targets: Any) -> Any:
        return f.sum(f.abs(prediction - targets))


def test_metrics_that_read_other_sections_are_left_out(tmp_path: Path) -> None:
    summary = summary_of(
        Input(4) + Output(4) + SquaredDifference(targets="goals"),
        halves(inputs=X, goals=X * 2),
        tmp_path,
        hooks={"score": Evaluate(metrics={"far": Distance(), "error": "mean_absolute_error"})},
    )
    assert "validation.far" in summary.metrics
    assert summary.baselines["mean"].keys() == {"validation.loss", "validation.error"}


def test_several_decisions_are_fitted_each(tmp_path: Path) -> None:
    targets = (X[:, :2] > 0.3).astype("float32")
    summary = summary_of(
        Input(4) + Output(2) + BinaryCrossEntropy(),
        halves(inputs=X, targets=targets),
        tmp_path,
        hooks={"score": Evaluate(metrics={"hit": "threshold_accuracy"})},
    )
    wrong = np.abs((targets[:90].mean(axis=0) > 0.5) - targets[TEST]).mean()
    assert summary.baselines["majority"]["validation.hit"] == pytest.approx(1 - wrong)
    assert summary.baselines["linear"]["validation.hit"] > 0.9


def blocks() -> Iterator[Any]:
    yield X, KINDS


@pytest.mark.parametrize(
    ("network", "data", "names"),
    [
        (Input(4, dtype="int32") + Embedding(9, 3) + Flatten() + Output(3) + SoftmaxCrossEntropy(),
         halves(inputs=np.abs(X).astype("int32"), targets=KINDS), {"majority"}),
        (Input(2, 2) + Output(3) + SoftmaxCrossEntropy(),
         halves(inputs=X.reshape(-1, 2, 2), targets=np.stack([KINDS, KINDS], axis=1)), {"majority"}),
        (Input(4) + Output(1) + FunctionCost(lambda y, t: f.mean(f.square(y - t))), halves(inputs=X, targets=NUMBERS),
         {"mean", "linear"}),
        (Input(4) + Dense(2) + Output(4) + SquaredDifference(targets="inputs"), halves(inputs=X), {"mean"}),
        (Input(4) + Dense(4) + Output(3) + SoftmaxCrossEntropy(), {"training": blocks, "validation": blocks}, set()),
        (Input(4) + Output(3) + SoftmaxCrossEntropy(), Arrays(inputs=X, targets=KINDS), set()),
    ],
)  # fmt: skip
def test_there_are_those_that_fit_the_data(network: Any, data: Any, names: set[str], tmp_path: Path) -> None:
    summary = summary_of(network, data, tmp_path)
    assert {*summary.baselines} == names


def test_weights_of_classes_do_not_change_the_majority(tmp_path: Path) -> None:
    kinds = np.repeat([0, 1, 2], [20, 70, 30]).astype("int32")
    data = Arrays(inputs=RANDOM.normal(size=(120, 4)), targets=kinds)
    rules = {"training": "balanced", "validation": None}
    splits = {name: ClassWeighted(data, rule) for name, rule in rules.items()}
    summary = summary_of(
        Input(4) + Output(3) + SoftmaxCrossEntropy(), splits, tmp_path, hooks={"score": Accuracy(on="validation")}
    )
    assert summary.baselines["majority"]["validation.accuracy"] == pytest.approx(70 / 120)
    assert summary.baselines["linear"]["validation.accuracy"] >= 70 / 120


def test_only_targets_are_read_where_there_is_no_linear_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, data = Input(4) + Output(3) + SoftmaxCrossEntropy(), halves(inputs=X, targets=KINDS)
    hooks = {"score": Accuracy(on="validation")}
    usual = summary_of(network, data, tmp_path, hooks=hooks).baselines["majority"]
    asked: list[int] = []
    monkeypatch.setattr("sigma_training.baselines.measuring.MOST", 0)
    monkeypatch.setattr("sigma_training.baselines.measuring.read", lambda *_: asked.append(1))
    summary = summary_of(network, data, tmp_path / "more", hooks=hooks)
    assert summary.baselines == {"majority": usual}
    assert not asked


def test_a_run_that_is_interrupted_at_its_baselines_has_its_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("sigma_training.lifecycle.measure_baselines", interrupt)
    with Environment("run", seed=0, folder=tmp_path) as sigma:
        sigma.create_trainer(
            network=Input(4) + Output(3) + SoftmaxCrossEntropy(),
            data=halves(inputs=X, targets=KINDS),
            optimiser="adam",
            epochs=1,
        )
        with pytest.raises(KeyboardInterrupt):
            sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    assert json.loads((folder / "summary.json").read_text("utf-8"))["epochs"] == 1


def test_an_error_of_a_baseline_does_not_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("of its own")

    monkeypatch.setattr("sigma_training.baselines.measuring.fit_linear", fail)
    with Environment("run", seed=0, folder=tmp_path) as sigma:
        sigma.create_trainer(
            network=Input(4) + Output(3) + SoftmaxCrossEntropy(),
            data=halves(inputs=X, targets=KINDS),
            optimiser="adam",
            epochs=1,
        )
        summary = sigma.run()
        said = [text for _, text in sigma.messages.entries_after(0)]
    assert summary.status == "finished"
    assert summary.baselines == {}
    assert "the baselines are not measured: ZeroDivisionError: of its own" in "\n".join(said)
