"""Hooks that steer training: limits, switches, learning rates."""

from __future__ import annotations

import threading
import time
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import (
    Accumulate,
    Evaluate,
    Extrema,
    FunctionHook,
    LearningRateFinder,
    ReduceOnPlateau,
    SaveCheckpoint,
    Stop,
    Switch,
    TimeLimit,
)
from sigma_hooks.learning_rate_finder import moving_average, steepest
from sigma_kernel import Environment, Moment, every, when
from sigma_kernel.contracts import Hook, Slot
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import Descent, Desk, HookSuite, Slow, Sweep, small_environment, state_bytes

RATE = "optimiser.learning_rate"


class TestTimeLimit(HookSuite):
    def make(self) -> Hook:
        return TimeLimit("2 hours")


class TestSwitch(HookSuite):
    def make(self) -> Hook:
        return Switch("brake")


class TestReduceOnPlateau(HookSuite):
    def make(self) -> Hook:
        return ReduceOnPlateau(patience=1)


class TestLearningRateFinder(HookSuite):
    in_background = False

    def make(self) -> Hook:
        return LearningRateFinder(steps=5)


# -- time --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("90 seconds", 90), ("1 second", 1), ("1.5 hours", 5400), ("3 minutes", 180), ("1day", 86400)],
)
def test_a_time_limit_is_parsed_from_text(limit: str, seconds: float) -> None:
    assert TimeLimit(limit).seconds() == seconds


@pytest.mark.parametrize("limit", ["soon", "5", "5 epochs", "0 seconds", "-1 hours", "5 secondss", 5])
def test_invalid_lengths_of_time_are_refused(limit: Any) -> None:
    with pytest.raises(SigmaConfigError, match="time_limit: .* is not a duration"):
        TimeLimit(limit)


def test_training_stops_when_the_time_limit_is_reached() -> None:
    desk = Desk(moment=Moment(second=89.9))
    TimeLimit("90 seconds").fire(desk)
    assert not desk.commands
    desk.moment = Moment(second=90.0)
    TimeLimit("90 seconds").fire(desk)
    assert desk.commands == [("stop", {})]
    assert desk.logged == ["stopped: the time limit of 90 seconds is over"]


def test_a_run_ends_within_its_limit() -> None:
    with small_environment(Sweep(), hooks={"limit": TimeLimit("0.3 seconds"), "slow": Slow()}) as sigma:
        summary = sigma.run()
        assert summary.status == "finished"
        assert sigma.get("trainer.second") >= 0.3


def test_a_run_that_its_limit_ended_replays(tmp_path: Path) -> None:
    def small() -> Environment:
        return small_environment(
            Sweep(), hooks={"limit": TimeLimit("0.2 seconds"), "often": SaveCheckpoint(every=every(9, "iteration"))}
        )

    with small() as sigma:
        sigma.folder = tmp_path
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    with small() as again:
        assert again.replay(run)[1] == {}


# -- switches ----------------------------------------------------------------------------------------------------------
def test_setting_a_switch_can_end_training() -> None:
    hooks = {"switch": Switch("brake"), "end": Stop(when="switch.brake equals 1"), "slow": Slow()}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        thread = threading.Thread(target=sigma.run)
        thread.start()
        while not sigma.find("trainer.iteration") or sigma.get("trainer.iteration") < 3:
            time.sleep(0.001)
        assert sigma.get("trainer.switch.brake") == 0.0
        sigma.set("trainer.switch.brake", 1)
        thread.join(60)
        assert not thread.is_alive()
        assert "stopped: switch.brake equals 1" in [text for _, text in sigma.messages.entries_after(0)]


def test_a_stop_that_reads_only_switches_does_not_shorten_bursts() -> None:
    assert Stop(when=when("switch.brake").equals(1)).every == every(0.1, "second")
    both = when("switch.brake").equals(1) | when("iteration").reaches(5)
    assert Stop(when=both).every == every(1, "iteration")
    assert Stop(when=when("switch.brake").equals(1) | when("epoch").reaches(5)).every == every(1, "epoch")


def test_the_name_of_a_switch_is_one_level_of_an_address() -> None:
    with pytest.raises(SigmaConfigError, match="name"):
        Switch("a.b")


# -- plateaus ----------------------------------------------------------------------------------------------------------
def _reduced(hook: ReduceOnPlateau, values: list[float], rates: Any = 1.0) -> list[float]:
    """Return the rate after each value."""
    desk, seen = Desk({RATE: rates}), []
    for value in values:
        desk.values[hook.value] = value
        desk.commands.clear()
        hook.fire(desk)
        for _, arguments in desk.commands:
            desk.values[arguments["pattern"]] = arguments["value"]
        seen.append(desk.values[RATE])
    return seen


def test_the_rate_falls_when_patience_runs_out() -> None:
    hook = ReduceOnPlateau("loss", factor=0.5, patience=2)
    assert _reduced(hook, [3, 2, 2, 2, 2, 2, 1]) == [1, 1, 1, 0.5, 0.5, 0.25, 0.25]


def test_some_firings_do_not_count_after_a_reduction() -> None:
    hook = ReduceOnPlateau("loss", factor=0.5, patience=1, rest=2)
    assert _reduced(hook, [1, 1, 1, 1, 1]) == [1, 0.5, 0.5, 0.5, 0.25]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_values_that_are_not_numbers_run_patience_out_from_the_first_firing_as_in_torch(better: str) -> None:
    hook = ReduceOnPlateau("score", patience=2, better=better)
    assert _reduced(hook, [nan] * 5) == pytest.approx([1, 0.1, 0.1, 0.01, 0.01])  # of ReduceLROnPlateau(patience=1)
    assert _reduced(hook, [nan, 1.0, nan, 1.0, nan, nan]) == pytest.approx([1, 1, 1, 0.1, 0.1, 0.01])
    worst = inf if better == "lower" else -inf
    assert _reduced(hook, [worst, worst, 1.0, 1.0]) == pytest.approx([1, 0.1, 0.1, 0.1])


def test_the_rate_has_a_floor() -> None:
    assert _reduced(ReduceOnPlateau("loss", patience=1, least=0.05), [1, 1, 1, 1]) == [1, 0.1, 0.05, 0.05]


def test_the_best_score_may_be_the_highest() -> None:
    hook = ReduceOnPlateau("score", factor=0.5, patience=1, better="higher", by=0.1)
    assert _reduced(hook, [0.5, 0.7, 0.75, 0.9]) == [1, 1, 0.5, 0.5]


def test_a_group_of_rates_and_its_members_are_reduced_once_each() -> None:
    hooks = {
        "score": Evaluate(),
        "reduce": ReduceOnPlateau(rates="optimiser.**.learning_rate", factor=0.5, patience=1, by=1e9),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=3)
        assert sigma.get("trainer.optimiser.weights.learning_rate") == pytest.approx(0.05 / 4)
        assert sigma.get(f"trainer.{RATE}") == pytest.approx(0.05 / 4)


def test_hooks_with_memory_continue_bit_for_bit_after_a_checkpoint() -> None:
    def make() -> dict[str, Hook]:
        return {
            "score": Evaluate(),
            "mean": Accumulate("validation.loss", window=4, ways=["mean", "minimum"]),
            "ever": Accumulate("training.loss", ways=["sum"], every=every(2, "iteration")),
            "extrema": Extrema("validation.loss"),
            "reduce": ReduceOnPlateau(factor=0.5, patience=2, by=0.3, rest=1),
            "stop": Stop(when="validation.loss improves by 0.2 for 2 epochs in all and epoch reaches 7"),
        }

    with small_environment(Sweep(), hooks=make()) as sigma:
        sigma.trainer("trainer").fit(epochs=9)
        whole = sigma.trainer("trainer").session.snapshot()
        assert sigma.get(f"trainer.{RATE}") < 0.05  # reduced on the way
        assert sigma.get("trainer.epoch") < 9  # and stopped
    for cut in (1, 4, 6):
        with small_environment(Sweep(), hooks=make()) as sigma:
            sigma.trainer("trainer").fit(epochs=cut)
            half = sigma.trainer("trainer").session.snapshot()
        with small_environment(Sweep(), hooks=make()) as sigma:
            trainer = sigma.trainer("trainer")
            trainer.session.restore(half)
            trainer.fit(epochs=9 - cut)
            found = trainer.session.snapshot()
        assert {n: a.tobytes() for n, a in found.arrays.items()} == {n: a.tobytes() for n, a in whole.arrays.items()}
        assert found.values["published"] == whole.values["published"]
        assert found.values["hooks"] == whole.values["hooks"]
        assert found.values["live"] == whole.values["live"]


# -- learning rate finder ----------------------------------------------------------------------------------------------
def test_losses_are_smoothed_without_a_bias_towards_zero() -> None:
    assert moving_average([2.0, 2.0, 2.0]) == pytest.approx([2.0, 2.0, 2.0])
    average, expected = 0.0, []
    for t, loss in enumerate([5.0, 3.0, 4.0, 1.0], 1):
        average = 0.9 * average + 0.1 * loss
        expected.append(average / (1 - 0.9**t))
    assert moving_average([5.0, 3.0, 4.0, 1.0]) == pytest.approx(expected)


def test_the_suggested_rate_is_where_the_loss_falls_fastest() -> None:
    rates = np.geomspace(1e-5, 10, 61)
    losses = 1 / (1 + np.exp(4 * np.log(rates / 1e-2)))  # falls fastest at 1e-2; smoothing adds a small delay
    found = steepest(rates, losses.tolist())
    assert found is not None
    assert 1e-2 <= found <= 1e-1
    assert steepest(rates, list(range(61))) is None
    assert steepest(rates[:3], [3.0, 2.0, 1.0]) is None


def test_the_learning_rate_search_raises_the_rate_evenly_and_restores_everything() -> None:
    used: list[float] = []
    seen = FunctionHook(lambda c: used.append(c.read(RATE)), inputs=[RATE], every=every(1, "iteration"))
    kept: list[bytes] = []
    first = FunctionHook(
        lambda c: kept.append(c.read("network.layers.weights").tobytes()), inputs=["network.**"],
        every=every(1, "iteration"), priority=100,
    )  # fmt: skip
    hooks = {"find": LearningRateFinder(low=1e-4, high=1e-1, steps=7), "seen": seen, "first": first}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.run()
        assert sigma.get("trainer.iteration") == 8
        assert sigma.get("trainer.network.layers.weights").tobytes() == kept[0]
        assert kept[-1] != kept[0]
        assert sigma.get(f"trainer.{RATE}") == 0.05
        assert used[:7] == pytest.approx(np.geomspace(1e-4, 1e-1, 7))
        assert sigma.get("trainer.learning_rate_finder.rates") == pytest.approx(used[:7])
        assert len(sigma.get("trainer.learning_rate_finder.losses")) == 7
        assert 1e-4 <= sigma.get("trainer.learning_rate_finder.suggestion") <= 1e-1


class Heavy(Descent):
    """Gradient descent with momentum."""

    def slots(self, parameter: Any) -> dict[str, Slot]:
        return {"velocity": Slot()}

    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        velocity = 0.9 * slots["velocity"] - hyper["learning_rate"] * gradient
        return parameter + velocity, {"velocity": velocity}


@pytest.mark.parametrize("high", [0.1, 1e30])  # the second rate leads to a loss that is not finite
def test_the_learning_rate_search_restores_the_optimisers_state(high: float) -> None:
    states: list[dict[str, bytes]] = []
    note = FunctionHook(lambda c: states.append(state_bytes(sigma.trainer("trainer"))), every=every(1, "iteration"))
    note.priority = 100  # before the search begins, at the end of the first iteration
    find = LearningRateFinder(low=1e-4, high=high, steps=7, worse=1e300)
    with small_environment(Sweep(), hooks={"note": note, "find": find}) as sigma:
        sigma.trainer("trainer").optimiser = Heavy(learning_rate=0.05)
        sigma.run()
        after = state_bytes(sigma.trainer("trainer"))
    names = [name for name in after if name.startswith(("network.", "optimiser."))]
    assert {name.rpartition(".")[2] for name in names} == {"weights", "velocity", "step", "updates"}
    assert {name: after[name] for name in names} == {name: states[0][name] for name in names}
    assert all(states[2][name] != states[0][name] for name in names if not name.endswith(".updates"))  # never read


def test_the_learning_rate_search_ends_early_if_the_loss_grows() -> None:
    with small_environment(Sweep(), hooks={"find": LearningRateFinder(low=1e-3, high=1e6, steps=60)}) as sigma:
        sigma.run()
        assert sigma.get("trainer.iteration") < 61
        assert sigma.get("trainer.learning_rate_finder.suggestion") < 2
        assert np.isfinite(sigma.get("trainer.network.layers.weights")).all()


def test_a_non_finite_loss_ends_the_search_and_not_the_run() -> None:
    hook = LearningRateFinder(low=1e-3, high=1e30, steps=8, worse=1e300)
    with small_environment(Sweep(), hooks={"find": hook}) as sigma:
        assert sigma.run().status == "finished"
        assert np.isfinite(sigma.get("trainer.learning_rate_finder.losses")).all()
        assert np.isfinite(sigma.get("trainer.network.layers.weights")).all()


def test_a_loss_that_never_falls_suggests_nothing() -> None:
    desk = Desk({RATE: 0.1})
    hook = LearningRateFinder(steps=5)
    for loss in (1, 1, 2, 3, 4, 5):
        desk.values["training.loss"] = float(loss)
        hook.fire(desk)
    assert "learning_rate_finder.suggestion" not in desk.values
    assert desk.logged == ["learning rate: the loss did not fall at any rate. Try lower ones."]
    assert desk.commands[-1] == ("stop", {})


def test_an_invalid_range_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="low 1 must be less than high 0.1"):
        LearningRateFinder(low=1, high=0.1)
