"""What the kernel of an op on one backend must do, as a class to inherit in a plugin's tests.

::

    class TestSoftsignOnNumba(LoweringSuite):
        name = "numba"

        def backend(self) -> Backend:
            return NumbaBackend()

        def samples(self) -> list[Sample]:
            return [Sample("acme-sigma:softsign", (np.linspace(-3.0, 3.0, 35).reshape(5, 7),))]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from timeit import repeat
from types import MappingProxyType

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.contracts import Backend
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.gradient import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import OPS, Graph
from sigma_kernel.plugins.catalogue import Lowerings
from sigma_kernel.testing.edges import FLOATS
from sigma_kernel.testing.samples import Sample

Arrays = tuple[np.ndarray, ...]


class LoweringSuite(ABC):
    """Inherit, name the backend, override :meth:`backend` and :meth:`samples`, and let pytest find the rest.

    Samples have two rows or more, and floats that keep away from where the op has no derivative.  The last one is that
    whose speed is reported.
    """

    name: str
    tolerance: Mapping[str, float] = MappingProxyType({"float32": 1e-5, "float64": 1e-11})

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend that the kernel is for."""

    @abstractmethod
    def samples(self) -> Sequence[Sample]:
        """Return operands and attributes of the op."""

    def _run(self, graph: Graph) -> Callable[..., Arrays]:
        backend, run = self.backend(), self.backend().lower(graph, {})
        return lambda *arrays: tuple(backend.to_host(x) for x in run(*map(backend.to_device, arrays)))

    def test_the_backend_finds_the_kernel(self) -> None:
        for sample in self.samples():
            assert Lowerings(self.name).get(sample.op) is not None, f"no plugin offers {sample.op}.{self.name}"

    def test_values_shapes_and_dtypes_are_those_of_the_op(self) -> None:
        self._agree(self.samples())

    def test_edges_give_what_the_op_gives(self) -> None:
        self._agree([evolve(x, arrays=(np.resize(FLOATS, x.arrays[0].shape), *x.arrays[1:])) for x in self.samples()])

    def _agree(self, samples: Sequence[Sample]) -> None:
        for sample, precision in product(samples, self.tolerance):
            graph, arrays, allowed = sample.graph(precision), sample.at(precision), self.tolerance[precision]
            (wanted,), (found,) = interpret(graph, numpy_namespace())(*arrays), self._run(graph)(*arrays)
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), str(sample)
            np.testing.assert_allclose(found, wanted, rtol=allowed, atol=allowed, err_msg=str(sample))

    def test_the_gradient_is_that_of_finite_differences(self) -> None:
        for sample in self.samples():
            graph, draw = sample.graph(), np.random.default_rng(0)
            loss, places = f.sum(f.sin(graph.outputs[0] * 1.3 + 0.5)), _floats(graph)
            along = [draw.normal(size=x.shape) * (i in places) for i, x in enumerate(sample.arrays)]
            run = self._run(Graph(graph.inputs, (loss, *gradient(loss, [graph.inputs[i] for i in places]))))
            low, high = (run(*(x + h * v for x, v in zip(sample.arrays, along, strict=True)))[0] for h in (-1e-5, 1e-5))
            slopes = run(*sample.arrays)[1:]
            found = sum(float(np.sum(slope * along[i])) for i, slope in zip(places, slopes, strict=True))
            assert found == pytest.approx(float(high - low) / 2e-5, rel=1e-6, abs=1e-7), str(sample)

    def test_equal_operands_give_equal_bits_in_any_row(self) -> None:
        for sample in self.samples():
            run, rank = self._run(sample.graph()), len(sample.graph().outputs[0].shape)
            first = run(*sample.arrays)[0]
            assert run(*sample.arrays)[0].tobytes() == first.tobytes(), str(sample)
            turned = run(*(x[::-1] if x.ndim == rank > 1 else x for x in sample.arrays))[0]
            assert (turned if rank < 2 else turned[::-1]).tobytes() == first.tobytes(), str(sample)

    def test_its_speed_is_reported(self, record_property: Callable[[str, object], None]) -> None:
        """Report the seconds of the last sample, by its kernel and by its expansion; nothing depends on them."""
        sample = self.samples()[-1]
        graph, expansion, arrays = sample.graph("float32"), OPS[sample.op].expansion, sample.at("float32")
        outputs = {"kernel": graph.outputs[0]}
        if expansion is not None:
            outputs["expansion"] = expansion(*graph.inputs, **sample.attrs)
        for what, output in outputs.items():
            run = self._run(Graph(graph.inputs, (output,)))
            record_property(f"{sample.op}.{self.name}: {what}", min(repeat(lambda: run(*arrays), number=1, repeat=20)))  # noqa: B023


def _floats(graph: Graph) -> list[int]:
    return [i for i, x in enumerate(graph.inputs) if x.dtype == "float64"]
