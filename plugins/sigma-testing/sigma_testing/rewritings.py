"""A conformance suite for rewritings, to inherit in a plugin's tests.

::

    class TestQuantisedWeights(RewritingSuite):
        def make(self) -> Rewriting:
            return QuantisedWeights(bits=4)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Rewriting
from sigma_kernel.errors import SigmaComponentError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Node, originating, symbol
from sigma_step.rewritings import rewrite_graph
from sigma_testing.determinism import DeterministicSuite
from sigma_testing.gradients import Slopes

ORIGIN = "1-dense"
WEIGHTS = f"network.layers.{ORIGIN}.weights"
FEATURES, UNITS = 4, 3


class RewritingSuite(DeterministicSuite):
    """Conformance tests of a rewriting: inherit, and override :meth:`make`, and :meth:`forward` if need be."""

    @abstractmethod
    def make(self) -> Rewriting:
        """Return the rewriting under test, with settings by which it replaces nodes of :meth:`forward`."""

    def forward(self, x: Node, weights: Node) -> Node:
        """Return the output of a layer in which it replaces nodes.

        Shapes: ``(batch, 4)``, ``(4, 3)`` -> ``(batch, ...)``. By default, it is ``tanh(x @ weights)``.
        """
        return f.tanh(x @ weights)

    def graph(self, batch: int, dtype: str = "float64") -> Graph:
        """Return the graph of the layer: its inputs are a batch and the weights."""
        x, weights = symbol((batch, FEATURES), dtype, "inputs"), symbol((FEATURES, UNITS), dtype, WEIGHTS)
        with originating(ORIGIN):
            return Graph((x, weights), (self.forward(x, weights),))

    def rewrite(self, graph: Graph, training: bool = True, rewriting: Rewriting | None = None) -> Graph:
        """Return what it makes of a graph; it must read no other inputs."""
        tags = {ORIGIN: frozenset({"dense"})}
        done = rewrite_graph(graph, rewriting or self.make(), training, lambda address: tags.get(address, frozenset()))
        strange = [node.attrs["name"] for node in done if node.op == "input" and node not in {*graph.inputs}]
        assert not strange, f"it reads an input that the network does not have: {strange[0]!r}"
        return done

    def values(self, batch: int, dtype: str = "float64", scale: float = 1.0) -> Sequence[np.ndarray]:
        """Return a batch and weights, normally distributed."""
        draw = np.random.default_rng(5)
        return [(scale * draw.normal(size=shape)).astype(dtype) for shape in ((batch, FEATURES), (FEATURES, UNITS))]

    def run(self, graph: Graph, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the output of a graph, computed in NumPy."""
        return np.asarray(interpret(graph, numpy_namespace())(*values)[0])

    def use(self) -> None:
        """Rewrite a graph."""
        self.rewrite(self.graph(2))

    def results(self) -> Mapping[str, Any]:
        """Return the output and the gradients of a rewritten graph."""
        graph = self.rewrite(self.graph(2))
        slopes = Slopes(graph.inputs, graph.outputs[0], [0, 1]).run(self.values(2))[1:-1]
        return {"output": self.run(graph, self.values(2)), "gradients": slopes}

    def test_it_replaces_nodes(self) -> None:
        """Override `forward` so that there is something to replace, in training."""
        graph = self.graph(3)
        assert self.rewrite(graph) != graph, "it returns the graph that it was given"

    def test_every_batch_and_dtype_keeps_its_shape(self) -> None:
        """Return nodes of the same shape and dtype, for one row and for many, in float32 and in float64."""
        for batch, dtype, training in ((1, "float64", True), (2, "float32", True), (1025, "float32", False)):
            graph = self.graph(batch, dtype)
            (output,) = self.rewrite(graph, training).outputs
            assert output.spec == graph.outputs[0].spec

    def test_it_returns_the_same_graph_again(self) -> None:
        """Decide by the node alone: hold no counters, and draw no random numbers."""
        rewriting, graph = self.make(), self.graph(3)
        first = self.rewrite(graph, rewriting=rewriting)
        assert first == self.rewrite(graph, rewriting=rewriting), "it rewrites a graph in another way the second time"
        assert first == self.rewrite(graph), "another one with equal settings rewrites the graph in another way"

    def test_layers_that_do_not_match_stay_as_they_are(self) -> None:
        """Leave `match` to the base class; it is a keyword with the default `**`."""
        rewriting, graph = attrs.evolve(self.make(), match="2-other"), self.graph(3)
        assert self.rewrite(graph, rewriting=rewriting) == graph, "it changes a layer that `match` leaves out"

    def test_results_are_finite(self) -> None:
        """Scale the inputs from small ones to large ones, and to zero."""
        for scale, training in ((0.0, True), (1e-3, True), (1.0, False), (30.0, True)):
            graph = self.rewrite(self.graph(3, "float32"), training)
            with np.errstate(all="ignore"):
                result = self.run(graph, self.values(3, "float32", scale))
            assert np.isfinite(result).all(), f"inputs of scale {scale:g} give {result.ravel()[:3]}"

    def test_a_row_is_evaluated_alike_in_every_batch(self) -> None:
        """Compute a row from this row and from parameters alone, in evaluation."""
        x, weights = self.values(5)
        x[0] *= 10.0
        whole = self.run(self.rewrite(self.graph(5), False), (x, weights))
        part = self.run(self.rewrite(self.graph(2), False), (x[1:3], weights))
        np.testing.assert_allclose(part, whole[1:3], rtol=1e-12, atol=1e-15)

    def test_gradients_agree_with_finite_differences(self) -> None:
        """Compare along random directions; declare `surrogate = True` where gradients are not slopes on purpose."""
        graph = self.rewrite(self.graph(3))
        slopes = Slopes(graph.inputs, graph.outputs[0], [0, 1])
        if self.make().surrogate:
            assert all(np.isfinite(x).all() for x in slopes.run(self.values(3))), "a surrogate gradient is not finite"
        else:
            slopes.check(self.values(3))

    def test_it_can_be_applied_twice(self) -> None:
        """Accept what it has returned: somebody may name it twice."""
        try:
            self.rewrite(self.rewrite(self.graph(3)))
        except SigmaComponentError as error:
            raise AssertionError(str(error)) from error
