"""The components in the suites of their kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigma_layers as layers
import sigma_optimisers as optimisers
from sigma_kernel import ConfigurationFormat, Environment, SigmaConfigError
from sigma_run import Toml
from sigma_testing import ConfigurationSuite


class TestToml(ConfigurationSuite):
    def make(self) -> ConfigurationFormat:
        return Toml()

    def environment(self) -> Environment:
        environment = Environment("small", folder=None)
        trainer = environment.create_trainer("trainer", backend="numpy", batch_size=2)
        trainer.data = {"training": {"inputs": np.eye(4, dtype=np.float32), "targets": np.arange(4) % 2}}
        trainer.network = layers.Input(4) + layers.Output(2) + layers.SoftmaxCrossEntropy()
        trainer.optimiser = optimisers.GradientDescent(learning_rate=0.1)
        return environment


def test_a_format_need_not_describe_trainers_for_other_processes(tmp_path: Path) -> None:
    class Bare(ConfigurationFormat):
        def describe(self, environment: Any, run: Path) -> str:
            return ""

        def save(self, environment: Any, trainer: Any, path: Path | str) -> Path:
            return Path(path)

    with pytest.raises(SigmaConfigError, match="Bare describes no trainer for other processes. Train in this one"):
        Bare().describe_trainer(None, tmp_path)
    with pytest.raises(SigmaConfigError, match="Bare builds no environment from a text. Train in one process"):
        Bare().build("", tmp_path)
