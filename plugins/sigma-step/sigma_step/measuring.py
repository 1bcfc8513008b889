"""What iterations measure: their values, and means over all rows of an epoch or of a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sigma_kernel.arrays import protect
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import expect, introduce_errors
from sigma_step.model import COSTS, EPOCH, METRICS, WEIGHTS
from sigma_step.totals import add_exactly, exact, expand, is_additive

Measured = dict[str, tuple[np.ndarray, Any]]  # values by name, and their weights, or one for all: 0 stands for no value
Sums = dict[str, list[list[float]]]  # two by name, without any error: of numbers, and of their weights; see `expand`


def values(name: str, metric: Metric, totals: np.ndarray | list[Any], rows: int) -> np.ndarray:
    """Return the values of a metric; raise SigmaComponentError unless each is a number or a list of numbers."""
    totals = add_exactly(np.swapaxes(totals, 0, 1)) if is_additive(metric) else totals
    with introduce_errors(f"metric {name!r}", metric):
        numbers = [metric.value(total, rows) for total in protect(totals)]
        array = np.array(numbers)
        expect(array.dtype.kind in "fiub", "value() must return a number, or a list of numbers", numbers[0])
    return array


def merge_totals(
    totals: Mapping[str, Any], ring: Mapping[str, np.ndarray], metrics: Mapping[str, Metric]
) -> dict[str, Any]:
    """Return the totals of an evaluation after further batches; those that are added are held as a few exact parts."""
    result = dict[str, Any]()
    for name, new in ring.items():
        metric = metrics.get(own := name.removeprefix(METRICS))
        before = [totals[name]] if name in totals else []
        if metric is None or is_additive(metric):
            result[name] = exact(np.concatenate([*before, new.reshape(-1, *new.shape[2:])]))
        else:
            with introduce_errors(f"metric {own!r}", metric):
                result[name] = metric.merge_all(protect([*before, *new]))
    return result


def evaluate_totals(totals: Mapping[str, Any], metrics: Mapping[str, Metric], rows: int) -> dict[str, Any]:
    """Return the loss, each cost if there are several, and each metric, from totals over so many rows."""
    costs = {name: _mean(x, rows) for name, x in totals.items() if name.startswith(COSTS)}
    scores = {name: values(name, each, [totals[METRICS + name]], rows)[0].tolist() for name, each in metrics.items()}
    return {"loss": sum(costs.values()), **(costs if len(costs) > 1 else {}), **scores}


def _mean(parts: np.ndarray, rows: int) -> float:
    """Return the mean of a cost over rows, which may have weights; NaN if none has one."""
    total, over = [*add_exactly(parts).ravel().tolist(), rows][:2]
    return float(total / over) if over else np.nan


def read_measurements(ring: Mapping[str, np.ndarray], metrics: Mapping[str, Metric], rows: int) -> Measured:
    """Return what each of some iterations measured, on this many rows."""
    measurements = {name: x for name, x in ring.items() if not name.startswith((METRICS, WEIGHTS))}
    measurements |= {name: values(name, metric, ring[METRICS + name], rows) for name, metric in metrics.items()}
    over = {name: ring[WEIGHTS + name].astype(np.float64) * rows for name in measurements if WEIGHTS + name in ring}
    return {name: (x, over.get(name, rows)) for name, x in measurements.items()}


def curves(found: Measured) -> dict[str, np.ndarray]:
    """Return the numbers of each iteration of training by address, NaN for those of weight 0."""
    numbers = {name: x if isinstance(over, int) else np.where(over, x, np.nan) for name, (x, over) in found.items()}
    return {f"training.{name}": x for name, x in numbers.items() if x.ndim == 1}


def latest(found: Measured, sums: Sums, costs: Iterable[str]) -> dict[str, Any]:
    """Return the values of the last iteration by address, None for those of weight 0, and the means of the epoch."""
    there = {name: over if isinstance(over, int) else over[-1] for name, (_, over) in found.items()}
    last = {f"training.{name}": x[-1].tolist() if there[name] else None for name, (x, _) in found.items()}
    return last | {EPOCH + name: mean for name, mean in means(sums, costs).items()}


def add_to_sums(sums: Sums, found: Measured) -> Sums:
    """Add numbers and their weights to sums, exactly, so that the bits do not depend on bursts."""
    new: Sums = {}
    for name, (x, over) in found.items():
        if x.ndim == 1:
            total, weight = sums.get(name, ([], []))
            weights = [over * len(x)] if isinstance(over, int) else exact(over).tolist()
            numbers = exact(np.multiply(x, over, dtype=np.float64)).tolist()
            new[name] = [expand([*total, *numbers]), expand([*weight, *weights])]
    return new


def means(sums: Sums, costs: Iterable[str]) -> dict[str, float]:
    """Return the weighted means, NaN without any weight; with several ``costs``, the loss is the sum of theirs."""
    result = {name: (total or [0.0])[0] / over[0] if over else np.nan for name, (total, over) in sums.items()}
    apart = [result[COSTS + name] for name in costs]
    return result | ({"loss": sum(apart)} if apart else {})
