"""Gradients of functions of arrays and nodes, against closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import differentiation
from sigma_kernel.graph.node import Node, symbol

RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 3))


def test_the_gradient_of_anything_is_one_line():
    assert f.gradient(lambda x: f.sum(x**3))(np.array([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert f.gradient(lambda x: x**2)(3) == 6.0


def test_the_gradient_of_a_quadratic_form_is_its_closed_form():
    x = RNG.normal(size=3)
    assert f.gradient(lambda x: x @ A @ x)(x) == pytest.approx((A + A.T) @ x, rel=1e-13)


def test_a_gradient_agrees_with_finite_differences_for_every_argument():
    def loss(w, b, x):
        return f.mean(f.square(f.tanh(x @ w + b) - 0.3))

    given = [RNG.normal(size=(3, 2)), RNG.normal(size=2), RNG.normal(size=(5, 3))]
    for place, found in enumerate(f.gradient(loss, (0, 1, 2))(*given)):
        along = RNG.normal(size=given[place].shape)
        ends = [[x + sign * 1e-6 * along if i == place else x for i, x in enumerate(given)] for sign in (1, -1)]
        slope = (f.evaluate(loss, *ends[0]) - f.evaluate(loss, *ends[1])) / 2e-6
        assert (found * along).sum() == pytest.approx(slope, rel=1e-6)


def test_a_gradient_has_the_structure_of_its_argument():
    given = {"w": np.ones(2), "inner": [{"b": np.array([2.0, 3.0])}, (4.0,)]}
    found = f.gradient(lambda p: (p["w"] * p["inner"][0]["b"]).sum() * p["inner"][1][0])(given)
    assert found["w"].tolist() == [8.0, 12.0]
    assert found["inner"][0]["b"].tolist() == [4.0, 4.0]
    assert found["inner"][1] == (5.0,)


def test_arguments_that_are_not_differentiated_keep_their_dtype():
    found = f.gradient(lambda x, i: x[i].sum())(np.zeros(3, "float32"), np.array([0, 2, 2]))
    assert (found.dtype, found.tolist()) == ("float32", [1.0, 0.0, 2.0])
    assert f.gradient(lambda i, x: x[i].sum(), -1)(np.array([1]), np.zeros(2)).tolist() == [0.0, 1.0]


def test_only_what_the_function_makes_of_its_argument_is_differentiated():
    x = symbol((2,))
    inside = f.gradient(lambda y: f.sum(x * y))(x)  # x itself is a constant there
    (twice,) = differentiation.gradient(f.sum(inside), [x])
    values = f.evaluate(lambda x: f.gradient(lambda y: f.sum(x * y))(x), np.array([3.0, 4.0]))
    assert isinstance(inside, Node)
    assert twice.shape == (2,)
    assert values.tolist() == [3.0, 4.0]


def test_a_gradient_penalty_is_differentiated_twice():
    w = RNG.normal(size=3)

    def penalty(w):
        slopes = f.gradient(lambda x: f.sum(f.exp(x * w)))(np.zeros((4, 3)))
        return f.mean(f.square(f.norm(slopes, 1) - 1.0))

    size = np.linalg.norm(w)  # the slope of exp(x w) at 0 is w
    assert f.gradient(penalty)(w) == pytest.approx(2 * (size - 1) * w / size, rel=1e-12)


def test_a_hessian_vector_product_is_that_of_the_closed_form():
    x, v = RNG.normal(size=3), RNG.normal(size=3)
    found = f.hessian_vector_product(lambda x: x @ A @ x + f.sum(x**3))(x, vector=v)
    assert found == pytest.approx((A + A.T + np.diag(6 * x)) @ v, rel=1e-12)
    both = f.hessian_vector_product(lambda p, k: k * p["a"] * p["b"])(
        {"a": 2.0, "b": 3.0}, 5.0, vector={"a": 1.0, "b": 0}
    )
    assert both == {"a": 0.0, "b": 5.0}


def test_a_vector_is_matched_by_name_and_in_lists_by_position():
    product = f.hessian_vector_product(lambda p: p["a"] ** 2 * p["rest"][0]["b"] ** 3)
    x = {"a": 2.0, "rest": [{"b": 3.0, "c": 1.0}]}
    found = product(x, vector={"rest": [{"c": 0.0, "b": 7.0}], "a": 5.0})
    assert found == {"a": 2 * 27 * 5 + 2 * 2 * 27 * 7, "rest": [{"b": 4 * 27 * 5 + 4 * 18 * 7, "c": 0.0}]}


def test_a_function_with_several_results_is_evaluated():
    found = f.evaluate(lambda x, y: {"sum": x + y, "rest": [x * 2, 7]}, np.ones(2), 3.0)
    assert found["sum"].tolist() == [4.0, 4.0]
    assert found["rest"][0].tolist() == [2.0, 2.0]
    assert found["rest"][1] == 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f.gradient(lambda x: x)(np.ones(3)), r"must be a single float \(got float64\[3\]\). Sum it up first."),
        (lambda: f.gradient(lambda x: 3.0)(np.ones(3)), r"the function must return a node \(got float\)"),
        (lambda: f.gradient(lambda x: x, 1)(1.0), r"there is no argument 1 among 1"),
        (lambda: f.gradient(lambda x: x)("one"), r"a str cannot be a constant|an array of <U3 cannot be a constant"),
        (
            lambda: f.hessian_vector_product(lambda x: f.sum(x))(np.ones(3), vector=np.ones(1)),
            r"the vector has shapes \[\(1,\)\], not \[\(3,\)\]",
        ),
    ],
)
def test_what_cannot_be_differentiated_is_refused_in_a_sentence(call, message):
    with pytest.raises(SigmaGraphError, match=message):
        call()
