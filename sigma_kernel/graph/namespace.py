"""An array namespace, and the little that one may lack: what the meanings of the ops are written against.

A namespace is any module that speaks the array API standard: ``numpy``, ``jax.numpy``, ``array_api_compat.torch``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, reduce
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import INTEGERS

Array = Any  # whatever the namespace computes with
WORD = 0xFFFFFFFF


def erf(xp: Any, x: Array) -> Array:
    """Return the error function, to a few units in the last place of float64.

    W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969) 631-637; beyond 6 the
    result is 1 in float64, so that his third interval is not needed.
    """
    size = xp.minimum(xp.abs(x), xp.full_like(x, 6.0))
    square = size * size
    inner = x * _ratio(square, CODY[0])
    outer = xp.sign(x) * (1.0 - xp.exp(-square) * _ratio(size, CODY[1]))
    return xp.where(size <= 0.46875, inner, outer)


# Numerator and denominator of erf(x) / x in x^2 up to .46875, and of exp(x^2) erfc(x) in x beyond; highest power first.
CODY = (
    (
        (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
         3.20937758913846947e3),
        (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
    ),
    (
        (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
         2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
         1.23033935479799725e3),
        (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
         3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
    ),
)  # fmt: skip


def _ratio(x: Array, terms: tuple[tuple[Array, ...], tuple[Array, ...]]) -> Array:
    above, below = (reduce(lambda total, term: total * x + term, row) for row in terms)
    return above / below


def scatter_add(xp: Any, x: Array, indices: Array, updates: Array) -> Array:
    """Return ``x (n, m)`` with ``updates (k, m)`` added at the rows that ``indices (k,)`` name; repeats accumulate."""
    hit = xp.equal(xp.arange(x.shape[0])[:, None], xp.astype(indices, xp.arange(0).dtype)[None, :])
    return x + xp.matmul(xp.astype(hit, x.dtype), updates)


def inside(op: str, places: np.ndarray, side: int) -> None:
    """Refuse places that a side does not have: they count from 0, and never from the end."""
    if places.size and not (places.min() >= 0 and places.max() < side):
        raise SigmaGraphError(
            f"{op}: there are places from {places.min()} to {places.max()}, and a side of {side} has 0 to {side - 1}. "
            "Check the labels or indices in the data."
        )


@frozen(eq=False, repr=False)
class Namespace:
    """An array namespace, with the small helpers it needs.

    ``dtypes`` says how the graph's dtypes are called there; one that is absent is refused.  ``carrier`` is an integer
    type with exact 32-bit products of 16-bit halves.  ``word`` brings a result back to 32 bits where uint32 is held
    in a wider type.  ``inside`` refuses places that a side does not have, where values can be
    looked at.  ``quiet`` silences warnings of floating-point arithmetic.  ``own`` gives meanings that the namespace has
    a better way for (composites and scan too).
    """

    name: str
    xp: Any
    dtypes: Mapping[str, Any]
    carrier: Any
    word: Callable[[Array], Array] = lambda x: x
    erf: Callable[[Any, Array], Array] = erf
    scatter_add: Callable[[Any, Array, Array, Array], Array] = scatter_add
    inside: Callable[[str, Array, int], None] = lambda op, places, side: None
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext
    own: Mapping[str, Callable[..., Any]] = field(factory=dict)

    def dtype(self, name: str) -> Any:
        """Return the namespace's own dtype; one that it lacks is a SigmaGraphError."""
        if name not in self.dtypes:
            raise SigmaGraphError(f"{self.name}: there is no {name} here. Use one of: {', '.join(self.dtypes)}.")
        return self.dtypes[name]

    def array(self, value: Any, dtype: str) -> Array:
        """Return a number or a nested list as an array."""
        return self.xp.asarray(value, dtype=self.dtype(dtype))

    def full(self, shape: Sequence[int], value: float, like: Array) -> Array:
        """Return an array filled with a number, of the dtype of another array."""
        kinds = {"bool": bool, "integral": int}
        kind = next((kinds[name] for name in kinds if self.xp.isdtype(like.dtype, name)), float)
        return self.xp.full(tuple(shape), kind(value), dtype=like.dtype)

    def cast(self, x: Array, dtype: str) -> Array:
        """Return the array in another of the graph's dtypes; :func:`.functions.cast` says how."""
        if dtype in INTEGERS and self.xp.isdtype(x.dtype, "real floating"):
            return self._cut(x, dtype, INTEGERS[dtype])
        cast = self.xp.astype(x, self.dtype(dtype))
        return self.word(cast) if dtype == "uint32" else cast

    def _cut(self, x: Array, dtype: str, span: range) -> Array:
        """Return floats as integers: those beyond the range are its ends, and NaN is 0."""
        low, high = (self.full((), end, x) for end in (span.start, span.stop))  # powers of two: exact
        whole = self.xp.astype(self.xp.where((x > low) & (x < high), x, self.full((), 0, x)), self.dtype(dtype))
        first, last = (self.array(end, dtype) for end in (span[0], span[-1]))
        return self.xp.where(x <= low, first, self.xp.where(x >= high, last, whole))

    def carried(self, value: Any) -> Array:
        """Return words in the carrier type."""
        number = not hasattr(value, "dtype")
        return self.xp.asarray(value, dtype=self.carrier) if number else self.xp.astype(value, self.carrier)


def _numpy_scatter_add(xp: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    total = x.copy()
    np.add.at(total, indices, updates)
    return total


def numpy_namespace() -> Namespace:
    """Return NumPy, the reference: everything but bfloat16."""
    names = ("float16", "float32", "float64", "int32", "int64", "uint32", "bool")
    quiet = partial(np.errstate, all="ignore")
    dtypes = {name: np.dtype(name) for name in names}
    return Namespace("numpy", np, dtypes, np.int64, scatter_add=_numpy_scatter_add, inside=inside, quiet=quiet)
