"""A wrong call of a graph function ends in a sentence that says what to write instead."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaError, SigmaGraphError
from sigma_kernel.graph.mistakes import INSTEAD
from sigma_kernel.graph.node import symbol

X, Y = symbol((2, 3)), symbol((2, 3))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: f.stack([X, Y]),
            "stack: nodes is a list. Pass its entries one by one: *nodes. The call is f.stack(*nodes, axis=0).",
        ),
        (lambda: f.concat((X, Y), axis=0), "concat: nodes is a list. Pass its entries one by one: *nodes."),
        (lambda: f.sum([X, Y]), "sum: x is a list. Make one operand of it: f.stack(*nodes)."),
        (lambda: f.exp([X, Y]), "a list of nodes is not an operand. Make one node of them: f.stack(*nodes)."),
        (
            lambda: f.sum(X, keep_dims=True),
            "sum: there is no argument 'keep_dims'. Did you mean 'keepdims'? The call is f.sum(x, axis=None, "
            "keepdims=False).",
        ),
        (lambda: f.mean(X, dim=0), "mean: there is no argument 'dim'. Did you mean 'axis'? The call is f.mean(x, axis"),
        (
            lambda: X.sum(keep_dims=True),
            "sum: there is no argument 'keep_dims'. Did you mean 'keepdims'? The call is x.sum(axis=None, "
            "keepdims=False).",
        ),
        (lambda: X.max(0, True, 1), "max: too many positional arguments. The call is x.max("),
        (lambda: f.sum([1.0, 2.0]), "sum: x is [1.0, 2.0], and must be a node or an array. Make it an array: np.array"),
        (lambda: f.mean(3.0), "mean: x is 3.0, and must be a node or an array. Make it an array: np.array(...)."),
        (lambda: f.max(None), "max: x is None, and must be a node or an array. The call is f.max("),
        (lambda: f.softmax("scores"), "softmax: x is 'scores', and must be a node or an array."),
        (lambda: f.softmax(X, (0, 1)), "softmax: axis is (0, 1), and must be a whole number."),
        (lambda: f.sum(X, "last"), "sum: axis is 'last', and must be a whole number, a list of them, or None."),
        (lambda: f.sum(X, 1.0), "sum: axis is 1.0, and must be a whole number, a list of them, or None."),
        (lambda: f.sum(X, np.ones((9, 9))), "sum: axis is a ndarray, and must be a whole number, a list of them"),
        (lambda: f.reshape(X, 6), "reshape: shape is 6, and must be a list of whole numbers."),
        (lambda: f.zeros(3), "zeros: shape is 3, and must be a list of whole numbers."),
        (lambda: f.reshape(X), "reshape: missing a required argument: 'shape'. The call is f.reshape(x, shape)."),
        (lambda: f.split(X, 1.5), "split: sizes is 1.5, and must be a whole number, or a list of them."),
        (lambda: f.pad(X, (0, 1), 2), "pad: high is 2, and must be a list of whole numbers."),
        (
            lambda: f.scan(3, [X], [X]),
            "scan: 'int' object is not callable. The call is f.scan(body, carry, sequences, ",
        ),
        (lambda: f.exp(X, axis=0), "exp((2, 3)): it got an unexpected keyword argument 'axis'"),
        (lambda: f.add(X), "add((2, 3)): it is missing 1 required positional argument: 'y'"),
    ],
)
def test_a_wrong_call_is_explained(call, sentence):
    with pytest.raises(SigmaGraphError, match=re.escape(sentence)):
        call()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("softmx", "Did you mean 'softmax'?"), ("Tanh", "Did you mean 'tanh'?"), ("concatenate", "Use f.concat."),
     ("logsumexp", "Use f.log_sum_exp."), ("gradiant", "Did you mean 'gradient'?")],
)  # fmt: skip
def test_a_function_that_does_not_exist_is_an_error_that_names_another(name, remedy):
    with pytest.raises(SigmaGraphError, match=rf"f\.{name}: there is no such graph function\. {re.escape(remedy)}"):
        getattr(f, name)
    assert not hasattr(f, name)


def test_a_name_like_no_other_is_an_error_without_a_guess():
    with pytest.raises(AttributeError, match=r"^f\.qqqq: there is no such graph function\.$"):
        _ = f.qqqq
    with pytest.raises(AttributeError, match="has no attribute '__path__'"):
        _ = f.__path__


def test_names_of_other_libraries_are_not_ours_and_their_remedies_exist():
    assert [name for name in INSTEAD if hasattr(f, name)] == []
    remedies = [name for remedy in INSTEAD.values() for name in re.findall(r"f\.(\w+)", remedy)]
    assert [name for name in remedies if not hasattr(f, name)] == []


def test_mistakes_within_the_body_of_a_loop_are_those_of_the_body():
    def body(carry, x):
        return [carry.shape.missing], []

    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'missing'") as error:
        f.scan(body, [X[0]], [X])
    assert not isinstance(error.value, SigmaError)


def test_functions_keep_their_signatures_and_names():
    assert str(inspect.signature(f.argmax)) == "(x: 'Array', axis: 'int' = -1, keepdims: 'bool' = False) -> 'Array'"
    assert (f.argmax.__name__, f.argmax.__module__) == ("argmax", "sigma_kernel.functions")
