"""Hooks that aggregate and measure agree with NumPy and closed forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Accumulate, FunctionHook, Histogram, PhaseTime, Progress, Statistics, Stop, UpdateRate
from sigma_hooks.reading import read_all
from sigma_kernel import Environment, Moment, SigmaConfigError, every, when
from sigma_kernel.contracts import Hook
from sigma_testing import Desk, HookSuite, Sweep, small_environment

Make = Callable[..., Environment]
WEIGHTS = "network.layers.1-linear.weights"
ARRAY = np.array([[0.0, 1.0], [2.0, 5.0]])


class TestAccumulate(HookSuite):
    def make(self) -> Hook:
        return Accumulate("training.loss", window=3, ways=["mean", "sum", "minimum", "maximum"])


class TestAccumulateEver(HookSuite):
    def make(self) -> Hook:
        return Accumulate("training.loss")


class TestProgress(HookSuite):
    def make(self) -> Hook:
        return Progress()


class TestPhaseTime(HookSuite):
    def make(self) -> Hook:
        return PhaseTime()


class TestStatistics(HookSuite):
    def make(self) -> Hook:
        return Statistics(measures=["mean", "deviation", "norm", "minimum", "maximum", "zeros"])

    def values(self) -> dict[str, Any]:
        return {"network.layers.**": {"network.layers.a": ARRAY}}


class TestUpdateRate(HookSuite):
    def make(self) -> Hook:
        return UpdateRate()

    def values(self) -> dict[str, Any]:
        updates, parameters = {"updates.a.weights": ARRAY}, {"network.layers.a.weights": ARRAY}
        return {"updates.**.weights": updates, "network.layers.**.weights": parameters}


class TestHistogram(HookSuite):
    def make(self) -> Hook:
        return Histogram("gradients.**", bins=3)

    def values(self) -> dict[str, Any]:
        return {"gradients.**": {"gradients.a": ARRAY}}


# -- aggregation -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("window", [None, 1, 3, 100])
def test_values_are_aggregated_over_a_window_or_the_whole_run(window: int | None) -> None:
    hook, desk = Accumulate("x", window=window, ways=["mean", "sum", "minimum", "maximum"]), Desk()
    series = [3.0, -1.0, 4.0, 1.0, 5.0]
    for i, value in enumerate(series, 1):
        desk.values["x"] = value
        hook.fire(desk)
        seen = np.array(series[:i][-(window or i) :])
        found = [desk.values[f"accumulated.x.{way}"] for way in ("mean", "sum", "minimum", "maximum")]
        assert found == pytest.approx([seen.mean(), seen.sum(), seen.min(), seen.max()])


def test_values_not_published_yet_are_not_aggregated() -> None:
    desk = Desk()
    Accumulate("x").fire(desk)
    assert (desk.values, desk.memory) == ({}, {})


@pytest.mark.parametrize("settings", [{"window": 0}, {"ways": ["median"]}])
def test_an_invalid_window_or_aggregation_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SigmaConfigError, match="window|ways"):
        Accumulate("x", **settings)


def test_aggregated_values_can_be_read_by_other_hooks() -> None:
    hooks = {
        "gather": Accumulate("training.loss", ways=["minimum"], every=every(1, "iteration")),
        "stop": Stop(when=when("accumulated.training.loss.minimum").below(0.5)),
    }
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.run()
        history = sigma.trainer("trainer").history
    assert history["accumulated.training.loss.minimum"] == pytest.approx(
        np.minimum.accumulate(history["training.loss"])
    )
    assert history["accumulated.training.loss.minimum"][-1] < 0.5


# -- progress and time -------------------------------------------------------------------------------------------------
def test_progress_is_logged_with_the_end_if_known() -> None:
    desk = Desk(moment=Moment(iteration=30, epoch=2))
    Progress().fire(desk)
    desk.values["goal"] = 120
    Progress().fire(desk)
    assert desk.logged == ["epoch 2, iteration 30", "epoch 2, iteration 30 of 120 (25%)"]
    assert desk.values["progress"] == 0.25


def test_progress_derives_the_last_iteration_from_the_hooks() -> None:
    hooks = {"progress": Progress(), "end": Stop(when=when("epoch").reaches(4))}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.run()
        assert sigma.trainer("trainer").history["progress"].tolist() == [0.25, 0.5, 0.75, 1.0]


def test_phase_times_are_published_as_differences_and_hooks_exclude_evaluation() -> None:
    hook, desk = PhaseTime(), Desk()
    for now in ([1.0, 2.0, 5.0, 3.0], [2.0, 2.5, 9.0, 6.0], [0.5, 0.5, 0.5, 0.25]):
        desk.values.update(zip([f"phases.{p}" for p in ("burst", "data", "hooks", "evaluation")], now, strict=True))
        hook.fire(desk)
        found = [desk.values[f"phase_time.{p}"] for p in ("burst", "data", "hooks", "evaluation")]
        if now[0] == 2.0:
            assert found == [1.0, 0.5, 1.0, 3.0]
    assert found == [0.5, 0.5, 0.25, 0.25]  # counted from 0: another process continues the run


def test_phases_add_up_to_the_time_of_training() -> None:
    hooks = {"phases": PhaseTime(), "end": Stop(when=when("epoch").reaches(3))}
    with small_environment(Sweep(), hooks=hooks) as sigma:
        sigma.run()
        history = sigma.trainer("trainer").history
        total = sum(history[f"phase_time.{phase}"].sum() for phase in ("burst", "data", "hooks", "evaluation"))
        assert 0 < total <= sigma.get("trainer.second")


# -- arrays by address -------------------------------------------------------------------------------------------------
def test_statistics_of_arrays_equal_numpys() -> None:
    desk = Desk({"a.**": {"a.b": ARRAY, "a.c": 2.0, "a.d": np.zeros((0, 2))}})
    Statistics("a.**", measures=["mean", "deviation", "norm", "minimum", "maximum", "zeros"]).fire(desk)
    del desk.values["a.**"]
    of = {name.removeprefix("statistics.a.b."): value for name, value in desk.values.items() if ".b." in name}
    expected = {"mean": 2.0, "deviation": np.std(ARRAY), "norm": np.sqrt(30), "minimum": 0, "maximum": 5, "zeros": 0.25}
    assert of == pytest.approx(expected)
    assert desk.values["statistics.a.c.mean"] == 2.0
    assert not [name for name in desk.values if ".d." in name]


@pytest.mark.parametrize("of", ["network.layers.**", "gradients.**", "updates.**", "activations.*"])
def test_all_values_of_a_step_can_be_measured(classifier: Make, of: str) -> None:
    with classifier(hooks={"it": Statistics(of)}) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        found = dict(sigma.registry.find("trainer.statistics.**.deviation"))
        assert found
        assert all(np.isfinite(value) for value in found.values())


def test_the_update_rate_of_one_gradient_descent_step_follows_its_gradient(classifier: Make) -> None:
    seen: dict[str, Any] = {}

    def look(context: Any) -> None:
        seen.update(gradients=context.read("gradients.1-linear.weights"), weights=context.read(WEIGHTS))

    look_at = FunctionHook(look, inputs=["gradients.**", WEIGHTS], every=every(1, "iteration"))
    hooks = {"rate": UpdateRate(every=every(1, "iteration")), "look": look_at}
    with classifier(hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(iterations=3)
        rate = sigma.get("trainer.update_rate.1-linear.weights")
    assert rate == pytest.approx(0.05 * seen["gradients"].std() / seen["weights"].std(), rel=1e-4)


def test_short_addresses_come_first_so_that_a_group_is_set_before_its_members() -> None:
    values = {"rate.a.b": 1.0, "rate.a": 2.0, "rate.c": None}
    assert list(read_all(Desk({"rate.**": values}), "rate.**").items()) == [("rate.a", 2.0), ("rate.a.b", 1.0)]
    assert read_all(Desk({"rate.a": 3.0}), "rate.a") == {"rate.a": 3.0}
    assert read_all(Desk(), "rate.a") == {}


def test_a_constant_parameter_has_no_update_rate() -> None:
    desk = Desk({"updates.**": {"updates.a": ARRAY}, "network.layers.**": {"network.layers.a": np.ones(3)}})
    UpdateRate("**").fire(desk)
    assert not [name for name in desk.values if name.startswith("update_rate")]


def test_histograms_count_every_finite_element_once() -> None:
    values = np.array([0.0, 0.1, 0.9, 1.0, 0.5, np.nan, np.inf])
    desk = Desk({"a.*": {"a.b": values, "a.c": np.zeros(0)}})
    Histogram("a.*", bins=2).fire(desk)
    assert desk.values["histogram.a.b.edges"] == [0.0, 0.5, 1.0]
    assert desk.values["histogram.a.b.counts"] == [2, 3]
    assert sum(desk.values["histogram.a.c.counts"]) == 0
    json.dumps({name: value for name, value in desk.values.items() if name.startswith("histogram")})


@pytest.mark.parametrize(
    ("criterion", "epochs"),
    [
        ("any statistics.**.deviation above 0.001", 1),
        ("all statistics.** above 1e9 or epoch reaches 2", 2),
        ("statistics.network.layers.1-linear.weights.norm improves upwards by 1e9 for 3 epochs in all", None),
    ],
)
def test_criteria_can_read_published_values_by_pattern(classifier: Make, criterion: str, epochs: int | None) -> None:
    hooks = {"measure": Statistics(measures=["deviation", "norm"]), "end": Stop(when=criterion)}
    with classifier(hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(epochs=4)
        assert sigma.get("trainer.epoch") == (epochs or 4)


@pytest.mark.parametrize("bins", [0, 1001])
def test_the_number_of_bins_is_limited(bins: int) -> None:
    with pytest.raises(SigmaConfigError, match="bins"):
        Histogram(bins=bins)


def test_monitoring_does_not_change_the_bits(classifier: Make) -> None:
    found = []
    watching = {
        "a": Statistics("gradients.**"),
        "b": UpdateRate(),
        "c": Histogram("updates.**", every=every(3, "iteration")),
    }
    for hooks in ({}, watching):
        with classifier(hooks=hooks) as sigma:
            sigma.trainer("trainer").fit(epochs=3)
            found.append(sigma.get(f"trainer.{WEIGHTS}").tobytes())
    assert found[0] == found[1]
