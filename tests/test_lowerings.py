"""A plugin's op with kernels trains as it does without them, on every backend with a kernel for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from attrs import define

from sigma_backend_numpy import NumpyBackend
from sigma_kernel import Context, Environment, Layer, Lowerings, Node, Parameter, Spec, functions as f
from sigma_kernel.errors import SigmaGraphError, SigmaPluginError
from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.node import Graph, symbol
from sigma_kernel.graph.ops import op
from sigma_layers import Input, Output, SoftmaxCrossEntropy

pytestmark = pytest.mark.rooms

bend = op("acme-bends:bend", shapes.same, dtypes.floating, lambda g, z, x: g * bent(x), lambda x: x / (f.abs(x) + 1.0))
bent = op("acme-bends:bent", shapes.same, dtypes.floating, None, lambda x: 1.0 / f.square(f.abs(x) + 1.0))
unit = op(
    "acme-bends:unit", lambda x, s, *, epsilon: x, lambda x, s, *, epsilon: dtypes.floating(x, s), None,
    lambda x, s, *, epsilon: x / f.sqrt(f.sum(x * x, -1, keepdims=True) + epsilon) * s,
)  # fmt: skip
KERNELS = """
import numpy as np

called = []


def bend(x):
    return x / (abs(x) + np.float32(1))


def bent(x):
    return 1 / (abs(x) + np.float32(1)) ** 2


def unit(x, s, out, epsilon):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    for i in range(x.size):
        out[i] = x[i] / np.sqrt(total + epsilon) * s[i]


def bend_array(x):
    called.append("bend")
    return x / (np.abs(x) + 1)


def unit_array(x, s, epsilon):
    called.append("unit")
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + epsilon) * s
"""
COMPONENTS = [
    '"lowering", "bend.numba", "acme_bends.kernels:bend", "x / (1 + |x|)"',
    '"lowering", "bent.numba", "acme_bends.kernels:bent", "Its slope."',
    '"lowering", "unit.numba", "acme_bends.kernels:unit", "Rows of length 1."',
    '"lowering", "bend.numpy", "acme_bends.kernels:bend_array", "x / (1 + |x|)"',
    '"lowering", "unit.numpy", "acme_bends.kernels:unit_array", "Rows of length 1."',
]


@define(eq=False)
class Bends(Layer):
    """Return rows of length 1, bent and scaled."""

    def parameters(self, *inputs: Spec) -> Mapping[str, Parameter]:
        """Return the scale of each feature."""
        return {"scale": Parameter(inputs[0].shape[-1:], initialiser=1.0)}

    def forward(self, context: Context, *inputs: Node) -> Node:
        """Return the result, of the operand's shape."""
        return bend(unit(inputs[0], context.parameters["scale"], epsilon=1e-3) * 2.0)


def trained(backend: str) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 4)).astype("f4")
    with Environment("bends", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend=backend, optimiser="gradient_descent", batch_size=10)
        trainer.network = Input(4) + Bends() + Output(3) + SoftmaxCrossEntropy()
        trainer.data = {"inputs": x, "targets": (x[:, 0] > 0).astype("i4") + (x[:, 1] > 0.5)}
        trainer.fit(epochs=4)
        return {name: np.asarray(trainer.session.host(name)) for name in trainer.session.state.arrays}


@pytest.fixture
def reference(fresh_catalogue: None) -> dict[str, np.ndarray]:
    return trained("numpy")


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_layer_trains_the_same_with_and_without_kernels(reference, distribution: Callable, backend):
    without = trained(backend)
    distribution("acme-bends", *COMPONENTS, kernels=KERNELS)
    with_kernels = trained(backend)
    assert [name for name in reference if "scale" in name]
    for found in (without, with_kernels):
        for name, wanted in reference.items():
            np.testing.assert_allclose(found[name], wanted, 1e-4, 1e-5, err_msg=name)
    called = sys.modules["acme_bends.kernels"].called
    assert set(called) == ({"bend", "unit"} if backend == "numpy" else set())
    for name, again in trained(backend).items():
        assert again.tobytes() == with_kernels[name].tobytes(), name


# -- lookup of kernels -------------------------------------------------------------------------------------------------
def test_the_kernel_of_an_op_comes_from_the_ops_own_distribution(distribution):
    distribution("acme-bends", COMPONENTS[0], kernels=KERNELS)
    distribution("rival-bends", '"lowering", "bent.numba", "rival_bends.kernels:bent", "x"', kernels=KERNELS)
    numba = Lowerings("numba")
    assert numba.get("acme-bends:bend").__name__ == "bend"
    assert "acme-bends:bend" in numba
    others = ("acme-bends:bent", "bend", "exp", "acme-bends:ben", "rival-bends:bend")
    assert [name for name in others if name in numba] == []
    assert "acme-bends:bend" not in Lowerings("numpy")
    assert numba.get("rival-bends:bent").__module__ == "rival_bends.kernels"


@pytest.mark.parametrize("name", ["bend", "bend.", ".numba", "bend.numba.x", "Bend.numba", "acme:bend.numba"])
def test_a_lowering_is_named_by_op_and_backend(distribution, name):
    plugin = distribution("acme-bends", f'"lowering", "{name}", "acme_bends.kernels:bend", "x"', kernels=KERNELS)
    assert plugin.state == "quarantined"
    assert f"name '{name}' is not of the form 'softsign.backend'" in plugin.reason


def test_a_kernel_that_cannot_be_loaded_is_named_when_its_op_is_lowered(distribution):
    distribution("acme-bends", COMPONENTS[3], kernels="raise OSError('no disk')")
    x = symbol((3,))
    with pytest.raises(SigmaPluginError, match=r"lowering 'acme-bends:bend.numpy': .* cannot be loaded"):
        NumpyBackend().lower(Graph((x,), (bend(x),)), {})


@pytest.mark.parametrize(
    ("kernel", "found"), [("x.astype('f8')", r"float64\[3\]"), ("x[:2]", r"float32\[2\]"), ("x.sum()", r"float32\[\]")]
)
def test_a_kernel_of_arrays_must_return_the_declared_shape_and_dtype(distribution, kernel, found):
    distribution("acme-bends", COMPONENTS[3], kernels=f"def bend_array(x):\n    return {kernel}\n")
    x = symbol((3,))
    call = NumpyBackend().lower(Graph((x,), (bend(x),)), {})
    with pytest.raises(SigmaGraphError, match=f"acme-bends:bend: its kernel returned {found} instead of float32"):
        call(np.ones(3, "f4"))


def test_a_kernel_of_arrays_may_return_its_operand_and_reuse_its_storage(distribution):
    distribution("acme-bends", COMPONENTS[3], kernels="def bend_array(x):\n    return x[::-1]\n")
    x = symbol((3,))
    given = np.arange(3, dtype="f4")
    (found,) = NumpyBackend().lower(Graph((x,), (bend(x + 1.0),)), {0: 0})(given)
    assert found is given
    assert found.tolist() == [3.0, 2.0, 1.0]
