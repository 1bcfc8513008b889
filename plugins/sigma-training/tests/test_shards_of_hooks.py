"""What hooks read of the shards of a batch: gradients of the mean loss over the rows of each, and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import every
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import Do

ROWS = np.random.default_rng(0).normal(size=(10, 3))
TARGETS = ROWS @ np.array([[1.0], [-2.0], [0.5]]) + 0.25
WEIGHTS = "1-output.weights"


def observed(shards: int = 4, batch_size: int = 10, reads: Any = None, **settings: Any) -> list[dict[str, Any]]:
    """Return what a hook reads after the first two iterations of a linear network, with the weights before each."""
    seen: list[dict[str, Any]] = []
    patterns = reads or ("shards.*.gradients.**", "shards.*.rows", "gradients.**", "network.layers.**")

    def look(context: Any) -> None:
        found = {}
        for pattern in patterns:
            value = context.read(pattern)
            found |= value if isinstance(value, dict) else {pattern: value}
        seen.append({name: np.array(x) for name, x in found.items() if x is not None})

    hook = Do(does=look, every=every(1, "iteration"), reads=patterns, **settings)
    with Environment("shards", seed=0, precision="float64") as sigma:
        sigma.create_trainer(
            data=(ROWS, TARGETS), network="input(3) + output(1) + squared_difference()", backend="numpy",
            optimiser={"type": "gradient_descent", "learning_rate": 0.05}, batch_size=batch_size,
            operator={"type": "local", "shards": shards}, hooks={"look": hook}, iterator="sequential",
        )  # fmt: skip
        sigma.prepare()
        first = sigma.trainer("trainer").session.host(f"network.layers.{WEIGHTS}")
        sigma.trainer("trainer").fit(iterations=2, progress=False)
    for number, found in enumerate(seen):
        found["before"] = first if not number else seen[number - 1].get(f"network.layers.{WEIGHTS}")
        found["biases before"] = 0.0 if not number else seen[number - 1].get("network.layers.1-output.biases")
    return seen


def gradient(rows: np.ndarray, weights: np.ndarray, biases: Any) -> np.ndarray:
    """Return the gradient of the mean squared error over some rows."""
    errors = ROWS[rows] @ weights + biases - TARGETS[rows]
    return np.asarray(2.0 * ROWS[rows].T @ errors / len(rows))


@pytest.mark.parametrize("shards", [1, 3, 4])
def test_each_shard_has_the_gradient_of_its_own_mean_loss(shards: int) -> None:
    for found in observed(shards):
        sizes = []
        for number in range(shards):
            rows = found[f"shards.{number}.rows"]
            wanted = gradient(rows, found["before"], found["biases before"])
            np.testing.assert_allclose(found[f"shards.{number}.gradients.{WEIGHTS}"], wanted, rtol=1e-9)
            sizes.append(len(rows))
        assert sorted(np.concatenate([found[f"shards.{n}.rows"] for n in range(shards)])) == [*range(10)]
        parts = [found[f"shards.{n}.gradients.{WEIGHTS}"] * size / 10 for n, size in enumerate(sizes)]
        np.testing.assert_allclose(sum(parts), found[f"gradients.{WEIGHTS}"], rtol=1e-9)
        assert f"shards.{shards}.rows" not in found


def test_a_small_batch_has_fewer_shards() -> None:
    found = observed(4, batch_size=2)[0]
    assert {name for name in found if name.endswith(".rows")} == {"shards.0.rows", "shards.1.rows"}


@pytest.mark.parametrize("address", ["shards.1.rows", f"shards.0.gradients.{WEIGHTS}"])
def test_one_address_is_read_alone(address: str) -> None:
    assert {*observed(reads=(address,))[0]} == {address, "before", "biases before"}


@pytest.mark.parametrize("wrong", ["shards.0.gradients.2-dense.weights", "shards.*.activations.**", "shards.0.losses"])
def test_what_no_shard_has_is_refused(wrong: str) -> None:
    with pytest.raises(SigmaConfigError, match="hooks.look: reads .*, which nothing here publishes"):
        observed(reads=(wrong,))


def test_reading_shards_changes_no_bits() -> None:
    def weights(**hooks: Any) -> bytes:
        with Environment("same", seed=0) as sigma:
            sigma.create_trainer(
                data=(ROWS, TARGETS), network="input(3) + dense(4) + output(1) + squared_difference()",
                optimiser="adam", batch_size=5, operator={"type": "local", "shards": 2}, backend="numpy", hooks=hooks,
            )  # fmt: skip
            sigma.trainer("trainer").fit(epochs=3, progress=False)
            return bytes(sigma.trainer("trainer").session.host("network.layers.1-dense.weights"))

    look = Do(does=lambda context: context.read("shards.**"), every=every(1, "iteration"), reads=["shards.**"])
    assert weights(look=look) == weights()
