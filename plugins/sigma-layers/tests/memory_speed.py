"""Print the memory and the time of a step with values kept and recomputed: python memory_speed.py [BACKEND].

Rounds of both alternate, and the median of the processor times counts.  Not a test: times differ between machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sigma_kernel import Environment
from sigma_kernel.contracts import Trainer
from sigma_step.graphs import training_step

ROUNDS, ITERATIONS = 5, 4
RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(64, size=(16 * ITERATIONS, 128)).astype("i4")
TEXT = {"inputs": TOKENS, "targets": np.roll(TOKENS, -1, axis=1)}
WIDE = {
    name: RANDOM.normal(size=(2048 * ITERATIONS, side)).astype("f4") for name, side in (("inputs", 256), ("targets", 8))
}
PICTURES = {
    "inputs": RANDOM.normal(size=(64 * ITERATIONS, 16, 32, 32)).astype("f4"),
    "targets": RANDOM.normal(size=(64 * ITERATIONS, 8)).astype("f4"),
}
END = "output(8) + squared_difference()"


def transformer(depth: int) -> str:
    """Return the network of the recipe bench-transformer, with other depths."""
    return (
        f'input(128, dtype="int32") + embedding(64, 128) + learned_positions() + {depth} * transformer_encoder(4, '
        "hidden=512, causal=true, recompute=MARK) + layer_norm() + output(64) + softmax_cross_entropy()"
    )


UNIT = 'conv2d(16, 3, padding="same") + batch_norm() + activation("relu")'
CASES: dict[str, tuple[str, Mapping[str, np.ndarray], int]] = {
    "transformer, 4 blocks (`bench-transformer`)": (transformer(4), TEXT, 16),
    "transformer, 24 blocks": (transformer(24), TEXT, 16),
    "48 dense layers of 256, marked by fours": (
        f'input(256) + 12 * subnetwork(4 * dense(256, activation="gelu"), recompute=MARK) + {END}', WIDE, 2048
    ),
    "16 convolutions with batch norm, marked by fours": (
        f"input(16, 32, 32) + 4 * subnetwork(4 * subnetwork({UNIT}), recompute=MARK) + flatten() + {END}", PICTURES, 64
    ),
}  # fmt: skip


def prepare(network: str, data: Mapping[str, np.ndarray], batch: int, backend: str, mark: bool) -> tuple[Trainer, int]:
    """Return a trainer that has compiled its step, and the memory of the step."""
    settings: dict[str, Any] = {"data": data, "batch_size": batch, "backend": backend, "optimiser": "adam"}
    trainer: Any = Environment("memory", seed=0, folder=None).create_trainer(**settings)
    trainer.network = network.replace("MARK", str(mark).lower())
    trainer.fit(epochs=1)
    return trainer, trainer.session.setup.programs.get(training_step, batch)[1].peak_bytes


def main() -> None:
    """Print a row for each network."""
    backend = (*sys.argv[1:], "numba")[0]
    for name, (network, data, batch) in CASES.items():
        pairs = [prepare(network, data, batch, backend, mark) for mark in (False, True)]
        spent: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for (trainer, _), times in zip(pairs, spent, strict=True):
                start = time.process_time()
                trainer.fit(epochs=1)
                times.append((time.process_time() - start) / ITERATIONS)
        memory = [peak / 1e6 for _, peak in pairs]
        took = [statistics.median(times) * 1e3 for times in spent]
        print(
            f"| {name} | {memory[0]:.0f} MB | {memory[1]:.0f} MB | {memory[1] / memory[0]:.2f} | {took[0]:.0f} ms "
            f"| {took[1]:.0f} ms | {took[1] / took[0]:.2f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
