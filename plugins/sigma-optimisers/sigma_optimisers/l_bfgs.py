"""L-BFGS: a quasi-Newton method with a line search, for full batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Optimiser, Slot, Update, live
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import ge, whole
from sigma_optimisers.line_search import Point, strong_wolfe

FLAT = 1e-7  # largest element of a gradient that counts as 0, as in PyTorch

Nodes = Mapping[str, Node]


@define(eq=False)
class LBFGS(Optimiser):
    """Update by L-BFGS: a Newton step with an inverse Hessian estimated from the last steps, and a line search.

    The direction is ``-H g`` by the two-loop recursion over pairs of steps ``s`` and changes of the gradient ``y``,
    from ``H = (s . y) / (y . y)`` of the last pair. The line search looks for the strong Wolfe conditions, with the
    constants ``1e-4`` and ``0.9``, from a trial at 1, in the first step at ``min(1, 1 / sum(|g|))``. Pairs whose
    ``s . y`` is not positive, or lost in rounding, are not kept. Where the largest element of the gradient is at most
    ``1e-7``, parameters stay.

    One iteration of training is one step. It evaluates the loss and its gradient ``1 + evaluations`` times, whether the
    search needs them or not, and draws the same random numbers, such as those of dropout, each time. A step belongs to
    one batch, both its ends and its pair: give it all rows, ``batch_size`` = the number of rows.  Shards are refused,
    because one cannot compute the loss of the batch.

    Liu and Nocedal, On the Limited Memory BFGS Method for Large Scale Optimization, 1989; Nocedal and Wright, Numerical
    Optimization, 2006.  The arithmetic is that of ``torch.optim.LBFGS(line_search_fn="strong_wolfe", max_iter=1)``.

    Args:
        learning_rate: Scale of the direction of a parameter; the first trial is at its end.
        history: Number of pairs kept, each in two arrays like the parameter.
        evaluations: Evaluations of the line search in each step.
    """

    learning_rate: float = live(1.0, low=0.0)
    history: int = field(default=10, validator=[whole, ge(1)])
    evaluations: int = field(default=8, validator=[whole, ge(1)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the steps and the changes of the gradient, the oldest first; those of 0 are none."""
        shape = (self.history, *parameter.shape)
        return {"steps": Slot(0.0, shape), "changes": Slot(0.0, shape)}

    def build(self, objective: Objective) -> Update:
        """Build the update graph."""
        names, here, loss = [*objective.parameters], objective.parameters, objective.loss()
        slopes = objective.gradients()
        pairs = _Pairs({a: objective.slot(a, "steps") for a in names}, {a: objective.slot(a, "changes") for a in names})
        scaled = {a: x * objective.setting(a, "learning_rate") for a, x in pairs.direction(slopes).items()}
        descent = _dot(slopes, scaled)
        moving = f.logical_and(f.greater(_largest(slopes), FLAT), f.less(descent, 0.0))
        first = f.where(pairs.has_pairs, 1.0, f.minimum(1.0, 1.0 / _sum([f.sum(f.abs(x)) for x in slopes.values()])))

        def evaluate(at: Node) -> tuple[Node, Sequence[Node], Node]:
            there = {address: here[address] + at * scaled[address] for address in names}
            gradients = objective.gradients(there)
            return objective.loss(there), [gradients[address] for address in names], _dot(gradients, scaled)

        start = Point(loss * 0.0, loss, descent)
        old = [slopes[address] for address in names]
        length, after = strong_wolfe(evaluate, start, old, first, _largest(scaled), self.evaluations)
        step = {a: f.where(moving, length * scaled[a], 0.0) for a in names}
        change = {a: new - slopes[a] for a, new in zip(names, after, strict=True)}
        return Update({a: here[a] + step[a] for a in names}, pairs.and_one(step, change))


@define
class _Pairs:
    """The pairs of all parameters."""

    steps: Nodes
    changes: Nodes

    @property
    def has_pairs(self) -> Node:
        """Return whether there are pairs; the last entry is the last to be empty."""
        return f.greater(self._curvature(-1), 0.0)

    def _read_pair(self, number: int) -> tuple[Nodes, Nodes]:
        first, second = ({a: _entry(x, number) for a, x in held.items()} for held in (self.steps, self.changes))
        return first, second

    def _curvature(self, number: int) -> Node:
        return _dot(*self._read_pair(number))

    def direction(self, slopes: Nodes) -> dict[str, Node]:
        """Return the negative product of the estimated inverse Hessian and the gradients."""
        count = next(iter(self.steps.values())).shape[0]
        weights, shares, direction = {}, {}, {address: -slope for address, slope in slopes.items()}
        for number in reversed(range(count)):
            step, change = self._read_pair(number)
            weights[number] = _inverse(_dot(step, change))
            shares[number] = weights[number] * _dot(step, direction)
            direction = {a: x - shares[number] * change[a] for a, x in direction.items()}
        step, change = self._read_pair(count - 1)
        scale = f.where(self.has_pairs, _dot(step, change) * _inverse(_dot(change, change)), 1.0)
        direction = {a: x * scale for a, x in direction.items()}
        for number in range(count):
            step, change = self._read_pair(number)
            share = shares[number] - weights[number] * _dot(change, direction)
            direction = {a: x + share * step[a] for a, x in direction.items()}
        return direction

    def and_one(self, step: Nodes, change: Nodes) -> dict[tuple[str, str], Node]:
        """Return the slots with one more pair in place of the oldest, if it is curved."""
        rounding = float(np.finfo(next(iter(step.values())).dtype).eps)
        kept = f.greater(_dot(step, change), rounding * _dot(change, change))
        new = {("steps", a): (self.steps[a], step[a]) for a in step}
        new |= {("changes", a): (self.changes[a], change[a]) for a in step}
        return {(a, slot): f.where(kept, _shift_in(*pair), pair[0]) for (slot, a), pair in new.items()}


def _entry(held: Node, number: int) -> Node:
    at = number % held.shape[0]
    return f.squeeze(f.narrow(held, 0, at, at + 1), 0)


def _shift_in(held: Node, new: Node) -> Node:
    return f.concat(f.narrow(held, 0, 1, held.shape[0]), f.expand(new, 0), axis=0)


def _inverse(x: Node) -> Node:
    """Return 1 / x where x is positive, else 0."""
    there = f.greater(x, 0.0)
    return f.where(there, 1.0 / f.where(there, x, 1.0), 0.0)


def _sum(values: Sequence[Node]) -> Node:
    return reduce(add, values)


def _dot(one: Nodes, other: Nodes) -> Node:
    """Return the inner product over all parameters."""
    return _sum([f.sum(one[address] * other[address]) for address in one])


def _largest(values: Nodes) -> Node:
    """Return the largest absolute element."""
    return reduce(f.maximum, [f.max(f.abs(x)) for x in values.values()])
