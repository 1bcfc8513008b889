"""The suite of hooks, which runs them in real sessions, fails for planted faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import Hook, HookContext, TimeStep, every
from sigma_testing import HookSuite
from sigma_testing.hooks import Seen, watch

from .faults import check_caught

GRADIENT = "gradients.1-linear.weights"
MEMORY: list[Any] = []


def _lowest(hook: Any, context: Any) -> None:
    value = context.read("validation.score")
    if value is not None:
        context.memory["lowest"] = min(value, context.memory.get("lowest", float("inf")))
        context.publish("lowest", context.memory["lowest"])


def _lowest_of_all(hook: Any, context: Any) -> None:
    values = context.read("validation.*")
    if values:
        context.publish("lowest", min(values.values()))


@define(eq=False, kw_only=True)
class Lowest(Hook):
    """Publish the lowest value so far, or do something that a hook may not."""

    every: TimeStep = every(1, "iteration")
    does: Callable[[Any, Any], Any] = _lowest
    reads: Any = ("validation.score",)
    writes: Sequence[str] = ("lowest",)
    splits: Sequence[str] = ()
    held: list[Any] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        self.does(self, context)


def also(does: Callable[[Any, Any], Any], **settings: Any) -> Callable[[], Hook]:
    """Return a factory of the right hook that does something else, too."""
    return lambda: Lowest(does=lambda hook, context: [_lowest(hook, context), does(hook, context)], **settings)


def _live(hook: Any, context: Any) -> None:
    context.session.state.arrays["network.layers.1-linear.weights"][...] = 0.0


def _overwritten(hook: Any, context: Any) -> None:
    live = context._session if hasattr(context, "_session") else context.inner.session
    live.state.arrays["network.layers.1-linear.weights"][...] = 0.0


def _counts(hook: Any, context: Any) -> None:
    hook.held.append(context.moment.iteration)
    context.publish("lowest", len(hook.held))


@define(eq=False, slots=False)
class Rebinds(Lowest):
    """Count on a field, in a class with a ``__dict__``."""

    bad: int = 0

    def fire(self, context: HookContext) -> None:
        self.bad += 1
        context.publish("lowest", self.bad)


@define(eq=False)
class RebindsASlot(Rebinds):
    """Count on a field that is a slot."""


class RebindsAnAttribute(Lowest):
    bad: int = 0
    fire = Rebinds.fire


class WithSlots(Lowest):
    __slots__ = ("bad",)

    def fire(self, context: HookContext) -> None:
        self.bad = getattr(self, "bad", 0) + 1
        context.publish("lowest", self.bad)


def _outside(hook: Any, context: Any) -> None:
    MEMORY.append(1)
    context.publish("lowest", len(MEMORY))


SESSION = "test_it_runs_in_a_session_and_does_only_what_it_declared"
EQUAL = "test_equal_sessions_give_equal_values_unless_it_declares_the_clock"
HOOKS: dict[str, tuple[Callable[[], Hook], str]] = {
    "right": (Lowest, ""),
    "a read that is not declared": (also(lambda hook, context: context.read("training.loss")), SESSION),
    "a value that is not declared": (also(lambda hook, context: context.publish("highest", 1.0)), SESSION),
    "a split that is not declared": (also(lambda hook, context: context.evaluate("validation", {})), SESSION),
    "an object that cannot be published": (also(lambda hook, context: context.publish("lowest", {1, 2})), SESSION),
    "a function that is published": (also(lambda hook, context: context.publish("lowest", [print])), SESSION),
    "an unknown command": (also(lambda hook, context: context.command("halt")), SESSION),
    "a command without its arguments": (also(lambda hook, context: context.command("set", address="x")), SESSION),
    "reads as a text": (
        lambda: Lowest(reads="training.loss"), "test_it_declares_when_it_fires_and_what_it_reads_and_writes"),
    "an address that nobody publishes": (lambda: Lowest(reads=("gradients.nowhere",)), SESSION),
    "a value that is not there yet": (
        also(lambda hook, context: context.read("validation.score") + 1.0),
        "test_it_runs_in_a_session_in_which_what_it_reads_comes_late"),
    "right, of a pattern": (
        lambda: Lowest(does=_lowest_of_all, reads=("validation.*",)), ""),
    "a pattern of which nothing is there yet": (
        lambda: Lowest(does=lambda hook, context: context.publish("lowest", min(context.read("validation.*").values())),
                       reads=("validation.*",)),
        "test_it_runs_before_anything_has_been_published"),
    "None expected for a pattern": (
        lambda: Lowest(does=lambda hook, context: _lowest_of_all(hook, context) if (
            context.read("validation.*") is not None) and context.read("validation.*")["validation.score"] else None,
            reads=("validation.*",)),
        "test_it_runs_in_a_session_in_which_what_it_reads_comes_late"),
    "memory on itself": (also(_counts), "test_it_keeps_nothing_on_itself"),
    "memory in a field": (Rebinds, "test_it_keeps_nothing_on_itself"),
    "memory in a slot": (RebindsASlot, "test_it_keeps_nothing_on_itself"),
    "memory in an attribute": (RebindsAnAttribute, "test_it_keeps_nothing_on_itself"),
    "memory in a slot without a field": (WithSlots, "test_it_keeps_nothing_on_itself"),
    "an array on itself": (
        also(lambda hook, context: hook.held.append(np.ones(3))), "test_it_keeps_nothing_on_itself"),
    "a value that is never published": (
        lambda: Lowest(writes=("lowest", "highest")), "test_it_publishes_what_it_declares"),
    "memory in its module": (also(_outside), EQUAL),
    "an array in its memory": (
        also(lambda hook, context: context.memory.update(last=np.ones(3))),
        "test_its_memory_is_plain_data_and_is_its_only_state"),
    "a set in its memory": (also(lambda hook, context: context.memory.update(last={1})), SESSION),
    "the wall clock": (also(lambda hook, context: context.publish("lowest", time.perf_counter())), EQUAL),
    "random numbers": (also(lambda hook, context: context.publish("lowest", float(np.random.default_rng().random()))),
        EQUAL),
    "writing to what is read": (
        also(
            lambda hook, context: context.read(GRADIENT).fill(0), reads=("validation.score", GRADIENT)
        ), SESSION),
    "live state": (also(_live), SESSION),
    "live state behind its context": (also(_overwritten), "test_it_changes_training_by_commands_only"),
    "an end that is not declared": (
        also(lambda hook, context: context.command("stop")), "test_it_declares_that_it_ends_training"),
    "live state in the background": (
        also(lambda hook, context: context.folder and context.keep()), "test_it_runs_in_the_background_on_a_snapshot"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOOKS)
def test_a_fault_in_a_hook_is_caught(name: str) -> None:
    class Suite(HookSuite):
        def make(self) -> Hook:
            return HOOKS[name][0]()

        def values(self) -> dict[str, Any]:
            return {"validation.score": 0.5}

    check_caught(Suite(), HOOKS[name][1])


def test_errors_name_the_hook_as_its_module_does() -> None:
    """The suite runs a class of its own in the place of the hook's."""
    made = watch(Lowest(), Seen())
    assert (type(made).__module__, type(made).__qualname__) == (__name__, "Lowest")
