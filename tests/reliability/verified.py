"""Measure verification: correct programs, and steps in which one value is wrong.

::

    python tests/reliability/verified.py 60

For each recipe and precision: that many iterations of the compiled backend, compared one by one; the largest difference
is given as a multiple of the rounding error, of which the hook allows 32.  Then, at the first and at the last of these
iterations, each value of the step in turn is made one per cent too large, and counted if the hook finds it; values
without an effect at that point are left out.  Prints one JSON document; exits with an error if a correct iteration is
refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_hooks import Verify
from sigma_hooks.agreement import differences
from sigma_hooks.locating import SEEDS
from sigma_hooks.reference import Reference
from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import HookContext, Repeatable
from sigma_kernel.graph.meaning import meaning_of
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Node
from sigma_kernel.graph.rewriting import rewrite
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config import build, load_configuration
from sigma_run.config.document import parse

RECIPES = ("iris", "xor", "wdbc", "digits")
Arrays = Mapping[str, np.ndarray]


@frozen(kw_only=True)
class Planted(Reference):
    """The reference, with one value of the step one per cent too large; ``values`` receives the number of values."""

    place: int
    values: list[int]

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[np.ndarray]]:
        """Return a function that computes every value in turn."""
        small, ns = rewrite(graph), numpy_namespace()
        nodes = [node for node in small if node.op not in ("input", "constant")]
        self.values.append(len(nodes))

        def run(*arrays: Any) -> list[np.ndarray]:
            found: dict[Node, Any] = dict(zip(small.inputs, arrays, strict=True))
            found |= {n: ns.array(n.attrs["value"], n.dtype) for n in small if n.op == "constant"}
            with ns.quiet():
                for place, node in enumerate(nodes):
                    value = meaning_of(node, ns)(*(found[x] for x in node.inputs))
                    wrong = place == self.place and node.dtype in ("float32", "float64")
                    found[node] = value * np.asarray(1.01, value.dtype) if wrong else value
            return [np.array(found[node]) for node in small.outputs]

        return run


@define(eq=False, kw_only=True)
class Measure(Verify):
    """Record the deviation of iterations, and which injected faults are found at some of them."""

    every: TimeStep = every(1, "iteration")
    planted_at: Sequence[int] = ()
    off: list[float] = field(factory=list)
    found: list[bool] = field(factory=list)

    def fire(self, context: HookContext) -> None:
        """Measure one iteration."""
        wanted, *moved = (context.iteration.repeat(Reference(seed)) for seed in (None, *SEEDS))
        self.off.append(_off(context.iteration.outcome, wanted, moved))
        if context.moment.iteration in self.planted_at:
            self.found += self._planted(context.iteration, wanted, moved)

    def _planted(self, iteration: Repeatable, wanted: Arrays, moved: Sequence[Arrays]) -> list[bool]:
        values: list[int] = []
        wrongs = [iteration.repeat(Planted(place=0, values=values))]
        wrongs += [iteration.repeat(Planted(place=place, values=values)) for place in range(1, values[0])]
        changing = [w for w in wrongs if not all(np.array_equal(w[name], wanted[name]) for name in wanted)]
        return [bool(differences(wrong, wanted, moved, self.tolerance)) for wrong in changing]


def _off(found: Arrays, wanted: Arrays, moved: Sequence[Arrays]) -> float:
    """Return the smallest tolerance at which nothing differs, to two digits."""
    low, high = 0.01, 1e6
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if differences(found, wanted, moved, middle) else (low, middle)
    return high


def measured(recipe: str, precision: str, iterations: int) -> dict[str, Any]:
    """Return the results for one recipe."""
    hook = Measure(planted_at=(1, iterations))
    with build(load_configuration(parse(catalogue().load("recipe", recipe).text, recipe), catalogue())) as sigma:  # type: ignore[attr-defined]
        trainer = sigma.trainer("trainer")
        trainer.precision, trainer.backend, trainer.hooks = precision, "numba", {"measure": hook}
        trainer.fit(iterations=iterations)
    return {
        "recipe": recipe, "precision": precision, "iterations": len(hook.off),
        "off by at most": round(max(hook.off), 1), "planted": len(hook.found), "found": sum(hook.found),
    }  # fmt: skip


def main(iterations: int, recipes: Sequence[str]) -> int:
    """Measure and print; return the exit code."""
    rows = [measured(recipe, precision, iterations) for recipe in recipes for precision in ("float32", "float64")]
    print(json.dumps(rows, indent=1))
    return int(any(row["off by at most"] > Verify().tolerance for row in rows))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or RECIPES))
