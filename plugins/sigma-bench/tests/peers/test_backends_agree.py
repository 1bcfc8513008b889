"""All backends compute what the meanings of the ops say, in recipes: each op alone, and whole steps."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")

from sigma_bench.differ.lockstep import Lockstep
from sigma_kernel import catalogue
from sigma_run.config import load_configuration
from sigma_run.launcher import open_document

BACKENDS = ("numpy", "numba", "torch", "jax")
SMALL = "data.batch_size=10"
ATTENTION = "input(8, 8) + transformer_encoder(2, hidden=8) + layer_norm() + flatten()"
RECIPES = {
    "digits": [SMALL],
    "cnn": [SMALL],
    "lstm": [SMALL],
    "digits with attention": [SMALL, f"network.architecture={ATTENTION} + output(10) + softmax_cross_entropy()"],
}


@pytest.mark.long_cases("digits with attention", "lstm")
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_op_and_every_step_of_a_recipe_agrees_on_all_backends(recipe: str) -> None:
    assert all(find_spec(f"sigma_backend_{name}") for name in BACKENDS)
    configuration = load_configuration(open_document(recipe.partition(" ")[0], RECIPES[recipe]), catalogue())
    for one in Lockstep(configuration, {name: name for name in BACKENDS}, 32.0).steps(2):
        assert one.first_deviation is None
        assert {each.backend for each in (*one.ops, *one.results)} == {*BACKENDS}
        assert max(one.apart.values()) < 100 * one.rounding
