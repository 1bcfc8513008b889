"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec
from sigma_optimisers.moments import correction


@define(eq=False)
class NAdam(GradientOptimiser):
    """Update by NAdam: Adam that looks ahead by Nesterov's momentum, whose share grows with the step ``t``.

    ``a(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2)``, ``c <- c * a(t)``, ``m`` and ``v`` as in Adam,
    ``d = (1 - a(t)) / (1 - c) * g + a(t + 1) / (1 - c * a(t + 1)) * m``,
    ``p <- p - learning_rate * d / (sqrt(v / (1 - beta2^t)) + epsilon)``.

    Dozat, Incorporating Nesterov Momentum into Adam, 2016.  Defaults and arithmetic are those of
    ``torch.optim.NAdam``.

    Args:
        learning_rate: Step size, roughly its upper bound, in units of the parameter.
        beta1: Decay rate of the first moment's moving average, and the momentum that is approached.
        beta2: Decay rate of the second moment's moving average.
        epsilon: Avoids division by 0, in units of the gradient.
        momentum_decay: Speed at which the momentum approaches ``beta1``, from half of it.
    """

    learning_rate: float = live(2e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)
    momentum_decay: float = live(4e-3, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the two moments, and the product of all momenta so far."""
        return {"first_moment": Slot(), "second_moment": Slot(), "momentum_product": Slot(1.0, ())}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        beta1, beta2 = hyper["beta1"], hyper["beta2"]
        now, then = (beta1 * (1.0 - 0.5 * 0.96 ** (t * hyper["momentum_decay"])) for t in (step, step + 1.0))
        product = slots["momentum_product"] * now
        first = beta1 * slots["first_moment"] + (1.0 - beta1) * gradient
        second = beta2 * slots["second_moment"] + (1.0 - beta2) * gradient * gradient
        ahead = (1.0 - now) / (1.0 - product) * gradient + then / (1.0 - product * then) * first
        root = f.sqrt(second) / f.sqrt(correction("beta2", step, hyper)) + hyper["epsilon"]
        after = {"first_moment": first, "second_moment": second, "momentum_product": product}
        return parameter - hyper["learning_rate"] * ahead / root, after
