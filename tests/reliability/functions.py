"""Compare random functions of nodes with the same functions of NumPy arrays.

::

    python tests/reliability/functions.py 500 [SEED]

A function is a list of random steps in Python's operators and the methods of arrays: each step combines two earlier
values, which are floats or truth values, or an earlier value and a number.  It runs twice, on arrays of float64 and on
nodes.  Each function must give the same numbers, or be refused by a SigmaError.  Prints one JSON document; the exit
code is 1 if a function gives other numbers.
"""

from __future__ import annotations

import json
import operator
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaError

SHAPES = [(3, 3), (3, 1), (1, 3), (3,), ()]
NUMBERS = [0, 1, 2, -1, 0.5, 1.0, True]


def remainder(x: Any, y: Any) -> Any:
    """Return a remainder of floats: of integers, NumPy calls that of a division by 0 0, with a warning."""
    return x * 1.0 % y


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, remainder, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge, operator.and_, operator.or_, operator.eq, operator.ne, operator.mul,
]  # fmt: skip
UNARY: list[Callable[[Any], Any]] = [
    abs, operator.neg, operator.invert, lambda x: x.sum(), lambda x: x.mean(), lambda x: x.T, lambda x: x[..., ::-1],
    lambda x: x.max(), lambda x: x.min(), lambda x: x.reshape(-1), lambda x: x[..., None], lambda x: x**2,
    lambda x: x.sum(0, keepdims=True), lambda x: x.astype("bool"), lambda x: x.astype("float64"),
]  # fmt: skip
Step = tuple[Callable[..., Any], tuple[int, ...], Any]


def draw(rng: random.Random) -> list[Step]:
    """Return random steps: what they do, the places of their operands, and a number or None."""
    steps: list[Step] = []
    for place in range(len(SHAPES), len(SHAPES) + rng.randint(2, 8)):
        operands = (rng.choice([rng.randrange(place), place - 1]), rng.randrange(place))
        kind = rng.choice(["one", "two", "two", "number", "number first"])
        if kind == "one":
            steps.append((rng.choice(UNARY), operands[:1], None))
        elif kind == "two":
            steps.append((rng.choice(BINARY), operands, None))
        else:
            operation, number = rng.choice(BINARY), rng.choice(NUMBERS)
            first = kind == "number first"
            steps.append((lambda x, y, o=operation, first=first: o(y, x) if first else o(x, y), operands[:1], number))
    return steps


def run(steps: Sequence[Step], given: Sequence[Any]) -> Any:
    """Return the last value of the steps; the values given are the first ones."""
    values = [*given]
    for operation, operands, number in steps:
        values.append(operation(*(values[i] for i in operands), *([] if number is None else [number])))
    return values[-1]


def outcome(seed: int) -> str:
    """Return what became of one function: "equal", "different", "refused", or "no array" if NumPy refuses it."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    given = [numbers.integers(-2, 3, shape) * 0.5 for shape in SHAPES]
    steps = draw(rng)
    try:
        wanted = run(steps, [np.asarray(x) for x in given])
    except (TypeError, ValueError, IndexError, AttributeError):
        return "no array"
    try:
        found = f.evaluate(lambda *nodes: run(steps, nodes), *given)
    except SigmaError:
        return "refused"
    return "equal" if alike(found, wanted) else "different"


def alike(found: Any, wanted: Any) -> bool:
    """Return whether two arrays have the same shape and numbers, up to the rounding of float32."""
    one, other = (np.asarray(x, float) for x in (found, wanted))
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)


def main(count: int, seed: int = 0) -> int:
    """Compare functions until so many ran on both, and print how many were equal, refused and different."""
    found: Counter[str] = Counter()
    different = []
    with np.errstate(all="ignore"):
        while found["equal"] + found["different"] < count:
            found[result := outcome(seed)] += 1
            different += [seed] if result == "different" else []
            seed += 1
    print(json.dumps({"functions": count, **found, "seeds of different ones": different}))
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
