"""Gradients flowing back through the graph; they are 0 for entries that ``where`` did not select.

Zero times an infinite slope is NaN: the gradient of ``where(x > 0, log(x), 0)`` would be NaN at 0, as it is in PyTorch
and JAX. A gradient that comes through ``where`` therefore has a mask, the conditions under which its operand was
selected. Rules multiply by unmasked slopes, and zeros replace their results outside the mask before these meet other
entries: in sums, in products, in the gradients of other users and in the end. A gradient without a mask stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce

from attrs import field, frozen

from sigma_kernel.graph import ops, shapes
from sigma_kernel.graph.node import OPS, Node, Shape

Mask = dict[tuple[Node, bool], None]  # conditions, and the value that each must have, in the order in which they came


@frozen(eq=False)
class Flow:
    """The gradient of a node, and its mask, outside which it is 0, or, if it is ``spoilt``, anything."""

    value: Node
    mask: Mask = field(factory=dict)
    spoilt: bool = False

    def __add__(self, other: Flow) -> Flow:
        """Add the gradients of two users of a node."""
        if self.mask.keys() == other.mask.keys():
            return Flow(self.value + other.value, self.mask, self.spoilt or other.spoilt)
        return Flow(self.zero_outside() + other.zero_outside(), _either(self.mask, other.mask))

    def zero_outside(self) -> Node:
        """Return the gradient with zeros outside the mask."""
        return ops.where(_conjunction(self.mask), self.value, 0.0) if self.spoilt else self.value

    def pull_back(self, node: Node) -> tuple[Flow | None, ...]:
        """Return the gradient of each operand by the rule of a node's op; None for those that have none."""
        apart = OPS[node.op].entries in ("apart", "moved", "folded")
        flow = self if apart else Flow(self.zero_outside(), self.mask)
        values = _by_rule(flow.value, node, *(_selected_rows(node, self.mask) if node.op == "matmul" else ()))
        return tuple(None if x is None else flow.of_operand(node, i, x) for i, x in enumerate(values))

    def of_operand(self, node: Node, at: int, value: Node) -> Flow:
        """Return an operand's gradient, given the result of the rule of the node's op."""
        shape, entries = node.inputs[at].shape, OPS[node.op].entries
        if node.op == "where":
            mask = {(node.inputs[0], at == 1): None}
            spoilt = self.spoilt and not self.mask.keys() <= mask.keys()
            return Flow(value, self.mask | mask, spoilt).unbroadcast(shape)
        if entries in ("moved", "gathered"):
            return Flow(value, _move_mask(self.mask, node, at), self.spoilt)
        if entries == "along" and "axis" in node.attrs:
            kept = tuple(1 if axis == node.attrs["axis"] else side for axis, side in enumerate(shape))
            return Flow(value, _narrow_mask(self.mask, shape, kept), bool(self.mask))
        if node.op == "matmul" and at == 0:
            return Flow(unbroadcast(value, shape), _of_rows(node, self.mask))
        if node.op == "softmax_cross_entropy" and self.mask:
            rows = ops.reshape(ops.stretch(_conjunction(self.mask), shape=node.shape), shape=(*node.shape, 1))
            return Flow(value, {(rows, True): None}, True)
        if entries in ("apart", "folded"):
            spoilt = self.spoilt or (bool(self.mask) and not _is_linear(node))
            return Flow(value, self.mask, spoilt).unbroadcast(shape)
        return Flow(unbroadcast(value, shape))

    def unbroadcast(self, shape: Shape) -> Flow:
        """Sum the gradient to the shape that its operand had before broadcasting."""
        if self.value.shape == shape:
            return self
        return Flow(unbroadcast(self.zero_outside(), shape), _narrow_mask(self.mask, self.value.shape, shape))


def unbroadcast(flow: Node, shape: Shape) -> Node:
    """Sum a gradient to the shape that its operand had before broadcasting."""
    lead = len(flow.shape) - len(shape)
    if lead >= 0:
        axis = tuple(i for i, side in enumerate(flow.shape) if i < lead or (shape[i - lead] == 1 and side != 1))
        flow = ops.sum(flow, axis=axis) if axis else flow
        flow = ops.reshape(flow, shape=flow.shape[lead:]) if lead else flow
    return flow if flow.shape == shape else ops.stretch(flow, shape=shape)


def _by_rule(value: Node, node: Node, *operands: Node) -> tuple[Node | None, ...]:
    rule = OPS[node.op].gradient
    assert rule is not None  # else the op is differentiated through its expansion
    result = rule(value, node, *(operands or node.inputs), **node.attrs)
    return result if isinstance(result, tuple) else (result,)


def _is_linear(node: Node) -> bool:
    """Return whether the rule of a node maps 0 to 0 for all operands, like a constant factor."""
    factors = {"mul": node.inputs, "div": node.inputs[1:]}.get(node.op, ())
    values = [x.attrs["value"] for x in factors if x.op == "constant"]
    return bool(OPS[node.op].linear) or any(x and math.isfinite(x) for x in values)


# -- masks -------------------------------------------------------------------------------------------------------------
def _conjunction(mask: Iterable[tuple[Node, bool]]) -> Node:
    return reduce(ops.logical_and, [condition if selected else ~condition for condition, selected in mask])


def _either(one: Mask, other: Mask) -> Mask:
    """Return where at least one mask is; if they differ in a condition and its opposite alone, all else remains."""
    shared = {x: None for x in one if x in other}
    rest, further = ([x for x in mask if x not in shared] for mask in (one, other))
    if not rest or not further:
        return shared
    if len(rest) == len(further) == 1 and rest[0][0] is further[0][0]:
        return shared
    return shared | {(_conjunction(rest) | _conjunction(further), True): None}


def _of_rows(product: Node, mask: Mask) -> Mask:
    """Return the conditions of a mask that hold for whole rows of a matrix product, and of its first operand."""
    rows = (*product.inputs[0].shape[:-1], 1)
    same = product.shape[:-1] == rows[:-1]
    return {x: None for x in mask if same and shapes.broadcast(x[0].shape, rows) == rows}


def _selected_rows(product: Node, mask: Mask) -> tuple[Node, ...]:
    """Return the operands of a matrix product, the first with zeros in the rows that are not selected.

    A missing value would multiply the zeros of the gradient, and give NaN in the second operand's.
    """
    x, y = product.inputs
    rows = _of_rows(product, mask)
    return (ops.where(_conjunction(rows), x, 0.0) if rows else x, y)


def _narrow_mask(mask: Mask, shape: Shape, kept: Shape) -> Mask:
    """Return the mask of an operand that broadcasts: where it is selected at least once."""
    stay = {x: None for x in mask if shapes.broadcast(x[0].shape, kept) == kept}
    vary = [x for x in mask if x not in stay]
    if not vary:
        return stay
    times = ops.cast(ops.stretch(_conjunction(vary), shape=shape), dtype="int32")
    return stay | {(unbroadcast(times, kept) > 0, True): None}


def _move_mask(mask: Mask, node: Node, at: int) -> Mask:
    """Return the mask of an operand whose entries a node moves: they go back as gradients do."""
    if not mask:
        return mask
    ones = ops.cast(ops.stretch(_conjunction(mask), shape=node.shape), dtype=node.dtype)
    moved = _by_rule(ones, node)[at]
    assert moved is not None  # as the gradient's own
    return {(moved > 0.0, True): None}
