"""Apply commands: checked in the sender's thread, queued, and applied and journalled at a boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Arrays
from sigma_kernel.contracts.commanding import Command, CommandPlan, SaveOrder, make_command
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError
from sigma_step.initial import Initial
from sigma_training.session.bindings import settable
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.current import CurrentRun
from sigma_training.session.goals import check_schedules
from sigma_training.session.hook_runner import HookRunner
from sigma_training.session.planning import PlannedRun, accept, restored_run
from sigma_training.session.progress import Phase
from sigma_training.session.queue import Request
from sigma_training.session.recovery import Recovery
from sigma_training.session.state import Present
from sigma_training.session.undo import record_undo


@define(eq=False, repr=False)
class Applier:
    """Apply commands to the current run."""

    current: CurrentRun
    initial: Initial
    hooks: HookRunner
    checkpoints: CheckpointPolicy
    recovery: Recovery
    _changing: bool = field(default=False, init=False)  # a command is being put in force
    _found: dict[str, Any] = field(factory=dict, init=False)  # the classes of commands by name

    # -- from any thread -----------------------------------------------------------------------------------------------
    def find(self, kind: str, name: str) -> Any:
        """Return the class of a command; raise SigmaConfigError if no plugin offers it."""
        if name not in self._found:
            self._found[name] = self.current.setup.factory.resolve(kind, name)
        return self._found[name]

    def make(self, command: str, **arguments: Any) -> Command:
        """Make a command; raise a SigmaError if it is unknown, or its arguments do not fit."""
        return make_command(self.find, command, arguments)

    def send(self, command: Command, who: str = "") -> Request:
        """Queue a command for the next boundary; the request's result is the moment at which it was applied."""
        journal = self.current.recorder
        request = Request(partial(self.apply, command, who), command, lambda: journal.journal.durable())
        return self.current.queue.submit(request)

    def post(self, command: Command) -> None:
        """Queue a command for the next boundary without waiting for a lock, from a signal handler for instance."""
        self.current.queue.post(Request(partial(self.apply, command), command))

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address of this trainer, at the next boundary."""
        self.check_free()
        self.send(self.make("set", pattern=address, value=value)).result()

    def check(self, command: Command) -> None:
        """Raise a SigmaError for a command that cannot be applied, before it is queued."""
        self.check_free()
        command.check(self._plan_with(self.current.present))

    def check_free(self) -> None:
        """Raise SigmaStateError between a resume and the replay of its journal."""
        if self.current.recorder.is_behind and not self.current.queue.busy:
            raise SigmaStateError(
                f"{self.current.setup.name}: was resumed at iteration {self.current.moment.iteration}, and what its "
                "journal holds after that is not replayed yet. Send commands once it trains: they apply after the "
                "replay."
            )

    def _plan_with(self, present: Present) -> PlannedRun:
        current = self.current
        shared = current.registry, current.recorder, current.queue.busy
        return PlannedRun(present, *shared, self.checkpoints, self.initial, self.recovery.found, self.find)

    def plan(self, command: Command) -> CommandPlan:
        """Return what a command makes of the present run, which stays as it is."""
        return command.plan(self._plan_with(self.current.freeze()))

    # -- in the training thread ----------------------------------------------------------------------------------------
    def apply(self, command: Command, who: str = "") -> Moment:
        """Apply a command now, and write it to the journal with its sender; one that raises changes nothing.

        One that is sent while another is put in force, by an observer, is a part of that.
        """
        recorder = self.current.recorder
        before, at, branch = self._plan_with(self.current.freeze()), recorder.position, recorder.branch
        plan = command.plan(before)
        _check_length(before.present, plan.run.internals.present)
        if self._changing:
            self._adopt(plan.run.internals)
            return self.current.moment
        self._put_in_force(command, before, plan, {"who": who} if who else {})
        if command.undoable and not recorder.by:
            self.current.set_state(record_undo(command.command, before.present, self.current.present))
        command.act(self, before, at)
        back = plan.run.internals.goes_back
        if back is not None and back.branch != branch:  # now that there is a checkpoint of the new one to resume from
            self.checkpoints.set_aside(back.iteration, branch)
        return self.current.moment

    def _put_in_force(self, command: Command, before: PlannedRun, plan: CommandPlan, sender: Mapping[str, str]) -> None:
        """Adopt what a command makes of the run, and write its row; undo the first if one of them fails."""
        self._changing = True
        try:
            self._adopt(plan.run.internals)
            if plan.row is not None:
                self.current.recorder.note(before.moment, {**command.to_row(), **plan.row, **sender})
        except Exception:
            self.current.adopt(before.present)
            raise
        finally:
            self._changing = False

    def _adopt(self, run: PlannedRun) -> None:
        current, back = self.current, run.goes_back
        if back is not None:
            current.write_metrics(force=True)
            current.recorder.go_back(back.branch, back.iteration, back.entry)
            self._return_to(run.present)
            return
        numbers = settable(run.present.setup)
        with current.registry.observing(run.values, run.values):
            current.adopt(run.present)
            for address in (address for address in run.values if address in numbers):
                current.publish(address, run.values[address])
            if run.values:
                current.record_numbers()

    def _return_to(self, present: Present) -> None:
        """Adopt a run in an earlier state."""
        self.current.background.forget()
        self.current.adopt(present)
        self.hooks.settle_at(present.state.moment)
        self.recovery.forget()

    def restore(self, saved: Checkpoint, check: Callable[[Checkpoint, Arrays], Any] = accept) -> None:
        """Restore a snapshot, with its components; training in progress keeps its own progress.

        Whatever ``check`` raises about the snapshot and the arrays of these components leaves everything as it was.
        """
        self._return_to(restored_run(self.current.present, saved, self.current.queue.busy, check=check))

    # -- what commands do besides --------------------------------------------------------------------------------------
    def pause(self) -> None:
        """Pause at a goal: the training thread waits at the next boundary."""
        self.current.set_progress(self.current.progress.with_phase(Phase.PAUSED))
        self.fire(TimeScale.PAUSE)

    def fire(self, scale: TimeScale) -> None:
        """Run the hooks that are due at an event; a pause does not count as time of training."""
        if scale is TimeScale.PAUSE:
            self.current.count_seconds()
        elif scale is TimeScale.RESUME:
            self.current.read_stopwatch()
        self.hooks.tick(scale)

    def save(self, command: SaveOrder, by: str | None = None, at: int | None = None) -> None:
        """Write a checkpoint, on behalf of somebody, with its position in the journal."""
        recorder = self.current.recorder
        by = recorder.by if by is None else by
        if at is not None:
            self.checkpoints.write_checkpoint([(by, command)], at)
            return
        with recorder.on_behalf(by):
            self.checkpoints.ask(command)


def _check_length(before: Present, after: Present) -> None:
    """Raise SigmaConfigError for a new schedule that needs to know when training ends, where nobody does."""
    if before.progress.underway and after.setup is not before.setup:
        check_schedules(after)
