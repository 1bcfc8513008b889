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
FINE = 1e-6  # the step for functions that bend within a step which suits the scale of their inputs
BESIDE = (1e-7, 1e-9)  # the steps at a kink: functions may bend within the first one


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
        """Compare along random directions, wherever the sum is finite on both sides, by one of two steps."""
        draw, (_, *gradients, size) = np.random.default_rng(3), self.run(values)
        for place, slopes in zip(self.places, gradients, strict=True):
            step = 1e-6 * max(float(np.abs(values[place]).mean()), 1e-2) if slopes.size else 1.0
            along = draw.normal(size=slopes.shape)
            slope, where = np.sum(slopes * along), f"the gradient in input {place}, for inputs of scale {scale:g}"
            if step <= FINE or not self._is_secant(values, place, along, slope, FINE, float(size)):
                secant, noise = self._secant(values, place, along, step, float(size))
                if np.isfinite(secant):
                    np.testing.assert_allclose(slope, secant, rtol=1e-5, atol=noise, err_msg=where)

    def _secant(self, values: Arrays, place: int, along: np.ndarray, step: float, size: float) -> tuple[float, float]:
        """Return the slope of the sum between two sides, and how far it may be off."""
        up, down = (self.loss(values, place, by * along) for by in (step, -step))
        with np.errstate(invalid="ignore"):
            return float((np.float64(up) - down) / (2 * step)), 1e-6 + 1e-13 * size / step

    def _is_secant(self, values: Arrays, place: int, along: np.ndarray, slope: float, step: float, size: float) -> bool:
        secant, noise = self._secant(values, place, along, step, size)
        return bool(np.isclose(slope, secant, rtol=1e-5, atol=noise))

    def check_kinks(self, values: Arrays) -> None:
        """Check that each slope is between those on both sides, which differ at a kink."""
        middle, *gradients, _ = self.run(values)
        for place, slopes in zip(self.places, gradients, strict=True):
            for at in [*np.ndindex(slopes.shape)][:COORDINATES]:
                sides = [self._sides(values, place, at, step, float(middle)) for step in BESIDE]
                if np.isfinite(sides[0]).all():
                    left, right = sides[0]
                    between = any(_lies_between(slopes[at], *side) for side in sides)
                    assert between, f"the slope {slopes[at]} in input {place}{at} is not between {left} and {right}"

    def _sides(
        self, values: Arrays, place: int, at: tuple[int, ...], step: float, middle: float
    ) -> tuple[float, float]:
        """Return the slopes of the sum to the left and to the right, along one coordinate."""
        along = np.zeros(values[place].shape)
        along[at] = step
        left, right = (self.loss(values, place, by) for by in (-along, along))
        return (middle - left) / step, (right - middle) / step


def _lies_between(slope: float, left: float, right: float) -> bool:
    slack = 1e-5 * (1.0 + abs(left) + abs(right))
    return min(left, right) - slack <= slope <= max(left, right) + slack
