"""The adversarial cost, against loops over its formulas, and as both sides of a pair."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from sigma_kernel import Environment, Network
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Spec
from sigma_layers import Adversarial, Dense, Input
from sigma_testing import CostSuite

from .costing import cost, predicted, totals

SAID = np.random.default_rng(0).normal(size=(6, 2))
ROWS = np.array([1.0, 0.0, 2.5, 0.25, 1.0, 2.0])
FORMS = {
    ("logistic", "real"): lambda x: -log(1 / (1 + exp(-x))),
    ("logistic", "generated"): lambda x: -log(1 - 1 / (1 + exp(-x))),
    ("least_squares", "real"): lambda x: (x - 1) ** 2,
    ("least_squares", "generated"): lambda x: x**2,
    ("hinge", "real"): lambda x: max(0.0, 1 - x),
    ("hinge", "generated"): lambda x: max(0.0, 1 + x),
    ("wasserstein", "real"): lambda x: -x,
    ("wasserstein", "generated"): lambda x: x,
}


class TestAdversarial(CostSuite):
    inputs = (Spec((1,)),)

    def make(self):
        return Adversarial("generated")


class TestAdversarialLeastSquares(CostSuite):
    inputs = (Spec((2,)),)

    def make(self):
        return Adversarial("real", form="least_squares")


@pytest.mark.parametrize(("form", "side"), FORMS)
def test_it_is_the_mean_of_its_formula_over_all_elements(form, side):
    terms = np.vectorize(FORMS[form, side])(SAID)
    layer = Adversarial(side, form)
    assert cost(layer, SAID) == pytest.approx(terms.mean(), rel=1e-12)
    assert totals(layer, SAID, weights=ROWS) == pytest.approx(
        (np.sum(ROWS[:, None] * terms), 2 * ROWS.sum()), rel=1e-12
    )


def test_predictions_are_probabilities_of_real_if_they_have_that_meaning():
    np.testing.assert_allclose(predicted(Adversarial("real"), SAID), 1 / (1 + np.exp(-SAID)), rtol=1e-12)
    np.testing.assert_array_equal(predicted(Adversarial("real", form="hinge"), SAID), SAID)


def test_it_never_overflows():
    far = np.array([[-1e4, 1e4]])
    assert cost(Adversarial("real"), far) == cost(Adversarial("generated"), far) == 5000.0


@pytest.mark.parametrize("wrong", [{"side": "fake"}, {"side": "real", "form": "quadratic"}])
def test_unknown_sides_and_forms_are_refused(wrong):
    with pytest.raises(SigmaConfigError, match=r"Adversarial\.(side|form): must be '"):
        Adversarial(**wrong)


def test_its_text_is_parsed_again():
    network = Network.build(Input(3) + Dense(1) + Adversarial("generated", form="hinge", weight=0.5))
    assert 'adversarial("generated", form="hinge", weight=0.5)' in str(network)
    with Environment("text") as sigma:
        trainer = sigma.create_trainer(data={"inputs": SAID}, network=str(network).replace("(3)", "(2)"))
        trainer.optimiser, trainer.epochs = "adam", 1
        trainer.fit()
        assert str(trainer.session.setup.model.network) == str(network).replace("(3)", "(2)")
