"""Programs and devices, and errors that lose nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sigma_backend_jax import JaxBackend
from sigma_backend_jax.program import ROOM
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Graph, gradient, symbol


def test_bursts_of_many_lengths_share_one_compiled_loop() -> None:
    backend, total, row, rate = JaxBackend(), symbol(()), symbol((2,)), symbol(())
    graph = Graph((total, row, rate), (total + rate * f.sum(row), total))
    program = backend.compile(Step(graph, ("total",), ("row",), ("rate",), ("total",), ("loss",)))
    block = {"row": backend.to_device(np.arange(4, dtype="float32"))}
    for n in (1, 2, 5, ROOM):
        state = {"total": backend.to_device(np.array(0, "float32"))}
        burst = program.run(state, block, np.tile([1, 2], (n, 1)), {"rate": np.arange(n, dtype="float32")}, n)
        np.testing.assert_array_equal(burst.ring["loss"], 3 * np.cumsum([0, *range(n - 1)]))
        assert burst.done == n
    assert program._burst._cache_size() == 1


def test_the_working_memory_of_a_step_is_known_before_it_runs() -> None:
    x = symbol((64, 64), "float64")
    product = f.tanh(x @ x)
    step = Step(Graph((x,), (product, f.sum(product @ product))), ("x",), (), (), ("x",), ("loss",))
    assert 64 * 64 * 8 <= JaxBackend().compile(step).peak_bytes <= 4 * 64 * 64 * 8


def test_a_device_that_does_not_exist_is_refused_with_those_that_do() -> None:
    for name in ("cpu:7", "hovercraft", "cpu:x"):
        with pytest.raises(SigmaConfigError, match=f"there is no device '{name}'. Use one of: cpu:0"):
            JaxBackend(name)


def test_a_device_is_chosen_by_a_setting_and_told() -> None:
    assert JaxBackend("cpu:0").runtime["device"] == "cpu"
    assert set(JaxBackend().runtime) == {"JAX", "device"}


def test_64_bits_are_switched_on_for_sigmas_calls_in_their_threads_alone() -> None:
    backend, x = JaxBackend(), symbol((), "float64")
    step = Step(Graph((x,), (x + 2.0**-40, x)), ("x",), (), (), ("x",), ("loss",))

    def trained(_: int) -> float:
        program, state = backend.compile(step), {"x": backend.to_device(np.array(1.0))}
        for _ in range(20):
            state = dict(program.run(state, {}, np.zeros((3, 0), "int64"), {}, 3).state)
        return float(backend.to_host(state["x"]))

    with ThreadPoolExecutor(2) as threads:
        found = threads.map(trained, range(2))
        seen = {(jax.config.jax_enable_x64, jnp.ones(()).dtype.name) for _ in range(200)}
    assert [*found] == [1.0 + 60 * 2.0**-40] * 2
    assert seen == {(False, "float32")}
    assert jnp.ones(()).dtype == "float32"


def convolved() -> Step:
    """Return a step with a convolution whose loss is infinite once the live value is."""
    w, x, rate = symbol((1, 1, 3)), symbol((2, 1, 5)), symbol(())
    loss = f.mean(f.convolution(x, w, groups=1, stride=(1,), padding=((1, 1),), dilation=(1,)) ** 2.0)
    (slope,) = gradient(loss, [w])
    return Step(Graph((w, x, rate), (w - slope * 0.1, loss * rate)), ("w",), ("x",), ("rate",), ("w",), ("loss",))


def test_convolutions_are_computed_outside_of_loops_and_end_at_a_loss_that_is_not_finite() -> None:
    backends, draw = (JaxBackend(), NumpyBackend()), np.random.default_rng(0)
    block, start = draw.normal(size=(6, 1, 5)).astype("float32"), np.ones((1, 1, 3), "float32")
    rows, rates = np.array([[0, 1], [2, 3], [4, 5], [1, 2]]), np.array([1, 2, np.inf, 1], "float32")
    bursts = []
    for backend in backends:
        program = backend.compile(convolved())
        given = {"w": backend.to_device(start)}, {"x": backend.to_device(block)}
        bursts.append(program.run(*given, rows, {"rate": rates}, 4))
    ours, theirs = bursts
    assert ours.done == theirs.done == 3
    np.testing.assert_allclose(ours.ring["loss"], theirs.ring["loss"], rtol=1e-5)
    np.testing.assert_allclose(np.array(ours.state["w"]), theirs.state["w"], rtol=1e-5)
    assert JaxBackend().compile(convolved())._alone
