"""The command passes the suite of commands, the hook of trials that of hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_kernel import Hook
from sigma_search.command import search_command
from sigma_search.hook import TrialHook
from sigma_testing import HookSuite, VerbSuite

FILE = """
format = 1
[data]
dataset = "iris"
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 2
[hooks.score]
type = "accuracy"
on = "validation"
every = "1 epoch"
[search]
trials = 1
maximise = "validation.accuracy"
space = { "trainer.optimiser.learning_rate" = { low = 0.01, high = 0.1 } }
"""


class TestSearch(VerbSuite):
    heavy = ("matplotlib", "optuna", "torch", "jax")  # settings may be arrays

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("flowers.toml").write_text(FILE)

    def make(self) -> click.Command:
        return search_command

    def arguments(self) -> Sequence[str]:
        return ["flowers.toml"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        wrong = (["--trials", "0"], ["--parallel", "0"], ["--set", "search.trials=x"], ["--set", "search.space.a=1"])
        return [
            [],
            ["nowhere.toml"],
            ["iris"],
            ["--resume", "nowhere"],
            ["flowers.toml", "--resume", "nowhere"],
            *(["flowers.toml", *options] for options in wrong),
        ]


class TestTrial(HookSuite):
    def make(self) -> Hook:
        return TrialHook("validation.accuracy", maximise=True, bounds=[[8, 0.6]], best=True)
