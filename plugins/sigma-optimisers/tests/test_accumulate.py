from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.testing import START, Sweep, TransformSuite, Trial, small_environment
from sigma_optimisers import AccumulateGradients, Adam, Average, ClipGlobalNorm, GradientDescent, ScaleParameter


class TestAccumulate(TransformSuite):
    transforms = False  # the mean of one gradient is the gradient

    def make(self):
        return AccumulateGradients(3)


def after(optimiser, steps, **settings):
    trial = Trial(optimiser, **settings)
    trial.run(steps)
    return trial


def test_an_update_takes_place_after_every_third_batch_alone():
    trial = Trial(Adam(0.1, transforms={"three": AccumulateGradients(3)}))
    moved = []
    for _ in range(7):
        before = {key: value.copy() for key, value in trial.values.items()}
        trial.run(1)
        moved.append(any(not np.array_equal(before[a], trial.values[a]) for a in START))
    assert moved == [False, False, True, False, False, True, False]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_three_equal_batches_give_the_update_of_one(precision):
    """All steps of the test's problem have the same batch, so that the mean is its gradient."""
    slow = after(Adam(0.1, transforms={"three": AccumulateGradients(3)}), 12, dtype=precision)
    plain = after(Adam(0.1), 4, dtype=precision)
    for address, value in plain.values.items():
        bound = 1e-5 if precision == "float32" else 1e-13
        np.testing.assert_allclose(slow.values[address], value, rtol=bound, atol=bound)
        np.testing.assert_allclose(slow.slots[address, "first_moment"], plain.slots[address, "first_moment"], rtol=1e-4)
        assert slow.slots[address, "transforms.three.sum"].tolist() == np.zeros_like(value).tolist()


def test_transforms_after_it_act_on_the_mean():
    """Gradients of 3 and -1 cancel in part before they are clipped."""
    trial = Trial(
        GradientDescent(1.0, transforms={"two": AccumulateGradients(2), "short": ClipGlobalNorm(10.0)}),
        lambda p: f.sum(p["x"]) * 3.0,
        {"x": np.zeros(1)},
    )
    trial.run(2)
    assert trial.values["x"] == pytest.approx([-3.0])


def test_modifiers_act_on_updates_alone():
    modifiers = {"half": ScaleParameter(0.5), "average": Average(0.5)}
    trial = after(GradientDescent(0.0, transforms={"two": AccumulateGradients(2)}, modifiers=modifiers), 5)
    np.testing.assert_array_equal(trial.values["0-dense.biases"], START["0-dense.biases"] / 4)
    assert trial.slots["0-dense.biases", "modifiers.average.count"] == 2


def test_parameters_that_do_not_match_are_updated_in_every_step():
    trial = after(GradientDescent(0.1, transforms={"two": AccumulateGradients(2, match="0-*.*")}), 1)
    moved = {address for address in START if not np.array_equal(trial.values[address], START[address])}
    assert moved == {"1-dense.weights"}


def test_two_of_them_for_one_parameter_are_refused():
    with pytest.raises(SigmaConfigError, match="transform 'b': another transform holds back updates already. Keep one"):
        Trial(GradientDescent(0.1, transforms={"a": AccumulateGradients(2), "b": AccumulateGradients(2)}))
    Trial(
        GradientDescent(
            0.1, transforms={"a": AccumulateGradients(2, match="0-*.*"), "b": AccumulateGradients(3, match="1-*.*")}
        )
    )


@pytest.mark.parametrize("batches", [0, -1, 1.5, True, "two"])
def test_the_number_of_batches_is_a_whole_number_from_1_on(batches):
    with pytest.raises(SigmaConfigError, match="batches: must be"):
        AccumulateGradients(batches)


def trained(size, **settings):
    """Return the weights after six updates; the order of the rows does not depend on the size of batches."""
    with small_environment(Sweep(), rows=40, batch_size=size) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = Adam(0.05, **settings)
        trainer.fit(iterations=6 * 20 // size)
        return np.asarray(sigma.get("trainer.network.layers.weights"))


ROWS = np.random.default_rng(0)
INPUTS, LABELS, WEIGHTS = ROWS.normal(size=(40, 3)), ROWS.integers(0, 3, 40), ROWS.uniform(0.0, 2.0, 40)
LABELS[:9] = -1  # nearly the whole first batch of ten


def weights_after_one_update(
    size, network="input(3) + output(3) + softmax_cross_entropy(ignore_index=-1)", data=None, **settings
):
    """Return the weights after an epoch of 40 rows in batches of a size, whose gradients are accumulated."""
    transforms = {"a": {"type": "accumulate", "batches": 40 // size}} if size < 40 else {}
    settings = {"backend": "numpy", **settings}
    with Environment("accumulated", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data=data or {"inputs": INPUTS, "targets": LABELS}, network=network, iterator="sequential", batch_size=size,
            optimiser={"type": "gradient_descent", "learning_rate": 0.5, "transforms": transforms}, **settings,
        )  # fmt: skip
        trainer.fit(epochs=1, progress=False)
        return {name: sigma.get(f"trainer.network.layers.{name}") for name in ("1-output.weights", "1-output.biases")}


CLASSED = "input(3) + output(3) + softmax_cross_entropy(ignore_index=-1, class_weights=[0.2, 1, 5])"
WEIGHTED = 'input(3) + output(3) + softmax_cross_entropy(weights="rows", ignore_index=-1)'
COUNTED = {"inputs": INPUTS, "targets": LABELS, "rows": WEIGHTS}
CASES = {
    "ignored labels": {},
    "class weights": {"network": CLASSED},
    "row weights": {"network": WEIGHTED, "data": COUNTED},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [20, 10, 4])
@pytest.mark.parametrize("operator", [{}, {"operator": {"type": "local", "shards": 3}}], ids=["whole", "shards"])
def test_batches_of_unequal_weight_are_one_update_of_all_rows(case, size, operator):
    whole, parts = (weights_after_one_update(n, **CASES[case], **more) for n, more in ((40, {}), (size, operator)))
    for name, value in whole.items():
        np.testing.assert_allclose(parts[name], value, rtol=1e-12, atol=1e-13)


def test_the_update_of_batches_with_ignored_labels_is_that_of_the_known_ones():
    """Softmax regression by hand: the mean over the 31 rows that have a label."""
    with Environment("start", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data={"inputs": INPUTS, "targets": LABELS}, network=CASES["class weights"]["network"], batch_size=40
        )
        sigma.prepare()
        start = np.array(trainer.parameters()["network.layers.1-output.weights"])
    known = LABELS >= 0
    scores = np.exp(INPUTS[known] @ start)
    slope = INPUTS[known].T @ (scores / scores.sum(1, keepdims=True) - np.eye(3)[LABELS[known]]) / known.sum()
    np.testing.assert_allclose(weights_after_one_update(10)["1-output.weights"], start - 0.5 * slope, rtol=1e-12)


def test_a_smaller_last_batch_counts_for_its_rows():
    cut = {"a": {"type": "accumulate", "batches": 3}}
    with Environment("cut", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data={"inputs": INPUTS, "targets": LABELS}, iterator="sequential", batch_size=16, backend="numpy",
            network="input(3) + output(3) + softmax_cross_entropy(ignore_index=-1)",
            optimiser={"type": "gradient_descent", "learning_rate": 0.5, "transforms": cut},
        )  # fmt: skip
        trainer.fit(epochs=1, progress=False)  # of 16, 16 and 8 rows
        weights = sigma.get("trainer.network.layers.1-output.weights")
    np.testing.assert_allclose(weights, weights_after_one_update(40)["1-output.weights"], rtol=1e-12)


def test_batches_whose_rows_all_weigh_nothing_change_nothing():
    nothing = {"inputs": INPUTS, "targets": np.full(40, -1)}
    assert np.isfinite(weights_after_one_update(10, data=nothing)["1-output.weights"]).all()


def test_the_batches_of_a_run_equal_one_of_their_size():
    """Four batches of 5 rows, whose costs are means, are one of 20."""
    whole, parts = trained(20), trained(5, transforms={"four": AccumulateGradients(4)})
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)
    assert not np.allclose(trained(5), whole, rtol=1e-2)
