"""Requests about an earlier moment, for a fake run whose numbers follow from the iteration."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from attrs import define, field, frozen

from sigma_kernel.contracts import LayerEntry, RowLosses, StateEntry
from sigma_monitor_control.protocol import Conversation
from sigma_testing import FakeTrainerView, FakeView

WEIGHTS = "trainer.network.layers.1-dense.weights"
LAYERS = [
    LayerEntry("0-input", "input", (), (2,), {}, {"section": "inputs"}),
    LayerEntry("1-dense", "dense", ("0-input",), (2,), {WEIGHTS: (2, 3)}, {}),
]


@frozen(eq=False)
class Past(FakeTrainerView):
    """A trainer whose weights are its iteration, and of whose rows as many are wrong."""

    view: Told
    iteration: int = 9

    def state(self, iteration: int) -> Past:
        super().state(iteration)
        return Past(self.view, iteration)

    def parameters(self) -> dict[str, np.ndarray]:
        return {WEIGHTS: np.full((2, 3), float(self.iteration))}

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        self.view.passes.append(self.iteration)
        predicted = (np.arange(10) < self.iteration).astype(int)
        return RowLosses(np.arange(10), np.full(10, float(self.iteration)), predicted, np.zeros(10, int))

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        return {"output": np.full((len(samples["inputs"]), 1), float(self.iteration))}

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        return {name: np.asarray(samples["inputs"]) * self.iteration for name in ("0-input", "1-dense")}


@define(eq=False)
class Told(FakeView):
    """A run that notes of which moments losses are computed."""

    shown: type[FakeTrainerView] = Past
    passes: list[int] = field(factory=list)


@pytest.fixture
def view() -> Told:
    values = {"trainer.iteration": 9, WEIGHTS: np.full((2, 3), 9.0), "trainer.histogram.updates.1-dense.edges": [0, 1]}
    kept = [StateEntry(at, at, kept=True, saved=False) for at in (2, 4)]
    return Told(values=values, layers=LAYERS, kept=kept)


def ask(view: FakeView, do: str, **arguments: Any) -> Any:
    (line,) = Conversation(view).receive(json.dumps({"id": 1, "do": do, **arguments}))
    answer = json.loads(line)
    return answer["result"] if "result" in answer else answer["error"]["message"]


def test_parameters_losses_and_predictions_are_those_of_then_and_without_a_moment_those_of_now(view: Told) -> None:
    for at, given in ((2, {"at": 2}), (4, {"at": 4, "trainer": "trainer"}), (9, {"at": None}), (9, {})):
        layer = ask(view, "layer", layer="1-dense", **given)
        assert (layer["at"], layer["parameters"][WEIGHTS]["mean"]) == (at, at)
        assert ("trainer.histogram.updates.1-dense" in layer["updates"]) == (at == 9), "what hooks publish is of now"
        found = ask(view, "losses", **given)
        assert (found["at"], {row["loss"] for row in found["rows"]}) == (at, {at})
        assert ask(view, "confusion", split="training", **given)["wrong"] == at
        assert ask(view, "predict", inputs={"inputs": [1, 2]}, **given)["output"]["values"] == [at]
        assert ask(view, "activations", layer="1-dense", inputs={"inputs": [1, 2]}, **given)["values"] == [at, 2 * at]


def test_the_losses_of_a_moment_are_computed_once_and_those_of_now_stay(view: Told) -> None:
    ask(view, "losses")
    for do in ("losses", "confusion"):
        ask(view, do, split="training", at=2)
    assert view.passes == [9, 2]
    ask(view, "confusion", split="training")
    ask(view, "losses", at=4)
    assert view.passes == [9, 2, 4]


def test_a_map_of_a_moment_has_its_iteration_and_its_losses_and_is_turned_like_the_last(view: Told) -> None:
    found = [ask(view, "map", of="1-dense", losses=True, count=10, at=at) for at in (2, 4)]
    assert [one["at"] for one in found] == [2, 4]
    assert np.frombuffer(base64.b64decode(found[0]["loss"]), "<f4").tolist() == [2.0] * 10
    first, second = (np.frombuffer(base64.b64decode(one["x"]), "<f4") for one in found)
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5, atol=1e-5)


def test_a_moment_that_is_not_kept_or_no_iteration_is_refused(view: Told) -> None:
    assert "iteration 3: is not kept" in ask(view, "confusion", split="training", at=3)
    assert ask(view, "losses", at="2") == "losses.at: must be the iteration of a state of a trainer (got '2')."
    assert "at" in ask(view, "balance", at=2), "rows are those of now: no moment is asked for"
