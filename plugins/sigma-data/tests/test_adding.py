from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Adding
from sigma_kernel import SigmaConfigError
from sigma_testing import DatasetSuite


class TestAdding(DatasetSuite):
    def make(self):
        return Adding(rows=20, steps=6)["training"]


@pytest.mark.parametrize("steps", [2, 3, 50])
def test_the_target_is_the_sum_of_two_marked_numbers_one_of_each_half(steps):
    block = Adding(rows=400, steps=steps, split={"training": 0.9, "validation": 0.1})["training"].block(0)
    numbers, marks = np.moveaxis(block["inputs"], -1, 0)
    assert block["inputs"].shape == (360, steps, 2)
    assert block["targets"].shape == (360, 1)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert set(np.unique(marks)) <= {0.0, 1.0}
    assert (marks[:, : steps // 2].sum(1) == 1).all()
    assert (marks[:, steps // 2 :].sum(1) == 1).all()
    np.testing.assert_allclose((numbers * marks).sum(1), block["targets"][:, 0], rtol=1e-6)
    assert (marks.sum(0) > 0).all()  # every step is marked in some row


def test_a_constant_answer_has_the_mean_squared_error_of_two_uniform_numbers():
    targets = Adding(rows=20_000, steps=4)["training"].block(0)["targets"]
    assert np.mean((targets - 1.0) ** 2) == pytest.approx(1 / 6, rel=0.02)


def test_the_seed_decides_the_sequences():
    first, same, other = (Adding(seed=seed)["training"].block(0)["inputs"].tobytes() for seed in (1, 1, 2))
    assert first == same != other


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"steps": 1}])
def test_too_few_rows_or_steps_are_refused(wrong):
    with pytest.raises(SigmaConfigError, match=r"Adding\.(rows|steps): must be at least"):
        Adding(**wrong)
