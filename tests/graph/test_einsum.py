"""Sums of products agree with NumPy's einsum, on arrays and on nodes, and mistakes are sentences."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import symbol, trace

CASES = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ji,jk->ki", (3, 2), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bij,jk->bik", (5, 2, 3), (3, 4)),
    ("i,i->", (4,), (4,)),
    ("i,j->ij", (4,), (3,)),
    ("i,j->ji", (4,), (3,)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ij->ji", (2, 3)),
    ("ba", (2, 3)),
    ("ii->i", (4, 4)),
    ("ii", (4, 4)),
    ("iij->j", (3, 3, 2)),
    ("iii->i", (3, 3, 3)),
    ("ijij->ij", (2, 3, 2, 3)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->j", (2, 3), (2, 3)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)),
    ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)),
    ("...i->...", (2, 3, 4)),
    ("i...->...i", (2, 3, 4)),
    ("...ii->...i", (2, 3, 3)),
    ("...,...->...", (2, 1), (1, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm->im", (2, 9), (9, 2), (2, 9), (9, 3)),
    ("bi,bj,bk->ijk", (2, 3), (2, 4), (2, 5)),
    ("i,i,i->", (4,), (4,), (4,)),
    ("a,b,c->cab", (2,), (3,), (4,)),
    ("nhwc,kc->nkhw", (2, 3, 4, 5), (6, 5)),
    ("ij,j->i", (0, 3), (3,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk->ik", (1, 1), (1, 1)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("i->i", (3,)),
    (",i->i", (), (3,)),
    (",->", (), ()),
]


def draw(shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums_of_products_are_those_of_numpy(case):
    subscripts, *shapes = case
    arrays = draw(shapes)
    expected = np.einsum(subscripts, *arrays)
    for result in (f.einsum(subscripts, *arrays), f.evaluate(lambda *x: f.einsum(subscripts, *x), *arrays)):
        assert np.shape(result) == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_of_a_sum_of_products_is_the_sum_without_the_factor(case):
    """Compare with finite differences along a direction: the function is linear in each operand."""
    subscripts, *shapes = case
    arrays, along = draw(shapes), draw(shapes)[::-1]
    weights = np.cos(np.arange(np.einsum(subscripts, *arrays).size)).reshape(np.einsum(subscripts, *arrays).shape)
    slopes = f.gradient(lambda *x: f.sum(f.einsum(subscripts, *x) * weights), range(len(arrays)))(*arrays)
    for i, x in enumerate(arrays):
        along = np.random.default_rng(i).normal(size=x.shape)
        moved = [along if k == i else y for k, y in enumerate(arrays)]
        assert slopes[i].shape == x.shape
        expected = np.sum(np.einsum(subscripts, *moved) * weights)
        np.testing.assert_allclose(np.sum(slopes[i] * along), expected, rtol=1e-10, atol=1e-12)


def test_an_ellipsis_that_the_result_has_not_is_summed():
    (x,) = draw([(5, 2, 3)])
    np.testing.assert_allclose(f.einsum("...ij->ij", x), x.sum(0), rtol=1e-14)


def test_integers_are_multiplied_as_integers():
    x, y = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    result = f.einsum("ij,jk->ki", x, y)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, np.einsum("ij,jk->ki", x, y))


def test_a_product_of_matrices_is_one_product_and_diagonals_are_slices():
    graph = trace(lambda x, y: f.einsum("bij,bjk->bik", x, y), (5, 2, 3), (5, 3, 4))
    assert {node.op for node in graph} <= {"input", "matmul", "reshape"}
    graph = trace(lambda x: f.einsum("ii->i", x), (3, 3))
    assert {node.op for node in graph} <= {"input", "slice", "reshape", "permute"}


def test_the_order_of_several_factors_is_the_cheap_one():
    graph = trace(lambda x, y, z: f.einsum("ij,jk,k->i", x, y, z), (300, 300), (300, 300), (300,))
    assert max(node.size for node in graph if node.op == "matmul") == 300


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: f.einsum("ij,jk->ik", x), "einsum('ij,jk->ik'): it has 2 terms for 1 operands."),
        (lambda x: f.einsum("ijk->i", x), "the term 'ijk' does not fit an operand with 2 axes."),
        (lambda x: f.einsum("i...jk->i", x), "the term 'i...jk' does not fit an operand with 2 axes."),
        (lambda x: f.einsum("ij,jk->ik", x, x), "'j' has the sides 3 and 2."),
        (lambda x: f.einsum("...i,...->...", x, symbol((4,))), "an axis of the ellipsis has the sides 2 and 4."),
        (lambda x: f.einsum("ij->ik", x), "the result has a label that no operand has."),
        (lambda x: f.einsum("ij->ii", x), "a label of the result occurs twice."),
        (lambda x: f.einsum("i1->i", x), "'1' is neither a letter, nor one ellipsis in a term."),
        (lambda x: f.einsum("i......->i", x), "'...' is neither a letter, nor one ellipsis in a term."),
        (lambda x: f.einsum(x, "ij->ji"), "the subscripts are a text, such as 'ij,jk->ik'."),
        (lambda x: f.einsum("ij->ji", [x]), "einsum: operands is a list. Pass its entries one by one: *operands."),
    ],
)
def test_wrong_subscripts_are_explained(call, message):
    with pytest.raises(SigmaGraphError, match=re.escape(message)):
        call(symbol((2, 3)))
