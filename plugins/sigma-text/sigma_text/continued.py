"""Continue sequences: compute a network for a piece of them, such as the next token, from the layers' memory.

::

    step = Continued.of(network, shapes, sections, "float32", resolve)
    (prediction, *memory) = run(step.graph, tokens, position, *values, *memory)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.contracts import Rewriting
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import FLOATS, Graph, Spec, symbol
from sigma_kernel.graph.reprs import brief
from sigma_kernel.network.network import LAYERS, Network
from sigma_kernel.network.tracing import Continuation, Parameter, Resolve, Shapes, Trace
from sigma_step.rewritings import apply_rewritings

CHECKED = 3  # entries of which results are compared with those for whole sequences

REMEDY = "Only layers that look back alone, and keep the axis of time, continue sequences."

Specs = Mapping[str, Spec]


@frozen(eq=False)
class Continued:
    """A network for pieces of sequences.

    The graph takes the sections of a piece, ``(rows, count, ...)``, or ``(rows,)`` without an axis of time; the place
    of its first entry, int32; the ``values`` of parameters, state and live settings by address; and the ``memory``, at
    first zeros. It returns the predictions of the ``outputs``, then the new memory. Sequences have at most ``length``
    entries.
    """

    graph: Graph
    values: tuple[str, ...]
    memory: dict[str, Spec]
    outputs: tuple[str, ...]
    length: int

    __repr__ = brief

    @classmethod
    def from_network(
        cls, network: Network, shapes: Shapes, sections: Specs, precision: str, resolve: Resolve,
        rows: int = 1, count: int = 1, rewritings: Mapping[str, Rewriting] = MappingProxyType({}),
    ) -> Continued:  # fmt: skip
        """Return the network for pieces of ``count`` entries; ``sections`` are specs of whole samples, time first.

        ``rewritings`` change its graph.

        Raises SigmaNetworkError with the name of the first layer that computes something else for whole sequences.
        """
        read = {name: sections[name] for name in network.sections(costs=False)}
        lengths = {spec.shape[:1] for spec in read.values() if spec.shape}
        if len(lengths) != 1:
            shapes_ = ", ".join(f"{name} {spec.shape}" for name, spec in read.items())
            raise SigmaNetworkError(f"network: only sequences of one length can be continued (got {shapes_}).")
        tracer = _Tracer(network, shapes, read, precision, resolve, rewritings, *lengths.pop())
        evolve(tracer, precision="float64").check()
        return tracer.trace(rows, count)


@frozen(eq=False, repr=False)
class _Tracer:
    """Trace a network for whole sequences and for pieces of them."""

    network: Network
    shapes: Shapes
    sections: Specs
    precision: str
    resolve: Resolve
    rewritings: Mapping[str, Rewriting]
    length: int

    def trace(self, rows: int, count: int | None = None, every: bool = False) -> Continued:
        """Return the network for pieces, or else for whole sequences; ``every`` layer is an output, if wanted."""
        live = dict.fromkeys(self.shapes.live, Spec(()))
        specs: dict[str, Parameter | Spec] = {**self.shapes.parameters, **self.shapes.state, **live}
        values = {a: symbol(p.shape, self._dtype(p.dtype), LAYERS + a) for a, p in specs.items()}
        time = count or self.length
        given = {
            name: symbol((rows, time, *x.shape[1:]) if x.shape else (rows,), self._dtype(x.dtype), name)
            for name, x in self.sections.items()
        }
        there = Continuation(symbol((), "int32", "position"), self.length)
        trace = Trace(self.resolve, False, None, self.precision, values, there if count else None)
        forward = self.network.forward(trace, given)
        nodes = forward.values if every else forward.predictions
        inputs = (*given.values(), there.position, *values.values(), *there.before.values())
        after = (there.after[address] for address in there.before)
        memory = {address: node.spec for address, node in there.before.items()}
        kinds = {placed.name: frozenset([placed.kind]) for placed in self.network.layers}
        graph = Graph(inputs, (*nodes.values(), *after))
        graph = apply_rewritings(graph, self.rewritings, False, lambda address: kinds.get(address, frozenset()))
        return Continued(graph, (*values,), memory, (*nodes,), self.length)

    def _dtype(self, dtype: str | None) -> str:
        return self.precision if dtype is None or dtype in FLOATS else dtype

    def check(self) -> None:
        """Compare the first entries with those of whole sequences, for random values."""
        draw, whole = np.random.default_rng(0), self.trace(2, every=True)
        try:
            step = self.trace(2, 1, every=True)
        except SigmaNetworkError as error:
            raise SigmaNetworkError(f"{str(error).rstrip('.')}. {REMEDY}") from error
        counts = [self.shapes.indices.get(name, 2) for name in self.sections]
        arrays = [
            draw.uniform(0.1, 0.6, x.shape) if x.dtype in FLOATS else draw.integers(0, count, x.shape).astype(x.dtype)
            for x, count in zip(whole.graph.inputs, [*counts, *[1] * len(whole.graph.inputs)], strict=False)
        ]
        samples, values = arrays[: len(counts)], arrays[len(counts) + 1 :]
        expected = interpret(whole.graph, numpy_namespace())(*arrays)
        memory = [np.zeros(spec.shape, spec.dtype) for spec in step.memory.values()]
        for t in range(min(CHECKED, self.length)):
            pieces = [x[:, t : t + 1] if x.ndim > 1 else x for x in samples]
            results = interpret(step.graph, numpy_namespace())(*pieces, np.asarray(t, np.int32), *values, *memory)
            memory = list(results[len(step.outputs) :])
            for name, piece, all_ in zip(step.outputs, results, expected, strict=False):
                here = all_[:, t : t + 1] if all_.ndim > 1 else all_
                if here.shape != piece.shape or not np.allclose(here, piece, 1e-6, 1e-9):
                    raise SigmaNetworkError(
                        f"{name}: computes other values for single entries than for whole sequences. {REMEDY}"
                    )
