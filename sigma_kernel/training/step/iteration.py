"""Record one iteration, with copies of its state and batch, for hooks that repeat it and compare the outcome."""

from __future__ import annotations

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.contracts import Backend, Batches, Burst, Compute
from sigma_kernel.training.step.steps import Steps


@frozen(eq=False)
class Iteration:
    """An iteration: how it was computed, from which arrays (host copies) and rows, and its outcome."""

    compute: Compute
    steps: Steps
    batches: Batches  # one minibatch, all rows of its block
    outcome: dict[str, np.ndarray] = field(factory=dict)

    @classmethod
    def begun(cls, compute: Compute, steps: Steps, batches: Batches) -> Iteration:
        """Return the iteration that is about to run."""
        backend, rows = steps.programs.backend, batches.rows[0]
        sections = steps.programs.model.sections
        block = {name: backend.to_host(backend.take(batches.block[name], rows)) for name in sections}
        before = {name: backend.to_host(value) for name, value in steps.arrays.items()}
        return cls(compute, evolve(steps, arrays=before), Batches(block, np.arange(len(rows), dtype=np.int32)[None]))

    def ended(self, result: Burst) -> Iteration:
        """Return the iteration with its outcome."""
        return evolve(self, outcome=outcome(result, self.steps.programs.backend))


def outcome(result: Burst, backend: Backend) -> dict[str, np.ndarray]:
    """Return the outcome of an iteration: new state, ``training.loss`` and totals of metrics, by name."""
    measured = {f"training.{name.removeprefix('metrics.')}": values[0] for name, values in result.ring.items()}
    return {**{name: backend.to_host(value) for name, value in result.state.items()}, **measured}
