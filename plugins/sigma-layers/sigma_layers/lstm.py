"""Long short-term memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import is_finite, must
from sigma_layers.recurrent import Cell, Function, Recurrent, gate
from sigma_layers.settings import call_function


@frozen
class ForgetBias(Initialiser):
    """The initial biases: those of the forget gate, the second of four blocks, have a value, the others are 0."""

    value: float

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return the biases."""
        return np.repeat((0.0, self.value, 0.0, 0.0), parameter.shape[0] // 4)


@define(eq=False)
class LSTM(Recurrent):
    """Recurrent layer with a memory cell and three gates: ``LSTM(64, sequence=True)``.

    Computes in each step, from h = c = 0, with one block of the matrices for each of i, f, g and o, in this order::

        i, f, o = sigmoid(x @ weights + h @ recurrent + biases)
        g = tanh(x @ weights + h @ recurrent + biases)
        c = f * c + i * g
        h = o * tanh(c)

    Weights are initialised by ``glorot_uniform``, recurrent weights by ``orthogonal``, biases with 0, but those of the
    forget gate f with ``forget_bias``.

    Shapes: ``(batch, time, features)`` -> ``(batch, units)``, or with ``sequence`` ``(batch, time, units)``; twice the
    units if bidirectional; weights ``(features, 4 * units)``, recurrent ``(units, 4 * units)``, biases
    ``(4 * units,)``.

    Hochreiter and Schmidhuber, Long Short-Term Memory, 1997; Gers, Schmidhuber and Cummins, Learning to Forget:
    Continual Prediction with LSTM, 2000.

    Args:
        gate_activation: Activation function of the gates: its name, or a function of a node.
        forget_bias: Initial biases of the forget gate: with 1, the cell keeps its memory at first (Jozefowicz, Zaremba
            and Sutskever, 2015).
    """

    gate_activation: str | Function = gate()
    forget_bias: float = field(
        default=1.0, validator=must(is_finite, "a finite number", SigmaNetworkError), kw_only=True
    )

    gates: ClassVar[int] = 4
    states: ClassVar[tuple[str, ...]] = ("hidden", "memory")

    def cell_parameters(self, features: int) -> dict[str, Parameter]:
        """Return weights and biases of i, f, g and o."""
        parameters = super().cell_parameters(features)
        return parameters | {"biases": evolve(parameters["biases"], initialiser=ForgetBias(self.forget_bias))}

    def cell(self, context: Context, p: Mapping[str, Node]) -> Cell:
        """Return the function of one step."""
        gated, activation = (context.resolve("activation", x) for x in (self.gate_activation, self.activation))

        def step(now: Node, h: Node, c: Node) -> tuple[list[Node], list[Node]]:
            both, g, o = f.split(now + h @ p["recurrent"], (2 * self.units, self.units, self.units))
            both, g, o = call_function(gated, both), call_function(activation, g), call_function(gated, o)
            i, forget = f.split(both, 2)
            c = forget * c + i * g
            out = call_function(activation, c)
            return [o * out, c], [both, g, o, out]

        return step
