"""The command meets the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_cluster.command import cluster
from sigma_testing import VerbSuite

FILE = """format = 1
[run]
operator = { type = "local", shards = 2 }
[data]
dataset = "iris"
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 2
"""


class TestCluster(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")  # contracts of transports are about arrays

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("flowers.toml").write_text(FILE)

    def make(self) -> click.Command:
        return cluster

    def arguments(self) -> Sequence[str]:
        return ["plan", "flowers.toml"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        wrong = (["--bandwidth", "0"], ["--latency", "-1"], ["--set", "run.operator.shards=x"])
        return [
            ["plan"],
            ["plan", "nowhere.toml"],
            ["check", "flowers.toml"],
            *(["plan", "flowers.toml", *options] for options in wrong),
        ]
