"""Bits do not depend on the number of cores, as BLAS computes on one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from sigma_backend_numpy import NumpyBackend
from sigma_kernel.graph import interpret, limit_blas, numpy_namespace, trace

SHAPE = (200, 200)  # a product of this size has other bits on two threads of OpenBLAS


def blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def count_threads() -> list[int]:
    return [library["num_threads"] for library in blas().info()]


def operands() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=SHAPE).astype(np.float32) for _ in range(2)]


@pytest.fixture(autouse=True)
def two_threads():
    """Let BLAS use two threads, also on a machine with one core."""
    with blas().limit(limits=2):
        if 2 not in count_threads():
            pytest.skip("the BLAS library of this NumPy cannot be told how many threads to use")
        yield


@pytest.mark.parametrize("name", ["program", "reference"])
def test_a_product_has_the_bits_of_one_thread(name):
    graph, (left, right) = trace(lambda x, y: x @ y, SHAPE, SHAPE), operands()
    program = NumpyBackend().lower(graph, {}) if name == "program" else interpret(graph, numpy_namespace())
    with blas().limit(limits=1):
        expected = left @ right
    assert np.array_equal(program(left, right)[0], expected)


def test_the_number_of_threads_is_restored_also_after_an_error():
    before = count_threads()
    with limit_blas():
        assert set(count_threads()) == {1}
        with limit_blas():
            assert set(count_threads()) == {1}
        assert set(count_threads()) == {1}
    assert count_threads() == before
    with pytest.raises(ZeroDivisionError), limit_blas():
        1 / 0  # noqa: B018
    assert count_threads() == before


def test_the_limit_holds_until_the_last_of_several_threads_has_left():
    before, entered, one_has_left = count_threads(), Barrier(2), Barrier(2)

    def leave_first() -> None:
        with limit_blas():
            entered.wait(10)
        one_has_left.wait(10)

    def leave_last() -> list[int]:
        with limit_blas():
            entered.wait(10)
            one_has_left.wait(10)
            return count_threads()

    with ThreadPoolExecutor(2) as pool:
        first, last = pool.submit(leave_first), pool.submit(leave_last)
        first.result()
        assert set(last.result()) == {1}
    assert count_threads() == before
