"""Compare gradients with finite differences: near zero, for large inputs, and near kinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import field, frozen

from sigma_kernel import functions as f
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Node, symbol

Arrays = Sequence[np.ndarray]
SCALES = (1e-3, 1.0, 30.0, 1e3)  # of normally distributed inputs
COORDINATES = 6  # tried at a kink


@frozen(eq=False)
class Slopes:
    """The sum of an output times positive weights, and its gradients in the inputs at some ``places``; in float64."""

    inputs: Sequence[Node]
    output: Node
    places: Sequence[int]
    weights: np.ndarray = field(init=False)
    run: Callable[..., Arrays] = field(init=False)

    @weights.default
    def _(self) -> np.ndarray:
        return np.random.default_rng(2).uniform(0.3, 2.0, self.output.shape)

    @run.default
    def _(self) -> Callable[..., Arrays]:
        weights = symbol(self.output.shape, "float64")
        loss = f.sum(self.output * weights)
        slopes = gradient(loss, [self.inputs[i] for i in self.places])
        run = interpret(Graph((*self.inputs, weights), (loss, *slopes, f.sum(f.abs(self.output)))), numpy_namespace())
        return lambda values: run(*values, self.weights)

    def loss(self, values: Arrays, place: int, by: np.ndarray) -> float:
        """Return the sum with one input moved."""
        return float(self.run([x + by if i == place else x for i, x in enumerate(values)])[0])

    def check(self, values: Arrays, scale: float = 1.0) -> None:
        """Compare along random directions, wherever the sum is finite on both sides."""
        draw, (_, *gradients, size) = np.random.default_rng(3), self.run(values)
        for place, slopes in zip(self.places, gradients, strict=True):
            step = 1e-6 * max(float(np.abs(values[place]).mean()), 1e-2) if slopes.size else 1.0
            along = draw.normal(size=slopes.shape)
            up, down = (self.loss(values, place, by * along) for by in (step, -step))
            if np.isfinite([up, down]).all():
                noise = 1e-6 + 1e-13 * float(size) / step
                where = f"the gradient in input {place}, for inputs of scale {scale:g}"
                np.testing.assert_allclose(
                    np.sum(slopes * along), (up - down) / (2 * step), rtol=1e-5, atol=noise, err_msg=where
                )

    def check_kinks(self, values: Arrays) -> None:
        """Check that each slope is between those on both sides, which differ at a kink."""
        middle, *gradients, _ = self.run(values)
        for place, slopes in zip(self.places, gradients, strict=True):
            for at in [*np.ndindex(slopes.shape)][:COORDINATES]:
                step = np.zeros(slopes.shape)
                step[at] = 1e-7
                right = (self.loss(values, place, step) - middle) / 1e-7
                left = (middle - self.loss(values, place, -step)) / 1e-7
                if np.isfinite([left, right]).all():
                    slack = 1e-5 * (1.0 + abs(left) + abs(right))
                    between = min(left, right) - slack <= slopes[at] <= max(left, right) + slack
                    assert between, f"the slope {slopes[at]} in input {place}{at} is not between {left} and {right}"
