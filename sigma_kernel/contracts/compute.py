"""Contracts of backends: steps, programs and bursts, and a default loop for backends that only lower graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts.data import Preprocessor
from sigma_kernel.errors import SigmaDataError, component_name
from sigma_kernel.graph.node import Graph, Node
from sigma_kernel.graph.random import permutation
from sigma_kernel.graph.reprs import brief
from sigma_kernel.settings import Settled

Array = Any  # any value on the backend's device
Arrays = Mapping[str, Array]  # by name
Records = Mapping[str, np.ndarray]  # on the host, by name
Numbers = Mapping[str, "float | np.generic | np.ndarray"]  # by name: one, or one per iteration


@frozen
class Step:
    """One iteration as a pure graph, with a name for every input and output.

    ``graph.inputs`` are the state entries, then one minibatch array per data section, then the live values;
    ``graph.outputs`` are new values of the state entries named in ``writes``, then the records of the ring. A step
    that writes nothing is an evaluation. The ring's entry ``loss`` is checked for non-finite values.
    """

    graph: Graph
    state: tuple[str, ...]
    data: tuple[str, ...]
    steer: tuple[str, ...]
    writes: tuple[str, ...]
    ring: tuple[str, ...]

    __repr__ = brief

    @property
    def donations(self) -> dict[int, int]:
        """Map each output that replaces a state entry to the input whose storage it may reuse."""
        places = {name: i for i, name in enumerate(self.state)}
        return {out: places[name] for out, name in enumerate(self.writes)}


@frozen
class Inference:
    """A trained network, as exporters receive it.

    ``architecture`` is its text; ``classes`` are the class names by index, empty without any.
    ``arrays`` holds parameters and layer state on the host, by address below ``network.layers``.  ``step(rows)`` is the
    graph that predicts ``rows`` samples: its state are these arrays (``network.layers.<address>``), its data the
    preprocessed input sections, its ring the predictions by output layer; ``live`` are the values of its live inputs.
    ``restored(output, prediction)`` is a prediction in the units of the targets before they were preprocessed; None if
    it has none. ``targets`` are the names of the columns that outputs predict, by output.

    ``samples`` are the shape and the NumPy dtype of a sample of each input section before it is preprocessed, as in the
    training data, and ``preprocessors`` are applied in this order, each with its fitted state, to the section that its
    ``section`` names. ``origin`` names the run and the checkpoint.
    """

    architecture: str
    classes: tuple[str, ...]
    arrays: Mapping[str, np.ndarray]
    step: Callable[[int], Step]
    live: Mapping[str, float]
    samples: Mapping[str, tuple[tuple[int, ...], str]] = field(factory=dict)
    preprocessors: Mapping[str, tuple[Preprocessor, Mapping[str, np.ndarray]]] = field(factory=dict)
    origin: str = ""
    restored: Callable[[str, Node], Node | None] = lambda output, prediction: None
    targets: Mapping[str, Sequence[str]] = field(factory=dict)

    __repr__ = brief


class Exporter(Settled):
    """Write a trained network in the format of another program (component kind ``exporter``).

    The name of the component is the extension of its files: ``sigma export RUN model.npz`` calls ``npz``.
    """

    @abstractmethod
    def export(self, network: Inference, path: Path) -> None:
        """Write the file, in an empty directory; other files written there are kept beside it.

        Raises SigmaConfigError, naming it, for a part of the network that the format cannot express.
        """

    def arrays(self, path: Path) -> Mapping[str, np.ndarray]:
        """Return the arrays of such a file by name, from any program; exported files use addresses.

        Only the file, and files in its directory that it names, are read, and nothing in them is executed. Raises
        SigmaDataError if that is impossible; the default does.
        """
        raise SigmaDataError(f"{path}: {component_name(self)} only writes such files. Choose another format.")


@frozen
class Burst:
    """The result of a burst: the new state, the records of each step ``{name: (n, ...)}``, the number of steps run.

    ``published`` holds values of workers, by address (``workers.0.training.loss``).
    """

    state: Arrays
    ring: Records
    done: int
    published: Mapping[str, Any] = field(factory=dict)

    __repr__ = brief


@frozen
class Lane:
    """Consecutive rows of a block, from row ``first`` on, that one shard of every batch has: a block of their own.

    ``block`` is read when it is first used.
    """

    first: int
    block: Arrays

    __repr__ = brief


@frozen
class Batches:
    """Minibatches of equal size from one block of data on the device: ``rows`` has shape ``(n, batch)``.

    With ``lanes``, the block consists of them, and shard ``i`` of a batch has rows of lane ``i`` alone; the block as a
    whole is read when it is first used.
    """

    block: Arrays
    rows: np.ndarray
    lanes: Sequence[Lane] = ()

    __repr__ = brief

    def lane_of(self, shard: int) -> Lane:
        """Return the lane of a shard; without lanes, the whole block."""
        return self.lanes[shard] if self.lanes else Lane(0, self.block)


@frozen
class Share:
    """The result of one shard of a batch: loss and metric totals, gradients, and new layer state.

    Loss and state are means over the shard's rows; metric totals, ``metrics.<name>``, are sums.  Gradients lie one
    after another in a vector for each dtype, and are weighted by the shard's part of the rows: those of all shards add
    up to those of the batch.
    """

    records: Records
    gradients: Records
    state: Records

    __repr__ = brief


class Program(Protocol):
    """A compiled step."""

    @property
    def peak_bytes(self) -> int:
        """Return the working memory in bytes, known before the first run."""

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps: step ``i`` trains on ``block[section][rows[i]]``.

        ``rows`` has shape ``(n, batch)``; a value of ``steer`` is one number or ``n`` of them. State entries that the
        step writes must not be used after the call; those it only reads stay valid. The burst ends early after a step
        whose ``loss`` is not finite, unless the backend raises SigmaTrainingError with its origin.
        """


Bound = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


@runtime_checkable
class BindingProgram(Program, Protocol):
    """A program that can be bound to a state, so that calls need not pass it again."""

    def bind(self, state: Arrays, rows: np.ndarray, steer: Numbers) -> Bound | None:
        """Return a function that runs the steps of ``rows``, ``(n, batch)``, on host arrays, and returns the records.

        It takes the arrays of a block in the order of ``step.data``, with ``rows.max() + 1`` rows each, and returns new
        arrays in the order of ``step.ring``, with ``n * batch`` rows. It may be called from several threads at once. It
        reads the state in place and holds no reference to it; the caller keeps it alive. ``steer`` has one number for
        each live value. Return None for a step that writes, or if nothing is gained.
        """


class Backend(Settled):
    """Compile graphs and hold arrays on a device.

    A backend implements :meth:`lower`, which the default :meth:`compile` calls once per iteration; a backend that runs
    whole bursts itself overrides :meth:`compile`. Backends and programs are used from several threads at once. Without
    enough memory on the device, they raise a MemoryError, such as SigmaMemoryError.
    """

    dtypes: ClassVar[frozenset[str]] = frozenset({"float32", "float64", "int32", "int64", "uint32", "bool"})

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return what else results and speed depend on: versions of libraries, the device."""
        return {}

    @property
    def tiers(self) -> Mapping[int, Backend]:
        """Return what computes, by the iteration from which it does, the first from 0: by default this backend alone.

        All tiers hold arrays in the same form.
        """
        return {0: self}

    def estimate(self, graph: Graph) -> tuple[float, float]:
        """Return about how many seconds a graph is compiled, and is computed once; 0, the default, is not known.

        Both are functions of the graph alone, for common processors, so that bits do not depend on the machine.
        """
        return 0.0, 0.0

    @property
    def function_error(self) -> float:
        """Return the relative error of exp, log, tanh and others, where it exceeds rounding error."""
        return 0.0

    @abstractmethod
    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Return a function from input arrays to output arrays.

        ``donate`` maps an output to the input whose storage it may overwrite. No other output may share memory with an
        input, or with the outputs of another call.
        """

    def compile(self, step: Step, in_place: bool = True) -> Program:
        """Compile a step to a program; with ``in_place``, it may overwrite the state entries that it writes."""
        return LoopProgram(self, step, self.lower(step.graph, step.donations if in_place else {}))

    @abstractmethod
    def to_device(self, host: np.ndarray) -> Array:
        """Return a copy on the device of a host array, or of an array of a library that exports DLPack."""

    def share(self, host: np.ndarray) -> Array:
        """Return a host array on the device, which is only read: it may have the same memory, by default it is a copy.

        Programs are given such arrays as data, or as state that the step does not write.
        """
        return self.to_device(host)

    @abstractmethod
    def to_host(self, array: Array) -> np.ndarray:
        """Return a copy of a device array on the host, after its computation has finished."""

    def take(self, array: Array, rows: np.ndarray) -> Array:
        """Return rows of a device array by index, on the device."""
        return array[rows]

    def permutation(self, seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
        """Return the order of rows in an epoch, on the host: that of :func:`sigma_kernel.graph.permutation`."""
        return permutation(seed, stream, epoch, rows)


@frozen(eq=False, repr=False)
class LoopProgram:
    """Run a lowered step by calling it once per iteration: the default program of a backend."""

    backend: Backend
    step: Step
    call: Callable[..., Sequence[Array]]
    peak_bytes: int = 0

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps, one call each; see :class:`Program`."""
        values = [state[name] for name in self.step.state]
        live: list[Any] = [x if np.ndim(x) else [x] * n for x in (steer[name] for name in self.step.steer)]
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
