"""The progress of training: the content of a snapshot, and when training ends."""

from __future__ import annotations

import pytest

from sigma_training.session.progress import Phase, TrainingProgress


def test_training_ends_in_all_phases_but_running_and_paused_and_on_interruption() -> None:
    assert {phase for phase in Phase if not TrainingProgress(phase).is_over} == {Phase.RUNNING, Phase.PAUSED}
    assert all(TrainingProgress(phase, interrupted=True).is_over for phase in Phase)


def test_pausing_clears_the_iteration_to_pause_at_and_no_other_phase_does() -> None:
    running = TrainingProgress(Phase.RUNNING, pause=(5, None), end=(9, None))
    assert running.with_phase(Phase.PAUSED) == TrainingProgress(Phase.PAUSED, end=(9, None))
    assert running.with_phase(Phase.ENDING) == TrainingProgress(Phase.ENDING, (5, None), (9, None))


def test_a_goal_is_due_from_its_iteration_or_epoch_on() -> None:
    progress = TrainingProgress(Phase.RUNNING, pause=(5, None), end=(9, None))
    assert [n for n in range(12) if progress.due_to_pause(n, 0)] == [*range(5, 12)]
    progress = TrainingProgress(Phase.RUNNING, pause=(None, 2), end=(None, 3))
    assert [n for n in range(5) if progress.due_to_pause(99, n)] == [2, 3, 4]
    assert not TrainingProgress().due_to_pause(10**9, 10**9)


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.PAUSED, Phase.ENDING, Phase.ENDED])
def test_a_snapshot_of_training_in_progress_restores_phase_and_goals(phase: Phase) -> None:
    progress = TrainingProgress(phase, (5, 2), (9, 3), 1, interrupted=True)
    assert progress.to_list() == [phase.value, 5, 9, 2, 3, 1]
    assert TrainingProgress.from_list(progress.to_list()) == TrainingProgress(phase, (5, 2), (9, 3), 1)  # goes on
    earlier = TrainingProgress.from_list([phase.value, 5, 9])  # by an earlier version
    assert earlier == TrainingProgress(phase, (5, None), (9, None))


@pytest.mark.parametrize("phase", [Phase.PREPARED, Phase.STOPPED, Phase.FAILED])
def test_restoring_a_snapshot_of_finished_training_starts_anew(phase: Phase) -> None:
    assert TrainingProgress.from_list(TrainingProgress(phase, (5, None), (9, None)).to_list()) == TrainingProgress()
    assert TrainingProgress.from_list(None) == TrainingProgress()
    ends = TrainingProgress(Phase.RUNNING, start=1).ending("pruned: low.")
    assert TrainingProgress.from_list(ends.to_list()) == ends, "a run that is killed at its end is resumed alike"
