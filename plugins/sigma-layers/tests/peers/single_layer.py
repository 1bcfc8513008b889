"""A layer alone, and the same in PyTorch: outputs, new state, and gradients in inputs and in parameters."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import functions as f  # noqa: E402
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, symbol  # noqa: E402
from sigma_testing import trace_layer  # noqa: E402

STEPS, RATE, TOLERANCE = 100, 0.05, 1e-9
SINGLE, TIMES = 2e-5, 16  # bounds in float32: of the largest entry of all, and of what rounding the inputs changes


class Ours:
    """A layer's graph: its output, new state, and the gradients of a mean squared error in inputs and parameters."""

    def __init__(self, case, precision, backend=None):
        given = [case.given.get(f"input {i}", np.zeros(0)).dtype for i in range(len(case.shapes))]
        specs = [
            Spec(shape, precision if one.kind == "f" else str(one))
            for shape, one in zip(case.shapes, given, strict=True)
        ]
        it = trace_layer(case.layer, specs, training=True, precision=precision)
        target = symbol(it.output.shape, precision)
        self.live = [str(it.shapes.live[name].value) for name in it.names if name in it.shapes.live]
        self.names = [name.removeprefix("0-it.") for name in it.names]
        fixed = {*it.shapes.state, *it.shapes.live, *case.given}
        self.moved = [i for i, name in enumerate(it.names) if name not in fixed]
        self.state = [name.removeprefix("0-it.") for name in it.changes]
        loss = f.mean(f.square(it.output - target))
        slopes = gradient(loss, [it.graph.inputs[i] for i in self.moved])
        graph = Graph((*it.graph.inputs, target), (*it.graph.outputs, *slopes))
        self.compute = backend.lower(graph, {}) if backend else interpret(graph, numpy_namespace())
        self.output, self.inputs, self.settings, self.given = it.output, it.graph.inputs, it.shapes.live, case.given

    def values(self):
        """Return values by name, and a target."""
        random = np.random.default_rng(5)
        found = {name: random.normal(size=x.shape) for name, x in zip(self.names, self.inputs, strict=True)}
        found |= {name: np.abs(found[name]) + 0.5 for name in self.state}
        found |= {name.removeprefix("0-it."): np.asarray(one.value) for name, one in self.settings.items()}
        found |= self.given
        return found, random.normal(size=self.output.shape)

    def run(self, values, target):
        """Return the output, new state by name, and gradients by name."""
        dtype = self.output.dtype
        given = [x.astype(dtype) if x.dtype.kind == "f" else x for x in (values[name] for name in self.names)]
        output, *rest = self.compute(*given, target.astype(dtype))
        state = dict(zip(self.state, rest, strict=False))
        return output, state, dict(zip([self.names[i] for i in self.moved], rest[len(state) :], strict=True))


def in_torch(case, names, values, target, state):
    """Return the same, computed by PyTorch in float64."""
    given = {name: torch.tensor(values[name], requires_grad=name in names) for name in values}
    inputs = [given[f"input {i}"] for i in range(len(case.shapes))]
    output = case.in_torch(*inputs, given)
    torch.nn.functional.mse_loss(output, torch.tensor(target)).backward()
    slopes = {
        name: np.zeros_like(values[name]) if given[name].grad is None else given[name].grad.numpy() for name in names
    }
    return output.detach().numpy(), {name: given[name].numpy() for name in state}, slopes


def flat(found):
    """Yield names and arrays of outputs, state and gradients."""
    for one in found:
        yield from one.items() if isinstance(one, dict) else [("output", one)]


def agree(found, expected, rounded=None):
    """Compare arrays by name; in float32, with what rounding the inputs alone changes."""
    ours, theirs = dict(flat(found)), dict(flat(expected))
    assert ours.keys() == theirs.keys()
    moved = dict(flat(rounded or expected))
    largest = max(1.0, *(np.abs(value).max(initial=0) for value in theirs.values()))
    for name, value in theirs.items():
        assert ours[name].shape == value.shape, name
        slack = TIMES * np.abs(moved[name] - value).max(initial=0) + SINGLE * largest if rounded else TOLERANCE
        relative = 0 if rounded else TOLERANCE
        np.testing.assert_allclose(ours[name], value, rtol=relative, atol=slack, err_msg=name)


def compare(case, precision, backend=None):
    """Compare the layer in a precision with PyTorch in float64."""
    ours = Ours(case, precision, backend)
    values, target = ours.values()
    found = ours.run(values, target)
    given = {name: x.astype(precision).astype(x.dtype) if x.dtype.kind == "f" else x for name, x in values.items()}
    names = list(found[2])
    expected, rounded = (in_torch(case, names, dict(one), target, ours.state) for one in (values, given))
    agree(found, expected, rounded if precision == "float32" else None)


def moved(values, state, slopes):
    """Return values after a step against the gradients, none of which is longer than the rate."""
    steps = {name: RATE * slope / max(1.0, np.abs(slope).max(initial=0)) for name, slope in slopes.items()}
    return {**values, **state, **{name: values[name] - step for name, step in steps.items()}}


def compare_steps(case, steps=STEPS):
    """Compare parameters, inputs and state after steps of gradient descent on both of the former.

    Steps may be chaotic: how far rounding the start alone moves PyTorch's own result is allowed, several times.
    """
    ours = Ours(case, "float64")
    mine, target = ours.values()
    theirs, nearby = dict(mine), {name: nudged(x) for name, x in mine.items()}
    slopes = [name for name in mine if name in {ours.names[i] for i in ours.moved}]
    for _ in range(steps):
        mine = moved(mine, *ours.run(mine, target)[1:])
        theirs, nearby = (moved(one, *in_torch(case, slopes, one, target, ours.state)[1:]) for one in (theirs, nearby))
    for name, value in theirs.items():
        slack = TOLERANCE + TIMES * np.abs(nearby[name] - value).max(initial=0)
        np.testing.assert_allclose(mine[name], value, rtol=TOLERANCE, atol=slack, err_msg=name)


def nudged(values):
    """Return numbers moved by a unit in the last place, up or down by turns."""
    if values.dtype.kind != "f":
        return values
    ends = np.resize([np.inf, -np.inf], values.shape)
    return np.nextafter(values, ends)
