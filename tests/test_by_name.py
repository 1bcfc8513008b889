"""From Python, components may be named as in a file; what cannot be is refused before anything is trained."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays
from sigma_hooks import Accuracy, Stop
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adam

ROOT = Path(__file__).parents[1]


def _trained(**settings: Any) -> dict[str, float]:
    data = Arrays(inputs=np.eye(4, dtype=np.float32), targets=np.arange(4) % 2)
    with Environment("named") as sigma:
        common = {"data": {"training": data, "validation": data}, "batch_size": 4, "optimiser": Adam(0.1)}
        trainer = sigma.create_trainer(**{**common, **settings})
        trainer.network = Input(4) + Output(2) + SoftmaxCrossEntropy()
        trainer.fit(epochs=3)
        return sigma.summary().metrics


@pytest.mark.parametrize("optimiser", ["adam", {"type": "adam", "learning_rate": 0.01}, Adam])
def test_an_optimiser_may_be_a_name_a_table_or_a_class(optimiser: Any) -> None:
    assert "training.loss" in _trained(optimiser=optimiser)


def test_hooks_may_be_names_and_their_times_and_criteria_texts() -> None:
    hooks = {"score": "accuracy", "often": Accuracy(every="2 epochs"), "end": Stop(when="epoch reaches 2")}  # type: ignore[arg-type]
    assert "validation.accuracy" in _trained(hooks=hooks)


def test_hooks_without_names_are_refused() -> None:
    with pytest.raises(SigmaConfigError, match="hooks: each needs a name"):
        _trained(hooks=[Accuracy()])


def test_a_split_that_is_not_there_is_refused_before_training() -> None:
    with pytest.raises(SigmaConfigError, match="no split 'vaildation'. Did you mean 'validation'?"):
        _trained(hooks={"score": Accuracy(on="vaildation")})


@pytest.mark.parametrize("data", [(np.eye(4), np.zeros(4)), [{"inputs": np.zeros(4)}]])
def test_data_that_is_none_is_refused_with_what_to_wrap_it_in(data: Any) -> None:
    with pytest.raises(SigmaConfigError, match="Wrap arrays in Arrays"):
        _trained(data=data)


@pytest.mark.parametrize("setting", ["scope", "on_error"])
def test_a_scope_or_a_policy_that_is_not_there_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=setting):
        Accuracy(**{setting: "ignor"})


LAZY = [
    ".".join(path.parts[-3:-1]) if path.parts[-3] == "sigma_kernel" else path.parts[-2]
    for path in sorted([*ROOT.glob("sigma_kernel/**/__init__.py"), *ROOT.glob("plugins/*/sigma_*/__init__.py")])
    if "__getattr__" in path.read_text()
]


@pytest.mark.parametrize("room", LAZY)
def test_a_star_brings_what_a_room_exports_and_nothing_else(room: str) -> None:
    names: dict[str, Any] = {}
    module = import_module(room)
    exec(f"from {room} import *", names)
    names.pop("__builtins__")
    assert set(names) == set(module.__all__)
    assert set(getattr(module, "_EXPORTS", names)) == set(names)
