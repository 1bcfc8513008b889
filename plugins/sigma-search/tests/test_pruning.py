"""The bounds of earlier trials decide as Optuna's pruners do, trial after trial."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import optuna
import pytest

from sigma_kernel import Moment, every
from sigma_search import Outcome, Pruning
from sigma_search.hook import TrialHook
from sigma_search.pruning import find_bounds

EPOCHS, TRIALS, ITERATIONS = 27, 24, 7


def curves(seed, ties, pruning):
    """Return the values of trials; Optuna's halving prunes NaN also where there is nothing to compare with."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(TRIALS, 1)) + 0.4 * rng.normal(size=(TRIALS, EPOCHS)).cumsum(1)
    unknown = rng.random(values.shape) < 0.02
    if pruning.type == "halving":
        unknown[0], unknown[:, 2:] = False, False
    values[unknown] = nan
    return np.round(values, 0 if ties else 9)


def decide(pruning, known, values, maximise):
    """Train a trial as the hook does; return its outcome."""
    bounds, points = {at[:2]: at[2] for at in find_bounds(pruning, known, maximise)}, []
    better = max if maximise else min
    for epoch, value in enumerate(map(float, values), 1):
        points.append((epoch * ITERATIONS, epoch, value))
        bound = bounds.get((epoch * ITERATIONS, epoch))
        if bound is None or epoch < pruning.first_count:
            continue
        reached = value
        if pruning.type == "median":
            reached = better((v for *_, v in points if not isnan(v)), default=nan)
        if isnan(reached) or (reached < bound if maximise else reached > bound):
            return Outcome("pruned", value, tuple(points))
    return Outcome("finished", points[-1][-1], tuple(points))


def decide_by_optuna(study, values):
    """Return the epoch at which Optuna prunes; pruning after the last one counts as none."""
    trial = study.ask()
    for epoch, value in enumerate(map(float, values), 1):
        trial.report(value, epoch)
        if epoch < EPOCHS and trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return epoch
    final = float(values[-1])
    study.tell(trial, None if isnan(final) else final, state=None if not isnan(final) else optuna.trial.TrialState.FAIL)
    return EPOCHS


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("pruning", "theirs"),
    [
        (
            Pruning(type="median", from_=every(4, "epoch"), startup=3),
            optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=4),
        ),
        (
            Pruning(type="halving", from_=every(2, "epoch"), factor=3),
            optuna.pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=3),
        ),
    ],
    ids=["median", "halving"],
)
def test_the_bounds_prune_what_optuna_prunes(seed, maximise, ties, pruning, theirs):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if maximise else "minimize", pruner=theirs)
    known, lengths = [], []
    for values in curves(seed, ties, pruning):
        if isnan(values[-1]):
            values[-1] = 0.0
        known.append(decide(pruning, known, values, maximise))
        lengths.append(decide_by_optuna(study, values))
    assert [len(outcome.values) for outcome in known] == lengths
    assert min(lengths) < EPOCHS


def test_trials_are_compared_at_equal_iterations_of_equal_epochs_alone():
    known = [Outcome("finished", 1.0, ((10, 1, 0.2), (20, 2, 0.4), (30, 3, 1.0))) for _ in range(3)]
    known.append(Outcome("finished", 1.0, ((25, 1, 0.9), (50, 2, 1.0))))
    known.append(Outcome("finished", 0.1, ((10, 2, 0.1), (20, 4, 0.1), (30, 6, 0.1))))
    medians = [(10, 1, 0.2), (10, 2, 0.1), (20, 2, 0.4), (20, 4, 0.1), (25, 1, 0.9)]
    assert find_bounds(Pruning(type="median", startup=1), known, True) == medians
    rungs = find_bounds(Pruning(type="halving", from_=every(20, "iteration"), factor=2), known, True)
    assert rungs == [(20, 2, 0.4), (20, 4, 0.1), (25, 1, 0.9)]


class Reading:
    """The context of a hook: a value at a moment; it notes commands."""

    def __init__(self, iteration, epoch, value):
        self.moment, self.value, self.memory, self.commands = Moment(iteration, epoch), value, {}, []

    def read(self, address):
        return self.value

    def log(self, text):
        pass

    def command(self, name, **about):
        self.commands.append(name)


@pytest.mark.parametrize(
    ("bound", "is_pruned"), [([10, 1, 0.5], True), ([10, 2, 0.5], False), ([11, 1, 0.5], False), ([10, 0.5], True)]
)
def test_the_hook_compares_where_iteration_and_epoch_are_equal(bound, is_pruned):
    context = Reading(10, 1, 0.4)
    TrialHook("validation.accuracy", maximise=True, bounds=[bound]).fire(context)
    assert context.commands == ["stop"] * is_pruned


@pytest.mark.parametrize(
    "pruning", [Pruning(type="median", startup=2), Pruning(type="halving")], ids=["median", "halving"]
)
def test_trials_that_failed_or_recorded_nothing_have_no_say(pruning):
    assert find_bounds(pruning, [], True) == []
    assert find_bounds(pruning, [Outcome("failed"), Outcome("finished", 0.5)], True) == []
