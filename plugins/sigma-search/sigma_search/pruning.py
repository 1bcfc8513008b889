"""The values that a trial has to reach at each moment, from the outcomes of earlier trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan

import numpy as np

from sigma_search.protocol import Outcome
from sigma_search.settings import Pruning

Bounds = list[tuple[int, int, float]]  # iteration, epoch, value


def find_bounds(pruning: Pruning, known: Sequence[Outcome], maximise: bool) -> Bounds:
    """Return the moments at which a trial is compared, each with the value below (above) which it is pruned.

    At equal iterations, trials with other batch sizes are in other epochs: they have no say.
    """
    if pruning.type == "median":
        return find_medians(known, pruning.startup)
    return find_rungs(known, pruning, maximise)


def describe_rule(pruning: Pruning) -> str:
    """Describe the bounds, for the reason of a pruned trial."""
    if pruning.type == "median":
        return "the median of earlier trials"
    return f"the least of the best 1 in {pruning.factor} of earlier trials"


def find_medians(known: Sequence[Outcome], startup: int) -> Bounds:
    """Return the medians of the values of finished trials at equal moments; none of fewer trials than ``startup``.

    The last value of a trial does not count: pruning at the end spares nothing.  As Optuna's MedianPruner.
    """
    finished = [outcome for outcome in known if outcome.status == "finished"]
    if len(finished) < startup:
        return []
    columns = _by_moment([point for outcome in finished for point in outcome.values[:-1]])
    medians = [(*at, float(np.nanmedian(values))) for at, values in columns.items() if not np.isnan(values).all()]
    return sorted(medians)


def find_rungs(known: Sequence[Outcome], pruning: Pruning, maximise: bool) -> Bounds:
    """Return the bounds of asynchronous successive halving.

    At ``from``, and then after ``factor`` times as long as before, a trial goes on if it is among the best 1 in
    ``factor`` of the trials that came so far, itself included.  As Optuna's SuccessiveHalvingPruner (Li et al., 2018).
    """
    rungs = [rung for outcome in known for rung in _list_rungs(outcome, pruning)]
    bounds = []
    for at, values in _by_moment(rungs).items():
        best = sorted(((-inf if maximise else inf) if isnan(value) else value for value in values), reverse=maximise)
        place = max(1, (len(best) + 1) // pruning.factor)
        bounds.append((*at, best[place - 1]))
    return sorted(bounds)


def _list_rungs(outcome: Outcome, pruning: Pruning) -> Iterator[tuple[int, int, float]]:
    """Yield iteration, epoch, value at each rung that a trial has reached, but for the end of one that has finished."""
    rung, last = pruning.first_count, outcome.values[-1:] if outcome.status == "finished" else ()
    for point in outcome.values:
        if (point[0] if pruning.counts_iterations else point[1]) >= rung:
            if point not in last:
                yield point
            rung *= pruning.factor


def _by_moment(points: Sequence[tuple[int, int, float]]) -> Mapping[tuple[int, int], list[float]]:
    columns: dict[tuple[int, int], list[float]] = {}
    for iteration, epoch, value in points:
        columns.setdefault((iteration, epoch), []).append(value)
    return columns
