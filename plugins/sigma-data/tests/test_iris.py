from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Iris
from sigma_kernel import SigmaConfigError

ROWS = Iris().all_rows()[0].block(0)


def test_there_are_fifty_flowers_of_each_species():
    assert np.bincount(ROWS["targets"]).tolist() == [50, 50, 50]
    assert Iris().classes == ("setosa", "versicolor", "virginica")
    for part, rows in ((Iris()["training"], 40), (Iris()["validation"], 10)):
        assert np.bincount(part.block(0)["targets"]).tolist() == [rows] * 3


def test_the_first_flowers_are_those_of_the_paper():
    wanted = [[5.1, 3.5, 1.4, 0.2], [4.9, 3.0, 1.4, 0.2], [4.7, 3.2, 1.3, 0.2]]
    np.testing.assert_array_equal(ROWS["inputs"][:3], np.array(wanted, np.float32))


def test_the_measurements_have_the_documented_extremes_and_means():
    inputs = ROWS["inputs"]
    np.testing.assert_allclose(inputs.min(axis=0), [4.3, 2.0, 1.0, 0.1], rtol=1e-6)
    np.testing.assert_allclose(inputs.max(axis=0), [7.9, 4.4, 6.9, 2.5], rtol=1e-6)
    np.testing.assert_allclose(inputs.mean(axis=0), [5.84, 3.05, 3.76, 1.20], atol=0.01)


def test_the_split_can_be_chosen():
    iris = Iris(split={"training": 0.5, "validation": 0.3, "test": 0.2}, split_by="block")
    assert list(iris) == ["training", "validation", "test"]
    assert [len(part) for part in iris.values()] == [75, 45, 30]
    assert set(iris["test"].block(0)["targets"].tolist()) == {2}


def test_the_seed_draws_other_rows():
    assert Iris(seed=1)["validation"].block(0)["inputs"].tolist() != Iris()["validation"].block(0)["inputs"].tolist()


def test_data_is_not_read_before_it_is_used(monkeypatch):
    monkeypatch.setattr("sigma_data.datasets.iris.read_shipped_table", lambda name: pytest.fail("it was read"))
    iris = Iris()
    assert list(iris) == ["training", "validation"]
    assert len(iris) == 2
    assert "test" not in iris


def test_a_split_without_training_is_refused():
    with pytest.raises(SigmaConfigError, match="split: there is no 'training' among train, test. Give it a share"):
        Iris(split={"train": 0.8, "test": 0.2})


@pytest.mark.parametrize("setting", [{"split_by": "luck"}, {"seed": -1}])
def test_invalid_settings_are_refused(setting):
    with pytest.raises(SigmaConfigError, match=next(iter(setting))):
        Iris(**setting)


def test_an_unknown_split_is_a_key_error():
    with pytest.raises(KeyError, match="test"):
        Iris()["test"]
