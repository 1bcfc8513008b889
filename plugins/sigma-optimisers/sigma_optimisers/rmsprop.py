"""RMSprop: divide by a running root mean square of the gradients."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class RMSprop(GradientOptimiser):
    """Update by RMSprop: divide each gradient by a running root mean square.

    ``s <- decay * s + (1 - decay) * g^2``, ``p <- p - learning_rate * g / (sqrt(s) + epsilon)``.

    Tieleman and Hinton, Lecture 6.5 of Neural Networks for Machine Learning, 2012.  Defaults and arithmetic are those
    of ``torch.optim.RMSprop`` (its ``alpha`` is ``decay``), not centred and without momentum.

    Args:
        learning_rate: Typical step size, in units of the parameter.
        decay: Decay rate of the moving average.
        epsilon: Avoids division by 0, in units of the gradient.
    """

    learning_rate: float = live(1e-2, low=0.0)
    decay: float = live(0.99, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the average of squared gradients."""
        return {"square_gradient": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        squares = hyper["decay"] * slots["square_gradient"] + (1.0 - hyper["decay"]) * gradient * gradient
        change = gradient / (f.sqrt(squares) + hyper["epsilon"])
        return parameter - hyper["learning_rate"] * change, {"square_gradient": squares}
