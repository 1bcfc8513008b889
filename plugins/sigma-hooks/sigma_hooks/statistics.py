"""Summary statistics of arrays: mean, standard deviation, norm, minimum, maximum and share of zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.settings import deep_iterable, in_

MEASURES: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean, "deviation": np.std, "minimum": np.min, "maximum": np.max,
    "norm": lambda values: np.linalg.norm(values.ravel()),
    "zeros": lambda values: np.mean(values == 0),
}  # fmt: skip


@define(eq=False, kw_only=True)
class Statistics(Hook):
    """Publish ``statistics.<address>.<measure>`` for every array or number that the pattern ``of`` matches.

    Gradients, updates and activations are those of the last iteration.

    Args:
        of: Pattern of values: parameters (``network.layers.**``), ``gradients.**``, ``updates.**`` or
            ``activations.**``.
        measures: What to publish: ``mean``, standard ``deviation``, Euclidean ``norm``, ``minimum``, ``maximum``, or
            ``zeros``, the share of elements that are 0.
    """

    every: TimeStep = every(1, "epoch")
    of: str = field(default="network.layers.**", kw_only=False)
    measures: Sequence[str] = field(default=("mean", "deviation"), validator=deep_iterable(in_(tuple(MEASURES))))

    @property
    def reads(self) -> Sequence[str]:
        """Return the pattern."""
        return [self.of]

    @property
    def writes(self) -> Sequence[str]:
        """Return the pattern of all addresses."""
        return ["statistics.**"]

    def fire(self, context: HookContext) -> None:
        """Publish the measures of each array."""
        for address, value in read_all(context, self.of).items():
            values = np.asarray(value, np.float64)
            for measure in self.measures if values.size else ():
                context.publish(f"statistics.{address}.{measure}", float(MEASURES[measure](values)))
