"""Repeat an iteration on another backend, by the operator's own burst, from a copy of its initial state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define, evolve

from sigma_kernel.contracts import Backend, Step
from sigma_kernel.training.step.steps import Compiled, Iteration, Programs, outcome


@define(eq=False)
class Recompiled(Programs):
    """The steps of other programs, recompiled by another backend."""

    own: Programs

    def get(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        """Return the same step and the other backend's program."""
        step, _ = self.own.get(kind, *about)
        return step, self.backend.compile(step)


def repeated(iteration: Iteration, backend: Backend) -> dict[str, np.ndarray]:
    """Return the outcome of an iteration on a backend, without side effects."""

    def placed(held: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {name: backend.to_device(value) for name, value in held.items()}

    steps, batches = iteration.steps, iteration.batches
    programs = Recompiled(steps.programs.model, backend, steps.programs)
    there = evolve(steps, programs=programs, arrays=placed(steps.arrays))
    return outcome(iteration.compute(there, evolve(batches, block=placed(batches.block))), backend)
