"""The command passes the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_report.command import report
from sigma_testing import VerbSuite


class TestReport(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")  # measures are of arrays

    @pytest.fixture(autouse=True)
    def _trained(self, flowers: Path) -> None:
        self.run = flowers

    def make(self) -> click.Command:
        return report

    def arguments(self) -> Sequence[str]:
        return [str(self.run), "--repeats", "1"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        run = str(self.run)
        wrong = (["--on", "holidays"], ["--output", "other"], ["--rows", "0"], ["--save", f"{run}/none/report.html"])
        return [[], [str(self.run / "nowhere")], *([run, *options] for options in wrong)]
