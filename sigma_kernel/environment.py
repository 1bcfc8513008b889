"""The environment: trainers, monitors and the run folder, and the lifecycle that they share.

::

    with Environment("mnist", seed=0) as sigma:
        trainer = sigma.create_trainer("trainer", backend="numpy")
        ...
        sigma.run()
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen
from attrs.converters import optional

from sigma_kernel.contracts import Monitor
from sigma_kernel.errors import SigmaConfigError, SigmaStateError, near
from sigma_kernel.plugins import Catalogue, catalogue
from sigma_kernel.registry import Registry
from sigma_kernel.training import checkpoint, commands, folder
from sigma_kernel.training.step import LAYERS
from sigma_kernel.training.trainer import Trainer

LEGAL: dict[str, tuple[str, ...]] = {
    "created": ("prepared", "failed"),
    "prepared": ("running", "failed"),
    "running": ("paused", "stopped", "failed"),
    "paused": ("running", "stopped", "failed"),
    "stopped": ("running",),
    "failed": (),
}
GRACE = 2.0  # seconds that monitors get to end


@frozen
class Summary:
    """What a run came to; ``status`` is finished, stopped, interrupted or failed."""

    run: str
    folder: str | None
    status: str
    backend: str
    seed: int
    epochs: int
    iterations: int
    seconds: float
    metrics: dict[str, float]
    parameters_sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


@frozen
class Resolver:
    """Turn what a setting says, a name or an object, into an object."""

    catalogue: Catalogue

    def __call__(self, kind: str, thing: Any) -> Any:
        """Return the object: names are looked up, tables are ``{"type": name, setting: value}``."""
        if isinstance(thing, str):
            return self._made(kind, thing, {})
        if isinstance(thing, Mapping):
            return self._made(kind, str(thing["type"]), {key: value for key, value in thing.items() if key != "type"})
        return thing() if isinstance(thing, type) else thing

    def _made(self, kind: str, name: str, settings: Mapping[str, Any]) -> Any:
        found: Any = self.catalogue.load(kind, name)
        if not isinstance(found, type):
            return found
        try:
            return found(**settings)
        except (TypeError, ValueError) as error:
            raise SigmaConfigError(f"{kind} {name!r}: {error}. Check its settings.") from error


@define(eq=False)
class Messages:
    """What was said to people, numbered, so that each monitor can read on from where it was."""

    _said: deque[tuple[int, str]] = field(factory=lambda: deque(maxlen=1000))
    _count: Iterator[int] = field(factory=lambda: iter(range(1, 2**62)))

    def say(self, text: str) -> None:
        """Add a message."""
        self._said.append((next(self._count), text))

    def after(self, number: int) -> list[tuple[int, str]]:
        """Return the messages that came after a number."""
        return [(n, text) for n, text in list(self._said) if n > number]


@define(eq=False)
class Environment:
    """Several trainers in one place, watched by monitors, ended together.

    With a ``folder``, each run leaves a run folder in it; without one nothing is written.
    """

    name: str = "run"
    seed: int = field(default=0, kw_only=True)
    precision: str = field(default="float32", kw_only=True)
    folder: Path | None = field(default=None, kw_only=True, converter=optional(Path))
    monitors: dict[str, Monitor] = field(factory=dict, kw_only=True)
    configuration: str = field(default="", kw_only=True)  # the resolved configuration, kept in the run folder
    catalogue: Catalogue = field(factory=catalogue, kw_only=True)
    state: str = field(default="created", init=False)
    trainers: dict[str, Trainer] = field(factory=dict, init=False)
    registry: Registry = field(factory=Registry, init=False)
    messages: Messages = field(factory=Messages, init=False)
    run_folder: Path | None = field(default=None, init=False)
    _over: threading.Event = field(factory=threading.Event, init=False)
    _watching: list[threading.Thread] = field(factory=list, init=False)
    _failure: BaseException | None = field(default=None, init=False)
    _ended_by: str = field(default="finished", init=False)
    _seconds: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse a seed that is none."""
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise SigmaConfigError(f"seed: must be a whole number from 0 to 2**64 - 1 (got {self.seed!r}).")

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- trainers ------------------------------------------------------------------------------------------------------
    def create_trainer(self, name: str = "trainer", **settings: Any) -> Trainer:
        """Return a new trainer of that name; ``settings`` are the fields of :class:`Trainer`."""
        if self.state != "created":
            raise SigmaStateError(f"environment {self.name!r}: is {self.state}. Create trainers before it is prepared.")
        if name in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: there is one already. Give this one another name.")
        common = {"seed": self.seed, "precision": self.precision, "registry": self.registry.branch(name, "trainer")}
        self.trainers[name] = Trainer(name, Resolver(self.catalogue), **{**common, **settings})
        self.trainers[name].records.say = self.messages.say
        return self.trainers[name]

    def trainer(self, name: str) -> Trainer:
        """Return a trainer by its name."""
        if name not in self.trainers:
            raise SigmaConfigError(f"trainer {name!r}: there is none.{near(name, self.trainers)}")
        return self.trainers[name]

    # -- the lifecycle -------------------------------------------------------------------------------------------------
    def _turn(self, state: str) -> None:
        if state not in LEGAL[self.state]:
            legal = ", ".join(LEGAL[self.state]) or "none; make a new environment"
            raise SigmaStateError(
                f"environment {self.name!r}: is {self.state} and cannot become {state}. Legal from here: {legal}."
            )
        self.state = state

    def prepare(self) -> None:
        """Infer shapes, draw the initial state and register every address; :meth:`run` does it by itself."""
        if not self.trainers:
            raise SigmaStateError(f"environment {self.name!r}: has no trainer. Create one with create_trainer().")
        self._turn("prepared")
        for trainer in self.trainers.values():
            trainer.prepare()

    def run(self) -> Summary:
        """Train until every trainer has finished, and return the summary.

        Ctrl-C finishes the present burst, saves and returns with the status ``interrupted``; a second one aborts.
        """
        if self.state == "created":
            self.prepare()
        self._turn("running")
        self._failure, self._ended_by = None, "finished"
        self._open_folder()
        self._watch()
        began = time.monotonic()
        try:
            self._train()
            self._save()
        except BaseException as error:
            self._failure = self._failure or error
        self._seconds += time.monotonic() - began
        return self._finished()

    def _train(self) -> None:
        threads = [
            threading.Thread(target=self._work, args=(trainer,), name=f"sigma-{name}", daemon=True)
            for name, trainer in self.trainers.items()
        ]
        for thread in threads:
            thread.start()
        try:
            _join(threads)
        except KeyboardInterrupt:
            self.messages.say("interrupted: finishing the step, then saving; interrupt again to abort")
            self._ended_by = "interrupted"
            self.send("stop")
            _join(threads)

    def _work(self, trainer: Trainer) -> None:
        try:
            trainer.fit()
        except BaseException as error:  # raised again by run(), in its caller's thread
            self._failure = self._failure or error
            for other in self.trainers.values():
                other.session.control.send(commands.Stop())

    def _finished(self) -> Summary:
        self._turn("failed" if self._failure else "stopped")
        summary = self.summary()
        if self.run_folder is not None:
            folder.put_json(self.run_folder / "summary.json", summary.to_dict())
        self._over.set()
        for thread in self._watching:
            thread.join(GRACE)
        self._watching.clear()
        if self._failure is not None:
            raise self._failure
        return summary

    def pause(self) -> None:
        """Pause every trainer after its present burst; returns when all are paused."""
        self._command("pause", "paused")

    def go(self) -> None:
        """Go on after a pause."""
        self._command("go", "running")

    def step(self, count: int = 1, scale: str = "iteration") -> None:
        """Train for so many iterations or epochs, then pause again."""
        self._command("step", "running", count=count, scale=scale)
        self.state = "paused"

    def stop(self) -> None:
        """End training after the present burst."""
        self.send("stop")
        self._ended_by = "stopped"

    def reset(self) -> None:
        """Put every trainer back to its initial state."""
        self.send("reset")

    def _command(self, name: str, state: str, **arguments: Any) -> None:
        if state not in LEGAL[self.state]:
            self._turn(state)
        self.send(name, **arguments)
        self.state = state

    def close(self) -> None:
        """End the environment and whatever its trainers hold open."""
        self._over.set()
        for trainer in self.trainers.values():
            trainer.close()

    # -- steering ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command to every trainer, or to the one named ``trainer``; return the moments at which it acted."""
        names = [arguments.pop("trainer")] if "trainer" in arguments else list(self.trainers)
        made = commands.command(command, arguments)
        tickets = {name: self.trainer(name).session.control.send(made) for name in names}
        return {name: ticket.answer.result() for name, ticket in tickets.items()}

    def get(self, address: str) -> Any:
        """Return the value under an address, from the root."""
        return self.registry.get(address)

    def set(self, pattern: str, value: Any) -> list[str]:
        """Set every value that matches a pattern, at each trainer's next boundary; return the addresses.

        Raises SigmaAddressError, and changes nothing, if nothing matches or the value does not fit.
        """
        found = self.registry.addresses(pattern)
        if not found:
            self.registry.set(pattern, value)  # says what is near
        for address in found:
            self.registry.kind(address).check(address, value)
        for name, _, address in (address.partition(".") for address in found):
            self.send("set", trainer=name, pattern=address, value=value)
        return found

    # -- the run folder ------------------------------------------------------------------------------------------------
    def _open_folder(self) -> None:
        if self.folder is None or self.run_folder is not None:
            return
        self.run_folder = folder.create(self.folder, self.name)
        folder.put_text(self.run_folder / "config.toml", self.configuration)
        folder.put_json(self.run_folder / "plugins.json", {"plugins": self.catalogue.versions()})
        for name, trainer in self.trainers.items():
            trainer.records.open(self.run_folder)
            trainer.session.save_as = partial(self._write, name)

    def _write(self, trainer: str, state: checkpoint.Checkpoint) -> Path:
        assert self.run_folder is not None  # only sessions of a run with a folder save
        iteration = self.trainers[trainer].session.clock.moment.iteration
        return checkpoint.write(self.run_folder / "checkpoints" / trainer / str(iteration), state)

    def _save(self) -> None:
        if self.run_folder is not None and self._failure is None:
            self.send("save")

    def summary(self) -> Summary:
        """Return what the run has come to so far."""
        sessions = [trainer.session for trainer in self.trainers.values()]
        moments = [session.clock.moment for session in sessions]
        return Summary(
            run=self.name,
            folder=None if self.run_folder is None else str(self.run_folder),
            status="failed" if self._failure is not None else self._ended_by,
            backend=", ".join(dict.fromkeys(trainer.backend_name for trainer in self.trainers.values())),
            seed=self.seed,
            epochs=max(moment.epoch for moment in moments),
            iterations=max(moment.iteration for moment in moments),
            seconds=round(self._seconds, 3),
            metrics=self._metrics(),
            parameters_sha256=self._digest(),
        )

    def _metrics(self) -> dict[str, float]:
        alone = len(self.trainers) == 1
        return {
            address if alone else f"{name}.{address}": value
            for name, trainer in self.trainers.items()
            for address, value in trainer.session.published.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and not address.startswith("workers.")
        }

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for trainer in self.trainers.values():
            for name in sorted(LAYERS + address for address in trainer.session.model.shapes.parameters):
                values = trainer.session.control.ask(partial(trainer.session.host, name))
                digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    # -- monitors ------------------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        self._over.clear()
        for name, monitor in self.monitors.items():
            thread = threading.Thread(target=self._monitored, args=(name, monitor), name=f"sigma-{name}", daemon=True)
            self._watching.append(thread)
            thread.start()

    def _monitored(self, name: str, monitor: Monitor) -> None:
        try:
            monitor.run(EnvironmentView(self))
        except Exception as error:  # a monitor that fails must not disturb training
            self.messages.say(f"monitor {name!r} failed: {type(error).__name__}: {error}; training goes on")


@frozen
class EnvironmentView:
    """What a monitor sees and may do, from its own thread."""

    environment: Environment

    def get(self, address: str) -> Any:
        """Return a value."""
        return self.environment.get(address)

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all values that match."""
        return list(self.environment.registry.find(pattern))

    def status(self) -> str:
        """Return the state of the lifecycle, or ``compiling``."""
        trainers = self.environment.trainers.values()
        busy = any(trainer.session.programs.compiling for trainer in trainers)
        return "compiling" if busy else self.environment.state

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the messages after a number."""
        return self.environment.messages.after(after)

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command."""
        self.environment.send(command, **arguments)

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the run is over."""
        return self.environment._over.wait(seconds)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # short, so that Ctrl-C is seen
