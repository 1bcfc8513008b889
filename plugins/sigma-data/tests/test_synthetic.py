from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Synthetic
from sigma_kernel import SigmaConfigError, SigmaDataError


def both(data: Synthetic) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return dict(data["training"].block(0)), dict(data["validation"].block(0))


def test_shapes_rows_and_classes_are_as_requested():
    data = Synthetic(rows=100, shape=(3, 4), classes=5, split={"training": 0.9, "validation": 0.1})
    training, validation = both(data)
    assert training["inputs"].shape == (90, 3, 4)
    assert validation["inputs"].shape == (10, 3, 4)
    assert training["inputs"].dtype == np.float32
    assert training["targets"].dtype == np.int32
    assert set(training["targets"].tolist()) == set(range(5))
    assert data.classes == (0, 1, 2, 3, 4)


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    assert both(Synthetic(seed=3))[0]["inputs"].tobytes() == both(Synthetic(seed=3))[0]["inputs"].tobytes()
    assert both(Synthetic(seed=3))[0]["inputs"].tobytes() != both(Synthetic(seed=4))[0]["inputs"].tobytes()


def test_synthetic_classes_can_be_found_by_the_nearest_mean():
    training, validation = both(Synthetic(rows=500, classes=6, shape=(12,)))
    means = np.stack([training["inputs"][training["targets"] == i].mean(axis=0) for i in range(6)])
    nearest = np.linalg.norm(validation["inputs"][:, None] - means, axis=-1).argmin(axis=1)
    assert (nearest == validation["targets"]).mean() > 0.95


def test_least_squares_find_the_linear_teacher():
    data = Synthetic(rows=500, shape=(4, 3), teacher="linear", outputs=2, noise=0.1)
    training, validation = both(data)
    assert training["targets"].shape == (400, 2)
    assert data.classes == ()
    weights = np.linalg.lstsq(training["inputs"].reshape(400, -1), training["targets"], rcond=None)[0]
    rest = validation["targets"] - validation["inputs"].reshape(100, -1) @ weights
    assert rest.std() == pytest.approx(0.1, rel=0.2)
    assert 0.5 < validation["targets"].std() < 2


def test_without_noise_samples_equal_their_centres():
    training, _ = both(Synthetic(rows=200, noise=0.0, classes=3))
    assert len(np.unique(training["inputs"], axis=0)) == 3


def test_sizes_beyond_memory_are_reported():
    with pytest.raises(SigmaDataError, match=r"synthetic: \d+ rows of shape \(1000, 1000\) do not fit into memory"):
        Synthetic(rows=10**13, shape=(1000, 1000))["training"]


@pytest.mark.parametrize(
    "setting", [{"rows": 0}, {"shape": (3, 0)}, {"classes": 0}, {"noise": -1.0}, {"teacher": "me"}]
)
def test_invalid_settings_are_refused(setting):
    with pytest.raises(SigmaConfigError, match=next(iter(setting))):
        Synthetic(**setting)
