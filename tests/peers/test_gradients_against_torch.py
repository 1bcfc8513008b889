"""Values, gradients and second-order gradients agree with PyTorch, in float64."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Spec, trace
from sigma_kernel.graph.rewriting import rewrite

torch = pytest.importorskip("torch")
nn = torch.nn.functional

NUMPY = numpy_namespace()
RNG = np.random.default_rng(5)


def numbers(*shape):
    return RNG.normal(size=shape)


def ours(function, arrays, floats):
    """Return the value, its gradients, and theirs, weighted so that nothing cancels."""

    def build(*operands):
        targets = [operands[i] for i in floats]
        value = function(*operands)
        first = gradient(weighed([value], f), targets)
        return value, *first, *gradient(weighed(first, f), targets)

    graph = trace(build, *(Spec(x.shape, x.dtype.name) for x in arrays))
    return interpret(rewrite(graph), NUMPY)(*arrays)


def theirs(function, arrays, floats):
    """Return the same from PyTorch."""
    operands = [torch.tensor(x, requires_grad=i in floats) for i, x in enumerate(arrays)]
    targets = [operands[i] for i in floats]
    value = function(*operands)
    first = torch.autograd.grad(weighed([value], torch), targets, create_graph=True)
    second = torch.autograd.grad(weighed(first, torch), targets, materialize_grads=True, allow_unused=True)
    return [x.detach().numpy() for x in (value, *first, *second)]


def weighed(values, library):
    total = 0.0
    for i, x in enumerate(values):
        total = library.sum(library.sin(x * (0.3 + 0.1 * i))) + total
    return total


def check(mine, other, *arrays):
    floats = [i for i, x in enumerate(arrays) if x.dtype == np.float64]
    for a, b in zip(ours(mine, arrays, floats), theirs(other, arrays, floats), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize("padding", [(0, 0), (2, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_convolution_in_two_dimensions_agrees_with_torch(stride, padding, dilation, groups):
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    arrays = numbers(2, 4, 8, 7), numbers(6, 4 // groups, 3, 2)
    check(lambda x, w: f.convolution(x, w, **how), lambda x, w: nn.conv2d(x, w, **how), *arrays)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 3, 2, 1), (3, 1, 1, 4)])
def test_convolution_in_one_dimension_agrees_with_torch(stride, padding, dilation, groups):
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    arrays = numbers(3, 4, 11), numbers(8, 4 // groups, 3)
    check(lambda x, w: f.convolution(x, w, **how), lambda x, w: nn.conv1d(x, w, **how), *arrays)


def test_convolution_in_three_dimensions_agrees_with_torch():
    check(lambda x, w: f.convolution(x, w, padding=1), lambda x, w: nn.conv3d(x, w, padding=1),
          numbers(2, 2, 4, 3, 5), numbers(3, 2, 3, 3, 2))  # fmt: skip


def test_the_gradient_of_a_convolution_is_a_transposed_convolution():
    how = {"stride": (2, 1), "padding": ((1, 1), (0, 0)), "dilation": (1, 2), "groups": 2}

    def mine(g, w):
        return ops.convolution_input(g, w, shape=(2, 4, 7, 8), **how)

    def other(g, w):
        return nn.conv_transpose2d(g, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)

    check(mine, other, numbers(2, 6, 4, 4), numbers(6, 2, 3, 3))


@pytest.mark.parametrize(("window", "stride", "padding"), [(2, 2, 0), (3, 2, 1), ((3, 2), (1, 2), (1, 0))])
def test_pooling_in_two_dimensions_agrees_with_torch(window, stride, padding):
    x, size = numbers(2, 3, 7, 6), np.prod(np.broadcast_to(window, 2))
    check(lambda x: f.max_pool(x, window, stride, padding), lambda x: nn.max_pool2d(x, window, stride, padding), x)
    check(
        lambda x: f.sum_pool(x, window, stride, padding) / float(size),
        lambda x: nn.avg_pool2d(x, window, stride, padding),
        x,
    )


def test_pooling_in_one_dimension_agrees_with_torch():
    check(lambda x: f.max_pool(x, 3, 2, 1), lambda x: nn.max_pool1d(x, 3, 2, 1), numbers(2, 3, 9))
    check(lambda x: f.sum_pool(x, 2) / 2.0, lambda x: nn.avg_pool1d(x, 2), numbers(2, 3, 8))


ACTIVATIONS = {
    "relu": (ops.relu, nn.relu),
    "sigmoid": (ops.sigmoid, torch.sigmoid),
    "silu": (ops.silu, nn.silu),
    "gelu": (ops.gelu, nn.gelu),
    "softplus": (ops.softplus, lambda x: nn.softplus(x, threshold=1000)),
    "tanh": (ops.tanh, torch.tanh),
    "elu": (f.elu, nn.elu),
    "leaky_relu": (f.leaky_relu, nn.leaky_relu),
    "softmax": (lambda x: f.softmax(x, 1), lambda x: nn.softmax(x, 1)),
    "log_softmax": (f.log_softmax, lambda x: nn.log_softmax(x, -1)),
    "log_sum_exp": (lambda x: f.log_sum_exp(x, (0, 2)), lambda x: torch.logsumexp(x, (0, 2))),
    "norm": (lambda x: f.norm(x, -1), lambda x: torch.linalg.vector_norm(x, dim=-1)),
    "variance": (lambda x: f.variance(x, -1, correction=1.0), lambda x: torch.var(x, -1)),
    "max": (lambda x: f.max(x, -1), lambda x: torch.amax(x, -1)),
    "erf": (ops.erf, torch.erf),
    "power": (lambda x: f.abs(x) ** x, lambda x: torch.abs(x) ** x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_functions_of_one_operand_agree_with_numpy(name):
    check(*ACTIVATIONS[name], numbers(3, 4, 5) * 2)


def test_cross_entropy_agrees_with_torch():
    labels = RNG.integers(0, 5, (4, 2))

    def other(scores, labels):
        return nn.cross_entropy(scores.movedim(-1, 1), labels, reduction="none")

    check(ops.softmax_cross_entropy, other, numbers(4, 2, 5) * 3, labels)


def test_layer_norm_agrees_with_torch():
    check(lambda x, s, b: f.layer_norm(x, s, b, epsilon=1e-3), lambda x, s, b: nn.layer_norm(x, (5,), s, b, eps=1e-3),
          numbers(3, 2, 5), numbers(5), numbers(5))  # fmt: skip


@pytest.mark.parametrize("how", ["", "masked", "causal"])
def test_multi_head_attention_agrees_with_torch(how):
    mask, causal = (RNG.uniform(size=(2, 3, 6, 6)) > 0.4 if how == "masked" else None), how == "causal"
    other = partial(nn.scaled_dot_product_attention, attn_mask=mask if mask is None else torch.tensor(mask))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the others have no second derivative
        check(
            lambda q, k, v: f.attention(q, k, v, mask, causal),
            lambda q, k, v: other(q, k, v, is_causal=causal),
            numbers(2, 3, 6, 5),
            numbers(2, 3, 6, 5),
            numbers(2, 3, 6, 2),
        )


def test_products_of_stacks_that_broadcast():
    check(lambda x, y: x @ y, lambda x, y: x @ y, numbers(3, 1, 2, 4), numbers(5, 4, 3))


def test_take_and_scatter_add_agree_with_torch():
    places = np.array([[2, 0], [2, 1]])
    check(lambda x, i: f.take(x, i, axis=1), lambda x, i: x[:, i], numbers(2, 3, 4), places)
    check(
        lambda x, i, u: f.scatter_add(x, i, u),
        lambda x, i, u: x.index_add(0, i, u),
        numbers(3, 2), np.array([2, 0, 2]), numbers(3, 2),
    )  # fmt: skip


@pytest.mark.parametrize("cell", ["tanh", "gru"])
def test_a_recurrent_network_agrees_with_torch(cell):
    """Compare a scan with PyTorch's own layer, with its weights."""
    steps, batch, inputs, units = 5, 2, 3, 4
    gates = 3 if cell == "gru" else 1
    layer = {"tanh": torch.nn.RNN, "gru": torch.nn.GRU}[cell](inputs, units, dtype=torch.float64)

    def mine(x, w, u, b, c):
        def gru(h, x, w, u, b, c):
            r, z, n = zip(
                f.split(x @ f.swap_axes(w, 0, 1) + b, 3), f.split(h @ f.swap_axes(u, 0, 1) + c, 3), strict=True
            )
            reset, update = f.sigmoid(r[0] + r[1]), f.sigmoid(z[0] + z[1])
            new = (1.0 - update) * f.tanh(n[0] + reset * n[1]) + update * h
            return [new], [new]

        def simple(h, x, w, u, b, c):
            new = f.tanh(x @ f.swap_axes(w, 0, 1) + b + h @ f.swap_axes(u, 0, 1) + c)
            return [new], [new]

        start = f.zeros((batch, units), "float64")
        return f.scan(gru if cell == "gru" else simple, [start], [x], [w, u, b, c])[1][0]

    def other(x, w, u, b, c):
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        return torch.func.functional_call(layer, dict(zip(names, (w, u, b, c), strict=True)), (x,))[0]

    check(mine, other, numbers(steps, batch, inputs), numbers(gates * units, inputs), numbers(gates * units, units),
          numbers(gates * units), numbers(gates * units))  # fmt: skip
