from __future__ import annotations

from collections.abc import Sequence

from sigma_curation.commands import Exclude, Include, Relabel
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.environment import Environment
from sigma_testing import CommandSuite


class TestExclude(CommandSuite):
    def make(self) -> Command:
        return Exclude([3, 1])

    def mistakes(self) -> Sequence[Command]:
        return [Exclude([99]), Exclude([*range(20)]), Exclude([1], split="test")]


class TestInclude(CommandSuite):
    def make(self) -> Command:
        return Include([1])

    def prepare(self, environment: Environment) -> None:
        environment.exclude([1, 2])

    def mistakes(self) -> Sequence[Command]:
        return [Include([5])]


class TestRelabel(CommandSuite):
    def make(self) -> Command:
        return Relabel([1], 0)

    def mistakes(self) -> Sequence[Command]:
        return [Relabel([1], {"inputs": 3})]
