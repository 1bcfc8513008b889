"""Train all recipes with shipped data for a moment, and describe where they end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sigma_run.launcher import main
from tests.proofs.machine import machine

FILE = Path(__file__).with_name("parameters.json")
BACKENDS = ("numpy", "numba")
os.environ["SIGMA_NUMBA_OPTIMISATION"] = "3"  # the recorded bits are those of optimised programs
PLAYS = "data.split={training=0.02, validation=0.005, rest=0.975}"  # of the text

# How each recipe is shortened: its epochs, and settings. Left out: mnist and parkinsons, whose data are not shipped.
SHORT: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "autoencoder": (1, ()),
    "bench-cnn": (1, ("data.rows=300",)),
    "bench-deep": (1, ("data.rows=320",)),
    "bench-iris": (1, ("data.rows=200",)),
    "bench-lstm": (1, ("data.rows=64",)),
    "bench-mlp-large": (1, ("data.rows=200",)),
    "bench-mlp-small": (1, ("data.rows=500",)),
    "bench-resnet": (1, ("data.rows=32", "data.batch_size=16")),
    "bench-transformer": (1, ("data.rows=8", "data.batch_size=4")),
    "charmodel": (1, (PLAYS, "data.length=40")),
    "cnn": (1, ()),
    "digits": (2, ()),
    "gan": (1, ()),
    "iris": (10, ()),
    "lstm": (1, ("data.rows=500",)),
    "residual": (1, ()),
    "tictactoe": (2, ()),
    "wdbc": (8, ()),
    "xor": (40, ()),
}


@contextmanager
def empty_folder() -> Iterator[Path]:
    """Make an empty folder the working directory for a while."""
    before = Path.cwd()
    with TemporaryDirectory() as place:
        os.chdir(place)
        try:
            yield Path(place)
        finally:
            os.chdir(before)


@cache
def train(recipe: str, backend: str) -> dict[str, Any]:
    """Return the iterations, the metrics and the digest of the parameters of a shortened recipe."""
    epochs, settings = SHORT[recipe]
    rows = [word for setting in settings for word in ("--set", setting)]
    command = ["run", recipe, "--backend", backend, "--epochs", str(epochs), "--json", "--quiet", *rows]
    with empty_folder(), redirect_stdout(StringIO()) as output:
        assert main(command) == 0, f"sigma {' '.join(command)}"
    summary = json.loads(output.getvalue())
    return {name: summary[name] for name in ("iterations", "metrics", "parameters_sha256")}


def record() -> Path:
    """Train everything, and write the file."""
    found: dict[str, Any] = {"machine": {backend: machine(backend) for backend in BACKENDS}}
    for backend in BACKENDS:
        found[backend] = {recipe: train(recipe, backend) for recipe in SHORT}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return FILE
