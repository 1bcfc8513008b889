"""Gated recurrent unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Parameter
from sigma_kernel.graph import Node
from sigma_layers.recurrent import Cell, Function, Recurrent, gate
from sigma_layers.settings import call_function, flag


@define(eq=False)
class GRU(Recurrent):
    """Recurrent layer with a reset and an update gate: ``GRU(64, sequence=True)``.

    Computes in each step, from h = 0, with one block of the matrices for each of r, z and n, in this order::

        r = sigmoid(x @ weights + h @ recurrent + biases)
        z = sigmoid(x @ weights + h @ recurrent + biases)
        n = tanh(x @ weights + biases + r * (h @ recurrent + recurrent_biases))
        h = (1 - z) * n + z * h

    Weights are initialised by ``glorot_uniform``, recurrent weights by ``orthogonal``, biases with 0.

    Shapes: ``(batch, time, features)`` -> ``(batch, units)``, or with ``sequence`` ``(batch, time, units)``; twice the
    units if bidirectional; weights ``(features, 3 * units)``, recurrent ``(units, 3 * units)``, biases
    ``(3 * units,)``, recurrent biases ``(units,)``.

    Cho et al., Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation,
    arXiv:1406.1078.

    Args:
        gate_activation: Activation function of the gates r and z: its name, or a function of a node.
        reset_after: Whether the reset gate acts on the recurrent product, as in PyTorch and cuDNN. Otherwise it acts
            on h before the product, as in the paper: ``n = tanh(x @ weights + biases + (r * h) @ recurrent)``.
    """

    gate_activation: str | Function = gate()
    reset_after: bool = field(default=True, validator=flag, kw_only=True)

    gates: ClassVar[int] = 3

    def cell_parameters(self, features: int) -> dict[str, Parameter]:
        """Return weights and biases of r, z and n, and the biases that the reset gate acts on."""
        inside = {"recurrent_biases": Parameter((self.units,))} if self.reset_after else {}
        return super().cell_parameters(features) | inside

    def cell(self, context: Context, p: Mapping[str, Node]) -> Cell:
        """Return the function of one step."""
        gated, activation = (context.resolve("activation", x) for x in (self.gate_activation, self.activation))
        both, third = f.split(p["recurrent"], (2 * self.units, self.units))

        def step_after(now: Node, h: Node) -> tuple[list[Node], list[Node]]:
            x, xn = f.split(now, (2 * self.units, self.units))
            product, hn = f.split(h @ p["recurrent"], (2 * self.units, self.units))
            rz, inside = call_function(gated, x + product), hn + p["recurrent_biases"]
            r, z = f.split(rz, 2)
            n = call_function(activation, xn + r * inside)
            return [n + z * (h - n)], [rz, inside, n]

        def step_before(now: Node, h: Node) -> tuple[list[Node], list[Node]]:
            x, xn = f.split(now, (2 * self.units, self.units))
            rz = call_function(gated, x + h @ both)
            r, z = f.split(rz, 2)
            n = call_function(activation, xn + (r * h) @ third)
            return [n + z * (h - n)], [rz, n]

        return step_after if self.reset_after else step_before
