"""RAdam: Adam with a rectified adaptive rate."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import live
from sigma_kernel.graph import Node
from sigma_optimisers.moments import Moments, correction, moments


@define(eq=False)
class RAdam(Moments):
    """Update by RAdam: Adam, scaled down while the second moment is uncertain, and without it at first.

    ``r = 2 / (1 - beta2) - 1`` and ``r(t) = r - 2 * t * beta2^t / (1 - beta2^t)`` are lengths of averages. Where
    ``r(t) > 5``, ``p <- p - learning_rate * c * (m / (1 - beta1^t)) / ((sqrt(v) + epsilon) / sqrt(1 - beta2^t))`` with
    ``c^2 = (r(t) - 4) * (r(t) - 2) * r / ((r - 4) * (r - 2) * r(t))``; before,
    ``p <- p - learning_rate * m / (1 - beta1^t)``.

    Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020.  Defaults and arithmetic are those of
    ``torch.optim.RAdam``.

    Args:
        learning_rate: Step size, roughly its upper bound, in units of the parameter.
        beta1: Decay rate of the first moment's moving average.
        beta2: Decay rate of the second moment's moving average.
        epsilon: Avoids division by 0, in units of the gradient.
    """

    learning_rate: float = live(1e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-8, low=0.0)

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        after = moments(gradient, slots, hyper)
        beta2 = hyper["beta2"]
        left = correction("beta2", step, hyper)
        bound = 2.0 / (1.0 - beta2) - 1.0
        length = bound - 2.0 * step * (1.0 - left) / left
        sure = f.greater(length, 5.0)
        factor = _rectification(f.where(sure, length, 6.0), f.where(sure, bound, 6.0)) * f.sqrt(left)
        scale = hyper["learning_rate"] / correction("beta1", step, hyper)
        root = f.where(sure, (f.sqrt(after["second_moment"]) + hyper["epsilon"]) / factor, 1.0)
        return parameter - scale * after["first_moment"] / root, after


def _rectification(length: Node, bound: Node) -> Node:
    """Return the paper's rectification of an average of this length, at most ``bound``; both exceed 4."""
    return f.sqrt((length - 4.0) * (length - 2.0) * bound / ((bound - 4.0) * (bound - 2.0) * length))
