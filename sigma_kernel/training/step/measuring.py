"""What iterations measure: their values, and means over all rows of an epoch or of a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sigma_kernel.contracts import Metric
from sigma_kernel.errors import expect, inside
from sigma_kernel.training.step.model import COSTS, EPOCH, WEIGHTS

Measured = dict[str, tuple[np.ndarray, np.ndarray]]  # values by name, and their weights: there is none of weight 0
Sums = dict[str, list[float]]  # two by name: of numbers, and of their weights


def values(name: str, metric: Metric, totals: Iterable[np.ndarray], rows: int) -> np.ndarray:
    """Return the values of a metric; raise SigmaComponentError unless each is a number or a list of numbers."""
    with inside(f"metric {name!r}", metric):
        made = [metric.value(one, rows) for one in totals]
        found = np.array(made)
        expect(found.dtype.kind in "fiub", "value() must return a number, or a list of numbers", made[0])
    return found


def measured(ring: Mapping[str, np.ndarray], metrics: Mapping[str, Metric], rows: int) -> Measured:
    """Return what each of some iterations measured, on this many rows."""
    found = {name: one for name, one in ring.items() if not name.startswith(("metrics.", WEIGHTS))}
    found |= {name: values(name, metric, ring[f"metrics.{name}"], rows) for name, metric in metrics.items()}
    return {name: (one, ring.get(WEIGHTS + name, 1.0) * np.full(len(one), rows)) for name, one in found.items()}


def curves(found: Measured) -> dict[str, np.ndarray]:
    """Return the numbers of each iteration of training by address, NaN for those of weight 0."""
    return {f"training.{name}": np.where(over, one, np.nan) for name, (one, over) in found.items() if one.ndim == 1}


def latest(found: Measured, sums: Sums, costs: Iterable[str]) -> dict[str, Any]:
    """Return the values of the last iteration by address, None for those of weight 0, and the means of the epoch."""
    last = {f"training.{name}": one[-1].tolist() if over[-1] else None for name, (one, over) in found.items()}
    return last | {EPOCH + name: mean for name, mean in means(sums, costs).items()}


def summed(sums: Sums, found: Measured) -> Sums:
    """Add numbers and their weights to sums, one after the other, so that the bits do not depend on bursts."""
    pairs = {name: np.stack([one * over, over], axis=1) for name, (one, over) in found.items() if one.ndim == 1}
    every = {name: np.concatenate([[sums.get(name, [0.0, 0.0])], pair]) for name, pair in pairs.items()}
    return {name: pair.cumsum(axis=0)[-1].tolist() for name, pair in every.items()}


def means(sums: Sums, costs: Iterable[str]) -> dict[str, float]:
    """Return the weighted means, NaN without any weight; with several ``costs``, the loss is the sum of theirs."""
    found = {name: total / over if over else np.nan for name, (total, over) in sums.items()}
    apart = [found[COSTS + name] for name in costs]
    return found | ({"loss": sum(apart)} if apart else {})
