"""Preparation of a trainer in stages, which raise the first error or skip the stages that depend on one."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel.contracts import Dataset, Hook, HookContext
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.graph.node import Spec
from sigma_kernel.settings.mistakes import Faults
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adam
from sigma_run.config.examination import examine
from sigma_training.preparation import Missing, Stages
from sigma_training.trainer import NetworkTrainer

X, Y = np.eye(4, dtype=np.float32), np.array([0, 1, 1, 0])


@define(eq=False, kw_only=True)
class Quiet(Hook):
    """Do nothing, on a schedule."""

    every: Any = "2 epochs"

    def fire(self, context: HookContext) -> None:
        return


@define(eq=False)
class Counting(Dataset):
    """Rows whose sections cannot be read; counts the attempts."""

    asked: list[str] = field(factory=list)

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"inputs": Spec((4,), "float32"), "targets": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        return 1

    def rows(self, block: int) -> int:
        return 4

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        self.asked.append("block")
        raise SigmaDataError("the disk is gone")


def trainer(**settings: Any) -> NetworkTrainer:
    network = Input(4) + Dense(3) + Output(2) + SoftmaxCrossEntropy()
    found = Environment("stages").create_trainer(
        **{"data": (X, Y), "network": network, "optimiser": "adam", "batch_size": 2, "epochs": inf, **settings}
    )
    assert isinstance(found, NetworkTrainer)
    return found


# -- settings ----------------------------------------------------------------------------------------------------------
def test_a_trainer_keeps_its_settings_as_they_were_given() -> None:
    hook = Quiet()
    given: dict[str, Any] = {
        "data": (X, Y), "optimiser": {"type": "adam", "learning_rate": 0.5}, "iterator": "sequential",
        "hooks": {"quiet": hook}, "metrics": ["accuracy"], "preprocessors": ["scale"],
        "initialisers": {"w": {"match": "**.weights", "type": "constant", "value": 2.0}},
        "network": "input(4) + output(2) + softmax_cross_entropy()", "backend": "numpy",
    }  # fmt: skip
    made = trainer(**given)
    made.fit(epochs=1)
    now = {name: getattr(made, name) for name in given}
    assert all(now[name] is value or now[name] == value for name, value in given.items())
    assert now["hooks"]["quiet"] is hook
    assert (hook.every, given["metrics"], given["preprocessors"]) == ("2 epochs", ["accuracy"], ["scale"])
    assert str(made.session.setup.order.hooks["quiet"].every) == "every 2 epochs"
    assert isinstance(made.session.setup.model.optimisers["optimiser"].type, Adam)
    assert made.session.setup.model.optimisers["optimiser"].type.learning_rate == 0.5
    made.close()


def test_settings_can_be_shared_by_two_trainers() -> None:
    one = trainer(hooks={"quiet": Quiet()})
    one.fit(epochs=1)
    two = trainer(hooks=one.hooks, data=one.data, network=one.network)
    two.fit(epochs=1)
    assert list(one.history["training.loss"]) == list(two.history["training.loss"])


# -- stages ------------------------------------------------------------------------------------------------------------
def test_a_preparation_stage_runs_once_and_uses_earlier_stages() -> None:
    stages = Stages(trainer())
    assert stages.model is stages.model is stages.fitting
    assert stages.model.network is stages.network
    assert {name: spec.shape for name, spec in stages.rows[1].items()} == {"inputs": (4,), "targets": ()}


def test_a_failed_stage_raises_each_time_without_a_collector() -> None:
    stages = Stages(trainer(data=Counting()))
    for _ in range(2):
        with pytest.raises(SigmaDataError, match="the disk is gone"):
            _ = stages.model


def test_a_failed_stage_is_reported_once_and_dependent_stages_are_skipped() -> None:
    faults, data = Faults(), Counting()
    stages = Stages(trainer(data=data), faults)
    for name in ("rows", "fitting", "rows"):
        with pytest.raises(Missing):
            getattr(stages, name)
    asked = len(data.asked)
    with pytest.raises(Missing):
        _ = stages.rows
    assert [(path, str(error)) for path, error in faults.found] == [(("data", "dataset"), "the disk is gone")]
    assert len(data.asked) == asked
    assert stages.model.sections["inputs"].shape == (4,)  # as declared by its input layer


def test_a_network_with_declared_shapes_needs_no_data() -> None:
    data = Counting()
    stages = Stages(trainer(data=data))
    assert stages.declared_model is not None
    assert {a: p.shape for a, p in stages.declared_model.shapes.parameters.items() if a.startswith("1-")} == {
        "1-dense.weights": (4, 3), "1-dense.biases": (3,),
    }  # fmt: skip
    assert data.asked == []


# -- all mistakes ------------------------------------------------------------------------------------------------------
def found(made: NetworkTrainer, *left_out: str) -> dict[tuple[str | int, ...], str]:
    return {path: str(error) for path, error in examine(made, left_out)}


def test_every_mistake_is_reported_with_its_path_in_the_trainers_tables() -> None:
    made = trainer(
        batch_size=5, precision="float16",
        initialisers={"a": ("9-*", "he_normal"), "b": ("**.weights", {"type": "constant", "value": 1.0})},
        optimiser=Adam(settings={"slow": {"match": "**", "beta1": 2.0, "rate": 1}, "none": {"match": "7-*"}}),
        hooks={"quiet": Quiet(when="nothing reaches 1"), "score": {"type": "accuracy", "on": "tets"}},
    )  # fmt: skip
    assert {path: text.partition(":")[2][:40].rstrip() for path, text in found(made).items()} == {
        ("run", "precision"): " the backend has no precision 'float16'.",
        ("data", "batch_size"): " a batch of 5 is larger than the data, 4",
        ("optimiser", "settings", "slow", "beta1"): " must be at least 0 and less than 1 (got",
        ("optimiser", "settings", "slow", "rate"): " no such setting.",
        ("optimiser", "settings", "none", "match"): " '7-*' matches no parameter. There are 1",
        ("initialisers", "a", "match"): " '9-*' matches no parameter. There are 1",
        ("hooks", "quiet", "when"): " reads 'nothing', which nothing here pub",
        ("hooks", "score"): " the data has no split 'tets'. There are",
    }


def test_the_first_failing_preprocessor_is_reported_whether_it_fits_or_applies() -> None:
    for wrong in ({"type": "one_hot", "section": "inputs"}, {"type": "scale", "section": "image"}):
        made = trainer(preprocessors={"first": "scale", "wrong": wrong, "last": {"type": "one_hot", "section": "x"}})
        assert [path for path, _ in examine(made)] == [("data", "preprocessors", "wrong")]


def test_excluded_parts_are_not_examined() -> None:
    data = Counting()
    made = trainer(data=data, network=None, hooks={"quiet": Quiet(when="nothing reaches 1")})
    assert found(made, "data", "network", "hooks") == {}
    assert data.asked == []
    assert list(found(made, "data", "network")) == [("hooks", "quiet", "when")]
    assert list(found(made, "data", "hooks")) == [("network", "architecture")]


def test_a_rule_that_fails_for_several_parameters_is_reported_once() -> None:
    made = trainer(initialisers={"all": ("**", {"type": "warm_start", "run": "runs/none"})})
    assert list(found(made)) == [("initialisers", "all")]
    assert len(examine(made)) == 1


def test_a_hook_that_reads_an_unpublished_value_is_refused_with_similar_names() -> None:
    with pytest.raises(SigmaConfigError, match="reads 'training.los', .* the address. Did you mean 'training.loss'?"):
        trainer(hooks={"quiet": Quiet(when="training.los reaches 1")}).fit(epochs=1)
