"""Track the update-to-weight ratio of each layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from sigma_hooks.reading import read_all
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class UpdateRate(Hook):
    """Publish ``update_rate.<address>``: the standard deviation of a parameter's update over that of the parameter.

    The update is that of the last iteration. About 1e-3 is usual for layers that train well. A parameter whose
    elements are all equal has no rate.

    Args:
        match: Pattern of the parameters, relative to ``network.layers``; by default each layer's weights.
    """

    every: TimeStep = every(1, "epoch")
    match: str = field(default="**.weights", kw_only=False)

    @property
    def reads(self) -> Sequence[str]:
        """Return the updates and the parameters."""
        return [f"updates.{self.match}", f"network.layers.{self.match}"]

    @property
    def writes(self) -> Sequence[str]:
        """Return the pattern of all addresses."""
        return ["update_rate.**"]

    def fire(self, context: HookContext) -> None:
        """Publish the ratio for each parameter."""
        updates, parameters = (read_all(context, pattern) for pattern in self.reads)
        for address, update in updates.items():
            name = address.removeprefix("updates.")
            size = float(np.std(parameters.get(f"network.layers.{name}", 0.0), dtype=np.float64))
            if size > 0:
                context.publish(f"update_rate.{name}", float(np.std(update, dtype=np.float64)) / size)
