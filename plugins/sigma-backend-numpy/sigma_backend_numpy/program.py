"""Compiled program of a graph: a flat list of prepared calls over planned buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sigma_backend_numpy.kernels import prepare, scratch_bytes
from sigma_backend_numpy.memory import allocate_aligned, empty, piece, view_array
from sigma_backend_numpy.plan import plan
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import BYTES, Graph, Node, limit_blas

DTYPES = frozenset({"float32", "float64", "int32", "int64", "uint32", "bool"})
View = Callable[[np.ndarray], np.ndarray]


class PlannedProgram:
    """A function from input arrays to output arrays.

    It is thread-safe: each call takes a free workspace, or creates one.  The buffers of a workspace are never returned;
    results are new arrays, or donated inputs.
    """

    def __init__(self, graph: Graph, donate: Mapping[int, int]) -> None:
        self.graph, self.donate, self.place = _check_dtypes(graph), dict(donate), graph.places()
        self.bodies = {node: PlannedProgram(node.attrs["body"], {}) for node in graph if node.op == "scan"}
        self.plan = plan(graph, donate, scratch=self._scratch)
        self._inputs = [(np.dtype(node.dtype), node.shape) for node in graph.inputs]
        self._results = [None if out in donate else node for out, node in enumerate(graph.outputs)]
        self._free: deque[Workspace] = deque()

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of inputs, results and one workspace."""
        return self.plan.peak_bytes

    def _scratch(self, node: Node) -> int:
        return loop_bytes(node, self.bodies[node]) if node.op == "scan" else scratch_bytes(node)

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs; donated inputs are invalid afterwards.  SigmaGraphError for a wrong shape."""
        given = list(arrays)
        for i, (array, (dtype, shape)) in enumerate(zip(arrays, self._inputs, strict=True)):
            if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                given[i] = _convert_argument(array, dtype, shape, i)
        for i in self.donate.values():
            if not given[i].flags.carray:
                given[i] = given[i].copy()
        targets = [None if node is None else empty(node.shape, node.dtype) for node in self._results]
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = Workspace(self, allocate_aligned(self.plan.arena_bytes))
        try:
            with limit_blas(), np.errstate(all="ignore"):
                return workspace.run(given, targets)
        finally:
            self._free.append(workspace)


def _check_dtypes(graph: Graph) -> Graph:
    used = {node.dtype for node in (*graph.inputs, *graph)} - {"tuple"}
    if foreign := ", ".join(sorted(used - DTYPES)):
        raise SigmaGraphError(f"numpy: this backend does not compute in {foreign}. Use: {', '.join(sorted(DTYPES))}.")
    return graph


def _convert_argument(value: Any, dtype: np.dtype, shape: tuple[int, ...], position: int) -> np.ndarray:
    """Return an argument as an array of the input's dtype."""
    array = np.asarray(value, dtype)
    if array.shape != shape:
        raise SigmaGraphError(f"numpy: input {position} has shape {array.shape}. The graph takes {shape}.")
    return array


class Workspace:
    """The buffers of one call at a time, and the prepared calls bound to them.

    Values are numbered as in the graph.  What never moves (values in the arena, constants, views of them) is bound
    once; inputs, results and their views change from call to call.
    """

    def __init__(self, program: PlannedProgram, memory: np.ndarray) -> None:
        self.program, self.plan, self.memory, self.place = program, program.plan, memory, program.place
        self.fixed: list[Any] = [None] * len(self.place)
        self.views: list[tuple[int, int, View]] = []
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...] | None, list[int]]] = []
        self.taken = [
            (self.place[value], self.place[given], value.shape) for value, given in self.plan.in_place.items()
        ]
        self.filled = [(self.place[value], out, value.shape) for value, out in self.plan.results.items()]
        for node in program.graph:
            self._settle(node)
        for node in self.plan.schedule:
            if self.plan.owner[node] is node and node.op != "part":
                self._bind(node)

    def run(self, given: Sequence[np.ndarray], targets: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
        """Compute all outputs: into their targets, or into donated inputs."""
        values = self.fixed.copy()
        values[: len(given)] = given
        for place, source, shape in self.taken:
            values[place] = values[source].reshape(shape)
        for place, out, shape in self.filled:
            values[place] = targets[out].reshape(shape)  # type: ignore[union-attr]  # a result has a target
        for place, source, view in self.views:
            values[place] = view(values[source])
        for call, bound, places in self.calls:
            call(*bound or [values[i] for i in places])
        homes = [given[self.program.donate[out]] if to is None else to for out, to in enumerate(targets)]
        if self.plan.copies:
            self._copy(values, homes)
        return tuple(homes)

    def _copy(self, values: list[Any], homes: list[np.ndarray]) -> None:
        """Copy outputs to their storage if they are elsewhere; inputs may be swapped with each other."""
        graph, donate = self.program.graph, self.program.donate
        moved = sorted(self.plan.copies, key=donate.__contains__)
        pairs = [(out, values[self.place[graph.outputs[out]]]) for out in moved]
        for out, value in [(out, value.copy() if out in donate else value) for out, value in pairs]:
            np.copyto(homes[out], value)

    # -- preparation ---------------------------------------------------------------------------------------------------
    def _settle(self, node: Node) -> None:
        """Return the array of a value if it is known before the call."""
        place, owner = self.place[node], self.plan.owner[node]
        if owner is not node:
            source, view = self.place[node.inputs[0]], _view(node)
            if self.fixed[source] is None:
                self.views.append((place, source, view))
            else:
                self.fixed[place] = view(self.fixed[source])
        elif node in self.plan.arena:
            self.fixed[place] = view_array(piece(self.memory, self.plan.arena[node]), node.shape, node.dtype)
        elif node.op in _LEAVES:
            self.fixed[place] = _LEAVES[node.op](node)

    def _bind(self, node: Node) -> None:
        scratch = self.plan.scratch.get(node)
        space = self.memory[:0] if scratch is None else piece(self.memory, scratch)
        results = [node]
        if node.op == "scan":
            results = [part for part in self.plan.schedule if part.op == "part" and part.inputs[0] is node]
            call: Callable[..., Any] = ScanLoop(node, results, self.program.bodies[node], space)
        else:
            call = prepare(node, space)
        places = [self.place[x] for x in (*node.inputs, *results)]
        arrays = tuple(self.fixed[i] for i in places)
        self.calls.append((call, None if any(array is None for array in arrays) else arrays, places))


_LEAVES: dict[str, Callable[[Node], np.ndarray]] = {
    "constant": lambda node: np.array(node.attrs["value"], node.dtype),
    "array": lambda node: np.asarray(node.attrs["value"].array, node.dtype),
    "iota": lambda node: _count_along(**node.attrs),
}


def _count_along(shape: tuple[int, ...], axis: int, dtype: str) -> np.ndarray:
    row = np.arange(shape[axis], dtype=dtype).reshape(-1, *(1,) * (len(shape) - axis - 1))
    return np.broadcast_to(row, shape)


def _view(node: Node) -> View:
    """Return the function that makes a node's view of its operand."""
    attrs = node.attrs
    if node.op == "slice":
        cut = tuple(map(slice, attrs["start"], attrs["stop"], attrs["step"]))
        return lambda x: x[cut]
    views: dict[str, View] = {
        "reshape": lambda x: x.reshape(node.shape),
        "permute": lambda x: x.transpose(attrs["axes"]),
        "stretch": lambda x: np.broadcast_to(x, node.shape),
        "stop": lambda x: x,
        "barrier": lambda x: x,
    }
    return views[node.op]


# -- scans -------------------------------------------------------------------------------------------------------------
class ScanLoop:
    """Run a body over the leading axis of its sequences: a call with the operands and the parts that are wanted."""

    def __init__(self, node: Node, parts: Sequence[Node], body: PlannedProgram, memory: np.ndarray) -> None:
        self.attrs, self.carries = node.attrs, node.attrs["carries"]
        self.numbers = [part.attrs["index"] for part in parts]
        self.inner = Workspace(body, memory[: body.plan.arena_bytes])
        self.buffers: list[list[np.ndarray]] = [[], []]  # for even and odd steps: new carries, discarded outputs
        offset = body.plan.arena_bytes
        for buffers in self.buffers:
            for output in body.graph.outputs:
                buffers.append(view_array(memory[offset:], output.shape, output.dtype))
                offset += _round_up(buffers[-1].nbytes)

    def __call__(self, *arrays: np.ndarray) -> None:
        """Run all steps; each passes its carries to the next in one of two sets of buffers."""
        operands = arrays[: -len(self.numbers)]
        parts = dict(zip(self.numbers, arrays[len(operands) :], strict=True))
        sequences = operands[self.carries : self.carries + self.attrs["sequences"]]
        constants = operands[self.carries + len(sequences) :]
        carry, outputs = operands[: self.carries], len(self.buffers[0])
        length = self.attrs["length"]
        for count, t in enumerate(reversed(range(length)) if self.attrs["reverse"] else range(length)):
            for i, value in enumerate(carry, outputs):
                if i in parts:
                    np.copyto(parts[i][t, ...], value)
            spare = self.buffers[count % 2]
            targets = [parts[i][t, ...] if i >= self.carries and i in parts else spare[i] for i in range(outputs)]
            rows = (x[t, ...] for x in sequences)
            carry = self.inner.run([*carry, *rows, *constants], targets)[: self.carries]
        for i, value in enumerate(carry):
            if i in parts:
                np.copyto(parts[i], value)


def loop_bytes(node: Node, body: PlannedProgram) -> int:
    """Return the bytes that a loop needs: those of its body, and two sets of the body's results."""
    sizes = (_round_up(int(np.prod(x.shape)) * BYTES[x.dtype]) for x in body.graph.outputs)
    return body.plan.arena_bytes + 2 * sum(sizes)


def _round_up(size: int) -> int:
    return -(-size // 64) * 64
