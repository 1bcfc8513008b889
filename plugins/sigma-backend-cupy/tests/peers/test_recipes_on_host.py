"""Whole steps of every recipe: the kernels, compiled for the processor, have the numbers of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from .recipes import NAMES, SMALL, Comparing, trained

TOLERANCE = 1e-9  # of the largest entry of an array: in float64, sums in another order differ by some 1e-15


def near(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    """Compare arrays: those of integers exactly, floats by the size of the largest."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    else:
        size = float(np.abs(wanted).max(initial=0.0))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * max(size, 1e-3), err_msg=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_a_recipe_has_the_results_of_the_reference(name: str) -> None:
    trained(name, Comparing(near=near), "run.precision=float64", *SMALL.get(name, ()))
