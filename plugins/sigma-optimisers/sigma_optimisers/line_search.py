"""A line search for the strong Wolfe conditions, with a fixed number of evaluations, as a loop of the graph.

Nocedal and Wright, Numerical Optimization, 2nd edition, algorithms 3.5 and 3.6, with the safeguards of Schmidt's
minFunc; the arithmetic is that of ``torch.optim.LBFGS(line_search_fn="strong_wolfe")``.  A graph has no branches: every
state of the search is computed in each pass, and one of them is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sigma_kernel import functions as f
from sigma_kernel.graph import Node

DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
CLOSE = 1e-12  # length of a bracket, in units of parameters, that is not searched further


class Point(NamedTuple):
    """A point on the line: its distance in units of the direction, and value and slope of the loss there."""

    at: Node
    loss: Node
    slope: Node


class Search(NamedTuple):
    """The state of a search.

    Before there is a bracket, ``low`` is the point before ``trial``; then it is the best point of the bracket, and
    ``high`` the other end.
    """

    trial: Node
    low: Point
    high: Point
    bracketed: Node
    done: Node
    stuck: Node  # the last trial was near an end of the bracket


Evaluate = Callable[[Node], tuple[Node, Sequence[Node], Node]]  # distance -> loss, gradients, slope


def strong_wolfe(
    evaluate: Evaluate, start: Point, gradients: Sequence[Node], first: Node, size: Node, count: int
) -> tuple[Node, tuple[Node, ...]]:
    """Return the distance of the best point found in ``count`` evaluations, the first at ``first``; its gradients.

    ``size`` is the largest element of the direction. The distance is 0 if no evaluated loss was below that at the
    start.
    """
    no = f.greater(f.stop(start.loss) * 0.0, 1.0)
    before = Search(first, start, start, no, no, no)

    def body(*nodes: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        state, best, (number,) = _search(nodes[:10]), nodes[10:-1], nodes[-1:]
        loss, slopes, slope = evaluate(state.trial)
        new, better = _advance_search(state, Point(state.trial, loss, slope), start, number, size)
        kept = [f.where(better, slope, old) for slope, old in zip(slopes, best, strict=True)]
        return [*_flat(_select_search(state.done, state, new)), *kept], []

    numbers = f.iota((count,), 0, "int32")
    after, _ = f.scan(body, [*_flat(before), *gradients], [numbers])
    return _search(after[:10]).low.at, after[10:]


def _flat(state: Search) -> list[Node]:
    return [state.trial, *state.low, *state.high, state.bracketed, state.done, state.stuck]


def _search(nodes: Sequence[Node]) -> Search:
    return Search(nodes[0], Point(*nodes[1:4]), Point(*nodes[4:7]), *nodes[7:10])


def _select_search(when: Node, this: Search, other: Search) -> Search:
    return _search([f.where(when, x, y) for x, y in zip(_flat(this), _flat(other), strict=True)])


def _either(when: Node, this: Point, other: Point) -> Point:
    return Point(*(f.where(when, x, y) for x, y in zip(this, other, strict=True)))


def _advance_search(state: Search, new: Point, start: Point, number: Node, size: Node) -> tuple[Search, Node]:
    """Return the state after an evaluation, and whether the new point has become the low one."""
    low, high = state.low, state.high
    enough = f.less_equal(new.loss, start.loss + DECREASE * new.at * start.slope)  # false if it is not a number
    flat = f.less_equal(f.abs(new.slope), -CURVATURE * start.slope)
    below = f.less(new.loss, low.loss)
    falling = f.logical_and(enough, f.logical_or(below, f.less(number, 2)))
    # with a bracket
    good = f.logical_and(enough, below)
    turned = f.logical_and(good, f.greater_equal(new.slope * (high.at - low.at), 0.0))
    narrowed = _either(good, _either(turned, low, high), _either(below, low, new))
    # without one
    brackets = f.logical_not(f.logical_and(falling, f.logical_or(flat, f.less(new.slope, 0.0))))
    opened = _either(below, low, new)
    further = f.logical_and(f.logical_not(brackets), f.logical_not(state.bracketed))
    better = f.logical_and(f.logical_not(state.done), f.logical_or(below, further))
    bracketed = f.logical_or(state.bracketed, brackets)
    done = f.logical_and(flat, f.where(state.bracketed, good, falling))
    after = Search(
        new.at, _either(better, new, low), _either(state.bracketed, narrowed, opened), bracketed, done, state.stuck
    )
    inside, stuck = _interpolate_trial(after)
    trial = f.where(bracketed, inside, _extrapolate_trial(low, new))
    close = f.logical_and(bracketed, f.less(f.abs(after.high.at - after.low.at) * size, CLOSE))
    return after._replace(trial=trial, stuck=stuck, done=f.logical_or(done, close)), better


def _extrapolate_trial(before: Point, new: Point) -> Node:
    """Return the next trial if the loss still falls: at 1 to 10 times the distance."""
    low, high = new.at + 0.01 * (new.at - before.at), new.at * 10.0
    return _cubic(before, new, low, high)


def _interpolate_trial(state: Search) -> tuple[Node, Node]:
    """Return the next trial in the bracket, and whether it is near an end for the first time."""
    start, other = state.low.at, state.high.at
    low, high = f.minimum(start, other), f.maximum(start, other)
    trial, margin = _cubic(state.low, state.high, low, high), 0.1 * (high - low)
    near = f.less(f.minimum(high - trial, trial - low), margin)
    ends = f.logical_or(f.greater_equal(trial, high), f.less_equal(trial, low))
    moved = f.logical_and(near, f.logical_or(state.stuck, ends))
    away = f.where(f.less(f.abs(trial - high), f.abs(trial - low)), high - margin, low + margin)
    return f.where(moved, away, trial), f.logical_and(near, f.logical_not(moved))


def _cubic(one: Point, other: Point, low: Node, high: Node) -> Node:
    """Return the minimum, from ``low`` to ``high``, of the cubic through two points with their slopes.

    Where there is none, or a number is not finite, it is the middle.
    """
    ahead = f.less_equal(one.at, other.at)
    left, right = _either(ahead, one, other), _either(ahead, other, one)
    width = right.at - left.at
    first = left.slope + right.slope - 3.0 * (left.loss - right.loss) / f.where(f.equal(width, 0.0), -1.0, -width)
    square = first * first - left.slope * right.slope
    there = f.greater_equal(square, 0.0)
    root = f.sqrt(f.where(there, square, 0.0))
    under = right.slope - left.slope + 2.0 * root
    position = right.at - width * ((right.slope + root - first) / f.where(f.equal(under, 0.0), 1.0, under))
    usable = f.logical_and(f.logical_and(there, f.logical_not(f.equal(under, 0.0))), f.is_finite(position))
    return f.where(usable, f.minimum(f.maximum(position, low), high), (low + high) * 0.5)
