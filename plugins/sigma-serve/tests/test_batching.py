"""Rows of several requests are joined, and each is answered as if it had been alone."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import numpy as np
import pytest

from sigma_kernel.errors import SigmaDataError
from sigma_serve.batching import Batcher
from sigma_serve.model import ServedNetwork

WAIT = 30.0


class Slow:
    """Doubles rows, the first call only once it is told to; remembers the sizes of its calls."""

    def __init__(self) -> None:
        self.go, self.sizes, self.started = threading.Event(), list[int](), threading.Event()

    def __call__(self, rows):
        self.started.set()
        assert self.go.wait(WAIT)
        self.sizes.append(len(rows["inputs"]))
        if (rows["inputs"] < 0).any():
            raise SigmaDataError("predict: less than zero.")
        return {"output": rows["inputs"] * 2}


def rows_of(value: float, count: int = 1, width: int = 2) -> dict[str, np.ndarray]:
    return {"inputs": np.full((count, width), value)}


def queue_behind_first(slow: Slow, many: list[dict[str, np.ndarray]], most: int = 256):
    """Return the futures of requests that waited together behind a first one."""
    batcher = Batcher(slow, most)
    batcher.begin()
    batcher.submit(rows_of(0))
    assert slow.started.wait(WAIT)
    futures = [batcher.submit(rows) for rows in many]
    slow.go.set()
    batcher.end()
    assert not wait(futures, WAIT).not_done
    return futures


def test_requests_that_wait_are_joined_up_to_the_limit():
    slow = Slow()
    futures = queue_behind_first(slow, [rows_of(i, 3) for i in range(7)], most=9)
    assert slow.sizes == [1, 9, 9, 3]
    for i, future in enumerate(futures):
        assert np.array_equal(future.result()["output"], np.full((3, 2), 2.0 * i))


def test_requests_of_different_forms_are_not_joined():
    slow = Slow()
    one, two, three = queue_behind_first(slow, [rows_of(1), rows_of(2, width=3), rows_of(3)])
    assert sorted(slow.sizes) == [1, 1, 2]
    assert one.result()["output"].shape == three.result()["output"].shape == (1, 2)
    assert two.result()["output"].shape == (1, 3)


def test_a_request_that_is_refused_spoils_no_other():
    good, bad, other = queue_behind_first(Slow(), [rows_of(1), rows_of(-1), rows_of(3)])
    assert good.result()["output"][0, 0] == 2
    assert other.result()["output"][0, 0] == 6
    with pytest.raises(SigmaDataError, match="less than zero"):
        bad.result()


def test_a_failure_is_raised_by_whoever_asked_and_the_next_request_is_answered():
    def fail_once(rows, failed=[]):  # noqa: B006
        if not failed:
            failed.append(1)
            raise ZeroDivisionError
        return {"output": rows["inputs"]}

    batcher = Batcher(fail_once)
    batcher.begin()
    with pytest.raises(ZeroDivisionError):
        batcher.submit(rows_of(1)).result(WAIT)
    assert batcher.submit(rows_of(1)).result(WAIT)["output"].shape == (1, 2)
    batcher.end()


def test_a_request_that_was_given_up_is_not_computed():
    slow = Slow()
    batcher = Batcher(slow)
    batcher.begin()
    batcher.submit(rows_of(0))
    assert slow.started.wait(WAIT)
    assert batcher.submit(rows_of(1, 5)).cancel()
    slow.go.set()
    batcher.end()
    assert slow.sizes == [1]


def test_the_bits_of_a_row_do_not_depend_on_the_rows_that_it_is_joined_with(model):
    served, draw = ServedNetwork(model, "x"), np.random.default_rng(0).random((64, 4))
    joined = served.predict({"inputs": draw})[model.network.outputs[0].name]
    alone = [model.predict(draw[i : i + 1])[0] for i in range(64)]
    assert np.array_equal(joined, alone)
    assert np.array_equal(served.predict({"inputs": draw[::-1]})[model.network.outputs[0].name], alone[::-1])
