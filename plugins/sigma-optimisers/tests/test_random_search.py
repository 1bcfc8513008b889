from __future__ import annotations

import itertools

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import RandomSearch
from sigma_testing import OptimiserSuite, Trial


class TestRandomSearch(OptimiserSuite):
    def make(self):
        return RandomSearch()


def test_it_never_goes_up_and_comes_near():
    trial = Trial(RandomSearch(), lambda p: f.sum(f.square(p["x"] - 1.0)), {"x": np.zeros(3)})
    losses = trial.run(200)
    assert all(after <= before for before, after in itertools.pairwise(losses))
    assert losses[-1] < 1e-2


def test_a_search_of_one_point_in_one_dimension_moves_in_half_of_the_steps():
    """Down a slope, half of all normal numbers are down."""
    trial = Trial(RandomSearch(population=1), lambda p: f.sum(p["x"]), {"x": np.zeros(1)})
    losses = np.array(trial.run(400))
    assert 170 < np.sum(np.diff(losses) < 0) < 230  # 3 deviations


def test_points_without_a_loss_are_not_taken():
    trial = Trial(RandomSearch(deviation=3.0), lambda p: f.sum(f.sqrt(p["x"])), {"x": np.ones(2)})
    with np.errstate(invalid="ignore"):
        trial.run(20)
    assert (trial.values["x"] >= 0).all()


@pytest.mark.parametrize("population", [0, 1.5, None])
def test_a_population_has_a_member(population):
    with pytest.raises(SigmaConfigError, match="population: must be"):
        RandomSearch(population=population)
