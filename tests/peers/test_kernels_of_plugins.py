"""A plugin's kernels for PyTorch, JAX and CuPy compute its op in place of the expansion, in training too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import dtypes, op, trace
from sigma_layers import Function, Input, Output, SoftmaxCrossEntropy
from sigma_testing import LoweringSuite, Sample, by_name

pytest.importorskip("torch")
pytest.importorskip("jax")
pytest.importorskip("sigma_backend_cupy")

from sigma_backend_cupy import CupyBackend
from sigma_backend_cupy.devices.host import HostDevice
from sigma_kernel.contracts import Backend

swell = op(
    "acme-swells:swell", lambda x, *, factor: x, lambda x, *, factor: dtypes.floating(x),
    lambda g, z, x, *, factor: g * (1.0 - f.square(f.tanh(x))) * factor, lambda x, *, factor: f.tanh(x) * factor,
)  # fmt: skip
first = op("acme-swells:first", lambda x: x[1:], dtypes.floating, None, lambda x: f.reshape(x[:1], x.shape[1:]))
KERNELS = """
called = []


def swell_torch(x, factor):
    import torch

    called.append("torch")
    return torch.tanh(x) * factor


def swell_jax(x, factor):
    import jax.numpy as jnp

    called.append("jax")
    return jnp.tanh(x) * factor


def swell_cupy(x, factor):
    import numpy

    called.append("cupy")
    return numpy.tanh(x) * x.dtype.type(factor)


def first(x):
    return x[0]
"""
COMPONENTS = [
    f'"lowering", "{name}.{backend}", "acme_swells.kernels:{function}", "Its kernel."'
    for backend in ("torch", "jax", "cupy")
    for name, function in (("swell", f"swell_{backend}"), ("first", "first"))
]
X = np.linspace(-3.0, 3.0, 15, dtype=np.float32).reshape(3, 5)


@frozen
class OnHost(CupyBackend):
    """CuPy's backend with the processor in the place of a GPU."""

    def open_device(self) -> HostDevice:
        return HostDevice()


def make(name: str) -> Backend:
    """Return a backend; for CuPy, one whose device is the processor."""
    return OnHost() if name == "cupy" else by_name("backend", name)()


@pytest.fixture(params=["torch", "jax", "cupy"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kernels(distribution: Callable[..., Any]) -> Any:
    distribution("acme-swells", *COMPONENTS, kernels=KERNELS)


def run(name: str, function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    backend = make(name)
    call = backend.lower(trace(function, *(x.shape for x in arrays)), {})
    return [backend.to_host(x) for x in call(*map(backend.to_device, arrays))]


def called() -> list[str]:
    return list(sys.modules["acme_swells.kernels"].called)


def test_a_kernel_is_called_in_place_of_the_expansion_and_in_loops(kernels: None, backend: str) -> None:
    def looped(x: Any) -> Any:
        last, _ = f.scan(lambda c, row: ([swell(c + row, factor=0.5)], []), [x[0]], [x])
        return swell(x * 2.0, factor=3.0), last[0], first(x + 1.0)

    wide, last, row = run(backend, looped, X)
    assert {*called()} == {backend}
    np.testing.assert_allclose(wide, np.tanh(X * 2) * 3, rtol=1e-5)
    carry = X[0]
    for each in X:
        carry = np.tanh(carry + each) * 0.5
    np.testing.assert_allclose(last, carry, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(row, X[0] + 1, rtol=1e-6)


def test_without_a_kernel_the_expansion_is_computed(fresh_catalogue: None, backend: str) -> None:
    (result,) = run(backend, lambda x: swell(x, factor=2.0), X)
    np.testing.assert_allclose(result, np.tanh(X) * 2, rtol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [("x[:2]", r"\S*float32\[2, 5\]"), ("(x > 0)", r"\S*bool\S*\[3, 5\]"), ("0.5", "a float")],
)
def test_a_kernel_of_another_shape_or_dtype_is_named(
    distribution: Callable[..., Any], backend: str, kernel: str, what: str
) -> None:
    text = f"def swell_{backend}(x, factor):\n    return {kernel}\n"
    distribution("acme-swells", *COMPONENTS, kernels=text)
    with pytest.raises(
        SigmaGraphError, match=rf"acme-swells:swell: its kernel returned {what} instead of float32\[3, 5\]"
    ):
        run(backend, lambda x: swell(x, factor=2.0), X)


def trained(backend: str) -> dict[str, np.ndarray]:
    """Return the state after four epochs with the op in a layer."""
    x = np.random.default_rng(0).normal(size=(60, 4)).astype("f4")
    with Environment("swells", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend=make(backend), optimiser="gradient_descent", batch_size=10)
        layer = Function(lambda x: swell(x, factor=1.5))
        trainer.network = Input(4) + Output(4) + layer + Output(3) + SoftmaxCrossEntropy()
        trainer.data = {"inputs": x, "targets": (x[:, 0] > 0).astype("i4") + (x[:, 1] > 0.5)}
        trainer.fit(epochs=4)
        return {name: np.asarray(trainer.session.host(name)) for name in trainer.session.state.arrays}


def test_a_network_trains_the_same_with_and_without_kernels(distribution: Callable[..., Any], backend: str) -> None:
    without = trained(backend)
    distribution("acme-swells", *COMPONENTS, kernels=KERNELS)
    with_kernels, again = trained(backend), trained(backend)
    assert {*called()} == {backend}
    for name, wanted in without.items():
        np.testing.assert_allclose(with_kernels[name], wanted, 1e-4, 1e-5, err_msg=name)
        assert again[name].tobytes() == with_kernels[name].tobytes(), name


class _SwellSuite(LoweringSuite):
    def make(self) -> Backend:
        return make(self.name)

    def samples(self) -> list[Sample]:
        return [Sample("acme-swells:swell", (np.linspace(-3.0, 3.0, 35).reshape(5, 7),), {"factor": 0.75})]

    @pytest.fixture(autouse=True)
    def _kernels(self, kernels: None) -> None:
        """Install the plugin."""


class TestSwellOnTorch(_SwellSuite):
    name = "torch"


class TestSwellOnJax(_SwellSuite):
    name = "jax"
