"""Write the complete configuration of every recipe and of a run described from Python, as run folders hold it."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

from sigma_kernel import Environment, catalogue
from sigma_run import config
from tests.proofs.parameters import empty_folder

FOLDER = Path(__file__).with_name("configurations")
HALVES = {"training": 0.5, "validation": 0.5}
HALF = {"type": "constant", "value": 0.5}


def recipes() -> list[str]:
    """Return the names of the recipes of the default set."""
    return sorted(
        one.name for one in catalogue().components() if one.kind == "recipe" and one.distribution == "sigma-recipes"
    )


def of_recipe(name: str) -> str:
    """Return the complete configuration of a recipe, as a run below the folder of runs gets it."""
    with empty_folder() as place, patch.dict(os.environ):
        os.environ.pop("SIGMA_BACKEND", None)  # what tests set
        return config.resolved_toml(config.load(catalogue().load("recipe", name).text, name=name), place / "runs")


def from_python() -> str:
    """Return the configuration of a run described from Python: two trainers, and every part that has a name."""
    with empty_folder(), Environment("described", folder="runs", seed=11, precision="float64") as sigma:
        sigma.monitors = {"console": {"type": "console"}}
        sigma.create_trainer(
            "first", backend="numpy", batch_size=25, epochs=2, data={"type": "iris", "split": HALVES},
            network="input(4) + 2 * dense(5, activation='tanh') + dropout(0.25) + output(3) + softmax_cross_entropy()",
            operator={"type": "local", "shards": 2}, iterator="sequential", last_batch="drop",
            preprocessors={"scale": {"type": "standardise"}}, metrics={"right": {"type": "accuracy", "top": 2}},
            initialisers={"weights": ("**.weights", {"type": "he_normal"}), "biases": ("**.biases", HALF)},
            optimiser={"type": "adam", "learning_rate": 0.02,
                       "settings": {"slow": {"match": "*.biases", "learning_rate": 0.005}},
                       "schedules": {"learning_rate": {"type": "cosine", "total": "10 epochs"}},
                       "transforms": {"clip": {"type": "clip_global_norm", "limit": 1.0}},
                       "modifiers": {"average": {"type": "average", "decay": 0.9}}},
            hooks={"score": {"type": "accuracy", "on": "validation", "every": "1 epoch"},
                   "end": {"type": "stop", "when": "validation.accuracy reaches 0.9 for 2 epochs or epoch reaches 2"},
                   "rows": {"type": "row_loss", "background": True, "every": "5 iterations"}},
        )  # fmt: skip
        sigma.create_trainer(
            "second", backend="numpy", epochs=1, data="digits",
            network="input(8, 8) + flatten() + dense(4) + output(10) + softmax_cross_entropy()",
            optimisers={
                "weights": {"type": "momentum", "learning_rate": 0.01, "match": "*.weights"},
                "biases": {"type": "gradient_descent", "learning_rate": 0.1, "match": "*.biases"}},
        )  # fmt: skip
        sigma.run()
        assert sigma.run_folder is not None
        return (sigma.run_folder / "config.toml").read_text("utf-8")


def record() -> Path:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for name in recipes():
        (FOLDER / f"{name}.toml").write_text(of_recipe(name), encoding="utf-8")
    (FOLDER / "from-python.toml").write_text(from_python(), encoding="utf-8")
    return FOLDER
