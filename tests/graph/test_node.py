"""Nodes and graphs: printing, equality, and depth without recursion."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Container, Iterator, Sequence

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import node as nodes_module, ops
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, apply, constant, symbol, topological_order, trace


def chain(x: Node) -> Node:
    for i in range(3000):
        x = x * 0.5 if i % 2 else ops.sin(x)
    return x


def recurrent(h: Node, x: Node, w: Node) -> tuple[Node, ...]:
    def body(h: Node, x: Node, w: Node) -> tuple[list[Node], list[Node]]:
        new = ops.tanh(h @ w + x)
        return [new], [new * new]

    (last,), (squares,) = f.scan(body, [h], [x], [w])
    return last, squares


RECURRENT = Spec((2, 3)), Spec((5, 2, 3)), Spec((3, 3))


def test_a_graph_prints_as_one_row_for_each_node():
    graph = trace(lambda x, y: ops.exp(x @ y) * 2.0, Spec((2, 3)), Spec((3, 1), "float32"))
    assert str(graph).splitlines() == [
        "%0 = input(name='') : float32[2, 3]",
        "%1 = input(name='') : float32[3, 1]",
        "%2 = matmul(%0, %1) : float32[2, 1]",
        "%3 = exp(%2) : float32[2, 1]",
        "%4 = constant(value=2.0) : float32[]",
        "%5 = mul(%3, %4) : float32[2, 1]",
        "return %5",
    ]


def test_the_body_of_a_scan_is_printed_below_it():
    lines = str(trace(recurrent, *RECURRENT)).splitlines()
    at = next(i for i, line in enumerate(lines) if "= scan(" in line)
    assert lines[at] == "%3 = scan(%0, %1, %2, carries=1, sequences=1, length=5, reverse=False) : tuple[]"
    assert lines[at + 1 : at + 3] == ["    body:", "    %0 = input(name='') : float32[2, 3]"]


@pytest.mark.parametrize("graph", [trace(chain, (2,)), trace(recurrent, *RECURRENT)], ids=["chain", "scan"])
def test_a_graph_survives_printing_comparing_and_pickling(graph):
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert hash(copy) == hash(graph)
    assert str(copy) == str(graph)
    assert copy.outputs[0] is not graph.outputs[0]


def test_unused_inputs_keep_their_position():
    graph = pickle.loads(pickle.dumps(trace(lambda unused, x: (x, x), (4,), (2,))))
    assert [x.shape for x in graph.inputs] == [(4,), (2,)]
    assert all(node is graph.inputs[1] for node in graph.outputs)
    assert len(graph.outputs) == 2


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x + 0.0,
        lambda x: x - (-0.0),
        lambda x: ops.sum(x, axis=(0,)),
        lambda x: (x + (-0.0), x),
        lambda x: ops.exp(x),
    ],
)
def test_different_graphs_are_not_equal(other):
    graph = trace(lambda x: x + (-0.0), (2,))
    assert graph != trace(other, (2,))
    assert graph != trace(lambda x: x + (-0.0), (3,))
    assert graph != trace(lambda x: x + (-0.0), Spec((2,), "float64"))
    assert graph == trace(lambda x: x + (-0.0), (2,))


def test_graphs_with_nan_in_them_are_equal_to_themselves():
    assert trace(lambda x: x + float("nan"), (2,)) == trace(lambda x: x + float("nan"), (2,))


def test_nodes_are_visited_once_and_operands_first():
    x = symbol((2,))
    y = x + x
    graph = Graph((x,), (y * y, y))
    order = {node: place for place, node in enumerate(graph)}
    assert len(order) == len([*graph]) == 3
    assert all(order[operand] < order[node] for node in order for operand in node.inputs)


def test_nodes_are_compared_entry_by_entry_and_hashed_by_identity():
    x, y = symbol((2,)), symbol((2,))
    assert ((x == y).op, (x != y).op, (x == x).dtype) == ("equal", "logical_not", "bool")
    assert len({x, y, x}) == 2


@pytest.mark.parametrize(
    ("made", "op", "operands"),
    [
        (lambda x: 2 - x, "sub", "cx"), (lambda x: x**3, "pow", "xc"), (lambda x: x**2, "mul", "xx"),
        (lambda x: 2**x, "pow", "cx"),
        (lambda x: 1 / x, "div", "cx"), (lambda x: x % 2, "mod", "xc"), (lambda x: -x, "neg", "x"),
        (lambda x: x < 1, "greater", "cx"), (lambda x: x <= 1, "greater_equal", "cx"),
        (lambda x: x > 1, "greater", "xc"), (lambda x: x >= 1, "greater_equal", "xc"), (lambda x: 1 + x, "add", "cx"),
        (lambda x: 3 * x, "mul", "cx"), (lambda x: x @ x, "matmul", "xx"),
    ],
)  # fmt: skip
def test_python_operators_build_nodes(made, op, operands):
    x = symbol((2, 2), "float64")
    node = made(x)
    assert node.op == op
    assert "".join("x" if operand is x else "c" for operand in node.inputs) == operands
    assert {operand.dtype for operand in node.inputs} == {"float64"}


def test_a_python_number_takes_the_dtype_of_the_other_operand():
    assert (symbol((2,), "int32") + 1).inputs[1].attrs == {"value": 1}
    assert repr((symbol((2,), "float16") + 1).inputs[1].attrs["value"]) == "1.0"
    chosen = ops.where(symbol((2,), "bool"), symbol((2,), "float64"), 0)
    assert chosen.dtype == chosen.inputs[2].dtype == "float64"
    assert (symbol((), "uint32") + np.int64(3)).inputs[1].attrs == {"value": 3}


def test_a_constant_array_takes_the_dtype_of_the_other_operand_like_a_number():
    x, whole = symbol((2, 3)), symbol((2, 3), "int32")
    for made in (np.ones(3) * x, x * np.ones(3), [1, 2, 3] * x, x - np.arange(3), x * np.array([True, False, True])):
        assert made.spec == x.spec
    assert (whole + np.arange(3)).dtype == "int32"
    assert (np.ones((4, 2)) @ x).shape == (4, 3)
    assert ((np.ones(2) @ x).shape, (x @ np.ones(3)).shape) == ((3,), (2,))
    assert (np.uint8([1, 2, 3]) + whole).dtype == "int32"


def test_a_constant_array_of_indices_labels_or_truth_values_keeps_its_dtype():
    x = symbol((4, 3))
    assert ops.take(x, np.array([0, 1]), axis=0).inputs[1].dtype == "int64"
    assert ops.where(np.array([True, False, True]), x, 0.0).inputs[0].dtype == "bool"
    assert ops.softmax_cross_entropy(x, np.array([0, 1, 2, 0], "int32")).dtype == "float32"


def test_a_constant_array_does_not_change_with_the_array_it_was_made_of():
    given = np.ones(3)
    graph = trace(lambda x: x * given, (3,))
    given[:] = 5.0
    assert interpret(graph, numpy_namespace())(np.ones(3, "float32"))[0].tolist() == [1.0, 1.0, 1.0]


def test_graphs_with_other_constant_arrays_are_not_equal():
    large = np.arange(1000.0)
    assert trace(lambda x: x + large, (1000,)) == trace(lambda x: x + large.copy(), (1000,))
    assert trace(lambda x: x + large, (1000,)) != trace(lambda x: x + large[::-1], (1000,))
    assert "array(value=[1.0, 2.0], dtype='float32')" in str(trace(lambda x: x * [1, 2], (2,)))
    assert "sha256" in str(trace(lambda x: x + large, (1000,)))


def test_lists_in_attributes_become_tuples():
    assert ops.sum(symbol((2, 3)), axis=[0, 1]).attrs == {"axis": (0, 1)}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, i: x @ x, r"matmul\(\(2, 3\), \(2, 3\)\): inner sides differ: 3 and 2"),
        (lambda x, i: i + 0.5, r"add\(\(2, 3\), 0.5\): 0.5 is not a valid int32. Cast the other operand"),
        (lambda x, i: i + 2**31, r"add\(\(2, 3\), 2147483648\): 2147483648 is not a valid int32"),
        (lambda x, i: ops.cast(i, dtype="uint32") - (-1), r"-1 is not a valid uint32"),
        (lambda x, i: x + i, r"add\(\(2, 3\), \(2, 3\)\): dtypes float32 and int32 do not mix. Cast one of them."),
        (lambda x, i: ops.where(1.0, 2.0, 0.0), r"where\(1.0, 2.0, 0.0\): the dtype of a number is unknown"),
        (lambda x, i: (x > 0) + (x > 1), r"it takes numbers, not bool. Cast or compare first"),
        (lambda x, i: (x > 0) & x, r"dtypes bool and float32 do not mix. Cast one of them."),
        (lambda x, i: (x > 0) + x + i, r"dtypes float32 and int32 do not mix. Cast one of them."),
        (lambda x, i: ops.exp(i), r"exp\(\(2, 3\)\): it takes floats, not int32"),
        (lambda x, i: ops.exp(x, x), r"exp\(\(2, 3\), \(2, 3\)\): it takes 1 positional argument"),
        (lambda x, i: ops.sum(x), r"sum\(\(2, 3\)\): .*'axis'"),
        (lambda x, i: apply("matmull", x, x), r"there is no op 'matmull'. Did you mean 'matmul'\?"),
        (lambda x, i: np.ones(4) * x, r"mul\(\(4,\), \(2, 3\)\): sides 4 and 3 do not broadcast"),
        (lambda x, i: i * [0.5, 1.0, 2.0], r"mul\(.*: 0.5 is not a valid int32. Cast the other operand"),
        (lambda x, i: i * [2**31, 0, 0], r"mul\(.*: 2147483648 is not a valid int32. Cast the other operand."),
        (lambda x, i: x * [[1, 2], [3]], r"a list with rows of different lengths cannot be a constant of a graph."),
        (lambda x, i: x * np.array([1j, 1j, 1j]), r"an array of complex128 cannot be a constant of a graph. Use real"),
        (lambda x, i: np.sin(x), r"np.sin: NumPy cannot compute with input .*. Use f.sin, of sigma_kernel.functions."),
        (lambda x, i: np.absolute(x), r"Use f.abs, of sigma_kernel.functions."),
        (lambda x, i: np.cosh(x), r"np.cosh: .* Use operators, and the functions of sigma_kernel.functions."),
        (lambda x, i: np.add(x, x), r"Use f.add, of sigma_kernel.functions."),
        (lambda x, i: np.add.reduce(x), r"np.add: NumPy cannot compute"),
        (lambda x, i: np.equal(x, x), r"Use f.equal, of sigma_kernel.functions."),
        (lambda x, i: np.asarray(x), r"Use the functions of sigma_kernel.functions; f.evaluate"),
        (lambda x, i: x[2], r"input float32\[2, 3\]\[2\]: index 2 is out of bounds for axis 0 with size 2."),
        (lambda x, i: x[0, 0, 0], r"too many indices for array: array is 2-dimensional, but 3 were indexed."),
        (lambda x, i: x[..., ...], r"an index can only have a single ellipsis \('...'\)."),
        (lambda x, i: x[[0, 2]], r"index 2 is out of bounds for axis 0 with size 2"),
        (lambda x, i: x[0, i], r"a node selects along one axis. Slice the others before."),
        (lambda x, i: x[x > 0], r"how many entries a mask selects is unknown here. Use where\(mask, x, y\)."),
        (lambda x, i: x["w"], r"only integers, slices .* and integer or boolean arrays are valid indices"),
        (lambda x, i: x[x], r"it takes places that are int32 or int64, not float32"),
        (lambda x, i: len(x[0, 0]), r"a single number has no length"),
        (lambda x, i: list(x[0, 0]), r"a single number has no length"),
        (lambda x, i: x + "one", r"a str cannot be a constant of a graph"),
        (lambda x, i: x + None, r"a NoneType cannot be a constant of a graph"),
        (lambda x, i: constant(0.5, "bool"), r"0.5 is not a valid bool"),
        (lambda x, i: constant(1.0, "float23"), r"there is no dtype 'float23', only .* Did you mean 'float32'\?"),
        (lambda x, i: symbol((2, -1)), r"shape \(2, -1\): a side cannot be negative"),
        (lambda x, i: x in [x + 1, x], r"equal .*In lists, find nodes by `is`: any\(x is y for y in nodes\)."),
        (lambda x, i: max(x, x + 1), r"greater bool\[2, 3\]: its value is unknown while the graph is built"),
    ],
)  # fmt: skip
def test_invalid_code_in_the_language_is_refused_in_a_sentence(build, message):
    with pytest.raises(SigmaGraphError, match=message):
        build(symbol((2, 3)), symbol((2, 3), "int32"))


def test_a_node_used_as_a_condition_is_refused_with_a_remedy():
    with pytest.raises(SigmaGraphError, match=r"Use where\(condition, x, y\) instead of if"):
        trace(lambda x: x if x > 0 else -x, (2,))


def test_a_function_that_uses_nodes_of_another_graph_is_refused():
    outside = symbol((2,), name="weights")
    with pytest.raises(SigmaGraphError, match=r"uses input float32\[2\] 'weights' from outside. Pass it"):
        trace(lambda x: x + outside, (2,))


@pytest.mark.parametrize("result", [3.0, [symbol((2,)), None]])
def test_a_function_that_does_not_return_a_node_is_refused(result):
    with pytest.raises(SigmaGraphError, match="trace: the function must return nodes, not"):
        trace(lambda x: result, (2,))


def test_an_op_is_defined_only_once(monkeypatch):
    monkeypatch.delitem(OPS, "acme:double", raising=False)
    double = ops.op("acme:double", lambda x: x, lambda x: x, None, lambda x: x + x)
    assert apply("acme:double", symbol((2,))).op == double.name
    with pytest.raises(SigmaGraphError, match="op 'acme:double' is already defined"):
        ops.op("acme:double", lambda x: x, lambda x: x)
    monkeypatch.delitem(OPS, "acme:double")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "mod", "matmul", "gt", "ge", "lt", "le"])
@pytest.mark.parametrize("left", [np.array([1.0, 2.0, 3.0]), np.float64(2.0)])
def test_an_operator_with_an_array_on_the_left_makes_the_node_that_numpy_would_compute(name, left):
    right, operation = np.array([3.0, 2.0, 0.5]), getattr(operator, name)
    if name == "matmul":
        left = np.broadcast_to(left, (3,))
    found = f.evaluate(lambda node: operation(left, node), right)
    np.testing.assert_allclose(found, operation(left, right), rtol=1e-15)


# -- order -------------------------------------------------------------------------------------------------------------
def draw_nodes(seed: int, count: int = 60) -> list[Node]:
    """Return nodes that take some of those before them, a few of them twice."""
    draw = np.random.default_rng(seed)
    nodes = [symbol((2,)) for _ in range(3)]
    for _ in range(count):
        nodes.append(Node("sum", tuple(nodes[i] for i in draw.integers(0, len(nodes), draw.integers(0, 4)))))
    return nodes


def order_recursively(outputs: Sequence[Node], border: Container[Node]) -> list[Node]:
    """Return what the definition says: each node behind its operands, from the first one on."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for operand in () if node in border else node.inputs:
                visit(operand)
            found[node] = None

    for node in outputs:
        visit(node)
    return [*found]


@pytest.mark.parametrize("seed", range(20))
def test_operands_come_before_the_nodes_that_take_them(seed: int) -> None:
    nodes = draw_nodes(seed)
    outputs, border = nodes[:-6:-1], {*nodes[10:20]}
    found, expected = topological_order(outputs, border), order_recursively(outputs, border)
    assert [*map(id, found)] == [*map(id, expected)]
    assert [*map(id, Graph((), tuple(outputs)))] == [*map(id, order_recursively(outputs, ()))]


def test_a_graph_finds_its_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[Sequence[Node]]()

    def note(outputs: Sequence[Node]) -> Iterator[Node]:
        calls.append(outputs)
        return topological_order(outputs)

    monkeypatch.setattr(nodes_module, "topological_order", note)
    graph = trace(lambda x: ops.exp(x) * x, Spec((2,)))
    assert [*map(id, graph)] == [*map(id, graph)]
    assert calls == [graph.outputs]
