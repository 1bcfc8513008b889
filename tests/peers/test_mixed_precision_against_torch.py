"""Rounding, and steps in mixed precision, against PyTorch: its casts, its autocast and its GradScaler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, catalogue
from sigma_kernel.graph import Graph, Node, ops, symbol

torch = pytest.importorskip("torch")
LOW = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}
# PyTorch rounds the results of products too, Sigma their operands alone: some roundings of 2^-9 or 2^-12 each.
BOUND = {"mixed_bfloat16": 0.03, "mixed_float16": 0.004}
DRAW = np.random.default_rng(0)
X, Y = DRAW.standard_normal((32, 20), np.float32), DRAW.integers(0, 5, 32, np.int32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_are_rounded_as_in_torch(dtype: str) -> None:
    x = DRAW.integers(0, 2**32, 500_000, dtype=np.uint32).view(np.float32)
    expected = torch.from_numpy(x).to(getattr(torch, dtype)).float().numpy()
    np.testing.assert_array_equal(ops.reduce_precision(x, dtype=dtype), expected)


def trainer(precision: str, backend: str, network: str, **settings: Any) -> Any:
    made = Environment("mixed", seed=3, precision=precision).create_trainer(
        backend=backend, network=network, data=(X, Y), batch_size=32,
        optimiser={"type": "gradient_descent", "learning_rate": 1.0}, **settings,
    )  # fmt: skip
    made.prepare()
    return made


LAYERS = "dense(24, activation='tanh') + dense(16, activation='tanh')"
NETWORK = f"input(20) + {LAYERS} + output(5) + softmax_cross_entropy()"


def parameters(made: Any) -> dict[str, np.ndarray]:
    names = [name for name in made.session.state.arrays if name.startswith("network.layers.")]
    return {name: made.session.host(name) for name in names}


def cast_step(values: dict[str, np.ndarray], precision: str) -> tuple[float, dict[str, np.ndarray]]:
    """Return the loss and the new parameters after one step of descent, with autocast and a scaled loss in PyTorch."""
    held = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    pairs = [tuple(held.values())[i : i + 2] for i in (0, 2, 4)]
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "mixed_float16")
    optimiser = torch.optim.SGD(held.values(), lr=1.0)
    with torch.autocast("cpu", dtype=LOW[precision]):
        value = torch.from_numpy(X)
        for number, (weights, biases) in enumerate(pairs):
            value = torch.nn.functional.linear(value, weights.T, biases)
            value = torch.tanh(value) if number < 2 else value
        loss = torch.nn.functional.cross_entropy(value.float(), torch.from_numpy(Y).long())
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    return float(loss.detach()), {name: value.detach().numpy() for name, value in held.items()}


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_a_step_is_that_of_autocast(precision: str, backend: str) -> None:
    made = trainer(precision, backend, NETWORK)
    before = parameters(made)
    assert [name.rpartition(".")[2] for name in before] == ["weights", "biases"] * 3
    history = made.fit(iterations=1)
    loss, expected = cast_step(before, precision)
    exact = trainer("float32", backend, NETWORK)
    exact.fit(iterations=1)
    assert history["training.loss"][0] == pytest.approx(loss, rel=BOUND[precision])
    for name, after in parameters(made).items():
        change, theirs, whole = (x - before[name] for x in (after, expected[name], parameters(exact)[name]))
        size = np.abs(whole).max()
        assert np.abs(change - theirs).max() <= BOUND[precision] * size, name
        assert 0 < np.abs(change - whole).max() <= np.abs(theirs - whole).max() * 1.5, name  # nearer, as results stay


def compute(backend: str, results: Callable[..., Sequence[Node]], *arrays: np.ndarray) -> list[Any]:
    """Return results of operands that are rounded to bfloat16, as tensors."""
    nodes = [symbol(x.shape) for x in arrays]
    graph = Graph(tuple(nodes), tuple(results(*(ops.reduce_precision(x, dtype="bfloat16") for x in nodes))))
    lowered = catalogue().load("backend", backend)().lower(graph, {})
    return [torch.from_numpy(np.array(x)) for x in lowered(*arrays)]


def near(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Compare with results that PyTorch rounds to bfloat16, and attention's weights as well."""
    for one, other in zip(found, expected, strict=True):
        exact = other.detach().float()
        assert one.shape == exact.shape
        assert (one - exact).abs().max() <= 0.02 * exact.abs().max()


def gradients(result: Any, g: Any, *operands: Any) -> tuple[Any, ...]:
    return torch.autograd.grad(result, operands, g)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("x", "w", "stride", "padding", "groups"),
    [
        ((3, 16, 14, 14), (32, 16, 3, 3), 1, 1, 1),
        ((2, 34, 9, 11), (38, 17, 3, 5), 2, 2, 2),
        ((2, 33, 7, 7), (40, 33, 1, 1), 1, 0, 1),
    ],
)
def test_convolutions_of_bfloat16_and_their_gradients_are_those_of_torch(
    backend: str, x: tuple[int, ...], w: tuple[int, ...], stride: int, padding: int, groups: int
) -> None:
    values, kernel = (torch.from_numpy(DRAW.standard_normal(shape, np.float32)) for shape in (x, w))
    narrow = [v.bfloat16().requires_grad_() for v in (values, kernel)]
    result = torch.nn.functional.conv2d(*narrow, stride=stride, padding=padding, groups=groups)
    slope = torch.from_numpy(DRAW.standard_normal(tuple(result.shape), np.float32))
    expected = [result, *gradients(result, slope.bfloat16(), *narrow)]
    how: dict[str, Any] = {
        "stride": (stride,) * 2, "padding": ((padding, padding),) * 2, "dilation": (1, 1), "groups": groups,
    }  # fmt: skip

    def results(x: Node, w: Node, g: Node) -> Sequence[Node]:
        back = ops.convolution_input(g, w, shape=x.shape, **how), ops.convolution_kernel(x, g, shape=w.shape, **how)
        return ops.convolution(x, w, **how), *back

    near(compute(backend, results, *(v.numpy() for v in (values, kernel, slope))), expected)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("queries", "keys", "width", "causal"), [(64, 64, 32, True), (37, 37, 19, True), (9, 50, 64, False)]
)
def test_attention_to_bfloat16_and_its_gradients_are_those_of_torch(
    backend: str, queries: int, keys: int, width: int, causal: bool
) -> None:
    sides = [(2, 3, count, width) for count in (queries, keys, keys, queries)]
    arrays = [DRAW.standard_normal(shape, np.float32) for shape in sides]
    *narrow, slope = (torch.from_numpy(x).bfloat16() for x in arrays)
    operands = [x.requires_grad_() for x in narrow]
    result = torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=causal)

    def results(q: Node, k: Node, v: Node, g: Node) -> Sequence[Node]:
        back = (ops.attention_gradient(g, q, k, v, causal=causal, of=i) for i in range(3))
        return ops.attention(q, k, v, causal=causal), *back

    near(compute(backend, results, *arrays), [result, *gradients(result, slope, *operands)])


def test_the_scale_moves_as_that_of_gradscaler() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2000)
    weight = torch.ones(1, requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=1e-9)
    targets = np.full((1, 1), 200.0, np.float32)
    sigma = Environment("scale", precision="mixed_float16")
    made = sigma.create_trainer(
        backend="numpy", network="input(1) + dense(1, bias=false) + squared_difference()", batch_size=1,
        data={"inputs": np.ones((1, 1), np.float32), "targets": targets},
        optimiser={"type": "gradient_descent", "learning_rate": 1e-9},
        initialisers={"w": ("**.weights", {"type": "constant", "value": 1.0})},
    )  # fmt: skip
    ours, theirs = [], []
    for _ in range(12):
        made.fit(iterations=1)
        ours.append((sigma.get("trainer.optimiser.loss_scale"), sigma.get("trainer.optimiser.skipped_steps")))
        optimiser.zero_grad()
        low = torch.ones(1, 1, dtype=torch.float16) * weight.half()
        scaler.scale(((low.float() - torch.from_numpy(targets)) ** 2).mean()).backward()
        scaler.step(optimiser)
        scaler.update()
        theirs.append((scaler.get_scale(), int(np.log2(2.0**16 / scaler.get_scale()))))
    assert ours == theirs
    assert 0 < ours[-1][1] < 12
