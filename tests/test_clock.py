"""Time scales: what is due when, the iterations before it, and their text form."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from attrs import asdict
from hypothesis import given, settings, strategies as st

from sigma_kernel import clock
from sigma_kernel.clock import COUNTED, EVENTS, Moment, TimeScale, TimeStep, after, between, duration, every
from sigma_kernel.errors import SigmaConfigError
from sigma_training.session.goals import until_due

WHOLE = [scale for scale in COUNTED if scale is not TimeScale.SECOND]


@st.composite
def steps(draw, scales=COUNTED, most=40):
    scale = draw(st.sampled_from(scales))
    numbers = st.integers(1, most)
    if scale is TimeScale.SECOND:
        numbers |= st.floats(0.1, most)
    interval, first, last = draw(numbers), draw(st.none() | numbers), draw(st.none() | numbers)
    first = interval if first is None else first
    return TimeStep(scale, interval, first, None if last is None else max(first, last))


def at(scale: TimeScale, count: float) -> Moment:
    return Moment(**{scale.value: count})


def points(step: TimeStep, up_to: float) -> list[float]:
    """List the due points of a step one by one."""
    limit = up_to if step.last is None else min(step.last, up_to)
    found = []
    while (point := step.first + len(found) * step.interval) <= limit:
        found.append(point)
    return found


# -- when a step is due ------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(steps(WHOLE), st.integers(0, 100), st.integers(0, 60))
def test_a_step_is_due_if_a_due_point_was_passed(step, before, more):
    passed = [point for point in points(step, before + more) if point > before]
    assert step.due(at(step.scale, before), at(step.scale, before + more)) == bool(passed)
    assert step.next_due(before) == next((point for point in points(step, before + 100) if point > before), None)


@settings(deadline=None)
@given(steps(), st.lists(st.floats(0, 30), max_size=30))
def test_no_due_point_is_lost_or_repeated_however_time_is_divided(step, cuts):
    if step.scale is not TimeScale.SECOND:
        cuts = [math.floor(cut) for cut in cuts]
    moments = [0, *sorted({*cuts, *points(step, 10)})]
    for before, now in pairwise(moments):
        passed = any(before < point <= now for point in points(step, now))
        assert step.due(at(step.scale, before), at(step.scale, now)) == passed


def test_due_points_every_tenth_of_a_second_survive_rounding():
    for interval in (0.1, 0.7, 1 / 3):
        step, count = every(interval, "second"), 0.0
        for _ in range(1000):
            then = step.next_due(count)
            assert then == pytest.approx(count + interval)
            assert not step.due(Moment(second=then), Moment(second=then))
            count = then


def test_nothing_is_due_before_the_first_iteration():
    for scale in COUNTED:
        assert not every(1, scale).due(Moment(), Moment())
        assert every(1, scale).due(Moment(), at(scale, 1))


def test_several_due_points_between_two_boundaries_fire_once():
    assert every(10, "sample").due(Moment(sample=100), Moment(sample=200))
    assert not every(10, "sample").due(Moment(sample=200), Moment(sample=200))


def test_after_is_due_once_and_between_only_within_its_limits():
    due = [[c for c in range(1, 30) if step.due(Moment(epoch=c - 1), Moment(epoch=c))]
           for step in (after(10, "epoch"), between(2, 8, "epoch", interval=3), every(10, "epoch"))]  # fmt: skip
    assert due == [[10], [2, 5, 8], [10, 20]]


def test_an_event_is_due_whenever_it_happens():
    now, step = Moment(), every(1, "pause")
    for _ in range(3):
        before, now = now, now.tick(TimeScale.PAUSE)
        assert step.due(before, now)
        assert not every(1, "resume").due(before, now)


# -- bursts ------------------------------------------------------------------------------------------------------------
def run(
    steps: list[TimeStep], iterations: int, rows: int, batch: int, bursts: bool
) -> list[tuple[int, int, list[int]]]:
    """Simulate training; return iteration, epoch and the steps that fired, for each boundary with one."""
    now, fired, row, per_epoch = Moment(), [], 0, -(-rows // batch)
    while now.iteration < iterations:
        before = now
        done, left = -(-row // batch), iterations - before.iteration
        due = until_due(steps, before, iterations_per_epoch=per_epoch, iteration_in_epoch=done, batch=batch)
        for _ in range(min(due or left, left, per_epoch - done) if bursts else 1):
            size = min(batch, rows - row)
            row += size
            now = now.advance(1, samples=size, seconds=0.001)
        if row == rows:
            row = 0
            now = now.tick(TimeScale.EPOCH)
        names = [i for i, step in enumerate(steps) if step.due(before, now)]
        if names:
            fired.append((now.iteration, now.epoch, names))
    return fired


@settings(deadline=None)
@given(
    st.lists(steps(WHOLE), max_size=5), st.integers(1, 60), st.integers(1, 23), st.integers(1, 7)
)  # fmt: skip
def test_bursts_fire_steps_at_the_same_iterations_as_single_steps(steps, iterations, rows, batch):
    assert run(steps, iterations, rows, batch, bursts=True) == run(steps, iterations, rows, batch, bursts=False)


@settings(deadline=None)
@given(st.lists(steps(), max_size=4), st.integers(1, 9), st.data())
def test_a_burst_extends_to_the_next_due_point(steps, per_epoch, data):
    iteration = data.draw(st.integers(0, 50))
    now = Moment(iteration, iteration // per_epoch, iteration * 10)
    ahead = until_due(steps, now, iterations_per_epoch=per_epoch, iteration_in_epoch=iteration % per_epoch, batch=10)
    then = [Moment(i, i // per_epoch, i * 10) for i in range(iteration + 1, iteration + 500)]
    first = next((m.iteration - iteration for m in then if any(step.due(now, m) for step in steps)), None)
    assert ahead == first


def test_seconds_and_events_do_not_bound_iterations():
    steps = [every(0.1, "second"), *(every(1, scale) for scale in EVENTS)]
    assert until_due(steps, Moment(), iterations_per_epoch=10, iteration_in_epoch=0, batch=1) is None
    steps.append(every(3, "epoch"))
    assert until_due(steps, Moment(), iterations_per_epoch=10, iteration_in_epoch=4, batch=1) == 26


def test_past_due_points_do_not_bound_a_burst():
    assert until_due([after(3, "epoch")], Moment(30, 3), iterations_per_epoch=10, iteration_in_epoch=0, batch=1) is None


# -- text form ---------------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(steps(most=10**9) | st.builds(TimeStep, st.sampled_from(EVENTS)))
def test_a_time_step_prints_as_its_text(step):
    assert TimeStep.parse(str(step)) == step


@pytest.mark.parametrize(
    ("text", "step", "printed"),
    [
        ("1 epoch", every(1, "epoch"), "every 1 epoch"),
        ("every epoch", every(1, "epoch"), "every 1 epoch"),
        ("every 2 epochs", every(2, "epoch"), "every 2 epochs"),
        ("  every   100  iterations ", every(100, "iteration"), "every 100 iterations"),
        ("30 seconds", every(30, "second"), "every 30 seconds"),
        ("0.5seconds", every(0.5, "second"), "every 0.5 seconds"),
        ("1e3 samples", every(1000, "sample"), "every 1000 samples"),
        ("1234567 iterations", every(1234567, "iteration"), "every 1234567 iterations"),
        ("after 10 iterations", after(10, "iteration"), "after 10 iterations"),
        ("every 2 epochs from 5", TimeStep("epoch", 2, 5), "every 2 epochs from 5"),
        ("1 epoch between 2 and 8", between(2, 8, "epoch"), "every 1 epoch between 2 and 8"),
        ("start", every(1, "start"), "start"),
        ("stop", every(1, "stop"), "stop"),
        ("pause", every(1, "pause"), "pause"),
    ],
)
def test_time_steps_print_as_text(text, step, printed):
    assert TimeStep.parse(text) == step
    assert str(step) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1", "'1': the unit must be epochs, iterations, samples or seconds. Add one, such as '1 epochs'."),
        ("2 epocs", "'2 epocs': the unit must be epochs, iterations, samples or seconds. Did you mean 'epochs'?"),
        ("2.5 epochs", "2.5 epochs: must be a whole number."),
        ("0 iterations", "0.0 iterations: must be a number above 0."),
        ("1e999 seconds", "inf seconds: must be a number above 0."),
        ("strat", "'strat' is not a time step. Did you mean 'start'?"),
        ("epoch", "'epoch' is not a time step. Write 'every 2 epochs', '100 iterations', 'after 30 seconds'"),
        ("-1 epochs", "'-1 epochs' is not a time step."),
        ("", "'' is not a time step."),
        ("after 2 epochs from 3", "'after 2 epochs from 3' is not a time step."),
        ("every 1 epoch between 5 and 2", "every 1 epoch between 5 and 2: is never due."),
        ("every 1 epoch between 1.2.3 and 2", "is not a time step"),
        ("every 1 epoch from 0", "0.0 epochs: must be a number above 0."),
        ("2 pauses", "'2 pauses': the unit must be epochs"),
    ],
)
def test_an_invalid_time_step_is_refused_with_the_valid_forms(text, message):
    with pytest.raises(SigmaConfigError) as error:
        TimeStep.parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: every(0, "epoch"), "0 epochs: must be a number above 0"),
        (lambda: every(-1, "second"), "-1 seconds: must be a number above 0"),
        (lambda: every(math.nan, "second"), "nan seconds: must be a number above 0"),
        (lambda: every(math.inf, "epoch"), "inf epochs: must be a number above 0"),
        (lambda: every(True, "epoch"), "True epochs: must be a number above 0"),
        (lambda: every("1", "epoch"), "'1' epochs: must be a number above 0"),
        (lambda: every(1.5, "iteration"), "1.5 iterations: must be a whole number"),
        (lambda: every(1, "epocs"), "'epocs' is not a time scale. Did you mean 'epochs'?"),
        (lambda: after(2, "start"), "start: is an event, which takes no number"),
        (lambda: every(2, "stop"), "stop: is an event, which takes no number"),
        (lambda: between(8, 2, "epoch"), "every 1 epoch between 8 and 2: is never due. Put the smaller number first."),
        (lambda: between(0, 2, "epoch"), "0 epochs: must be a number above 0"),
    ],
)
def test_an_invalid_time_step_is_refused(make, message):
    with pytest.raises(SigmaConfigError) as error:
        make()
    assert message in str(error.value)


def test_counts_become_python_numbers():
    step = TimeStep("epochs", np.int64(2), np.float32(4.0), 8)
    assert (type(step.interval), type(step.first), type(step.last)) == (int, int, int)
    assert step == between(4, 8, "epoch", interval=2)
    assert clock.time_scale("seconds") is clock.time_scale(TimeScale.SECOND) is TimeScale.SECOND


@pytest.mark.parametrize(
    ("text", "count", "scale", "printed"),
    [
        ("5 epochs", 5, TimeScale.EPOCH, "5 epochs"),
        ("1 iterations", 1, TimeScale.ITERATION, "1 iteration"),
        (" 2.5  seconds", 2.5, TimeScale.SECOND, "2.5 seconds"),
        ("2.0 samples", 2, TimeScale.SAMPLE, "2 samples"),
    ],
)
def test_durations_are_parsed_and_printed(text, count, scale, printed):
    assert duration(text) == (count, scale)
    assert clock.words(*duration(text)) == printed


@pytest.mark.parametrize("text", ["", "epochs", "two epochs", "5", "5 parsecs", "5 starts", "1.5 samples", "0 seconds"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(SigmaConfigError, match="duration|the unit must be|above 0|must be a whole"):
        duration(text)


# -- the clock ---------------------------------------------------------------------------------------------------------
def test_a_moment_round_trips_through_plain_values():
    start = Moment()
    now = start.advance(5, samples=50, seconds=0.25).advance(1).tick(TimeScale.EPOCH).tick(TimeScale.START)
    assert now == Moment(iteration=6, epoch=1, sample=50, second=0.25, start=1)
    assert Moment(**json.loads(json.dumps(asdict(now)))) == now
    assert start == Moment()
