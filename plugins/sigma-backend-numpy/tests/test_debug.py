from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from sigma_backend_numpy import DebugBackend, NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend, Burst, Step
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_kernel.graph import Graph, Node, gradient, originating, symbol
from sigma_testing import BackendSuite

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)


class TestDebugBackend(BackendSuite):
    def make(self) -> Backend:
        return DebugBackend()


def step(loss: Callable[[Node, Node], Node], metric: Callable[[Node], Node] = f.sum) -> Step:
    """Return a step that descends from weights ``(3,)`` on rows ``(2, 3)``, with a counter and a metric."""
    weights, counter, x = symbol((3,), name="w"), symbol((), "uint32", "n"), symbol((2, 3), name="x")
    with originating("2-it"):
        value = f.sum(loss(x, weights))
    (slope,) = gradient(value, [weights])
    with originating("optimiser"):
        new = weights - slope * 0.5
    graph = Graph((weights, counter, x), (new, counter + 1, value, metric(x)))
    return Step(graph, ("weights", "random.iteration"), ("inputs",), (), ("weights", "random.iteration"), ("loss", "m"))


def run(
    backend: Backend, taken: Step, weights: tuple[float, ...] = (1.0, 1.0, 1.0), n: int = 1, x: np.ndarray = X
) -> Burst:
    state = {"weights": np.array(weights, np.float32), "random.iteration": np.array(6, np.uint32)}
    return backend.compile(taken).run(state, {"inputs": x}, np.tile([0, 1], (n, 1)), {}, n)


FAULTS: Mapping[str, tuple[Callable[[Node, Node], Node], str]] = {
    "a logarithm": (lambda x, w: f.log(x * w), r"2-it: log\(-2\) is nan at \[0, 1\]; 2 of its 6 numbers are wrong\."),
    "an overflow": (lambda x, w: f.exp(x * w * 50.0), r"2-it: exp\(150\) is inf at \[0, 2\]; 2 of its 6 numbers"),
    "infinity minus infinity": (
        lambda x, w: f.exp(x * w * 50.0) - f.exp(x * w * 60.0), r"2-it: exp\(150\) is inf at \[0, 2\]"),
    "a slope": (lambda x, w: f.sqrt(w - w + x * 0.0), r"gradient of 2-it: \w+\(.*\) is (nan|inf) at"),
    "a sum": (lambda x, w: f.sum(x * w * 3e38, axis=0), r"2-it: mul\(-2, 3e\+38\) is -inf at \[0, 1\]"),
    "a product": (
        lambda x, w: (x * 1e30) @ f.reshape(w * 1e30, (3, 1)),
        r"2-it: matmul\(float32\[2, 3\] from -2e\+30 to 4e\+30, float32\[3, 1\] from 1e\+30 to 1e\+30\) is nan at"),
    "a mask that is stated": (
        lambda x, w: f.softmax(f.where(x > 0.0, x * w, -np.inf)) * f.log(x * 0.0 - w), r"2-it: log\(-1\) is nan"),
    "a stated NaN that is not chosen": (
        lambda x, w: f.where(x > -9.0, f.exp(x * w * 50.0), np.nan), r"2-it: exp\(150\) is inf at \[0, 2\]"),
    "a stated NaN that is chosen": (
        lambda x, w: f.where(x > 0.0, x * w, np.nan), r"2-it: where\(0, -2, nan\) is nan at \[0, 1\]; 2 of its 6"),
    "a NaN that is computed, but not chosen": (
        lambda x, w: f.where(x > -9.0, f.exp(x * w * 50.0), f.log(x * w)), r"2-it: exp\(150\) is inf at \[0, 2\]"),
    "an infinity that is padded": (
        lambda x, w: f.pad(f.exp(x * w * 50.0), (0, 0), (0, 1)), r"2-it: exp\(150\) is inf at \[0, 2\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_the_layer_the_op_and_the_first_index_are_named(name):
    loss, text = FAULTS[name]
    with pytest.raises(SigmaTrainingError, match=f"^iteration 7: {text}"):
        run(DebugBackend(), step(loss))


UPDATED = "Clip its operands with functions.clip, lower the learning rate, or clip the gradients."


@pytest.mark.parametrize(
    ("counted", "loss", "remedy"),
    [
        (
            0,
            lambda x, w: f.log(x * w),
            "No update was made yet: look for data or labels that the layer does not accept, ",
        ),
        (1, lambda x, w: f.log(x * w), UPDATED),
        (0, lambda x, w: f.sqrt(w - w + x * 0.0), UPDATED),  # the loss is right, the first update is not
    ],
)
def test_before_any_update_the_remedy_is_not_a_slower_one(counted, loss, remedy):
    state = {"weights": np.ones(3, np.float32), "random.iteration": np.array(counted, np.uint32)}
    with pytest.raises(SigmaTrainingError, match=remedy):
        DebugBackend().compile(step(loss)).run(state, {"inputs": X}, np.array([[0, 1]]), {}, 1)


def looped(reverse: bool) -> Callable[[Node, Node], Node]:
    def loss(x: Node, w: Node) -> Node:
        rows = f.concat(x, x, axis=0)  # (4, 3)
        (last,), _ = f.scan(lambda h, row: ([h * h + row * 0.0], []), [w * 1e10], [rows], reverse=reverse)
        return last

    return loss


@pytest.mark.parametrize(("reverse", "place"), [(False, 1), (True, 2)])
def test_the_step_of_a_loop_is_named(reverse, place):
    text = rf"2-it: mul\(1e\+20, 1e\+20\) is inf at \[0\] in step {place} of the loop"
    with pytest.raises(SigmaTrainingError, match=text):
        run(DebugBackend(), step(looped(reverse)))


def test_a_weight_that_is_wrong_already_is_named():
    text = (
        r"iteration 7: weights is nan at \[1\] before the step; 1 of its 3 numbers are wrong\. Check the latest changes"
    )
    with pytest.raises(SigmaTrainingError, match=text):
        run(DebugBackend(), step(lambda x, w: x * w), (1.0, np.nan, 1.0))


def test_a_fault_in_a_later_step_of_a_burst_is_named_with_its_iteration():
    with pytest.raises(SigmaTrainingError, match=r"^iteration 9: 2-it: log\("):
        run(DebugBackend(), step(lambda x, w: f.log(w - 0.9 + x * 0.0) + w * 0.05), (2.0, 2.0, 2.0), n=20)


def test_results_have_the_bits_of_the_reference():
    taken = step(lambda x, w: f.square(f.tanh(x * w) - 0.5))
    debug, plain = (run(backend, taken, n=5) for backend in (DebugBackend(), NumpyBackend()))
    assert debug.state["weights"].tobytes() == plain.state["weights"].tobytes()
    assert debug.ring["loss"].tobytes() == plain.ring["loss"].tobytes()
    assert debug.done == plain.done == 5


def test_a_metric_may_be_infinite():
    burst = run(DebugBackend(), step(lambda x, w: x * w, lambda x: f.sum(f.log(x * 0.0))))
    assert burst.ring["m"].tolist() == [-np.inf]


def test_infinities_that_come_to_nothing_are_allowed():
    burst = run(DebugBackend(), step(lambda x, w: f.where(x > 0.0, w * x, 0.0) + 1.0 / f.exp(f.abs(x) * 1e3) * w))
    assert np.isfinite(burst.ring["loss"]).all()


def test_a_bound_on_all_results_is_kept():
    text = r"^iteration 7: 2-it: mul\(4, 10\) is 40 at \[1, 1\]; 1 of its 6 numbers are wrong"
    with pytest.raises(SigmaTrainingError, match=text):
        run(DebugBackend(largest=35.0), step(lambda x, w: x * w * 10.0))
    run(DebugBackend(largest=1000.0), step(lambda x, w: x * w * 10.0))


@pytest.mark.parametrize("largest", [0, -1.0, "7", float("nan")])
def test_a_bound_that_is_no_positive_number_is_refused(largest):
    with pytest.raises(SigmaConfigError, match="a number above 0"):
        DebugBackend(largest=largest)


def test_an_evaluation_is_checked_by_its_loss():
    x = symbol((2, 3))
    evaluation = Step(Graph((x,), (f.sum(f.log(x)), f.sum(f.log(x)))), (), ("inputs",), (), (), ("loss", "other"))
    with pytest.raises(SigmaTrainingError, match=r"^the step: log\(-2\) is nan at \[0, 1\]"):
        DebugBackend().compile(evaluation).run({}, {"inputs": X}, np.array([[0, 1]]), {}, 1)
