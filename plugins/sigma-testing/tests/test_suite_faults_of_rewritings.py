"""The suite of rewritings fails for planted faults."""

from __future__ import annotations

from itertools import count

import pytest

from sigma_kernel import Node, Rewriting, functions as f
from sigma_kernel.graph import symbol, with_inputs
from sigma_testing import RewritingSuite

from .faults import check_caught


class Doubled(Rewriting):
    """Double the results of tanh."""

    surrogate = False

    def replace(self, node: Node, inputs: tuple[Node, ...], training: bool) -> Node:
        return self.change(with_inputs(node, inputs), training) if node.op == "tanh" else with_inputs(node, inputs)

    def change(self, node: Node, training: bool) -> Node:
        return node * 2.0


class DoesNothing(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node


class LosesRows(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node[:1]


class Narrows(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return f.cast(node, "float32")


class ReadsOthers(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node * symbol((), node.dtype, "rate")


class Counts(Doubled):
    calls = count()

    def change(self, node: Node, training: bool) -> Node:
        return node * (2.0 + next(self.calls))


class Unmatched(Doubled):
    def __init__(self, *, match: str = "**") -> None:
        super().__init__()


class DividesByZero(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node / f.abs(node)


class ReadsTheBatch(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node / f.max(f.abs(node) + 1.0)


class Rounds(Doubled):
    def change(self, node: Node, training: bool) -> Node:
        return node + f.stop(f.floor(node * 8.0 + 0.5) / 8.0 - node)


class SaysThatItRounds(Rounds):
    surrogate = True


USED = "test_it_can_be_made_and_used"
REWRITINGS: dict[type[Rewriting], str] = {
    Doubled: "",
    SaysThatItRounds: "",
    DoesNothing: "test_it_replaces_nodes",
    LosesRows: USED,
    Narrows: USED,
    ReadsOthers: USED,
    Counts: "test_it_returns_the_same_graph_again",
    Unmatched: "test_layers_that_do_not_match_stay_as_they_are",
    DividesByZero: "test_results_are_finite",
    ReadsTheBatch: "test_a_row_is_evaluated_alike_in_every_batch",
    Rounds: "test_gradients_agree_with_finite_differences",
}


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_a_fault_in_a_rewriting_is_caught(rewriting: type[Rewriting]) -> None:
    class Suite(RewritingSuite):
        def make(self) -> Rewriting:
            return rewriting()

    check_caught(Suite(), REWRITINGS[rewriting])
