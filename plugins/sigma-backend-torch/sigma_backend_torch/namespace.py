"""The array namespace of PyTorch, with its own convolutions.

PyTorch has no arithmetic for uint32: such values are computed as int64, and cut to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from array_api_compat import torch as xp
from torch.nn import functional

from sigma_kernel.contracts import Array
from sigma_kernel.graph import MEANINGS, Namespace, inside

NAMES = ("float32", "float64", "int32", "int64", "bool")
WORD = 0xFFFFFFFF
RANKS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}  # by the number of axes of space
Padding = Sequence[tuple[int, int]]


def _check(op: str, places: Array, side: int) -> None:
    inside(op, places.cpu().numpy(), side)


def _mod(ns: Namespace, x: Array, y: Array) -> Array:
    """Return the remainder, whose zeros have the sign of the divisor; that of an integer by 0 is 0."""
    if x.dtype.is_floating_point:
        rest = torch.remainder(x, y)
        return torch.where(rest == 0, torch.copysign(rest, y), rest)
    return torch.where(y == 0, 0, torch.remainder(x, torch.where(y == 0, 1, y)))


# -- convolution -------------------------------------------------------------------------------------------------------
def _own(meaning: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function that is PyTorch's where that has one: for one to three axes of space, none of them empty."""

    def call(ns: Namespace, first: Array, second: Array, **how: Any) -> Array:
        sides = (*first.shape, *second.shape, *how.get("shape", ()))
        if first.ndim - 2 in RANKS and all(sides):
            return run(first, second, **how)
        return MEANINGS[meaning](ns, first, second, **how)

    return call


def _padded(x: Array, padding: Padding) -> Array:
    flat = [*chain.from_iterable(reversed([*padding]))]
    return functional.pad(x, flat) if any(flat) else x


def _convolution(x: Array, w: Array, *, groups: int, stride: Any, padding: Padding, dilation: Any) -> Array:
    run = RANKS[x.ndim - 2]
    return run(_padded(x, padding), w, stride=tuple(stride), dilation=tuple(dilation), groups=groups)


def _convolution_input(
    g: Array, w: Array, *, shape: Any, groups: int, stride: Any, padding: Padding, dilation: Any
) -> Array:
    sides = [side + low + high for side, (low, high) in zip(shape[2:], padding, strict=True)]
    wide = g.new_empty((*shape[:2], *sides))
    found = _backward(g, wide, w, stride, dilation, groups, (True, False, False))[0]
    for axis, (side, (low, _)) in enumerate(zip(shape[2:], padding, strict=True), 2):
        found = found.narrow(axis, low, side)
    return found


def _convolution_kernel(
    x: Array, g: Array, *, shape: Any, groups: int, stride: Any, padding: Padding, dilation: Any
) -> Array:
    return _backward(g, _padded(x, padding), x.new_empty(tuple(shape)), stride, dilation, groups, (False, True, False))[
        1
    ]


def _backward(g: Array, x: Array, w: Array, stride: Any, dilation: Any, groups: int, wanted: Any) -> Any:
    none = [0] * (x.ndim - 2)
    return torch.ops.aten.convolution_backward(
        g, x, w, None, [*stride], none, [*dilation], False, none, groups, [*wanted]
    )


# -- without a detour by the array API's wrappers: they cost microseconds an op ----------------------------------------
def _plain(run: Callable[..., Array]) -> Callable[..., Array]:
    return lambda ns, *operands: run(*operands)


SAME = "add sub mul div pow maximum minimum neg abs exp expm1 log log1p sqrt sin cos tanh logical_and logical_or"
PLAIN: dict[str, Callable[..., Any]] = {
    **{name: _plain(getattr(torch, name)) for name in (*SAME.split(), "logical_not", "where", "matmul", "relu")},
    "equal": _plain(torch.eq),
    "greater": _plain(torch.gt),
    "greater_equal": _plain(torch.ge),
    "is_finite": _plain(torch.isfinite),
    "sigmoid": _plain(torch.sigmoid),
    "reshape": lambda ns, x, *, shape: x.reshape(shape),
    "permute": lambda ns, x, *, axes: x.permute(*axes),
    "stretch": lambda ns, x, *, shape: x.expand(*shape),
    "concat": lambda ns, *operands, axis: torch.cat(operands, axis),
    "sum": lambda ns, x, *, axis: torch.sum(x, axis, keepdim=True, dtype=x.dtype) if axis else x,
    "max": lambda ns, x, *, axis: torch.amax(x, axis, keepdim=True) if axis else x,
    "softmax": lambda ns, x, *, axis: torch.softmax(x, axis),
    "log_softmax": lambda ns, x, *, axis: torch.log_softmax(x, axis),
}

# -- the namespace -----------------------------------------------------------------------------------------------------
OWN: dict[str, Callable[..., Any]] = {
    **PLAIN,
    "convolution": _own("convolution", _convolution),
    "convolution_input": _own("convolution_input", _convolution_input),
    "convolution_kernel": _own("convolution_kernel", _convolution_kernel),
    "mod": _mod,
}


def namespace() -> Namespace:
    """Return PyTorch's namespace; arrays that it makes lie on the default device."""
    return Namespace(
        "torch",
        xp,
        {name: getattr(torch, name) for name in NAMES} | {"uint32": torch.int64},
        torch.int64,
        word=lambda x: x & WORD,
        erf=lambda xp, x: torch.erf(x),
        scatter_add=lambda xp, x, places, updates: x.index_add(0, places, updates),
        narrow=lambda ns, x, dtype: x.to(getattr(torch, dtype)).to(x.dtype),
        inside=_check,
        own=OWN,
    )
