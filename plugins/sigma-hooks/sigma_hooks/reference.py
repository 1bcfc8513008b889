"""Reference backend: the kernel's op semantics, interpreted op by op with NumPy; optionally with perturbed rounding.

How far rounding may drive two correct programs apart depends on the network, so it is measured: the reference runs
again with every result of every op moved up or down by one unit in the last place, at random.  (D. S. Parker, Monte
Carlo arithmetic, UCLA CSD-970002, 1997; J. Vignes, Reviews on stochastic arithmetic, Math. Comput. Simul. 35 (1993)
233-261.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.contracts import Backend
from sigma_kernel.graph import ELEMENTWISE, MEANINGS, OPS, Graph, Meaning, Namespace, interpret, numpy_namespace

# of products: the operand whose elements the terms contain, and the number of terms in one element of the result
TERMS: dict[str, tuple[int, Callable[..., float]]] = {
    "matmul": (0, lambda a, b: a.shape[-1]),
    "convolution": (0, lambda x, w: prod(w.shape[1:])),
    "convolution_input": (0, lambda x, w: w.size / w.shape[1]),
    "convolution_kernel": (1, lambda x, y: y.size / y.shape[1]),
    "scatter_add": (2, lambda x, indices, updates: max(1, indices.size)),
}


@frozen
class Reference(Backend):
    """Compute by the kernel's op semantics; with a ``seed``, perturb every result by one unit in its last place.

    Functions such as exp are perturbed by ``error`` times their value if that is more.
    """

    seed: int | None = None
    error: float = 0.0

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[np.ndarray]]:
        """Return a function that interprets the graph and copies its results; nothing is donated."""
        ns = numpy_namespace()
        run = interpret(
            graph,
            ns if self.seed is None else _perturb_namespace(ns, Noise(np.random.default_rng(self.seed), self.error)),
        )
        return lambda *arrays: [np.array(value) for value in run(*arrays)]

    def to_device(self, host: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy."""
        return np.array(array)


@frozen(eq=False)
class Noise:
    """Perturbations of random sign."""

    random: np.random.Generator
    error: float

    def like(self, array: Any, op: str = "") -> np.ndarray:
        """Return for each element one unit in the last place of 1, or a function's error, with random sign."""
        unit = np.finfo(array.dtype).eps
        signs = self.random.integers(0, 2, np.shape(array), np.int8) * 2 - 1
        noise: np.ndarray = signs * array.dtype.type(max(unit, self.error) if _is_function(op) else unit)
        return noise


def _perturb_namespace(ns: Namespace, noise: Noise) -> Namespace:
    """Return a namespace whose ops round randomly."""
    own = {
        op: partial(_perturb_result, op, meaning, noise)
        for op, meaning in MEANINGS.items()
        if OPS[op].rounding != "exact"
    }
    return evolve(ns, own=own)


def _perturb_result(op: str, meaning: Meaning, noise: Noise, ns: Namespace, *operands: Any, **attrs: Any) -> Any:
    """Return an op's result, perturbed if it is rounded: by one unit in the last place, by more for long sums."""
    if op in TERMS and _is_float(operands[0]):
        operands = _with_moved_terms(op, noise, operands)
    result = meaning(ns, *operands, **attrs)
    if not _is_float(result) or not result.size:
        return result
    if op == "sum":  # partial sums grow if the terms have one sign; a sum of one term is exact
        rest = meaning(ns, np.abs(operands[0]), **attrs) - np.max(np.abs(operands[0]), **attrs, keepdims=True)
        return result + rest * noise.like(result) * np.sqrt(operands[0].size / result.size).astype(result.dtype)
    moved = result * (1 + noise.like(result, op))
    return moved if noise.error and _is_function(op) else np.where(_is_exact(op, result, operands), result, moved)


def _with_moved_terms(op: str, noise: Noise, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands of a product, one of them perturbed by the rounding error of a sum of as many terms."""
    which, count = TERMS[op]
    steps = np.sqrt(count(*operands)).astype(operands[which].dtype)
    moved = operands[which] * (1 + noise.like(operands[which]) * steps)
    return (*operands[:which], moved, *operands[which + 1 :])


def _is_exact(op: str, result: Any, operands: Sequence[Any]) -> Any:
    """Return where a result is exact: integers, elements of an operand, products with a power of two."""
    exact = result == np.rint(result)
    if OPS[op].shape in ELEMENTWISE:
        for operand in filter(_is_float, operands):
            exact = exact | (np.abs(result) == np.abs(operand))
    if op in ("mul", "div"):
        for operand in operands if op == "mul" else operands[1:]:
            exact = exact | (np.abs(np.frexp(operand)[0]) == 0.5)
    return exact


def _is_function(op: str) -> bool:
    return op in OPS and OPS[op].rounding == "function"


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"
