"""One iteration as it was, so that a hook can repeat it on another backend, and compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Burst, Program, Step
from sigma_kernel.training.feed import Batches
from sigma_kernel.training.live import Live
from sigma_kernel.training.programs import Programs
from sigma_kernel.training.step import Model

Arrays = dict[str, np.ndarray]


@frozen(eq=False)
class Recompiled:
    """The steps of other programs, compiled by another backend."""

    own: Programs
    backend: Backend

    @property
    def model(self) -> Model:
        """Return what is trained."""
        return self.own.model

    def get(self, kind: Callable[..., Step], *about: Any) -> tuple[Step, Program]:
        """Return the same step, and a program of the other backend."""
        step, _ = self.own.get(kind, *about)
        return step, self.backend.compile(step)


@frozen(eq=False)
class Stand:
    """What a burst sees in place of a session."""

    programs: Recompiled
    arrays: dict[str, Any]
    live: Live
    moment: Moment
    published: dict[str, Any] = field(factory=dict)

    @property
    def model(self) -> Model:
        """Return what is trained."""
        return self.programs.model

    def steer(self, step: Step, n: int = 1, offset: int = 0) -> dict[str, Any]:
        """Return the live values that were in force."""
        return self.live.at(step, self.moment, n, offset)


@frozen(eq=False)
class Iteration:
    """One iteration: copies of the state before it, of its batch and its live values, and what came of it."""

    programs: Programs
    burst: Callable[[Any, Batches], Burst]
    before: Arrays
    batches: Batches
    live: Live
    moment: Moment
    outcome: Arrays = field(factory=dict)

    @classmethod
    def begun(
        cls, programs: Programs, burst: Callable[[Any, Batches], Burst], arrays: Mapping[str, Any], batches: Batches,
        live: Live, moment: Moment,
    ) -> Iteration:  # fmt: skip
        """Return an iteration that the burst of an operator is about to run; all that it goes by is copied."""
        backend, held = programs.backend, Live(live.values, live.dtype)
        held.restore(live.base)
        rows = batches.rows[0]
        block = {n: backend.to_host(backend.take(batches.block[n], rows)) for n in programs.model.sections}
        alone = Batches(block, np.arange(len(rows), dtype=np.int32)[None])
        before = {name: backend.to_host(value) for name, value in arrays.items()}
        return cls(programs, burst, before, alone, held, moment)

    def ended(self, result: Burst) -> Iteration:
        """Return it with what came of it: the new state, and ``training.loss`` and totals of metrics."""
        return evolve(self, outcome=_outcome(result, self.programs.backend))

    def again(self, on: Callable[[Backend], Backend]) -> Arrays:
        """Return what comes of it on the backend that is made from the run's own."""
        backend = on(self.programs.backend)
        arrays, block = (
            {name: backend.to_device(value) for name, value in held.items()}
            for held in (self.before, self.batches.block)
        )
        stand = Stand(Recompiled(self.programs, backend), arrays, self.live, self.moment)
        return _outcome(self.burst(stand, evolve(self.batches, block=block)), backend)


def _outcome(result: Burst, backend: Backend) -> Arrays:
    measured = {f"training.{name.removeprefix('metrics.')}": values[0] for name, values in result.ring.items()}
    return {**{name: backend.to_host(value) for name, value in result.state.items()}, **measured}
