"""Do an iteration again on another backend, by the burst of its operator, from copies of what it began with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Program, Step
from sigma_kernel.training.step.iteration import Iteration, outcome
from sigma_kernel.training.step.live import Live
from sigma_kernel.training.step.model import Model
from sigma_kernel.training.step.programs import Programs


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

    def show(self, address: str) -> None:
        """Bind nothing: what a repeated iteration publishes is not read."""


def repeated(iteration: Iteration, backend: Backend) -> dict[str, np.ndarray]:
    """Return what comes of an iteration on a backend; nothing else changes."""
    arrays, block = (
        {name: backend.to_device(value) for name, value in held.items()}
        for held in (iteration.before, iteration.batches.block)
    )
    stand = Stand(Recompiled(iteration.programs, backend), arrays, iteration.live, iteration.moment)
    return outcome(iteration.burst(stand, evolve(iteration.batches, block=block)), backend)
