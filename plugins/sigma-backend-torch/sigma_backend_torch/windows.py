"""Convolution and pooling by PyTorch's own functions, for one to three axes of space, none of them empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch.nn import functional

from sigma_kernel.contracts import Array
from sigma_kernel.graph import MEANINGS, Namespace

RANKS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}  # by the number of axes of space
aten = torch.ops.aten
Padding = Sequence[tuple[int, int]]


def _prefer_torch(meaning: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function that prefers PyTorch's, if it has one."""

    def call(ns: Namespace, first: Array, second: Array, **how: Any) -> Array:
        sides = (*first.shape, *second.shape, *how.get("shape", ()))
        if first.ndim - 2 in RANKS and all(sides):
            return run(first, second, **how)
        return MEANINGS[meaning](ns, first, second, **how)

    return call


def _pad(x: Array, padding: Padding, value: float = 0.0) -> Array:
    flat = [*chain.from_iterable(reversed([*padding]))]
    return functional.pad(x, flat, value=value) if any(flat) else x


def _split_padding(padding: Padding) -> tuple[list[int], Padding]:
    """Return the padding that a function adds itself, the same at both ends, and the rest to add before."""
    if all(low == high for low, high in padding):
        return [low for low, _ in padding], [(0, 0)] * len(padding)
    return [0] * len(padding), padding


def _sides(shape: Sequence[int], padding: Padding) -> list[int]:
    return [*shape[:2], *(side + low + high for side, (low, high) in zip(shape[2:], padding, strict=True))]


def _inner(x: Array, shape: Sequence[int], padding: Padding) -> Array:
    """Return the part between the padding."""
    for axis, (side, (low, high)) in enumerate(zip(shape[2:], padding, strict=True), 2):
        x = x.narrow(axis, low, side) if low or high else x
    return x


# -- convolution -------------------------------------------------------------------------------------------------------
def _convolution(x: Array, w: Array, *, groups: int, stride: Any, padding: Padding, dilation: Any) -> Array:
    around, before = _split_padding(padding)
    return RANKS[x.ndim - 2](_pad(x, before), w, None, tuple(stride), around, tuple(dilation), groups)


def _convolution_input(
    g: Array, w: Array, *, shape: Any, groups: int, stride: Any, padding: Padding, dilation: Any
) -> Array:
    around, before = _split_padding(padding)
    wide = g.new_empty(_sides(shape, before))
    slope = _backward(g, wide, w, stride, around, dilation, groups, [True, False, False])[0]
    return _inner(slope, shape, before)


def _convolution_kernel(
    x: Array, g: Array, *, shape: Any, groups: int, stride: Any, padding: Padding, dilation: Any
) -> Array:
    around, before = _split_padding(padding)
    kernel = x.new_empty(tuple(shape))
    return _backward(g, _pad(x, before), kernel, stride, around, dilation, groups, [False, True, False])[1]


def _backward(g: Array, x: Array, w: Array, stride: Any, around: Any, dilation: Any, groups: int, wanted: Any) -> Any:
    none = [0] * (x.ndim - 2)
    return aten.convolution_backward(g, x, w, None, [*stride], around, [*dilation], False, none, groups, wanted)


# -- pooling: maxima and their places at once --------------------------------------------------------------------------
POOLS = {
    1: (aten.max_pool2d_with_indices, aten.max_pool2d_with_indices_backward),
    2: (aten.max_pool2d_with_indices, aten.max_pool2d_with_indices_backward),
    3: (aten.max_pool3d_with_indices, aten.max_pool3d_with_indices_backward),
}


def _fitting(padding: Padding, window: Sequence[int]) -> tuple[list[int], Padding]:
    """Return padding as :func:`_split_padding` does; pooling functions add half a window at most."""
    around, before = _split_padding(padding)
    fits = all(2 * side <= span for side, span in zip(around, window, strict=True))
    return (around, before) if fits else ([0] * len(around), padding)


def _flat(window: Sequence[int], stride: Sequence[int], padding: Padding) -> tuple[list[int], list[int], Padding]:
    """Return the settings with two spatial axes in place of one."""
    return ([1, *window], [1, *stride], [(0, 0), *padding]) if len(window) == 1 else ([*window], [*stride], padding)


def pool(ns: Namespace, x: Array, *, window: Any, stride: Any, padding: Padding) -> tuple[Array, Array]:
    """Return the maxima of windows, and their places in the padded axes of space, counted through."""
    run, line = POOLS[x.ndim - 2][0], x.ndim == 3
    window, stride, padding = _flat(window, stride, padding)
    around, before = _fitting(padding, window)
    maxima, places = run(_pad(x.unsqueeze(2) if line else x, before, -torch.inf), window, stride, around)
    return (maxima.squeeze(2), places.squeeze(2)) if line else (maxima, places)


def pool_back(
    ns: Namespace, g: Array, places: Array, *, shape: Any, window: Any, stride: Any, padding: Padding
) -> Array:
    """Return zeros with a gradient added at the places that :func:`pool` found."""
    run, line = POOLS[g.ndim - 2][1], g.ndim == 3
    window, stride, padding = _flat(window, stride, padding)
    around, before = _fitting(padding, window)
    shape = (*shape[:2], 1, *shape[2:]) if line else tuple(shape)
    g, places = (g.unsqueeze(2), places.unsqueeze(2)) if line else (g, places)
    wide = g.new_empty(_sides(shape, before))
    slope = _inner(run(g, wide, window, stride, around, [1] * len(window), False, places), shape, before)
    return slope.squeeze(2) if line else slope


OWN: dict[str, Callable[..., Any]] = {
    "convolution": _prefer_torch("convolution", _convolution),
    "convolution_input": _prefer_torch("convolution_input", _convolution_input),
    "convolution_kernel": _prefer_torch("convolution_kernel", _convolution_kernel),
    "torch:pool": pool,
    "torch:pool_back": pool_back,
}
