"""Increasing functions of one number, linear between knots, for each feature of a sample."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.graph import Node, constant


def quantile_knots(sample: np.ndarray, count: int, normal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``count`` quantiles of each feature and their scores, each of shape (*sample's, knots).

    Scores are the levels from 0 to 1 or, if ``normal``, the numbers below which this share of a standard normal
    distribution is: of n rows, the least and the greatest have the levels 1 / (2 n) and 1 - 1 / (2 n).  Equal
    quantiles are one knot with their middle score; shorter rows of knots repeat the last one.
    """
    levels = np.linspace(0.0, 1.0, max(2, min(count, len(sample))))
    quantiles = np.quantile(sample.reshape(len(sample), -1).astype(np.float64), levels, axis=0)
    end = 0.5 / len(sample)
    scores = np.array([*map(NormalDist().inv_cdf, np.clip(levels, end, 1 - end).tolist())]) if normal else levels
    curves = [_merge_ties(column, scores) for column in np.maximum.accumulate(quantiles).T]
    width = 1 << (max(2, *(len(knots) for knots, _ in curves)) - 1).bit_length()
    padded = (
        np.stack([np.pad(part, (0, width - len(part)), "edge") for part in parts])
        for parts in zip(*curves, strict=True)
    )
    knots, values = (part.reshape(*sample.shape[1:], width) for part in padded)
    return knots, values


def _merge_ties(quantiles: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct quantiles, and of each the middle between its lowest and its highest score."""
    knots, first, counts = np.unique(quantiles, return_index=True, return_counts=True)
    return knots, (scores[first] + scores[first + counts - 1]) / 2


def interpolate(x: Any, knots: np.ndarray, values: np.ndarray) -> Any:
    """Return the function through (knot, value) of numbers (rows, *sample), linear between two knots.

    ``x`` is an array or a node, of float64; what is below the first knot or above the last one has the value there.
    Knots do not decrease along the last axis, whose length is a power of two; where they are equal, so are the values.
    """
    widths, rises = (np.diff(part, append=part[..., -1:]) for part in (knots, values))
    slopes = np.divide(rises, widths, out=np.zeros_like(widths), where=widths > 0)
    ends, tables = (knots[..., 0], knots[..., -1]), [part.reshape(-1) for part in (knots, values, slopes)]
    if isinstance(x, Node):
        x = f.clip(x, *ends)
        place: Any = _search_node(x, knots)
        low, value, slope = (f.take(constant(table, "float64"), place) for table in tables)
    else:
        x = np.clip(x, *ends)
        place = _search_array(x, knots)
        low, value, slope = (table[place] for table in tables)
    return value + (x - low) * slope


def _search_array(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the index of the last knot that is not above x, in the knots of all features one after the other."""
    count = knots.shape[-1]
    flat = x.reshape(len(x), knots[..., 0].size)
    places = np.empty(flat.shape, np.int64)
    for feature, own in enumerate(knots.reshape(-1, count)):
        places[:, feature] = np.searchsorted(own, flat[:, feature], side="right") + (feature * count - 1)
    return np.clip(places, 0, knots.size - 1).reshape(x.shape)  # NaN is above all


def _search_node(x: Node, knots: np.ndarray) -> Node:
    """Return the same by bisection, as a node."""
    count = knots.shape[-1]
    start = (np.arange(knots[..., 0].size, dtype=np.int32) * count).reshape(knots.shape[:-1])
    place: Node = f.cast(x >= knots[..., count // 2], "int32") * (count // 2) + start
    step, table = count // 4, constant(knots.reshape(-1), "float64")
    while step:
        place = place + f.cast(x >= f.take(table, place + step), "int32") * step
        step //= 2
    return place
