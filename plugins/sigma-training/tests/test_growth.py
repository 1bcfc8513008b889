"""Work before the first iteration is linear in the size of networks, addresses and hooks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.environment import Environment
from sigma_step.graphs import evaluation_step, gradient_step, training_step, update_step
from sigma_step.model import LAYERS, Model
from sigma_testing.counting import TWICE, growth
from sigma_testing.doing import Do
from sigma_training.hooks.order import order_hooks, reasons
from sigma_training.hooks.outlook import check_reads
from sigma_training.trainer import NetworkTrainer

SETTINGS = {"first": {"match": "**.weights", "learning_rate": 0.01}, "second": {"match": "*<dense>.*", "beta1": 0.8}}
DEEP = "input(4) + {} * dense(3) + output(2) + softmax_cross_entropy()"


def trainer(network: str, **settings: Any) -> NetworkTrainer:
    made = Environment("growth").create_trainer("trainer", backend="numpy", batch_size=8, **settings)
    made.data = np.zeros((8, 4), np.float32), np.zeros(8, np.int32)
    made.network, made.optimiser = network, {"type": "adam", "settings": SETTINGS}
    return made


def model(layers: int) -> Model:
    return trainer(DEEP.format(layers)).session.setup.model


def test_preparing_a_trainer_takes_time_linear_in_its_layers() -> None:
    assert growth(lambda layers: trainer(DEEP.format(layers)).prepare, 100) < TWICE


def test_preparing_a_trainer_takes_time_linear_in_its_branches() -> None:
    def wide(branches: int) -> Callable[[], Any]:
        text = f"x = input(4)\nconcat({', '.join(['x + dense(2)'] * branches)}) + output(2) + softmax_cross_entropy()"
        return trainer(text).prepare

    assert growth(wide, 100) < TWICE


@pytest.mark.long_cases("training_step")
@pytest.mark.parametrize("kind", [training_step, gradient_step, evaluation_step])
def test_a_step_grows_linearly_with_its_layers(kind: Callable[..., Any]) -> None:
    def traced(layers: int) -> Callable[[], Any]:
        made = model(layers)
        return lambda: kind(made, 8)

    assert growth(traced, 60) < TWICE


def test_an_update_grows_linearly_with_its_parameters() -> None:
    assert growth(lambda layers: partial(update_step, model(layers)), 60) < TWICE


def test_layers_can_be_addressed_by_each_of_their_tags() -> None:
    def tagged(layers: int) -> Callable[[], Any]:
        made = model(layers)
        return lambda: [made.tags(placed.name) for placed in made.network.layers]

    assert growth(tagged, 100) < TWICE


def hooks(count: int) -> dict[str, Do]:
    """Return a chain of hooks, each of which reads what the previous one writes."""
    names = ["training.loss", *(f"made.by_{number}" for number in range(count))]
    return {f"hook_{i}": Do(reads=[names[i]], writes=[names[i + 1]]) for i in range(count)}


def test_the_number_of_ordering_reasons_is_linear_in_the_hooks() -> None:
    def reasoned(count: int) -> Callable[[], Any]:
        made = hooks(count)
        return lambda: reasons(made)

    assert growth(reasoned, 100) < TWICE
    found = reasons(hooks(3))
    assert [(reason.first, reason.then) for reason in found] == [("hook_0", "hook_1"), ("hook_1", "hook_2")]


@pytest.mark.parametrize("reads", [["made.by_0"], ["made.*"]])
def test_hooks_are_ordered_in_time_linear_in_their_number(reads: list[str]) -> None:
    def many(count: int) -> Callable[[], Any]:
        made = {
            f"hook_{i}": Do(writes=[f"made.by_{i}"], reads=reads if i == 1 else [], settable={f"s{i}": 1.0})
            for i in range(count)
        }
        return lambda: order_hooks(made)

    assert growth(many, 100) < TWICE


def test_what_hooks_read_is_looked_for_in_time_linear_in_their_number() -> None:
    def many(count: int) -> Callable[[], Any]:
        made = {name: evolve(hook, reads=["network.layers.x"]) for name, hook in hooks(count).items()}
        return lambda: check_reads("trainer", made, None, {"training.loss"})

    assert growth(many, 100) < TWICE


def test_hooks_without_dependencies_are_ordered_by_priority_and_name() -> None:
    free = {name: Do(writes=[f"made.{name}"]) for name in ("b", "a", "c")}
    assert order_hooks(free) == ["a", "b", "c"]


def test_matching_patterns_are_reasons_for_an_order() -> None:
    found = reasons({"reader": Do(reads=["made.*"]), "writer": Do(writes=["made.one"])})
    assert [(reason.first, reason.then) for reason in found] == [("writer", "reader")]
    found = reasons({"reader": Do(reads=["made.one"]), "writer": Do(writes=["made.*"])})
    assert [(reason.first, reason.then) for reason in found] == [("writer", "reader")]


def test_a_setting_comes_from_the_most_specific_rule_that_has_it() -> None:
    live = trainer(DEEP.format(1)).session.state.live.base
    assert live["optimiser.1-dense.weights.learning_rate"] == 0.01
    assert live["optimiser.1-dense.weights.beta1"] == 0.8
    assert live["optimiser.2-output.weights.beta1"] == 0.9
    assert live["optimiser.1-dense.biases.learning_rate"] == 1e-3
    assert f"{LAYERS}1-dense.weights" not in live
