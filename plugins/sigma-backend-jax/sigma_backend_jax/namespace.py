"""The array namespace of JAX: its own convolutions, scans and scatters, and checks of indices.

A compiled function cannot raise. While a graph is traced, each op that reads indices notes their range, which becomes a
result of the function, and is checked on the host afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
from attrs import frozen
from jax import lax

from sigma_kernel import Lowerings
from sigma_kernel.contracts import Array
from sigma_kernel.graph import Namespace, Node, check_indices

NAMES = ("float32", "float64", "int32", "int64", "uint32")


@frozen
class Reach:
    """The least and the greatest index that an op read along an axis of ``side`` entries."""

    op: str
    side: int
    low: Array
    high: Array

    @property
    def fits(self) -> Array:
        """Return whether all indices are in range, as an array."""
        return (self.low >= 0) & (self.high < self.side)

    def check(self) -> None:
        """Raise SigmaGraphError unless all indices are in range."""
        check_indices(self.op, jax.device_get(jnp.stack([self.low, self.high])), self.side)


jax.tree_util.register_dataclass(Reach, ["low", "high"], ["op", "side"])
_READ: ContextVar[list[Reach]] = ContextVar("read")


@contextmanager
def reading() -> Iterator[list[Reach]]:
    """Collect the reads of ops traced meanwhile."""
    reaches: list[Reach] = []
    token = _READ.set(reaches)
    try:
        yield reaches
    finally:
        _READ.reset(token)


def _note(op: str, places: Array, side: int) -> None:
    if places.size:
        _READ.get().append(Reach(op, side, places.min(), places.max()))


def _scan(
    ns: Namespace, *operands: Array, run: Callable[..., tuple[Array, ...]], wanted: Mapping[int, Node],
    carries: int, sequences: int, length: int, reverse: bool,
) -> dict[int, Array]:  # fmt: skip
    """Return the wanted parts of a scan; see :func:`sigma_kernel.graph.meaning.scan`."""
    constants = operands[carries + sequences :]
    stacked = [index for index in wanted if index >= carries]

    def body(carry: tuple[Array, ...], rows: tuple[Array, ...]) -> Any:
        with reading() as reaches:
            results = run(*carry, *rows, *constants)
        passed = (*results, *carry)
        return results[:carries], ([passed[index] for index in stacked], reaches)

    begin, rows = operands[:carries], operands[carries : carries + sequences]
    last, (stacks, reaches) = lax.scan(body, begin, rows, length=length, reverse=reverse)
    if length:
        _READ.get().extend(Reach(reach.op, reach.side, reach.low.min(), reach.high.max()) for reach in reaches)
    parts = dict(zip(stacked, stacks, strict=True))
    return {index: parts[index] if index in parts else last[index] for index in wanted}


def _mod(ns: Namespace, x: Array, y: Array) -> Array:
    """Return the remainder, whose zeros have the sign of the divisor."""
    rest = jnp.remainder(x, y)
    return jnp.where(rest == 0, jnp.copysign(0, y), rest) if jnp.issubdtype(rest.dtype, jnp.floating) else rest


def _flush_denormals(x: Array) -> Array:
    """Return x with 0 for denormal numbers, of which XLA's logarithm is neither their own nor that of 0."""
    return jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).tiny, 0 * x, x)


# -- 16 bits -----------------------------------------------------------------------------------------------------------
def _narrow(ns: Namespace, x: Array, dtype: str) -> Array:
    """Round float32 to bfloat16 or float16; XLA would leave a cast there and back out."""
    if dtype == "bfloat16":
        return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
    return lax.optimization_barrier(x.astype(jnp.float16)).astype(x.dtype)


def _mixed_matmul(ns: Namespace, x: Array, y: Array, *, dtype: str) -> Array:
    """Multiply in 16 bits and add in the operands' own type, where processors have products of that kind."""
    return jnp.matmul(x.astype(dtype), y.astype(dtype), preferred_element_type=x.dtype)


# -- convolution -------------------------------------------------------------------------------------------------------
def _convolution(
    ns: Namespace, x: Array, w: Array, *, groups: int, stride: Sequence[int], padding: Any, dilation: Sequence[int]
) -> Array:
    return lax.conv_general_dilated(
        x, w, tuple(stride), [tuple(side) for side in padding], rhs_dilation=tuple(dilation), feature_group_count=groups
    )


def _convolution_input(ns: Namespace, g: Array, w: Array, *, shape: Sequence[int], **how: Any) -> Array:
    return _transpose_map(lambda x: _convolution(ns, x, w, **how), shape, g)


def _convolution_kernel(ns: Namespace, x: Array, g: Array, *, shape: Sequence[int], **how: Any) -> Array:
    return _transpose_map(lambda w: _convolution(ns, x, w, **how), shape, g)


def _transpose_map(linear: Callable[[Array], Array], shape: Sequence[int], g: Array) -> Array:
    """Return the transpose of a linear map, applied to ``g``; ``shape`` is that of its operand."""
    (result,) = jax.linear_transpose(linear, jax.ShapeDtypeStruct(tuple(shape), g.dtype))(g)
    return result


# -- the namespace -----------------------------------------------------------------------------------------------------
OWN: dict[str, Callable[..., Any]] = {
    "barrier": lambda ns, x, gate: lax.optimization_barrier((x, gate))[0],  # which XLA does not merge with others
    "convolution": _convolution,
    "convolution_input": _convolution_input,
    "convolution_kernel": _convolution_kernel,
    "cumsum": lambda ns, x, *, axis, reverse: lax.cumsum(x, axis, reverse),
    "log": lambda ns, x: lax.log(_flush_denormals(x)),
    "mixed_matmul": _mixed_matmul,
    "mod": _mod,
    "pow": lambda ns, x, y: jnp.power(_flush_denormals(x), y),
    "scan": _scan,
}


LOWERINGS = Lowerings("jax")


class JaxFunctions:
    """The composites that are not expanded: JAX, or a plugin, has functions for them."""

    def __contains__(self, op: object) -> bool:
        return op in OWN or op in LOWERINGS


def namespace() -> Namespace:
    """Return JAX's namespace."""
    dtypes = {name: getattr(jnp, name) for name in NAMES} | {"bool": jnp.bool_}
    return Namespace(
        "jax",
        jnp,
        dtypes,
        jnp.uint32,
        erf=lambda xp, x: lax.erf(x),
        scatter_add=lambda xp, x, places, updates: x.at[places].add(updates),
        narrow=_narrow,
        inside=_note,
        own=OWN,
        kernels=LOWERINGS,
    )
