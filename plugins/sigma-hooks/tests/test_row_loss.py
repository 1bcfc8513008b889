"""The losses of rows: those of closed forms, and the rows with the greatest ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_hooks import RowLoss
from sigma_kernel import Environment, SigmaConfigError, every
from sigma_kernel.contracts import Hook, RowLosses
from sigma_layers import (
    BinaryCrossEntropy,
    Concat,
    Dense,
    Dropout,
    FunctionCost,
    Input,
    Output,
    SoftmaxCrossEntropy,
    SquaredDifference,
)
from sigma_testing import HookSuite

DRAW = np.random.default_rng(2)
X = DRAW.normal(size=(47, 3))
LABELS, NUMBERS = DRAW.integers(0, 3, 47), DRAW.normal(size=(47, 2))
WEIGHTS = DRAW.uniform(0.5, 2.0, 47)
WEIGHTS[[3, 8]] = 0.0
CLASSES = [0.2, 1.0, 5.0]
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])


class TestRowLoss(HookSuite):
    def make(self) -> Hook:
        return RowLoss(on="validation", most=3)


def trained(network: Any, data: Any, backend: str = "numpy", **settings: Any) -> Any:
    sigma = Environment("rows", seed=3, precision="float64")
    settings = {"optimiser": {"type": "gradient_descent", "learning_rate": 0.1}, "batch_size": 10, **settings}
    made = sigma.create_trainer(network=network, data=data, backend=backend, **settings)
    made.fit(epochs=2)
    return made


def losses(trainer: Any, most: int | None = None, on: str = "training") -> RowLosses:
    found: RowLosses = trainer.view.losses(on, most)
    return found


# -- closed forms ------------------------------------------------------------------------------------------------------
@BACKENDS
@pytest.mark.parametrize("classes", [None, CLASSES])
@pytest.mark.parametrize("weights", [{}, {"weights": WEIGHTS}])
def test_softmax_cross_entropy_is_minus_the_logarithm_of_the_label(backend: str, classes: Any, weights: Any) -> None:
    network = Input(3) + Dropout(0.5) + Output(3) + SoftmaxCrossEntropy(class_weights=classes)
    made = trained(network, {"inputs": X, "targets": LABELS, **weights}, backend)
    probabilities = made.predict(X)
    wanted = -np.log(probabilities[np.arange(47), LABELS]) * (WEIGHTS > 0 if weights else 1.0)
    found = losses(made)
    np.testing.assert_allclose(found.losses, wanted, rtol=1e-10)
    assert found.rows.tolist() == list(range(47))
    assert found.predicted is not None
    assert found.targets is not None
    assert found.predicted.tolist() == probabilities.argmax(1).tolist()
    assert found.targets.tolist() == LABELS.tolist()


def test_the_mean_of_the_rows_is_the_loss_of_the_split() -> None:
    made = trained(Input(3) + Output(3) + SoftmaxCrossEntropy(), (X, LABELS))
    assert made.evaluate("training")["loss"] == pytest.approx(losses(made).losses.mean(), rel=1e-12)
    made = trained(Input(3) + Output(2) + SquaredDifference(), (X, NUMBERS, WEIGHTS))
    mean = np.average(losses(made).losses, weights=WEIGHTS)
    assert made.evaluate("training")["loss"] == pytest.approx(mean, rel=1e-12)


@BACKENDS
def test_squared_difference_is_the_mean_square_of_the_row(backend: str) -> None:
    made = trained(Input(3) + Output(2) + SquaredDifference(weight=3.0), (X, NUMBERS), backend)
    said = made.predict(X)
    found = losses(made)
    np.testing.assert_allclose(found.losses, 3.0 * ((said - NUMBERS) ** 2).mean(1), rtol=1e-10)
    np.testing.assert_allclose(found.predicted, said, rtol=1e-12)
    np.testing.assert_allclose(found.targets, NUMBERS, rtol=1e-12)


def test_class_probabilities_and_decisions_are_compared_as_classes() -> None:
    made = trained(Input(3) + Output(3) + SoftmaxCrossEntropy(), (X, np.eye(3)[LABELS]))
    np.testing.assert_allclose(losses(made).losses, -np.log(made.predict(X)[np.arange(47), LABELS]), rtol=1e-10)
    assert (losses(made).targets == LABELS).all()
    yes = LABELS > 1
    made = trained(Input(3) + Output(1) + BinaryCrossEntropy(), (X, yes))
    said = made.predict(X)[:, 0]
    np.testing.assert_allclose(losses(made).losses, -np.log(np.where(yes, said, 1 - said)), rtol=1e-10)
    assert (losses(made).predicted == (said > 0.5)).all()
    assert (losses(made).targets == yes).all()


def test_several_costs_are_added() -> None:
    trunk = Input(3) + Dense(4, activation="tanh")
    sized = Output(2, name="long") + SquaredDifference(targets="size", weight=0.5)
    trunk.link(sized)
    network = [trunk + Output(3, name="kind") + SoftmaxCrossEntropy(targets="kind"), sized]
    made = trained(network, {"inputs": X, "kind": LABELS, "size": NUMBERS})
    said = made.predict(X)
    wanted = -np.log(said["kind"][np.arange(47), LABELS]) + 0.5 * ((said["long"] - NUMBERS) ** 2).mean(1)
    np.testing.assert_allclose(losses(made).losses, wanted, rtol=1e-10)
    assert (losses(made).targets == LABELS).all()


def test_a_cost_of_one_s_own_is_judged_row_by_row() -> None:
    cost = FunctionCost(lambda y, t: ((y - t) ** 4).mean() ** 0.5)  # not a mean over rows
    made = trained(Input(3) + Output(2) + cost, (X, NUMBERS))
    wanted = ((made.predict(X) - NUMBERS) ** 4).mean(1) ** 0.5
    np.testing.assert_allclose(losses(made).losses, wanted, rtol=1e-10)


def test_targets_may_be_the_inputs() -> None:
    made = trained(Input(3) + Output(3) + SquaredDifference(targets="inputs"), {"inputs": X})
    np.testing.assert_allclose(losses(made).losses, ((made.predict(X) - X) ** 2).mean(1), rtol=1e-10)


def test_preprocessors_are_applied_to_the_rows() -> None:
    made = trained(
        Input(3) + Output(2) + SquaredDifference(),
        (X * 100 + 7, NUMBERS),
        preprocessors={"scaled": {"type": "standardise", "section": "inputs"}},
    )
    np.testing.assert_allclose(losses(made).losses, ((made.predict(X * 100 + 7) - NUMBERS) ** 2).mean(1), rtol=1e-10)


# -- the worst ---------------------------------------------------------------------------------------------------------
def test_the_worst_rows_come_first_and_lower_numbers_among_equal_ones() -> None:
    x, y = np.concatenate([X, X]), np.concatenate([NUMBERS, NUMBERS])
    made = trained(Input(3) + Output(2) + SquaredDifference(), (x, y))
    every_one, worst = losses(made), losses(made, 6)
    order = np.argsort(-every_one.losses, kind="stable")[:6]
    assert worst.rows.tolist() == order.tolist()
    assert worst.losses.tolist() == every_one.losses[order].tolist()
    assert worst.rows[1] == worst.rows[0] + 47
    assert losses(made, 1000).rows.size == 94


def test_losses_that_are_no_numbers_are_the_worst_and_end_nothing() -> None:
    targets = np.ones((47, 2))
    targets[[5, 20]] = 0.0
    cost = FunctionCost(lambda y, t: ((y - t) ** 2 / t).mean())
    made = Environment("rows", precision="float64").create_trainer(
        network=Input(3) + Output(2) + cost, data=(X, targets), backend="numpy", optimiser="adam"
    )
    made.prepare()
    with np.errstate(all="ignore"):
        found = losses(made, 3)
    assert {*found.rows[:2].tolist()} == {5, 20}
    assert not np.isfinite(found.losses[:2]).any()
    assert np.isfinite(found.losses[2])


def test_a_loss_that_is_not_a_number_is_worse_than_any_other() -> None:
    found = RowLosses(np.arange(5), np.array([1.0, np.nan, -np.inf, np.nan, 7.0]), np.arange(5) * 2)
    assert found.worst(4).rows.tolist() == [1, 3, 4, 0]
    assert found.worst(2).predicted is not None
    assert found.worst(2).predicted.tolist() == [2, 6]  # type: ignore[union-attr]
    assert found.worst(2).targets is None


def test_what_the_hook_publishes_is_what_the_session_measures() -> None:
    made = trained(Input(3) + Output(2) + SquaredDifference(), (X, NUMBERS), hooks={"worst": RowLoss(most=4)})
    published, worst = made.session.state.published, losses(made, 4)
    assert published["training.row_loss.rows"] == worst.rows.tolist()
    assert published["training.row_loss.losses"] == worst.losses.tolist()


def test_the_number_of_rows_is_limited() -> None:
    for wrong in (0, 1001, 2.5):
        with pytest.raises(SigmaConfigError, match="RowLoss.most: must be"):
            RowLoss(most=wrong)  # type: ignore[arg-type]
    assert RowLoss().every == every(1, "epoch")


def test_two_inputs_and_a_merge_are_judged_as_they_are_predicted() -> None:
    left, right = Input(3), Input(2, section="more")
    network = Concat(left + Dense(4), right) + Output(3) + SoftmaxCrossEntropy()
    made = trained(network, {"inputs": X, "more": NUMBERS, "targets": LABELS})
    said = made.predict({"inputs": X, "more": NUMBERS})
    np.testing.assert_allclose(losses(made).losses, -np.log(said[np.arange(47), LABELS]), rtol=1e-10)
