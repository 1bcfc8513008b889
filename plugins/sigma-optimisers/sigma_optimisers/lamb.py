"""LAMB: Adam with a step size per layer."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import live
from sigma_kernel.graph import Node
from sigma_optimisers.moments import Moments, direction, moments


@define(eq=False)
class Lamb(Moments):
    """Update by LAMB: the direction of AdamW, with a length in proportion to the norm of the parameter.

    ``d = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * p``,
    ``p <- p - learning_rate * |p| / |d| * d``, and without the ratio where ``|p|`` or ``|d|`` is 0; ``m`` and ``v`` are
    the moments of Adam.

    You et al., Large Batch Optimization for Deep Learning: Training BERT in 76 minutes, 2020, algorithm 2 with the
    identity as its function of norms.

    Args:
        learning_rate: Step size, as a fraction of the norm of each parameter.
        beta1: Decay rate of the first moment's moving average.
        beta2: Decay rate of the second moment's moving average.
        epsilon: Avoids division by 0, in units of the gradient.
        weight_decay: Weight of the parameter in the direction.
    """

    learning_rate: float = live(1e-3, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)
    epsilon: float = live(1e-6, low=0.0)
    weight_decay: float = live(1e-2, low=0.0)

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        after = moments(gradient, slots, hyper)
        adaptive = direction(after, step, hyper) + hyper["weight_decay"] * parameter
        size, length = f.norm(parameter), f.norm(adaptive)
        usual = f.logical_and(f.greater(size, 0.0), f.greater(length, 0.0))
        ratio = f.where(usual, size / f.where(usual, length, 1.0), 1.0)
        return parameter - hyper["learning_rate"] * ratio * adaptive, after
