from collections.abc import Sequence

import click

from sigma_testing import VerbSuite
from acme_kinds.hail_command import hail


class TestHail(VerbSuite):
    def make(self) -> click.Command:
        return hail

    def arguments(self) -> Sequence[str]:
        return ["you"]

    def test_it_says_hello(self) -> None:
        assert self.call("you").out == "Hello, you.\n"
