"""The goals of training, as functions of a run: when it pauses, when it ends, and when something is due."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from attrs import evolve

from sigma_kernel.clock import Moment, TimeScale, TimeStep
from sigma_kernel.errors import SigmaConfigError
from sigma_step.live import UNKNOWN_END
from sigma_step.steps import Steps
from sigma_training.hooks.order import ends
from sigma_training.session.progress import NONE, Goal
from sigma_training.session.state import Present


def goal_after(run: Present, iterations: int | None = None, epochs: int | None = None) -> Goal:
    """Return the goal that is so many iterations or epochs ahead."""
    now = run.state.moment
    until = None if iterations is None else now.iteration + iterations
    return until, None if epochs is None else now.epoch + epochs


def iteration_at(run: Present, epochs: float) -> float:
    """Return the iteration after this many epochs in total, if all to come are like the present one."""
    feed, now = run.setup.feed, run.state.moment
    begun = now.iteration - feed.iteration_in_epoch(run.state.cursor)
    return begun + (epochs - now.epoch) * feed.iterations_per_epoch


def first_of(run: Present, iteration: int | None, epochs: float | None) -> int | None:
    """Return the iteration of the first of two goals."""
    goals = [float(iteration)] if iteration is not None else []
    goals += [iteration_at(run, int(epochs))] if epochs is not None and epochs != inf else []
    return int(min(goals)) if goals else None


def total_epochs(run: Present) -> float | None:
    """Return the total number of epochs: as it was set last, else as configured."""
    total: float | None = run.state.changes.get("epochs", {}).get("total", run.setup.epochs)
    return total


def end_iteration(run: Present) -> int | None:
    """Return the iteration at which training ends: the goal of ``fit``, else that of the total number of epochs.

    A total that was set during ``fit`` takes the place of its goal.
    """
    progress, since = run.progress, run.state.changes.get("epochs", {}).get("start")
    own = progress.end != NONE and since != progress.start
    return first_of(run, *progress.end) if own else first_of(run, None, total_epochs(run))


def steps_to_end(run: Present) -> Steps:
    """Return the steps that train, which know when training ends."""
    return evolve(run.steps(), end=end_iteration(run))


def check_schedules(run: Present) -> None:
    """Raise SigmaConfigError for a schedule that needs the length of a run of which it is not known."""
    if end_iteration(run) is None:
        for head, own in run.setup.model.optimisers.items():
            for setting, schedule in own.type.schedules.items():
                if schedule.needs_end:
                    raise SigmaConfigError(f"{run.setup.name}.{head}.schedules.{setting}: {UNKNOWN_END}")


def is_at_end(run: Present) -> bool:
    """Return whether training has reached its end."""
    end = end_iteration(run)
    return end is not None and run.state.moment.iteration >= end


def latest_end(run: Present) -> int | None:
    """Return the iteration at which training ends at the latest, by its goal or by a hook, if it is known."""
    end, order = end_iteration(run), run.setup.order
    goals = [] if end is None else [float(end)]
    hooks = (order.hooks[name] for name in order.active(run.state.memory))
    goals += (goal for hook in hooks if hook.stops for goal in ends(hook, lambda epochs: iteration_at(run, epochs)))
    return int(min(goals)) if goals else None


def distance(run: Present, replayed: int | None = None) -> int:
    """Return the number of iterations until something is due, at least 1; a replayed row is so far ahead."""
    now, feed, order = run.state.moment, run.setup.feed, run.setup.order
    per_epoch, done = feed.iterations_per_epoch, feed.iteration_in_epoch(run.state.cursor)
    steps = [order.hooks[name].every for name in order.active(run.state.memory)]
    due = until_due(steps, now, iterations_per_epoch=per_epoch, iteration_in_epoch=done, batch=feed.batch_size)
    goals = (first_of(run, *run.progress.pause), end_iteration(run), run.setup.programs.next_tier(now.iteration))
    ahead = [goal - now.iteration for goal in goals if goal is not None]
    return max(1, min([per_epoch - done, *ahead, *(limit for limit in (replayed, due) if limit is not None)]))


def until_due(
    steps: Iterable[TimeStep], moment: Moment, *, iterations_per_epoch: int, iteration_in_epoch: int, batch: int
) -> int | None:
    """Return the number of iterations, at least 1, until a step may be due; None if none ever is.

    ``batch`` is the largest number of samples per iteration. Seconds and events do not bound the number: the operator
    limits the duration of bursts.
    """
    bounds: list[float] = []
    for step in steps:
        scale, now = step.scale, moment.count(step.scale)
        if (point := step.next_due(now)) is None:
            continue
        if scale is TimeScale.ITERATION:
            bounds.append(point - now)
        elif scale is TimeScale.EPOCH:
            bounds.append((point - now) * iterations_per_epoch - iteration_in_epoch)
        elif scale is TimeScale.SAMPLE:
            bounds.append(-(-(point - now) // batch))
    return max(1, int(min(bounds))) if bounds else None
