"""Single layers against PyTorch over generated settings and shapes.

Each is compared in float64 and in float32 (outputs, gradients in inputs and in parameters, new state), and after 100
steps of gradient descent on its parameters and its inputs.
"""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import functions as f  # noqa: E402
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, symbol  # noqa: E402
from sigma_kernel.testing import traced  # noqa: E402

from .single_layer_cases import CASES  # noqa: E402

torch.set_num_threads(1)  # small tensors, and a process for each processor
STEPS, RATE, TOLERANCE, SINGLE = 100, 0.05, 1e-9, 2e-5  # the last is relative to the largest entry, in float32
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


class Ours:
    """A layer's graph: its output, new state, and the gradients of a mean squared error in inputs and parameters."""

    def __init__(self, case, precision):
        it = traced(case.layer, [Spec(shape, precision) for shape in case.shapes], training=True, precision=precision)
        target = symbol(it.output.shape, precision)
        self.live = [str(it.shapes.live[name].value) for name in it.names if name in it.shapes.live]
        self.names = [name.removeprefix("0-it.") for name in it.names]
        self.moved = [i for i, name in enumerate(it.names) if name not in {*it.shapes.state, *it.shapes.live}]
        self.state = [name.removeprefix("0-it.") for name in it.changes]
        loss = f.mean(f.square(it.output - target))
        slopes = gradient(loss, [it.graph.inputs[i] for i in self.moved])
        self.compute = interpret(Graph((*it.graph.inputs, target), (*it.graph.outputs, *slopes)), numpy_namespace())
        self.output, self.inputs, self.settings = it.output, it.graph.inputs, it.shapes.live

    def values(self):
        """Return values by name, and a target."""
        random = np.random.default_rng(5)
        found = {name: random.normal(size=x.shape) for name, x in zip(self.names, self.inputs, strict=True)}
        found |= {name: np.abs(found[name]) + 0.5 for name in self.state}
        found |= {name.removeprefix("0-it."): np.asarray(one.value) for name, one in self.settings.items()}
        return found, random.normal(size=self.output.shape)

    def run(self, values, target):
        """Return the output, new state by name, and gradients by name."""
        dtype = self.output.dtype
        given = [values[name].astype(dtype) for name in self.names]
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


def agree(found, expected, close):
    """Compare outputs, state and gradients."""
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(ours, dict):
            assert ours.keys() == theirs.keys()
            for name, value in ours.items():
                close(value, theirs[name], name)
        else:
            close(ours, theirs, "output")


def exactly(found, expected, name):
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def roughly(found, expected, name):
    assert found.shape == expected.shape, name
    largest = max(float(np.abs(expected).max(initial=0)), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SINGLE * largest, err_msg=name)


@every_case
def test_values_and_gradients_agree(case):
    for precision, close in (("float64", exactly), ("float32", roughly)):
        ours = Ours(case, precision)
        values, target = ours.values()
        found = ours.run(values, target)
        agree(found, in_torch(case, list(found[2]), values, target, ours.state), close)


@every_case
def test_a_hundred_steps_agree(case):
    ours = Ours(case, "float64")
    mine, target = ours.values()
    theirs = dict(mine)
    for _ in range(STEPS):
        _, state, slopes = ours.run(mine, target)
        mine = {**mine, **state, **{name: mine[name] - RATE * slope for name, slope in slopes.items()}}
        _, state, slopes = in_torch(case, list(slopes), theirs, target, ours.state)
        theirs = {**theirs, **state, **{name: theirs[name] - RATE * slope for name, slope in slopes.items()}}
    agree([mine], [theirs], exactly)
