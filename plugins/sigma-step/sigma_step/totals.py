"""Totals over rows that do not depend on batches: what each row adds, summed exactly on the host.

A sum in float32 depends on its order.  So a step records what each row adds to a total, if the total is made of sums
over rows; these are added without any error, and rounded once, to float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import frexp, fsum, isfinite, ldexp, prod

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Metric
from sigma_kernel.graph.node import FLOATS, Node, apply

ONE = Fraction(1)
FEW = 2048  # numbers that fsum adds sooner
LEAST = 256  # numbers that are kept sooner than split


# -- in the graph ------------------------------------------------------------------------------------------------------
def per_row(total: Node, rows: int, times: Fraction = ONE) -> Node:
    """Return what each of so many rows adds to a total of floats, ``(rows, *shape)``, times a number.

    Of another total, such as one of integers, whose sums are exact, it is the total itself, ``(1, *shape)``.
    """
    parts = _parts(total, rows, times) if total.dtype in FLOATS else None
    return total.reshape((1, *total.shape)) if parts is None else parts


def _parts(node: Node, rows: int, times: Fraction) -> Node | None:
    """Return what each row adds to a value times a number; None if the value is not linear in sums over rows."""
    return _LINEAR[node.op](node, rows, times) if node.op in _LINEAR else None


def _of_sum(node: Node, rows: int, times: Fraction) -> Node | None:
    (x,), axes = node.inputs, node.attrs["axis"]
    if 0 not in axes or not x.shape[0] or x.shape[0] % rows:
        return None
    if x.shape[0] > rows:  # a row has several places
        x, axes = x.reshape((rows, -1, *x.shape[1:])), (0, 1, *(a + 1 for a in axes[1:]))
    return _times((apply("sum", x, axis=axes[1:]) if axes[1:] else x).reshape((rows, *node.shape)), times)


def _of_product(node: Node, rows: int, times: Fraction) -> Node | None:
    x, y = node.inputs
    if node.op == "mul" and x.shape == () and x.op in ("constant", "input"):
        x, y = y, x
    if y.shape == () and y.op == "input":  # a live value: data have an axis of rows
        parts = _parts(x, rows, times)
        return None if parts is None else apply(node.op, parts, y)
    if node.dtype not in FLOATS or y.op != "constant" or not y.attrs["value"] or not isfinite(y.attrs["value"]):
        return None
    by = Fraction(y.attrs["value"])
    return _parts(x, rows, times * by if node.op == "mul" else times / by)


def _of_each(node: Node, rows: int, times: Fraction) -> Node | None:
    """Return the parts of an op that acts on each entry, or that joins its operands."""
    rounded = node.dtype not in FLOATS and any(x.dtype != node.dtype for x in node.inputs)  # a cast
    inner = times if all(x.dtype in FLOATS for x in node.inputs) else ONE
    parts = [part for x in node.inputs if (part := _parts(x, rows, inner)) is not None]
    if rounded or len(parts) < len(node.inputs) or (node.op != "concat" and len({x.shape for x in parts}) > 1):
        return None
    moved = {"concat": {"axis": node.attrs.get("axis", 0) + 1}, "reshape": {"shape": (rows, *node.shape)}}
    return _times(apply(node.op, *parts, **{**node.attrs, **moved.get(node.op, {})}), times / inner)


def _times(x: Node, by: Fraction) -> Node:
    """Return a product; a quotient is rounded once."""
    if by == ONE:
        return x
    return x / float(by.denominator) if by.numerator == 1 else x * float(by)


_LINEAR: dict[str, Callable[[Node, int, Fraction], Node | None]] = {
    "sum": _of_sum, "mul": _of_product, "div": _of_product,
    **dict.fromkeys(("add", "sub", "neg", "cast", "stop", "concat", "reshape"), _of_each),
}  # fmt: skip


# -- on the host -------------------------------------------------------------------------------------------------------
def exact(rows: np.ndarray) -> np.ndarray:
    """Return a few rows of float64 with the same sum as all rows, without any error.

    The leading bits of all rows are split off, so few that their sum is exact, until nothing is left.  Rump, Ogita and
    Oishi, Accurate Floating-Point Summation, 2008.
    """
    if rows.size <= LEAST:
        return np.array(rows, np.float64)
    left, parts = _columns(rows), list[np.ndarray]()
    while left.shape[1] > 1 and left.size and (largest := max(left.max(), -left.min())):
        bits = frexp(largest)[1] + (left.shape[1] + 2).bit_length()
        if not isfinite(largest) or bits >= 1023:  # kept as they are: NaN, infinities, and what could overflow
            parts.extend(left.T)
            break
        high = left + (unit := ldexp(1.0, bits))
        high -= unit
        left -= high
        parts.append(high.sum(1))
    return np.reshape(parts or left[:, :1].T, (-1, *rows.shape[1:]))


def _columns(rows: np.ndarray) -> np.ndarray:
    """Return a copy in float64 with one row for each entry of a row."""
    return np.array(rows.reshape(len(rows), prod(rows.shape[1:])).T, np.float64, order="C")


def add_exactly(rows: np.ndarray) -> np.ndarray:
    """Return the sum of rows, rounded once; of any order of them it has the same bits."""
    columns = _columns(exact(rows) if rows.size > FEW else rows).tolist()
    return np.array([_sum(column) for column in columns]).reshape(rows.shape[1:])


def expand(numbers: Sequence[float]) -> list[float]:
    """Return the exact sum of numbers as a few, the same ones for any order: each is what is left, rounded once.

    The first is the sum, rounded; there is none if it is 0, and no other if it is not finite.
    """
    left, parts = [*numbers], list[float]()
    while part := _sum(left):
        parts.append(part)
        left = [*left, -part] if isfinite(part) else []
    return parts


def _sum(numbers: Sequence[float]) -> float:
    try:
        return fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64, or infinities of both signs
        return sum(numbers)


# -- metrics -----------------------------------------------------------------------------------------------------------
def is_additive(metric: Metric) -> bool:
    """Return whether totals of a metric are merged by adding them, which the kernel does exactly."""
    own = type(metric)
    return not metric.keeps_rows and own.merge is Metric.merge and own.merge_all is Metric.merge_all


def record_totals(metric: Metric, total: Node, rows: int) -> Node:
    """Return what a step of so many rows records of a metric: its totals, in parts if they are added."""
    return per_row(total, rows) if is_additive(metric) else total


@frozen
class InParts(Metric):
    """A metric as operators know it: the parts of its totals are joined, to be added later."""

    metric: Metric

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return those of the metric."""
        return self.metric.totals(prediction, targets)

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the parts of two shards."""
        return np.concatenate([a, b])
