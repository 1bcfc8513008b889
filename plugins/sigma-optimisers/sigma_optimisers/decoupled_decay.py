"""Parameter modifier: decoupled weight decay, for any optimiser."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Modifier, Objective, live
from sigma_kernel.graph import Node


@define(eq=False)
class DecoupledDecay(Modifier):
    """Subtract ``learning_rate * factor * p`` of the parameter ``p`` before the update from the updated one.

    Decay takes no part in the gradient, and so not in moments or norms of it, unlike that of ``l2``. The learning rate
    is that of the parameter, with its schedule. With ``adam``, it is ``adamw``.  Raises SigmaConfigError if the
    optimiser has no learning rate.

    Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019; same as ``weight_decay`` of
    ``torch.optim.AdamW``.

    Args:
        factor: Fraction of the parameter removed per unit of learning rate.
    """

    factor: float = live(1e-2, low=0.0)

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after decay; there are no slots."""
        rate = objective.setting(address, "learning_rate") * objective.setting(owner, "factor")
        return parameter - rate * objective.parameters[address], {}
