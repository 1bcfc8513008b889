"""The command passes the suite of commands, and the charts that of charts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import click
import pytest

from sigma_kernel import Chart
from sigma_plot import Figure, Svg
from sigma_plot.command import plot
from sigma_testing import ChartSuite, VerbSuite


class TestPlot(VerbSuite):
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


class TestSvg(ChartSuite):
    def make(self) -> Chart:
        return Svg()


class TestFigure(ChartSuite):
    @pytest.fixture(autouse=True)
    def _without_matplotlib(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", MagicMock())  # tests/peers draw with it

    def make(self) -> Chart:
        return Figure()
