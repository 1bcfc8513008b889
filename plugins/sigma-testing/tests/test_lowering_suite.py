"""The suite for kernels of ops passes on correct kernels, and each of its tests fails on a wrong one."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import Backend, functions as f
from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.ops import op
from sigma_testing import LoweringSuite, Sample

tilt = op(
    "acme-tilts:tilt", shapes.binary, dtypes.floating,
    lambda g, z, x, y: (g * y / f.square(f.abs(x) + 1.0), g * x / (f.abs(x) + 1.0)),
    lambda x, y: x / (f.abs(x) + 1.0) * y,
)  # fmt: skip
steep = op("acme-tilts:steep", shapes.same, dtypes.floating, lambda g, z, x: g, lambda x: x * 2.0)
RIGHT = """
import numpy as np


def number(x, y):
    return x / (abs(x) + np.float32(1)) * y


def array(x, y):
    return x / (np.abs(x) + 1) * y


def steep(x):
    return x * 2
"""


@pytest.fixture
def kernel(distribution):
    """Return a function that installs a kernel of each kind, given the text of its result."""

    def install(text: str = RIGHT) -> None:
        records = [f'"lowering", "tilt.{backend}", "acme_tilts.kernels:{name}", "x"' for backend, name in KINDS.items()]
        distribution("acme-tilts", *records, '"lowering", "steep.numpy", "acme_tilts.kernels:steep", "x"', kernels=text)

    return install


KINDS = {"numba": "number", "numpy": "array"}


class Tilts(LoweringSuite):
    @pytest.fixture(autouse=True)
    def _installed(self, kernel) -> None:
        kernel()

    def samples(self) -> list[Sample]:
        x, y = np.linspace(-3.0, 3.1, 35).reshape(5, 7), np.linspace(0.5, 2.0, 7)
        return [Sample("acme-tilts:tilt", (x, y)), Sample("acme-tilts:tilt", (x[0], x[1]))]


class TestNumba(Tilts):
    name = "numba"

    def make(self) -> Backend:
        return NumbaBackend()


class TestNumpy(Tilts):
    name = "numpy"

    def make(self) -> Backend:
        return NumpyBackend()


class Steep(TestNumpy):
    """An op whose gradient is wrong."""

    def samples(self) -> list[Sample]:
        return [Sample("acme-tilts:steep", (np.linspace(-3.0, 3.1, 35).reshape(5, 7),))]


@pytest.mark.parametrize(("domain", "passes"), [("positive", True), ("any", False)])
def test_edge_values_are_those_of_the_domain(distribution, domain, passes):
    """A kernel may give other values where the op has none."""
    name = f"acme-roots:root_{domain}"
    op(name, shapes.same, dtypes.floating, lambda g, z, x: 0.5 * g / z, f.sqrt, domain=domain)
    text = "import numpy as np\ndef root(x):\n    return np.sqrt(np.abs(x))\n"
    distribution("acme-roots", f'"lowering", "root_{domain}.numpy", "acme_roots.kernels:root", "x"', kernels=text)

    class Suite(LoweringSuite):
        name = "numpy"

        def make(self) -> Backend:
            return NumpyBackend()

        def samples(self) -> list[Sample]:
            return [Sample(name, (np.linspace(0.5, 3.0, 12),))]

    if passes:
        Suite().test_edge_values_agree_with_the_op()
    else:
        with pytest.raises(AssertionError):
            Suite().test_edge_values_agree_with_the_op()


# -- the suite detects faults ------------------------------------------------------------------------------------------
OVERWRITES = """
import numpy as np


def array(x, y):
    np.divide(x, np.abs(x) + 1, out=x)
    return x * y
"""
OPERAND = """
import numpy as np


def array(x, y):
    return np.multiply(x / (np.abs(x) + 1), y) if x.size > 1 else x
"""
WRONG = {
    "test_rows_of_any_length_agree_with_the_op": "x / (np.abs(x) + 1) * y * (1 + (x.shape[-1] > 1024))",
    "test_numbers_of_every_size_agree_with_the_op": "x / (np.abs(x) + 1) * y + 0.25 * ((x > 0.123) & (x < 0.124))",
    "test_values_shapes_and_dtypes_agree_with_the_op": "x / (np.abs(x) + 1.001) * y",
    "test_edge_values_agree_with_the_op": "np.nan_to_num(x / (np.abs(x) + 1) * y)",
    "test_equal_operands_give_equal_bits_in_any_row": "x / (np.abs(x) + 1) * y + np.arange(x.size).reshape(x.shape)",
}


def test_another_value_is_not_called_a_changed_operand(kernel):
    kernel(
        f"import numpy as np\ndef array(x, y):\n    return {WRONG['test_values_shapes_and_dtypes_agree_with_the_op']}\n"
    )
    TestNumpy().test_its_operands_are_unchanged()


@pytest.mark.parametrize("test", WRONG)
def test_the_suite_fails_on_a_wrong_kernel(kernel, test):
    kernel(f"import numpy as np\ndef array(x, y):\n    return ({WRONG[test]}).astype(x.dtype)\n")
    with pytest.raises(AssertionError):
        getattr(TestNumpy(), test)()


@pytest.mark.parametrize(
    ("text", "test"),
    [
        (OVERWRITES, "test_its_operands_are_unchanged"),
        (OVERWRITES, "test_a_kernel_of_arrays_returns_a_new_array"),
        (OPERAND, "test_a_kernel_of_arrays_returns_a_new_array"),
    ],
)
def test_the_suite_fails_on_a_kernel_that_takes_its_operands(kernel, text, test):
    kernel(text)
    with pytest.raises((AssertionError, ValueError)):
        getattr(TestNumpy(), test)()


def test_the_suite_fails_if_the_kernel_is_not_found(fresh_catalogue):
    with pytest.raises(AssertionError, match="no plugin offers acme-tilts:tilt.numpy"):
        TestNumpy().test_the_backend_finds_the_kernel()


def test_the_suite_fails_if_the_gradient_does_not_match_the_kernel(kernel):
    kernel()
    with pytest.raises(AssertionError):
        Steep().test_the_gradient_agrees_with_finite_differences()


@pytest.mark.parametrize("suite", [TestNumpy, TestNumba])
def test_the_speed_of_a_kernel_is_reported_next_to_that_of_its_expansion(kernel, suite):
    kernel()
    found: dict[str, object] = {}
    suite().test_its_speed_is_reported(found.__setitem__)
    assert [name.rpartition(" ")[2] for name in found] == ["kernel", "expansion"]
    assert all(isinstance(seconds, float) for seconds in found.values())
