"""Comparing iterations with the reference: faults are found and named, and training is not affected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from sigma_hooks import NanGuard, Verify
from sigma_hooks.agreement import differences
from sigma_hooks.reference import TERMS, Reference
from sigma_kernel import Environment, after, every, functions as f
from sigma_kernel.contracts import Hook, Metric, Program, Step
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_kernel.graph import MEANINGS, OPS, Graph, Node, Spec, interpret, numpy_namespace, trace
from sigma_testing import Descent, HookSuite, NullBackend, Sweep, small_environment, state_bytes

ALWAYS = every(1, "iteration")


class TestVerify(HookSuite):
    in_background = False

    def make(self) -> Hook:
        return Verify()


# -- faulty backends ---------------------------------------------------------------------------------------------------
class Wrong(NullBackend):
    """One op gives one per cent too much, in every program."""

    op = "matmul"

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        right = MEANINGS[self.op]
        wrong = {self.op: lambda ns, *operands, **attrs: right(ns, *operands, **attrs) * np.float32(1.01)}
        run = interpret(graph, evolve(numpy_namespace(), own=wrong))
        return lambda *arrays: [np.array(value) for value in run(*arrays)]


@frozen(eq=False)
class Spoiled:
    """A program that gets one element of the state wrong."""

    program: Program
    name: str
    value: float
    peak_bytes: int = 0

    def run(self, *given: Any) -> Any:
        burst = self.program.run(*given)
        state = {**burst.state, self.name: np.array(burst.state[self.name])}
        state[self.name][1, 0] = self.value
        return evolve(burst, state=state)


class Planned(NullBackend):
    """Only the ordinary program is wrong: the one that writes the state."""

    def compile(self, step: Step, in_place: bool = True) -> Program:
        program = super().compile(step, in_place)
        return Spoiled(program, "network.layers.weights", 0.5) if step.writes else program


class Infinite(NullBackend):
    """The loss is NaN."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run = interpret(graph, evolve(numpy_namespace(), own={"matmul": lambda ns, a, b: np.matmul(a, b) * np.nan}))
        return lambda *arrays: [np.array(value) for value in run(*arrays)]


class Far(Metric):
    """The number of predictions that are far off."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.cast(f.greater(f.abs(prediction - targets), 1.0), "int32"))


def trained(backend: Any, hooks: Mapping[str, Hook], **settings: Any) -> Environment:
    rate = settings.pop("learning_rate", 0.05)
    environment = small_environment(Sweep(), backend=backend, hooks=hooks, **settings)
    environment.trainer("trainer").optimiser = Descent(learning_rate=rate)
    environment.trainer("trainer").fit(epochs=2)
    return environment


def refusal(backend: Any, **settings: Any) -> str:
    hooks = settings.pop("hooks", {"verify": Verify(every=after(1, "iteration"))})
    with pytest.raises(SigmaTrainingError) as raised:
        trained(backend, hooks, **settings)
    return str(raised.value)


# -- what is found -----------------------------------------------------------------------------------------------------
def test_a_wrong_op_is_found_at_the_first_iteration_and_named() -> None:
    text = refusal(Wrong())
    assert "hook 'verify': iteration 1 differs from the reference: " in text
    assert "allowed" in text
    assert "The first wrong op is matmul(float32[3, 5], float32[5, 1]) -> float32[3, 1]" in text
    assert "near inputs" in text


def test_a_wrong_op_is_found_in_a_later_iteration_of_a_burst() -> None:
    class Forward(Wrong):
        op = "sub"

    assert "iteration 1 " in refusal(Forward())
    text = refusal(Forward(), hooks={"verify": Verify(every=every(7, "iteration"))})
    assert "iteration 7 differs" in text
    assert "The first wrong op is sub(" in text


def test_a_fault_that_vanishes_when_all_values_are_kept_cannot_be_located() -> None:
    text = refusal(Planned())
    assert "network.layers.weights[1, 0] is 0.5 and should be " in text
    assert "The op cannot be located: with all intermediate values kept, the backend computes each of them" in text


def test_a_nan_loss_is_a_difference_if_the_reference_loss_is_finite() -> None:
    text = refusal(Infinite(), hooks={"verify": Verify(every=ALWAYS), "guard": NanGuard(then="stop")})
    assert "iteration 1 differs from the reference" in text
    assert "The first wrong op is matmul" in text


def test_a_loss_that_is_nan_in_the_reference_too_is_not_a_difference() -> None:
    with pytest.raises(SigmaTrainingError, match="the loss is"):
        trained(NullBackend(), {"verify": Verify(every=ALWAYS)}, learning_rate=1e30)


def test_metrics_are_compared() -> None:
    class Counts(NullBackend):
        def compile(self, step: Step, in_place: bool = True) -> Program:
            return Miscounted(super().compile(step, in_place))

    @frozen(eq=False)
    class Miscounted:
        program: Program
        peak_bytes: int = 0

        def run(self, *given: Any) -> Any:
            burst = self.program.run(*given)
            more = {name: count + np.int32(1) for name, count in burst.ring.items() if name == "metrics.far"}
            return evolve(burst, ring={**burst.ring, **more})

    with pytest.raises(SigmaTrainingError, match=r"training\.far is . and should be ."):
        measured(Counts(), {"verify": Verify(every=ALWAYS)})
    measured(NullBackend(), {"verify": Verify(every=ALWAYS)})


def measured(backend: Any, hooks: Mapping[str, Hook]) -> None:
    environment = small_environment(Sweep(), backend=backend, hooks=hooks, metrics={"far": Far()})
    trainer = environment.trainer("trainer")
    plain = trainer.network

    class Network(type(plain)):  # type: ignore[misc]  # the prediction that targets are compared with
        def targets(self, output: str = "") -> str:
            return "targets"

        def forward(self, trace: Any, sections: Any) -> Any:
            found = super().forward(trace, sections)
            return evolve(found, predictions={"it": sections["inputs"] @ trace.given["weights"]})

    trainer.network = Network(plain.loss, plain.start, plain.names)
    trainer.fit(iterations=3)


def test_a_difference_is_logged_if_the_policy_is_to_continue() -> None:
    with trained(Planned(), {"verify": Verify(every=after(1, "iteration"), on_error="mute")}) as sigma:
        told = [text for _, text in sigma.messages.entries_after(0)]
    assert any("iteration 1 differs from the reference" in text and "it is muted" in text for text in told)


# -- training is not affected ------------------------------------------------------------------------------------------
def test_verification_does_not_change_the_bits_of_training() -> None:
    found = [
        state_bytes(trained(NullBackend(), hooks).trainer("trainer"))
        for hooks in ({}, {"verify": Verify(every=ALWAYS)}, {"verify": Verify()})
    ]
    assert found[0] == found[1] == found[2]


def test_an_agreement_with_the_reference_is_logged_once_and_counted() -> None:
    with trained(NullBackend(), {"verify": Verify(every=ALWAYS)}) as sigma:
        told = [text for _, text in sigma.messages.entries_after(0)]
        memory = sigma.trainer("trainer").session.state.memory["verify"]["hook"]
    assert told == ["verified: iteration 1 agrees with the reference"]
    assert memory == {"agreed": 10}


def test_it_can_be_attached_to_a_run_and_rescheduled() -> None:
    with small_environment(Sweep(), backend=Planned()) as sigma:
        sigma.prepare()
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=2)
        sigma.attach("check", {"type": "verify", "every": "2 iterations"})
        with pytest.raises(SigmaTrainingError, match="iteration 4 differs"):
            trainer.fit(iterations=5)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"every": "start"}, "cannot fire every start"),
        ({"every": "10 seconds"}, "cannot fire every second"),
        ({"background": True}, "cannot run in the background"),
        ({"budget": 1.0, "over_budget": "background"}, "cannot run in the background"),
        ({"tolerance": 0.5}, "tolerance"),
    ],
)
def test_impossible_settings_are_refused_before_training(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(SigmaConfigError, match=what):
        trained(NullBackend(), {"verify": {"type": "verify", **settings}})  # type: ignore[dict-item]


# -- rounding ----------------------------------------------------------------------------------------------------------
def compared(found: Any, wanted: Any, moved: Sequence[Any], tolerance: float = 2.0) -> list[str]:
    arrays = [{"x": np.asarray(value)} for value in (found, wanted, *moved)]
    return [str(one) for one in differences(arrays[0], arrays[1], arrays[2:], tolerance)]


def test_the_tolerance_is_a_multiple_of_the_distances_and_their_root_mean_square() -> None:
    """The distances are 0 and 2, their root mean square sqrt(2): twice that is 2.83, and 6.83 with the larger one."""
    moved = [[1.0, 4.0], [1.0, 0.0]]
    assert not compared([3.8, 8.8], [1.0, 2.0], moved)
    assert compared([3.9, 2.0], [1.0, 2.0], moved) == ["x[0] is 3.9 and should be 1: off by 2.9, where 2.8 is allowed"]
    assert compared([1.0, 8.9], [1.0, 2.0], moved) == ["x[1] is 8.9 and should be 2: off by 6.9, where 6.8 is allowed"]


def test_results_without_rounding_must_be_equal() -> None:
    assert not compared([1, 2], [1, 2], [[1, 2]])
    assert len(compared([1, 3], [1, 2], [[1, 2]])) == 1
    assert not compared(np.zeros((0, 3)), np.zeros((0, 3)), [np.zeros((0, 3))])


def test_non_finite_elements_must_agree_unless_rounding_decides() -> None:
    inf, nan = np.inf, np.nan
    assert not compared([inf, -inf, nan], [inf, -inf, nan], [[inf, -inf, nan]])
    assert len(compared([1.0], [inf], [[inf]])) == len(compared([nan], [1.0], [[1.0]])) == 1
    assert len(compared([inf], [-inf], [[-inf]])) == 1
    assert not compared([nan], [1.0], [[inf]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_rounded_results_are_perturbed(dtype: str) -> None:
    x = np.array([[0.0, 1.0, 0.3], [2.0, -3.0, 0.7]], dtype)

    def run(function: Callable[..., Node], *operands: np.ndarray) -> np.ndarray:
        graph = trace(function, *(Spec(one.shape, one.dtype.name) for one in operands))
        return Reference(1).lower(graph, {})(*operands)[0]

    for exact in (
        lambda x: x * 0.5, lambda x: x / 4.0, lambda x: x * 1.0, lambda x: x + 0.0, lambda x: f.maximum(x, 0.0),
        lambda x: f.sum(f.where(f.greater(x, 1.0), x, 0.0), axis=1), lambda x: f.floor(x * 2.0) + 1.0,
        lambda x: f.cast(f.argmax(x, axis=1), dtype),
    ):  # fmt: skip
        graph = trace(exact, Spec(x.shape, dtype))
        np.testing.assert_array_equal(run(exact, x), interpret(graph, numpy_namespace())(x)[0])
    eps = np.finfo(dtype).eps
    for rounded in (
        lambda x: x * 3.3,
        lambda x: f.exp(x),
        lambda x: x @ f.swap_axes(x, 0, 1),
        lambda x: f.sum(x, axis=0),
    ):
        graph = trace(rounded, Spec(x.shape, dtype))
        off = np.abs(run(rounded, x) - interpret(graph, numpy_namespace())(x)[0])
        assert 0 < off.max() < 64 * eps


def test_tables_about_ops_only_mention_existing_ops() -> None:
    assert MEANINGS.keys() >= TERMS.keys()
    assert {OPS[name].rounding for name in TERMS} == {"once"}


def test_differences_in_the_last_digits_are_always_allowed() -> None:
    assert not compared([1.0 + 2e-16], [1.0], [[1.0]])
    assert compared([1.0 + 2e-15], [1.0], [[1.0]])


def test_functions_are_perturbed_by_the_error_that_the_backend_allows() -> None:
    x = np.linspace(0.1, 2.0, 7).astype(np.float32)
    graph = trace(f.tanh, Spec(x.shape, "float32"))
    off = Reference(1, 1e-4).lower(graph, {})(x)[0] / np.tanh(x) - 1
    np.testing.assert_allclose(np.abs(off), 1e-4, rtol=1e-2)


def test_the_tolerance_covers_sums_in_another_order() -> None:
    """Sum 100,000 positive numbers in order, with an error of some 50 units in the last place."""
    x = np.random.default_rng(0).uniform(size=100_000).astype(np.float32)
    graph = trace(lambda x: f.sum(x), Spec(x.shape, "float32"))
    wanted, *moved = ({"x": Reference(seed).lower(graph, {})(x)[0]} for seed in (None, 1, 2, 3))
    assert not differences({"x": np.cumsum(x)[-1]}, wanted, moved, 32.0)
    assert differences({"x": wanted["x"] * np.float32(1.01)}, wanted, moved, 32.0)
