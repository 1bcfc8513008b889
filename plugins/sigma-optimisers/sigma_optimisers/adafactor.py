"""Adafactor: adaptive steps with sublinear memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot, live
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Adafactor(GradientOptimiser):
    """Update by Adafactor: of a matrix, it keeps the mean squared gradients of rows and of columns only.

    ``w = t^-power`` at step ``t``; ``r`` and ``c`` are means of ``g^2`` over the last axis and over the one before it,
    each ``<- (1 - w) * itself + w * mean``; ``v = r * c / mean(r)``, and of a vector the average of ``g^2`` itself.
    ``u = g / sqrt(v)``, ``p <- p * (1 - learning_rate * weight_decay)``, then
    ``p <- p - max(epsilon, rms(p)) * min(learning_rate, 1 / sqrt(t)) * u / max(1, rms(u) / clip)``, with the ``rms(p)``
    before decay.

    Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018.  Defaults and arithmetic are
    those of ``torch.optim.Adafactor`` (its ``beta2_decay`` is ``-power``, its ``d`` is ``clip``).

    Args:
        learning_rate: Upper bound of the step size, relative to the size of the parameter.
        power: Speed at which the averages get longer.
        epsilon: Lower bound of the size of a parameter.
        clip: Root mean square above which an update is shortened.
        weight_decay: Fraction of the parameter removed per unit of learning rate.
    """

    learning_rate: float = live(1e-2, low=0.0)
    power: float = live(0.8, low=0.0)
    epsilon: float = live(1e-3, low=0.0)
    clip: float = live(1.0, low=0.0)
    weight_decay: float = live(0.0, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the mean squares of rows and columns, or those of a vector's elements."""
        if len(parameter.shape) < 2:
            return {"square": Slot()}
        *outer, rows, columns = parameter.shape
        return {"row_square": Slot(0.0, (*outer, rows, 1)), "column_square": Slot(0.0, (*outer, 1, columns))}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        weight, tiny = step ** -hyper["power"], float(np.finfo(parameter.dtype).eps)
        square = gradient * gradient
        after = {name: old + weight * (_like(square, name) - old) for name, old in slots.items()}
        if "square" in after:
            estimate = after["square"]
        else:
            rows = after["row_square"]
            estimate = rows * after["column_square"] / f.maximum(f.mean(rows, axis=-2, keepdims=True), tiny)
        update = gradient / f.sqrt(f.maximum(estimate, tiny * tiny))
        rate = f.maximum(hyper["epsilon"], _size(parameter)) * f.minimum(hyper["learning_rate"], step**-0.5)
        kept = parameter * (1.0 - hyper["learning_rate"] * hyper["weight_decay"])
        return kept - rate * update / f.maximum(_size(update) / hyper["clip"], 1.0), after


def _like(square: Node, name: str) -> Node:
    """Return squared gradients, or their means as a slot holds them."""
    axis = {"row_square": -1, "column_square": -2}.get(name)
    return square if axis is None else f.mean(square, axis=axis, keepdims=True)


def _size(x: Node) -> Node:
    """Return the root mean square."""
    return f.sqrt(f.mean(x * x))
