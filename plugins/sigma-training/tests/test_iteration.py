"""Repeating an iteration: the hook's view, the backend used, and no effect on training."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_step.steps import Iteration
from sigma_testing.null import NullBackend
from sigma_testing.steering import Sweep, small_environment, state_bytes

Outcome = dict[str, np.ndarray]


@define(eq=False, kw_only=True)
class Repeat(Hook):
    """Record the results of the last iteration, and of repeating it."""

    every: TimeStep = every(1, "iteration")
    repeats: bool = True
    found: list[tuple[int, Outcome, Outcome]] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        if context.iteration is not None:
            again = context.iteration.repeat(NullBackend())
            self.found.append((context.moment.iteration, context.iteration.outcome, again))


@define(eq=False, kw_only=True)
class Meddle(Hook):
    """Change the inputs of the next iteration before other hooks are due."""

    every: TimeStep = every(1, "iteration")
    priority: int = 10

    def fire(self, context: HookContext) -> None:
        context.command("set", pattern="optimiser.**.learning_rate", value=0.01 * context.moment.iteration)
        context.command("set", pattern="network.layers.weights", value=np.full((3, 1), 0.5).tolist())


def same(first: Outcome, second: Outcome) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def test_repeating_an_iteration_on_an_equal_backend_gives_the_same_result() -> None:
    hook = Repeat()
    with small_environment(Sweep(), hooks={"repeat": hook}) as sigma:
        losses = sigma.trainer("trainer").fit(epochs=2)["training.loss"]
        final = sigma.trainer("trainer").session.host("network.layers.weights")
    assert [iteration for iteration, *_ in hook.found] == list(range(1, 11))
    assert all(same(outcome, again) for _, outcome, again in hook.found)
    assert [float(outcome["training.loss"]) for _, outcome, _ in hook.found] == losses.tolist()
    np.testing.assert_array_equal(hook.found[-1][1]["network.layers.weights"], final)
    assert hook.found[-1][1]["optimiser.step"] == 10


def test_repeating_an_iteration_repeats_random_numbers_layer_state_and_slots(
    deep: Callable[..., Environment], metric: Any
) -> None:
    hook = Repeat(every=every(3, "iteration"))
    with deep(hooks={"repeat": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
    assert [iteration for iteration, *_ in hook.found] == [3, 6, 9, 12, 15]
    assert all(same(outcome, again) for _, outcome, again in hook.found)
    assert any("mean" in name for name in hook.found[0][1])


def test_later_changes_do_not_affect_a_repeated_iteration() -> None:
    """Parameters and learning rates change at the same boundary, before the hook is due."""
    hook = Repeat()
    with small_environment(Sweep(), hooks={"repeat": hook, "meddle": Meddle()}) as sigma:
        sigma.trainer("trainer").fit(iterations=4)
    assert all(same(outcome, again) for _, outcome, again in hook.found)
    assert not (hook.found[-1][1]["network.layers.weights"] == 0.5).any()


def test_repeating_an_iteration_does_not_affect_training() -> None:
    found = []
    for hooks in ({}, {"repeat": Repeat(every=every(2, "iteration"))}):
        with small_environment(Sweep(), hooks=hooks) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert found[0] == found[1]


@pytest.mark.parametrize("settings", [{"repeats": False}, {"background": True}, {"every": "start"}, {"every": "stop"}])
def test_an_iteration_can_only_be_repeated_by_hooks_that_requested_it(
    settings: dict[str, Any],
) -> None:
    hook = Repeat(**settings)
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        assert hook.found == []


def test_the_inputs_of_an_iteration_can_be_inspected() -> None:
    seen: list[Iteration] = []

    class Look(Repeat):
        def fire(self, context: HookContext) -> None:
            seen.append(context.iteration)

    with small_environment(Sweep(), hooks={"look": Look()}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert seen[0].steps.programs is sigma.trainer("trainer").session.setup.programs
    assert [one.steps.moment.iteration for one in seen] == [0, 1, 2, 3, 4]
    assert [one.batches.rows.tolist() for one in seen] == [[[*range(size)]] for size in (5, 5, 5, 5, 3)]
    x, targets = (np.concatenate([one.batches.block[name] for one in seen]) for name in ("inputs", "targets"))
    np.testing.assert_allclose(x @ [[1.0], [-2.0], [0.5]], targets, rtol=1e-5, atol=1e-6)
    assert len(np.unique(x, axis=0)) == 23
    assert not seen[0].steps.arrays["network.layers.weights"].any()
    for one, other in pairwise(seen):
        np.testing.assert_array_equal(
            one.outcome["network.layers.weights"], other.steps.arrays["network.layers.weights"]
        )
