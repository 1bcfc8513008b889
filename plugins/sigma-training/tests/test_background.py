"""Background hooks and budgets: snapshots, when results apply, and replay without running the hooks."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.criteria import when
from sigma_kernel.encoding import pack, unpack
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, SigmaTrainingError
from sigma_run.launcher.explanation import explain_trainer
from sigma_testing.doing import Do as Told
from sigma_testing.journals import forge_journal
from sigma_testing.steering import Sweep, small_environment, state_bytes
from sigma_training.commands.reset import Reset
from sigma_training.hooks import background, policies
from sigma_training.hooks.order import order_hooks
from sigma_training.trainer import NetworkTrainer

STEP = every(1, "iteration")
WEIGHTS = "network.weights"


@define(eq=False, kw_only=True)
class Do(Told):
    """Call a function at every firing."""

    every: TimeStep = STEP


def beside(does: Callable[[HookContext], Any], **settings: Any) -> Do:
    return Do(does=does, background=True, **settings)


def settle(trainer: NetworkTrainer) -> None:
    """Add a hook that holds training until no background work is left."""
    hook = Do(does=lambda context: trainer.session.background.finish(), priority=-9)
    trainer.hooks = {**trainer.hooks, "settled": hook}


def small(hooks: Mapping[str, Hook], folder: Path | None = None, **settings: Any) -> Environment:
    sigma = small_environment(Sweep(), hooks=dict(hooks), **settings)
    sigma.folder = folder
    return sigma


class TwoWorkers(Sweep):
    """Pretends that there are two workers."""

    shards: int = 2
    workers: int = 2


def events(run: Path, *names: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return [row for row in rows if row.get("event") in names]


def said(sigma: Environment) -> str:
    return "\n".join(text for _, text in sigma.messages.entries_after(0))


# -- threads, timing and order -----------------------------------------------------------------------------------------
def test_a_hook_in_the_background_runs_in_another_thread_and_training_does_not_wait_for_it() -> None:
    freed, threads, passed = threading.Event(), [], []

    def wait(context: HookContext) -> None:
        threads.append(threading.current_thread())
        freed.wait(60)

    def release(context: HookContext) -> None:
        passed.append(context.moment.iteration)
        freed.set()

    with small(
        {"slow": beside(wait, every=every(1, "start")), "free": Do(does=release, every=every(4, "iteration"))}
    ) as s:
        s.trainer("trainer").fit(iterations=5)
    assert passed == [4]
    assert threads != [threading.current_thread()]


def test_background_firings_run_one_by_one_in_hook_order() -> None:
    seen: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[HookContext], None]:
        return lambda context: seen.append((name, context.moment.iteration))

    hooks: dict[str, Hook] = {name: beside(note(name), priority=p) for name, p in (("a", 1), ("b", 3), ("c", 2))}
    with small(hooks) as sigma:
        settle(sigma.trainer("trainer"))
        sigma.trainer("trainer").fit(iterations=3)
    assert seen == [(name, n) for n in (1, 2, 3) for name in "bca"]


def test_a_hook_reads_values_published_earlier_at_the_same_boundary() -> None:
    seen: list[Any] = []
    hooks: dict[str, Hook] = {
        "z": beside(lambda c: c.publish("x.a", [1.5, c.moment.iteration]), writes=["x.*"]),
        "a": beside(lambda c: seen.append((c.read("x.a"), c.read("x.*"))), reads=["x.*"]),
    }
    with small(hooks) as sigma:
        settle(sigma.trainer("trainer"))
        sigma.trainer("trainer").fit(iterations=2)
    assert seen == [([1.5, n], {"x.a": [1.5, n]}) for n in (1, 2)]


def test_queued_background_firings_beyond_a_limit_are_replaced_by_newer_ones_with_one_warning() -> None:
    freed, seen = threading.Event(), []

    def slow(context: HookContext) -> None:
        freed.wait(60)
        seen.append(context.moment.iteration)
        context.memory["count"] = context.memory.get("count", 0) + 1

    hooks: dict[str, Hook] = {
        "slow": beside(slow),
        "free": Do(does=lambda c: freed.set(), every=every(20, "iteration"), priority=-1),
    }
    with small(hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=20)
        assert seen[-background.MOST_WAITING :] == [17, 18, 19, 20]
        assert len(seen) <= background.MOST_WAITING + 1
        assert trainer.session.state.memory["slow"]["hook"] == {"count": len(seen)}
        assert said(sigma).count("takes longer than the time between its firings") == 1


# -- snapshots ---------------------------------------------------------------------------------------------------------
def test_a_snapshot_is_unaffected_by_further_training() -> None:
    freed, late, there = threading.Event(), [], []

    def look(context: HookContext) -> None:
        freed.wait(60)
        assert context.moment.iteration == 2
        late.append((context.read("training.loss"), context.read("network.**"), context.evaluate("validation", {})))

    def same(context: HookContext) -> None:
        there.append((context.read("training.loss"), context.read("network.**"), context.evaluate("validation", {})))

    wanted: dict[str, Any] = {"reads": ["training.loss", "network.**"], "splits": ["validation"]}
    hooks: dict[str, Hook] = {
        "a": beside(look, every=TimeStep("iteration", 100, first=2), **wanted),
        "b": Do(does=same, every=TimeStep("iteration", 100, first=2), **wanted),
        "free": Do(does=lambda c: freed.set(), every=every(9, "iteration")),
    }
    with small(hooks) as sigma:
        sigma.trainer("trainer").fit(iterations=10)
    (loss, parameters, evaluated), (loss_there, parameters_there, evaluated_there) = late[0], there[0]
    assert loss == loss_there
    assert evaluated == evaluated_there
    assert parameters.keys() == parameters_there.keys() != set()
    assert all(np.array_equal(parameters[name], parameters_there[name]) for name in parameters)


def test_a_hook_in_the_background_reads_and_publishes_only_what_it_declared() -> None:
    for does in (lambda c: c.read("training.loss"), lambda c: c.publish("x", 1)):
        with small({"nosy": beside(does)}) as sigma, pytest.raises(SigmaTrainingError, match="without declaring it"):
            sigma.trainer("trainer").fit(iterations=3)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (lambda c: c.keep(), "cannot keep parameters in the background, nor restore any"),
        (lambda c: c.bring_back(), "cannot keep parameters in the background, nor restore any"),
        (lambda c: c.evaluate("validation", {}), "cannot evaluate in the background, as it declares no splits"),
        (lambda c: c.publish("x", object()), "object: cannot be written as JSON"),
        (lambda c: c.command("sop"), "command 'sop': no plugin offers it"),
        (lambda c: c.command("go"), "cannot go while running"),
    ],
)
def test_operations_impossible_in_the_background_are_refused(does: Any, why: str) -> None:
    with small({"late": beside(does, writes=["x"])}) as sigma, pytest.raises(SigmaTrainingError, match=why):
        sigma.trainer("trainer").fit(epochs=50)


def test_a_background_hook_restores_its_saved_memory() -> None:
    def count(context: HookContext) -> None:
        context.memory["count"] = context.memory.get("count", 0) + 1

    saved = None
    for _ in range(2):  # as in two processes
        with small({"count": beside(count)}) as sigma:
            session = sigma.trainer("trainer").session
            if saved is not None:
                session.restore(saved)
            sigma.trainer("trainer").fit(iterations=2)
            saved = session.snapshot()
    assert saved.values["hooks"]["count"]["hook"] == {"count": 4}


def test_a_local_hook_sees_its_own_scope_in_the_background() -> None:
    seen: list[Any] = []

    def both(context: HookContext) -> None:
        context.memory["turn"] = context.memory.get("turn", 0) + 1
        seen.append((context.read("x"), context.memory["turn"]))

    hooks: dict[str, Hook] = {
        "a": Do(does=lambda c: c.publish("x", c.memory.setdefault("n", 7)), writes=["x"], scope="local"),
        "b": beside(both, reads=["x"], scope="local"),
    }
    with small_environment(TwoWorkers(), hooks=hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=2)
        assert trainer.session.state.memory["b"]["hook"] == {"workers.0.": {"turn": 2}, "workers.1.": {"turn": 2}}
    assert seen == [(7, 1), (7, 1), (7, 2), (7, 2)]


# -- results -----------------------------------------------------------------------------------------------------------
def test_background_results_apply_and_are_journalled_at_the_next_boundary(tmp_path: Path) -> None:
    def act(context: HookContext) -> None:
        context.publish("x.here", np.float32(0.1))
        context.memory["times"] = context.memory.get("times", 0) + 1
        context.log("done beside")
        context.command("stop")

    seen: list[Any] = []
    hooks: dict[str, Hook] = {
        "one": beside(act, writes=["x.*"], every=TimeStep("iteration", 100, first=3)),
        "two": Do(does=lambda c: seen.append(c.read("x.here")), reads=["x.*"]),
    }
    with small(hooks, tmp_path) as sigma:
        trainer = sigma.trainer("trainer")
        settle(trainer)
        trainer.fit(epochs=20)
        assert seen == [None, None, None]
        assert trainer.session.state.published["x.here"] == np.float32(0.1)
        assert trainer.session.state.memory["one"]["hook"] == {"times": 1}
        assert "done beside" in said(sigma)
        (row,) = events(sigma.run_folder, "background")
    assert (row["hook"], row["iteration"], row["memory"]) == ("one", 3, {"times": 1})
    assert row["commands"] == [["stop", {}]]


@pytest.mark.parametrize(
    "value",
    [1, 0.1, True, None, "text", [1, [2.5]], {"a": {"b": 1}}, np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
     np.array([np.nan, np.inf]), {"array": [1]}],
)  # fmt: skip
def test_the_journal_stores_values_bit_for_bit(value: Any) -> None:
    found = unpack(json.loads(json.dumps(pack(value), allow_nan=False)))
    np.testing.assert_equal(found, value)
    assert type(found) is type(value)


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.float32(0.1)])
def test_non_finite_numbers_round_trip_through_the_journal(value: float) -> None:
    found = unpack(json.loads(json.dumps(pack(value), allow_nan=False)))
    assert isinstance(found, float)
    np.testing.assert_equal(found, float(value))


def test_values_that_the_journal_cannot_store_are_refused() -> None:
    with pytest.raises(SigmaStateError, match="set: cannot be written as JSON. Use numbers, strings, lists or arrays."):
        pack({"a": [{1, 2}]})


def test_training_waits_for_background_hooks_before_its_last_hooks() -> None:
    seen: list[Any] = []

    def slow(context: HookContext) -> None:
        time.sleep(0.1)
        context.publish("x", context.moment.iteration)

    hooks: dict[str, Hook] = {
        "slow": beside(slow, writes=["x"], every=every(5, "iteration")),
        "last": Do(does=lambda c: seen.append(c.read("x")), reads=["x"], every=every(1, "stop")),
        "at_once": beside(lambda c: seen.append(threading.current_thread()), every=every(1, "stop"), priority=-1),
    }
    with small(hooks) as sigma:
        sigma.trainer("trainer").fit(iterations=5)
    assert seen == [5, threading.current_thread()]


def test_a_hanging_background_hook_is_abandoned_at_the_end_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.05)
    freed = threading.Event()
    hooks: dict[str, Hook] = {"hangs": beside(lambda c: [freed.wait(60), c.log("too late")], every=every(1, "start"))}
    with small(hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=2)
        assert "training ended; background hooks dropped: hangs" in said(sigma)
        monkeypatch.setattr(background, "PATIENCE", 60.0)
        freed.set()
        trainer.fit(iterations=2)
        assert said(sigma).count("too late") == 1


def test_a_reset_discards_background_work_in_progress() -> None:
    freed = threading.Event()
    hooks: dict[str, Hook] = {"slow": beside(lambda c: [freed.wait(60), c.publish("x", 1)], writes=["x"])}
    with small(hooks) as sigma:
        session = sigma.trainer("trainer").session
        session.queue.claim()
        session.loop.begin(iterations=9)
        session.loop.advance(1)
        session.loop.settle()
        session.commands.apply(Reset())
        freed.set()
        session.background.finish()
        session.loop.boundary()
        assert "x" not in session.state.published
        session.loop.end()


# -- failures ----------------------------------------------------------------------------------------------------------
def boom(context: HookContext) -> None:
    raise ValueError("boom")


@pytest.mark.parametrize("does", [boom, lambda c: sys.exit(3)])
@pytest.mark.parametrize("where", [False, True])
def test_a_failing_hook_ends_training_and_is_named_even_if_it_exits(does: Any, where: bool) -> None:
    with small({"bad": Do(does=does, background=where)}) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(
            SigmaTrainingError, match=r"hook 'bad' \(\S+\) failed: (ValueError: boom|SystemExit: 3). Set on_error"
        ):
            trainer.fit(epochs=100)
        assert f"hook 'bad' ({Do.__module__}.Do) failed" in trainer.session.state.memory["bad"]["error"]


def test_a_background_failure_that_surfaces_at_the_end_fails_the_run() -> None:
    with small({"bad": beside(boom, every=every(3, "iteration"))}) as sigma:
        trainer = sigma.trainer("trainer")
        with pytest.raises(SigmaTrainingError, match=r"hook 'bad' \(\S+\) failed"):
            trainer.fit(iterations=3)
        assert trainer.session.status == "failed"


@pytest.mark.parametrize("where", [False, True])
@pytest.mark.parametrize("policy", ["ignore", "mute"])
def test_the_error_policy_applies_and_the_error_is_recorded(policy: str, where: bool) -> None:
    with small({"bad": Do(does=boom, background=where, on_error=policy)}) as sigma:
        trainer = sigma.trainer("trainer")
        settle(trainer)
        trainer.fit(iterations=4)
        memory = trainer.session.state.memory["bad"]
        assert memory["muted"] == (policy == "mute")
        assert memory["error"] == f"hook 'bad' ({Do.__module__}.Do) failed: ValueError: boom"
        assert said(sigma).count("boom") == (1 if policy == "mute" else 4)


def test_an_interruption_in_a_background_hook_reaches_training() -> None:
    def interrupt(context: HookContext) -> None:
        raise KeyboardInterrupt

    with small({"bad": beside(interrupt, on_error="ignore")}) as sigma, pytest.raises(KeyboardInterrupt):
        sigma.trainer("trainer").fit(epochs=100)


def test_a_guarding_hook_cannot_run_in_the_background() -> None:
    for settings in ({"background": True}, {"budget": 1.0, "over_budget": "background"}):
        with pytest.raises(SigmaConfigError, match="hooks.g: a guard must act at once"):
            order_hooks({"g": Do(guards=True, **settings)})


# -- budgets -----------------------------------------------------------------------------------------------------------
def sleepy(seen: list[Any], until: int = 1000) -> Callable[[HookContext], None]:
    def sleep(context: HookContext) -> None:
        seen.append((context.moment.iteration, threading.current_thread() is threading.main_thread()))
        time.sleep(0.02 if context.moment.iteration < until else 0.0)

    return sleep


def test_a_hook_three_times_over_its_budget_is_muted_logged_and_journalled(tmp_path: Path) -> None:
    seen: list[Any] = []
    with small({"slow": Do(does=sleepy(seen), budget=0.0012345)}, tmp_path) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=8)
        assert "'slow' took longer than its budget of 0.00123 s 3 times in a row; it is muted" in said(sigma)
        assert trainer.session.state.memory["slow"]["muted"]
        assert "longer than its budget" in trainer.session.state.memory["slow"]["error"]
        (row,) = events(sigma.run_folder, "budget")
    assert seen == [(1, True), (2, True), (3, True)]
    assert (row["hook"], row["then"], row["iteration"]) == ("slow", "muted", 3)


def test_a_hook_over_its_budget_moves_to_the_background_if_configured() -> None:
    seen: list[Any] = []
    hook = Do(does=sleepy(seen), budget=0.001, over_budget="background")
    with small({"slow": hook}) as sigma:
        trainer = sigma.trainer("trainer")
        settle(trainer)
        trainer.fit(iterations=6)
        saved = trainer.session.snapshot()
    assert seen == [(n, n <= 3) for n in range(1, 7)]
    assert "moved to the background" in said(sigma)
    with small({"slow": hook}) as again:
        again.trainer("trainer").session.restore(saved)
        again.trainer("trainer").fit(iterations=1)
    assert seen[-1] == (7, False)


def test_only_consecutive_strikes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    seconds = [0.0]
    monkeypatch.setattr(policies, "perf_counter", lambda: seconds[0])

    def now_and_then(context: HookContext) -> None:
        seen.append(context.moment.iteration)
        seconds[0] += 0.02 if context.moment.iteration % 3 else 0.005

    with small({"slow": Do(does=now_and_then, budget=0.01)}) as sigma:
        sigma.trainer("trainer").fit(iterations=9)
    assert seen == list(range(1, 10))


def test_a_background_hook_can_have_a_budget() -> None:
    seen: list[Any] = []
    with small({"slow": beside(sleepy(seen), budget=0.001)}) as sigma:
        trainer = sigma.trainer("trainer")
        settle(trainer)
        trainer.fit(iterations=6)
    assert [n for n, _ in seen] == [1, 2, 3]


@pytest.mark.parametrize("settings", [{"budget": 0.0}, {"budget": -1.0}, {"over_budget": "maim"}])
def test_an_invalid_budget_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match=next(iter(settings))):
        Do(**settings)


# -- replay ------------------------------------------------------------------------------------------------------------
def steering() -> dict[str, Hook]:
    """Return background hooks that change the parameters at unpredictable times."""

    def turn(context: HookContext) -> None:
        time.sleep(0.003)
        count = context.memory["count"] = context.memory.get("count", 0) + 1
        context.publish("x", context.evaluate("validation", {})["loss"])
        context.command("set", pattern="optimiser.**.learning_rate", value=0.05 / (1 + count))

    def slow(context: HookContext) -> None:
        time.sleep(0.002)
        context.publish("y", context.moment.iteration)

    return {
        "turn": beside(turn, writes=["x"], splits=["validation"], when=when("training.loss").decreases()),
        "low": Do(does=lambda c: c.command("set", pattern="optimiser.**.learning_rate", value=0.001), reads=["x"],
                  every=every(7, "iteration"), when=when("x").above(0.0)),
        "slow": Do(does=slow, writes=["y"], budget=0.0005, over_budget="background"),
        "mute": Do(does=slow, writes=["y"], budget=0.0005, every=every(3, "iteration")),
        "end": Do(does=lambda c: c.command("stop"), every=every(12, "epoch")),
    }  # fmt: skip


def lived(folder: Path) -> tuple[Path, dict[str, bytes], Mapping[str, Any]]:
    with small(steering(), folder) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        session = sigma.trainer("trainer").session
        return sigma.run_folder, state_bytes(sigma.trainer("trainer")), session.snapshot().values


def test_a_run_with_hooks_in_the_background_is_replayed_bit_for_bit_without_running_them(tmp_path: Path) -> None:
    run, state, values = lived(tmp_path)
    rows = events(run, "background", "budget")
    assert {row["hook"] for row in rows} == {"turn", "slow", "mute"}
    hooks, ran = steering(), []
    hooks["turn"].does = ran.append  # type: ignore[attr-defined]
    with small(hooks) as again:
        _, differs = again.replay(run)
        assert (differs, ran) == ({}, [])
        assert state_bytes(again.trainer("trainer")) == state
        found = again.trainer("trainer").session.snapshot().values
        assert {n: found[n] for n in ("hooks", "live", "published")} == {
            n: values[n] for n in ("hooks", "live", "published")
        }


def test_a_replay_without_background_rows_differs(tmp_path: Path) -> None:
    run, _, _ = lived(tmp_path)

    def without(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row for row in rows if row.get("event") != "background"]

    forge_journal(run, without)
    with small(steering()) as again:
        assert again.replay(run)[1]


def test_a_resumed_run_applies_background_results_again_without_running_hooks_twice(tmp_path: Path) -> None:
    first = Do(does=lambda c: c.command("save"), every=every(1, "start"))
    hooks, ran = steering(), []
    hooks["turn"].does = ran.append  # type: ignore[attr-defined]
    with small({"first": first, **steering()}, tmp_path) as sigma:
        sigma.run()
        run, state = sigma.run_folder, state_bytes(sigma.trainer("trainer"))
    assert run is not None
    for saved in (run / "checkpoints" / "trainer").iterdir():
        if saved.name != "0":
            shutil.rmtree(saved)
    with small({"first": first, **hooks}) as again:
        again.resume(run)
        again.run()
        assert state_bytes(again.trainer("trainer")) == state
    assert ran == []


def test_a_failure_in_the_background_is_not_replayed(tmp_path: Path) -> None:
    hooks: dict[str, Hook] = {
        "first": Do(does=lambda c: c.command("save"), every=every(1, "start")),
        "bad": beside(boom, every=every(3, "iteration")),
        "end": Do(does=lambda c: c.command("stop"), every=every(50, "epoch")),
    }
    with small(hooks, tmp_path) as sigma:
        with pytest.raises(SigmaTrainingError, match="boom"):
            sigma.run()
        run = sigma.run_folder
    assert run is not None
    with small({**hooks, "bad": beside(lambda c: None, every=every(3, "iteration"))}) as again:
        again.resume(run)
        again.run()
        assert again.trainer("trainer").session.moment.epoch == 50


def test_explain_shows_background_hooks_and_budgets() -> None:
    hooks: dict[str, Hook] = {"a": beside(boom), "b": Do(budget=0.5, over_budget="background"), "c": Do()}
    with small(hooks) as sigma:
        found = {hook["name"]: hook for hook in explain_trainer(sigma.trainer("trainer"))["hooks"]}
    assert [found[name]["background"] for name in "abc"] == [True, False, False]
    assert [found[name]["budget"] for name in "abc"] == [None, 0.5, None]
    assert found["b"]["over_budget"] == "background"
