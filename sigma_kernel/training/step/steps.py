"""Run iterations from a state: fused into bursts, or in parts, for operators that cut batches into shards.

A shard is some rows of a batch.  Its gradients are computed separately, merged with those of the other shards, and
applied in one update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Batches, Burst, Iterations, Metric, Share, Step
from sigma_kernel.training.step.live import Live
from sigma_kernel.training.step.model import GRADIENTS, WEIGHTS, Model
from sigma_kernel.training.step.programs import Programs

Arrays = Mapping[str, Any]  # on the device, by name
Records = dict[str, np.ndarray]
_NOTHING = np.zeros((1, 0), np.int32)


@frozen(eq=False)
class Steps:
    """Compute iterations from a state: its arrays, and the live values in force."""

    programs: Programs
    arrays: Arrays
    live: Live
    moment: Moment

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics that are recorded at each training step."""
        return self.programs.model.metrics

    def steer(self, step: Step, n: int = 1, offset: int = 0) -> dict[str, Any]:
        """Return the live values of ``n`` iterations of a step, ``offset`` iterations from now."""
        return self.live.at(step, self.moment, n, offset)

    def fused(self, batches: Batches) -> Burst:
        """Run whole iterations on minibatches."""
        n, size = batches.rows.shape
        step, program = self.programs.get(Model.training, size)
        return program.run(self.arrays, batches.block, batches.rows, self.steer(step, n), n)

    # -- shards --------------------------------------------------------------------------------------------------------
    def weights(self, arrays: Arrays, block: Arrays, rows: np.ndarray, shard: int, offset: int) -> Records:
        """Return the mean weight of the rows of a batch, by cost; ``shard`` is the size of one of its shards.

        The result is empty if all rows have equal weight.
        """
        if not any(name.startswith(WEIGHTS) for name in self.programs.get(Model.gradients, shard)[0].steer):
            return {}
        step, program = self.programs.get(Model.weights, len(rows))
        ring = program.run(arrays, block, rows[None], self.steer(step, offset=offset), 1).ring
        return {name: values[0] / len(rows) for name, values in ring.items()}

    def share(
        self,
        arrays: Arrays,
        block: Arrays,
        rows: np.ndarray,
        start: int,
        offset: int,
        weights: Mapping[str, np.ndarray],
    ) -> Share:
        """Return the share of a shard: these ``rows`` of a batch, starting at row ``start``."""
        step, program = self.programs.get(Model.gradients, len(rows))
        shares = {name: each * each.dtype.type(len(rows)) for name, each in weights.items()}
        steer = {**self.steer(step, offset=offset), **shares, "shard.row": np.uint32(start)}
        ring = program.run(arrays, block, rows[None], {name: steer[name] for name in step.steer}, 1).ring
        found = {name: values[0] for name, values in ring.items()}
        gradients = {name: found.pop(name) for name in ring if name.startswith(GRADIENTS)}
        state = {name: found.pop(name) for name in ring if name in arrays}
        return Share(found, gradients, state)

    def updated(
        self, arrays: Arrays, gradients: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray], offset: int
    ) -> Arrays:
        """Return the arrays after the update with merged gradients, and with merged layer state."""
        step, program = self.programs.get(Model.update)
        place = self.programs.backend.to_device
        given = {name: place(value) for name, value in gradients.items()}
        layers = {name: place(value) for name, value in state.items()}
        new = program.run({**arrays, **given, **layers}, {}, _NOTHING, self.steer(step, offset=offset), 1).state
        return {**{name: new[name] for name in arrays}, **layers}


def fused(steps: Iterations, batches: Batches) -> Burst:
    """Compute a burst with the fused program."""
    return steps.fused(batches)
