"""Find the op from which a number that is NaN, infinite or too large comes, given the results of all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.graph import ELEMENTWISE, FLOATS, OPS, Graph, Node, interpret, numpy_namespace

Results = Mapping[Node, np.ndarray]
MADE = ("constant", "array", "pad", "full", "stretch")  # ops by which a graph states a number that is not finite
LATER = "Clip its operands with functions.clip, lower the learning rate, or clip the gradients."
FIRST = (
    "No update was made yet: look for data or labels that the layer does not accept, for numbers that are too large "
    "for the precision, and for initial values that are too large; functions.clip limits its operands."
)


@frozen
class WrongNumber:
    """A wrong number: the layer and the op that gave it, its first index, and the operands of the op there."""

    origin: str
    op: str
    value: float
    index: tuple[int, ...]
    count: int
    size: int
    operands: str
    step: int | None = None  # of a loop
    early: bool = False  # whether it is in the first loss, before any update

    def __str__(self) -> str:
        where = self.origin or "the step"
        at = f" at {list(self.index)}" if self.index else ""
        many = f"; {self.count:,} of its {self.size:,} numbers are wrong" if self.size > 1 else ""
        if self.op == "input":
            return f"{where} is {self.value:g}{at} before the step{many}. Check the latest changes, or rewind."
        loop = "" if self.step is None else f" in step {self.step} of the loop"
        remedy = FIRST if self.early else LATER
        return f"{where}: {self.op}({self.operands}) is {self.value:g}{at}{loop}{many}. {remedy}"


def finite(array: np.ndarray) -> bool:
    """Return whether all numbers are finite."""
    return bool(np.isfinite(array).all())


def fault(node: Node, found: Results, names: Mapping[Node, str]) -> WrongNumber:
    """Return the fault that a wrong result comes from: the op that made NaN, or a number infinite, of good operands."""
    seen = {node}
    while (cause := _cause(node, found, seen)) is not None:
        node = cause
        seen.add(node)
    if node.op == "part":
        return _in_loop(node, found) or _describe_not_finite(node, found, names)
    return _describe_not_finite(node, found, names)


def find_excess(largest: float, nodes: Iterable[Node], found: Results) -> WrongNumber | None:
    """Return the first result, in the order of these nodes, that exceeds a bound and is no input."""
    for node in nodes:
        if node in found and node.op not in ("input", *MADE) and node.dtype in FLOATS:
            wrong = ~(np.abs(found[node]) <= largest)
            if wrong.any():
                return _describe_fault(node, found, wrong, {})
    return None


def _cause(node: Node, found: Results, seen: set[Node]) -> Node | None:
    """Return an operand that is wrong already: NaN before infinity, and none that the graph states, or does not use."""
    operands = [
        x for x in _operands_in(node, found) if x.dtype in FLOATS and x not in seen and not _is_stated(x, found)
    ]
    lost = [x for x in operands if np.isnan(_used(x, node, found)).any()]
    return next(iter([*lost, *(x for x in operands if not finite(_used(x, node, found)))]), None)


def _is_stated(node: Node, found: Results) -> bool:
    """Return whether the graph itself states what of a result is not finite, of operands that are."""
    return node.op in MADE and all(finite(found[x]) or _is_stated(x, found) for x in _operands_in(node, found))


def _used(operand: Node, node: Node, found: Results) -> np.ndarray:
    """Return the numbers of an operand that an op uses: of one of ``where``, those that are chosen."""
    array = found[operand]
    if node.op != "where" or node.inputs[0] not in found:
        return array
    chosen, yes, no = np.broadcast_arrays(*(found[x] if x in found else np.zeros(()) for x in node.inputs))
    return np.concatenate([part[chosen == way] for way, part in ((1, yes), (0, no)) if node.inputs[2 - way] is operand])


def _operands(node: Node) -> tuple[Node, ...]:
    return node.inputs[0].inputs if node.op == "part" else node.inputs


def _describe_not_finite(node: Node, found: Results, names: Mapping[Node, str]) -> WrongNumber:
    array = found[node]
    return _describe_fault(node, found, np.isnan(array) if np.isnan(array).any() else ~np.isfinite(array), names)


def _describe_fault(node: Node, found: Results, wrong: np.ndarray, names: Mapping[Node, str]) -> WrongNumber:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    there = node.op in OPS and OPS[node.op].shape in ELEMENTWISE
    operands = [_number(found[x], node.shape, index) if there else _range(found[x]) for x in _operands_in(node, found)]
    origin = names.get(node, "") if node.op == "input" else node.origin
    count, size = int(wrong.sum()), wrong.size
    return WrongNumber(origin, node.op, float(found[node][index]), index, count, size, ", ".join(operands))


def _operands_in(node: Node, found: Results) -> list[Node]:
    return [x for x in _operands(node) if x in found]


def _number(array: np.ndarray, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    """Return the operand's value of an elementwise op at an index of the result."""
    return f"{float(np.broadcast_to(array, shape)[index]):g}"


def _range(array: np.ndarray) -> str:
    kind = f"{array.dtype}{list(array.shape)}"
    return f"{kind} from {float(array.min()):g} to {float(array.max()):g}" if array.size else kind


# -- loops -------------------------------------------------------------------------------------------------------------
def _in_loop(part: Node, found: Results) -> WrongNumber | None:
    """Return the fault within a scan, of which a part is wrong and all operands are good; runs it step by step."""
    scan = part.inputs[0]
    body, carries, sequences = (scan.attrs[name] for name in ("body", "carries", "sequences"))
    nodes = tuple(node for node in dict.fromkeys((*body.inputs, *body)) if node.op != "scan")
    run = interpret(Graph(body.inputs, nodes), numpy_namespace())
    operands = [found[x] for x in scan.inputs]
    carry, cut = operands[:carries], carries + sequences
    order = range(scan.attrs["length"])
    for t in reversed(order) if scan.attrs["reverse"] else order:
        arrays: list[Any] = [*carry, *(x[t] for x in operands[carries:cut]), *operands[cut:]]
        inner = dict(zip(nodes, map(np.asarray, run(*arrays)), strict=True))
        bad = [node for node in body.outputs if node.dtype in FLOATS and not finite(inner[node])]
        if bad:
            cause = fault(bad[0], inner, {})
            return evolve(cause, origin=cause.origin or part.origin, step=t)
        carry = [inner[node] for node in body.outputs[:carries]]
    return None
