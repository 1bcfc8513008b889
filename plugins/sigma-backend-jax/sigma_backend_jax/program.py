"""A step as one jitted loop, which runs a burst in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import define, field
from jax import lax

from sigma_backend_jax.namespace import Reach, namespace, reading
from sigma_kernel.contracts import Array, Arrays, Burst, Numbers, Step
from sigma_kernel.graph import Graph, interpret

ROOM = 64  # iterations, at least, that a compiled loop has room for
READERS = ("take", "scatter_add")  # ops that read indices
Traced = Callable[..., tuple[tuple[Array, ...], list[Reach]]]


def traced(graph: Graph) -> Traced:
    """Return a graph as a function that JAX can trace: from inputs to outputs, and what its ops read."""
    run = interpret(graph, namespace())

    def call(*arrays: Array) -> tuple[tuple[Array, ...], list[Reach]]:
        with reading() as found:
            return run(*arrays), found

    return call


def check(found: Sequence[Reach]) -> None:
    """Raise SigmaGraphError for the first op that read an index outside of its axis."""
    for one in found:
        one.check()


def reads(graph: Graph) -> bool:
    """Return whether an op of a graph reads indices, so that its step may fail."""
    return any(x.op in READERS or (x.op == "scan" and reads(x.attrs["body"])) for x in graph)


@define(eq=False, slots=False)
class JaxProgram:
    """A compiled step: bursts of up to 64 iterations, and then up to each power of two, share a loop."""

    step: Step
    device: jax.Device
    in_place: bool
    _burst: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Prepare the loop, compiled at the first burst of each size; state that may be lost is not donated."""
        donated = (0,) if self.in_place and not reads(self.step.graph) else ()
        self._burst = jax.jit(partial(loop, self.step), donate_argnums=donated)

    @cached_property
    def peak_bytes(self) -> int:
        """Return the memory of the results and the intermediate values of an iteration in bytes, as XLA plans it."""
        with jax.enable_x64(True):
            shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.step.graph.inputs]
            planned = jax.jit(traced(self.step.graph)).lower(*shapes).compile().memory_analysis()
        return 0 if planned is None else int(planned.temp_size_in_bytes + planned.output_size_in_bytes)

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps in one call; see :class:`sigma_kernel.contracts.Program`."""
        step, room = self.step, max(ROOM, 1 << (n - 1).bit_length())
        written = {name: state[name] for name in step.writes}
        read = {name: state[name] for name in step.state if name not in step.writes}
        kinds = [x.dtype for x in step.graph.inputs[len(step.state) + len(step.data) :]]
        live = [_filled(steer[name], room, kind) for name, kind in zip(step.steer, kinds, strict=True)]
        with jax.enable_x64(True), jax.default_device(self.device):
            data = [block[name] for name in step.data]
            done, new, ring, found = self._burst(written, read, data, _filled(rows, room, "int32"), live, np.int32(n))
            check(found)
            count = int(done)
            records = {name: np.array(x)[:count] for name, x in zip(step.ring, jax.device_get(ring), strict=True)}
        return Burst({**state, **new}, records, count)


def loop(
    step: Step, written: Arrays, read: Arrays, data: Sequence[Array], rows: Array, live: Sequence[Array], n: Array
) -> tuple[Array, Arrays, list[Array], list[Reach]]:
    """Run ``n`` iterations, fewer if a loss is not finite or an index lies outside of its axis.

    ``rows`` and ``live`` have room for more. Return the number of iterations, the new state, the records, and what
    the last iteration read.
    """
    call, loss = traced(step.graph), [place for place, name in enumerate(step.ring) if name == "loss"]

    def iteration(i: Array, written: Arrays) -> tuple[Arrays, Sequence[Array], list[Reach]]:
        state = [written[name] if name in written else read[name] for name in step.state]
        results, found = call(*state, *(x[rows[i]] for x in data), *(x[i] for x in live))
        count = len(step.writes)
        return dict(zip(step.writes, results[:count], strict=True)), results[count:], found

    def one(carry: Any) -> Any:
        i, _, written, ring, _ = carry
        new, records, found = iteration(i, written)
        ring = [held.at[i].set(record) for held, record in zip(ring, records, strict=True)]
        fine = [jnp.isfinite(records[place]).all() for place in loss] + [one.fits for one in found]
        return i + 1, jnp.all(jnp.array([True, *fine])), new, ring, found

    _, records, found = jax.eval_shape(iteration, jnp.int32(0), written)
    ring = [jnp.zeros((rows.shape[0], *x.shape), x.dtype) for x in records]
    found = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), found)
    begin = jnp.int32(0), jnp.array(True), written, ring, found
    done, _, new, ring, found = lax.while_loop(lambda carry: (carry[0] < n) & carry[1], one, begin)
    return done, new, ring, found


def _filled(values: Any, room: int, dtype: str) -> np.ndarray:
    """Return one number, or one for each iteration, with room for more iterations."""
    given = np.asarray(values, dtype)
    if not given.ndim:
        return np.full(room, given)
    return np.concatenate([given, np.repeat(given[-1:], room - len(given), axis=0)])
