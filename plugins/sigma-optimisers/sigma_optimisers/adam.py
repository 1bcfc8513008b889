"""Adam: adaptive moment estimation, with bias correction."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Slot, live
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import instance_of
from sigma_optimisers.moments import Moments, correction, moments


@define(eq=False)
class Adam(Moments):
    """Update by Adam: bias-corrected first moment over the root of the second, ``t`` being the number of the step.

    ``m <- beta1 * m + (1 - beta1) * g``, ``v <- beta2 * v + (1 - beta2) * g^2``,
    ``p <- p - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)``.

    With ``amsgrad``, ``v`` in the last formula is the largest that it has been, element by element.

    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015; Reddi, Kale and Kumar, On the Convergence of Adam
    and Beyond, 2018, for ``amsgrad``.  Defaults and arithmetic are those of ``torch.optim.Adam``.

    Args:
        learning_rate: Step size, roughly its upper bound, in units of the parameter.
        beta1: Decay rate of the first moment's moving average.
        beta2: Decay rate of the second moment's moving average.
        epsilon: Avoids division by 0, in units of the gradient.
        amsgrad: Divide by the largest second moment so far, so that no rate grows again.
    """

    learning_rate: float = live(1e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)
    amsgrad: bool = field(default=False, kw_only=True, validator=instance_of(bool, "true or false"))

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the two moments, in units of the gradient and of its square, and the largest second one."""
        return {**super().slots(parameter), **({"largest_moment": Slot()} if self.amsgrad else {})}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        after = moments(gradient, slots, hyper)
        if self.amsgrad:
            after["largest_moment"] = f.maximum(slots["largest_moment"], after["second_moment"])
        # The bias corrections are applied to scalars and to one root, which saves a pass over the whole array.
        scale = hyper["learning_rate"] / correction("beta1", step, hyper)
        root = f.sqrt(after["largest_moment" if self.amsgrad else "second_moment"])
        root = root / f.sqrt(correction("beta2", step, hyper))
        return parameter - scale * after["first_moment"] / (root + hyper["epsilon"]), after
