"""Dropout inside attention against PyTorch, given the same mask: attention to one-hot rows returns its own weights."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import functions as f  # noqa: E402
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace  # noqa: E402
from sigma_layers import Attention  # noqa: E402
from sigma_testing import trace_layer  # noqa: E402

BATCH, TIME, RATE = 3, 5, 0.4
MAPS = [f"{name}.weights" for name in ("query", "key", "value", "output")]


def computed(x, weights):
    """Return the output with dropout, and gradients of the sum of its squares in the input and the weights."""
    it = trace_layer(Attention(1, bias=False, dropout=RATE), [Spec(x.shape, "float64")], training=True)
    names = [name.removeprefix("0-it.") for name in it.names]
    places = [names.index(name) for name in ("input 0", *MAPS)]
    slopes = gradient(f.sum(f.square(it.output)), [it.graph.inputs[i] for i in places])
    values = it.values([x])
    for place, value in zip(places[1:], weights, strict=True):
        values[place] = value
    return interpret(Graph(it.graph.inputs, (it.output, *slopes)), numpy_namespace())(*values)


def in_torch(x, weights, mask):
    tensors = [torch.tensor(one, requires_grad=True) for one in (x, *weights)]
    given, query, key, value, output = tensors
    seen = torch.softmax((given @ query) @ (given @ key).transpose(1, 2) / TIME**0.5, -1)
    found = (seen * torch.tensor(mask)) @ (given @ value) @ output
    found.square().sum().backward()
    return found.detach().numpy(), *(one.grad.numpy() for one in tensors)


def test_dropout_inside_attention_agrees_given_the_same_mask():
    random = np.random.default_rng(0)
    rows, one = np.tile(np.eye(TIME), (BATCH, 1, 1)), np.eye(TIME)
    flat = np.zeros((TIME, TIME))  # every key has a weight of 1 / TIME
    mask = computed(rows, [flat, flat, one, one])[0] * TIME
    np.testing.assert_allclose(np.unique(mask.round(12)), [0.0, 1 / (1 - RATE)])
    x, weights = random.normal(size=(BATCH, TIME, TIME)), [*random.normal(size=(4, TIME, TIME)) / 2]
    for ours, theirs in zip(computed(x, weights), in_torch(x, weights, mask), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
