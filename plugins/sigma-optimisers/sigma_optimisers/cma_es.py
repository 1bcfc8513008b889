"""CMA-ES: a gradient-free evolution strategy that adapts its covariance."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, prod, sqrt
from typing import NamedTuple

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Optimiser, Slot, Update, live
from sigma_kernel.graph import Node, Spec, constant
from sigma_kernel.settings import ge, optional, whole
from sigma_optimisers.populations import losses, normals, ranks


class Rates(NamedTuple):
    """The weights of the better half of a population by rank, and rates, for so many numbers."""

    weights: np.ndarray
    mass: float  # "mu_eff", the number of members that the weights amount to
    path: float  # "c_sigma"
    damping: float  # "d_sigma"
    length: float  # expected norm of standard normal numbers


@define(eq=False)
class CMAES(Optimiser):
    """Update by an evolution strategy with covariance matrix adaptation, in the form without a covariance matrix.

    Each step draws ``z_i``, standard normal, evaluates the loss at ``p + s * M z_i`` for a population, and moves the
    parameters to the weighted mean of the better half. ``M`` is adapted from the best ``z`` and from the path of the
    means, ``s`` from the length of that path:
    ``q <- (1 - c_s) q + sqrt(mu c_s (2 - c_s)) <z>``,
    ``M <- M (I + c_1 / 2 (q q^T - I) + c_w / 2 (<z z^T> - I))``,
    ``s <- s * exp(c_s / d_s * (|q| / E|N(0, I)| - 1))``, with the usual rates.
    Each parameter has its own ``M`` and ``q``; there is no covariance between parameters. In parameters with more than
    ``full`` elements ``M`` is diagonal, with rates ``(n + 2) / 3`` times as high. ``s`` and the length of the path are
    common to all.

    On a sphere, an ellipsoid and Rosenbrock's function of ten numbers it takes as many evaluations as Hansen's own
    implementation without negative weights: some 1,600, 5,700 and 6,300 for a loss of ``1e-10``.

    One iteration of training is one generation. It evaluates the loss ``population`` times on the same batch; the
    numbers are those of the run's seed and of the iteration.  Shards are refused, because one cannot compute the loss
    of the batch.

    Beyer and Sendhoff, Simplify Your Covariance Matrix Adaptation Evolution Strategy, 2017; Hansen, The CMA Evolution
    Strategy: A Tutorial, 2016, for the rates; Ros and Hansen, A Simple Modification in CMA-ES Achieving Linear Time and
    Space Complexity, 2008, for diagonals.

    Args:
        deviation: Standard deviation of the first population, in units of the parameter: about a third of the distance
            to be searched. Changing it scales all later populations.
        population: Members of each generation; by default ``4 + 3 ln n`` for ``n`` numbers in all.
        full: Most elements of a parameter with a full matrix, which has as many rows and columns.
    """

    deviation: float = live(0.3, low=0.0)
    population: int | None = field(default=None, validator=optional((whole, ge(2))))
    full: int = field(default=200, validator=[whole, ge(0)])

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the logarithm of ``s`` over the deviation, the path, and ``M - I``, or its diagonal."""
        count = prod(parameter.shape)
        matrix = (count, count) if count <= self.full else (count,)
        return {"scale": Slot(0.0, ()), "path": Slot(0.0, (count,)), "matrix": Slot(0.0, matrix)}

    def build(self, objective: Objective) -> Update:
        """Build the update graph."""
        here = dict(sorted(objective.parameters.items()))
        total = sum(prod(node.shape) for node in here.values())
        members = self.population or 4 + int(3 * log(max(total, 1)))
        rates = _rates(total, members)
        drawn = {a: f.reshape(z, (members, -1)) for a, z in normals(objective, members).items()}
        slots = {(a, name): objective.slot(a, name) for a in here for name in ("scale", "path", "matrix")}
        moves = {a: self._moves(objective, a, z, slots) for a, z in drawn.items()}
        scores = losses(objective, {a: here[a] + f.reshape(x, (members, *here[a].shape)) for a, x in moves.items()})
        chosen = f.take(constant(rates.weights, scores.dtype), ranks(scores))
        paths = {a: _path(slots[a, "path"], chosen @ z, rates) for a, z in drawn.items()}
        length = f.sqrt(sum((f.sum(path * path) for path in paths.values()), start=0.0))
        growth = rates.path / rates.damping * (length / rates.length - 1.0)
        after = {
            (a, name): value
            for a, path in paths.items()
            for name, value in {
                "scale": slots[a, "scale"] + growth,
                "path": path,
                "matrix": _matrix(slots[a, "matrix"], path, drawn[a], chosen, rates),
            }.items()
        }
        return Update({a: here[a] + f.reshape(chosen @ moves[a], here[a].shape) for a in here}, after)

    def _moves(self, objective: Objective, address: str, drawn: Node, slots: Mapping[tuple[str, str], Node]) -> Node:
        """Return how far each member is from the parameter."""
        matrix = slots[address, "matrix"]
        turned = drawn * matrix if len(matrix.shape) == 1 else drawn @ f.swap_axes(matrix, 0, 1)
        return objective.setting(address, "deviation") * f.exp(slots[address, "scale"]) * (drawn + turned)


def _rates(total: int, members: int) -> Rates:
    """Return Hansen's weights and rates."""
    best = members // 2
    weights = np.zeros(members)
    weights[:best] = log((members + 1) / 2) - np.log(np.arange(1, best + 1))
    weights /= weights.sum()
    mass = 1.0 / float(np.sum(weights**2))
    path = (mass + 2.0) / (mass + total + 5.0)
    damping = 1.0 + path + 2.0 * max(0.0, sqrt(max(0.0, mass - 1.0) / (total + 1.0)) - 1.0)
    length = sqrt(total) * (1.0 - 1.0 / (4.0 * total) + 1.0 / (21.0 * total**2))
    return Rates(weights, mass, path, damping, length)


def _shares(count: int, mass: float, diagonal: bool) -> tuple[float, float]:
    """Return the rates of the path and of the population in a matrix."""
    share = 2.0 / ((count + 1.3) ** 2 + mass)
    rest = min(1.0 - share, 2.0 * (mass - 2.0 + 1.0 / mass) / ((count + 2.0) ** 2 + mass))
    faster = (count + 2.0) / 3.0 if diagonal else 1.0
    share = min(1.0, share * faster)
    return share, min(1.0 - share, rest * faster)


def _path(path: Node, mean: Node, rates: Rates) -> Node:
    return (1.0 - rates.path) * path + sqrt(rates.mass * rates.path * (2.0 - rates.path)) * mean


def _matrix(held: Node, path: Node, drawn: Node, weights: Node, rates: Rates) -> Node:
    """Return the matrix minus the identity after a generation, of a full or of a diagonal matrix."""
    (count,), full = path.shape, len(held.shape) == 2
    share, rest = _shares(count, rates.mass, not full)
    weighted = f.expand(weights, 1) * drawn
    if not full:
        change = 0.5 * share * (path * path - 1.0) + 0.5 * rest * (f.sum(weighted * drawn, axis=0) - 1.0)
        return held + change + held * change
    identity = np.eye(count)
    outer = f.expand(path, 1) * f.expand(path, 0)
    change = 0.5 * share * (outer - identity) + 0.5 * rest * (f.swap_axes(weighted, 0, 1) @ drawn - identity)
    return held + change + held @ change
