from __future__ import annotations

from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Trainer
from sigma_testing import NullBackend, TrainerSuite
from sigma_testing.steering import Descent, Sweep
from sigma_training.data.dataset import Rows
from sigma_training.minimisation import Plain
from sigma_training.trainer import NetworkTrainer


class TestNetworkTrainer(TrainerSuite):
    def make(self) -> type[Trainer]:
        return NetworkTrainer

    def settings(self) -> dict[str, Any]:
        x = np.random.default_rng(7).normal(size=(23, 3))
        return {
            "network": Plain(
                lambda p, batch: f.mean(f.square(batch["inputs"] @ p["weights"] - batch["targets"])),
                {"weights": np.zeros((3, 1))},
                ("inputs", "targets"),
            ),
            "data": Rows({"inputs": x, "targets": x @ np.array([[1.0], [-2.0], [0.5]])}),
            "optimiser": Descent(learning_rate=0.05),
            "backend": NullBackend(),
            "operator": Sweep(),
            "batch_size": 5,
            "epochs": 3,
        }
