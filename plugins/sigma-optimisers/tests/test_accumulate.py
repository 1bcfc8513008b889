from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import AccumulateGradients, Adam, Average, ClipGlobalNorm, GradientDescent, ScaleParameter
from sigma_testing import START, Sweep, TransformSuite, Trial, small_environment


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
    with pytest.raises(SigmaConfigError, match="transform 'b': another transform already delays updates. Keep one"):
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


def test_the_batches_of_a_run_equal_one_of_their_size():
    """Four batches of 5 rows, whose costs are means, are one of 20."""
    whole, parts = trained(20), trained(5, transforms={"four": AccumulateGradients(4)})
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)
    assert not np.allclose(trained(5), whole, rtol=1e-2)
