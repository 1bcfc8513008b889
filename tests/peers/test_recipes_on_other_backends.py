"""Every recipe trains on every other backend to what the reference computes; a new recipe is tested with the others."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from figures import files
from sigma_kernel import catalogue
from sigma_recipes.plugin import RECIPES
from sigma_run import config

ITERATIONS = 3
SMALL = ["data.rows=12", "data.batch_size=4"]
PIXELS = "data.dataset={ type = 'sigma-data:synthetic', rows = 12, shape = [28, 28], classes = 10 }"
FEW = {
    **{name: SMALL for name in RECIPES if name.startswith("bench-") or name == "lstm"},
    "charmodel": ["data.length=10", "data.split={training=0.002, validation=0.001}"],
    "mnist": [PIXELS, "data.batch_size=4"],
    "parkinsons": ["data.path=VOICES"],
}


@cache
def trained(name: str, backend: str) -> dict[str, np.ndarray]:
    """Return the whole state after a few iterations, in float64: parameters, slots, layer state, the random key."""
    few = [one.replace("VOICES", str(files.voices())) for one in FEW.get(name, [])]
    settings = [f"run.backend={backend}", "run.precision=float64", *few]
    text = catalogue().load("recipe", name).text
    with config.build(config.load(text, settings, name=name)) as environment:
        (trainer,) = environment.trainers.values()
        trainer.fit(iterations=ITERATIONS)
        return dict(trainer.session.snapshot().arrays)


@pytest.mark.long_cases("jax-bench-transformer", "jax-charmodel", "jax-gan", "jax-mnist")
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_recipe_has_the_state_of_the_reference(backend: str, name: str) -> None:
    found, wanted = trained(name, backend), trained(name, "numpy")
    assert found.keys() == wanted.keys()
    for address, value in wanted.items():
        assert found[address].dtype == value.dtype
        near = 1e-9 * max(1.0, np.abs(value).max(initial=0)) if value.dtype.kind == "f" else 0
        np.testing.assert_allclose(found[address], value, rtol=1e-9, atol=near, err_msg=address)
