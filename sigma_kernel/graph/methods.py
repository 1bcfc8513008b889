"""Operators and methods of nodes, with the names and the meaning that they have for arrays in NumPy."""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, NoReturn, Self

import numpy as np

from sigma_kernel.errors import SigmaGraphError

Shape = tuple[int, ...]
Axis = int | Sequence[int] | None
Constant = np.ndarray | Sequence[Any] | float  # an array, a nested list, a number

REFLECTED = {  # methods of nodes for ``array * node`` and the like, which NumPy calls as ufuncs
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.divide: "__rtruediv__",
    np.power: "__rpow__", np.remainder: "__rmod__", np.matmul: "__rmatmul__", np.greater: "__lt__",
    np.greater_equal: "__le__", np.less: "__gt__", np.less_equal: "__ge__",
}  # fmt: skip


class ArrayMethods:
    """What can be done with a value of a shape and a dtype, in terms of the ops of the table."""

    __slots__ = ()
    shape: Shape
    dtype: str

    @abstractmethod
    def _apply(self, op: str, *operands: Self | Constant, **attrs: Any) -> Self:
        """Make a node by the name of its op."""

    # fmt: off
    def __add__(self, other: Self | Constant) -> Self: return self._apply("add", self, other)
    def __radd__(self, other: Constant) -> Self: return self._apply("add", other, self)
    def __sub__(self, other: Self | Constant) -> Self: return self._apply("sub", self, other)
    def __rsub__(self, other: Constant) -> Self: return self._apply("sub", other, self)
    def __mul__(self, other: Self | Constant) -> Self: return self._apply("mul", self, other)
    def __rmul__(self, other: Constant) -> Self: return self._apply("mul", other, self)
    def __truediv__(self, other: Self | Constant) -> Self: return self._apply("div", self, other)
    def __rtruediv__(self, other: Constant) -> Self: return self._apply("div", other, self)
    def __rpow__(self, other: Constant) -> Self: return self._apply("pow", other, self)
    def __mod__(self, other: Self | Constant) -> Self: return self._apply("mod", self, other)
    def __rmod__(self, other: Constant) -> Self: return self._apply("mod", other, self)
    def __matmul__(self, other: Self | Constant) -> Self: return self._product(self, other)
    def __rmatmul__(self, other: Constant) -> Self: return self._product(other, self)
    def __neg__(self) -> Self: return self._apply("neg", self)
    def __abs__(self) -> Self: return self._apply("abs", self)
    def __invert__(self) -> Self: return self._apply("logical_not", self)
    def __and__(self, other: Self | Constant) -> Self: return self._apply("logical_and", self, other)
    def __or__(self, other: Self | Constant) -> Self: return self._apply("logical_or", self, other)
    def __gt__(self, other: Self | Constant) -> Self: return self._apply("greater", self, other)
    def __ge__(self, other: Self | Constant) -> Self: return self._apply("greater_equal", self, other)
    def __lt__(self, other: Self | Constant) -> Self: return self._apply("greater", other, self)
    def __le__(self, other: Self | Constant) -> Self: return self._apply("greater_equal", other, self)
    # fmt: on

    def __pow__(self, other: Self | Constant) -> Self:
        """Return a power; a square is a product."""
        return self * self if np.ndim(other) == 0 and other == 2 else self._apply("pow", self, other)

    def _product(self, x: Any, y: Any) -> Self:
        """Return a matrix product; a vector is a row on the left, and a column on the right."""
        x, y = (value if hasattr(value, "shape") else np.asarray(value) for value in (x, y))
        row, column = len(x.shape) == 1, len(y.shape) == 1
        made = self._apply("matmul", x[None] if row else x, y[:, None] if column else y)
        made = made[..., 0] if column else made
        return made[..., 0, :] if row and not column else made[..., 0] if row else made

    def __bool__(self) -> NoReturn:
        raise SigmaGraphError(
            f"{self!r}: its value is unknown while the graph is built. Use where(condition, x, y) instead of if."
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise SigmaGraphError(
            f"{self!r}: its value is unknown while the graph is built, so NumPy cannot compute with it. Use the "
            "functions of sigma_kernel.functions."
        )

    # -- entries -------------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        if not self.shape:
            raise SigmaGraphError(f"{self!r}: a single number has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        """Yield the entries along the first axis."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        """Return the entries that indices select, as in NumPy; a node of them selects along one axis, as ``take`` does.

        Raises SigmaGraphError for what NumPy refuses, and for masks that are nodes.
        """
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, ArrayMethods) for part in parts):
            return self._taken(parts)
        try:
            shape = np.broadcast_to(0, self.shape)[key].shape
        except (IndexError, TypeError, ValueError) as error:
            raise SigmaGraphError(f"{self!r}[{reprlib.repr(key)}]: {error}.") from None
        listed = any(np.ndim(part) or isinstance(part, bool) for part in parts if part is not ...)
        spans = [] if listed else _spans(parts, self.shape)
        if listed or any(span.step < 0 for span in spans):
            places = np.arange(math.prod(self.shape)).reshape(self.shape)[key]
            return self._apply("take", self.reshape(-1), places, axis=0)
        start, step = [span.start for span in spans], [span.step for span in spans]
        stop = [max(span.start, span.stop) for span in spans]
        return self._apply("slice", self, start=start, stop=stop, step=step).reshape(shape)

    def _taken(self, parts: Sequence[Any]) -> Self:
        """Select by a node, beside which all axes are whole."""
        at = next(at for at, part in enumerate(parts) if isinstance(part, ArrayMethods))
        places = parts[at]
        if places.dtype == "bool":
            raise SigmaGraphError(
                f"{self!r}[{places!r}]: how many entries a mask selects is unknown here. Use where(mask, x, y)."
            )
        if any(part not in (slice(None), ...) for i, part in enumerate(parts) if i != at):
            raise SigmaGraphError(f"{self!r}[{places!r}]: a node selects along one axis. Slice the others before.")
        return self._apply("take", self, places, axis=place(self.shape, at - len(parts) if ... in parts[:at] else at))

    # -- form ----------------------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Self:  # noqa: N802
        """Return the transpose: all axes in reverse order."""
        return self._apply("permute", self, axes=range(self.ndim)[::-1])

    def reshape(self, *shape: Any) -> Self:
        """Return the entries in another shape; a side of -1 is inferred."""
        sides = [index(side) for side in (shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape)]
        if -1 in sides:
            rest = math.prod(side for side in sides if side != -1)
            sides[sides.index(-1)] = math.prod(self.shape) // rest if rest else 0
        return self._apply("reshape", self, shape=tuple(sides))

    def astype(self, dtype: Any) -> Self:
        """Return the entries in another dtype; see :func:`sigma_kernel.functions.cast`."""
        return self._apply("cast", self, dtype=dtype if isinstance(dtype, str) else np.dtype(dtype).name)

    # -- reductions ----------------------------------------------------------------------------------------------------
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Return the sum over axes, all by default."""
        return self._reduced("sum", axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Return the maximum over axes, all by default; equal maxima share the gradient evenly."""
        return self._reduced("max", axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Return the minimum over axes, all by default; equal minima share the gradient evenly."""
        return -(-self).max(axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Return the mean over axes, all by default."""
        return self.sum(axis, keepdims) / float(math.prod(self.shape[a] for a in axes(self.shape, axis)))

    def _reduced(self, op: str, axis: Axis, keepdims: bool) -> Self:
        gone = axes(self.shape, axis)
        kept = self._apply(op, self, axis=gone)
        return kept if keepdims else kept.reshape([side for i, side in enumerate(self.shape) if i not in gone])


def _spans(parts: Sequence[Any], shape: Shape) -> list[range]:
    """Return which entries of each axis integers and slices select; axes that are not named are whole."""
    named = [part for part in parts if part is not None]
    gap = next((at for at, part in enumerate(named) if part is ...), len(named))
    whole = [slice(None)] * (len(shape) - len(named) + (gap < len(named)))
    each = zip((*named[:gap], *whole, *named[gap + 1 :]), map(range, shape), strict=True)
    return [span[part] if isinstance(part, slice) else range(span[part], span[part] + 1) for part, span in each]


def place(shape: Shape, axis: int, extra: int = 0) -> int:
    """Return an axis counted from the front; ``extra`` is 1 if it is a place between axes."""
    rank = len(shape) + extra
    if not -rank <= axis < rank:
        raise SigmaGraphError(f"axis {axis} of shape {shape}: the rank is {len(shape)}")
    return axis % rank


def axes(shape: Shape, axis: Axis) -> Shape:
    """Return sorted axes counted from the front; None means all."""
    if axis is None:
        return tuple(range(len(shape)))
    return tuple(sorted({place(shape, a) for a in ([axis] if isinstance(axis, int) else axis)}))
