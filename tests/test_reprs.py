"""What a notebook prints of an object fits on a screen, whatever was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, load
from sigma_kernel.config import build, load as read
from sigma_kernel.plugins.catalogue import catalogue

TEXT = """
format = 1

[run]
name = "small"

[data]
dataset = "digits"

[network]
architecture = 'input(8, 8) + flatten() + 8 * dense(30) + output(10) + softmax_cross_entropy()'

[trainer]
optimiser = "adam"

[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""


def short(thing: Any) -> str:
    text = repr(thing)
    assert len(text) < 500, text[:2000]
    assert text.count("\n") < 10
    return text


def test_an_environment_and_its_trainers_say_what_they_are_and_how_far_they_got() -> None:
    data = {"inputs": np.zeros((5000, 40), np.float32), "targets": np.zeros(5000, np.int32)}
    with Environment("many") as sigma:
        for i in range(7):
            sigma.create_trainer(f"t{i}", data=data)
        assert short(sigma.trainer("t0")) == "Trainer('t0', no network)"
        assert short(sigma) == (
            "Environment('many', created, Trainer('t0', no network), Trainer('t1', no network), "
            "Trainer('t2', no network), Trainer('t3', no network), Trainer('t4', no network), and 2 more)"
        )


@pytest.mark.rooms
def test_what_a_run_leaves_prints_in_a_few_lines(tmp_path: Path) -> None:
    with build(read(TEXT), catalogue(), tmp_path) as sigma:
        sigma.run()
        trainer = sigma.trainer("trainer")
        assert short(sigma).startswith("Environment('small', stopped, Trainer('trainer', ")
        assert short(trainer).endswith(f", epoch 2, iteration {trainer.session.moment.iteration})")
        assert sigma.run_folder is not None
        model = load(sigma.run_folder)
        assert short(model).startswith("Trained('trainer', sigma-layers:input(8, 8) + ")
        assert short(model).endswith(f"{trainer.session.moment.iteration})")
        assert short(model.checkpoint).startswith("Checkpoint(")
        assert short(model.history.curve("training.loss")).startswith("Curve(")
        for thing in (trainer.session, trainer.session.setup, trainer.session.state, trainer.session.setup.model):
            short(thing)
        assert short(trainer.network[0]).startswith("sigma-layers:input(8, 8) + ")
        assert short(model.network).startswith("Network(sigma-layers:input(8, 8) + ")
        short(300 * trainer.network[0])
        for thing in (
            trainer.history,
            model.history,
            sigma.registry,
            trainer.session.setup.feed,
            sigma.summary(),
            trainer.summary(),
        ):
            short(thing)
