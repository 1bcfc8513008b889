"""The state tree of a session: everything that decides what comes next, taken out and put back exactly.

Arrays lie in it by name; everything else is plain JSON values.  What depends on the wall clock (seconds, and what hooks
that go by them remember and publish) is saved too, but has no part in the digests, which tell two runs apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Clock, Moment, Timed
from sigma_kernel.contracts import Metric, Step
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.registry.addresses import literal
from sigma_kernel.registry.registry import NOTHING, Registry
from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.commands.changes import FORMER, Changes, Makeup
from sigma_kernel.training.commands.queue import Control
from sigma_kernel.training.commands.types import Command
from sigma_kernel.training.data.feed import Cursor, Feed
from sigma_kernel.training.history.chronicle import Chronicle
from sigma_kernel.training.history.recorder import Records
from sigma_kernel.training.hooks.background import Background
from sigma_kernel.training.hooks.order import seen
from sigma_kernel.training.hooks.runner import Runner
from sigma_kernel.training.step.evaluator import Evaluator
from sigma_kernel.training.step.iteration import Iteration
from sigma_kernel.training.step.live import Live
from sigma_kernel.training.step.model import Model
from sigma_kernel.training.step.programs import Programs

PHASES = ("burst", "data", "hooks", "evaluation")  # what seconds are spent on; hooks evaluate


@define(eq=False, kw_only=True)
class State:
    """What a session holds, and how that is read, published, taken out and put back."""

    name: str
    programs: Programs
    feed: Feed
    live: Live
    runner: Runner
    evaluator: Evaluator
    records: Records
    registry: Registry
    makeup: Makeup
    act: Callable[[Any, Command], Moment]  # of a session
    remake: Callable[[Any, Changes], None]
    classes: tuple[str, ...] = ()  # what the data set calls them, in the order of their indices
    learned: dict[str, Any] = field(factory=dict)  # what it has to know to read samples to predict from
    clock: Clock = field(factory=Clock, init=False)
    arrays: dict[str, Any] = field(factory=dict, init=False)
    kept: dict[str, np.ndarray] = field(factory=dict, init=False)
    published: dict[str, Any] = field(factory=dict, init=False)
    observed: dict[str, np.ndarray] = field(factory=dict, init=False)
    repeatable: Iteration | None = field(default=None, init=False)  # the last one, where a hook is due that repeats it
    phases: dict[str, float] = field(factory=lambda: dict.fromkeys(PHASES, 0.0), init=False)
    control: Control = field(init=False)
    settled: Moment = field(factory=Moment, init=False)
    pause_at: int | None = field(default=None, init=False)  # iterations
    until: int | None = field(default=None, init=False)
    midway: str = field(default="", init=False)  # put back as running, paused, over, or ended: its last hooks have run
    halted: bool = field(default=False, init=False)  # ended from outside
    chronicle: Chronicle = field(init=False)
    background: Background = field(init=False)

    # -- the state tree ------------------------------------------------------------------------------------------------
    def snapshot(self) -> Checkpoint:
        """Return the whole state tree: arrays by name, and all else as JSON values."""
        arrays = {name: self.host(name) for name in self.arrays}
        cursor = self.feed.cursor
        values = {
            "trainer": self.name,
            "clock": self.clock.state(),
            "cursor": [cursor.epoch, cursor.block, cursor.row],
            "live": dict(self.live.base),
            "configured": {name: value.base for name, value in self.live.values.items()},
            "hooks": {name: _remembered(name, memory) for name, memory in self.runner.memory.items()},
            "streams": dict(self.model.shapes.streams.numbers),
            "classes": list(self.classes),  # this and the next two for who predicts without the data
            "learned": self.learned,
            "batch_size": self.feed.batch_size,
            "published": plain(self.published),
            "changes": deepcopy(dict(self.makeup.changes)),
            "undone": deepcopy(self.makeup.undone),
            "goals": [self.pause_at, self.until],
            "midway": self._midway(),
        }
        return Checkpoint({**arrays, **self.kept}, values)

    def _midway(self) -> str:
        """Return how training is under way, if it is; one stopped from outside goes on."""
        if self.midway == "ended":
            return self.midway
        status = self.control.status if self.control.status in ("running", "paused") else ""
        return "over" if status and self.control.over and not self.halted else status

    def restore(self, saved: Checkpoint) -> None:
        """Put a state tree back; what it does not hold starts afresh.

        Where a live value was configured otherwise when the state was saved, the present configuration holds.
        """
        self.background.forget()
        values = saved.values
        self.remake(self, values.get("changes", {}))
        self.makeup.undone = deepcopy(values.get("undone", []))
        to_device = self.programs.backend.to_device
        self.kept = {name: value for name, value in saved.arrays.items() if name.startswith(("kept.", FORMER))}
        self.arrays = {name: to_device(value) for name, value in saved.arrays.items() if name not in self.kept}
        self.clock = Clock()
        self.clock.restore(values.get("clock", {}))
        self.feed.rewind()
        if "cursor" in values:
            self.feed.cursor = Cursor(*values["cursor"])
        self.live.restore(_steered(self.live, values))
        self.runner.forget()
        memories = deepcopy(values.get("hooks", {}))
        self.runner.memory.update({name: memory for name, memory in memories.items() if name in self.runner.hooks})
        self.published, self.observed = dict(values.get("published", {})), {}
        midway = values.get("midway") or ""
        self.settled, self.midway = self.clock.moment, midway if isinstance(midway, str) else "running"
        if self.midway:
            self.pause_at, self.until = values["goals"]
        for address in self.published:
            self.show(address)

    # -- reading -------------------------------------------------------------------------------------------------------
    @property
    def model(self) -> Model:
        """Return what is trained."""
        return self.programs.model

    def host(self, name: str) -> np.ndarray:
        """Return a copy of a state entry; belongs to the training thread, or to a question."""
        return self.programs.backend.to_host(self.arrays[name])

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return what criteria and hooks see under an address, or None if it is not there yet; local values first.

        Under a pattern they see a dictionary of all that match.
        """
        found, bound = seen({**self.observed, **self.published}, address, scope), dict(self.registry.find(address))
        if literal(address):
            return bound.get(address) if found is None else found
        return {**bound, **found}

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address of this trainer."""
        value = value.item() if isinstance(value, np.generic) else value
        self.published[address] = value
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.records.measured({address: np.array([value], float)})

    def show(self, address: str) -> None:
        """Let what is published under an address be read there, if it is not yet."""
        if address not in self.registry:
            self.registry.bind(address, lambda: self.published.get(address, NOTHING))
            self.makeup.shown.add(address)

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data, at the present parameters."""
        with self.timed("evaluation"):
            return self.evaluator.evaluate(self.arrays, self.steer, on, metrics)

    def steer(self, step: Step, n: int = 1, offset: int = 0) -> dict[str, Any]:
        """Return the live values in force for ``n`` iterations of a step, ``offset`` iterations from now."""
        return self.live.at(step, self.clock.moment, n, offset)

    def timed(self, phase: str) -> Timed:
        """Add the seconds that are spent inside to a phase."""
        return Timed(self.phases, phase)

    def note(self, what: Mapping[str, Any]) -> None:
        """Write into the journal what happens now."""
        self.chronicle.note(self.clock.moment, what)


def _remembered(hook: str, memory: Mapping[str, Any]) -> Any:
    """Return a copy of what a hook remembers; raises SigmaTrainingError for what cannot be saved."""
    for key, value in memory["hook"].items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise SigmaTrainingError(
                f"hook {hook!r}: memory[{key!r}] cannot be saved: {error}. Keep plain values in it: numbers, texts, "
                "lists, dictionaries."
            ) from error
    return deepcopy(memory)


def plain(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published values that are saved."""
    return {name: value for name, value in published.items() if isinstance(value, int | float | str | bool)}


def _steered(live: Live, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the saved bases of live values, but for those whose configuration has changed since."""
    now = {name: value.base for name, value in live.values.items()}
    then = {**now, **values.get("configured", {})}
    return {n: base for n, base in values.get("live", {}).items() if n in now and then[n] == now[n]}
