"""The environment: create trainers, run, resume and replay them in a run folder, steer them by commands.

::

    with Environment("mnist", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend="numpy")
        ...
        sigma.run()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from attrs import define, field

from sigma_kernel import settings
from sigma_kernel.contracts import ConfigurationFormat, Monitor, Ticket
from sigma_kernel.contracts.commanding import Command, make_command
from sigma_kernel.contracts.running import Goals, Lifecycle, Trainer
from sigma_kernel.contracts.storing import FOR_REPLAYS, Log, StoredRun
from sigma_kernel.courses import Course, TrainingHandle
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, suggest_name
from sigma_kernel.messages import Messages
from sigma_kernel.plugins.catalogue import Catalogue, catalogue
from sigma_kernel.plugins.resolver import Resolver as Resolver, resolve_components
from sigma_kernel.records import RunRecords
from sigma_kernel.registry.registry import Registry
from sigma_kernel.running import Runner
from sigma_kernel.steering import SteeringMethods
from sigma_kernel.summary import Summary as Summary, describe_end, select_status, summarise
from sigma_kernel.views import EnvironmentView
from sigma_kernel.watchers import Watchers, find_progress_monitor, find_steering_monitor

TRAINER = "default:training"  # the trainer that an environment creates
CONFIGURATION = "default:run"  # the format of ``config.toml``, and of saved networks
UNDESCRIBED = "# Trained from Python, without a plugin that describes runs.\n"
DISTRIBUTIONS = "names of distributions, such as ['acme-sigma']"
IDLE = ("created", "prepared", "stopped", "failed")  # states in which training may begin


def _are_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _resolve_monitors(environment: Environment, _: object, monitors: Any) -> dict[str, Monitor]:
    """Resolve names and tables of monitors."""
    return resolve_components(Resolver(environment.catalogue), "monitors", Monitor, monitors)


@define(eq=False, repr=False)
class Environment(SteeringMethods, settings.Settled):
    """Several trainers that are run and ended together, watched by monitors.

    With a ``folder``, each run creates a run folder in it, ``folder_name`` if that is given; without one nothing is
    written.  Arrays that were given as data are saved there, up to ``most_data`` bytes for each trainer.  ``plugins``
    are distributions that are told when a run begins, ends or fails.
    """

    name: str = field(default="run", validator=settings.NAME)
    seed: int = field(default=0, kw_only=True, converter=settings.seed)
    precision: str = field(
        default="float32", kw_only=True, converter=settings.precision, validator=settings.in_(settings.PRECISIONS)
    )
    folder: Path | None = field(default=None, kw_only=True, converter=settings.folder)
    monitors: Any = field(factory=dict, kw_only=True, on_setattr=_resolve_monitors)  # a list, or objects by name
    control: bool = field(default=True, kw_only=True, validator=settings.in_((True, False)))  # by other shells
    configuration: str = field(default="", kw_only=True)  # the resolved configuration, kept in the run folder
    most_data: int = field(default=2**26, kw_only=True, validator=[settings.whole, settings.ge(0)])
    folder_name: str | None = field(default=None, kw_only=True, validator=settings.optional(settings.NAME))
    catalogue: Catalogue = field(factory=catalogue, kw_only=True)
    plugins: Sequence[str] = field(factory=list, kw_only=True, validator=settings.must(_are_names, DISTRIBUTIONS))
    trainers: dict[str, Trainer] = field(factory=dict, init=False)
    registry: Registry = field(factory=Registry, init=False)
    messages: Messages[str] = field(factory=Messages, init=False)
    rows: Messages[Mapping[str, Any]] = field(factory=Messages, init=False)  # of the journals, but digests
    tickets: Messages[Ticket] = field(factory=Messages, init=False)
    signals: list[int] = field(factory=list, init=False)  # that came in a run and mean its end, also after training
    _records: RunRecords = field(init=False)
    _watchers: Watchers = field(init=False)
    _runner: Runner = field(init=False)
    replaying: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Resolve names and tables of monitors."""
        self.monitors = self.monitors  # as any that are set later
        self._records = RunRecords(self.catalogue, self.log)
        self._watchers = Watchers(self.log)
        self._runner = Runner(owner=self, records=self._records, watchers=self._watchers, messages=self.messages)

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
        """Return a new trainer of that name; ``settings`` are its fields.

        It is the default one of the plugins that are installed; raises SigmaPluginError if none offers any.
        """
        _check_name(name, self.trainers)
        kind = cast("type[Trainer]", self.catalogue.load("trainer", TRAINER))
        self.trainers[name] = kind.create(name, self, {"seed": self.seed, "precision": self.precision, **settings})
        return self.trainers[name]

    def trainer(self, name: str) -> Trainer:
        """Return the trainer of a name."""
        if name not in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: no such trainer.{suggest_name(name, self.trainers, 'There is')}")
        return self.trainers[name]

    def lifecycles(self) -> dict[str, Lifecycle]:
        """Return the lifecycle of each trainer that is prepared."""
        return {name: trainer.lifecycle for name, trainer in [*self.trainers.items()] if trainer.is_prepared}

    # -- what trainers get ---------------------------------------------------------------------------------------------
    @property
    def resolve(self) -> Resolver:
        """Return what resolves names and tables to components."""
        return Resolver(self.catalogue)

    def log(self, text: str) -> None:
        """Log a message to the monitors."""
        self.messages.log(text)

    def publish_row(self, row: Mapping[str, Any]) -> None:
        """Show a row of the journal to monitors, unless it is one for replays."""
        if row.get("event") not in FOR_REPLAYS:
            self.rows.log(row)

    def fit_trainer(self, trainer: Trainer, goals: Goals, progress: bool | None) -> None:
        """Train one trainer in this thread, in the run of the environment."""
        self._runner.run_for_program(Course([trainer], self.log, goals), progress)

    def save_trainer(self, trainer: Trainer, path: Path | str) -> Path:
        """Save the network of a trainer to a directory; return its path."""
        return _format(self).save(self, trainer, path)

    # -- the lifecycle -------------------------------------------------------------------------------------------------
    @property
    def state(self) -> str:
        """Return created, prepared, running, paused (every trainer still at work has paused), stopped or failed."""
        prepared = self.trainers and all(trainer.is_prepared for trainer in [*self.trainers.values()])
        return self._runner.state or ("prepared" if prepared else "created")

    @property
    def signal(self) -> int | None:
        """Return the number of the signal that interrupted the last run."""
        return self._runner.signal

    def status(self) -> str:
        """Return the state for monitors: ``compiling``, if training waits for that, or how training ended."""
        if self.state in ("paused", "stopped", "failed"):  # other compilations do not delay training
            return describe_end(self.lifecycles(), self.signal) if self.state == "stopped" else self.state
        return "compiling" if any(x.is_compiling for x in self.lifecycles().values()) else self.state

    def why(self) -> str:
        """Return why training failed, as a sentence; empty if it did not."""
        return self._runner.failure

    def _check(self, move: str, legal: Sequence[str] = IDLE) -> None:
        state = "waiting" if self._runner.is_active and self.state == "failed" else self.state
        if state not in legal:
            why = "" if self._runner.is_active else ", as nothing trains"
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

        By default, a terminal or a notebook shows the progress; ``progress`` shows it always or never.  A trainer's
        failure is raised once its newest good state is saved; with ``stay``, only when no monitor is attended any more:
        until then it can be steered and continued.

        Ctrl-C, SIGTERM or SIGHUP finishes the burst, saves and returns with the status ``interrupted``; the process
        continues, and ``signal`` is the signal's number.  A second one aborts.  SIGUSR1 saves a checkpoint; training
        continues.  Raises SigmaConfigError if nothing ends the training of one.
        """
        self._check("run")
        attended = self._watchers.is_attended if stay else lambda: False
        return self._runner.run(Course([*self.trainers.values()], self.log, attended=attended), progress)

    def run_async(self, progress: bool | None = None) -> TrainingHandle:
        """Train as :meth:`run` does, in the background; return a handle once training has begun.

        Ctrl-C does not end it. Raises errors of the preparation; the handle's ``result`` raises later ones.
        """
        self._check("run")
        return self._runner.run_in_background(Course([*self.trainers.values()], self.log), progress, self.name)

    def close(self) -> None:
        """End the environment, close its trainers, and wait until all checkpoints are written."""
        self._watchers.announce_end()
        self._runner.await_begin()  # trainers that are being prepared have nothing to close yet
        for trainer in self.trainers.values():
            trainer.close()
        self._runner.wait_for_handles()
        self._runner.wait_for_checkpoints()
        self._records.release()

    # -- the stored run ------------------------------------------------------------------------------------------------
    @property
    def run_folder(self) -> Path | None:
        """Return the folder of this run, or None if there is none yet."""
        return self._records.folder

    def open_run(self) -> None:
        """Create the stored run if there is a folder for it, and let prepared trainers write to it."""
        if self.folder is not None and self._records.run is None:
            run = self._records.create(self.folder, self.name, partial(_describe, self), self.folder_name)
            for trainer in self.lifecycles().values():
                trainer.keep_initial(run)
        self._records.attach(self.lifecycles().values())

    def resume(
        self, run: Path | str, edits: Sequence[str] = (), log: Log | None = None, paused: bool = False, who: str = ""
    ) -> None:
        """Resume a run from its folder; :meth:`run` then continues it, to the same bits as without the interruption.

        ``edits`` are changes of its configuration, ``who`` is the person for the journal.  Skipped checkpoints, and
        what may change bits, are logged.  A paused run trains on, or waits for a ``go`` with ``paused``.  Raises
        SigmaCheckpointError if the run cannot be resumed, SigmaStateError while another process writes to its folder.
        """
        self._check("run")
        self.begin_from(Path(run))
        self.prepare()
        path, log, trainers = Path(run), log or self.log, self.lifecycles()
        stored, journal = self._records.reopen(path, trainers, edits, self.configuration, log)
        for trainer in trainers.values():
            trainer.resume_for(who, stored, journal, edits, log, paused)
        if edits:
            stored.commit()

    def begin_from(self, run: Path) -> None:
        """Give unprepared trainers the fitted values of a run's data, and its initial values."""
        stored = self._records.open(run)
        for trainer in self.trainers.values():
            trainer.begin_from(stored)

    def replay(self, run: Path, progress: bool | None = None) -> tuple[Summary, dict[str, str]]:
        """Replay the journal of a run folder, and compare, without writing anything.

        Commands are refused; only monitors that talk start.  Return the summary, and the first difference by trainer.
        """
        self._check("run")
        self.begin_from(run)
        self.prepare()
        self.replaying = True
        stored = self._records.open(run)
        journal, trainers = stored.excerpt(self.trainers, self.log), self.lifecycles()
        for trainer in trainers.values():
            trainer.replay(stored, journal, self.log)
        try:
            summary = self.run(progress)
        except Exception:
            if not all(trainer.is_replayed for trainer in trainers.values()):
                raise
            summary = self.summary()  # the journal ends in this failure
        return summary, {name: trainer.difference for name, trainer in trainers.items() if trainer.difference}

    def summary(self) -> Summary:
        """Return the summary of the run so far."""
        trainers, aborted = self.lifecycles(), self._runner.is_aborted
        return summarise(
            trainers,
            run=self.name,
            folder=None if self._records.run is None else self._records.run.place,
            status="interrupted" if aborted else select_status(trainers, self.state, self.signal),
            reachable=not aborted,
            seed=self.seed,
            why=self.why(),
        )

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to all trainers that it concerns, or to ``trainer``; return when each applied it.

        Without a trainer, the pattern of ``set`` starts at the root.  ``who`` is the name of the sender in the journal.
        Raises SigmaStateError for a command that is not legal in the current state; a refused command changes nothing.
        """
        if self.replaying:
            raise SigmaStateError(f"environment {self.name!r}: cannot {command} in a replay. Resume the run instead.")
        name, who = arguments.pop("trainer", None), arguments.pop("who", "")
        change = make_command(Resolver(self.catalogue), command, arguments, by_hand=True)
        if name is not None:
            self._runner.await_begin()
            return self._deliver({name: change}, who)
        if change.legal:
            self._check(command, change.legal)
        self._runner.await_begin()
        if not self._runner.is_active and change.prepares:
            self.prepare()
        parts = change.for_trainers(self.registry, self.lifecycles())
        if not parts and change.concerns and change.prepares:  # another command came first, or training has just ended
            which = " or ".join(change.concerns)
            raise SigmaStateError(f"environment {self.name!r}: cannot {command}, as no trainer is {which}.")
        return self._deliver(parts, who)

    def _deliver(self, commands: Mapping[str, Command], who: str) -> dict[str, Any]:
        commands = {name: each.in_full(Resolver(self.catalogue).in_full) for name, each in commands.items()}
        for name, command in commands.items():  # check all before queueing any
            self.trainer(name).lifecycle.check(command)
        self._records.note_plugins()
        requests = {name: self.trainer(name).lifecycle.send_from(who, command) for name, command in commands.items()}
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

    # -- monitors ------------------------------------------------------------------------------------------------------
    def start_monitors(self, progress: bool | None) -> None:
        """Start the monitors that do not watch yet, and those by default; training does so."""
        progress_monitor = find_progress_monitor(self.catalogue, progress, self.monitors)
        monitors = {**progress_monitor, **find_steering_monitor(self.catalogue, self.control), **self.monitors}
        talking = {name: monitor for name, monitor in monitors.items() if monitor.talks}
        self._watchers.start(talking if self.replaying else monitors, partial(EnvironmentView, self))

    def linger(self) -> None:
        """Keep monitors serving the finished run, one after the other, until their last viewers leave."""
        self._watchers.linger(self.monitors, partial(EnvironmentView, self))


def _check_name(name: str, trainers: Mapping[str, Trainer]) -> None:
    """Raise SigmaConfigError for a name that no new trainer can have."""
    if name in trainers:
        raise SigmaConfigError(f"trainer {name!r}: already exists. Choose another name.")
    if "." in name:
        raise SigmaConfigError(f"trainer {name!r}: its name is one level of addresses, without dots.")


def _describe(environment: Environment, run: StoredRun) -> str:
    if environment.configuration:
        return environment.configuration
    if run.path is None or not environment.catalogue.offers("configuration", CONFIGURATION):
        return UNDESCRIBED
    return _format(environment).describe(environment, run.path)


def _format(environment: Environment) -> ConfigurationFormat:
    return Resolver(environment.catalogue)("configuration", CONFIGURATION)  # type: ignore[no-any-return]
