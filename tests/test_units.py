"""Preprocessed targets: predictions and metrics are in the units of the data."""

from __future__ import annotations

import json
from math import exp, fsum, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attrs import evolve, frozen

from sigma_backend_numpy import NumpyBackend
from sigma_data import Cast, Frame, Scale, Standardise
from sigma_kernel import Environment, Preprocessor, functions as f
from sigma_kernel.errors import SigmaComponentError
from sigma_layers import FunctionCost, Input, Output
from sigma_run import load
from sigma_run.launcher import main

pytestmark = pytest.mark.rooms

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])
STANDARDISED = {"targets": {"type": "standardise", "section": "targets"}}
X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
PRICES = np.round(250_000 + 40_000 * X[:, :1].astype(float) - 9_000 * X[:, 1:], 1)  # (30, 1)
TIMES = np.arange(30.0)[:, None] % 7 + 1.7e9  # seconds, of which float32 holds every 128th
METRICS = ("mean_absolute_error", "root_mean_square_error", "r_squared")
LINE = "input(2) + output(1) + squared_difference()"
ZEROS = {"all": ("**", {"type": "constant", "value": 0.0})}


@frozen
class Logarithm(Preprocessor):
    """Take the logarithm."""

    section: str = "targets"

    def fit(self, blocks: Any) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Any) -> np.ndarray:
        """Return the logarithm."""
        return np.log(values)


@frozen
class Invertible(Logarithm):
    """Take the logarithm, and the exponential back."""

    def inverse(self, values: Any, state: Any) -> Any:
        """Return the exponential."""
        return f.exp(values)


def trainer(targets: np.ndarray, preprocessors: Any, network: str = LINE, **settings: Any) -> Any:
    given = {"backend": "numpy", "batch_size": 30, "initialisers": ZEROS, "metrics": METRICS, **settings}
    given = {"optimiser": {"type": "gradient_descent", "learning_rate": 0.1}, **given}
    data = {"inputs": X[: len(targets)], "targets": targets}
    return Environment("units", seed=1).create_trainer(network=network, data=data, preprocessors=preprocessors, **given)


def mean(values: Any) -> float:
    numbers = np.ravel(values).tolist()
    return fsum(numbers) / len(numbers)


def spread(values: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute and the root mean square deviation from the mean."""
    around = [value - mean(values) for value in values.ravel().tolist()]
    return mean([abs(x) for x in around]), sqrt(mean([x * x for x in around]))


# -- predictions and metrics -------------------------------------------------------------------------------------------
@BACKENDS
@pytest.mark.parametrize("targets", [PRICES, PRICES[:, 0], TIMES])
def test_a_network_that_says_0_predicts_the_mean_of_standardised_targets(targets: np.ndarray, backend: str) -> None:
    made = trainer(targets, STANDARDISED, backend=backend)
    np.testing.assert_allclose(made.predict(X), np.full((30, 1), mean(targets)), rtol=1e-15)
    found = made.evaluate("training", dict(zip(METRICS, METRICS, strict=True)))
    absolute, squared = spread(targets)
    assert found["mean_absolute_error"] == pytest.approx(absolute, rel=1e-6)
    assert found["root_mean_square_error"] == pytest.approx(squared, rel=1e-6)
    assert found["r_squared"] == pytest.approx(0.0, abs=1e-6)
    assert found["loss"] == pytest.approx(1.0, rel=1e-6)  # a variance of standardised targets


@BACKENDS
@pytest.mark.parametrize("step", ["robust", "quantile"])
def test_a_network_that_says_0_predicts_the_median_of_targets_scaled_by_rank(step: str, backend: str) -> None:
    made = trainer(PRICES[:29], [{"type": step, "section": "targets"}], backend=backend, batch_size=29)
    np.testing.assert_allclose(made.predict(X), np.full((30, 1), np.median(PRICES[:29])), rtol=1e-12)
    found = made.evaluate("training", dict(zip(METRICS, METRICS, strict=True)))
    around = np.abs(PRICES[:29] - np.median(PRICES[:29]))
    assert found["mean_absolute_error"] == pytest.approx(mean(around), rel=1e-6)


@BACKENDS
def test_each_iteration_of_training_is_measured_in_units(backend: str) -> None:
    made = trainer(PRICES, STANDARDISED, backend=backend)
    made.fit(iterations=1)
    absolute, squared = spread(PRICES)
    assert made.history["training.mean_absolute_error"][-1] == pytest.approx(absolute, rel=1e-6)
    assert made.history["training.root_mean_square_error"][-1] == pytest.approx(squared, rel=1e-6)
    assert made.history["training.loss"][-1] == pytest.approx(1.0, rel=1e-6)


@BACKENDS
def test_training_has_the_bits_of_targets_that_were_standardised_before(backend: str) -> None:
    middle, deviation = PRICES.mean(), PRICES.std()
    ours = trainer(PRICES, STANDARDISED, backend=backend)
    theirs = trainer((PRICES - middle) / deviation, {}, backend=backend, metrics=())
    for one in (ours, theirs):
        one.fit(iterations=5)
    np.testing.assert_array_equal(*(one.history["training.loss"] for one in (ours, theirs)))
    for address, values in ours.parameters().items():
        np.testing.assert_array_equal(values, theirs.parameters()[address])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X).astype(float) * deviation + middle, rtol=1e-15)


def test_errors_of_several_targets_are_measured_each_in_its_unit() -> None:
    both = np.hstack([PRICES, X[:, :1]])
    made = trainer(both, STANDARDISED, "input(2) + output(2) + squared_difference()")
    found = made.evaluate("training", {"error": "mean_absolute_error"})["error"]
    assert found == pytest.approx((spread(PRICES)[0] + spread(X[:, :1].astype(float))[0]) / 2, rel=1e-6)
    np.testing.assert_allclose(made.predict(X)[7], [mean(PRICES), mean(X[:, 0].astype(float))], rtol=1e-6)


def test_several_preprocessors_are_undone_from_the_last_to_the_first() -> None:
    steps = [Invertible(), Scale(2.0, 1.0, section="targets"), Standardise(section="targets")]
    made = trainer(PRICES, steps)
    geometric = exp(mean([log(price) for price in PRICES.ravel().tolist()]))
    np.testing.assert_allclose(made.predict(X), np.full((30, 1), geometric), rtol=1e-12)


def test_rows_with_the_greatest_losses_are_shown_in_units() -> None:
    made = trainer(PRICES, STANDARDISED)
    made.prepare()
    found = made.view.losses("training", 3)
    farthest = np.argsort(-abs(PRICES[:, 0] - mean(PRICES)))[:3]
    np.testing.assert_array_equal(found.rows, farthest)
    np.testing.assert_allclose(found.targets, PRICES[farthest], rtol=1e-7)
    np.testing.assert_allclose(found.predicted, np.full((3, 1), mean(PRICES)), rtol=1e-12)


def test_an_autoencoder_returns_inputs_in_their_units() -> None:
    steps = {"scale": {"type": "standardise", "section": "inputs"}}
    made = trainer(PRICES, steps, "input(2) + output(2) + squared_difference(targets='inputs')", metrics=())
    np.testing.assert_allclose(made.predict(X)[0], [mean(x) for x in X.astype(float).T], rtol=1e-6)


@pytest.mark.parametrize(("ends", "shape"), [
    ("output(2) + reshape(2, 1)", (2, 1)), ("output(2) + reshape(1, 2) + flatten()", (2,)),
    ("output(2) + flatten() + expand() + reshape(1, 2, 1)", (1, 2, 1)),
])  # fmt: skip
def test_an_output_that_is_reshaped_for_its_cost_answers_in_units(ends: str, shape: tuple[int, ...]) -> None:
    both = np.hstack([PRICES, 2 * PRICES])
    steps = {"targets": {"type": "standardise", "section": "targets"}}
    made = trainer(both.reshape(30, *shape), steps, f"input(2) + {ends} + squared_difference()")
    np.testing.assert_allclose(made.predict(X)[7], [mean(PRICES), mean(2 * PRICES)], rtol=1e-12)
    found = made.evaluate("training", {"error": "mean_absolute_error"})["error"]
    assert found == pytest.approx(1.5 * spread(PRICES)[0], rel=1e-6)


def test_an_output_behind_an_activation_has_no_units() -> None:
    made = trainer(PRICES, STANDARDISED, "input(2) + output(1) + activation('tanh') + squared_difference()", metrics=())
    np.testing.assert_array_equal(made.predict(X), np.zeros((30, 1)))


def test_a_saved_network_and_a_run_answer_in_units(tmp_path: Any) -> None:
    made = trainer(PRICES, STANDARDISED)
    made.fit(iterations=20)
    saved = load(made.save(tmp_path / "network"))
    np.testing.assert_array_equal(saved.predict(X), made.predict(X))
    metrics = {"error": "mean_absolute_error"}
    given = (X[:9], PRICES[:9])
    wanted = mean(abs(made.predict(X[:9]) - PRICES[:9]))
    assert saved.evaluate(given, metrics)["error"] == pytest.approx(wanted, rel=1e-6)
    assert made.evaluate(given, metrics)["error"] == pytest.approx(wanted, rel=1e-6)


def test_a_backend_without_float64_answers_in_float32() -> None:
    class Single(NumpyBackend):
        dtypes = NumpyBackend.dtypes - {"float64"}

    made = trainer(PRICES, STANDARDISED, backend=Single())
    assert made.predict(X).dtype == np.float32
    np.testing.assert_allclose(made.predict(X), np.full((30, 1), mean(PRICES)), rtol=1e-6)


# -- what has no units -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", [Logarithm(), Scale(0.0, section="targets")])
def test_without_an_inverse_answers_stay_as_the_network_computes_them(step: Preprocessor) -> None:
    made = trainer(PRICES, [step, Standardise(section="targets")])
    assert made.predict(X).dtype == np.float32
    np.testing.assert_array_equal(made.predict(X), np.zeros((30, 1)))


def test_more_numbers_than_targets_stay_as_the_network_computes_them() -> None:
    quantiles = FunctionCost(lambda output, targets: f.mean(f.abs(output - targets)))
    made = trainer(PRICES, STANDARDISED, Input(2) + Output(3) + quantiles, metrics=())
    np.testing.assert_array_equal(made.predict(X), np.zeros((30, 3)))


def test_a_direction_has_no_units() -> None:
    made = trainer(X.astype(float), STANDARDISED, "input(2) + output(2) + cosine_distance()", metrics=())
    np.testing.assert_array_equal(made.predict(X), np.zeros((30, 2)))


def test_predictions_keep_their_type_where_they_keep_their_values() -> None:
    made = trainer(np.arange(30)[:, None], [Cast("float32", section="targets")])
    assert made.predict(X).dtype == np.float32


def test_a_checkpoint_without_the_shapes_of_targets_answers_as_the_network_computes(tmp_path: Path) -> None:
    saved = load(trainer(PRICES, STANDARDISED).save(tmp_path / "network"))
    saved.trainer.learned = evolve(saved.trainer.learned, about={})  # as in checkpoints of early versions
    np.testing.assert_array_equal(saved.predict(X), np.zeros((30, 1)))


def test_an_inverse_of_another_shape_is_the_fault_of_the_preprocessor() -> None:
    @frozen
    class Wrong(Logarithm):
        def inverse(self, values: Any, state: Any) -> Any:
            return f.sum(values)

    with pytest.raises(SigmaComponentError, match=r"preprocessor 'wrong'.*inverse\(\) must return a node of shape"):
        trainer(PRICES, [Wrong()], metrics=()).predict(X)


# -- names -------------------------------------------------------------------------------------------------------------
FILE = """
format = 1
[run]
name = "prices"
backend = "numpy"
[data]
dataset = "csv"
path = "prices.csv"
target = {target}
inputs = ["size"]
split = {{ training = 1.0 }}
preprocessors.targets = {{ type = "standardise", section = "targets" }}
[network]
architecture = "input(1) + output({count}) + squared_difference()"
[trainer]
epochs = 1
optimiser = {{ type = "gradient_descent", learning_rate = 1e-9 }}
[initialisers.zeros]
match = "**"
type = "constant"
value = 0.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a table of prices, whose means are 250,000 and 7, and new samples."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{size},{250_000 + 100 * size},{7 + size}" for size in range(-5, 6)]
    Path("prices.csv").write_text("\n".join(["size,price,row", *rows]))
    Path("new.csv").write_text("size\n0\n1\n")
    return tmp_path


def predicted(capsys: pytest.CaptureFixture[str], count: int, target: str, *options: str) -> str:
    Path("prices.toml").write_text(FILE.format(count=count, target=target))
    assert main(["run", "prices.toml", "--quiet"]) == 0
    (run,) = Path("runs").iterdir()
    capsys.readouterr()
    assert main(["predict", str(run), "new.csv", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_predict_prints_the_target_by_its_name_in_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = predicted(capsys, 1, '"price"').splitlines()
    assert header.split() == ["input", "row", "price"]
    assert [row.split()[-1] for row in rows] == ["250000", "250000"]


@pytest.mark.usefixtures("folder")
def test_a_table_of_predictions_has_the_names_of_targets(capsys: pytest.CaptureFixture[str]) -> None:
    predicted(capsys, 2, '["row", "price"]', "--output", "found.csv")
    header, first, _ = Path("found.csv").read_text().splitlines()
    assert header == "input,row,value_row,price"  # one of the columns has the name of another
    assert [round(float(cell), 6) for cell in first.split(",")[2:]] == [7.0, 250_000.0]


@pytest.mark.usefixtures("folder")
def test_json_names_the_column_of_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    (first, _) = json.loads(predicted(capsys, 1, '"price"', "--json"))["predictions"]
    assert first["columns"] == ["price"]
    assert first["values"] == [pytest.approx(250_000.0)]


@pytest.mark.parametrize("kind", ["series", "frame", "data set", "parts"])
def test_a_network_knows_the_names_of_the_targets_of_frames(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": X[:, 0], "price": PRICES[:, 0], "age": np.arange(30)})
    names = ["price"] if kind == "series" else ["price", "age"]
    targets = frame["price"] if kind == "series" else frame[names]
    whole = kind in ("data set", "parts")
    data = Frame(frame, names) if whole else (frame[["size"]], targets)
    settings = {"validation_split": 0.2} if kind == "parts" else {}
    network = f"input(1) + output({len(names)}) + squared_difference()"
    made = Environment("named").create_trainer(network=network, data=data, optimiser="adam", batch_size=10, **settings)
    made.fit(epochs=1)
    assert load(made.save(tmp_path / "network")).targets == {"1-output": names}


def test_classes_are_no_columns(tmp_path: Path) -> None:
    data = (X, pd.Series(X[:, 0] > 0, name="large"))
    made = Environment("named").create_trainer(
        network="input(2) + output(2) + softmax_cross_entropy()", data=data, optimiser="adam", batch_size=10
    )
    made.fit(epochs=1)
    assert load(made.save(tmp_path / "network")).targets == {}


# -- digits ------------------------------------------------------------------------------------------------------------
def test_times_in_a_table_are_learned_to_the_second(tmp_path: Path) -> None:
    seconds = np.arange(60) % 7
    rows = [f"{one / 7},{1_700_000_000 + one},{1_600_000_000 + one}" for one in seconds.tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["x,time,start", *rows]) + "\n")
    steps = [Standardise(), Standardise(section="targets")]
    for inputs, target in (("x", "time"), ("start", "time"), ("start", "x")):
        data = {
            "type": "csv",
            "path": str(tmp_path / "t.csv"),
            "inputs": [inputs],
            "target": target,
            "split": {"training": 1.0},
        }
        made = Environment("times", seed=1).create_trainer(
            data={**data, "targets": "numbers"}, network="input(1) + output(1) + squared_difference()", backend="numpy",
            preprocessors=steps, batch_size=60, optimiser={"type": "gradient_descent", "learning_rate": 0.4},
        )  # fmt: skip
        made.fit(epochs=60)
        table = {"x": seconds / 7, "time": 1.7e9 + seconds, "start": 1.6e9 + seconds}
        np.testing.assert_allclose(made.predict(table[inputs][:, None])[:, 0] - table[target], 0, atol=1e-4)
