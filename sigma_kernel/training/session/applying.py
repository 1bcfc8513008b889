"""Apply commands: checked in the sender's thread, queued, and applied and journalled at a boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Arrays
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.commands.changes import updated
from sigma_kernel.training.commands.queue import Request
from sigma_kernel.training.compatibility import with_counts
from sigma_kernel.training.history.replay import STOP
from sigma_kernel.training.session import goals
from sigma_kernel.training.session.bindings import settable, written
from sigma_kernel.training.session.collaborators import HookDriver, SavePoint
from sigma_kernel.training.session.current import CurrentRun
from sigma_kernel.training.session.editing import edited
from sigma_kernel.training.session.epochal import foresee
from sigma_kernel.training.session.keeping import leave_kept
from sigma_kernel.training.session.progress import Phase, TrainingProgress, concerned
from sigma_kernel.training.session.reconfigure import with_components
from sigma_kernel.training.session.recovery import Recovery, check_goes_on
from sigma_kernel.training.session.snapshot import reconciled, restored
from sigma_kernel.training.session.state import LastBurst, Present
from sigma_kernel.training.session.undo import recorded, undoable, undone
from sigma_kernel.training.step.initial import Initial


def accept(saved: Checkpoint, arrays: Arrays) -> None:
    """Accept any snapshot."""


@define(eq=False, repr=False)
class Applier:
    """Apply commands to the current run."""

    current: CurrentRun
    initial: Initial
    hooks: HookDriver
    checkpoints: SavePoint
    recovery: Recovery
    _changing: bool = field(default=False, init=False)  # a command is applied that is undone as a whole

    # -- from any thread -----------------------------------------------------------------------------------------------
    def send(self, command: commands.Command) -> Request:
        """Queue a command for the next boundary; the request's result is the moment at which it was applied."""
        journal = self.current.recorder
        request = Request(partial(self.apply, command), command, lambda: journal.journal.durable())
        return self.current.queue.submit(request)

    def post(self, command: commands.Command) -> None:
        """Queue a command for the next boundary without waiting for a lock, from a signal handler for instance."""
        self.current.queue.post(Request(partial(self.apply, command), command))

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address of this trainer, at the next boundary."""
        self.check_free()
        self.send(commands.Set(address, value)).result()

    def check(self, command: commands.Command) -> None:
        """Raise a SigmaError for a command that cannot be applied, before it is queued."""
        self.check_free()
        run, registry = self.current.present, self.current.registry
        match command:
            case commands.Set(pattern, value):
                found = registry.addresses(pattern)
                for address in found:
                    registry.kind(address).check(f"{run.setup.name}.{address}", value)
                check_ahead(run, dict.fromkeys(found, value))
            case commands.Edit():
                foresee(run.setup, edited(run.setup, run.state.changes, command))
            case commands.Attach() | commands.Detach() | commands.Swap():
                run.setup.factory.changed(run.state.changes, command)
            case commands.Undo():
                undoable(run.setup.name, run.state)

    def check_free(self) -> None:
        """Raise SigmaStateError between a resume and the replay of its journal."""
        if self.current.recorder.behind and not self.current.queue.busy:
            raise SigmaStateError(
                f"{self.current.setup.name}: was resumed at iteration {self.current.moment.iteration}, and what its "
                "journal holds after that is not replayed yet. Send commands once it trains: they apply after the "
                "replay."
            )

    # -- in the training thread ----------------------------------------------------------------------------------------
    def apply(self, command: commands.Command) -> Moment:
        """Apply a command now, and write it to the journal; one that raises changes nothing."""
        match command:
            case commands.Set() | commands.Attach() | commands.Detach() | commands.Swap() | commands.Edit():
                self._change(command)
            case commands.Undo():
                self._undo()
            case commands.Pause() | commands.Go() | commands.StepBy():
                self._steer(command)
            case commands.StopTraining():
                self._stop(command)
            case commands.Save():
                self.checkpoints.ask(command)
            case commands.Rewind():
                self._rewind(command)
            case commands.Reset():
                self._reset(command)
        return self.current.moment

    def _change(self, command: commands.Command) -> None:
        """Apply a change atomically; commands from outside can be undone."""
        if self._changing:  # a part of another command
            self._adopt_change(command)
            return
        before, self._changing = self.current.freeze(), True
        try:
            self._adopt_change(command)
            self.current.note(command.to_dict())
        except Exception:
            self.current.adopt(evolve(self.current.present, setup=before.setup, state=before.state))
            raise
        finally:
            self._changing = False
        if not self.current.recorder.by:
            now, name = self.current.present, commands.NAMES[type(command)]
            self.current.set_state(recorded(name, before.state, now.state, before.setup, now.setup))

    def _adopt_change(self, command: commands.Command) -> None:
        run = self.current.present
        if isinstance(command, commands.Set):
            self.current.registry.set(command.pattern, command.value, self._write)
        elif isinstance(command, commands.Edit):
            changes = edited(run.setup, run.state.changes, command)
            foresee(run.setup, changes)
            self.current.set_state(evolve(run.state, changes=changes))
        else:
            changes = run.setup.factory.changed(run.state.changes, command)
            self.current.adopt(with_components(run, evolve(run.state, changes=changes)))

    def _write(self, values: Mapping[str, Any]) -> None:
        """Set the values at addresses of this trainer; the numbers of hooks are published."""
        run = self.current.present
        check_ahead(run, values)
        numbers = settable(run.setup)
        others = {address: value for address, value in values.items() if address not in numbers}
        self.current.adopt(with_components(run, written(run.state, run.setup, others)))
        for address in values.keys() - others.keys():
            self.current.publish(address, values[address])
        self.current.record_numbers()

    def _undo(self) -> None:
        run = self.current.present
        entry, there = undoable(run.setup.name, run.state), run.setup.order.hooks
        former = with_components(run, evolve(run.state, changes=entry["changes"]))
        self.current.adopt(former.with_state(undone(former.state, former.setup, entry, there)))
        self.current.note({**commands.Undo().to_dict(), "undoes": entry["command"]})

    def _steer(self, command: commands.Command) -> None:
        name, run, status = commands.NAMES[type(command)], self.current.present, self.current.status
        if status not in (wanted := concerned(name)) or not self.current.queue.busy:
            raise SigmaStateError(f"{run.setup.name}: cannot {name} while {status}. It must be {wanted[0]}.")
        if run.progress.phase is Phase.FAILED:
            check_goes_on(run.setup.name, name, run.last.finite, self.recovery.found)
        self.current.note(command.to_dict())
        if isinstance(command, commands.Pause):
            self.pause()
            return
        progress = run.progress
        if isinstance(command, commands.StepBy):
            progress = evolve(progress, pause=goals.goal_after(run, **{f"{command.scale}s": command.count}))
        self.current.set_progress(progress.to(Phase.RUNNING))
        self.current.read_stopwatch()
        self.hooks.tick(TimeScale.RESUME, self)

    def pause(self) -> None:
        """Pause: the training thread waits at the next boundary."""
        self.current.count_seconds()
        self.current.set_progress(self.current.progress.to(Phase.PAUSED))
        self.hooks.tick(TimeScale.PAUSE, self)

    def _stop(self, command: commands.StopTraining) -> None:
        """End training at this boundary; if stopped from outside, save first, so that it can be resumed."""
        current, progress = self.current, self.current.progress
        if progress.over or not current.queue.busy:
            if current.status == Phase.FAILED:  # nobody waits for a command to go on any more
                current.set_progress(evolve(progress, interrupted=True))
            return
        place = current.recorder.position
        current.note(command.to_dict())
        if current.recorder.by:
            current.set_progress(progress.ending())
            return
        current.set_progress(evolve(progress, interrupted=True))
        if self.checkpoints.can_save:
            self.checkpoints.write_checkpoint([(STOP, commands.Save(command.cause))], place)

    # -- going back ----------------------------------------------------------------------------------------------------
    def _rewind(self, command: commands.Rewind) -> None:
        """Restore a snapshot in memory, and continue from it on a new branch."""
        current, recorder = self.current, self.current.recorder
        saved = partial(self.checkpoints.newest_saved, command.to, command.scale)
        moment, found = recorder.past.before(command.to, command.scale, saved)
        branch = {"branch": recorder.branch + 1, "parent": recorder.branch}
        current.write_metrics(force=True)
        current.note({**commands.Rewind(moment.iteration).to_dict(), **branch})
        recorder.go_back(branch["branch"], moment.iteration)
        self.restore(found, current.progress if current.progress.underway else TrainingProgress())
        current.put(leave_kept(current.present))
        if self.checkpoints.can_save:
            with recorder.on_behalf("rewind"):
                self.checkpoints.ask(commands.Save())
        self.checkpoints.set_aside(moment.iteration, branch["parent"])  # now that there is one to resume from

    def _reset(self, command: commands.Reset) -> None:
        """Return to the initial state."""
        self.current.write_metrics(force=True)
        self.current.note(command.to_dict())
        self.current.recorder.go_back(self.current.recorder.branch, 0)
        self.restore(Checkpoint(self.initial.arrays(), {}))
        self.hooks.tick(TimeScale.RESET, self)

    def restore(
        self,
        saved: Checkpoint,
        progress: TrainingProgress | None = None,
        check: Callable[[Checkpoint, Arrays], Any] = accept,
    ) -> None:
        """Restore a snapshot, with its components; training in progress keeps its own progress.

        Whatever ``check`` raises about the snapshot and the arrays of these components leaves everything as it was.
        """
        run = self.current.present
        saved = reconciled(saved, run.setup)
        kept = {name: saved.values[name] for name in ("changes", "data")}
        built = with_components(run, evolve(run.state, **kept))
        saved = with_counts(saved, built.state.arrays)
        check(saved, built.state.arrays)
        state = restored(saved, built.setup)
        progress = progress or TrainingProgress.restored(saved.values.get("progress"))
        if self.current.queue.busy or not (progress.underway or run.progress.underway):
            progress = run.progress
        self.current.background.forget()
        self.current.adopt(Present(built.setup, state, progress, LastBurst(iteration=run.last.iteration)))
        self.hooks.settle_at(state.moment)
        self.recovery.forget()


def check_ahead(run: Present, values: Mapping[str, Any]) -> None:
    """Raise a SigmaError for epochs that are over, or a batch size that does not fit; compile for that."""
    total, size, epoch = values.get("epochs"), values.get("batch_size"), run.state.moment.epoch
    if total is not None and total <= epoch:
        raise SigmaStateError(
            f"{run.setup.name}.epochs: epoch {total} is over already ({epoch} are done). To end training now, stop it."
        )
    if size is not None:
        foresee(run.setup, updated(run.state.changes, batch_size=size))
