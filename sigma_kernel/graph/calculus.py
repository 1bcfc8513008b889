"""Gradients and values of functions: of arrays they are arrays, and of nodes, inside a layer or a cost, nodes.

::

    gradient(lambda x: f.sum(x**3))(np.array([1.0, 2.0]))   # array([ 3., 12.])

Arguments may be dictionaries, lists and tuples of arrays, nested to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import differentiation, ops
from sigma_kernel.graph.namespace import evaluate_graph
from sigma_kernel.graph.node import Graph, Node, array_of, constant, symbol
from sigma_kernel.graph.rewriting import replace_nodes

Held = dict[Node, np.ndarray]  # the values of inputs
Tree = Any  # an array, number or node, or a dictionary, list or tuple of trees


def evaluate(function: Callable[..., Any], *arguments: Tree) -> Tree:
    """Return the value of a function of nodes at arrays, on the host; at nodes, return nodes.

    Raises SigmaGraphError for arguments that are no arrays of numbers.
    """
    held: Held = {}
    return _compute_leaves(
        function(*(map_leaves(partial(_input, held), argument) for argument in arguments)), held, arguments
    )


def gradient(function: Callable[..., Any], argument: int | Sequence[int] = 0) -> Callable[..., Tree]:
    """Return the function that computes the gradient of a scalar function with respect to one argument.

    The gradient has the structure of the argument; several arguments have a tuple of gradients. Integers are
    differentiated as float64. Raises SigmaGraphError if the function does not return a single float.
    """
    wanted = (argument,) if isinstance(argument, int) else tuple(argument)

    def slopes(*arguments: Tree) -> Tree:
        if not all(-len(arguments) <= place < len(arguments) for place in wanted):
            raise SigmaGraphError(f"gradient: there is no argument {argument!r} among {len(arguments)}.")
        places = [place % len(arguments) for place in wanted]
        held: Held = {}
        given = [map_leaves(partial(_variable if i in places else _input, held), x) for i, x in enumerate(arguments)]
        loss = function(*given)
        if not isinstance(loss, Node):
            raise SigmaGraphError(f"gradient: the function must return a node (got {type(loss).__name__}).")
        targets = [node for i in places for node in leaves(given[i])]
        flows = iter(differentiation.gradient(loss, targets))
        gradients = tuple(map_leaves(lambda _: next(flows), given[i]) for i in places)
        return _compute_leaves(gradients[0] if isinstance(argument, int) else gradients, held, arguments)

    return slopes


def hessian_vector_product(function: Callable[..., Any], argument: int = 0) -> Callable[..., Tree]:
    """Return the function that computes the second derivative of a scalar function along a ``vector``.

    It takes the arguments of the function, and ``vector=`` with the structure and the shapes of the argument: the
    result has them, too, and is the Hessian times the vector (Pearlmutter, Neural Computation 6, 1994), which is never
    built as a whole.
    """

    def product(*arguments: Tree, vector: Tree) -> Tree:
        along = leaves(_arrange(vector, arguments[argument]))
        shapes = [[np.shape(x) for x in tree] for tree in (leaves(arguments[argument]), along)]
        if shapes[0] != shapes[1]:
            raise SigmaGraphError(f"hessian_vector_product: the vector has shapes {shapes[1]}, not {shapes[0]}.")

        def slope(*inner: Tree) -> Node:
            pairs = zip(leaves(gradient(function, argument)(*inner)), along, strict=True)
            total: Node = sum((g * v).sum() for g, v in pairs)
            return total

        return gradient(slope, argument)(*arguments)

    return product


# -- trees -------------------------------------------------------------------------------------------------------------
def map_leaves(change: Callable[[Any], Any], tree: Tree) -> Tree:
    """Return a tree of the same structure, with every leaf changed."""
    if isinstance(tree, Mapping):
        return {name: map_leaves(change, inner) for name, inner in tree.items()}
    if isinstance(tree, list | tuple):
        changed = [map_leaves(change, inner) for inner in tree]
        return changed if isinstance(tree, list) else tuple(changed)
    return change(tree)


def leaves(tree: Tree) -> list[Any]:
    """Return the arrays, numbers and nodes of a tree."""
    entries: list[Any] = []
    map_leaves(entries.append, tree)
    return entries


def _arrange(tree: Tree, like: Tree) -> Tree:
    """Return a tree with the entries of its mappings in the order of another tree, if they have the same names."""
    if isinstance(tree, Mapping) and isinstance(like, Mapping) and tree.keys() == like.keys():
        return {name: _arrange(tree[name], inner) for name, inner in like.items()}
    if isinstance(tree, list | tuple) and isinstance(like, list | tuple) and len(tree) == len(like):
        return [_arrange(inner, other) for inner, other in zip(tree, like, strict=True)]
    return tree


def _input(held: Held, leaf: Any) -> Node:
    """Return a leaf as a node: the caller's, or an input that holds its value."""
    if isinstance(leaf, Node):
        return leaf
    array = array_of(leaf)
    node = symbol(array.shape, array.dtype.name)
    held[node] = array
    return node


def _variable(held: Held, leaf: Any) -> Node:
    """Return a new node for a leaf, so that only the function's uses of it are differentiated."""
    whole = not isinstance(leaf, Node) and np.asarray(leaf).dtype.kind in "biu"
    node = _input(held, np.asarray(leaf, np.float64) if whole else leaf)
    return ops.reshape(node, shape=node.shape)


def _compute_leaves(result: Tree, held: Held, arguments: Sequence[Tree]) -> Tree:
    """Return nodes as arrays, unless an argument, or something that the function uses from outside, is a node."""
    nodes = tuple(leaf for leaf in leaves(result) if isinstance(leaf, Node))
    graph = Graph(tuple(held), nodes)
    inside = any(isinstance(leaf, Node) for leaf in leaves(arguments))
    open_ = inside or any(node.op == "input" and node not in held for node in graph)
    outputs: Sequence[Any] = _with_constants(graph, held) if open_ else evaluate_graph(graph, *held.values())
    values = iter(outputs)
    return map_leaves(lambda leaf: next(values) if isinstance(leaf, Node) else leaf, result)


def _with_constants(graph: Graph, held: Held) -> tuple[Node, ...]:
    """Return the outputs of a graph with constant arrays in place of its own inputs."""
    return replace_nodes(graph.outputs, {node: constant(array, node.dtype) for node, array in held.items()})
