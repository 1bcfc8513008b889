"""The command passes the suite of commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_kernel.testing import CommandSuite
from sigma_plot.command import plot


class TestPlot(CommandSuite):
    heavy = ("matplotlib",)  # curves are arrays

    @pytest.fixture(autouse=True)
    def _measured(self, tmp_path: Path) -> None:
        self.run = tmp_path / "a"
        self.run.mkdir()
        values = {"training.loss": {"last": 1.0, "low": 0.5, "high": 2.0}}
        row = {"trainer": "trainer", "iteration": 10, "epoch": 1, "seconds": 0.5, "values": values}
        (self.run / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in ({"format": 1}, row)))

    def make(self) -> click.Command:
        return plot

    def arguments(self) -> Sequence[str]:
        return [str(self.run)]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [[], ["--over", "hours", str(self.run)], [str(self.run / "nowhere")]]
