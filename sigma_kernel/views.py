"""What monitors see of an environment, and how they send commands."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import attrs
import numpy as np
from attrs import define, field

from sigma_kernel.arrays import protect
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import AddressEntry, Branch, HookEntry, LayerEntry, RowLosses, StateEntry, Stretch, Ticket
from sigma_kernel.encoding import pack
from sigma_kernel.errors import SigmaAddressError, SigmaStateError
from sigma_kernel.messages import Messages
from sigma_kernel.network.architecture import Architecture, Placed
from sigma_kernel.network.tracing import Shapes
from sigma_kernel.plugins.components import display_name
from sigma_kernel.registry.registry import Kind, Registry
from sigma_kernel.threads import in_thread
from sigma_kernel.training.components import Learned, target_names
from sigma_kernel.training.hooks.order import explain_order
from sigma_kernel.training.session.session import Session
from sigma_kernel.training.step.live import Elements
from sigma_kernel.training.step.model import LAYERS
from sigma_kernel.training.trainer import Trainer

TYPES = {float: "number", int: "whole", bool: "flag", str: "text"}
PLAIN = (bool, int, float, str, np.integer, np.floating, np.bool_)


class Watchable(Protocol):
    """The environment as a view reads it."""

    name: str
    registry: Registry
    messages: Messages[str]
    rows: Messages[Mapping[str, Any]]
    tickets: Messages[Ticket]

    @property
    def run_folder(self) -> Path | None:
        """Return the run folder."""

    def status(self) -> str:
        """Return the state, ``compiling``, or how training ended."""

    def why(self) -> str:
        """Return why training failed."""

    def trainer(self, name: str) -> Trainer:
        """Return a trainer."""

    @property
    def trainers(self) -> Mapping[str, Trainer]:
        """Return the trainers by name."""

    def send(self, command: str, **arguments: Any) -> Mapping[str, Moment]:
        """Send a command, and wait until it was applied."""


@define(eq=False)
class EnvironmentView:
    """The view of a monitor: read values and messages, send commands, from its own threads."""

    environment: Watchable
    over: threading.Event
    _sent: Future[Mapping[str, Moment]] | None = field(default=None, init=False)  # the answer to the last command
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def name(self) -> str:
        """Return the name of the environment."""
        return self.environment.name

    @property
    def folder(self) -> Path | None:
        """Return the run folder."""
        return self.environment.run_folder

    def status(self) -> str:
        """Return the state of the environment, ``compiling``, or how training ended."""
        return self.environment.status()

    def why(self) -> str:
        """Return why training failed; empty if it did not."""
        return self.environment.why()

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the run is over."""
        return self.over.wait(seconds)

    # -- values --------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return a value."""
        return protect(self.environment.registry.get(address))

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all values that match a pattern, with their addresses."""
        return [(address, protect(value)) for address, value in self.environment.registry.find(pattern)]

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the addresses that match a pattern, with their kinds; values of hooks may disappear meanwhile."""
        registry = self.environment.registry
        found = (_entry(registry, name, *kind) for name, kind in registry.kinds(pattern).items())
        return [entry for entry in found if entry is not None]

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return what was measured, or set, at an address since a cursor, and the next cursor."""
        trainer, _, name = address.partition(".")
        recorder = self.environment.trainer(trainer).recorder
        return (recorder.settings if name in recorder.settings else recorder.history).stretches_since(name, after, most)

    def branches(self, trainer: str) -> list[Branch]:
        """Return the branches of a trainer's history."""
        return self.environment.trainer(trainer).history.branches()

    # -- trainers ------------------------------------------------------------------------------------------------------
    def trainers(self) -> list[str]:
        """Return the names of the trainers."""
        return list(self.environment.trainers)

    def _session(self, trainer: str) -> Session:
        found = self.environment.trainer(trainer)
        if not found.prepared:
            raise SigmaStateError(f"trainer {trainer!r}: is not prepared yet. Ask again once it is.")
        return found.session

    def network(self, trainer: str) -> list[LayerEntry]:
        """Return the layers of a trainer."""
        model = self._session(trainer).setup.model
        return [_layer(f"{trainer}.{LAYERS}", placed, model.shapes) for placed in model.network.layers]

    def hooks(self, trainer: str) -> list[HookEntry]:
        """Return the hooks of a trainer in callback order."""
        session = self._session(trainer)
        order, memory = session.setup.order, session.state.memory
        why, found = explain_order(order.hooks, order.names), list[HookEntry]()
        for name in order.names:
            hook, muted = order.hooks[name], bool(memory.get(name, {}).get("muted"))
            when, reasons = str(hook.when or ""), tuple(str(reason) for reason in why if reason.then == name)
            found.append(HookEntry(name, display_name(hook), str(hook.every), when, reasons, muted, hook.background))
        return found

    def states(self, trainer: str) -> list[StateEntry]:
        """Return the states that a trainer can be rewound to."""
        session = self._session(trainer)
        kept = {moment.iteration: moment.epoch for moment, _ in list(session.recorder.past.states)}
        saver = session.checkpoints.saver
        saved = {} if saver is None else saver.epochs()
        epochs = {**saved, **kept}
        return [StateEntry(at, epochs[at], at in kept, at in saved) for at in sorted(epochs)]

    def splits(self, trainer: str) -> dict[str, int]:
        """Return the number of rows of each split."""
        return {name: len(dataset) for name, dataset in self._session(trainer).setup.factory.splits.items()}

    def classes(self, trainer: str) -> list[Any]:
        """Return the class names by index."""
        return list(self._session(trainer).setup.evaluator.classes)

    def columns(self, trainer: str) -> dict[str, list[str]]:
        """Return the names of columns by section."""
        return dict(self._session(trainer).setup.evaluator.learned.get("columns", {}))

    def targets(self, trainer: str) -> dict[str, list[str]]:
        """Return the names of columns by output."""
        setup = self._session(trainer).setup
        return target_names(setup.model.network, Learned(setup.evaluator.learned))

    def rows(self, trainer: str, split: str, wanted: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split."""
        return self._session(trainer).readings.rows_of(split, wanted, prepared)

    def losses(self, trainer: str, split: str, most: int | None = None) -> RowLosses:
        """Return the losses of rows of a split."""
        return self._session(trainer).readings.row_losses(split, most)

    def predict(self, trainer: str, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions of each output for samples."""
        evaluator, steps = self._session(trainer).readings.evaluator_and_steps()
        return evaluator.predictions(steps, samples)

    def activations(self, trainer: str, samples: Any) -> dict[str, np.ndarray]:
        """Return the output of each layer for samples."""
        evaluator, steps = self._session(trainer).readings.evaluator_and_steps()
        return evaluator.activations(steps, samples)

    def edits(self, trainer: str) -> dict[str, dict[str, Any]]:
        """Return the edits of each split, as they are wanted."""
        return self._session(trainer).readings.edits()

    def log(self, text: str) -> None:
        """Log a message."""
        self.environment.messages.log(text)

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> Ticket:
        """Send a command, in a thread that waits for the one before; return its ticket at once."""
        with self._gate:
            answer = in_thread(partial(self._send, self._sent, command, arguments), "sigma-commands")
            self._sent = answer
            return self.environment.tickets.add(lambda number: Ticket(number, command, arguments, answer))

    def _send(self, earlier: Future[Any] | None, command: str, arguments: Mapping[str, Any]) -> Mapping[str, Moment]:
        if earlier is not None:
            wait([earlier])
        return self.environment.send(command, **arguments)

    def tickets(self, after: int = 0) -> list[Ticket]:
        """Return the tickets after a number."""
        return [ticket for _, ticket in self.environment.tickets.entries_after(after)]

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of the journal after a number, but digests."""
        rows = self.environment.rows.entries_after(after)
        return [(number, pack(row)) for number, row in rows]

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the numbered messages after a number."""
        return self.environment.messages.entries_after(after)


def _entry(registry: Registry, address: str, kind: Kind, settable: bool) -> AddressEntry | None:
    """Return an address with its kind; None if it has just been removed."""
    type_, shape, value = TYPES.get(kind.type, "any"), None, None
    if isinstance(kind, Elements):
        type_, shape = "array", kind.spec.shape
    else:
        try:
            value = registry.get(address)
        except SigmaAddressError:  # not published yet, or no longer there
            if address not in registry:
                return None
        if isinstance(value, np.ndarray):
            type_, shape, value = "array", value.shape, None
        elif type_ == "any" and isinstance(value, PLAIN):
            value = value.item() if isinstance(value, np.generic) else value
            type_ = TYPES[type(value)] if type(value) is not int else "number"
        elif not isinstance(value, PLAIN):
            value = None
    limits = (kind.low, kind.high, kind.above, kind.below)
    return AddressEntry(address, type_, value, settable, *limits, kind.unit, kind.doc, _tags(registry, address), shape)


def _tags(registry: Registry, address: str) -> tuple[str, ...]:
    """Return the tags of all levels above a value."""
    heads = accumulate(address.split(".")[:-1], "{}.{}".format)
    return tuple(tag for head in heads for tag in sorted(registry.tags(head)))


def _layer(head: str, placed: Placed, shapes: Shapes) -> LayerEntry:
    shape = getattr(shapes.outputs.get(placed.name), "shape", None)
    own = {head + a: one.shape for a, one in shapes.parameters.items() if a.startswith(f"{placed.name}.")}
    return LayerEntry(placed.name, placed.kind, placed.sources, shape, own, _settings(placed.layer))


def _settings(layer: Any) -> dict[str, Any]:
    """Return the plain settings of a layer by name, and the layers that it owns as text; branches are its sources."""
    values = {one.name: getattr(layer, one.name) for one in attrs.fields(type(layer)) if one.init}
    outside = [*getattr(layer, "branches", ())]
    owned = {name: str(x) for name, x in values.items() if isinstance(x, Architecture) and x not in outside}
    plain = {name: x for name, x in values.items() if isinstance(x, (*PLAIN, tuple, list)) and name != "branches"}
    return {**plain, **owned}
