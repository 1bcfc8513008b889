"""The environment: create trainers, run, resume and replay them in a run folder, steer them by commands.

::

    with Environment("mnist", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend="numpy")
        ...
        sigma.run()
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel import settings
from sigma_kernel.contracts import ConfigurationFormat, Monitor, Ticket
from sigma_kernel.contracts.commanding import Command, make_command
from sigma_kernel.contracts.storing import Log, StoredRun
from sigma_kernel.courses import Course, TrainingHandle, seen_by_people
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, error_text, refuse_unknown, suggest_name
from sigma_kernel.messages import Messages
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.plugins.resolver import Resolver as Resolver, resolve_components
from sigma_kernel.records import RunRecords
from sigma_kernel.registry.registry import Registry
from sigma_kernel.signals import SAVING, Signals
from sigma_kernel.threads import in_thread
from sigma_kernel.training.arguments import BELONGS
from sigma_kernel.training.commands.save import Save
from sigma_kernel.training.commands.stop import StopTraining
from sigma_kernel.training.components import SETTINGS
from sigma_kernel.training.history.metrics import History
from sigma_kernel.training.history.recorder import Recorder
from sigma_kernel.training.runs import resume as resuming
from sigma_kernel.training.runs.summary import Summary as Summary, reached, summarise
from sigma_kernel.training.session.session import Session
from sigma_kernel.training.trainer import Goals, Trainer
from sigma_kernel.views import EnvironmentView

CONFIGURATION = "default:run"  # the format of ``config.toml``, and of saved networks
UNDESCRIBED = "# Trained from Python, without a plugin that describes runs.\n"
IDLE = ("created", "prepared", "stopped", "failed")  # states in which training may begin
GRACE = 2.0  # seconds that monitors get to end
MOMENT = 0.5  # seconds for the same after an abort: a monitor gives the terminal back
PROGRESS = "default:progress"  # the monitor that shows progress, if no other talks
CONTROL = "default:steering"  # the monitor through which other shells steer; SIGMA_CONTROL=off starts none


def _resolved(environment: Environment, _: object, monitors: Any) -> dict[str, Monitor]:
    """Resolve names and tables of monitors."""
    return resolve_components(Resolver(environment.catalogue), "monitors", Monitor, monitors)


@define(eq=False, repr=False)
class Environment(settings.Settled):
    """Several trainers that are run and ended together, watched by monitors.

    With a ``folder``, each run creates a run folder in it; without one nothing is written.  Arrays that were given as
    data are saved there, up to ``most_data`` bytes for each trainer.

    Commands act at the next boundary between bursts; each call returns when it has, or raises why it did not.
    ``trainer`` names a single trainer; without it, a command applies to all trainers that it concerns.
    """

    name: str = field(default="run", validator=settings.NAME)
    seed: int = field(default=0, kw_only=True, converter=settings.seed)
    precision: str = field(
        default="float32", kw_only=True, converter=settings.precision, validator=settings.in_(settings.PRECISIONS)
    )
    folder: Path | None = field(default=None, kw_only=True, converter=settings.folder)
    # by name, or a list: objects, names, tables
    monitors: Any = field(factory=dict, kw_only=True, on_setattr=_resolved)
    # whether other shells may steer
    control: bool = field(default=True, kw_only=True, validator=settings.in_((True, False)))
    configuration: str = field(default="", kw_only=True)  # the resolved configuration, kept in the run folder
    most_data: int = field(default=2**26, kw_only=True, validator=[settings.whole, settings.ge(0)])
    catalogue: Catalogue = field(factory=catalogue, kw_only=True)
    trainers: dict[str, Trainer] = field(factory=dict, init=False)
    registry: Registry = field(factory=Registry, init=False)
    messages: Messages[str] = field(factory=Messages, init=False)
    rows: Messages[Mapping[str, Any]] = field(factory=Messages, init=False)  # of the journals, but digests
    tickets: Messages[Ticket] = field(factory=Messages, init=False)
    _records: RunRecords = field(init=False)
    _state: str = field(default="", init=False)  # how training ended
    _active: list[Course] = field(factory=list, init=False)  # what calls of run() and fit() train now
    _gate: threading.RLock = field(factory=threading.RLock, init=False)  # the first opens files, the last closes them
    _handles: list[TrainingHandle] = field(factory=list, init=False)  # of training in the background
    _over: threading.Event = field(factory=threading.Event, init=False)
    _watching: dict[str, Future[None]] = field(factory=dict, init=False)
    _started: dict[str, Monitor] = field(factory=dict, init=False)  # the monitors of the last run
    _replaying: bool = field(default=False, init=False)
    signal: int | None = field(default=None, init=False)  # what interrupted the last run
    _failure: BaseException | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Resolve names and tables of monitors."""
        self.monitors = self.monitors  # as any that are set later
        self._records = RunRecords(self.catalogue, self.messages.log)

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- trainers ------------------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        trainers = "".join(f", {trainer!r}" for trainer in islice(self.trainers.values(), 5))
        more = f", and {len(self.trainers) - 5} more" if len(self.trainers) > 5 else ""
        return f"Environment({self.name!r}, {self.state}{trainers}{more})"

    def create_trainer(self, name: str = "trainer", **settings: Any) -> Trainer:
        """Return a new trainer of that name; ``settings`` are the fields of :class:`Trainer`."""
        if name in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: already exists. Choose another name.")
        if "." in name:
            raise SigmaConfigError(f"trainer {name!r}: its name is one level of addresses, without dots.")
        refuse_unknown(f"trainer {name!r}", settings, SETTINGS, remedies=BELONGS)
        self.trainers[name] = Trainer(
            name=name,
            resolve=(resolve := Resolver(self.catalogue)),
            registry=self.registry.branch(name, "trainer"),
            recorder=Recorder(name, self.messages.log, self._tell, History(resolve)),
            fitting=self._fit,
            others=self.trainers,
            saving=lambda trainer, path: _format(self).save(self, trainer, path),
            **{"seed": self.seed, "precision": self.precision, **settings},
        )
        return self.trainers[name]

    def _tell(self, row: Mapping[str, Any]) -> None:
        if row.get("event") != "digest":
            self.rows.log(row)

    def trainer(self, name: str) -> Trainer:
        """Return the trainer of a name."""
        if name not in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: no such trainer.{suggest_name(name, self.trainers, 'There is')}")
        return self.trainers[name]

    def sessions(self) -> dict[str, Session]:
        """Return the session of each trainer that is prepared."""
        return {name: trainer.session for name, trainer in [*self.trainers.items()] if trainer.prepared}

    # -- the lifecycle -------------------------------------------------------------------------------------------------
    @property
    def state(self) -> str:
        """Return created, prepared, running, paused (every trainer still at work has paused), stopped or failed."""
        if not self._active:
            ready = self.trainers and len(self.sessions()) == len(self.trainers)
            return self._state or ("prepared" if ready else "created")
        statuses = {str(session.status) for course in [*self._active] for session in course.sessions}
        if any(course.failure for course in [*self._active]):
            return "failed"  # it waits for a command to go on
        return "paused" if statuses & {"running", "paused"} == {"paused"} else "running"

    def status(self) -> str:
        """Return the state for those that watch: ``compiling``, if training waits for that, or how training ended."""
        if self.state in ("paused", "stopped", "failed"):  # what is compiled then is for somebody else
            return self.ended_by if self.state == "stopped" else self.state
        busy = any(session.setup.programs.compiling for session in self.sessions().values())
        return "compiling" if busy else self.state

    def why(self) -> str:
        """Return why training failed, as a sentence; empty if it did not."""
        failure = next((course.failure for course in [*self._active] if course.failure), self._failure)
        return "" if failure is None or self._aborted else error_text(failure)

    def _check(self, move: str, legal: Sequence[str] = IDLE) -> None:
        state = "waiting" if self._active and self.state == "failed" else self.state
        if state not in legal:
            why = "" if self._active else ", as nothing trains"
            which = f"cannot {move} while it is {self.state}{why}"
            raise SigmaStateError(f"environment {self.name!r}: {which}. Legal while {' or '.join(legal)}.")
        if legal is IDLE and not self.trainers:
            raise SigmaStateError(f"environment {self.name!r}: has no trainer. Create one with create_trainer().")

    def prepare(self) -> None:
        """Infer shapes, draw the initial state and register every address; training and commands do so themselves."""
        self._check("prepare")
        for trainer in self.trainers.values():
            trainer.prepare()

    def run(self, progress: bool | None = None, stay: bool = False) -> Summary:
        """Train until every trainer has finished, and return the summary.

        By default, a terminal or a notebook shows the progress; ``progress`` shows it always or never.  If a trainer
        fails, that is raised once its newest good state is saved; with ``stay``, only when no monitor is attended any
        more: until then it can be steered, and told to go on.

        Ctrl-C, SIGTERM or SIGHUP finishes the burst, saves and returns with the status ``interrupted``; the process
        continues, and ``signal`` is the signal's number.  A second one aborts.  SIGUSR1 saves a checkpoint; training
        continues.  Raises SigmaConfigError if nothing ends the training of one.
        """
        self._check("run")
        course = Course([*self.trainers.values()], attended=self._attended if stay else lambda: False)
        return self._trained(course, progress)

    def run_async(self, progress: bool | None = None) -> TrainingHandle:
        """Train as :meth:`run` does, in the background; return a handle once training has begun.

        Ctrl-C does not end it.  Raises what is wrong before training begins; the handle's ``result`` raises the rest.
        """
        self._check("run")
        course = Course([*self.trainers.values()])
        self._begin(course, progress)
        summary = in_thread(partial(self._complete, course), f"sigma-{self.name}")
        self._handles.append(TrainingHandle(self.name, self.stop, summary))
        return self._handles[-1]

    def _fit(self, trainer: Trainer, goals: Goals, progress: bool | None) -> None:
        """Train one trainer in this thread; then pass on the signal that ended it, as it was meant for the program."""
        course = Course([trainer], goals)
        try:
            self._trained(course, progress)
        except KeyboardInterrupt:
            if not course.signals:
                raise
        if course.signals:
            signal.raise_signal(course.signals[0])

    # -- training ------------------------------------------------------------------------------------------------------
    def _trained(self, course: Course, progress: bool | None) -> Summary:
        with Signals(partial(self._signalled, course)):
            self._begin(course, progress)
            return self._complete(course)

    def _begin(self, course: Course, progress: bool | None) -> None:
        """Prepare and claim the trainers of a course, open the files and start the monitors; or leave no trace."""
        with self._gate:
            if not self._active:
                self._failure, self.signal = None, None
            self._active.append(course)
        try:
            course.prepare()
            with self._gate:
                self._open_folder()
                course.claim()
                if course.signals:  # that came while the files were opened
                    course.tell(StopTraining("interrupted"))
                self._start_monitors(progress)
        except BaseException:
            for session in course.sessions:
                session.loop.leave()
            self._ended(course)
            self._close_files()
            raise
        finally:
            course.begun.set()

    def _complete(self, course: Course) -> Summary:
        """Train and save; return the summary, or raise the first error."""
        try:
            course.train()
            if self._records.run is not None:
                self._save(course.sessions)
        except BaseException as error:
            course.fail(error)
        self._ended(course)
        self._written()
        try:
            with self._gate:
                self._records.leave(summary := self.summary())
        except SigmaStateError as error:
            course.fail(error)
            self._ended(course)
        self._close_files()
        if course.failure is not None:
            raise course.failure
        return summary

    def _ended(self, course: Course) -> None:
        """Count a course as ended, with its failure."""
        with self._gate:
            self._active = [other for other in self._active if other is not course]
            self._failure = self._failure or course.failure
            if course.begun.is_set() and not self._active:
                self._state = "failed" if self._failure else "stopped"

    def _close_files(self) -> None:
        """Release the run folder and end the monitors, unless another course needs them."""
        with self._gate:
            if self._active:
                return
            self._records.release()
            over, watching, self._over, self._watching = self._over, self._watching, threading.Event(), {}
        over.set()
        wait(watching.values(), MOMENT if self._aborted else GRACE)

    def _signalled(self, course: Course, number: int) -> None:
        """Act on a signal, in its handler: queue a command for the trainers of a course, or abort."""
        if number in SAVING:
            there = self._records.run is not None
            self.messages.log("saving a checkpoint" if there else "nothing is saved, as no run folder is written")
            if there:
                course.tell(Save(keep=True))
            return
        if course.failure and not course.signals:  # it waits for a command: the exit code is that of the failure
            course.tell(StopTraining("interrupted"))
            return
        course.signals.append(number)
        if course.underway or not course.begun.is_set():  # else it has ended already
            self.signal = course.signals[0]
            if len(course.signals) > 1 or not course.prepared.is_set():
                raise KeyboardInterrupt
            self.messages.log("interrupted: finishing the step, then saving; interrupt again to abort")
            course.tell(StopTraining("interrupted"))

    @property
    def _aborted(self) -> bool:  # trainers may not answer any more
        return isinstance(self._failure, KeyboardInterrupt)

    def _written(self) -> None:
        """Wait until all checkpoints are written."""
        if not self._aborted:
            self._records.wait()

    def close(self) -> None:
        """End the environment, close its trainers, and wait until all checkpoints are written."""
        self._over.set()
        for course in [*self._active]:
            course.begun.wait()  # trainers that are being prepared have nothing to close yet
        for trainer in self.trainers.values():
            trainer.close()
        for handle in self._handles:
            handle.wait()
        self._written()
        self._records.release()

    # -- the stored run ------------------------------------------------------------------------------------------------
    @property
    def run_folder(self) -> Path | None:
        """Return the folder of this run, or None if there is none yet."""
        return self._records.folder

    def _open_folder(self) -> None:
        if self.folder is not None and self._records.run is None:
            run = self._records.create(self.folder, self.name, lambda run: self.configuration or _describe(self, run))
            for session in self.sessions().values():
                resuming.keep_initial(run, session)
        if self._records.run is not None:
            for session in self.sessions().values():
                resuming.attach(self._records.run, session)
            self._records.run.lock()

    def resume(self, run: Path | str, edits: Sequence[str] = (), log: Log | None = None, paused: bool = False) -> None:
        """Resume a run from its folder; :meth:`run` then continues it, to the same bits as without the interruption.

        ``edits`` are the changes of its configuration.  Skipped checkpoints, and differences that may change bits, are
        logged to ``log``, by default to the messages of the run.  A run that was paused, or stepped, trains on; with
        ``paused`` it waits for a ``go``.  Raises SigmaCheckpointError if the run cannot be resumed, SigmaStateError
        while another process writes to its folder.
        """
        self._check("run")
        self.begin_from(Path(run))
        self.prepare()
        path, log, sessions = Path(run), log or self.messages.log, self.sessions()
        self._records.release()
        stored = self._records.open(path)
        stored.lock()
        try:
            stored.recover(log)
            journal, restored = resuming.restore_sessions(stored, sessions, edits, log)
            stored.reopen(self.configuration if edits else None, journal)
        except BaseException:
            stored.release()
            raise
        self._records.go_on(stored)
        for name, session in sessions.items():
            session.recorder.forget_early()  # the restored journal replaces them
            resuming.attach(stored, session)
            resuming.resume(stored, session, journal, restored[name], edits, log, paused)
        if edits:
            stored.commit()

    def begin_from(self, run: Path) -> None:
        """Give trainers that are not prepared what a run learned from its data, and the initial values it has kept."""
        stored = self._records.open(run)
        for name, trainer in self.trainers.items():
            found = resuming.recall(stored, name, whole=bool(trainer.preprocessors))
            trainer.begin_from(found, stored.initial(name))

    def replay(self, run: Path, progress: bool | None = None) -> tuple[Summary, dict[str, str]]:
        """Replay the journal of a run folder, and compare, without writing anything.

        Commands are refused meanwhile, and only monitors that talk are started.  Return the summary, and for each
        trainer that differs, a description of the first difference.
        """
        self._check("run")
        self.begin_from(run)
        self.prepare()
        self._replaying = True
        stored = self._records.open(run)
        journal = stored.excerpt(self.trainers, self.messages.log)
        for session in self.sessions().values():
            resuming.replay(stored, session, journal, self.messages.log)
        replays = {name: session.recorder.replay for name, session in self.sessions().items()}
        try:
            summary = self.run(progress)
        except Exception:
            if any(replay is None or replay.rows or replay.differs for replay in replays.values()):
                raise
            summary = self.summary()  # the journal ends in this failure
        return summary, {name: replay.differs for name, replay in replays.items() if replay and replay.differs}

    def _save(self, sessions: Iterable[Session]) -> None:
        """Save the sessions whose training was not stopped from outside; a stop has saved the others.

        Where the loss is not finite, the newest good state was saved instead.
        """
        ended = [each for each in sessions if each.current.present.last.finite and not each.progress.interrupted]
        requests = [session.send(Save()) for session in ended]
        self._records.flush()
        for request in requests:
            request.result()

    @property
    def ended_by(self) -> str:
        """Return how training that did not fail ended: finished as planned, stopped by command, or interrupted."""
        stopped = any(session.progress.interrupted for session in self.sessions().values())
        return "interrupted" if self.signal is not None else "stopped" if stopped else "finished"

    def summary(self) -> Summary:
        """Return the summary of the run so far."""
        sessions = self.sessions()
        return summarise(
            sessions,
            run=self.name,
            folder=None if self._records.run is None else self._records.run.place,
            status="interrupted" if self._aborted else reached(sessions, self.state, self.ended_by),
            reachable=not self._aborted,
            seed=self.seed,
            why=self.why(),
        )

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to all trainers that it concerns, or to ``trainer``; return when each applied it.

        Without a trainer, the pattern of ``set`` starts at the root.  Raises SigmaStateError for a command that is not
        legal in the current state; a refused command changes nothing.
        """
        if self._replaying:
            raise SigmaStateError(f"environment {self.name!r}: cannot {command} in a replay. Resume the run instead.")
        name = arguments.pop("trainer", None)
        made = make_command(Resolver(self.catalogue), command, arguments, by_hand=True)
        if name is not None:
            self._wait_for_begin()
            return self._deliver({name: made})
        if made.legal:
            self._check(command, made.legal)
        self._wait_for_begin()
        if not self._active and made.prepares:
            self.prepare()
        parts = made.for_trainers(self.registry, self.sessions())
        if not parts and made.concerns and made.prepares:  # another command came first, or training has just ended
            which = " or ".join(made.concerns)
            raise SigmaStateError(f"environment {self.name!r}: cannot {command}, as no trainer is {which}.")
        return self._deliver(parts)

    def _wait_for_begin(self) -> None:
        """Wait for training that is about to begin."""
        for course in [*self._active]:
            course.begun.wait()

    def _deliver(self, made: Mapping[str, Command]) -> dict[str, Any]:
        made = {name: command.in_full(Resolver(self.catalogue).in_full) for name, command in made.items()}
        for name, command in made.items():  # check all before queueing any
            self.trainer(name).session.commands.check(command)
        self._records.note_plugins()
        requests = {name: self.trainer(name).session.send(command) for name, command in made.items()}
        return {name: request.result() for name, request in requests.items()}

    def get(self, address: str) -> Any:
        """Return the value at an address, from the root."""
        return self.registry.get(address)

    def find(self, pattern: str) -> dict[str, Any]:
        """Return every value that matches a pattern, by its address, from the root."""
        return dict(self.registry.find(pattern))

    def set(self, pattern: str, value: Any) -> list[str]:
        """Set every value that matches a pattern, at each trainer's next boundary; return the addresses.

        Raises SigmaAddressError, and changes nothing, if nothing matches or the value does not fit.
        """
        self.send("set", pattern=pattern, value=value)
        return self.registry.addresses(pattern)

    def pause(self) -> None:
        """Pause every trainer after its current burst; return when all are paused."""
        self.send("pause")

    def go(self) -> None:
        """Continue after a pause."""
        self.send("go")

    def step(self, count: int = 1, scale: str = "iteration") -> None:
        """Train for ``count`` iterations or epochs, then pause again; return when that has begun."""
        self.send("step", count=count, scale=scale)

    def stop(self) -> None:
        """End training after the current burst; return once the command was applied."""
        self.send("stop")

    def reset(self) -> None:
        """Reset every trainer to its initial state."""
        self.send("reset")

    def rewind(self, to: int, scale: str = "iteration", trainer: str | None = None) -> dict[str, Any]:
        """Rewind to the newest snapshot at or before a moment, and continue from it on a new branch.

        Return the moment of that snapshot, for each trainer.
        """
        return self.send("rewind", to=to, scale=scale, trainer=trainer)

    def attach(self, name: str, hook: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Add a hook: the name of a component, or a table ``{"type": name, setting: value}``."""
        return self.send("attach", name=name, hook=hook, trainer=trainer)

    def detach(self, name: str, trainer: str | None = None) -> dict[str, Any]:
        """Remove a hook and its memory."""
        return self.send("detach", name=name, trainer=trainer)

    def swap(self, slot: str, component: str | Mapping[str, Any], trainer: str | None = None) -> dict[str, Any]:
        """Replace the component in a slot: ``optimiser``, ``backend`` or ``iterator``."""
        return self.send("swap", slot=slot, component=component, trainer=trainer)

    def exclude(self, rows: int | Iterable[int], split: str = "training", trainer: str | None = None) -> dict[str, Any]:
        """Leave rows of a split out from the next epoch on; they are numbered from 0, before they are shuffled.

        The data themselves are not changed.  Raises a SigmaError for rows that do not exist, and if too few are left.
        """
        return self.send("exclude", rows=rows, split=split, trainer=trainer)

    def include(self, rows: int | Iterable[int], split: str = "training", trainer: str | None = None) -> dict[str, Any]:
        """Take rows of a split back that were left out, from the next epoch on."""
        return self.send("include", rows=rows, split=split, trainer=trainer)

    def relabel(
        self, rows: int | Iterable[int], label: Any, split: str = "training", trainer: str | None = None
    ) -> dict[str, Any]:
        """Give rows of a split another label from the next epoch on, or with None that of the data again.

        A label is a raw one: that of a class, or a value like those in the data; with several sections of targets, a
        dictionary by section.  Preprocessors are applied to it, and not fitted again.
        """
        return self.send("relabel", rows=rows, label=label, split=split, trainer=trainer)

    def undo(self, trainer: str | None = None) -> dict[str, Any]:
        """Undo the last command that changed values, components or rows."""
        return self.send("undo", trainer=trainer)

    # -- monitors ------------------------------------------------------------------------------------------------------
    def _start_monitors(self, progress: bool | None) -> None:
        for name, monitor in {**self._console(progress), **self.steering(), **self.monitors}.items():
            if name not in self._watching and (monitor.talks or not self._replaying):
                self._started[name] = monitor
                self._watching[name] = in_thread(partial(self._watch, name, monitor, self._over), f"sigma-{name}")

    def _console(self, progress: bool | None) -> dict[str, Monitor]:
        """Return the monitor that shows progress, if that is wanted and no other monitor writes to the terminal."""
        if progress is None:
            progress = seen_by_people() and self.catalogue.offers("monitor", PROGRESS)
        if not progress or any(monitor.talks for monitor in self.monitors.values()):
            return {}
        return self._default_monitor(PROGRESS)

    def steering(self) -> dict[str, Monitor]:
        """Return the monitor through which other shells steer, unless it is switched off or not installed."""
        wanted = self.control and os.environ.get("SIGMA_CONTROL") != "off"
        return self._default_monitor(CONTROL) if wanted and self.catalogue.offers("monitor", CONTROL) else {}

    def _default_monitor(self, role: str) -> dict[str, Monitor]:
        """Return the default monitor for a role, by its name."""
        name = self.catalogue.resolve("monitor", role).name
        return {name: Resolver(self.catalogue)(Monitor, role, name)}

    def _attended(self) -> bool:
        """Return whether somebody is connected to a monitor who could steer a run that failed."""
        return any(monitor.is_attended() for monitor in self._started.values())

    def linger(self) -> None:
        """Keep monitors serving the finished run, one after the other, until their last viewers leave."""
        for name, monitor in self.monitors.items():
            try:
                monitor.linger(EnvironmentView(self, threading.Event()))
            except Exception as error:
                self.messages.log(f"monitor {name!r} failed: {error_text(error)}")

    def _watch(self, name: str, monitor: Monitor, over: threading.Event) -> None:
        try:
            monitor.watch(EnvironmentView(self, over))
        except Exception as error:  # a failing monitor must not disturb training
            self.messages.log(f"monitor {name!r} failed: {error_text(error)}; training continues")


def _describe(environment: Environment, run: StoredRun) -> str:
    if run.path is None or not environment.catalogue.offers("configuration", CONFIGURATION):
        return UNDESCRIBED
    return _format(environment).describe(environment, run.path)


def _format(environment: Environment) -> ConfigurationFormat:
    return Resolver(environment.catalogue)("configuration", CONFIGURATION)  # type: ignore[no-any-return]
