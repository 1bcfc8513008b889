"""Freeze and release fulfil the contract of commands."""

from __future__ import annotations

from collections.abc import Sequence

from sigma_kernel import Command, Environment
from sigma_optimisers import Freeze, Release
from sigma_testing import CommandSuite

WEIGHTS = "network.layers.*.weights"


class TestFreeze(CommandSuite):
    def make(self) -> Command:
        return Freeze(WEIGHTS)

    def mistakes(self) -> Sequence[Command]:
        return [Freeze("network.layers.*.bias"), Freeze("optimiser.learning_rate")]


class TestRelease(CommandSuite):
    def make(self) -> Command:
        return Release(WEIGHTS)

    def prepare(self, environment: Environment) -> None:
        environment.send("freeze", pattern=f"trainer.{WEIGHTS}")
