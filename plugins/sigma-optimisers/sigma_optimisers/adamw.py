"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import live
from sigma_kernel.graph import Node
from sigma_optimisers.adam import Adam


@define(eq=False)
class AdamW(Adam):
    """Update by Adam after decoupled weight decay, ``p <- p * (1 - learning_rate * weight_decay)``.

    Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019.  Defaults and arithmetic are those of
    ``torch.optim.AdamW``.

    Args:
        weight_decay: Fraction of the parameter removed per unit of learning rate.
    """

    weight_decay: float = live(1e-2, low=0.0)

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        kept = parameter * (1.0 - hyper["learning_rate"] * hyper["weight_decay"])
        return super().update(gradient, kept, slots, step, hyper)
