"""Nodes behave as arrays do: each operator and attribute has the array's value, or an error that says what to use."""

from __future__ import annotations

import copy
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaError, SigmaGraphError
from sigma_kernel.graph.node import Node, symbol

X = np.array([[0.0, 1.0, 2.5], [-1.5, 1.0, -2.0]])
Y = np.array([[1.0, 1.0, -2.0], [0.5, 3.0, 2.0]])
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_, operator.xor, operator.floordiv,
    operator.lshift, operator.rshift, divmod,
]  # fmt: skip
OPERANDS = {
    "floats": (X, Y),
    "floats and truth values": (X, Y > 0.75),
    "truth values and floats": (X > 0.75, Y),
    "truth values": (X == 1, Y == 1),
    "a number on the right": (X, 1.0),
    "a whole number on the right": (X, 1),
    "a number on the left": (1.0, Y),
    "truth values and a number": (X > 0.75, 9.0),
    "a whole number and truth values": (9, X > 0.75),
    "truth values and a truth value": (X > 0.75, True),
    "a list": (X, [1.0, 2.0, 0.5]),
    "integers": (np.array([3, -4, 5]), np.array([2, 3, 5])),
    "integers and a number": (np.array([3, -4, 5]), 5),
    "integers and truth values": (np.array([3, -4, 5]), np.array([True, False, True])),
}


def value(function: Callable[..., Any], *operands: Any) -> Any:
    """Return what a function of nodes computes; what is no array stays what it is."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]

    def given(*nodes: Node) -> Any:
        left = iter(nodes)
        return function(*(next(left) if isinstance(x, np.ndarray) else x for x in operands))

    return f.evaluate(given, *arrays)


def is_like_array(function: Callable[..., Any], *operands: Any) -> bool:
    """Return whether nodes have the value of arrays; False if they are refused with a remedy."""
    try:
        found = value(function, *operands)
    except SigmaError as error:
        if not re.search(r"(Use|Cast|Write|Slice|single number)", str(error)):
            raise
        return False
    wanted = function(*operands)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple | list) else [(found, wanted)]
    for one, other in pairs:
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-6)
    return True


@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("operation", BINARY, ids=lambda operation: operation.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_operator_of_nodes_gives_what_arrays_give_or_names_what_does(operation, operands):
    try:
        found = operation(*operands)
    except (TypeError, ValueError):  # what arrays refuse, nodes may compute
        return
    if operation is operator.mod and found.dtype.kind == "i" and not np.all(operands[1]):
        return  # of integers, NumPy warns of the remainder of a division by 0, and calls it 0
    is_like_array(operation, *operands)


@pytest.mark.parametrize("left", [np.array([1.0, 0.5, 2.0]), np.array([True, False, True]), np.float64(0.5)])
@pytest.mark.parametrize("operation", [operator.eq, operator.ne], ids=["eq", "ne"])
def test_an_array_on_the_left_is_compared_entry_by_entry(operation, left):
    right = np.array([1.0, 1.0, 0.5])
    np.testing.assert_array_equal(f.evaluate(lambda node: operation(left, node), right), operation(left, right))


WORKS = {
    "neg": lambda x: -x, "abs": abs, "T": lambda x: x.T, "shape": lambda x: x.shape, "ndim": lambda x: x.ndim,
    "size": lambda x: x.size, "len": len, "sum": lambda x: x.sum(), "sum of an axis": lambda x: x.sum(axis=0),
    "sum keepdims": lambda x: x.sum(axis=1, keepdims=True), "mean": lambda x: x.mean(), "max": lambda x: x.max(),
    "mean of an axis": lambda x: x.mean(axis=-1), "min": lambda x: x.min(axis=1), "reshape": lambda x: x.reshape(3, 2),
    "reshape -1": lambda x: x.reshape(-1), "astype": lambda x: x.astype("int32"), "a row": lambda x: x[1],
    "an entry": lambda x: x[1, 2], "a slice": lambda x: x[:, ::-1], "an axis": lambda x: x[:, None],
    "a list of rows": lambda x: x[[1, 0, 1]], "all": lambda x: x[...], "rows": list, "unpacking": lambda x: [*x],
    "square": lambda x: x**2, "product": lambda x: x @ x.T, "not": lambda x: ~(x > 0),
    "a share": lambda x: (x > 0).mean(),
    "a count": lambda x: (x > 0).sum(), "a mask": lambda x: x * (x != 1), "weights": lambda x: 1 + 9 * (x == 1),
    "a mask of truth values": lambda x: ((x == 1) & (x > 0)) | (x == -2), "nothing": lambda x: x == x,
    "compared truth values": lambda x: (x > 0) == (x > 1), "a number in truth values": lambda x: (x > 0) == 1,
    "truth values of rows": lambda x: (x > 0).sum(axis=1),
}  # fmt: skip


@pytest.mark.parametrize("function", WORKS.values(), ids=WORKS)
def test_what_users_know_of_arrays_has_the_same_value_on_nodes(function):
    assert is_like_array(function, X)


UNKNOWN = {
    "if": lambda x: 1 if x > 0 else 2, "and": lambda x: x > 0 and x < 1, "or": lambda x: x > 0 or x < 1,
    "not": lambda x: not x, "bool": bool, "float": float, "int": int, "complex": complex, "round": round,
    "in": lambda x: 1.0 in x, "not in": lambda x: 1.0 not in x, "chained": lambda x: 0 < x < 1,
    "max": lambda x: max(x, 1.0),
    "an index": lambda x: [1, 2][x], "a range": range, "len of a number": lambda x: len(x.sum()), "of an array": np.sin,
    "rows of a number": lambda x: list(x.sum()), "while": lambda x: next(iter(int, 1)) if x else 0,
    "setting": lambda x: operator.setitem(x, 0, 1.0), "a mask": lambda x: x[x > 0], "any": lambda x: any(x > 0),
    "all": lambda x: all(x > 0), "a formatted number": lambda x: math.sqrt(x), "sorted": sorted,
    "equal to nothing": lambda x: x == None, "equal to a word": lambda x: x == "one",  # noqa: E711
    "an empty row": lambda x: 1.0 in x[:0], "a slice": lambda x: [1, 2][: x.sum()], "a sum": lambda x: x.sum(x),
}  # fmt: skip


@pytest.mark.parametrize("function", UNKNOWN.values(), ids=UNKNOWN)
def test_what_needs_the_value_of_a_node_is_an_error(function):
    with pytest.raises(SigmaError):
        function(symbol((2, 3)))


ATTRIBUTES = sorted(name for name in dir(np.ndarray) if not name.startswith("_"))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_of_arrays_exists_or_its_error_names_a_function_that_does(name):
    x = symbol((2, 3))
    if hasattr(Node, name):
        return
    with pytest.raises(SigmaGraphError, match="Use ") as caught:
        getattr(x, name)
    named = re.findall(r"\bf\.(\w+)", str(caught.value))
    assert all(hasattr(f, one) for one in named)
    assert not hasattr(x, name)


def test_a_node_has_no_attribute_that_arrays_do_not_have():
    with pytest.raises(AttributeError, match="a node has no 'wieght'"):
        _ = symbol(()).wieght


def test_nodes_are_found_in_sets_and_dictionaries_by_identity():
    x, y = symbol((2,)), symbol((3,))
    names = {x: "x", y: "y"}
    assert (names[x], names[y], symbol((2,)) in names) == ("x", "y", False)
    assert len({x, y, x}) == 2
    assert copy.copy(x) is not x


def test_truth_values_take_the_dtype_of_the_floats_that_they_compare():
    x, labels = symbol((3,), "float64"), symbol((3,), "int32")
    assert ((x > 1) * 9.0).dtype == "float64"
    assert ((labels == 1) * 9.0).dtype == "float32"
    assert ((f.argmax(symbol((3, 2), "float64"), -1) == labels) + 1).dtype == "float64"
    assert ((labels == 1) * x).dtype == "float64"
    assert f.where(labels == 1, 10, 1).dtype == "float32"
    assert (labels * (labels == 1)).dtype == "int32"
