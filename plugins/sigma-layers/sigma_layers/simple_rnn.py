"""Simple recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Context
from sigma_kernel.graph import Node
from sigma_layers.recurrent import Cell, Recurrent
from sigma_layers.settings import call_function


@define(eq=False)
class SimpleRNN(Recurrent):
    """Feed the outputs of each step back into the next: ``SimpleRNN(32, sequence=True)``.

    Computes ``h = activation(x @ weights + h @ recurrent + biases)`` in each step, from h = 0. Weights are initialised
    by ``glorot_uniform``, recurrent weights by ``orthogonal``, biases with 0.

    Shapes: ``(batch, time, features)`` -> ``(batch, units)``, or with ``sequence`` ``(batch, time, units)``; twice the
    units if bidirectional; weights ``(features, units)``, recurrent ``(units, units)``, biases ``(units,)``.

    Elman, Finding Structure in Time, 1990.
    """

    def cell(self, context: Context, p: Mapping[str, Node]) -> Cell:
        """Return the function of one step."""
        activation = context.resolve("activation", self.activation)

        def step(now: Node, h: Node) -> tuple[list[Node], list[Node]]:
            h = call_function(activation, now + h @ p["recurrent"])
            return [h], [h]

        return step
