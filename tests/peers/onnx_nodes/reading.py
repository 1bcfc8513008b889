"""Read the models of ONNX's backend node tests into graphs.

The other modules of this folder translate ONNX's operators into functions of the graph, each in a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import define, field, frozen
from onnx import TensorProto, helper, numpy_helper

from sigma_kernel.graph import Graph, Node, symbol

DTYPES = ("float32", "float64", "int32", "int64", "uint32", "bool")
Value = Node | np.ndarray | None  # an optional operand may be missing
Translation = Callable[..., Any]
NONE = "an operator without a counterpart"
NUMPY_TYPES = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 11: "float64", 12: "uint32"}  # by ONNX's number


class OutOfScopeError(Exception):
    """What a test asks for has no counterpart: the reason, and the operator or dtype that it is about."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(reason, what)


@frozen
class Table:
    """The translations of operators: a function of operands and attributes, and the operands that are no tensors.

    Those, such as the shape of Reshape, are part of the graph in Sigma: a test must give their values.
    """

    rows: dict[str, tuple[Translation, frozenset[int]]] = field(factory=dict)

    def row(self, *names: str, static: tuple[int, ...] = ()) -> Callable[[Translation], Translation]:
        """Return a decorator that adds a translation."""

        def decorated(translation: Translation) -> Translation:
            self.add(dict.fromkeys(names, translation), static)
            return translation

        return decorated

    def add(self, rows: Mapping[str, Translation], static: tuple[int, ...] = ()) -> None:
        """Add translations by the operators' names."""
        self.rows.update({name: (translation, frozenset(static)) for name, translation in rows.items()})

    def find(self, name: str) -> tuple[Translation, frozenset[int]]:
        """Return a row; raises OutOfScopeError if there is no counterpart."""
        if name not in self.rows:
            raise OutOfScopeError(NONE, name)
        return self.rows[name]


@frozen(eq=False)
class Read:
    """A test as a graph with the arrays that it takes, and the results that ONNX expects."""

    name: str
    graph: Graph
    arrays: list[np.ndarray]
    fixed: dict[int, np.ndarray]  # outputs that follow from shapes and constants alone, by position
    expected: list[np.ndarray]
    rtol: float
    atol: float


def read(case: Any, table: Table) -> Read:
    """Return a test as a graph; raises OutOfScopeError if it has no counterpart."""
    given, expected = ([array(x) for x in some] for some in case.data_sets[0])
    names = [x.name for x in case.model.graph.input]
    return _Reader(case.model.graph, table, dict(zip(names, given, strict=True))).read(case, expected)


def array(given: Any) -> np.ndarray:
    """Return an array; raises OutOfScopeError for what is none, or is of a dtype that Sigma does not have."""
    if isinstance(given, TensorProto):
        dtype = TensorProto.DataType.Name(given.data_type).lower()
        given = numpy_helper.to_array(given) if given.data_type in NUMPY_TYPES else given
    elif isinstance(given, np.ndarray | np.generic):
        dtype = "string" if given.dtype.kind in "OUS" else given.dtype.name
    else:
        raise OutOfScopeError("sequences, maps and optional values")
    if dtype not in (*DTYPES, "float", "double"):
        raise OutOfScopeError("a dtype that Sigma does not have", dtype)
    return np.asarray(given)


def settings(node: Any) -> dict[str, Any]:
    """Return the attributes of an ONNX node as plain values and arrays."""
    found = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.type == attribute.TENSOR:
            value = numpy_helper.to_array(value)
        elif attribute.type in (attribute.GRAPH, attribute.GRAPHS):
            raise OutOfScopeError("a graph as an attribute", node.op_type)
        found[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return found


@define(eq=False)
class _Reader:
    graph: Any
    table: Table
    given: Mapping[str, np.ndarray]
    values: dict[str, Value] = field(factory=dict)
    symbols: dict[str, Node] = field(factory=dict)

    def read(self, case: Any, expected: list[np.ndarray]) -> Read:
        """Return the graph."""
        self.values.update(self.given)
        for name in self._tensors():
            given = self.given[name]
            self.symbols[name] = self.values[name] = symbol(given.shape, given.dtype.name, name)
        for node in self.graph.node:
            self._run(node)
        results = [self.values[x.name] for x in self.graph.output]
        nodes = tuple(x for x in results if isinstance(x, Node))
        fixed = {i: np.asarray(x) for i, x in enumerate(results) if not isinstance(x, Node)}
        arrays = [self.given[name] for name in self.symbols]
        read = Graph(tuple(self.symbols.values()), nodes)
        return Read(case.name, read, arrays, fixed, expected, case.rtol, case.atol)

    def _tensors(self) -> Iterator[str]:
        """Yield the inputs that some operator takes as a tensor."""
        used = {name for node in self.graph.node for name in self._taken(node)} | {x.name for x in self.graph.output}
        yield from (name for name in self.given if name in used)

    def _taken(self, node: Any) -> Iterator[str]:
        _, static = self.table.find(node.op_type)
        yield from (name for i, name in enumerate(node.input) if i not in static and name)

    def _run(self, node: Any) -> None:
        translation, static = self.table.find(node.op_type)
        operands = [self.values[name] if name else None for name in node.input]
        for i in static:
            if i < len(operands) and isinstance(operands[i], Node):
                raise OutOfScopeError("a shape that depends on values", node.op_type)
        made = translation(*operands, **settings(node))
        results = made if isinstance(made, tuple | list) else (made,)
        if any(name and place >= len(results) for place, name in enumerate(node.output)):
            raise OutOfScopeError("further outputs of an operator", node.op_type)
        self.values.update({name: value for name, value in zip(node.output, results, strict=False) if name})
