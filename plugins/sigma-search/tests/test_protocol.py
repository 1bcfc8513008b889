"""The trials of a search do not depend on the order in which they end, nor on lost ones: random schedules."""

from __future__ import annotations

import random

import pytest

from sigma_search import Dimension, Outcome, Protocol, Pruning, SearchSettings, propose
from sigma_search.protocol import FAILED
from sigma_search.pruning import find_bounds

SPACE = {"rate": Dimension(low=1e-4, high=1e-1, log=True), "width": Dimension(low=8, high=64)}
EPOCHS = 6


def settings(parallel, trials=10, sampler="random", prune=None):
    return SearchSettings(trials=trials, parallel=parallel, maximise="score", sampler=sampler, prune=prune, space=SPACE)


def train(values, bounds):
    """Return the outcome of a trial: a function of its values, compared as the hook does."""
    allowed, points = {at[:2]: at[2] for at in bounds}, []
    for epoch in range(1, EPOCHS + 1):
        score = values["width"] / 100 + values["rate"] * epoch
        points.append((10 * epoch, epoch, score))
        if score < allowed.get((10 * epoch, epoch), -1):
            return Outcome("pruned", score, tuple(points))
    return Outcome("finished", points[-1][-1], tuple(points))


def run(search, seed, lose=0.0, fails=()):
    """Run a search whose trials end in a random order, and some of whose processes are lost; return what was asked."""
    chance, protocol, asked, training = random.Random(seed), Protocol(search.count, search.parallel), {}, {}
    order, lost = [], 0
    while True:
        while (number := protocol.next_number()) is not None:
            if number not in asked:
                known = protocol.outcomes_for(number)
                assert len(known) == max(0, number - search.parallel + 1)
                before = [asked[n][0] for n in range(number)]
                told = list(zip(before, known, strict=False))
                values = propose(search, 3, number, told, before[len(known) :])
                bounds = find_bounds(search.prune, known, maximise=True) if search.prune else []
                asked[number] = values, bounds
            protocol = protocol.begin(number)
            training[number] = train(*asked[number])
            assert len(training) <= search.parallel
        if not training:
            return [asked[n] for n in range(search.count)], [protocol.told[n] for n in range(search.count)], order, lost
        number = chance.choice([*training])
        outcome = training.pop(number)
        if number in fails or (chance.random() < lose and protocol.tried.get(number, 0) < 2):
            protocol, lost = protocol.lose(number), lost + 1
        else:
            protocol = protocol.end(number, outcome)
            order.append(number)


@pytest.mark.parametrize("parallel", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("rule", ["median", "halving", None])
def test_whatever_the_order_of_completion_the_same_trials_are_asked_and_pruned(parallel, rule):
    prune = None if rule is None else Pruning(type=rule, startup=2, factor=2)
    search = settings(parallel, prune=prune)
    runs = [run(search, seed, lose) for seed in range(12) for lose in (0.0, 0.4)]
    asked, told, _, _ = runs[0]
    assert all(other[0] == asked and other[1] == told for other in runs)
    assert sum(lost for *_, lost in runs) > 0
    if parallel in (3, 5):
        assert len({tuple(order) for *_, order, _ in runs}) > 3  # the schedules did differ
    if rule is not None and parallel < 5:
        assert {outcome.status for outcome in told} == {"finished", "pruned"}


def test_the_sampler_that_learns_proposes_the_same_for_each_schedule():
    search = settings(3, trials=16, sampler="tpe")
    runs = [run(search, seed, 0.3)[:2] for seed in range(4)]
    assert all(other == runs[0] for other in runs)
    learned = [values for values, _ in runs[0][0]]
    assert len({values["rate"] for values in learned}) == 16
    assert learned != [values for values, _ in run(settings(3, trials=16), 0)[0]]


def test_other_numbers_of_processes_may_ask_for_other_values_and_more_trials_extend_a_search():
    search = settings(2, trials=14, sampler="tpe")
    assert run(settings(2, trials=9, sampler="tpe"), 1)[0] == run(search, 5)[0][:9]


def test_a_trial_that_fails_is_repeated_and_then_told_before_later_ones_are_asked():
    asked, told, _, lost = run(settings(2), 0, fails={4})
    assert told[4] == Outcome(FAILED)
    assert lost == 3
    others = run(settings(2), 7, lose=0.4, fails={4})
    assert (asked, told) == others[:2]


def test_a_trial_is_asked_once_those_up_to_its_number_less_parallel_are_told():
    protocol = Protocol(trials=5, parallel=2).begin(0).begin(1)
    assert protocol.next_number() is None
    late = protocol.end(1, Outcome("finished", 1.0))
    assert late.next_number() is None  # trial 2 waits for trial 0
    early = protocol.end(0, Outcome("finished", 0.5))
    assert early.next_number() == 2
    assert early.outcomes_for(2) == [Outcome("finished", 0.5)]
    assert late.end(0, Outcome("finished", 0.5)).outcomes_for(2) == early.outcomes_for(2)


def test_a_lost_trial_is_next_before_new_ones():
    protocol = Protocol(trials=5, parallel=2).begin(0).begin(1).end(0, Outcome("finished", 1.0)).begin(2)
    assert protocol.lose(1).next_number() == 1
    assert protocol.lose(1).begin(1).training == {1, 2}
    assert protocol.lose(1).begin(1).lose(1).begin(1).lose(1).told[1] == Outcome(FAILED)
