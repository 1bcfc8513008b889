"""Conformance suites for activations and ops, to inherit in a plugin's tests.

::

    class TestSoftsign(ActivationSuite):
        def make(self) -> Callable[[Node], Node]:
            return softsign

        def expected(self, x: np.ndarray) -> np.ndarray:
            return x / (1 + np.abs(x))
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import FLOATS, MEANINGS, OPS, Graph, Node, Spec, symbol, trace
from sigma_kernel.graph.ops import Op
from sigma_kernel.graph.rewriting import rewrite
from sigma_testing.cases import Sample
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.gradients import SCALES, Slopes
from sigma_testing.null import NullBackend
from sigma_testing.suite import alike


class ActivationSuite(DeterministicSuite):
    """Conformance tests of an activation: inherit, and override the two abstract methods."""

    scales: ClassVar[Sequence[float]] = SCALES  # of inputs at which gradients are checked

    @abstractmethod
    def make(self) -> Callable[[Node], Node]:
        """Return the activation under test: a function of a node."""

    @abstractmethod
    def expected(self, x: np.ndarray) -> np.ndarray:
        """Return the values at ``x``, in float64, computed without Sigma."""

    def run(self, x: np.ndarray) -> np.ndarray:
        """Return the activation of an array, computed in NumPy."""
        (result,) = interpret(trace(self.make(), Spec(x.shape, x.dtype.name)), numpy_namespace())(x)
        return np.asarray(result)

    def values(self) -> np.ndarray:
        """Return numbers of every size, and zero, in rows of 5."""
        draw = np.random.default_rng(0).normal(size=(12, 5))
        return np.concatenate([draw * scale for scale in self.scales] + [np.zeros((1, 5))])

    def use(self) -> None:
        """Make it, and use it once."""
        self.run(np.ones((3, 5)))

    def results(self) -> Mapping[str, Any]:
        """Return the values and the gradients for numbers of every size."""
        slopes, values = self._slopes(3), self.values()
        return {"values": self.run(values), "gradients": slopes.run([values[:3]])[1:-1]}

    def test_it_is_what_others_compute(self) -> None:
        """Compare with ``expected`` in both precisions."""
        for precision, tolerance in (("float64", 1e-10), ("float32", 2e-5)):
            x = self.values().astype(precision)
            wanted = self.expected(x.astype(np.float64))
            np.testing.assert_allclose(self.run(x), wanted, rtol=tolerance, atol=tolerance)

    @pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 5), (2, 3, 4), (2, 3, 4, 5), (0, 3)])
    @pytest.mark.parametrize("precision", ["float32", "float64"])
    def test_shape_and_precision_stay_as_they_are(self, shape: tuple[int, ...], precision: str) -> None:
        """Apply it to arrays of up to four axes, and of no rows."""
        result = self.run(np.zeros(shape, precision))
        assert (result.shape, result.dtype.name) == (shape, precision)

    def test_a_row_does_not_depend_on_the_others(self) -> None:
        """Apply it to rows, alone and together."""
        x = self.values()
        alone = np.concatenate([self.run(x[i : i + 1]) for i in range(len(x))])
        np.testing.assert_allclose(self.run(x), alone, rtol=1e-12)

    def _slopes(self, rows: int) -> Slopes:
        x = symbol((rows, 5), "float64")
        return Slopes([x], self.make()(x), [0])

    @pytest.mark.parametrize("rows", [1, 3])
    def test_its_gradient_agrees_with_finite_differences(self, rows: int) -> None:
        """Compare for inputs of every size."""
        x, slopes = np.random.default_rng(1).normal(size=(rows, 5)), self._slopes(rows)
        for scale in self.scales:
            slopes.check([x * scale], scale)

    def test_the_gradient_at_a_kink_lies_between_the_slopes_beside_it(self) -> None:
        """Look at zero."""
        self._slopes(2).check_kinks([np.zeros((2, 5))])

    def test_values_and_gradients_of_large_numbers_are_numbers(self) -> None:
        """Apply it to numbers of up to 10,000, in float32."""
        x = symbol((2, 4))
        graph = Graph((x,), (self.make()(x), *gradient(f.sum(self.make()(x)), [x])))
        at = np.array([[-1e4, -88.0, 88.0, 1e4], [-17.0, 17.0, 1e3, -1e3]], np.float32)
        for result in interpret(graph, numpy_namespace())(at):
            assert not np.isnan(result).any()

    def test_two_calls_give_the_same_graph(self) -> None:
        """Trace twice: an activation draws no random numbers, and counts nothing."""
        spec = Spec((3, 5), "float64")
        assert trace(self.make(), spec) == trace(self.make(), spec)


class OpSuite(DeterministicSuite):
    """Conformance tests of a plugin's op: inherit, and override the two abstract methods.

    The op is run on :meth:`backends`; by default on one that computes the meanings of ops.
    """

    scales: ClassVar[Sequence[float]] = SCALES  # of the samples, at which gradients are checked where these are finite

    @abstractmethod
    def make(self) -> Op:
        """Return the op under test."""

    @abstractmethod
    def samples(self) -> Sequence[Sample]:
        """Return operands and attributes, at which the op can be differentiated twice."""

    def expected(self, *operands: np.ndarray, **attrs: object) -> np.ndarray | None:
        """Return the result, computed without Sigma; None if the expansion is the definition."""
        return None

    def backends(self) -> Sequence[Backend]:
        """Return the backends to run the op on."""
        return [NullBackend()]

    def _result(self, graph: Graph, *operands: np.ndarray) -> np.ndarray:
        return np.asarray(interpret(graph, numpy_namespace())(*operands)[0])

    def use(self) -> None:
        """Make it, and use it once."""
        for sample in self.samples():
            self._result(sample.graph(), *sample.arrays)

    def results(self) -> Mapping[str, Any]:
        """Return the values and the gradients for the samples."""
        graphs = [(sample.graph(), sample.arrays) for sample in self.samples()]
        slopes = [(self._slopes(graph, graph.outputs[0]), arrays) for graph, arrays in graphs]
        return {
            "values": [self._result(graph, *arrays) for graph, arrays in graphs],
            "gradients": [slope.run(arrays)[1:-1] for slope, arrays in slopes if slope],
        }

    def test_it_is_in_the_table_under_the_name_of_its_distribution(self) -> None:
        """Make it with op("distribution:name", ...)."""
        op = self.make()
        assert op.name in OPS
        assert ":" in op.name, f"{op.name}: is not of the form distribution:name"
        assert op.expansion is not None or op.name in MEANINGS, f"{op.name}: has neither meaning nor expansion"

    def test_results_have_the_shape_and_dtype_that_its_rules_say(self) -> None:
        """Correct its shape rule, its dtype rule, or its value."""
        for sample in self.samples():
            assert sample.op == self.make().name
            for precision in ("float32", "float64"):
                graph = sample.graph(precision)
                value = self._result(graph, *sample.operands(precision))
                assert (value.shape, value.dtype.name) == (graph.outputs[0].shape, graph.outputs[0].dtype), str(sample)

    def test_results_are_what_others_compute(self) -> None:
        """Correct its meaning or its expansion."""
        for sample in self.samples():
            wanted = self.expected(*sample.arrays, **sample.attrs)
            if wanted is not None:
                np.testing.assert_allclose(
                    self._result(sample.graph(), *sample.arrays), wanted, rtol=1e-10, atol=1e-12, err_msg=str(sample)
                )

    def test_both_precisions_compute_the_same(self) -> None:
        """Treat numbers of both precisions alike in the meaning or the expansion."""
        for sample in self.samples():
            given = sample.operands("float32")
            wide = [x.astype(np.float64) if x.dtype == np.float32 else x for x in given]
            single, double = self._result(sample.graph("float32"), *given), self._result(sample.graph(), *wide)
            size = np.max(np.abs(double[np.isfinite(double)].astype(float)), initial=1e-30)
            np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4 * size, err_msg=str(sample))

    def test_entries_are_computed_apart_if_its_shape_rule_says_so(self) -> None:
        """Use shapes.same and shapes.binary only if no entry depends on those at other places, not even by NaN."""
        if self.make().entries != "apart":
            return
        for sample in self.samples():
            shape = np.broadcast_shapes(*(x.shape for x in sample.arrays))
            flat = [np.broadcast_to(x, shape).ravel() for x in sample.arrays]
            half = (len(flat[0]) + 1) // 2
            first = evolve(sample, arrays=tuple(x[:half] for x in flat))
            spoilt = [np.where(np.arange(x.size) < half, x, np.nan) if x.dtype == np.float64 else x for x in flat]
            whole = evolve(sample, arrays=tuple(spoilt))
            half_alone, together = (self._result(each.graph(), *each.arrays) for each in (first, whole))
            np.testing.assert_allclose(
                together[:half], half_alone, rtol=1e-12, err_msg=f"{sample}: entries depend on others"
            )

    def test_meaning_and_expansion_agree(self) -> None:
        """Correct one of them: they are the same function."""
        op = self.make()
        expand = op.expansion
        for sample in self.samples() if expand and op.name in MEANINGS else ():
            graph = sample.graph()
            expanded = Graph(graph.inputs, (expand(*graph.inputs, **sample.attrs),))  # type: ignore[misc]
            meant = MEANINGS[op.name](numpy_namespace(), *sample.arrays, **sample.attrs)
            np.testing.assert_allclose(self._result(expanded, *sample.arrays), meant, rtol=1e-10, err_msg=str(sample))

    def _slopes(self, graph: Graph, output: Node) -> Slopes | None:
        places = [i for i, x in enumerate(graph.inputs) if x.dtype in FLOATS]
        return Slopes(graph.inputs, output, places) if places and output.dtype in FLOATS else None

    def test_its_gradient_agrees_with_finite_differences(self) -> None:
        """Correct its gradient rule."""
        for sample in self.samples():
            graph = sample.graph()
            if (slopes := self._slopes(graph, graph.outputs[0])) is not None:
                slopes.check(sample.arrays)
                for scale in self.scales:
                    slopes.check([x * scale if x.dtype == np.float64 else x for x in sample.arrays], scale)

    def test_the_gradient_of_its_gradient_agrees_with_finite_differences(self) -> None:
        """Write the gradient rule in ops that have gradients."""
        for sample in self.samples():
            graph = sample.graph()
            places = [x for x in graph.inputs if x.dtype in FLOATS]
            if places and graph.outputs[0].dtype in FLOATS:
                loss = f.sum(f.sin(graph.outputs[0]))
                first = f.concat(*(f.reshape(x, (-1,)) for x in gradient(loss, places)), axis=0)
                Slopes(graph.inputs, first, [i for i, x in enumerate(graph.inputs) if x.dtype in FLOATS]).check(
                    sample.arrays
                )

    def test_graphs_with_it_print_and_pickle(self) -> None:
        """Use attributes that are plain values."""
        for sample in self.samples():
            graph = sample.graph()
            assert self.make().name in str(graph)
            again = pickle.loads(pickle.dumps(graph))
            assert again == graph == sample.graph()
            assert alike(*(self._result(version, *sample.arrays).tobytes() for version in (again, graph)))

    def test_rewriting_keeps_its_results(self) -> None:
        """Make its results depend on its operands and attributes alone."""
        for sample in self.samples():
            graph = sample.graph()
            for keep in (OPS, ()):
                result = self._result(rewrite(graph, keep=keep), *sample.arrays)
                np.testing.assert_allclose(result, self._result(graph, *sample.arrays), rtol=1e-10, err_msg=str(sample))

    def test_operands_that_it_cannot_take_are_refused_with_its_name(self) -> None:
        """Let its shape rule raise for operands that do not fit."""
        sample = self.samples()[0]
        with pytest.raises(SigmaGraphError, match=self.make().name):
            self.make()(*[symbol((2, 3))] * (len(sample.arrays) + 7), **sample.attrs)
        with pytest.raises(SigmaGraphError, match=self.make().name):
            self.make()(*map(symbol, [x.shape for x in sample.arrays]), **sample.attrs, no_such_attribute=1)

    def test_operands_are_unchanged(self) -> None:
        """Compute with new arrays in the meaning."""
        for sample in self.samples():
            before = [x.copy() for x in sample.arrays]
            self._result(sample.graph(), *sample.arrays)
            for now, then in zip(sample.arrays, before, strict=True):
                np.testing.assert_array_equal(now, then)

    def test_backends_compute_its_meaning(self) -> None:
        """Use functions of the array namespace that is passed to the meaning."""
        for backend in self.backends():
            for sample in self.samples():
                wanted = self._result(sample.graph("float32"), *sample.operands("float32"))
                (result,) = backend.lower(sample.graph("float32"), {})(
                    *map(backend.to_device, sample.operands("float32"))
                )
                np.testing.assert_allclose(backend.to_host(result), wanted, rtol=2e-5, atol=2e-5, err_msg=str(sample))
