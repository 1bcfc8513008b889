"""Every hook passes the suite and does its job."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from sigma_hooks import Accuracy, EarlyStop, Evaluate, Extrema, FunctionHook, Loss, NanGuard, Report, RunningTime, Stop
from sigma_kernel import Moment, SigmaConfigError, TimeScale, after, every, when
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaTrainingError
from sigma_testing import Desk, HookSuite, Sweep, small_environment


class TestEvaluate(HookSuite):
    def make(self) -> Hook:
        return Evaluate()


class TestAccuracy(HookSuite):
    def make(self) -> Hook:
        return Accuracy(top=2)


class TestLoss(HookSuite):
    def make(self) -> Hook:
        return Loss()


class TestReport(HookSuite):
    def make(self) -> Hook:
        return Report(values=["training.loss", "optimiser.learning_rate"])


class TestRunningTime(HookSuite):
    def make(self) -> Hook:
        return RunningTime()


class TestExtrema(HookSuite):
    def make(self) -> Hook:
        return Extrema("validation.loss")


class TestStop(HookSuite):
    def make(self) -> Hook:
        return Stop(when=when("epoch").reaches(3))


class TestEarlyStop(HookSuite):
    in_background = False

    def make(self) -> Hook:
        return EarlyStop(restore=True)


class TestNanGuard(HookSuite):
    in_background = False

    def make(self) -> Hook:
        return NanGuard(then="restore")


class TestFunction(HookSuite):
    def make(self) -> Hook:
        return FunctionHook(lambda context: context.publish("twice", 2), outputs=["twice"])


def _shown(hook: Hook, desk: Desk, name: str, values: list[float]) -> list[int]:
    """Feed values to a hook one by one; return after which of them it has stopped training."""
    stops = []
    for i, value in enumerate(values):
        desk.values[name] = value
        desk.moment = Moment(iteration=i + 1, epoch=i + 1)
        desk.commands.clear()
        hook.fire(desk)
        stops += [i] if ("stop", {}) in desk.commands else []
    return stops


# -- reports -----------------------------------------------------------------------------------------------------------
def test_a_report_logs_every_value_and_marks_unknown_ones() -> None:
    desk = Desk({"training.loss": 0.123456}, Moment(iteration=7, epoch=2))
    Report(values=["training.loss", "validation.loss"]).fire(desk)
    assert desk.logged == ["epoch 2, iteration 7: training.loss 0.1235, validation.loss unknown"]


def test_the_loss_is_logged() -> None:
    desk = Desk({"training.loss": 2.0})
    Loss().fire(desk)
    assert desk.logged == ["epoch 0, iteration 0: training.loss 2"]


def test_running_time_is_the_time_since_the_last_firing() -> None:
    hook, desk = RunningTime(), Desk()
    found = []
    for second in (1.5, 4.0):
        desk.moment = Moment(second=second)
        hook.fire(desk)
        found.append(desk.values["running_time"])
    assert found == [1.5, 2.5]


def test_extrema_are_kept_over_all_firings() -> None:
    hook, desk = Extrema("x"), Desk()
    _shown(hook, desk, "x", [3.0, 1.0, 2.0, 5.0, 4.0])
    assert (desk.values["extrema.x.minimum"], desk.values["extrema.x.maximum"]) == (1.0, 5.0)


# -- stopping ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("criterion", "scale"),
    [
        (when("epoch").reaches(3), "epoch"),
        (when("validation.loss").below(0.1), "epoch"),
        (when("iteration").reaches(3), "iteration"),
        (when("epoch").reaches(9) | when("training.loss").below(0.1), "iteration"),
        (when("second").reaches(3), "iteration"),
    ],
)
def test_a_stop_criterion_is_evaluated_as_often_as_its_values_change(criterion: Any, scale: str) -> None:
    assert Stop(when=criterion).every == every(1, scale)


def test_a_stop_without_a_criterion_ends_training_when_it_is_due() -> None:
    with small_environment(Sweep(), hooks={"end": Stop(every=after(7, "iteration"))}) as sigma:
        summary = sigma.run()
        assert sigma.get("trainer.goal") == 7
    assert (summary.iterations, summary.status) == (7, "finished")


def test_a_stop_hook_ends_training_at_the_first_boundary_where_it_holds() -> None:
    with small_environment(Sweep(), hooks={"end": Stop(when=when("iteration").reaches(8))}) as sigma:
        assert sigma.run().iterations == 8
        assert [text for _, text in sigma.messages.entries_after(0)] == ["stopped: iteration reaches 8"]


def test_the_last_iteration_is_known_from_the_stop_criterion() -> None:
    stop = Stop(when=when("validation.loss").below(0) | when("epoch").reaches(4))
    with small_environment(Sweep(), hooks={"end": stop, "validation": Evaluate()}) as sigma:
        sigma.prepare()
        assert sigma.get("trainer.goal") == 20


def test_early_stop_waits_for_its_patience_and_restores_the_best_parameters() -> None:
    desk = Desk()
    hook = EarlyStop("loss", patience=2, restore=True)
    assert _shown(hook, desk, "loss", [3.0, 2.0, 2.5, 1.9, 1.9, 2.0]) == [5]
    assert desk.done == ["keep", "keep", "keep", "bring_back"]
    assert desk.logged == ["stopped: loss was best in epoch 4 (1.9); its parameters are restored"]


def test_early_stop_requires_the_given_improvement() -> None:
    assert _shown(EarlyStop("loss", patience=2, by=0.5), Desk(), "loss", [3.0, 2.8, 2.6, 2.4]) == [2]


def test_early_stop_can_wait_for_an_increase() -> None:
    assert _shown(EarlyStop("score", patience=1, better="higher"), Desk(), "score", [0.5, 0.6, 0.6]) == [2]


def test_early_stop_restores_the_best_epoch_bit_for_bit() -> None:
    losses = iter([1.0, 0.5, 0.7, 0.8])
    kept = []

    def score(context: Any) -> None:
        context.publish("score", next(losses))
        kept.append(context.read("network.layers.weights"))

    hooks = {
        "score": FunctionHook(score, inputs=["network.**"], outputs=["score"]),
        "end": EarlyStop("score", patience=2, restore=True),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        assert sigma.run().epochs == 4
        assert sigma.get("trainer.network.layers.weights").tobytes() == kept[1].tobytes()


def test_a_run_ended_by_early_stop_continues_only_with_more_patience(tmp_path: Path) -> None:
    def made(patience: int) -> Any:
        worse = FunctionHook(lambda context: context.publish("score", context.moment.epoch), outputs=["score"])
        return small_environment(Sweep(9), hooks={"score": worse, "early": EarlyStop("score", patience=patience)})

    with made(2) as sigma:
        sigma.folder = tmp_path
        assert sigma.run().epochs == 3
        run = sigma.run_folder
    for patience, epochs in ((2, 3), (4, 5)):
        with made(patience) as again:
            again.resume(run)
            assert again.run().epochs == epochs
            said = [text for _, text in again.messages.entries_after(0)]
            remedy = "detach it, or ask for more: fit(epochs=n), resume --epochs N"
            assert (f"nothing to train: hook 'early' has ended it already; {remedy}" in said) is (patience == 2)


def test_early_stop_watches_anew_if_more_epochs_are_asked_for(tmp_path: Path) -> None:
    def made() -> Any:
        worse = FunctionHook(lambda context: context.publish("score", context.moment.epoch), outputs=["score"])
        return small_environment(
            Sweep(9), hooks={"score": worse, "early": EarlyStop("score", better="lower", patience=2)}
        )

    with made() as sigma:
        sigma.folder, trainer = tmp_path, sigma.trainer("trainer")
        reached = []
        for more in ({}, {}, {"epochs": 1}, {}, {"epochs": 9}, {}):
            trainer.fit(**more)
            reached.append(sigma.get("trainer.epoch"))
        assert reached == [3, 3, 4, 6, 9, 9]
        run, whole = sigma.run_folder, trainer.session.snapshot()
    with made() as again:
        again.resume(run)
        again.run()
        assert again.get("trainer.epoch") == 9
        found = again.trainer("trainer").session.snapshot()
        assert {n: a.tobytes() for n, a in found.arrays.items()} == {n: a.tobytes() for n, a in whole.arrays.items()}
        assert found.values["hooks"] == whole.values["hooks"]


# -- the guard ---------------------------------------------------------------------------------------------------------
def _explode(then: str | None) -> Any:
    hooks = {} if then is None else {"guard": NanGuard(then=then)}
    return small_environment(Sweep(epochs=2000), hooks=hooks)


@pytest.mark.parametrize("then", ["fail", None])
def test_a_non_finite_loss_ends_the_run_with_the_iteration_and_advice(then: str | None) -> None:
    with _explode(then) as sigma:
        sigma.trainer("trainer").optimiser.learning_rate = 50.0
        with pytest.raises(SigmaTrainingError, match="at iteration [0-9]+.*Lower the learning rate"):
            sigma.run()
        assert sigma.state == "failed"


def test_the_guard_can_stop_with_the_parameters_of_the_last_good_epoch() -> None:
    with _explode("restore") as sigma:
        sigma.trainer("trainer").optimiser.learning_rate = 50.0
        assert sigma.run().status == "finished"
        assert all(math.isfinite(v) for v in sigma.get("trainer.network.layers.weights").ravel())


def test_the_guard_can_stop_without_restoring() -> None:
    with _explode("stop") as sigma:
        sigma.trainer("trainer").optimiser.learning_rate = 50.0
        assert not math.isfinite(sigma.run().metrics["training.loss"])


def test_a_stop_by_the_guard_saves_the_last_good_state_instead_of_the_present_one(tmp_path: Path) -> None:
    with _explode("stop") as sigma:
        sigma.trainer("trainer").optimiser.learning_rate, sigma.folder = 50.0, tmp_path
        summary = sigma.run()
        assert sigma.run_folder is not None
        saved = sigma.run_folder / "checkpoints" / "trainer"
        assert [path.name for path in saved.iterdir()] == [str(summary.iterations - 2)]


def test_the_guard_can_let_training_go_on_and_says_so_once() -> None:
    with _explode("continue") as sigma:
        sigma.trainer("trainer").optimiser.learning_rate = 50.0
        sigma.trainer("trainer").fit(iterations=100)
        assert sigma.trainer("trainer").session.moment.iteration == 100
        told = [text for _, text in sigma.messages.entries_after(0)]
        assert len(told) == 1
        assert told[0].startswith("the loss is ")
        assert told[0].endswith("; training continues")


def test_the_guard_runs_before_hooks_that_would_publish_invalid_values() -> None:
    hooks = {"a": Evaluate(), "guard": NanGuard(), "stop": Stop(when=when("epoch").reaches(2))}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.prepare()
        assert sigma.trainer("trainer").session.setup.order.names == ["guard", "a", "stop"]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: EarlyStop(patience=0), "patience"),
        (lambda: EarlyStop(better="best"), "better"),
        (lambda: NanGuard(then="panic"), "then"),
        (lambda: Accuracy(top=0), "top"),
    ],
)
def test_invalid_settings_are_refused(make: Any, what: str) -> None:
    with pytest.raises(SigmaConfigError, match=what):
        make()


def test_a_stop_criterion_is_evaluated_once_an_epoch_by_default() -> None:
    assert Stop().every.scale is TimeScale.EPOCH
