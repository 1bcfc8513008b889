"""The run that commands plan with: one value, of which each method returns another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Arrays, check_workers
from sigma_kernel.contracts.commanding import Command, Find, make_command
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.registry.registry import Registry
from sigma_step.initial import Initial
from sigma_training.compatibility import with_counts
from sigma_training.history.recorder import Recorder
from sigma_training.history.rewind import Entry
from sigma_training.session.bindings import WORKERS, settable, write_values
from sigma_training.session.changes import Changes, update_changes
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.epochal import foresee
from sigma_training.session.progress import Phase, TrainingProgress
from sigma_training.session.reconfigure import with_components
from sigma_training.session.snapshot import reconcile, restore
from sigma_training.session.state import LastBurst, Present


def accept(saved: Checkpoint, arrays: Arrays) -> None:
    """Accept any snapshot."""


@frozen(eq=False)
class Return:
    """The earlier state that training goes on from: its branch, its iteration, and the snapshot, if it is one."""

    branch: int
    iteration: int
    entry: Entry | None = None


@frozen(eq=False, repr=False)
class PlannedRun:
    """A run as a command sees it, and after it; ``values`` are those that were set, by address."""

    present: Present
    registry: Registry
    recorder: Recorder
    busy: bool  # a thread trains
    checkpoints: CheckpointPolicy
    initial: Initial
    good: Checkpoint | None  # the newest good state, after a failure
    find: Find
    values: Mapping[str, Any] = field(factory=dict)
    goes_back: Return | None = None

    # -- reading -------------------------------------------------------------------------------------------------------
    @property
    def internals(self) -> PlannedRun:
        """Return the run itself."""
        return self

    @property
    def name(self) -> str:
        """Return the name of the trainer."""
        return self.present.setup.name

    @property
    def moment(self) -> Moment:
        """Return the present moment."""
        return self.present.state.moment

    @property
    def sender(self) -> str:
        """Return the hook that commands; empty for a command from outside."""
        return self.recorder.by

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""
        return self.present.progress.status(self.busy)

    @property
    def changes(self) -> Changes:
        """Return how the components differ from those of the settings."""
        return self.present.state.changes

    def addresses(self, pattern: str = "**") -> list[str]:
        """Return the addresses that match a pattern."""
        return self.registry.addresses(pattern)

    def get(self, address: str) -> Any:
        """Return the value at an address as it was before the command."""
        return self.registry.get(address)

    def newest_before(self, to: int, scale: str) -> Entry:
        """Return the newest snapshot at or before a moment; raise SigmaStateError if there is none."""
        saved = partial(self.checkpoints.newest_saved, to, scale)
        return self.recorder.past.rewind_to(to, scale, saved)

    def check_concerned(self, command: Command) -> None:
        """Raise SigmaStateError unless training is in progress, in a status that a command concerns."""
        if self.status not in command.concerns or not self.busy:
            doing = f"cannot {command.command} while {self.status}"
            raise SigmaStateError(f"{self.name}: {doing}. It must be {command.concerns[0]}.")
        if self.present.progress.phase is Phase.FAILED:
            self._check_finite(command.command)

    def _check_finite(self, command: str) -> None:
        """Raise SigmaStateError if a trainer that failed cannot train on from its state."""
        if not self.present.last.finite:
            where = "" if self.good is None else f" to iteration {self.good.values['clock']['iteration']}"
            why = f"cannot {command}, as the loss is not finite here. Rewind{where} first."
            raise SigmaStateError(f"{self.name}: {why}")

    # -- other values of it --------------------------------------------------------------------------------------------
    def with_present(self, present: Present) -> PlannedRun:
        """Return the run with another present value."""
        return evolve(self, present=present)

    def with_progress(self, progress: TrainingProgress) -> PlannedRun:
        """Return the run with another progress of training."""
        return self.with_present(self.present.with_progress(progress))

    def with_changes(self, changes: Changes) -> PlannedRun:
        """Return the run with the components that changes ask for."""
        return self.with_present(with_components(self.present, evolve(self.present.state, changes=changes)))

    def check_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values to set, by address; raise a SigmaError if one does not fit, or cannot be set."""
        registry = self.registry
        checked = {a: x for pattern, value in values.items() for a, x in registry.check(pattern, value).items()}
        check_ahead(self.present, checked)
        return checked

    def with_values(self, values: Mapping[str, Any]) -> PlannedRun:
        """Return the run with new values at addresses, or at all that patterns match."""
        checked, run = self.check_values(values), self.present
        numbers = settable(run.setup)  # of hooks: they are published once the command is in force
        others = {address: value for address, value in checked.items() if address not in numbers}
        present = with_components(run, write_values(run.state, run.setup, others))
        return evolve(self, present=present, values={**self.values, **checked})

    def with_command(self, command: str, **arguments: Any) -> PlannedRun:
        """Return the run after another command; raise SigmaStateError for one that cannot be undone."""
        other = make_command(self.find, command, arguments)
        if not other.undoable:
            raise SigmaStateError(f"command {command!r}: cannot be part of another one. Send it by itself.")
        plan: PlannedRun = other.plan(self).run.internals
        return plan

    def with_earlier(
        self, saved: Checkpoint, branch: int, entry: Entry | None = None, progress: TrainingProgress | None = None
    ) -> PlannedRun:
        """Return the run in the state of a snapshot, from which it goes on, on a branch."""
        present = restored_run(self.present, saved, self.busy, progress)
        return evolve(self, present=present, goes_back=Return(branch, present.state.moment.iteration, entry))


def restored_run(
    run: Present,
    saved: Checkpoint,
    busy: bool,
    progress: TrainingProgress | None = None,
    check: Callable[[Checkpoint, Arrays], Any] = accept,
) -> Present:
    """Return a run in the state of a snapshot, with its components; training in progress keeps its own progress.

    ``check`` may refuse the snapshot, given the arrays of these components.
    """
    saved = reconcile(saved, run.setup)
    kept = {name: saved.values[name] for name in ("changes", "data")}
    built = with_components(run, evolve(run.state, **kept))
    saved = with_counts(saved, built.state.arrays)
    check(saved, built.state.arrays)
    progress = progress or TrainingProgress.from_list(saved.values.get("progress"))
    if busy:
        progress = run.progress
    elif not (progress.underway or run.progress.underway):
        progress = evolve(run.progress, cause=progress.cause)
    return Present(built.setup, restore(saved, built.setup), progress, LastBurst(iteration=run.last.iteration))


def check_ahead(run: Present, values: Mapping[str, Any]) -> None:
    """Raise a SigmaError for epochs that are over, workers without shards, or a batch size that does not fit."""
    if (workers := values.get(WORKERS)) is not None:
        operator = run.setup.operator
        check_workers(workers, operator.shards, getattr(operator, "at_least", 1))
    total, size, epoch = values.get("epochs"), values.get("batch_size"), run.state.moment.epoch
    if total is not None and total <= epoch:
        raise SigmaStateError(
            f"{run.setup.name}.epochs: epoch {total} is over already ({epoch} are done). To end training now, stop it."
        )
    if size is not None:
        foresee(run.setup, update_changes(run.state.changes, batch_size=size), run.state.moment.iteration)
