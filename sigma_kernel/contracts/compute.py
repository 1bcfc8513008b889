"""What a backend is given, what it returns, and the plain loop for a backend that has none of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from attrs import field, frozen

from sigma_kernel.graph.node import Graph

Array = Any  # whatever a backend holds on its device


@frozen
class Step:
    """One iteration as a pure graph, with a name for every input and output.

    ``graph.inputs`` are the state entries, then one minibatch array for each data section, then the live values;
    ``graph.outputs`` are new values for the state entries named in ``writes``, then what is recorded in the ring.
    A step that writes nothing is an evaluation.  An entry of the ring named ``loss`` is watched for being finite.
    """

    graph: Graph
    state: tuple[str, ...]
    data: tuple[str, ...]
    steer: tuple[str, ...]
    writes: tuple[str, ...]
    ring: tuple[str, ...]

    @property
    def donations(self) -> dict[int, int]:
        """Return for each output that replaces a state entry the input whose storage it may take."""
        return {out: self.state.index(name) for out, name in enumerate(self.writes)}


@frozen
class Burst:
    """The result of a burst: the new state, each step's records ``{name: (n, ...)}``, and the number of steps done.

    ``published`` are values of workers, by address (``workers.0.training.loss``).
    """

    state: Mapping[str, Array]
    ring: Mapping[str, np.ndarray]
    done: int
    published: Mapping[str, Any] = field(factory=dict)


@frozen
class Batches:
    """Minibatches of equal size from one block of data on the device: ``rows`` has shape ``(n, batch)``."""

    block: Mapping[str, Array]
    rows: np.ndarray


@frozen
class Share:
    """What a shard of a batch gives: its loss and the totals of metrics, its gradients, and new layer state, by name.

    Loss, gradients and state are means over its rows; the totals of metrics, ``metrics.<name>``, are sums.
    """

    records: Mapping[str, np.ndarray]
    gradients: Mapping[str, np.ndarray]
    state: Mapping[str, np.ndarray]


class Program(Protocol):
    """A compiled step."""

    @property
    def peak_bytes(self) -> int:
        """Return the working memory in bytes, known before the first run."""

    def run(
        self, state: Mapping[str, Array], block: Mapping[str, Array], rows: np.ndarray, steer: Mapping[str, Any], n: int
    ) -> Burst:
        """Run ``n`` steps: step ``i`` trains on ``block[section][rows[i]]``.

        ``rows`` has shape ``(n, batch)``; a value of ``steer`` is one number or ``n`` of them.  State entries that
        the step writes are dead after the call; those it only reads stay alive.  The burst ends early after a step
        whose ``loss`` is not finite.
        """


class Backend(ABC):
    """Compile graphs and hold arrays on a device.

    A backend implements :meth:`lower`, and gets a plain loop around it; one that runs whole bursts by itself
    overrides :meth:`compile`.  Several threads may use one backend, and one program, at once.
    """

    dtypes: ClassVar[frozenset[str]] = frozenset({"float32", "float64", "int32", "int64", "uint32", "bool"})

    @property
    def about(self) -> Mapping[str, str]:
        """Return what results and speed depend on beside this backend's own code: libraries, a device."""
        return {}

    @property
    def function_error(self) -> float:
        """Return by what part of their value exp, log, tanh and the like may be off, where rounding is less."""
        return 0.0

    @abstractmethod
    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Return a function from input arrays to output arrays.

        ``donate`` maps an output to the input whose storage it may overwrite.  No other output shares memory with
        an input, nor with the outputs of another call.
        """

    def compile(self, step: Step, in_place: bool = True) -> Program:
        """Return the program of a step; with ``in_place``, state entries that it writes may be overwritten."""
        return LoopProgram(self, step, self.lower(step.graph, step.donations if in_place else {}))

    @abstractmethod
    def to_device(self, host: np.ndarray) -> Array:
        """Return a copy of a host array on the device."""

    @abstractmethod
    def to_host(self, array: Array) -> np.ndarray:
        """Return a finished copy of a device array on the host."""

    def take(self, array: Array, rows: np.ndarray) -> Array:
        """Return the named rows of a device array, on the device."""
        return array[rows]


@frozen(eq=False, repr=False)
class LoopProgram:
    """Run a lowered step by calling it once an iteration: the program of a backend without one of its own."""

    backend: Backend
    step: Step
    call: Callable[..., Sequence[Array]]
    peak_bytes: int = 0

    def run(
        self, state: Mapping[str, Array], block: Mapping[str, Array], rows: np.ndarray, steer: Mapping[str, Any], n: int
    ) -> Burst:
        """Run ``n`` steps, one call each; see :class:`Program`."""
        values = [state[name] for name in self.step.state]
        live = [_per_step(steer[name], n) for name in self.step.steer]
        watched = [k for k, name in enumerate(self.step.ring) if name == "loss"]
        records: list[list[np.ndarray]] = []
        for i in range(n):
            batch = [self.backend.take(block[name], rows[i]) for name in self.step.data]
            results = self.call(*values, *batch, *(value[i] for value in live))
            for out, position in self.step.donations.items():
                values[position] = results[out]
            records.append([self.backend.to_host(result) for result in results[len(self.step.writes) :]])
            if not all(np.isfinite(records[-1][k]).all() for k in watched):
                break
        ring = {name: np.stack([row[k] for row in records]) for k, name in enumerate(self.step.ring)}
        return Burst({**state, **dict(zip(self.step.state, values, strict=True))}, ring, len(records))


def _per_step(value: Any, n: int) -> Sequence[Any]:
    return value if np.ndim(value) else [value] * n
