"""The loop computes the same as Sigma, and names what it does not support."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_bench.contestants.numpy_loop import NumpyLoop, cross_entropy
from sigma_bench.contestants.sigma import Sigma
from sigma_bench.translation import to_workload
from sigma_kernel import SigmaConfigError
from sigma_run.config import load

HEAD, TAIL = "network.architecture=input(3, 3) + ", " + output(3) + softmax_cross_entropy()"
WORKS = {
    "as it is": [],
    "gradient descent": ["trainer.optimiser={ type = 'gradient_descent', learning_rate = 0.1 }"],
    "adagrad with settings": ["trainer.optimiser={ type = 'adagrad', epsilon = 0.1, initial_accumulator = 0.5 }"],
    "whole batches only": ["data.last_batch=drop"],
    "rows in their own order": ["data.iterator=sequential"],
    "no hidden layer": [f"{HEAD}flatten(){TAIL}"],
    "no relu": [f"{HEAD}flatten() + dense(4) + dropout(0.5) + dense(4){TAIL}"],
    "dropout before flatten, twice, and before the cost": [
        f"{HEAD}dropout(0.3) + dropout(0.1) + flatten() + dense(3, activation='relu') + dropout(0.2) + output()"
        " + softmax_cross_entropy()"
    ],
    "relu before the cost": [f"{HEAD}flatten() + output(3, activation='relu') + softmax_cross_entropy()"],
    "nothing dropped": [f"{HEAD}flatten() + dropout(0.0) + dense(4){TAIL}"],
}
REFUSED = {
    "adam": ["trainer.optimiser=adam"],
    "momentum": ["trainer.optimiser=momentum"],
    "the activation 'tanh'": [f"{HEAD}flatten() + dense(4, activation='tanh'){TAIL}"],
    "sums without biases": [f"{HEAD}flatten() + dense(4, bias=false){TAIL}"],
    "samples with several axes": [f"{HEAD}dense(4) + flatten(){TAIL}"],
    "convolution": [
        "data.shape=[1, 3, 3]",
        f"network.architecture=input(1, 3, 3) + conv2d(2) + flatten(){TAIL}",
    ],
}


def pair(path: Path, *overrides: str) -> tuple[Sigma, NumpyLoop]:
    sigma = Sigma(load(path, overrides))
    return sigma, NumpyLoop(to_workload(sigma.trainer))


@pytest.mark.parametrize("overrides", WORKS.values(), ids=WORKS)
def test_forty_losses_equal_sigmas(small: Path, overrides: list[str]) -> None:
    sigma, loop = pair(small, "run.precision=float64", *overrides)
    for contestant in (sigma, loop):
        contestant.run(15)
        contestant.run(25)
    assert len(loop.losses) == 40
    np.testing.assert_allclose(loop.losses, sigma.losses, rtol=1e-9)


def test_it_computes_in_float32_for_float32(small: Path) -> None:
    sigma, loop = pair(small)
    for contestant in (sigma, loop):
        contestant.run(5)
    np.testing.assert_allclose(loop.losses, sigma.losses, rtol=1e-4)
    arrays = [loop._batch, loop._slopes, *(update.x for stage in loop._stages for update in stage.updates)]
    assert {array.dtype for array in arrays} == {np.dtype("float32")}


def test_the_gradient_of_the_cost_agrees_with_finite_differences() -> None:
    draw = np.random.default_rng(0)
    scores, labels = draw.normal(size=(4, 3)), np.array([0, 2, 1, 1])
    slope, spare = np.empty_like(scores), np.empty_like(scores)
    cross_entropy(scores, labels, slope)
    for place in np.ndindex(scores.shape):
        shift = np.zeros_like(scores)
        shift[place] = 1e-6
        up, down = (cross_entropy(scores + way * shift, labels, spare) for way in (1, -1))
        assert slope[place] == pytest.approx((up - down) / 2e-6, abs=1e-8)


@pytest.mark.parametrize(("what", "overrides"), REFUSED.items(), ids=REFUSED)
def test_unsupported_work_is_refused_with_a_reason(small: Path, what: str, overrides: list[str]) -> None:
    with pytest.raises(SigmaConfigError, match="peer 'numpy-loop': .*it does not support .*Leave it out") as refused:
        pair(small, *overrides)
    assert what in str(refused.value)
