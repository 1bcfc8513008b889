"""Rounded weights are those of PyTorch's fake quantisation, and so are the gradients."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, gradient, interpret, numpy_namespace, symbol
from sigma_layers.quantised_weights import quantise

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(5,), (7, 6), (4, 3, 5, 5)])
def test_values_and_gradients(bits: int, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(bits)
    values, slopes = (draw.normal(size=shape).astype(np.float32) for _ in range(2))
    weights, along = symbol(shape), symbol(shape)
    rounded = quantise(weights, bits)
    outputs = (rounded, *gradient(f.sum(rounded * along), [weights]))
    ours, back = interpret(Graph((weights, along), outputs), numpy_namespace())(values, slopes)
    x, steps = torch.tensor(values, requires_grad=True), 2 ** (bits - 1) - 1
    theirs = torch.fake_quantize_per_tensor_affine(x, float(np.abs(values).max()) / steps, 0, -steps, steps)
    theirs.backward(torch.tensor(slopes))
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    edge = np.abs(values) >= np.abs(values).max() * (1 - 1e-6)  # rounding may put the greatest outside of its range
    np.testing.assert_array_equal(np.asarray(back)[~edge], x.grad.numpy()[~edge])
