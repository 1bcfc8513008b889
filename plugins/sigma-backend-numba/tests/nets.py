"""Training steps to compile: dense nets with dropout, and convolutions, large enough to be cut into chunks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend, Burst, Step
from sigma_kernel.graph import Graph, Key, Node, Streams, constant, gradient, ops, symbol

ROWS = 64


def finished(
    parameters: dict[str, Node], slots: bool, data: dict[str, Node], loss: Node, extra: dict[str, Node]
) -> Step:
    """Return the step of an optimiser: plain descent, or Adagrad with one slot per parameter."""
    rate, writes, state = symbol(()), {}, dict(parameters)
    for (name, parameter), slope in zip(
        parameters.items(), gradient(loss, list(parameters.values())), strict=True
    ):  # fmt: skip
        if slots:
            state[f"{name}.slot"] = slot = symbol(parameter.shape, parameter.dtype)
            writes[f"{name}.slot"] = slot = slot + slope * slope
            slope = slope / (f.sqrt(slot) + 1e-6)
        writes[name] = parameter - rate * slope
    state |= extra
    writes |= {"iteration": extra["iteration"] + 1} if extra else {}
    graph = Graph((*state.values(), *data.values(), rate), (*writes.values(), loss))
    return Step(graph, tuple(state), tuple(data), ("rate",), tuple(writes), ("loss",))


def dense(*widths: int, batch: int = 50, slots: bool = False, dropout: float = 0.0) -> Step:
    """Return the step of a net of dense layers."""
    parameters: dict[str, Node] = {}
    key, iteration = symbol((2,), "uint32"), symbol((), "uint32")
    draw = Key(key, iteration, constant(0, "uint32"), constant(0, "uint32"), Streams())
    x, y = symbol((batch, widths[0])), symbol((batch,), "int32")
    value = x
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        if number:
            value = f.relu(value)
        if dropout:
            value = draw.for_layer(str(number)).dropout(value, dropout)
        weights, bias = symbol((inputs, outputs)), symbol((outputs,))
        parameters |= {f"weights.{number}": weights, f"bias.{number}": bias}
        value = value @ weights + bias
    loss = f.mean(ops.softmax_cross_entropy(value, y))
    extra = {"key": key, "iteration": iteration} if dropout else {}
    return finished(parameters, slots, {"x": x, "y": y}, loss, extra)


def convolutional(batch: int = 7, filters: int = 8, side: int = 12) -> Step:
    """Return the step of two convolutions with pooling and a dense layer."""
    how: dict[str, Any] = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    pool: dict[str, Any] = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
    x, y = symbol((batch, 1, side, side)), symbol((batch,), "int32")
    parameters: dict[str, Node] = {}
    value = x
    for number, channels in enumerate((filters, 2 * filters)):
        weights, bias = symbol((channels, value.shape[1], 3, 3)), symbol((channels, 1, 1))
        parameters |= {f"weights.{number}": weights, f"bias.{number}": bias}
        value = ops.max_pool(f.relu(ops.convolution(value, weights, **how) + bias), **pool)
    value = f.reshape(value, (batch, -1))
    parameters["weights.2"] = symbol((value.shape[1], 10))
    loss = f.mean(ops.softmax_cross_entropy(value @ parameters["weights.2"], y))
    return finished(parameters, False, {"x": x, "y": y}, loss, {})


def recurrent(batch: int = 32, time: int = 12, units: int = 40, masked: bool = False) -> Step:
    """Return the step of a gated cell over sequences, whose biases act inside of it, and a dense layer."""
    x, y = symbol((batch, time, 24)), symbol((batch,), "int32")
    shapes = {"weights": (24, 3 * units), "weights.inner": (units, 3 * units), "bias": (units,)}
    p = {name: symbol(shape) for name, shape in shapes.items()} | {"weights.out": symbol((units, 10))}

    def cell(h: Node, c: Node, now: Node) -> tuple[list[Node], list[Node]]:
        sums, own = now @ p["weights"], h @ p["weights.inner"]
        i, o, g = (a + b for a, b in zip(f.split(sums, 3), f.split(own, 3), strict=True))
        new = c * f.sigmoid(i) + f.tanh(g + p["bias"])
        out = f.sigmoid(o) * f.tanh(new)
        real = now[:, :1] > 0.3
        after = [f.where(real, out, h), f.where(real, new, c)] if masked else [out, new]
        return after, [out]

    zeros = f.zeros((batch, units))
    (h, _), (outputs,) = f.scan(cell, [zeros, zeros], [f.swap_axes(x, 0, 1)], reverse=masked)
    loss = f.mean(ops.softmax_cross_entropy(h @ p["weights.out"], y)) + f.mean(outputs * outputs)
    return finished(p, False, {"x": x, "y": y}, loss, {})


def start(backend: Backend, step: Step, steps: int = 6) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """Return state, block and rows, drawn from a seed."""
    draw = np.random.default_rng(0)
    state = {}
    for name, node in zip(step.state, step.graph.inputs, strict=False):
        host = (
            draw.normal(size=node.shape) * 0.1
            if "weights" in name and "slot" not in name
            else np.full(node.shape, 0.01)
        )
        state[name] = backend.to_device(np.asarray(host).astype(node.dtype))
    x = step.graph.inputs[len(step.state)]
    block = {
        "x": backend.to_device(draw.random((ROWS, *x.shape[1:])).astype(np.float32)),
        "y": backend.to_device(draw.integers(0, 3, ROWS).astype(np.int32)),
    }
    return state, block, draw.integers(0, ROWS, (steps, x.shape[0])).astype(np.int32)


def train(backend: Backend, step: Step, parts: tuple[int, ...] = (6,), program: Any = None) -> Burst:
    """Return the result of the last of several bursts, with all losses."""
    state, block, rows = start(backend, step, sum(parts))
    program = program or backend.compile(step)
    done, losses = 0, []
    for n in parts:
        burst = program.run(state, block, rows[done : done + n], {"rate": np.float32(0.05)}, n)
        state, done = burst.state, done + n
        losses.append(burst.ring["loss"])
    return Burst(state, {"loss": np.concatenate(losses)}, done)


def bits(burst: Burst) -> dict[str, bytes]:
    """Return everything that a burst writes, as bytes."""
    return {name: np.asarray(value).tobytes() for name, value in (burst.state | burst.ring).items()}
