"""Parameters that are trained later than others begin as new ones: the number of updates is each parameter's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.environment import Environment
from sigma_testing.steering import decisive

RATE, START, WANTED = 0.01, 0.5, 1000.0
LATE = "trainer.optimiser.1-dense.weights.frozen"
Rule = Callable[[float, Callable[[float], float]], Iterator[float]]  # value and gradient -> values after each update


# The published algorithms as torch.optim implements them, for one number, in Python's floats
def adam(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m = v = 0.0
    for t in range(1, 99):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= RATE * m / (1 - 0.9**t) / (sqrt(v / (1 - 0.999**t)) + 1e-8)
        yield x


def adamw(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m = v = 0.0
    for t in range(1, 99):
        g = slope(x)
        x *= 1 - RATE * 0.01
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= RATE * m / (1 - 0.9**t) / (sqrt(v / (1 - 0.999**t)) + 1e-8)
        yield x


def adamax(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m = u = 0.0
    for t in range(1, 99):
        g = slope(x)
        m, u = 0.9 * m + 0.1 * g, max(0.999 * u, abs(g) + 1e-8)
        x -= RATE / (1 - 0.9**t) * m / u
        yield x


def nadam(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m, v, product = 0.0, 0.0, 1.0
    for t in range(1, 99):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        now, then = (0.9 * (1 - 0.5 * 0.96 ** (i * 0.004)) for i in (t, t + 1))
        product *= now
        root = sqrt(v / (1 - 0.999**t)) + 1e-8
        x -= RATE * ((1 - now) / (1 - product) * g + then / (1 - product * then) * m) / root
        yield x


def radam(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m = v = 0.0
    longest = 2 / (1 - 0.999) - 1
    for t in range(1, 99):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        length, change = longest - 2 * t * 0.999**t / (1 - 0.999**t), m / (1 - 0.9**t)
        if length > 5:
            part = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            change *= sqrt(part) * sqrt(1 - 0.999**t) / (sqrt(v) + 1e-8)
        x -= RATE * change
        yield x


def lamb(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    m = v = 0.0
    for t in range(1, 99):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        d = m / (1 - 0.9**t) / (sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * x
        x -= RATE * abs(x) / abs(d) * d
        yield x


def adafactor(x: float, slope: Callable[[float], float]) -> Iterator[float]:
    row = column = 0.0
    for t in range(1, 99):
        g = slope(x)
        row, column = (s + t**-0.8 * (g * g - s) for s in (row, column))
        u = g / sqrt(row * column / row)
        x -= max(1e-3, abs(x)) * min(RATE, 1 / sqrt(t)) * u / max(1.0, abs(u))
        yield x


RULES: dict[str, Rule] = {
    "adam": adam, "adamw": adamw, "adamax": adamax, "nadam": nadam, "radam": radam, "lamb": lamb,
    "adafactor": adafactor,
}  # fmt: skip


def slope(x: float) -> float:
    """Return the gradient of ``(x * START - WANTED)^2``."""
    return 2 * (x * START - WANTED) * START


def two_weights(optimiser: str, frozen: bool, **settings: Any) -> Environment:
    """Return a product of two weights, of which the second never moves; the first may be frozen by a rule."""
    rules: dict[str, Any] = {"second": {"match": "2-output.*", "learning_rate": 0.0}}
    rules |= {"first": {"match": "1-dense.*", "frozen": True}} if frozen else {}
    sigma = Environment("late", seed=0, precision="float64")
    sigma.create_trainer(
        data=(np.ones((2, 1)), np.full((2, 1), WANTED)),
        network="input(1) + dense(1, bias=false) + output(1, bias=false) + squared_difference()",
        batch_size=2,
        backend="numpy",
        initialisers={"all": {"match": "**", "type": "constant", "value": START}},
        optimiser={"type": optimiser, "learning_rate": RATE, "settings": rules},
        **settings,
    )
    return sigma


def train(sigma: Environment, updates: int) -> list[float]:
    """Return the first weight after each of some updates."""
    found = []
    for _ in range(updates):
        sigma.trainer("trainer").fit(iterations=1, progress=False)
        found.append(sigma.get("trainer.network.layers.1-dense.weights").item())
    return found


def expected(optimiser: str, updates: int) -> list[float]:
    return [x for x, _ in zip(RULES[optimiser](START, slope), range(updates), strict=False)]


@pytest.mark.parametrize("optimiser", RULES)
def test_a_released_parameter_takes_the_steps_of_a_new_one(optimiser: str) -> None:
    with two_weights(optimiser, frozen=True) as sigma:
        sigma.trainer("trainer").fit(iterations=100, progress=False)
        sigma.set(LATE, False)
        assert train(sigma, 8) == pytest.approx(expected(optimiser, 8), rel=1e-11)


@pytest.mark.parametrize("optimiser", ["adam", "nadam", "radam"])
def test_iterations_in_which_a_parameter_was_frozen_do_not_count(optimiser: str) -> None:
    with two_weights(optimiser, frozen=False) as sigma:
        before = train(sigma, 3)
        sigma.set(LATE, True)
        sigma.trainer("trainer").fit(iterations=100, progress=False)
        sigma.set(LATE, False)
        assert before + train(sigma, 5) == pytest.approx(expected(optimiser, 8), rel=1e-11)


def test_a_new_optimiser_counts_from_the_beginning() -> None:
    with two_weights("adam", frozen=False) as sigma:
        sigma.trainer("trainer").fit(iterations=50, progress=False)
        sigma.set("trainer.network.layers.1-dense.weights", START)
        own = {"second": {"match": "2-output.*", "learning_rate": 0.0}}
        sigma.swap("optimiser", {"type": "radam", "learning_rate": RATE, "settings": own})
        assert train(sigma, 8) == pytest.approx(expected("radam", 8), rel=1e-11)


def test_a_resumed_run_knows_how_often_each_parameter_was_updated(tmp_path: Path) -> None:
    def begun() -> Environment:
        return two_weights("adam", frozen=True, hooks={"save": {"type": "checkpoint", "every": "9 epochs"}})

    with begun() as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(iterations=20, progress=False)
        sigma.set(LATE, False)
        train(sigma, 3)
        run = sigma.run_folder
        train(sigma, 4)
        wanted = decisive(sigma.trainer("trainer"))[0]
    assert run is not None
    with begun() as again:
        again.resume(run)
        again.prepare()
        counts = [
            again.trainer("trainer").session.host(f"optimiser.slots.{x}.updates")
            for x in ("1-dense.weights", "2-output.weights")
        ]
        assert counts == [7, 27]
        assert decisive(again.trainer("trainer"))[0] == wanted
