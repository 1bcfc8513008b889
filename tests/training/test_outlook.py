"""What can be told before training to go wrong in a hook or a metric is refused when training is prepared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Metric, Outlook
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node, Spec

Deep = Callable[..., Environment]


class Wide(Metric):
    """Wants two numbers for each row; there is one."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.narrow(prediction, 1, 0, 2))


class Numpyish(Metric):
    """Is written in what graphs do not know."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return prediction.mean  # type: ignore[attr-defined,no-any-return]


@define(eq=False, kw_only=True)
class Measure(Hook):
    every: TimeStep = every(1, "epoch")
    metric: Any = None

    def check(self, outlook: Outlook) -> None:
        outlook.measure({"it": self.metric})

    def run(self, context: HookContext) -> None:
        raise AssertionError


@define(eq=False, kw_only=True)
class Square(Measure):
    def check(self, outlook: Outlook) -> None:
        assert outlook.ends() == (Spec((3,), "float32"), Spec((1,), "float32"))
        raise SigmaNetworkError("square: wants images.")


def test_metrics_of_a_hook_are_traced_before_training(deep: Deep) -> None:
    with deep(hooks={"m": Measure(metric=Wide())}) as sigma:
        with pytest.raises(SigmaConfigError, match=r"^trainer\.hooks\.m: .*\(2, 1\)"):
            sigma.prepare()
        assert sigma.trainer("trainer").history.keys() == set()


def test_metrics_of_the_training_step_are_traced_before_training(deep: Deep) -> None:
    text = r"^trainer\.metrics: .*\(2, 1\)"
    with deep(metrics={"wide": Wide()}) as sigma, pytest.raises(SigmaConfigError, match=text):
        sigma.prepare()


def test_a_metric_that_fails_is_told_with_its_place_and_the_class_of_what_it_raised(deep: Deep) -> None:
    text = r"^trainer\.hooks\.m: AttributeError: .*mean"
    with deep(hooks={"m": Measure(metric=Numpyish())}) as sigma, pytest.raises(SigmaConfigError, match=text):
        sigma.prepare()


def test_a_hook_may_refuse_the_shapes_of_a_network(deep: Deep) -> None:
    with deep(hooks={"s": Square()}) as sigma, pytest.raises(SigmaConfigError, match=r"hooks\.s: square: wants images"):
        sigma.prepare()
