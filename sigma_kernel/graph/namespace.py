"""Array namespaces, with the few functions that the array API standard lacks, and the interpretation of graphs in them.

The meanings of the ops use nothing else.

A namespace is any module that follows the array API standard: ``numpy``, ``jax.numpy``, ``array_api_compat.torch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.blas import limit_blas
from sigma_kernel.graph.node import INTEGERS, MEANINGS, Graph, Node, expand_node, symbol
from sigma_kernel.graph.sums import sum_axes

Array = Any  # an array of the namespace
_Call = tuple[Callable[..., Any], list[int], int, list[int]]
WORD = 0xFFFFFFFF


def erf(xp: Any, x: Array) -> Array:
    """Return the error function, to a few units in the last place of float64.

    W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969) 631-637; beyond 6 the
    result is 1 in float64, so that the third interval of the paper is not needed.
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
    """Return ``x (n, m)`` with ``updates (k, m)`` added at the rows ``indices (k,)``; repeats accumulate."""
    hit = xp.equal(xp.arange(x.shape[0])[:, None], xp.astype(indices, xp.arange(0).dtype)[None, :])
    return x + xp.matmul(xp.astype(hit, x.dtype), updates)


def total(xp: Any, x: Array, axis: tuple[int, ...]) -> Array:
    """Return the sum over axes, which stay with side 1, in the dtype of the array."""
    return xp.sum(x, axis=axis, dtype=x.dtype, keepdims=True)


def check_indices(op: str, places: Array, side: int) -> None:
    """Raise SigmaGraphError for indices outside of an axis; they count from 0, never from the end."""
    places = np.asarray(places)
    if places.size and not (places.min() >= 0 and places.max() < side):
        raise SigmaGraphError(
            f"{op}: indices must be from 0 to {side - 1} (got {places.min()} to {places.max()}). "
            "Check the labels or indices in the data."
        )


def narrow(ns: Namespace, x: Array, dtype: str) -> Array:
    """Return float32 numbers rounded to the nearest of a dtype of 16 bits; raises SigmaGraphError if there is none."""
    if dtype not in ns.dtypes:
        raise SigmaGraphError(f"{ns.name}: cannot round to {dtype}. Give its Namespace a function `narrow` that does.")
    return ns.cast(ns.cast(x, dtype), "float32")


class Kernels(Protocol):
    """Functions of arrays by the name of their op."""

    def get(self, op: str, /) -> Any:
        """Return the function of an op, or None."""


@frozen(eq=False, repr=False)
class Namespace:
    """An array namespace and its additional functions.

    ``dtypes`` maps the graph's dtypes to its own; others are refused. ``carrier`` is an integer type in which products
    of 16-bit halves are exact. ``word`` cuts a result to 32 bits if uint32 is held in a wider type. ``narrow`` rounds
    float32 to a dtype of 16 bits. ``inside`` raises an error for indices out of range, if values can be inspected.
    ``quiet`` silences warnings of floating-point arithmetic. ``own`` replaces meanings, including composites and scan.
    ``kernels`` are functions of arrays, and of attributes by name, for ops of plugins.
    """

    name: str
    xp: Any
    dtypes: Mapping[str, Any]
    carrier: Any
    word: Callable[[Array], Array] = lambda x: x
    erf: Callable[[Any, Array], Array] = erf
    sum: Callable[[Any, Array, tuple[int, ...]], Array] = total
    scatter_add: Callable[[Any, Array, Array, Array], Array] = scatter_add
    narrow: Callable[[Namespace, Array, str], Array] = narrow
    inside: Callable[[str, Array, int], None] = lambda op, places, side: None
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext
    own: Mapping[str, Callable[..., Any]] = field(factory=dict)
    kernels: Kernels = field(factory=dict[str, Any])

    def dtype(self, name: str) -> Any:
        """Return the namespace's dtype; raises SigmaGraphError if it lacks it."""
        if name not in self.dtypes:
            raise SigmaGraphError(f"{self.name}: does not support {name}. Use one of: {', '.join(self.dtypes)}.")
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
        """Return the array in another dtype, by the rules of :func:`sigma_kernel.functions.cast`."""
        if dtype in INTEGERS and self.xp.isdtype(x.dtype, "real floating"):
            return self._cut(x, dtype, INTEGERS[dtype])
        cast = self.xp.astype(x, self.dtype(dtype))
        return self.word(cast) if dtype == "uint32" else cast

    def _cut(self, x: Array, dtype: str, span: range) -> Array:
        """Return floats as integers, clipped to the range of the dtype; NaN becomes 0."""
        low, high = (self.full((), end, x) for end in (span.start, span.stop))  # powers of two: exact
        whole = self.xp.astype(self.xp.where((x > low) & (x < high), x, self.full((), 0, x)), self.dtype(dtype))
        first, last = (self.array(end, dtype) for end in (span[0], span[-1]))
        return self.xp.where(x <= low, first, self.xp.where(x >= high, last, whole))

    def to_carrier(self, value: Any) -> Array:
        """Return words as the carrier type."""
        number = not hasattr(value, "dtype")
        return self.xp.asarray(value, dtype=self.carrier) if number else self.xp.astype(value, self.carrier)


def _numpy_scatter_add(xp: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    total = x.copy()
    np.add.at(total, indices, updates)
    return total


def _numpy_narrow(ns: Namespace, x: np.ndarray, dtype: str) -> np.ndarray:
    """Round by bits where NumPy lacks the dtype: bfloat16 is the upper half of float32."""
    if dtype != "bfloat16":
        return np.asarray(narrow(ns, x, dtype))
    bits = np.asarray(x).view(np.uint32)
    even = bits + (bits >> np.uint32(16) & np.uint32(1)) + np.uint32(0x7FFF) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, even.view(np.float32))


def numpy_namespace() -> Namespace:
    """Return NumPy's namespace, the reference; it has no bfloat16."""
    names = ("float16", "float32", "float64", "int32", "int64", "uint32", "bool")
    quiet = partial(np.errstate, all="ignore")
    dtypes = {name: np.dtype(name) for name in names}
    own: dict[str, Any] = {"scatter_add": _numpy_scatter_add, "narrow": _numpy_narrow, "inside": check_indices}
    return Namespace("numpy", np, dtypes, np.int64, sum=lambda xp, x, axis: sum_axes(x, axis), quiet=quiet, **own)


# -- interpreting graphs -----------------------------------------------------------------------------------------------
def interpret(graph: Graph, ns: Namespace) -> Callable[..., tuple[Array, ...]]:
    """Return a function from input arrays to output arrays that computes the graph node by node."""
    place = graph.places()
    calls = list(_calls(graph, ns, place))
    start = [ns.array(n.attrs["value"], n.dtype) if n.op == "constant" else None for n in place]
    outputs = [place[node] for node in graph.outputs]

    def run(*arrays: Array) -> tuple[Array, ...]:
        values = start.copy()
        for i, (_, array) in enumerate(zip(graph.inputs, arrays, strict=True)):
            values[i] = array
        with limit_blas(), ns.quiet():
            for function, operands, result, dead in calls:
                values[result] = function(*[values[i] for i in operands])
                for i in dead:
                    values[i] = None
        return tuple(values[i] for i in outputs)

    return run


def evaluate_graph(graph: Graph, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the outputs of a graph on the host; those without axes are NumPy's numbers."""
    return tuple(np.array(value)[()] for value in interpret(graph, numpy_namespace())(*arrays))


def _calls(graph: Graph, ns: Namespace, place: Mapping[Node, int]) -> Iterator[_Call]:
    """Yield for each node its function, the places of operands and result, and the places that are free afterwards."""
    nodes = [node for node in graph if node.op not in ("input", "constant")]
    kept = {*graph.outputs}
    last = {x: node for node in nodes for x in node.inputs if x not in kept and x.op != "constant"}
    for node in nodes:
        dead = [place[x] for x in {*node.inputs} if last.get(x) is node]
        yield meaning_of(node, ns, _parts_by_index(nodes, node)), [place[x] for x in node.inputs], place[node], dead


def _parts_by_index(nodes: list[Node], scan: Node) -> dict[int, Node]:
    if scan.op != "scan":
        return {}
    return {n.attrs["index"]: n for n in nodes if n.op == "part" and n.inputs[0] is scan}


def meaning_of(node: Node, ns: Namespace, wanted: Mapping[int, Node] | None = None) -> Callable[..., Any]:
    """Return a function that computes a node from its operands' values; for a scan, its wanted parts."""
    if (kernel := ns.kernels.get(node.op)) is not None:
        return partial(_run_kernel, node, ns.dtype(node.dtype), partial(kernel, **node.attrs))
    meaning = ns.own.get(node.op) or MEANINGS.get(node.op)
    attrs = dict(node.attrs)
    if meaning is None:
        return _interpret_expansion(node, ns)
    if node.op == "scan":
        attrs |= {"run": interpret(attrs.pop("body"), ns), "wanted": wanted or {}}
    run = partial(meaning, ns, **attrs)
    return (lambda *operands: ns.word(run(*operands))) if node.dtype == "uint32" else run


def _run_kernel(node: Node, dtype: Any, kernel: Callable[..., Array], *operands: Array) -> Array:
    """Return the result of a kernel; raises SigmaGraphError for one of another shape or dtype."""
    result = kernel(*operands)
    if (tuple(getattr(result, "shape", ())), getattr(result, "dtype", None)) != (node.shape, dtype):
        what = f"{result.dtype}{list(result.shape)}" if hasattr(result, "dtype") else f"a {type(result).__name__}"
        raise SigmaGraphError(
            f"{node.op}: its kernel returned {what} instead of {node.spec}. Correct its kernel, or its row in the "
            "table of ops."
        )
    return result


def _interpret_expansion(node: Node, ns: Namespace) -> Callable[..., Array]:
    symbols = tuple(symbol(x.shape, x.dtype) for x in node.inputs)
    value = expand_node(node, symbols)
    if value is None:
        raise SigmaGraphError(f"{node.op}: this op has neither a meaning nor an expansion. Give it one of them.")
    run = interpret(Graph(symbols, (value,)), ns)
    return lambda *operands: run(*operands)[0]
