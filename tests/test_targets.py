"""The cost decides what targets are: numbers for a numeric cost, classes for a classification cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attrs import frozen

from sigma_data import Arrays, Column, Columns, Csv, Records
from sigma_kernel import Environment, Reader, Source, functions as f
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph import Spec
from sigma_layers import (
    BinaryCrossEntropy,
    FunctionCost,
    Input,
    MultiClassHinge,
    Output,
    SoftmaxCrossEntropy,
    SquaredDifference,
)
from sigma_optimisers import GradientDescent
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing import Memory

CLASSES = Columns({"inputs": Column("inputs"), "targets": Column("targets", dtype="class")})

# age, sex, body mass index, blood pressure and the progression of diabetes after a year: the first rows of Efron,
# Hastie, Johnstone, Tibshirani, Least Angle Regression, 2004, as scikit-learn has them
DIABETES = """\
age,sex,bmi,bp,target
59,2,32.1,101,151
48,1,21.6,87,75
72,2,30.5,93,141
24,1,25.3,84,206
50,1,23,101,135
23,1,22.6,89,97
36,2,22,90,138
66,2,26.2,114,63
60,2,32.1,83,110
29,1,30,85,310
22,1,18.6,97,101
56,2,28,85,69
53,1,23.7,92,179
50,2,26.2,97,185
61,1,24,91,118
34,2,24.7,118,171
47,1,30.3,109,166
68,2,27.5,111,144
38,1,25.4,84,97
41,1,24.7,83,168
35,1,21.1,82,68
25,2,24.3,95,49
25,1,26,92,68
61,2,32,103.67,245
"""


@pytest.fixture
def diabetes(tmp_path: Path) -> Path:
    (tmp_path / "diabetes.csv").write_text(DIABETES)
    return tmp_path / "diabetes.csv"


def trained(network: Any, data: Any, epochs: int = 1, rate: float = 0.01, **settings: Any) -> Any:
    """Return the trainer, its data in one batch."""
    trainer = Environment("targets", precision="float64").create_trainer(
        network=network, data=data, optimiser=GradientDescent(rate), **settings
    )
    trainer.fit(epochs=epochs)
    return trainer


def weights(trainer: Any) -> np.ndarray:
    arrays = trainer.session.state.arrays
    return np.concatenate([np.ravel(arrays[f"network.layers.1-output.{name}"]) for name in ("weights", "biases")])


# -- numeric costs -----------------------------------------------------------------------------------------------------
def test_a_regression_on_integer_targets_finds_the_least_squares_solution(diabetes: Path) -> None:
    data = Csv(diabetes, "target", split={"training": 1.0})
    found = trained(Input(4) + Output(1) + SquaredDifference(), data, 3000, 0.3, preprocessors=["standardise"])
    table = np.loadtxt(diabetes, delimiter=",", skiprows=1)
    inputs, targets = (table[:, :4] - table[:, :4].mean(0)) / table[:, :4].std(0), table[:, 4]
    wanted, residuals, _, _ = np.linalg.lstsq(np.column_stack([inputs, np.ones(len(inputs))]), targets)
    assert weights(found) == pytest.approx(wanted, rel=1e-4)  # the data set rounds inputs to 32 bits
    assert found.history["training.loss"][-1] == pytest.approx(residuals[0] / len(targets), rel=1e-6)


@pytest.mark.parametrize("given", [int, float, np.int64, np.uint8])
def test_integers_in_an_array_are_values_for_a_regression(given: Any) -> None:
    targets = np.array([151, 75, 141, 206]).astype(given)
    found = trained(
        Input(1) + Output(1) + SquaredDifference(), Arrays(inputs=np.zeros((4, 1)), targets=targets), 1, 0.5
    )
    assert weights(found)[-1] == pytest.approx(np.mean([151, 75, 141, 206]))  # one step of rate 1/2 reaches the mean


def test_a_custom_cost_receives_integers_unchanged(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n0,10\n0,30\n")
    network = Input(1) + Output(1) + FunctionCost(lambda y, t: f.mean(f.square(y - t)))
    assert weights(trained(network, Csv(tmp_path / "a.csv", "y", split={"training": 1.0}), 1, 0.5))[-1] == 20.0


@pytest.mark.parametrize("data", ["table", "arrays"])
def test_words_are_refused_by_a_numeric_cost(tmp_path: Path, data: str) -> None:
    (tmp_path / "a.csv").write_text("x,y\n0,rose\n1,aster\n")
    rows: Any = Csv(tmp_path / "a.csv", "y", split={"training": 1.0})
    if data == "arrays":
        rows = Arrays(inputs=[[0.0], [1.0]], targets=["rose", "aster"])
    with pytest.raises(SigmaDataError, match=r"'targets' holds words, such as 'rose', .* use a classification cost"):
        trained(Input(1) + Output(1) + SquaredDifference(), rows)


def test_one_hot_encodes_words_for_a_numeric_cost() -> None:
    rows = Arrays(inputs=np.zeros((4, 1)), targets=["b", "a", "b", "b"])
    found = trained(Input(1) + Output(2) + SquaredDifference(), rows, 1, 1.0, preprocessors=["one_hot"])
    assert weights(found)[-2:] == pytest.approx([0.25, 0.75])


# -- classification costs ----------------------------------------------------------------------------------------------
def splits(**targets: Any) -> dict[str, Arrays]:
    return {name: Arrays(inputs=np.zeros((len(values), 1)), targets=values) for name, values in targets.items()}


def shares(units: int, training: Any) -> Any:
    """Return the probabilities that softmax learns from constant inputs, which are the classes' shares."""
    found = trained(Input(1) + Output(units) + SoftmaxCrossEntropy(), training, 2000, 1.0)
    return found.predict(np.zeros((1, 1)))[0], tuple(found.session.setup.evaluator.classes)


@pytest.mark.parametrize(("cells", "units", "wanted", "names"), [
    ("151,75,75,75", 2, [0.75, 0.25], (75, 151)),
    ("1.0,2.0,2.0,2.0", 2, [0.25, 0.75], (1, 2)),
    ("-1,1,1,1", 2, [0.25, 0.75], (-1, 1)),
    ("0,2,2,2", 3, [0.25, 0, 0.75], (0, 1, 2)),
    ("True,False,False,False", 2, [0.75, 0.25], (False, True)),
    ("rose,aster,aster,aster", 2, [0.75, 0.25], ("aster", "rose")),
])  # fmt: skip
def test_a_target_column_becomes_classes_that_fit_the_output(
    tmp_path: Path, cells: str, units: int, wanted: list[float], names: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"0,{cell}\n" for cell in cells.split(",")))
    found, classes = shares(units, Csv(tmp_path / "a.csv", "y", split={"training": 1.0}))
    assert found == pytest.approx(wanted, abs=2e-3)
    assert classes == names
    assert [*map(type, classes)] == [*map(type, names)]


@pytest.mark.parametrize(
    "targets", [[False, True, True, True], [0.0, 1.0, 1.0, 1.0], [0, 1, 1, 1], ["a", "b", "b", "b"]]
)
def test_booleans_integral_floats_integers_and_words_of_an_array_are_classes(targets: Any) -> None:
    assert shares(2, splits(training=targets))[0] == pytest.approx([0.25, 0.75], abs=2e-3)


def test_fractions_are_refused_with_the_cost_that_fits(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n0,1.5\n0,2\n")
    with pytest.raises(SigmaDataError, match=r"label 1\.5 is not one of 2 .* instead of classes, use SquaredDiff"):
        shares(2, Csv(tmp_path / "a.csv", "y", split={"training": 1.0}))
    with pytest.raises(SigmaDataError, match=r"label 0\.5 is not one of 2 classes.* use SquaredDifference\(\)"):
        shares(2, splits(training=[0.5, 1.0]))


def test_labels_of_an_array_are_indices_and_negative_ones_are_refused() -> None:
    with pytest.raises(SigmaDataError, match=r"label -1 is not one of 2 classes\. Labels are integers from 0 to 1"):
        shares(2, splits(training=[-1, 1]))


@frozen
class Signs(Reader):
    """Read labels of -1 and +1, as files of support vector machines have them."""

    def read(self, source: Source) -> dict[str, np.ndarray]:
        return {"inputs": np.zeros((4, 1)), "targets": np.array([-1.0, 1.0, 1.0, 1.0])}


@pytest.mark.parametrize("network", [
    Input(1) + Output(2) + SoftmaxCrossEntropy(), Input(1) + Output(2) + MultiClassHinge(),
    Input(1) + Output(1) + BinaryCrossEntropy(),
])  # fmt: skip
@pytest.mark.parametrize("column", [False, True])
def test_labels_of_other_numbers_become_classes_as_the_error_says(network: Any, column: bool) -> None:
    labels = Signs().read(Memory(b""))["targets"]
    labels = labels[:, None] if column else labels
    with pytest.raises(SigmaDataError) as raised:
        trained(network, (np.zeros((4, 1)), labels))
    ways = 'as words, labels.astype(str), or by the extractor columns with dtype = "class"'
    assert str(raised.value).endswith(f" These 2 values become classes {ways}.")
    trained(network, (np.zeros((4, 1)), labels.astype(str)))
    trained(network, Records(Memory(b""), Signs(), CLASSES, split={"training": 1.0}))


def test_signs_as_words_and_by_an_extractor_are_learned_in_their_order() -> None:
    assert shares(2, splits(training=np.array([-1, 1, 1, 1]).astype(str)))[0] == pytest.approx([0.25, 0.75], abs=2e-3)
    data = Records(Memory(b""), Signs(), CLASSES, split={"training": 1.0})
    assert shares(2, data)[0] == pytest.approx([0.25, 0.75], abs=2e-3)


@pytest.mark.parametrize(("cost", "output", "labels"), [
    (SoftmaxCrossEntropy(), (2,), [-1, 1, 2]), (SoftmaxCrossEntropy(), (2,), [-0.5, 1.0, 1.0]),
    (SoftmaxCrossEntropy(), (2, 2), [[-1, 1], [1, 1]]), (BinaryCrossEntropy(), (1,), [-1, 1, 0]),
    (BinaryCrossEntropy(), (2,), [[-1, 1], [1, 1]]),
])  # fmt: skip
def test_words_are_not_advised_for_values_that_they_would_not_make_the_classes(
    cost: Any, output: tuple[int, ...], labels: list[Any]
) -> None:
    with pytest.raises(SigmaDataError) as raised:
        cost.check(np.array(labels), Spec(output))
    assert "as words" not in str(raised.value)


@pytest.mark.parametrize(("cells", "wanted"), [("1,1,1,1", 1.0), ("1,2,2,2", 0.75), ("no,yes,yes,yes", 0.75)])
def test_a_binary_cost_takes_two_classes(tmp_path: Path, cells: str, wanted: float) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"0,{cell}\n" for cell in cells.split(",")))
    data = Csv(tmp_path / "a.csv", "y", split={"training": 1.0})
    found = trained(Input(1) + Output(1) + BinaryCrossEntropy(), data, 2000, 1.0)
    assert found.predict(np.zeros((1, 1)))[0, 0] == pytest.approx(wanted, abs=2e-3)


def test_a_binary_cost_refuses_three_classes() -> None:
    with pytest.raises(SigmaDataError, match=r"holds 3 classes: 'a', 'b', 'c'; the network has 2"):
        trained(Input(1) + Output(1) + BinaryCrossEntropy(), splits(training=["a", "b", "c"]))


def test_every_split_has_the_classes_of_the_training_split() -> None:
    data = splits(training=["a", "b", "b", "b"], validation=["b", "b"])
    found = trained(Input(1) + Output(2) + SoftmaxCrossEntropy(), data, 2000, 1.0)
    assert found.evaluate()["loss"] == pytest.approx(-np.log(0.75), abs=2e-3)
    with pytest.raises(SigmaDataError, match="holds the class 'c', which the training split does not have"):
        trained(Input(1) + Output(2) + SoftmaxCrossEntropy(), splits(training=["a", "b"], validation=["c"]))


@pytest.mark.parametrize("kind", ["integers", "floats", "words", "objects", "frame", "booleans"])
@pytest.mark.parametrize("metric", ["accuracy", "f1", "precision", "recall"])
def test_labels_in_a_column_are_one_label_for_each_row(kind: str, metric: str) -> None:
    codes = np.arange(12) % (2 if kind == "booleans" else 3)
    words = np.array(["ant", "bee", "cat"])[codes]
    flat: Any = {
        "integers": codes, "floats": codes.astype(float), "words": words, "objects": words.astype(object),
        "frame": pd.Series(codes, name="y"), "booleans": codes > 0,
    }[kind]  # fmt: skip
    column = flat.to_frame() if kind == "frame" else flat[:, None]
    inputs, units = np.random.default_rng(0).normal(size=(12, 2)), len({*codes.tolist()})
    one, other = (trained(Input(2) + Output(units) + SoftmaxCrossEntropy(), (inputs, y), 3) for y in (flat, column))
    assert weights(one).tolist() == weights(other).tolist()
    assert one.evaluate("training", {metric: metric}) == other.evaluate("training", {metric: metric})
    if kind in ("words", "objects", "booleans"):
        assert one.session.setup.evaluator.classes == other.session.setup.evaluator.classes


# -- inputs ------------------------------------------------------------------------------------------------------------
def test_words_among_the_inputs_are_refused_or_encoded_by_a_preprocessor() -> None:
    data = Arrays(inputs=["red", "blue", "red"], targets=[1, 2, 1])
    network = Input(2) + Output(1) + SquaredDifference()
    with pytest.raises(SigmaDataError, match=r"'inputs' holds words, such as 'red', .* add the preprocessor one_hot"):
        trained(network, data)
    encoded = trained(network, data, 500, 0.3, preprocessors=[{"type": "one_hot", "section": "inputs"}])
    assert encoded.predict(np.array([0, 1, 0])).ravel() == pytest.approx([2, 1, 2], abs=1e-6)


# -- configuration files -----------------------------------------------------------------------------------------------
CONFIGURATION = """
format = 1
[data]
dataset = "csv"
path = "diabetes.csv"
target = "target"
split = {{ training = 1.0 }}
[network]
architecture = "input(4) + output({units}) + {cost}()"
[trainer]
optimiser = "adam"
[hooks.finish]
type = "stop"
when = "epoch reaches 1"
"""


@pytest.fixture
def written(diabetes: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes a configuration next to the table."""
    monkeypatch.chdir(diabetes.parent)
    return lambda **chosen: Path("run.toml").write_text(CONFIGURATION.format(**chosen)) and None


@pytest.mark.parametrize(("cost", "units"), [("softmax_cross_entropy", 22), ("squared_difference", 1)])
def test_a_run_names_classes_if_its_cost_is_a_classification(
    written: Callable[..., None], cost: str, units: int
) -> None:
    written(cost=cost, units=units)
    assert main(["run", "run.toml"]) == 0
    classes = load(next(Path("runs").iterdir())).classes
    assert classes[:2] == ((49, 63) if units > 1 else ())


def test_check_encodes_targets_like_training(written: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    written(cost="softmax_cross_entropy", units=22)
    assert main(["check", "run.toml"]) == 0
    assert main(["check", "run.toml", "--set", "trainer.hooks.finish.when='nothing reaches 1'"]) == 2
    assert "targets" not in capsys.readouterr().err  # the only error is the hook's
    written(cost="softmax_cross_entropy", units=21)
    assert main(["check", "run.toml"]) == 2
    assert "holds 22 classes: 49, 63, 68" in capsys.readouterr().err


@pytest.mark.parametrize("ignored", [(), (2,)])
def test_a_label_of_a_table_that_does_not_count_is_no_class(tmp_path: Path, ignored: tuple[int, ...]) -> None:
    labels = [label for label in (0, 1, 2, -1) if label not in ignored] * 4  # as many as classes, or one more
    rows = [f"{i % 5},{i % 3},{label}" for i, label in enumerate(labels)]
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    losses = []
    for targets in ("auto", "numbers"):
        with Environment("table") as sigma:
            trainer = sigma.create_trainer(
                network="input(2) + output(3) + softmax_cross_entropy(ignore_index=-1)",
                data={"type": "csv", "path": tmp_path / "rows.csv", "target": "label", "targets": targets},
                batch_size=4, backend="numpy", optimiser="adam",
            )  # fmt: skip
            trainer.fit(epochs=3)
            losses.append(trainer.evaluate("training")["loss"])
    assert losses[0] == losses[1]
