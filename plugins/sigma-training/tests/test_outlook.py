"""Foreseeable errors in hooks and metrics are raised when training is prepared, with their location."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.clock import TimeStep, after, every
from sigma_kernel.contracts import Hook, HookContext, Metric, Outlook
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError, SigmaNetworkError, SigmaTrainingError
from sigma_kernel.graph.node import Node, Spec
from sigma_testing.doing import Do
from sigma_testing.hooks import HookSuite
from sigma_testing.steering import Descent, Sweep, small_environment, steered_environment

Deep = Callable[..., Environment]


class Wide(Metric):
    """Requires two numbers per row, where there is one."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.narrow(prediction, 1, 0, 2))


class Numpyish(Metric):
    """Uses an operation that graphs do not support."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return prediction.std  # type: ignore[attr-defined,no-any-return]


@define(eq=False, kw_only=True)
class Measure(Hook):
    every: TimeStep = every(1, "epoch")
    metric: Any = None

    def check(self, outlook: Outlook) -> None:
        outlook.measure({"it": self.metric})

    def fire(self, context: HookContext) -> None:
        raise AssertionError


@define(eq=False, kw_only=True)
class Square(Measure):
    def check(self, outlook: Outlook) -> None:
        assert outlook.ends() == (Spec((3,), "float32"), Spec((1,), "float32"))
        raise SigmaNetworkError("square: wants images.")


def test_metrics_of_a_hook_are_traced_before_training(deep: Deep) -> None:
    with deep(hooks={"m": Measure(metric=Wide())}) as sigma:
        with pytest.raises(SigmaConfigError, match=r"^trainer\.hooks\.m: metric 'it' \(\S+Wide\): .*\(2, 1\)"):
            sigma.prepare()
        assert sigma.trainer("trainer").history.keys() == set()


def test_metrics_of_the_training_step_are_traced_before_training(deep: Deep) -> None:
    text = r"^trainer\.metrics: .*\(2, 1\)"
    measures = Do(splits=["validation"])  # so that no other hook measures there
    with deep(metrics={"wide": Wide()}, hooks={"it": measures}) as sigma, pytest.raises(SigmaConfigError, match=text):
        sigma.prepare()


def test_a_failing_metric_is_reported_with_its_place_and_the_exception_class(deep: Deep) -> None:
    text = r"^trainer\.hooks\.m: metric 'it' \(\S+Numpyish\): .* it has no \.std\. Use f\.sqrt of f\.variance"
    with deep(hooks={"m": Measure(metric=Numpyish())}) as sigma, pytest.raises(SigmaConfigError, match=text):
        sigma.prepare()


def test_a_hook_may_refuse_the_shapes_of_a_network(deep: Deep) -> None:
    with deep(hooks={"s": Square()}) as sigma, pytest.raises(SigmaConfigError, match=r"hooks\.s: square: wants images"):
        sigma.prepare()


# -- wrong types of settings -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"every": 1}, r'^trainer\.hooks\.m\.every: must be a time step such as "1 epoch" \(got 1\)'),
        ({"when": 3}, r"^trainer\.hooks\.m\.when: must be a criterion such as .* \(got 3\)"),
    ],
)
def test_a_hook_schedule_that_is_neither_time_nor_criterion_is_refused(
    deep: Deep, settings: dict[str, Any], text: str
) -> None:
    with deep(hooks={"m": Measure(**settings)}) as sigma, pytest.raises(SigmaConfigError, match=text):
        sigma.prepare()


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (lambda new: new, "float32 of shape .*"),
        (lambda new: (new, {}, 1), r"\(float32 of shape .*, {}, int\)"),
        (lambda new: (new, None), r"\(float32 of shape .*, NoneType\)"),
    ],
)
def test_an_optimiser_that_does_not_return_a_pair_is_reported_with_the_expected_form(
    deep: Deep, given: Any, got: str
) -> None:
    class Odd(Descent):
        def update(self, gradient: Node, parameter: Node, *others: Any) -> Any:
            return given(parameter - gradient)

    text = rf"^optimiser \(\S+Odd\): update\(\) must return a pair, \(node, slots by name\) \(got {got}\)\.$"
    with deep(optimiser=Odd()) as sigma, pytest.raises(SigmaComponentError, match=text):
        sigma.trainer("trainer").fit(iterations=1)


@pytest.mark.parametrize(
    ("value", "why"),
    [(object(), "Object of type object is not JSON serializable"), (Lock(), "Object of type lock is not JSON")],
)
def test_memory_of_a_hook_that_cannot_be_saved_is_reported(deep: Deep, tmp_path: Path, value: Any, why: str) -> None:
    @define(eq=False, kw_only=True)
    class Keeps(Hook):
        every: TimeStep = every(1, "epoch")

        def fire(self, context: HookContext) -> None:
            context.memory.update(good=1, bad=value)

    with deep(Sweep(epochs=2), hooks={"keeps": Keeps()}) as sigma:
        sigma.folder = tmp_path
        text = rf"^hook 'keeps': memory\['bad'\] cannot be saved: {why}"
        with pytest.raises(SigmaTrainingError, match=text):
            sigma.run()


# -- what ends training ------------------------------------------------------------------------------------------------
ENDLESS = (
    "trainer: nothing ends its training. Set `epochs = 30`, or inf to train until it is stopped, or add a hook that "
    "ends it, such as stop, early_stop or time_limit."
)


@pytest.mark.parametrize("way", [lambda sigma: sigma.run(), lambda sigma: sigma.trainer("trainer").fit()])
def test_training_that_nothing_ends_is_refused_before_it_begins(tmp_path: Path, way: Callable[..., Any]) -> None:
    with small_environment(Sweep(), epochs=None) as sigma:
        sigma.folder = tmp_path
        with pytest.raises(SigmaConfigError) as error:
            way(sigma)
        assert str(error.value) == ENDLESS
        assert not list(tmp_path.iterdir())
        sigma.trainer("trainer").fit(epochs=1)  # it can be corrected
        assert sigma.trainer("trainer").session.moment.epoch == 1


def test_a_guard_is_no_end_and_an_undeclared_one_is_named() -> None:
    stop = Do(does=lambda context: context.command("stop"), guards=True)
    with small_environment(Sweep(), epochs=None, hooks={"mine": stop}) as sigma:
        with pytest.raises(SigmaConfigError) as error:
            sigma.run()
        assert str(error.value) == f"{ENDLESS} If mine ends it, declare `ends = True` in its class."
        sigma.trainer("trainer").fit(epochs=3)
        assert sigma.trainer("trainer").session.moment.epoch == 1  # it stops training nevertheless


@pytest.mark.parametrize("declared", [{"ends": True}, {"stops": True}])
def test_a_hook_that_declares_an_end_is_enough(declared: dict[str, bool]) -> None:
    stop = Do(does=lambda context: context.command("stop"), **declared)
    with small_environment(Sweep(), epochs=None, hooks={"end": stop}) as sigma:
        assert sigma.run().epochs == 1


def test_the_last_hook_that_ends_training_can_be_detached_live_and_the_run_resumed(tmp_path: Path) -> None:
    def script() -> dict[int, Any]:
        return {3: lambda sigma: sigma.detach("end"), 7: lambda sigma: sigma.stop()}

    hooks = {"end": Do(every=after(1, "epoch"), does=lambda context: context.command("stop"), ends=True)}
    with steered_environment(script(), epochs=None, hooks=hooks) as sigma:
        sigma.folder = tmp_path
        assert sigma.run().iterations == 7
        with pytest.raises(SigmaConfigError, match="nothing ends its training"):
            sigma.run()
        run = sigma.run_folder
    assert run is not None
    with steered_environment({}, last=9, epochs=None, hooks=hooks) as again:
        again.resume(run)
        assert again.run().iterations == 9
    with steered_environment({}, last=9, epochs=None, hooks=hooks) as last:
        assert last.replay(run)[1] == {}


@pytest.mark.parametrize(("declared", "accepted"), [({}, False), ({"ends": True}, True), ({"guards": True}, True)])
def test_the_suite_of_hooks_reports_an_undeclared_end(declared: dict[str, bool], accepted: bool) -> None:
    class Suite(HookSuite):
        def make(self) -> Hook:
            return Do(does=lambda context: context.command("stop"), **declared)

    with nullcontext() if accepted else pytest.raises(AssertionError, match="must declare `ends = True`"):
        Suite().test_it_declares_that_it_ends_training()
