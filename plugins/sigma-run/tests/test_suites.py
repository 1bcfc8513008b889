"""The components in the suites of their kinds."""

from __future__ import annotations

import numpy as np

import sigma_layers as layers
import sigma_optimisers as optimisers
from sigma_kernel import ConfigurationFormat, Environment
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
