"""What monitors see of a trainer, from their own threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import attrs
import numpy as np
from attrs import define, evolve

from sigma_kernel.arrays import PLAIN
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import (
    Branch,
    HookEntry,
    LayerEntry,
    MediaEntry,
    RowHistory,
    RowLosses,
    StateEntry,
    Stretch,
    WorkEntry,
)
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.curves import Window
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.network.architecture import Architecture, Placed
from sigma_kernel.network.tracing import Shapes
from sigma_kernel.periods import Period
from sigma_kernel.plugins.components import display_name
from sigma_step.graphs import training_step
from sigma_step.model import LAYERS, OPTIMISERS
from sigma_step.steps import Steps
from sigma_training.compatibility import check_layers
from sigma_training.components import Learned, check_split, target_names
from sigma_training.data.dataset import gather_rows
from sigma_training.evaluator import Evaluator
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.order import explain_order
from sigma_training.hooks.row_history import find_row_history
from sigma_training.names import KEPT, UNDO
from sigma_training.session.session import Session
from sigma_training.work import describe_work


@define(eq=False)
class SessionView:
    """The view of a trainer: what it has measured, and once it is prepared, its components and its data."""

    name: str
    recorder: Recorder
    session: Session | None = None
    earlier: Steps | None = None  # of the state that it shows, on the host, if not of the present one

    def open(self, session: Session) -> None:
        """Show a session from now on; monitors keep a view that they took before."""
        self.session = session

    def stretches(self, name: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return what was measured, or set, at an address since a cursor, and the next cursor."""
        recorder = self.recorder
        return (recorder.settings if name in recorder.settings else recorder.history).stretches_since(name, after, most)

    def points(self, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, and a cursor: settings are not stored, but in memory."""
        recorder = self.recorder
        if recorder.stored is not None and name not in recorder.settings:
            return recorder.stored.points(self.name, name, window, after)
        return (recorder.settings if name in recorder.settings else recorder.history).points(name, window, after)

    def branches(self) -> list[Branch]:
        """Return the branches of its history."""
        return self.recorder.history.branches()

    def periods(self) -> list[Period]:
        """Return when it trained without a pause, in order."""
        return self.recorder.periods()

    # -- media ---------------------------------------------------------------------------------------------------------
    def media(self) -> list[MediaEntry]:
        """Return what media hooks have published, on all branches."""
        return self.recorder.media.entries()

    def media_version(self) -> Any:
        """Return what changes with each of them; None if there are none."""
        return self.recorder.media.version()

    def read_media(self, key: str) -> bytes | None:
        """Return the bytes of one of them; None if they are no longer there."""
        return self.recorder.media.read(key)

    @property
    def _session(self) -> Session:
        if self.session is None:
            raise SigmaStateError(f"trainer {self.name!r}: is not prepared yet. Ask again once it is.")
        return self.session

    # -- components ----------------------------------------------------------------------------------------------------
    def network(self) -> list[LayerEntry]:
        """Return its layers."""
        model = self._session.setup.model
        return [_layer(f"{self.name}.{LAYERS}", placed, model.shapes) for placed in model.network.layers]

    def work(self) -> list[WorkEntry]:
        """Return what layers and optimisers take of a training step, whose graph is traced again if it was cut."""
        setup = self._session.setup
        model, batch, steps = setup.model, setup.feed.batch_size, setup.programs.steps
        return describe_work(model, steps.get((training_step, batch)) or training_step(model, batch))

    def record(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Record what a monitor measured, at the next boundary, while it trains."""
        session = self._session
        if session.status == "running":
            session.ask(partial(session.record_readings, readings, units))

    def hooks(self) -> list[HookEntry]:
        """Return its hooks in callback order."""
        session = self._session
        order, memory = session.setup.order, session.state.memory
        why, entries = explain_order(order.hooks, order.names), list[HookEntry]()
        for name in order.names:
            hook, muted = order.hooks[name], bool(memory.get(name, {}).get("muted"))
            when, reasons = str(hook.when or ""), tuple(str(reason) for reason in why if reason.then == name)
            entries.append(HookEntry(name, display_name(hook), str(hook.every), when, reasons, muted, hook.background))
        return entries

    def states(self) -> list[StateEntry]:
        """Return the states that it can be rewound to."""
        session = self._session
        kept = {moment.iteration: moment.epoch for moment, _ in list(session.recorder.past.states)}
        saver = session.checkpoints.saver
        saved = {} if saver is None else saver.epochs()
        epochs, named = {**saved, **kept}, {} if saver is None else saver.names()
        return [StateEntry(at, epochs[at], at in kept, at in saved, *named.get(at, ())) for at in sorted(epochs)]

    def state(self, iteration: int) -> SessionView:
        """Return the trainer as it was in one of its states."""
        return self.with_state(self._session.checkpoints.find_state(iteration))

    def with_state(self, state: Checkpoint) -> SessionView:
        """Return the trainer as it was in a state that was computed again."""
        moment, session = Moment(**state.values["clock"]), self._session
        where = f"iteration {moment.iteration}"
        try:
            check_layers(where, state, self.name, session.setup.model)
        except SigmaCheckpointError as error:
            raise SigmaStateError(f"{where}: had another network. Choose a later state.") from error
        arrays = {n: x for n, x in state.arrays.items() if not n.startswith((*OPTIMISERS, KEPT, UNDO))}
        return evolve(self, earlier=evolve(session.present.steps(), arrays=arrays, moment=moment))

    def parameters(self) -> dict[str, np.ndarray]:
        """Return copies of its parameters and of the state of its layers, by address."""
        session = self._session
        steps = self.earlier or session.ask(lambda: session.present.copy_steps())
        return {f"{self.name}.{n}": np.array(x) for n, x in steps.arrays.items() if n.startswith(LAYERS)}

    # -- data ----------------------------------------------------------------------------------------------------------
    def splits(self) -> dict[str, int]:
        """Return the number of rows of each split."""
        return {name: len(dataset) for name, dataset in self._session.setup.factory.splits.items()}

    def classes(self) -> list[Any]:
        """Return the class names by index."""
        return list(self._session.setup.evaluator.classes)

    def columns(self) -> dict[str, list[str]]:
        """Return the names of columns by section."""
        return dict(self._session.setup.evaluator.learned.get("columns", {}))

    def targets(self) -> dict[str, list[str]]:
        """Return the names of columns by output."""
        setup = self._session.setup
        return target_names(setup.model.network, Learned(setup.evaluator.learned))

    def rows(self, split: str, numbers: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split as they are in the data, or preprocessed.

        Classes are indices.  Labels that were changed are in :meth:`edits`.
        """
        evaluator = self._session.setup.evaluator
        sections = gather_rows(evaluator.data(split, edited=False), numbers)
        return evaluator.prepare(sections) if prepared else sections

    def losses(self, split: str = "training", most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split, or of the ``most`` with the greatest, without delaying training."""
        evaluator, steps = self.evaluator_and_steps()
        return evaluator.losses(steps, split, most)

    def row_history(self, split: str = "training") -> RowHistory:
        """Return what a hook has recorded of each row of a split; raise SigmaStateError if none has."""
        session = self._session
        check_split("row_history", split, session.setup.factory.splits)
        memory = session.ask(lambda: deepcopy(dict(session.state.memory)))
        return find_row_history(session.setup.settings.resolve, memory, split)

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions of each output for samples."""
        evaluator, steps = self.evaluator_and_steps()
        return evaluator.predictions(steps, samples)

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the output of each layer for samples."""
        evaluator, steps = self.evaluator_and_steps()
        return evaluator.activations(steps, samples)

    def evaluator_and_steps(self) -> tuple[Evaluator, Steps]:
        """Return what evaluates in the calling thread, without delaying training, and the steps to evaluate with.

        The training thread copies the parameters at the next boundary.
        """
        session, now = self._session, self.earlier
        evaluator, steps = session.ask(lambda: (session.background.evaluator, now or session.present.copy_steps()))
        return evaluator, steps.to_device()

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the edits by split, as they are wanted: the rows ``excluded``, and new ``labels`` by row.

        With targets in several sections, a label is a dictionary by section.  Edits act from the next epoch on; how
        many are in force is at the addresses ``data.<split>.*``.
        """
        run = self._session.present
        edits = run.state.changes.get("edits", {}).items()
        several = len({cost.layer.targets for cost in run.setup.model.network.targeted_costs}) > 1
        labels = {split: dict(own.get("labels", ())).items() for split, own in edits}
        plain = {split: {row: x if several else next(iter(x.values())) for row, x in labels[split]} for split in labels}
        return {split: {"excluded": [*own.get("excluded", ())], "labels": plain[split]} for split, own in edits}


def _layer(head: str, placed: Placed, shapes: Shapes) -> LayerEntry:
    shape = getattr(shapes.outputs.get(placed.name), "shape", None)
    own = {head + a: p.shape for a, p in shapes.parameters.items() if a.startswith(f"{placed.name}.")}
    shared = {name: f"{head}{address}" for name, address in placed.layer.share.items()}
    return LayerEntry(placed.name, placed.kind, placed.sources, shape, own, _settings(placed.layer), shared)


def _settings(layer: Any) -> dict[str, Any]:
    """Return the plain settings of a layer by name, and the layers that it owns as text; branches are its sources."""
    values = {field.name: getattr(layer, field.name) for field in attrs.fields(type(layer)) if field.init}
    outside, left = [*getattr(layer, "branches", ())], {"branches", "" if values.get("recompute") else "recompute"}
    owned = {name: str(x) for name, x in values.items() if isinstance(x, Architecture) and x not in outside}
    plain = {name: x for name, x in values.items() if isinstance(x, (*PLAIN, tuple, list)) and name not in left}
    return {**plain, **owned}
