"""Moments between the kept states of a real run, computed again for a client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, EnvironmentView
from sigma_kernel.contracts import Branch
from sigma_monitor_control.protocol import Conversation, recalls
from sigma_testing import FakeView
from sigma_testing.steering import wait_until

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}
RATE = "trainer.optimiser.learning_rate"


def make_run(folder: Path | None) -> Environment:
    """Return a run of four iterations an epoch."""
    sigma = Environment("recalls", folder=folder, seed=5)
    sigma.create_trainer(
        network="input(3) + dense(4) + dropout(0.2) + output(1) + squared_difference()", data=DATA, batch_size=10,
        optimiser={"type": "adam", "learning_rate": 0.01}, backend="numpy",
    )  # fmt: skip
    return sigma


@pytest.fixture
def sigma(tmp_path: Path) -> Iterator[Environment]:
    with make_run(tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=8)
        sigma.save("eighth")
        sigma.trainer("trainer").fit(iterations=16)
        yield sigma


@pytest.fixture
def conversation(sigma: Environment) -> Conversation:
    return Conversation(EnvironmentView(sigma, threading.Event()))


def ask(conversation: Conversation, do: str, **arguments: Any) -> Any:
    (line,) = conversation.receive(json.dumps({"id": 1, "do": do, **arguments}))
    answer = json.loads(line)
    return answer["result"] if "result" in answer else answer["error"]["message"]


def recall(conversation: Conversation, at: int) -> dict[str, Any]:
    """Compute a moment again, and wait for it; return where it stands then."""
    assert ask(conversation, "recall", at=at)["state"] == "running"
    wait_until(lambda: ask(conversation, "recalls")[0]["state"] != "running", 120.0)
    return dict(ask(conversation, "recalls")[0])


def train_anew(iterations: int) -> dict[str, np.ndarray]:
    """Return the parameters after so many iterations of the same run."""
    with make_run(None) as sigma:
        sigma.trainer("trainer").fit(iterations=iterations)
        return dict(sigma.trainer("trainer").parameters())


def test_a_moment_that_is_not_kept_is_computed_again_and_shown(sigma: Environment, conversation: Conversation) -> None:
    before = {name: np.array(value) for name, value in sigma.trainer("trainer").parameters().items()}
    assert "iteration 7: no such state is kept" in ask(conversation, "layer", layer="1-dense", at=7)
    assert recall(conversation, 7) == {"iteration": 7, "epoch": 1, "reached": 7, "state": "done", "why": ""}
    layer = ask(conversation, "layer", layer="1-dense", at=7)
    assert layer["at"] == 7
    view = conversation.view.trainer("trainer").with_state(recalls.find_recalled(conversation.view, "trainer", 7))
    shown, true = view.parameters(), train_anew(7)
    assert {name.removeprefix("trainer."): x.tobytes() for name, x in shown.items()} == {
        name: np.asarray(x).tobytes() for name, x in true.items()
    }
    told = layer["parameters"]["trainer.network.layers.1-dense.weights"]
    assert told["mean"] == pytest.approx(float(true["network.layers.1-dense.weights"].mean()), rel=1e-6)
    after = sigma.trainer("trainer").parameters()
    assert all(np.array_equal(before[name], after[name]) for name in before), "the run is as it was"


def test_a_page_is_told_how_far_it_is(conversation: Conversation) -> None:
    conversation.receive(json.dumps({"id": 5, "do": "follow", "trainer": "trainer"}))
    assert "recalls" not in json.loads(conversation.events(0.0)[0])["event"]
    ask(conversation, "recall", at=5)
    news = [json.loads(line)["event"] for line in conversation.events(1.0)]
    assert news[0]["recalls"][0] == {"iteration": 5, "epoch": None, "reached": 0, "state": "running", "why": ""}
    wait_until(lambda: ask(conversation, "recalls")[0]["state"] == "done", 120.0)
    news = [json.loads(line)["event"] for line in conversation.events(2.0)]
    assert news[-1]["recalls"][0]["epoch"] == 1


def test_one_is_computed_at_a_time_and_can_be_cancelled(conversation: Conversation) -> None:
    assert ask(conversation, "cancel_recall") is False
    ask(conversation, "recall", at=7)
    assert "iteration 7 is being computed" in ask(conversation, "recall", at=9)
    (moment,) = recalls.recalled_moments(conversation.view).moments
    assert ask(conversation, "cancel_recall") is True
    assert moment.handle.wait(0.0), "its process has ended"
    assert ask(conversation, "recalls")[0]["state"] == "cancelled"
    assert recall(conversation, 7)["state"] == "done", "it can be begun again, in place of the first attempt"
    assert len(ask(conversation, "recalls")) == 1


def test_a_moment_of_a_line_that_was_left_is_no_longer_shown(sigma: Environment, conversation: Conversation) -> None:
    sigma.rewind("eighth")
    sigma.set(RATE, 0.5)
    sigma.trainer("trainer").fit(iterations=12)
    recall(conversation, 7)
    recall(conversation, 13)
    assert [one["iteration"] for one in ask(conversation, "recalls")] == [13, 7]
    sigma.rewind("eighth")
    assert [one["iteration"] for one in ask(conversation, "recalls")] == [7]
    assert "no such state" in ask(conversation, "layer", layer="1-dense", at=13)
    assert ask(conversation, "layer", layer="1-dense", at=7)["at"] == 7


def test_what_was_never_reached_has_a_reason(conversation: Conversation) -> None:
    answer = recall(conversation, 900)
    assert answer["state"] == "failed"
    assert "iteration 900 of branch 0 is not known" in answer["why"]


def test_whoever_may_only_read_and_a_run_without_a_folder_are_refused(conversation: Conversation) -> None:
    reader = Conversation(conversation.view, scopes=frozenset({"read"}))
    assert "not allowed here" in ask(reader, "recall", at=7)
    assert "not allowed here" in ask(reader, "cancel_recall")
    assert ask(reader, "recalls") == []
    assert "has no folder" in ask(Conversation(FakeView()), "recall", at=7)


LINE = [Branch(0), Branch(1, 0, 8), Branch(2, 0, 4), Branch(2, 2, 0), Branch(3, 2, 6)]  # the fourth began with a reset


def test_the_branch_of_an_iteration_is_the_newest_that_has_led_to_the_present() -> None:
    assert [recalls.find_branch(LINE[:3], at) for at in (3, 4, 5, 9)] == [0, 0, 2, 2]
    assert [recalls.find_branch(LINE, at) for at in (1, 6, 7)] == [3, 3, 4], "not one before the reset"
    assert recalls.find_branch([Branch(2)], 0) == 0


def test_old_states_are_dropped_beyond_the_limits(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalls, "MOST_BYTES", 10)
    recall(conversation, 5)
    recall(conversation, 6)
    assert [one["iteration"] for one in ask(conversation, "recalls")] == [6]
