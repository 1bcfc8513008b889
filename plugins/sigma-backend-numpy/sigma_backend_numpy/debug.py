"""The debug backend: the reference, op by op, which finds the op that first gave a number that is not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_backend_numpy.backend import NumpyBackend
from sigma_backend_numpy.faults import WrongNumber, fault, find_excess, finite
from sigma_kernel.contracts import LoopProgram, Step
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.graph import FLOATS, Graph, Node, interpret, numpy_namespace, topological_order
from sigma_kernel.settings import must, optional

_largest = must(lambda value: isinstance(value, int | float) and value > 0, "a number above 0")


@frozen
class DebugBackend(NumpyBackend):
    """Compute each op of a step by its meaning, and stop at the op from which a wrong number comes.

    A step whose loss, or any new value of its state, is NaN or infinite is refused, with the layer, the op and the
    first index at which that number arose. It is many times slower than the backend ``numpy``, and keeps all results of
    a step in memory. ``sigma run NAME --debug-ops`` uses it.

    Args:
        largest: Absolute value that no result may exceed; by default there is no bound.
    """

    largest: float | None = field(default=None, validator=optional(_largest))

    def compile(self, step: Step, in_place: bool = True) -> LoopProgram:
        """Return the program of a step, which keeps and checks all results."""
        return LoopProgram(self, step, Checked(step, self.largest))


@frozen(eq=False)
class Checked:
    """A step as a function of arrays, which raises SigmaTrainingError if a result is wrong."""

    step: Step
    largest: float | None
    _nodes: tuple[Node, ...] = field(init=False)
    _run: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Keep the results of all nodes; those of a scan are its parts."""
        graph = self.step.graph
        nodes = tuple(node for node in dict.fromkeys((*graph.inputs, *graph)) if node.op != "scan")
        object.__setattr__(self, "_nodes", nodes)
        object.__setattr__(self, "_run", interpret(Graph(graph.inputs, nodes), numpy_namespace()))

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return the outputs of the step, which share no memory."""
        values = dict(zip(self._nodes, map(np.asarray, self._run(*arrays)), strict=True))
        if wrong := self._wrong(values):
            now = self._iteration(values)
            raise SigmaTrainingError(str(wrong) if now is None else f"iteration {now}: {wrong}")
        return [np.array(values[node]) for node in self.step.graph.outputs]

    def _wrong(self, found: Mapping[Node, np.ndarray]) -> WrongNumber | None:
        """Return where a wrong number of the step comes from."""
        losses, values = self._loss_and_state()
        if self.largest is not None and (
            large := find_excess(self.largest, topological_order([*losses, *values]), found)
        ):
            return large
        bad = (node for node in (*losses, *values) if node.dtype in FLOATS and not finite(found[node]))
        early = self._iteration(found) == 1
        return next(
            (evolve(fault(node, found, self._names()), early=early and node in {*losses}) for node in bad), None
        )

    def _loss_and_state(self) -> tuple[list[Node], list[Node]]:
        """Return the loss, and the new values of the state; metrics may have any value."""
        step = self.step
        named = list(zip((*step.writes, *step.ring), step.graph.outputs, strict=True))
        return [node for name, node in named if name == "loss"], [n for name, n in named if name in step.writes]

    def _names(self) -> dict[Node, str]:
        step = self.step
        return dict(zip(step.graph.inputs, (*step.state, *step.data, *step.steer), strict=True))

    def _iteration(self, found: Mapping[Node, np.ndarray]) -> int | None:
        """Return the current iteration, counted from 1, if the step has it."""
        counter = {name: node for node, name in self._names().items()}.get("random.iteration")
        return None if counter is None else int(found[counter]) + 1
