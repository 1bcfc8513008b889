"""Sizes that depend on the number of rows: two traces of a graph, merged into one.

Graphs of Sigma have fixed shapes.  A size that is the same in the traces for 1009 and for 2003 rows, both prime, is
fixed; one that is a multiple of both, by the same factor, is in proportion to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from sigma_kernel import SigmaConfigError
from sigma_kernel.graph import Graph, Node

TRACED = (1009, 2003)  # rows


@frozen
class Multiple:
    """A size in proportion to the number of rows: so many ``times``."""

    times: int = 1

    def __str__(self) -> str:
        return "batch" if self.times == 1 else f"{self.times} * batch"


Side = int | Multiple
Sides = tuple[Side, ...]


@frozen(eq=False)
class AnyNode:
    """A node of a graph for any number of rows; sizes among the attributes are sides as well."""

    op: str
    inputs: tuple[AnyNode, ...]
    attrs: Mapping[str, Any]
    shape: Sides
    dtype: str
    origin: str


@frozen(eq=False)
class AnyRows:
    """A graph for any number of rows."""

    inputs: tuple[AnyNode, ...]
    outputs: tuple[AnyNode, ...]


class _DifferentError(Exception):
    """Two traces differ otherwise than in proportion to their rows."""


def for_any_rows(trace: Callable[[int], Graph]) -> AnyRows:
    """Return the graph that is traced for a number of rows, for any number of them.

    Raises SigmaConfigError, naming the layer and the op, if its structure or its numbers depend on that number.
    """
    first, other = (trace(rows) for rows in TRACED)
    return _merge_traces(first, other)


def _merge_traces(one: Graph, other: Graph) -> AnyRows:
    places, others = one.places(), other.places()
    any_nodes: dict[Node, AnyNode] = {}
    for first, second in zip(places, others, strict=False):
        try:
            if _form(first, places) != _form(second, others):
                raise _DifferentError
            attrs = {name: _common(x, second.attrs[name]) for name, x in first.attrs.items()}
            shape = _common(first.shape, second.shape)
        except _DifferentError:
            raise SigmaConfigError(
                f"{first.origin or 'the network'}: its op {first.op!r} depends on the batch size beyond the "
                "sides of arrays. Only ops that treat each row alone can be exported as ONNX."
            ) from None
        inputs = tuple(any_nodes[x] for x in first.inputs)
        any_nodes[first] = AnyNode(first.op, inputs, attrs, shape, first.dtype, first.origin)
    return AnyRows(*(tuple(any_nodes[x] for x in nodes) for nodes in (one.inputs, one.outputs)))


def _form(node: Node, places: Mapping[Node, int]) -> tuple[Any, ...]:
    """Return the common parts of two traces of a node, without its sizes."""
    return node.op, node.dtype, [places[x] for x in node.inputs], sorted(node.attrs), len(node.shape)


def _common(one: Any, other: Any) -> Any:
    """Return an attribute of two traces; integers may be in proportion to the rows."""
    if isinstance(one, Graph):
        return _merge_traces(one, other)
    if isinstance(one, tuple) and len(one) == len(other):
        return tuple(map(_common, one, other))
    if repr(one) == repr(other):  # that of an array of constants has a hash of its entries
        return one
    if isinstance(one, int) and one * TRACED[1] == other * TRACED[0]:  # both are prime
        return Multiple(one // TRACED[0])
    raise _DifferentError
