"""What each row adds to totals, and sums without any error; checked against math.fsum."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import fsum, inf, isnan, nan

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Node, Spec, trace
from sigma_step.totals import add_exactly, exact, per_row

DRAW = np.random.default_rng(11)
X = DRAW.normal(size=(6, 4, 3)).astype(np.float32)
FORMS: dict[str, tuple[Callable[[Node], Node], Callable[[np.ndarray], np.ndarray]]] = {
    "sum": (f.sum, lambda x: x.sum((1, 2))),
    "sum over rows": (lambda x: f.sum(x, axis=0), lambda x: x),
    "sum over places": (lambda x: f.sum(f.reshape(x, (-1, 3)), axis=0), lambda x: x.sum(1)),
    "kept axis": (lambda x: f.sum(x, axis=(0, 2), keepdims=True), lambda x: x.sum(2)[:, None, :, None]),
    "stack": (lambda x: f.stack(f.sum(x), -f.sum(x)), lambda x: np.stack([x.sum((1, 2)), -x.sum((1, 2))], 1)),
    "mean": (lambda x: f.mean(x), lambda x: x.sum((1, 2)) / 72),
    "difference": (lambda x: f.mean(x) - f.sum(x) * 0.25, lambda x: x.sum((1, 2)) / 72 - x.sum((1, 2)) / 4),
    "by a number on the left": (lambda x: 3.0 * f.sum(x) / 2.0, lambda x: x.sum((1, 2)) * 1.5),
    "count": (lambda x: f.cast(f.sum(f.cast(x > 0.0, "int32")), "float32") / 6.0, lambda x: (x > 0).sum((1, 2)) / 6),
    "stopped": (lambda x: f.stop(f.sum(x)), lambda x: x.sum((1, 2))),
}  # fmt: skip
WHOLE: dict[str, Callable[[Node], Node]] = {
    "root of a sum": lambda x: f.sqrt(f.sum(x)),
    "product of sums": lambda x: f.sum(x) * f.sum(x),
    "quotient by 0": lambda x: f.sum(x) / 0.0,
    "infinite": lambda x: f.sum(x) * inf,
    "sum over columns": lambda x: f.sum(f.permute(x, (2, 1, 0))[:2], axis=0),
    "number": lambda x: f.sum(x) + 1.0,
    "other shapes": lambda x: f.sum(x, axis=0) + f.sum(x),
    "truncated": lambda x: f.cast(f.cast(f.sum(x), "int32"), "float32"),
    "whether there are any": lambda x: f.cast(f.cast(f.sum(f.cast(x > 0.0, "int32")), "bool"), "float32"),
    "product of integers": lambda x: f.cast(f.sum(f.cast(x > 0.0, "int32")) * 3, "float32"),
    "integers": lambda x: f.sum(f.cast(x > 0.0, "int32")),
    "no rows": lambda x: f.sum(f.zeros((0, 2))) + f.sum(x),
}


def values(build: Callable[[Node], Node]) -> np.ndarray:
    (found,) = interpret(trace(build, Spec(X.shape)), numpy_namespace())(X)
    return np.asarray(found)


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_told_apart_before_they_are_added(form: str) -> None:
    build, expected = FORMS[form]
    np.testing.assert_allclose(values(lambda x: per_row(build(x), 6)), expected(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", WHOLE)
def test_other_totals_are_recorded_whole(form: str) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(values(lambda x: per_row(WHOLE[form](x), 6)), values(WHOLE[form])[None])


def test_a_live_factor_stays_in_the_graph() -> None:
    graph = trace(
        lambda x, w: (per_row(f.mean(x) * w, 6, Fraction(6)), per_row(w * f.sum(x) / w, 6)), Spec((6, 4)), Spec(())
    )
    mean, total = interpret(graph, numpy_namespace())(X[:, :, 0], np.float32(0.5))
    np.testing.assert_allclose(mean, X[:, :, 0].mean(1) / 2, rtol=1e-6)
    np.testing.assert_allclose(total, X[:, :, 0].sum(1), rtol=1e-6)


def test_a_row_of_a_mean_does_not_depend_on_the_number_of_rows() -> None:
    rows = [np.asarray(values(lambda x, n=n: per_row(f.mean(x[:n]), n, Fraction(n))))[0] for n in range(1, 7)]
    assert len({*map(float, rows)}) == 1


# -- on the host -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_those_of_fsum_in_any_order_and_in_any_parts(dtype: str) -> None:
    for case in range(200):
        draw = np.random.default_rng(case)
        count = int(draw.integers(1, 60))
        x = (draw.normal(size=(count, 2)) * 10.0 ** draw.integers(-30, 30, (count, 2))).astype(dtype)
        expected = [fsum(column) for column in x.astype(float).T.tolist()]
        cuts = np.sort(draw.integers(0, count, draw.integers(4)))
        parts = [exact(part) for part in np.split(x[draw.permutation(count)], cuts) if len(part)]
        assert (
            add_exactly(np.concatenate(parts)).tolist()
            == add_exactly(exact(x)).tolist()
            == add_exactly(x).tolist()
            == expected
        )


def test_parts_are_few_however_many_rows_there_are() -> None:
    x = (10.0 ** DRAW.uniform(-9, 3, (20_000, 1))).astype(np.float32)
    assert exact(x).shape == (2, 1)
    assert add_exactly(x)[0] == fsum(x[:, 0].astype(float).tolist())


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([inf, 1.0], inf),
        ([1e308] * 3, inf),
        ([5e-324] * 3, 1.5e-323),
        ([2.0**-1074, 1e300, -1e300], 2.0**-1074),
        ([0.0, -0.0], 0.0),
        ([3.0], 3.0),
    ],
)
def test_sums_at_the_edges_of_float64(numbers: list[float], expected: float) -> None:
    assert add_exactly(np.array(numbers)) == expected


@pytest.mark.parametrize("numbers", [[nan, 1.0], [inf, -inf], [inf, nan], [inf, -inf, 1.0, nan]])
def test_a_sum_of_what_is_no_number_is_none(numbers: list[float]) -> None:
    assert isnan(add_exactly(np.array(numbers)))
