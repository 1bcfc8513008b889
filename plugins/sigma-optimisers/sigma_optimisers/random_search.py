"""Random search: move to the best of some points nearby."""

from __future__ import annotations

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Optimiser, Update, live
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge, whole
from sigma_optimisers.populations import losses, normals


@define(eq=False)
class RandomSearch(Optimiser):
    """Draw points around the parameters, and move to the best of them if its loss is lower: without any gradient.

    ``p_i = p + deviation * z_i`` with standard normal ``z_i``, ``i`` up to ``population``. One iteration of training is
    one draw. It evaluates the loss ``population + 1`` times on the same batch.  The numbers are those of the run's
    seed and of the iteration.  Shards are refused, because one cannot compute the loss of the batch.

    Matyas, Random Optimization, Automation and Remote Control 26, 1965.

    Args:
        deviation: Standard deviation of the points of a parameter, in its units.
        population: Number of points in each step.
    """

    deviation: float = live(0.1, low=0.0)
    population: int = field(default=16, validator=[whole, ge(1)])

    def build(self, objective: Objective) -> Update:
        """Build the update graph."""
        here = objective.parameters
        drawn = normals(objective, self.population)
        members = {a: here[a] + z * objective.setting(a, "deviation") for a, z in drawn.items()}
        scores = losses(objective, members)
        better = f.less(f.min(scores), objective.loss())
        return Update({a: f.where(better, _member(members[a], f.argmax(-scores)), here[a]) for a in here})


def _member(members: Node, number: Node) -> Node:
    return f.take(members, number, axis=0)
