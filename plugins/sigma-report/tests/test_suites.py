"""The commands pass the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from sigma_report.command import report
from sigma_report.opening import open_archive
from sigma_report.sharing import share
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


class TestShare(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")

    @pytest.fixture(autouse=True)
    def _trained(self, flowers: Path, tmp_path: Path) -> None:
        self.run, self.page = flowers, tmp_path / "page.html"

    def make(self) -> click.Command:
        return share

    def arguments(self) -> Sequence[str]:
        return [str(self.run), "--save", str(self.page)]

    def mistakes(self) -> Sequence[Sequence[str]]:
        run = str(self.run)
        return [[], [str(self.run / "nowhere")], [run, "--save", "x.pdf"], [run, "--on", "x"], [run, "--rows", "-1"]]


class TestOpen(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")

    @pytest.fixture(autouse=True)
    def _shared(self, flowers: Path, tmp_path: Path) -> None:
        self.file, self.out = tmp_path / "run.zip", tmp_path / "out"
        share.main([str(flowers), "--save", str(self.file)], standalone_mode=False)

    def make(self) -> click.Command:
        return open_archive

    def arguments(self) -> Sequence[str]:
        return [str(self.file), "--into", str(self.out)]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [[], [str(self.out / "nowhere")], [*self.arguments(), "--replay", "--resume"]]
