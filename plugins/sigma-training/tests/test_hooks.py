"""Hooks: their order and its reasons, when they are due, and failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import Moment, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.criteria import when
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_run.launcher.explanation import explain_trainer
from sigma_testing.doing import Do
from sigma_testing.steering import Desk, Sweep, small_environment
from sigma_training.hooks.order import HookOrder, check_distinct, order_hooks, reasons
from sigma_training.hooks.policies import Budgets, fail, holds
from sigma_training.session.loop import TrainingLoop


class Other(Do):
    """Another type of hook."""


def _every_order(hooks: dict[str, Hook]) -> set[tuple[str, ...]]:
    """Return the orders computed for all permutations of the declared hooks."""
    return {tuple(order_hooks({name: hooks[name] for name in names})) for names in permutations(hooks)}


# -- the order ---------------------------------------------------------------------------------------------------------
def test_writers_precede_readers() -> None:
    hooks = {"a": Do(reads=["x.loss"]), "b": Do(writes=["x.loss"]), "c": Do(reads=["**.loss"], priority=9)}
    assert _every_order(hooks) == {("b", "c", "a")}


def test_a_hook_also_reads_the_values_of_its_criterion() -> None:
    hooks = {"a": Do(when=when("x").above(1) & when("y.*", "any").below(2)), "b": Do(writes=["y.z"])}
    assert _every_order(hooks) == {("b", "a")}


def test_required_hooks_run_first_whether_named_or_typed() -> None:
    hooks = {"a": Do(requires=["c"]), "b": Do(requires=["Other"]), "c": Do(), "d": Other(priority=-5)}
    assert _every_order(hooks) == {("c", "a", "d", "b")}


def test_hooks_without_declarations_are_ordered_by_priority_then_name() -> None:
    hooks = {"a": Do(priority=-1), "b": Do(), "c": Other(), "d": Do(priority=3)}
    assert _every_order(hooks) == {("d", "b", "c", "a")}


def test_priority_never_overrides_declared_dependencies() -> None:
    hooks = {"early": Do(reads=["x"], priority=100), "late": Do(writes=["x"], priority=-100)}
    assert _every_order(hooks) == {("late", "early")}


def test_a_hook_may_read_what_it_writes_itself() -> None:
    assert order_hooks({"a": Do(reads=["x"], writes=["x"])}) == ["a"]


def test_every_reason_is_reported() -> None:
    hooks = {"a": Do(reads=["x.*"]), "b": Do(writes=["x.loss"], requires=["Other"]), "c": Other()}
    told = [str(reason) for reason in reasons(hooks)]
    assert told == ["c before b: b requires Other", "b before a: a reads x.loss, which b writes"]


def test_a_cycle_of_hooks_is_named_in_the_order_of_its_dependencies() -> None:
    hooks = {
        "start": Do(requires=["a"]),
        "a": Do(reads=["y"], writes=["x"]),
        "b": Do(reads=["x"], writes=["z"]),
        "c": Do(reads=["z"], writes=["y"]),
        "free": Do(),
    }
    with pytest.raises(SigmaConfigError, match="hooks: their order is cyclic: a -> b -> c -> a. Change what") as error:
        order_hooks(hooks)
    assert "start" not in str(error.value)
    assert "free" not in str(error.value)


def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="hooks.a: requires 'acuracy', which is not among the hooks. Add it."):
        order_hooks({"a": Do(requires=["acuracy"]), "accuracy": Do()})


def test_the_hook_order_is_explained_by_declarations_priority_or_name() -> None:
    hooks = {
        "a": Do(reads=["x"]), "b": Do(writes=["x"]), "c": Do(priority=2),
        "d": Do(priority=2, reads=["training.loss"]),
    }  # fmt: skip
    with small_environment(Sweep(), splits=["training"], hooks=hooks) as sigma:
        found = explain_trainer(sigma.trainer("trainer"))
    assert [hook["name"] for hook in found["hooks"]] == ["c", "d", "b", "a"]
    assert found["reasons"] == [
        "b before a: a reads x, which b writes", "c before d: by name, as nothing else decides",
        "d before b: priority 2 over 0",
    ]  # fmt: skip


# -- equal hooks -------------------------------------------------------------------------------------------------------
def test_equal_hooks_are_refused_with_both_names() -> None:
    hooks = {"a": Do(reads=["x"]), "b": Do(reads=["y"]), "c": Do(reads=["x"]), "d": Other(reads=["x"])}
    with pytest.raises(SigmaConfigError, match="hooks.c: is the same as hooks.a. Leave one out, or let"):
        order_hooks(hooks)
    del hooks["c"]
    assert order_hooks(hooks) == ["a", "b", "d"]


def test_hooks_that_differ_in_anything_are_not_equal() -> None:
    check_distinct({
        "plain": Do(),
        "slower": Do(every=every(2, "epoch")),
        "asked": Do(when=when("x").above(1)),
        "asked otherwise": Do(when=when("x").above(2)),
        "elsewhere": Do(scope="local"),
        "lenient": Do(on_error="ignore"),
        "keen": Do(priority=1),
    })  # fmt: skip


def test_hooks_with_arrays_are_not_compared() -> None:
    check_distinct({"a": Do(reads=np.ones(2)), "b": Do(reads=np.ones(2))})  # type: ignore[arg-type]


def test_one_hook_satisfies_several_that_require_it() -> None:
    assert order_hooks({"a": Do(), "b": Do(requires=["a"]), "c": Do(requires=["a"], priority=1)}) == ["a", "c", "b"]


# -- when they are due -------------------------------------------------------------------------------------------------
class Runner:
    """The part of a session that runs hooks."""

    def __init__(self, log: Callable[[str], None], hooks: Mapping[str, Hook]) -> None:
        self.order, self.log = HookOrder(hooks), log
        self.memory = self.order.blank()

    def fire(self, name: str, context: HookContext, scope: str = "") -> None:
        hook, memory = self.order.hooks[name], self.memory[name]
        try:
            if holds(hook, memory, context, scope):
                Budgets().run(name, hook, context)
        except Exception as error:
            fail(name, hook, memory, self.log, error)


def _runner(logged: list[str] | None = None, **hooks: Hook) -> Runner:
    return Runner([].append if logged is None else logged.append, hooks)


def _fire(runner: Runner, name: str, context: HookContext, scope: str = "") -> None:
    runner.fire(name, context, scope)


def test_hooks_due_together_run_in_order() -> None:
    runner = _runner(a=Do(reads=["x"]), b=Do(writes=["x"]), c=Do(every=every(3, "iteration")))
    assert runner.order.due(runner.memory, Moment(iteration=4), Moment(iteration=6, epoch=1)) == ["b", "a", "c"]
    assert runner.order.due(runner.memory, Moment(iteration=4, epoch=1), Moment(iteration=5, epoch=1)) == []


def test_a_hook_runs_only_if_its_criterion_holds() -> None:
    seen: list[float] = []
    runner = _runner(a=Do(does=lambda context: seen.append(context.read("x")), when=when("x").increases()))
    for x in (1.0, 3.0, 2.0, 5.0):
        _fire(runner, "a", Desk({"x": x}))
    assert seen == [3.0, 5.0]


def test_a_criterion_keeps_separate_memory_for_each_scope() -> None:
    seen: list[float] = []
    runner = _runner(a=Do(does=lambda context: seen.append(context.read("x")), when=when("x").increases()))
    for x, scope in ((1.0, "workers.0."), (5.0, "workers.1."), (2.0, "workers.0."), (4.0, "workers.1.")):
        _fire(runner, "a", Desk({"x": x}), scope)
    assert seen == [2.0]


# -- failures ----------------------------------------------------------------------------------------------------------
def _fails(context: HookContext) -> None:
    raise KeyError("gone")


def test_a_failing_hook_ends_training_by_default() -> None:
    with pytest.raises(
        SigmaTrainingError, match=r"hook 'a' \(\S+\) failed: KeyError: 'gone'. Set on_error = 'mute'"
    ) as error:
        _fire(_runner(a=Do(does=_fails)), "a", Desk())
    assert isinstance(error.value.__cause__, KeyError)


def test_a_sigma_error_of_a_hook_is_reported_without_its_class() -> None:
    def refuses(context: HookContext) -> None:
        raise SigmaConfigError("it: too much. Take less.")

    with pytest.raises(SigmaTrainingError, match=r"^hook 'a' \(\S+\) failed: it: too much. Take less. Set on_error"):
        _fire(_runner(a=Do(does=refuses)), "a", Desk())


def test_a_criterion_that_fails_is_a_failure_of_its_hook() -> None:
    with pytest.raises(SigmaTrainingError, match=r"hook 'a' \(\S+\) failed"):
        _fire(_runner(a=Do(when=when("x").above(1))), "a", Desk({"x": "a text"}))


def test_a_hook_can_be_muted_by_its_failure() -> None:
    told: list[str] = []
    runner = _runner(told, a=Do(does=_fails, on_error="mute"), b=Do())
    _fire(runner, "a", Desk())
    assert told == ["hook 'a' (sigma_testing.doing.Do) failed: KeyError: 'gone'; it is muted"]
    assert runner.memory["a"]["error"] == "hook 'a' (sigma_testing.doing.Do) failed: KeyError: 'gone'"
    assert runner.order.due(runner.memory, Moment(), Moment(epoch=1)) == ["b"]
    assert runner.order.active(runner.memory) == ["b"]


def test_a_hook_whose_failure_is_ignored_stays_active() -> None:
    told: list[str] = []
    runner = _runner(told, a=Do(does=_fails, on_error="ignore"))
    _fire(runner, "a", Desk())
    _fire(runner, "a", Desk())
    assert told == ["hook 'a' (sigma_testing.doing.Do) failed: KeyError: 'gone'; it is ignored"] * 2
    assert runner.order.due(runner.memory, Moment(), Moment(epoch=1)) == ["a"]


def test_a_muted_guard_no_longer_fires() -> None:
    runner = _runner(a=Do(does=_fails, on_error="mute", guards=True), b=Do(guards=True))
    assert runner.order.guards(runner.memory) == ["a", "b"]
    _fire(runner, "a", Desk())
    assert runner.order.guards(runner.memory) == ["b"]


def test_the_memory_of_hooks_starts_empty() -> None:
    runner = _runner(a=Do(does=_fails, on_error="mute", when=when("x").improves()))
    _fire(runner, "a", Desk({"x": 1.0}))
    assert runner.memory["a"]["criterion"]
    assert runner.order.blank() == {"a": {"hook": {}, "criterion": {}, "muted": False}}


# -- in a session ------------------------------------------------------------------------------------------------------
class TwoWorkers(Sweep):
    """Pretends that each of two workers has its own loss."""

    shards: int = 2
    workers: int = 2

    def train(self, loop: TrainingLoop) -> None:
        for worker, loss in enumerate((-1.0, -2.0)):
            loop.current.publish(f"workers.{worker}.training.loss", loss)
        super().train(loop)


def test_a_local_hook_runs_for_each_worker_with_its_values_and_memory() -> None:
    seen: list[tuple[float, int]] = []

    def count(context: HookContext) -> None:
        context.memory["times"] = context.memory.get("times", 0) + 1
        seen.append((context.read("training.loss"), context.memory["times"]))
        context.publish("counted", context.memory["times"])

    hook = Do(does=count, scope="local", reads=["training.loss"], writes=["counted"])
    with small_environment(TwoWorkers(), splits=["training"], hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        published = sigma.trainer("trainer").session.state.published
        assert set(sigma.summary().metrics) == {"training.loss"}  # local values are not results
    assert seen == [(-1.0, 1), (-2.0, 1), (-1.0, 2), (-2.0, 2)]
    assert {"workers.0.counted": 2, "workers.1.counted": 2}.items() <= published.items()


def test_a_hook_cannot_publish_what_it_does_not_declare() -> None:
    hook = Do(does=lambda context: context.publish("y", 1), writes=["x"])
    with (
        small_environment(Sweep(), hooks={"it": hook}) as sigma,
        pytest.raises(SigmaTrainingError, match="hook 'it': publishes 'y' without declaring it. Add it to writes."),
    ):
        sigma.trainer("trainer").fit(epochs=1)


def test_a_hook_cannot_read_what_it_does_not_declare() -> None:
    hook = Do(does=lambda context: context.read("gradients.weights"), reads=["training.*"])
    with (
        small_environment(Sweep(), hooks={"it": hook}) as sigma,
        pytest.raises(
            SigmaTrainingError, match="'it': reads 'gradients.weights' without declaring it. Add it to reads."
        ),
    ):
        sigma.trainer("trainer").fit(epochs=1)


class Broken(Hook):
    """Cannot say what it reads."""

    @property
    def reads(self) -> Any:
        raise ValueError("no idea")

    def fire(self, context: HookContext) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Do(reads="training.loss"), "trainer.hooks.a.reads: must be a list of strings (got 'training.loss')"),
        (lambda: Do(writes=None), "trainer.hooks.a.writes: must be a list of strings (got None). Write ['...']."),
        (lambda: Do(requires=[Do]), "trainer.hooks.a.requires: must be a list of strings"),
        (lambda: Do(splits="validation"), "trainer.hooks.a.splits: must be a list of strings"),
        (lambda: Do(settable=0.5), "trainer.hooks.a.settable: must be a list of strings"),
        (lambda: Broken(every=every(1, "epoch")), "trainer.hooks.a.reads: ValueError: no idea"),
        (lambda: Do(priority="high"), "Do.priority: must be a whole number"),
        (lambda: Do(background="yes"), "Do.background: must be"),
    ],
)
def test_invalid_hook_declarations_are_refused_with_their_location(make: Callable[[], Hook], message: str) -> None:
    with (
        pytest.raises(SigmaConfigError, match=re.escape(message)),
        small_environment(Sweep(), hooks={"a": make()}) as s,
    ):
        s.prepare()


def test_a_hook_that_reads_an_unpublished_value_is_refused_before_training() -> None:
    with (
        small_environment(Sweep(), hooks={"it": Do(reads=["validation.los"])}) as sigma,
        pytest.raises(SigmaConfigError, match="trainer.hooks.it: reads 'validation.los', which nothing here publishes"),
    ):
        sigma.prepare()


def test_a_hook_reads_values_published_by_an_earlier_hook_at_the_same_time() -> None:
    seen: list[Any] = []
    hooks = {
        "a": Do(does=lambda context: seen.append(context.read("twice")), reads=["twice"]),
        "b": Do(does=lambda context: context.publish("twice", 2 * context.moment.epoch), writes=["twice"]),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
        assert sigma.trainer("trainer").history["twice"].tolist() == [2.0, 4.0, 6.0]
    assert seen == [2, 4, 6]


def test_training_continues_after_an_ignored_failure_which_is_logged() -> None:
    with small_environment(Sweep(), hooks={"it": Do(does=_fails, on_error="ignore")}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
        assert [text for _, text in sigma.messages.entries_after(0)] == [
            "hook 'it' (sigma_testing.doing.Do) failed: KeyError: 'gone'; it is ignored"
        ] * 2


# -- hooks that detach themselves --------------------------------------------------------------------------------------
def _leaves_and(does: Callable[[HookContext], Any], **settings: Any) -> Do:
    """Return a hook that detaches itself and then does something else."""
    return Do(does=lambda context: [context.command("detach", name="it"), does(context)], **settings)


def test_a_hook_that_detaches_itself_and_then_fails_ends_training_and_is_named() -> None:
    with (
        small_environment(Sweep(), hooks={"it": _leaves_and(_fails)}) as sigma,
        pytest.raises(SigmaTrainingError, match=r"hook 'it' \(\S+\) failed: KeyError: 'gone'. Set on_error = 'mute'"),
    ):
        sigma.trainer("trainer").fit(epochs=2)


@pytest.mark.parametrize("scope", ["global", "local"])
@pytest.mark.parametrize(("policy", "became"), [("ignore", "ignored"), ("mute", "muted")])
def test_the_error_policy_applies_to_a_hook_that_detached_itself(policy: str, became: str, scope: str) -> None:
    hook = _leaves_and(_fails, on_error=policy, scope=scope)
    with small_environment(TwoWorkers(), splits=["training"], hooks={"it": hook}) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
        assert [text for _, text in sigma.messages.entries_after(0)] == [
            f"hook 'it' (sigma_testing.doing.Do) failed: KeyError: 'gone'; it is {became}"
        ]
        assert sigma.trainer("trainer").session.state.memory == {}


def test_a_hook_that_detaches_itself_finishes_but_publishes_nothing_more() -> None:
    seen: list[Any] = []

    def last(context: HookContext) -> None:
        context.memory["times"] = context.memory["times"] + 1
        seen.append((context.memory["times"], context.read("training.loss")))
        context.publish("late", 1)

    hook = Do(reads=["training.loss"], writes=["late"], does=lambda context: context.memory.setdefault("times", 1))
    with small_environment(Sweep(), hooks={"it": hook}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        hook.does = _leaves_and(last).does
        trainer.fit(epochs=2)
        assert seen == [(2, trainer.history["training.loss"][9])]
        assert "late" not in trainer.session.state.published
        assert "trainer.late" not in sigma.registry


def test_a_hook_that_a_failure_muted_in_one_scope_does_not_run_in_the_next() -> None:
    with small_environment(TwoWorkers(), hooks={"it": Do(does=_fails, on_error="mute", scope="local")}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert len(sigma.messages.entries_after(0)) == 1
