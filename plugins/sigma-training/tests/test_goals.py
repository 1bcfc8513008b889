"""When training pauses and ends, and when something is due, by counting; and what a hook keeps of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel.clock import every
from sigma_kernel.criteria import when
from sigma_testing.doing import Do
from sigma_testing.steering import Sweep, small_environment
from sigma_training.session import goals, keeping
from sigma_training.session.progress import NONE, Phase, TrainingProgress
from sigma_training.session.state import Present

WEIGHTS = "network.layers.weights"


def trained(iterations: int, progress: TrainingProgress | None = None, **settings: Any) -> Present:
    """Return a run after some iterations, of which there are 5 in an epoch: 23 rows in batches of 5."""
    with small_environment(Sweep(), **settings) as sigma:
        sigma.trainer("trainer").fit(iterations=iterations)
        run = sigma.trainer("trainer").session.present
    return run if progress is None else run.with_progress(progress)


def running(**goals: Any) -> TrainingProgress:
    return TrainingProgress(Phase.RUNNING, **{"start": 1, **goals})


@pytest.mark.parametrize(("done", "epochs", "at"), [(0, 3, 15), (5, 3, 15), (12, 3, 15), (4, 1, 5), (11, 2.0, 10)])
def test_an_epoch_ends_after_its_iterations_wherever_training_stands(done: int, epochs: float, at: int) -> None:
    assert goals.iteration_at(trained(done), epochs) == at


@pytest.mark.parametrize(
    ("end", "total", "ends"),
    [
        (NONE, 5, 25),  # without a goal of its own, after the total
        ((7, None), 5, 7),
        ((None, 2), 5, 10),
        ((30, 3), 5, 15),  # the first of two
        ((9, 3), 5, 9),
    ],
)
def test_training_ends_at_its_first_goal_or_without_any_after_the_total(end: Any, total: int, ends: int) -> None:
    run = trained(6, running(end=end), epochs=total)
    assert (goals.end_iteration(run), goals.is_at_end(run)) == (ends, False)
    assert goals.is_at_end(trained(ends, running(end=end), epochs=total))
    assert not goals.is_at_end(trained(ends - 1, running(end=end), epochs=total))


@pytest.mark.parametrize(("start", "ends"), [(1, 10), (2, 100)])
def test_a_total_that_was_set_during_training_takes_the_place_of_its_goal_alone(start: int, ends: int) -> None:
    run = trained(3, running(end=(100, None)))
    run = run.with_state(evolve(run.state, changes={"epochs": {"total": 2, "start": start}}))
    assert goals.end_iteration(run) == ends


def test_a_hook_that_ends_training_before_its_goal_is_the_latest_end() -> None:
    stop = Do(does=lambda _: None, when=when("iteration").reaches(17), stops=True)
    assert goals.latest_end(trained(6, running(end=(90, None)), hooks={"end": stop})) == 17
    assert goals.latest_end(trained(6, running(end=(9, None)), hooks={"end": stop})) == 9
    assert goals.latest_end(trained(6, running())) is None


@pytest.mark.parametrize(
    ("progress", "replayed", "due"),
    [
        (running(), None, 4),  # the end of the epoch, at 10
        (running(end=(8, None)), None, 2),
        (running(pause=(7, None)), None, 1),
        (running(pause=(None, 2), end=(8, None)), None, 2),
        (running(), 2, 2),
        (running(end=(7, None)), 2, 1),
        (running(end=(3, None)), None, 1),  # a goal that is over: never less than 1
    ],
)
def test_something_is_due_at_the_first_of_epoch_goal_pause_and_replayed_row(
    progress: TrainingProgress, replayed: int | None, due: int
) -> None:
    assert goals.distance(trained(6, progress), replayed) == due


def test_something_is_due_when_a_hook_is() -> None:
    hooks = {"often": Do(does=lambda _: None, every=every(7, "iteration"))}
    assert goals.distance(trained(5, running(), hooks=hooks)) == 2
    assert goals.distance(trained(6, running(), hooks=hooks)) == 1


def test_what_a_hook_keeps_is_restored_and_neither_changes_the_run_that_it_is_given() -> None:
    before = trained(4)
    weights, kept = before.state.arrays[WEIGHTS], keeping.keep(before, "best")
    zero = {**kept.state.arrays, WEIGHTS: np.zeros_like(weights)}
    moved = kept.with_state(evolve(kept.state, arrays=zero))
    moved = evolve(moved, progress=running(), last=evolve(moved.last, finite=False))
    restored = keeping.restore_kept(moved, "best")
    np.testing.assert_array_equal(restored.state.arrays[WEIGHTS], weights)
    assert restored.last.finite
    assert not moved.last.finite
    assert not moved.state.arrays[WEIGHTS].any()
    assert not before.state.kept


def test_training_that_has_ended_goes_on_from_its_end_and_not_from_what_a_hook_restored() -> None:
    run = keeping.keep(trained(4), "best").with_progress(TrainingProgress(Phase.ENDED))
    end = {**run.state.arrays, WEIGHTS: np.full_like(run.state.arrays[WEIGHTS], 3.0)}
    ended = run.with_state(evolve(run.state, arrays=end))
    restored = keeping.restore_kept(ended, "best")
    assert restored.state.set_aside
    assert not (restored.state.arrays[WEIGHTS] == 3.0).any()
    on = keeping.leave_kept(restored.with_progress(running()))
    assert (on.state.arrays[WEIGHTS] == 3.0).all()
    assert not on.state.set_aside


def test_nothing_is_restored_for_a_hook_that_has_kept_nothing() -> None:
    run = trained(4)
    found = keeping.restore_kept(run.with_progress(running()), "other")
    assert found.state.arrays == run.state.arrays
    assert found.last.finite


def test_published_values_that_another_holds_are_copied_before_the_next_is_added() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        current = sigma.trainer("trainer").session
        current.publish("a", 1.0)
        held = current.freeze()
        current.publish("b", 2.0)
        current.publish("c", 3.0)
        assert "b" not in held.state.published
        assert {"a": 1.0, "b": 2.0, "c": 3.0}.items() <= current.state.published.items()
        assert current.lookup("c") == 3.0
