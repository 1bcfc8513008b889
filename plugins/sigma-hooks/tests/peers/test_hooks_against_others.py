"""Learning rates agree with PyTorch's ReduceLROnPlateau, images with what Pillow reads."""

from __future__ import annotations

import io

import numpy as np
import pytest

from sigma_hooks import ReduceOnPlateau
from sigma_kernel.contracts import PictureValue
from sigma_testing import Desk

RATE = "optimiser.learning_rate"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"patience": 3}, {"patience": 2}),
        ({"patience": 2, "rest": 3, "by": 0.05}, {"patience": 1, "cooldown": 3, "threshold": 0.05}),
        ({"patience": 1, "better": "higher", "least": 0.02}, {"patience": 0, "mode": "max", "min_lr": 0.02}),
    ],
)
def test_learning_rates_fall_at_the_same_steps_as_torchs(seed, ours, theirs):
    torch = pytest.importorskip("torch")
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    settings = {"factor": 0.5, "threshold_mode": "abs", "threshold": 0.0, "eps": 0.0, **theirs}
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, **settings)
    hook, desk = ReduceOnPlateau("x", factor=0.5, **ours), Desk({RATE: 1.0})
    for value in np.random.default_rng(seed).normal(size=60).cumsum() * 0.1:
        scheduler.step(value)
        desk.values["x"], desk.commands = float(value), []
        hook.fire(desk)
        for _, arguments in desk.commands:
            desk.values[RATE] = arguments["value"]
        assert desk.values[RATE] == optimiser.param_groups[0]["lr"]


@pytest.mark.parametrize("shape", [(5, 7, 1), (6, 3, 3), (1, 1, 1)])
def test_images_round_trip_through_the_reader(shape):
    images = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    read = np.asarray(images.open(io.BytesIO(PictureValue(pixels).encode())))
    assert read.reshape(shape).tolist() == pixels.tolist()
