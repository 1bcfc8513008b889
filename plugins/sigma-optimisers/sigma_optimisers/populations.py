"""Populations of parameters: their losses, and their ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective
from sigma_kernel.graph import Node, constant

Nodes = Mapping[str, Node]


def normals(objective: Objective, count: int) -> dict[str, Node]:
    """Return standard normal numbers for each of ``count`` members and each parameter, new ones in each step."""
    key = objective.key("population")
    return {
        address: key.for_layer(address).normal((count, *node.shape), dtype=node.dtype)
        for address, node in sorted(objective.parameters.items())  # the numbers depend on the order
    }


def losses(objective: Objective, members: Nodes) -> Node:
    """Return the loss of each member, computed sequentially; infinity for NaN."""
    names = [*members]

    def body(*values: Node) -> tuple[list[Node], list[Node]]:
        return [], [objective.loss(dict(zip(names, values, strict=True)))]

    _, (scores,) = f.scan(body, [], [members[address] for address in names])
    return f.where(f.is_finite(scores), scores, np.inf)


def ranks(values: Node) -> Node:
    """Return the rank of each value, 0 for the smallest, int32; of equal values the first comes first."""
    (count,) = values.shape
    row, column = f.expand(values, 0), f.expand(values, 1)
    earlier = constant(np.tri(count, k=-1, dtype=bool), "bool")
    before = f.logical_or(f.less(row, column), f.logical_and(f.equal(row, column), earlier))
    return f.sum(f.cast(before, "int32"), axis=1)
