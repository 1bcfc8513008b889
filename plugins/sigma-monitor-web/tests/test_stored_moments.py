"""Moments of a run that has ended: computed again from its folder alone, and shown as its checkpoints are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_monitor_control.protocol import Conversation
from sigma_monitor_web.archive import Archive
from sigma_testing.steering import wait_until

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
DATA = {"inputs": X, "targets": X @ np.array([[1.0], [2.0], [3.0]], "float32")}


def make_run(folder: Path | None) -> Environment:
    """Return a run of four iterations an epoch."""
    sigma = Environment("stored", folder=folder, seed=5)
    sigma.create_trainer(
        network="input(3) + dense(4) + output(1) + squared_difference()", data=DATA, batch_size=10,
        optimiser={"type": "adam", "learning_rate": 0.01}, backend="numpy",
    )  # fmt: skip
    return sigma


def ask(conversation: Conversation, do: str, **arguments: Any) -> Any:
    (line,) = conversation.receive(json.dumps({"id": 1, "do": do, **arguments}))
    answer = json.loads(line)
    return answer["result"] if "result" in answer else answer["error"]["message"]


def test_a_moment_between_checkpoints_has_its_true_weights_and_losses(tmp_path: Path) -> None:
    with make_run(tmp_path) as sigma:
        sigma.trainer("trainer").fit(iterations=16)
    assert sigma.run_folder is not None
    conversation = Conversation(Archive(sigma.run_folder))
    assert "no such state is kept" in ask(conversation, "layer", layer="1-dense", at=7)
    ask(conversation, "recall", at=7)
    wait_until(lambda: ask(conversation, "recalls")[0]["state"] != "running", 120.0)
    assert ask(conversation, "recalls")[0]["why"] == ""
    layer = ask(conversation, "layer", layer="1-dense", at=7)
    with make_run(None) as again:
        trainer = again.trainer("trainer")
        trainer.fit(iterations=7)
        weights = np.asarray(trainer.parameters()["network.layers.1-dense.weights"], np.float64)
        loss = trainer.evaluate("training")["loss"]
    told = layer["parameters"]["trainer.network.layers.1-dense.weights"]
    assert [told["low"], told["high"]] == [weights.min(), weights.max()]
    rows = ask(conversation, "losses", at=7, count=40)["rows"]
    assert np.mean([row["loss"] for row in rows]) == pytest.approx(loss, rel=1e-5)
