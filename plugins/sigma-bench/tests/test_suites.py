"""The command passes the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
import pytest

from sigma_bench import command
from sigma_bench.entry import Entry
from sigma_testing import VerbSuite


class TestBench(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")  # it computes with numpy

    @pytest.fixture(autouse=True)
    def _short(self, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "Entry", partial(Entry, least=0.001))
        self.file = small

    def make(self) -> click.Command:
        return command.bench

    def arguments(self) -> Sequence[str]:
        return [str(self.file), "--backends", "numpy", "--rounds", "1"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [["--rounds", "0"], ["no-such-recipe"], ["--grow", "sideways", str(self.file)]]
