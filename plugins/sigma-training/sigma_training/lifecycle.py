"""What an environment drives of a prepared trainer: its training thread, its stored run and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import define, field

from sigma_kernel.contracts.commanding import Command
from sigma_kernel.contracts.running import Goals, Lifecycle, TrainerReport
from sigma_kernel.contracts.storing import Excerpt, Log, StoredRun
from sigma_kernel.errors import SigmaDifferenceError, SigmaStateError, error_text
from sigma_step.model import EPOCH, LAYERS
from sigma_training.baselines.advice import compare_baselines
from sigma_training.baselines.measuring import measure_baselines
from sigma_training.commands.pause import Pause
from sigma_training.commands.save import Save
from sigma_training.commands.stop import StopTraining
from sigma_training.components import Settings
from sigma_training.history.digests import little_endian
from sigma_training.runs import resume as resuming
from sigma_training.runs.moments import RunMoment
from sigma_training.session.progress import Phase
from sigma_training.session.queue import Request
from sigma_training.session.session import Session
from sigma_training.session.state import TIMED


class NamedResume(Lifecycle):
    """A lifecycle that names in its journal who resumes it, and resumes for nobody in the same way."""

    def resume(self, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log, paused: bool) -> None:
        """Go on from the checkpoint that was restored."""
        self.resume_for("", run, journal, edits, log, paused)


@define(eq=False)
class SessionLifecycle(NamedResume):
    """The lifecycle of a session, which an operator trains."""

    session: Session
    settings: Settings
    _restored: resuming.Restored | None = field(default=None, init=False)
    _baselines: Mapping[str, Mapping[str, float]] | None = field(default=None, init=False)  # None: not measured yet

    # -- its state -----------------------------------------------------------------------------------------------------
    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""
        return self.session.status

    @property
    def is_busy(self) -> bool:
        """Return whether a thread trains, or is about to."""
        return self.session.queue.busy

    @property
    def is_compiling(self) -> bool:
        """Return whether programs are being compiled."""
        return self.session.setup.programs.is_compiling

    @property
    def is_interrupted(self) -> bool:
        """Return whether training was told to end."""
        return self.session.progress.interrupted

    @property
    def is_waiting(self) -> bool:
        """Return whether training has failed, and no command has told it to go on, or to end."""
        return self.status == Phase.FAILED and not self.is_interrupted

    @property
    def can_undo(self) -> bool:
        """Return whether there is a command to undo."""
        return bool(self.session.state.undo)

    def report(self) -> TrainerReport:
        """Return what training has reached."""
        session = self.session
        edited = {split: session.setup.counts(split) for split in session.state.data.get("edits", ())}
        metrics, baselines = _last_metrics(session), self._baselines or {}
        advice = [*compare_baselines(metrics, baselines, session.setup.direction)]
        advice += [] if session.setup.is_reproducible else [TIMED]
        results = metrics, edited, baselines, advice
        return TrainerReport(session.status, session.backend_name, session.moment, *results, session.progress.cause)

    def conclude(self) -> None:
        """Measure the baselines once, unless they are switched off or training is to go on."""
        if self.settings.baselines and self._baselines is None and not self.is_interrupted:
            self._baselines = {}
            try:
                self._baselines = measure_baselines(self.session)
            except Exception as error:  # a failing layer, metric or data set must not fail a run that has ended
                self.session.recorder.log(f"the baselines are not measured: {error_text(error)}")

    def digest_parameters(self, update: Callable[[bytes], object]) -> None:
        """Call ``update`` with the bytes of each parameter, in the order of their addresses."""
        session = self.session
        for name in sorted(LAYERS + address for address in session.setup.model.shapes.parameters):
            update(little_endian(session.ask(partial(session.host, name))))

    # -- training ------------------------------------------------------------------------------------------------------
    def check_free(self) -> None:
        """Raise SigmaStateError if the trainer is training, or was stopped during a replay."""
        if self.is_busy:
            name = self.settings.name
            raise SigmaStateError(f"trainer {name!r}: is training already. Wait for its end, or stop it first.")
        if (replay := self.session.recorder.replay) is not None:
            replay.begin(self.session.moment.iteration)  # raises if the replay was stopped early

    def check_end(self) -> None:
        """Raise SigmaConfigError if nothing would end training."""
        self.session.loop.check_end()

    def claim(self, thread: threading.Thread | None = None) -> None:
        """Let a thread, by default the calling one, answer all commands from now on."""
        self.session.queue.claim(thread)

    def train(self, goals: Goals = (None, None), again: bool = False) -> None:
        """Train in the claimed thread; ``again`` goes on after a failure."""
        loop = self.session.loop
        try:
            if not again:
                loop.begin(*goals)
            self.session.setup.operator.train(loop)
            if not self.session.replayer.has_arrived:
                loop.end()
        except BaseException as error:
            loop.fail(error)
            raise

    def train_or_replay(self, wait: Callable[[Exception], bool] = lambda error: False) -> None:
        """Train; during replay, repeat every ``begin`` to ``end`` of training that the journal holds.

        After a failure, training goes on if ``wait`` returns True: a command has told it to.
        """
        session, replay = self.session, self.session.recorder.replay
        if replay is not None and not session.progress.underway:
            session.replayer.replay_rows(replay)  # commands from before training began
        failure: Exception | None = None
        while not session.replayer.has_arrived:
            failure = _train_until_failure(self, failure is not None and session.progress.underway)
            if replay is None or replay.left or not replay.rows:
                if failure is None or not wait(failure):
                    break
                continue
            if failure is None and not session.recorder.is_behind:
                session.loop.leave()  # commands act as they did after its end
            session.replayer.replay_rows(replay)  # commands from after its end, before new ones act
            if not replay.rows and not (replay.goes_on and (failure or session.progress.interrupted)):
                break
            session.queue.claim(again=True)
        session.loop.leave()
        if failure is not None:
            raise failure

    def answer(self) -> None:
        """Answer the commands that are queued while training waits after a failure, or wait a moment for one."""
        self.session.queue.serve(lambda: not self.is_waiting)
        if self.is_waiting:
            self.session.queue.wait()

    def leave(self, failed: bool = False) -> None:
        """Release the claimed thread."""
        self.session.loop.leave(Phase.FAILED if failed else None)

    # -- commands ------------------------------------------------------------------------------------------------------
    def check(self, command: Command) -> None:
        """Raise a SigmaError if a command would be refused now."""
        self.session.commands.check(command)

    def send(self, command: Command) -> Request:
        """Queue a command for the next boundary."""
        return self.session.commands.send(command)

    def send_from(self, who: str, command: Command) -> Request:
        """Queue a command for the next boundary; the journal names its sender."""
        return self.session.commands.send(command, who)

    def save_end(self) -> Request | None:
        """Save what training has reached; where the loss is not finite, the newest good state was saved instead."""
        if self.is_interrupted or not self.session.present.last.finite:
            return None
        return self.session.commands.send(Save())

    def post_pause(self) -> None:
        """Pause at the next boundary."""
        self.session.commands.post(Pause())

    def post_stop(self, interrupted: bool = False) -> None:
        """End training at the next boundary."""
        self.session.commands.post(StopTraining("interrupted" if interrupted else ""))

    def post_save(self) -> None:
        """Save a checkpoint at the next boundary, and keep it."""
        self.session.commands.post(Save(keep=True))

    # -- the stored run ------------------------------------------------------------------------------------------------
    def keep_initial(self, run: StoredRun) -> None:
        """Keep initial values that come from outside in a new run."""
        if arrays := self.session.initial.outside_values():
            run.keep_initial(self.settings.name, arrays)

    def attach(self, run: StoredRun) -> None:
        """Write journal, metrics and checkpoints to a run from now on."""
        session, saver = self.session, run.checkpoints(self.settings.name)
        if session.checkpoints.saver is not saver:
            # while no other thread writes: early rows come first
            session.ask(partial(session.recorder.open, run.journal, run.metrics, run))
            session.checkpoints.attach(saver)

    def restore(self, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log) -> bool:
        """Restore the newest checkpoint that fits; return whether this part of the journal is enough for it."""
        self._restored = resuming.restore_newest(run, self.session, journal, edits, log)
        return self._restored is not None and journal.reaches(self._restored[1])

    def resume_for(
        self, who: str, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log, paused: bool
    ) -> None:
        """Go on from the checkpoint that was restored; the row of it names who did that."""
        self.session.recorder.forget_early()  # the restored journal replaces them
        self.attach(run)
        resuming.resume(run, self.session, journal, self._restored, edits, log, paused, who)

    def replay(self, run: StoredRun, journal: Excerpt, log: Log) -> None:
        """Replay the journal as training goes on, and compare."""
        resuming.replay(run, self.session, journal, log)

    @property
    def is_replayed(self) -> bool:
        """Return whether the replay has reached the end of the journal without a difference."""
        replay = self.session.recorder.replay
        return replay is not None and not replay.rows and not replay.differs

    @property
    def difference(self) -> str:
        """Return the first difference that the replay has found."""
        replay = self.session.recorder.replay
        return (replay and replay.differs) or ""


def recall_moment(lifecycle: SessionLifecycle, run: StoredRun, journal: Excerpt, moment: RunMoment, log: Log) -> None:
    """Go to a moment of a run: restore the newest state before it, and replay the journal up to it.

    Raises SigmaStateError for a moment that the run does not know, SigmaDifferenceError if the replay differs.
    """
    session = lifecycle.session
    resuming.go_to(run, session, journal, moment, log)
    lifecycle.claim()
    lifecycle.train_or_replay()
    if lifecycle.difference or not session.replayer.has_arrived:
        where = lifecycle.difference or f"iteration {session.moment.iteration}, where training ends"
        raise SigmaDifferenceError(f"{session.setup.name}: differs from the journal. At {where}.")


def _last_metrics(session: Session) -> dict[str, float]:
    """Return the last value of each metric, of training the mean over the last epoch, or over its part so far."""
    last = dict(session.state.published)  # to which the training thread may add
    there = [address for address in last if not address.startswith(("workers.", EPOCH))]
    values = {address: last.get(address.replace("training.", EPOCH, 1), last[address]) for address in there}
    return {name: x for name, x in values.items() if isinstance(x, int | float) and not isinstance(x, bool)}


def _train_until_failure(lifecycle: SessionLifecycle, again: bool) -> Exception | None:
    """Train; return the error if that fails."""
    try:
        lifecycle.train(again=again)
    except Exception as error:
        return error
    return None
