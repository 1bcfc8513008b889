"""A step as one jitted loop, which runs a burst in one call; steps with convolutions on a CPU are called one by one.

In the body of a loop, XLA's convolutions on a CPU take 15 to 30 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import define, field
from jax import lax

from sigma_backend_jax.devices import use_device
from sigma_backend_jax.namespace import Reach, namespace, reading
from sigma_kernel.contracts import Array, Arrays, Burst, Numbers, Step
from sigma_kernel.graph import Graph, interpret, takes_indices

ROOM = 64  # iterations, at least, that a compiled loop has room for
CONVOLUTIONS = ("convolution", "convolution_input", "convolution_kernel")
Traced = Callable[..., tuple[tuple[Array, ...], list[Reach]]]


def to_traceable(graph: Graph) -> Traced:
    """Return a graph as a function that JAX can trace: from inputs to outputs, and what its ops read."""
    run = interpret(graph, namespace())

    def call(*arrays: Array) -> tuple[tuple[Array, ...], list[Reach]]:
        with reading() as reaches:
            return run(*arrays), reaches

    return call


def check(found: Sequence[Reach]) -> None:
    """Raise SigmaGraphError for the first op that read an index outside of its axis."""
    for reach in found:
        reach.check()


def convolves(graph: Graph) -> bool:
    """Return whether a step computes convolutions."""
    return any(x.op in CONVOLUTIONS for x in graph)


@define(eq=False, slots=False)
class JaxProgram:
    """A compiled step: bursts of up to 64 iterations, and then up to each power of two, share a loop."""

    step: Step
    device: jax.Device
    in_place: bool
    _burst: Any = field(init=False)
    _alone: bool = field(init=False)  # whether each iteration is a separate call

    def __attrs_post_init__(self) -> None:
        """Prepare the loop, compiled at the first burst of each size; state that may be lost is not donated."""
        spent = self.in_place and not takes_indices(self.step.graph)
        self._alone = self.device.platform == "cpu" and convolves(self.step.graph)
        run = iteration if self._alone else loop
        self._burst = jax.jit(partial(run, self.step), donate_argnums=(0,) if spent else ())

    @cached_property
    def peak_bytes(self) -> int:
        """Return the memory of the results and the intermediate values of an iteration in bytes, as XLA plans it."""
        with jax.enable_x64(True):
            shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.step.graph.inputs]
            planned = jax.jit(to_traceable(self.step.graph)).lower(*shapes).compile().memory_analysis()
        return 0 if planned is None else int(planned.temp_size_in_bytes + planned.output_size_in_bytes)

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps; see :class:`sigma_kernel.contracts.Program`."""
        step = self.step
        written = {name: state[name] for name in step.writes}
        read = {name: state[name] for name in step.state if name not in step.writes}
        kinds = [x.dtype for x in step.graph.inputs[len(step.state) + len(step.data) :]]
        room = n if self._alone else max(ROOM, 1 << (n - 1).bit_length())
        live = [_pad_values(steer[name], room, kind) for name, kind in zip(step.steer, kinds, strict=True)]
        with use_device(self.device):
            run = self._run_each if self._alone else self._at_once
            new, records, done = run(written, (read, [block[name] for name in step.data]), rows, live, n)
        return Burst({**state, **new}, dict(zip(step.ring, records, strict=True)), done)

    def _at_once(
        self, written: Arrays, given: Any, rows: np.ndarray, live: Sequence[np.ndarray], n: int
    ) -> tuple[Arrays, list[np.ndarray], int]:
        """Run a burst in one call; return the new state, the records and the number of iterations."""
        room = max(ROOM, 1 << (n - 1).bit_length())
        done, new, ring, reaches = self._burst(written, *given, _pad_values(rows, room, "int32"), live, np.int32(n))
        check(reaches)
        return new, [np.array(x)[: int(done)] for x in jax.device_get(ring)], int(done)

    def _run_each(
        self, written: Arrays, given: Any, rows: np.ndarray, live: Sequence[np.ndarray], n: int
    ) -> tuple[Arrays, list[np.ndarray], int]:
        """Run a burst with a call for each iteration; return what :meth:`_at_once` returns."""
        kept: list[list[np.ndarray]] = []
        losses = [place for place, name in enumerate(self.step.ring) if name == "loss"]
        for i in range(n):
            written, records, reaches = self._burst(written, *given, rows[i].astype("int32"), [x[i] for x in live])
            check(reaches)
            kept.append([np.array(x) for x in jax.device_get(records)])
            if not all(np.isfinite(kept[-1][place]).all() for place in losses):
                break
        return written, [np.stack(column) for column in zip(*kept, strict=True)], len(kept)


def iteration(
    step: Step, written: Arrays, read: Arrays, data: Sequence[Array], row: Array, live: Sequence[Array]
) -> tuple[Arrays, Sequence[Array], list[Reach]]:
    """Return the new state, the records, and the step's reads."""
    state = [written[name] if name in written else read[name] for name in step.state]
    results, reaches = to_traceable(step.graph)(*state, *(x[row] for x in data), *live)
    count = len(step.writes)
    return dict(zip(step.writes, results[:count], strict=True)), results[count:], reaches


def loop(
    step: Step, written: Arrays, read: Arrays, data: Sequence[Array], rows: Array, live: Sequence[Array], n: Array
) -> tuple[Array, Arrays, list[Array], list[Reach]]:
    """Run ``n`` iterations, fewer if a loss is not finite or an index is out of range.

    ``rows`` and ``live`` have room for more. Return the number of iterations, the new state, the records, and the reads
    of the last iteration.
    """
    loss = [place for place, name in enumerate(step.ring) if name == "loss"]

    def run_iteration(i: Array, written: Arrays) -> tuple[Arrays, Sequence[Array], list[Reach]]:
        return iteration(step, written, read, data, rows[i], [x[i] for x in live])

    def advance(carry: Any) -> Any:
        i, _, written, ring, _ = carry
        new, records, reaches = run_iteration(i, written)
        ring = [held.at[i].set(record) for held, record in zip(ring, records, strict=True)]
        fine = [jnp.isfinite(records[place]).all() for place in loss] + [reach.fits for reach in reaches]
        return i + 1, jnp.all(jnp.array([True, *fine])), new, ring, reaches

    _, records, reaches = jax.eval_shape(run_iteration, jnp.int32(0), written)
    ring = [jnp.zeros((rows.shape[0], *x.shape), x.dtype) for x in records]
    reaches = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), reaches)
    begin = jnp.int32(0), jnp.array(True), written, ring, reaches
    done, _, new, ring, reaches = lax.while_loop(lambda carry: (carry[0] < n) & carry[1], advance, begin)
    return done, new, ring, reaches


def _pad_values(values: Any, room: int, dtype: str) -> np.ndarray:
    """Return one number, or one for each iteration, with room for more iterations."""
    given = np.asarray(values, dtype)
    if not given.ndim:
        return np.full(room, given)
    return np.concatenate([given, np.repeat(given[-1:], room - len(given), axis=0)])
