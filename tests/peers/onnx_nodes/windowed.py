"""ONNX's convolutions and pools, in functions of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from tests.peers.onnx_nodes.reading import OutOfScopeError, Table

WINDOWS = Table()
row = WINDOWS.row
Pairs = list[tuple[int, int]]


def around(
    sides: Sequence[int],
    spans: Sequence[int],
    steps: Sequence[int],
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Pairs:
    """Return the padding of each side; ``spans`` are windows with their gaps."""
    rank = len(sides)
    given = list(pads) if pads else [0] * 2 * rank
    pairs = [(given[i], given[i + rank]) for i in range(rank)]
    if auto_pad.startswith("SAME"):
        total = [
            max((ceil(n / step) - 1) * step + span - n, 0) for n, span, step in zip(sides, spans, steps, strict=True)
        ]
        pairs = [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
    return [_further(*one) for one in zip(sides, spans, steps, pairs, strict=True)] if ceil_mode else pairs


def _further(side: int, span: int, step: int, pair: tuple[int, int]) -> tuple[int, int]:
    """Return padding for one more window, if it begins on data or on the padding before it."""
    low, high = pair
    count = ceil((side + low + high - span) / step) + 1
    count -= (count - 1) * step >= side + low
    return low, high + max((count - 1) * step + span - (side + low + high), 0)


def spread(windows: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Return windows with their gaps."""
    return [(n - 1) * gap + 1 for n, gap in zip(windows, dilations, strict=True)]


# -- convolutions ------------------------------------------------------------------------------------------------------
@row("Conv")
def _conv(
    x: Any, w: Any, b: Any = None, group: int = 1, kernel_shape: Any = None, strides: Any = None, dilations: Any = None,
    **padding: Any,
) -> Any:  # fmt: skip
    rank = len(x.shape) - 2
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    pairs = around(x.shape[2:], spread(w.shape[2:], gaps), steps, **padding)
    made = f.convolution(x, w, steps, pairs, gaps, group)
    return made if b is None else made + f.reshape(b, (-1, *(1,) * rank))


# -- pools -------------------------------------------------------------------------------------------------------------
def _taps(x: Any, window: Sequence[int], gaps: Sequence[int], steps: Sequence[int], pairs: Pairs, value: float) -> Any:
    """Return ``(N, C, *S', K)``: the entries under each window."""
    wide = f.pad(x, [0, 0, *(low for low, _ in pairs)], [0, 0, *(high for _, high in pairs)], value=value)
    spans = spread(window, gaps)
    counts = [(n - span) // step + 1 for n, span, step in zip(wide.shape[2:], spans, steps, strict=True)]
    taps = []
    for place in np.ndindex(*window):
        start = [at * gap for at, gap in zip(place, gaps, strict=True)]
        stop = [a + (count - 1) * step + 1 for a, count, step in zip(start, counts, steps, strict=True)]
        taps.append(f.slice(wide, [0, 0, *start], [*wide.shape[:2], *stop], [1, 1, *steps]))
    return f.stack(*taps, axis=-1)


@row("MaxPool")
def _max_pool(
    x: Any, kernel_shape: Sequence[int], strides: Any = None, dilations: Any = None, storage_order: int = 0,
    **padding: Any,
) -> Any:  # fmt: skip
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    pairs = around(x.shape[2:], spread(kernel_shape, gaps), steps, **padding)
    if any(gap > 1 for gap in gaps):
        return f.max(_taps(x, kernel_shape, gaps, steps, pairs, -np.inf), -1)
    return f.max_pool(x, kernel_shape, steps, pairs)


@row("AveragePool")
def _average_pool(
    x: Any, kernel_shape: Sequence[int], strides: Any = None, dilations: Any = None, count_include_pad: int = 0,
    **padding: Any,
) -> Any:  # fmt: skip
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    spans = spread(kernel_shape, gaps)
    pairs = around(x.shape[2:], spans, steps, **padding)
    if any(gap > 1 for gap in gaps):

        def summed(y: Any, sides: Pairs) -> Any:
            return f.sum(_taps(y, kernel_shape, gaps, steps, sides, 0.0), -1)
    else:

        def summed(y: Any, sides: Pairs) -> Any:
            return f.sum_pool(y, kernel_shape, steps, sides)

    ones, own = np.ones((1, 1, *x.shape[2:]), np.float32), pairs
    if count_include_pad:  # the padding that was asked for counts, and the rest of a last window does not
        own = around(x.shape[2:], spans, steps, **{**padding, "ceil_mode": 0})
        low, high = ([0, 0, *(pair[end] for pair in own)] for end in (0, 1))
        ones = np.pad(ones, list(zip(low, high, strict=True)), constant_values=1.0)
        own = [(0, more[1] - pair[1]) for more, pair in zip(pairs, own, strict=True)]
    return summed(x, pairs) / summed(ones, own)


@row("LpPool")
def _lp_pool(
    x: Any, kernel_shape: Sequence[int], p: int = 2, strides: Any = None, dilations: Any = None, **padding: Any
) -> Any:
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    if any(gap > 1 for gap in gaps):
        raise OutOfScopeError("a mode of an operator", "LpPool with dilations")
    pairs = around(x.shape[2:], kernel_shape, steps, **padding)
    return f.sum_pool(f.abs(x) ** float(p), kernel_shape, steps, pairs) ** (1.0 / p)


@row("GlobalMaxPool")
def _global_max_pool(x: Any) -> Any:
    return f.max(x, range(2, len(x.shape)), keepdims=True)


@row("GlobalAveragePool")
def _global_average_pool(x: Any) -> Any:
    return f.mean(x, range(2, len(x.shape)), keepdims=True)


@row("LRN")
def _lrn(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    n, c, *sides = x.shape
    low = (size - 1) // 2
    rows = f.reshape(f.square(x), (n, 1, c, prod(sides)))
    sums = f.sum_pool(rows, (size, 1), 1, [(low, size - 1 - low), (0, 0)])
    return x / (f.reshape(sums, x.shape) * (alpha / size) + bias) ** beta
