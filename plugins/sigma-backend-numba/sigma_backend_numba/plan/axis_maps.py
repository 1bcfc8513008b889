"""Axis maps: which axis of a loop nest each axis of a value follows.

A map has one entry for each axis of a node: an axis of the nest, or None if the side is 1.  A view that only moves,
drops or repeats axes passes its map on to its operand.  A value is computed once at each place of a nest, so it has one
map there, with distinct axes, and all members of the nest that read it must agree on it.
"""

from __future__ import annotations

from sigma_backend_numba.lower.layout import VIEWS, chain
from sigma_kernel.graph import Node, Shape

Map = tuple[int | None, ...]
INDEXING = {"take": range(1, 2), "random_bits": range(1, 4)}  # ops with operands that are read from memory


def identity(shape: Shape) -> Map:
    """Return the map of a node whose sides other than 1 are those of the nest."""
    axes: list[int | None] = []
    axis = 0
    for side in shape:
        axes.append(None if side == 1 else axis)
        axis += side != 1
    return tuple(axes)


def sides(shape: Shape) -> Shape:
    """Return the sides other than 1."""
    return tuple(side for side in shape if side != 1)


def broadcast_map(m: Map, shape: Shape) -> Map:
    """Return the map of an operand that broadcasts to a node with a map."""
    lead = len(m) - len(shape)
    return tuple(None if side == 1 else m[lead + k] for k, side in enumerate(shape))


def values(node: Node) -> range:
    """Return the positions of operands that are read element by element; others are read from memory."""
    if node.op in INDEXING:
        return INDEXING[node.op]
    return range(len(node.inputs))


def operand(node: Node, position: int, m: Map) -> Map:
    """Return the map of an operand of an elementwise node."""
    x = node.inputs[position]
    if x.shape == node.shape and node.op not in INDEXING:
        return m
    if node.op == "take":
        axis = node.attrs["axis"]
        return tuple(None if side == 1 else m[axis + k] for k, side in enumerate(x.shape))
    return () if node.op == "random_bits" else broadcast_map(m, x.shape)


def map_of_source(node: Node, m: Map) -> Map | None:
    """Return the map of a view's source, or None if the view does more than move axes."""
    for view in chain(node):
        axes = _source_map(view, m)
        if axes is None:
            return None
        m = axes
    return m


def map_of_view(node: Node, m: Map) -> Map | None:
    """Return the map of a view, given its source's; an entry is also None if the source does not determine it."""
    for view in reversed(chain(node)):
        axes = _view_map(view, m)
        if axes is None:
            return None
        m = axes
    return m


def _squeezes(view: Node) -> bool:
    return view.op == "reshape" and sides(view.shape) == sides(view.inputs[0].shape)


def _source_map(view: Node, m: Map) -> Map | None:
    shape = view.inputs[0].shape
    match view.op:
        case "stop":
            return m
        case "stretch":
            return broadcast_map(m, shape)
        case "permute":
            axes: list[int | None] = [None] * len(shape)
            for k, axis in enumerate(view.attrs["axes"]):
                axes[axis] = m[k]
            return tuple(axes)
    return _squeeze_map(view.shape, m, shape) if _squeezes(view) else None


def _view_map(view: Node, m: Map) -> Map | None:
    match view.op:
        case "stop":
            return m
        case "stretch":
            return (None,) * (len(view.shape) - len(m)) + m
        case "permute":
            return tuple(m[axis] for axis in view.attrs["axes"])
    return _squeeze_map(view.inputs[0].shape, m, view.shape) if _squeezes(view) else None


def _squeeze_map(shape: Shape, m: Map, other: Shape) -> Map:
    axes = iter([axis for axis, side in zip(m, shape, strict=True) if side != 1])
    return tuple(None if side == 1 else next(axes) for side in other)


def map_through(node: Node, known: dict[Node, Map], nest: Shape) -> Map | None:
    """Return the map of an elementwise node in a nest in which some of its operands have maps; None if none fits."""
    wanted: list[int | None] = [None] * len(node.shape)
    for position in values(node):
        x = node.inputs[position]
        root = _root(x)
        if root not in known:
            continue
        m = map_of_view(x, known[root])
        if m is None or not _agree(node, position, m, wanted):
            return None
    return _complete_map(node.shape, wanted, nest)


def _root(node: Node) -> Node:
    while node.op in VIEWS:
        node = node.inputs[0]
    return node


def _agree(node: Node, position: int, m: Map, wanted: list[int | None]) -> bool:
    """Record what an operand's map implies for its node's; return whether it agrees with the other operands."""
    if node.op == "random_bits":
        return True
    lead = node.attrs["axis"] if node.op == "take" else len(wanted) - len(m)
    for k, axis in enumerate(m):
        if axis is not None:
            if wanted[lead + k] not in (None, axis):
                return False
            wanted[lead + k] = axis
    return True


def _complete_map(shape: Shape, wanted: list[int | None], nest: Shape) -> Map | None:
    """Assign the last fitting axes of the nest, in order, to axes that no operand determines."""
    bound = len(nest)
    for k in reversed(range(len(shape))):
        axis = wanted[k]
        if shape[k] == 1:
            continue
        if axis is None:
            free = (a for a in reversed(range(bound)) if nest[a] == shape[k] and a not in wanted)
            axis = wanted[k] = next(free, None)
        if axis is None or nest[axis] != shape[k]:
            return None
        bound = axis
    axes = [axis for axis in wanted if axis is not None]
    return tuple(wanted) if len(set(axes)) == len(axes) else None  # otherwise it would be a diagonal
