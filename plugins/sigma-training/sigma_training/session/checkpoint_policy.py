"""The checkpoint policy: when checkpoints are written, with what, and which one a rewind goes back to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from attrs import define, evolve, field

from sigma_kernel.clock import Moment, time_scale
from sigma_kernel.contracts.commanding import SaveOrder
from sigma_kernel.contracts.storing import Checkpoint, Checkpoints
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_training.compatibility import made_with
from sigma_training.session.current import CurrentRun
from sigma_training.session.snapshot import take_snapshot

Saves = list[tuple[str, SaveOrder]]  # wanted at one boundary, each with the hook that wants it


@define(eq=False, repr=False)
class CheckpointPolicy:
    """Write checkpoints of the current run, once for all who ask at one boundary."""

    current: CurrentRun
    saver: Checkpoints | None = field(default=None, init=False)
    _asked: Saves | None = field(default=None, init=False)  # by hooks that are due together

    @property
    def can_save(self) -> bool:
        """Return whether checkpoints can be saved, or a replay behaves as if they were."""
        return self.saver is not None or self.current.recorder.replays_only

    def attach(self, saver: Checkpoints) -> None:
        """Save checkpoints with this saver from now on."""
        self._retain(saver)
        self.saver = saver

    def _retain(self, saver: Checkpoints) -> None:
        saver.retain(self.current.setup.order.hooks.values(), self.current.setup.direction)

    # -- writing -------------------------------------------------------------------------------------------------------
    def ask(self, command: SaveOrder) -> None:
        """Save now, or once after all hooks that are due together."""
        if self.current.progress.interrupted and self.current.queue.busy:
            return  # the stop has saved already
        with self.save_together() as saves:
            saves.append((self.current.recorder.by, command))

    @contextmanager
    def save_together(self) -> Iterator[Saves]:
        """Save once, after all hooks inside, if any of them asked: a checkpoint belongs between two boundaries."""
        outer = self._asked
        saves = self._asked = [] if outer is None else outer
        try:
            yield saves
        finally:
            self._asked = outer
        if saves and outer is None:
            self.write_checkpoint(saves)

    def write_checkpoint(self, wanted: Saves, place: int | None = None) -> None:
        """Write one checkpoint, with its position in the journal, by default the current one.

        It is marked to keep if any save asks for that; of several scores and names, the last one counts.
        """
        current, recorder, moment = self.current, self.current.recorder, self.current.moment
        for by, save in wanted:
            with recorder.on_behalf(by):
                current.note(save.to_row())
        checkpoint = take_snapshot(current.present)
        recorder.keep(moment, checkpoint)  # as a resume does, so that both rewind to the same state
        with recorder.on_behalf(wanted[-1][0]):
            recorder.digest(moment, checkpoint, current.setup.order)
        if self.saver is None:
            return
        place = recorder.position if place is None else place
        score = next((save.score for _, save in reversed(wanted) if save.score is not None), None)
        named = next(({"name": save.name, "note": save.note} for _, save in reversed(wanted) if save.name), {})
        checkpoint = evolve(checkpoint, values={**checkpoint.values, **named, "journal": place}, score=score)
        keep = any(save.keep or save.name for _, save in wanted)
        self._store(self.saver, moment.iteration, evolve(checkpoint, keep=keep))

    def save_good(self, found: Checkpoint | None) -> int | None:
        """Keep the newest good state for rewind, and write it to the disk; return its iteration, or None."""
        if found is None:
            self.current.log("nothing is saved, as no state was finite")
            return None
        moment, past = Moment(**found.values["clock"]), self.current.recorder.past
        past.forget_after(moment.iteration)  # those after it are not known to be good
        past.keep(moment, found)
        if self.saver is not None:
            self._store(self.saver, moment.iteration, found)
            self.saver.flush()
            self.current.log(f"iteration {moment.iteration} is saved, the last good one")
        return moment.iteration

    def _store(self, saver: Checkpoints, number: int, found: Checkpoint) -> None:
        """Queue a snapshot to be written as a checkpoint."""
        self._retain(saver)  # the hooks may have changed
        recorder = self.current.recorder
        values = {"branch": recorder.branch, "ranking": saver.ranking()}
        versions, chain = self.made_with(), recorder.chain(found.values["journal"])
        saver.save(number, evolve(found, values={**found.values, **values}, made_with=versions, chain=chain))

    def made_with(self) -> dict[str, str]:
        """Return the versions, libraries, processor and backend that the bits of this run depend on."""
        programs = self.current.setup.programs.select_tier(self.current.moment.iteration)
        return made_with(self.current.backend_name, programs.backend.runtime)

    # -- names ---------------------------------------------------------------------------------------------------------
    def check_free(self, name: str) -> None:
        """Raise SigmaStateError if an earlier state has this name."""
        if self.saver is None:
            return
        self.saver.wait()
        for number, (other, _) in self.saver.names().items():
            if other == name and number != self.current.moment.iteration:
                raise SigmaStateError(f"save: {name!r} is the state of iteration {number}. Choose another name.")

    def find_named(self, name: str) -> int:
        """Return the iteration of a state that a person named; raise SigmaStateError if there is none."""
        if self.saver is None:
            raise SigmaStateError(f"no state is named {name!r}, as there is no run folder. Give an iteration.")
        self.saver.wait()
        return self.saver.find_named(name)

    # -- going back ----------------------------------------------------------------------------------------------------
    def find_state(self, iteration: int) -> Checkpoint:
        """Return a state of this branch, from memory or the disk; raise SigmaStateError if it is not there."""
        for moment, state in self.current.recorder.past.states:
            if moment.iteration == iteration:
                return state
        if self.saver is not None:
            self.saver.wait()
            with suppress(SigmaCheckpointError):  # damaged, thinned out meanwhile, or never there
                return self.saver.read(str(iteration), self.current.recorder.log)
        raise SigmaStateError(f"iteration {iteration}: no such state is kept. Choose another one.")

    def newest_saved(self, to: int, scale: str, after: int) -> list[tuple[Moment, Checkpoint]]:
        """Return the newest intact checkpoint of this branch on disk, after an iteration, up to a moment, if any."""
        if self.saver is None:
            return []
        self.saver.wait()
        log = self.current.recorder.log
        for number in (number for number in reversed(self.saver.numbers()) if number > after):
            with suppress(SigmaCheckpointError):  # damaged: an older one will do
                values = self.saver.read_manifest(str(number), log)["values"]
                moment = Moment(**values["clock"])
                if "lacks" not in values and moment.count(time_scale(scale)) <= to:
                    return [(moment, self.saver.read(str(number), log))]
        return []

    def set_aside(self, after: int, branch: int) -> None:
        """Set the checkpoints after an iteration aside, as they are on an abandoned branch."""
        if self.saver is not None:
            self.saver.set_aside(after, branch)
