"""Whole runs of recipes agree with the reference backend."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_layers import Conv2d, Flatten, Input, MaxPool, Output, SoftmaxCrossEntropy
from sigma_run.launcher import main

pytestmark = pytest.mark.rooms


@pytest.mark.parametrize("recipe", ["iris", "digits"])
def test_a_recipe_run_ends_with_the_results_of_the_reference(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    summaries = {}
    for backend in ("numpy", "numba"):
        changes = [f"run.backend={backend}", "hooks.finish.when=epoch reaches 3"]
        options = [part for change in changes for part in ("--set", change)]
        assert main(["run", recipe, "--json", "--quiet", *options]) == 0
        summaries[backend] = json.loads(capsys.readouterr().out)
    assert summaries["numba"]["backend"] == "numba"
    assert summaries["numba"]["iterations"] == summaries["numpy"]["iterations"]
    assert summaries["numba"]["metrics"] == pytest.approx(summaries["numpy"]["metrics"], rel=1e-3)


def test_pooling_is_moved_before_relu_in_the_step_and_its_gradient():
    with Environment("images", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend="numpy")  # which the graph does not depend on
        images = Input(1, 8, 8) + Conv2d(2, 3, padding=1, activation="relu") + MaxPool(2)
        trainer.optimiser = "gradient_descent"
        trainer.network = images + Flatten() + Output(3) + SoftmaxCrossEntropy()
        trainer.data = {"inputs": np.zeros((6, 1, 8, 8), np.float32), "targets": np.zeros(6, np.int32)}
        sigma.prepare()
        programs = trainer.session.setup.programs
        programs.compile(6, shards=1)
    (step,) = programs.steps.values()
    assert {x.op for node in step.graph if node.op in ("pool_argmax", "max_pool") for x in node.inputs} == {"add"}
