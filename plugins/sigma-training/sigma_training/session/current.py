"""The current run: the one place that holds the present value of a run and replaces it, in the training thread.

Other threads may read ``present`` at any time: one reading is one consistent moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Concatenate, Protocol

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.contracts.running import Host
from sigma_kernel.registry.addresses import literal
from sigma_kernel.registry.registry import Registry
from sigma_step.steps import Steps
from sigma_training.evaluator import Evaluator
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.background import Background
from sigma_training.hooks.context import P, R
from sigma_training.hooks.order import look_up
from sigma_training.session import goals
from sigma_training.session.bindings import (
    PHASES,
    SYSTEM,
    Binding,
    bindings,
    numbers,
    published_bindings,
    reading_bindings,
    worker_bindings,
)
from sigma_training.session.progress import TrainingProgress
from sigma_training.session.queue import Queue, Request
from sigma_training.session.state import Present, RunState, Setup
from sigma_training.session.timing import Timed

NUMBERS = (int, float)


class Commander(Protocol):
    """What the current run asks of the part that makes and applies commands, which is built on it."""

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address at the next boundary."""

    def find(self, kind: str, name: str) -> Any:
        """Return the class of a command."""

    def make(self, command: str, **arguments: Any) -> Command:
        """Make a command."""

    def post(self, command: Command) -> None:
        """Queue a command for the next boundary."""

    def apply(self, command: Command, who: str = "") -> Moment:
        """Apply a command now, and write it to the journal with its sender; one that raises changes nothing."""

    def pause(self) -> None:
        """Pause: the training thread waits at the next boundary."""


@define(eq=False, repr=False)
class CurrentRun:
    """Hold the present value of a run, and what follows it: addresses, published values, the stopwatch."""

    present: Present
    recorder: Recorder
    registry: Registry
    background: Background
    environment: Host
    queue: Queue = field(factory=Queue, init=False)
    workers: Mapping[int, Any] = field(factory=dict, init=False)  # of a group, by number
    phases: dict[str, float] = field(factory=lambda: dict.fromkeys(PHASES, 0.0), init=False)  # seconds
    commands: Commander = field(init=False)  # applies what hooks command, and sets what others put at an address
    _bound: dict[str, Binding] = field(factory=dict, init=False)
    readings: dict[str, float] = field(factory=dict, init=False)  # of the machine, the last ones by address
    _units: dict[str, str] = field(factory=dict, init=False)  # of these readings
    _shown: Mapping[str, Binding] = field(factory=dict, init=False)  # of the workers, and of these readings
    _published: dict[str, Any] = field(factory=dict, init=False)  # that the present state alone holds, or others
    _counted: float = field(factory=time.perf_counter, init=False)  # when seconds were last counted

    # -- reading -------------------------------------------------------------------------------------------------------
    @property
    def setup(self) -> Setup:
        """Return the setup."""
        return self.present.setup

    @property
    def state(self) -> RunState:
        """Return the state."""
        return self.present.state

    @property
    def progress(self) -> TrainingProgress:
        """Return the progress of training."""
        return self.present.progress

    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return self.present.state.moment

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""
        return self.progress.status(self.queue.busy)

    @property
    def backend_name(self) -> str:
        """Return the display name of the backend."""
        return self.setup.backend_name(self.state.changes, self.moment.iteration)

    @property
    def epochs(self) -> float | None:
        """Return the total number of epochs, if there is one."""
        return goals.total_epochs(self.present)

    def goal(self) -> int | None:
        """Return the iteration at which training ends at the latest, if it is known."""
        return goals.latest_end(self.present)

    def host(self, name: str) -> np.ndarray:
        """Return a copy of an array of the state; for the training thread, or inside a request."""
        return self.setup.to_host(self.state.arrays[name])

    def ask(self, question: Callable[[], Any]) -> Any:
        """Evaluate a function of the run between bursts, and return its result."""
        return self.queue.submit(Request(question)).result()

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return the value at an address for criteria and hooks, local values first, or None.

        For a pattern, return a dictionary of all matches. What is shown of a group's workers and of the machine is not
        among them, as it depends on time.
        """
        published, observed = self.state.published, self.present.last.observed
        value = look_up({**observed, **published} if observed else published, address, scope)
        there = {name: bound for name, bound in self.registry.find(address) if name not in self._shown}
        if literal(address):
            return there.get(address) if value is None else value
        return {**there, **value}

    # -- measuring, in the training thread or inside a request --------------------------------------------------------
    def measure(
        self, weights: str, act: Callable[Concatenate[Evaluator, Steps, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of a method of the evaluator, at the current parameters or the weights of a modifier."""
        run = self.present
        with Timed(self.phases, "evaluation"):
            return act(run.setup.evaluator, run.steps(weights), *args, **kwargs)

    # -- replacing -----------------------------------------------------------------------------------------------------
    def put(self, present: Present) -> None:
        """Put another value of the run in force, which has the same components."""
        self.present = present

    def set_state(self, state: RunState) -> None:
        """Put another state in force."""
        self.present = self.present.with_state(state)

    def set_progress(self, progress: TrainingProgress) -> None:
        """Put another progress of training in force."""
        self.present = self.present.with_progress(progress)

    def adopt(self, present: Present) -> None:
        """Put another value of the run in force; stop the background work of components that it no longer has."""
        former, self.present = self.setup, present
        setup = present.setup
        if setup.feed is not former.feed:
            former.feed.close()
        if setup.evaluator is not former.evaluator:
            former.evaluator.close()
            self.background.evaluate_by(setup.evaluator.silent_copy())
        if setup is not former:
            self._rebind()
        else:
            self.show(present.state.published)
        self.record_numbers()

    def publish(self, address: str, value: Any) -> None:
        """Publish a value at an address of this trainer."""
        if type(value) is not float and isinstance(value, np.generic):
            value = value.item()
        if self._published is not self.state.published:  # another state may hold them
            self._published = dict(self.state.published)
            self.set_state(evolve(self.state, published=self._published))
        self._published[address] = value
        if isinstance(value, NUMBERS) and value is not True and value is not False:
            self.recorder.history.add(address, float(value), self.state.moment)
        elif isinstance(value, str):
            self.recorder.history.texts[address] = value
        if address not in self._bound:
            self._bind(published_bindings([address]))

    def freeze(self) -> Present:
        """Return the present value, whose published values are not written to in place any more."""
        self._published = {}
        return self.present

    # -- addresses -----------------------------------------------------------------------------------------------------
    def open(self) -> None:
        """Bind all addresses."""
        self._rebind()
        self.record_numbers()

    def show(self, addresses: Iterable[str]) -> None:
        """Bind published values at addresses that are not bound yet."""
        if new := [address for address in addresses if address not in self._bound]:
            self._bind(published_bindings(new))

    def show_workers(self, workers: Mapping[int, Any]) -> None:
        """Bind ``group.<number>.rate`` and others of the workers of a group, in place of those of earlier ones."""
        if self.workers.keys() != workers.keys():
            self.workers = workers
            self._rebind()

    def record_readings(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Record what a monitor measured of the machine, below ``system.``, as curves of the present moment."""
        for name, value in readings.items():
            self.recorder.history.add(SYSTEM + name, float(value), self.moment)
        self.readings |= {SYSTEM + name: float(value) for name, value in readings.items()}
        if new := {SYSTEM + name: unit for name, unit in units.items() if SYSTEM + name not in self._units}:
            self._units |= new
            self._rebind()

    def _rebind(self) -> None:
        """Bind the addresses of the setup, and remove those that are gone."""
        self._shown = {**worker_bindings(self.workers), **reading_bindings(self._units)}
        wanted = {**bindings(self.setup, self.state.published), **self._shown}
        for address in self._bound.keys() - wanted.keys():
            self.registry.remove(address)
            del self._bound[address]
        self._bind({address: binding for address, binding in wanted.items() if self._bound.get(address) != binding})

    def _bind(self, new: Mapping[str, Binding]) -> None:
        for address, binding in new.items():
            put = None if binding.kind is None else partial(self.commands.set, address)
            kind = binding.kind or binding.shown
            self.registry.bind(address, partial(binding.read, self, address), put, kind, remote=True)
            self._bound[address] = binding

    # -- records -------------------------------------------------------------------------------------------------------
    def note(self, what: Mapping[str, Any]) -> None:
        """Write a row to the journal, at the current moment."""
        self.recorder.note(self.moment, what)

    def write_metrics(self, force: bool) -> None:
        """Write a row of metrics if it is time, or with ``force``."""
        self.recorder.row(self.moment, force, [*self.state.data.get("edits", ())])

    def record_numbers(self) -> None:
        """Record the numbers that can be set, as far as they have changed."""
        self.recorder.record_settings(numbers(self), self.moment)

    def log(self, text: str) -> None:
        """Log a message for people, which begins with the trainer's name."""
        self.recorder.log(f"{self.setup.name}: {text}")

    # -- the stopwatch -------------------------------------------------------------------------------------------------
    def read_stopwatch(self) -> float:
        """Return the seconds since the last call, or since training continued."""
        last, self._counted = self._counted, time.perf_counter()
        return self._counted - last

    def count_seconds(self) -> None:
        """Add the seconds since they were last counted to the current moment."""
        self.set_state(evolve(self.state, moment=self.moment.advance(0, 0, self.read_stopwatch())))
